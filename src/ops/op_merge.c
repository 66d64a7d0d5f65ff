/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weighted_sum, dare_sum, ties_sum: many tensors of equal dims become one.  Every step is an f64 operation in the order that
 * types.h gives, so that all devices can agree on each bit; the only other rounding is the one to y's format.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/philox.h"
#include "ops/walk.h"
#include "tensor/shape.h"

#define FIRST 0u                /* x_0 or the base */
#define SETTINGS 1u
#define MOST_OTHERS (TM_MAX_OPERANDS - 3u)
#define MOST_SETTINGS (1u + TM_DARE_WORDS * MOST_OTHERS)

/* One walk an operand, over the same dims: so lines end everywhere at the same time. */
typedef struct merge {
  const tm_operation *operation;
  uint32_t other_count;         /* inputs behind the settings */
  uint64_t element;             /* the next one's row-major number */
  tm_walk  first, others[MOST_OTHERS], y;
  uint64_t settings[MOST_SETTINGS];     /* as bits */
} merge;

/* y for a run of elements, of which `first` are those of the first input; the others come from the walks. */
typedef void (*merge_fn)(merge *m, uint64_t count, const double *first, double *out_y);

static uint32_t other_count(const tm_operation *operation) { return operation->input_count - 2; }

static double setting(const merge *m, uint32_t index) {
  double value;
  memcpy(&value, &m->settings[index], sizeof value);
  return value;
}

static void load_settings(merge *m, const tm_operand *operand, const char *address) {
  for (uint64_t i = 0; i < operand->element_count; i++)
    memcpy(&m->settings[i], address + (int64_t)i * operand->strides_bytes[0], sizeof m->settings[i]);
}

static void load(const tm_walk *walk, uint64_t count, double *out_values) {
  tm_stream_load(&walk->streams[0], walk->addresses[0], count, out_values);
}

static double difference(double x, double base) { return x == base ? 0 : x - base; }

/* ---- weighted_sum ---- */

static void sum_run(merge *m, uint64_t count, const double *first, double *out_y) {
  double x[TM_RUN];
  for (uint64_t e = 0; e < count; e++) out_y[e] = setting(m, 0) * first[e];
  for (uint32_t i = 0; i < m->other_count; i++) {
    const double weight = setting(m, 1 + i);
    load(&m->others[i], count, x);
    for (uint64_t e = 0; e < count; e++) out_y[e] = out_y[e] + weight * x[e];
  }
}

/* ---- dare_sum ---- */

static bool is_kept(const uint64_t *settings, uint64_t element) {
  uint32_t words[TM_PHILOX_WORDS];
  if (settings[TM_DARE_THRESHOLD] > UINT32_MAX) return true;
  tm_philox(element / TM_PHILOX_WORDS, settings[TM_DARE_KEY], words);
  return words[element % TM_PHILOX_WORDS] < settings[TM_DARE_THRESHOLD];
}

static void dare_run(merge *m, uint64_t count, const double *first, double *out_y) {
  double x[TM_RUN];
  memcpy(out_y, first, (size_t)count * sizeof *out_y);
  for (uint32_t i = 0; i < m->other_count; i++) {
    const uint32_t at = 1 + TM_DARE_WORDS * i;
    const double weight = setting(m, at + TM_DARE_WEIGHT), factor = setting(m, at + TM_DARE_FACTOR);
    load(&m->others[i], count, x);
    for (uint64_t e = 0; e < count; e++)
      if (x[e] != first[e] && is_kept(&m->settings[at], m->settings[0] + m->element + e))
        out_y[e] = out_y[e] + weight * (factor * (x[e] - first[e]));
  }
}

/* ---- ties_sum ---- */

/* w * d, trimmed; the magnitude is what `magnitudes` counts. */
static double product(double weight, double threshold, double x, double base) {
  const double d = difference(x, base);
  return weight * ((double)fabsf((float)d) < threshold ? 0 : d);
}

static bool agrees(double p, double elected) { return elected > 0 ? p > 0 : p < 0; }

static double ties_of(const merge *m, double products[][TM_RUN], uint64_t e, double base) {
  const tm_ties_attributes *attributes = m->operation->attributes;
  double elected = products[0][e], sum = 0, weights = 0;
  for (uint32_t i = 1; i < m->other_count; i++) elected = elected + products[i][e];
  if (elected == 0) return base;
  if (isnan(elected)) return elected;
  for (uint32_t i = 0; i < m->other_count; i++) {
    if (!agrees(products[i][e], elected)) continue;
    sum = sum + products[i][e];
    weights = weights + fabs(setting(m, 1 + 2 * i));
  }
  return base + setting(m, 0) * (attributes->sum ? sum : sum / weights);
}

static void ties_run(merge *m, uint64_t count, const double *first, double *out_y) {
  double products[MOST_OTHERS][TM_RUN];
  for (uint32_t i = 0; i < m->other_count; i++) {
    const double weight = setting(m, 1 + 2 * i), threshold = setting(m, 2 + 2 * i);
    load(&m->others[i], count, products[i]);
    for (uint64_t e = 0; e < count; e++) products[i][e] = product(weight, threshold, products[i][e], first[e]);
  }
  for (uint64_t e = 0; e < count; e++) out_y[e] = ties_of(m, products, e, first[e]);
}

/* ---- all of them ---- */

static tm_walk walk_of(const tm_operation *operation, void *const *pointers, uint32_t operand, uint64_t element) {
  return tm_walk_begin(tm_output_of(operation), &operation->operands[operand], &pointers[operand], 1, element);
}

static void begin_merge(merge *m, const tm_operation *operation, void *const *pointers, uint64_t element) {
  m->operation = operation;
  m->other_count = other_count(operation);
  m->element = element;
  m->first = walk_of(operation, pointers, FIRST, element);
  m->y = walk_of(operation, pointers, operation->input_count, element);
  for (uint32_t i = 0; i < m->other_count; i++) m->others[i] = walk_of(operation, pointers, SETTINGS + 1 + i, element);
  load_settings(m, &operation->operands[SETTINGS], pointers[SETTINGS]);
}

static void advance(merge *m, uint64_t count) {
  m->element += count;
  tm_walk_advance(&m->first, count);
  tm_walk_advance(&m->y, count);
  for (uint32_t i = 0; i < m->other_count; i++) tm_walk_advance(&m->others[i], count);
}

static merge_fn function_of(uint32_t op) {
  return op == TM_OP_WEIGHTED_SUM ? sum_run : op == TM_OP_DARE_SUM ? dare_run : ties_run;
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const uint32_t unit = tm_unit_elements(operation);
  const merge_fn run = function_of(operation->op);
  double first[TM_RUN], y[TM_RUN];
  merge m;
  begin_merge(&m, operation, pointers, begin * unit);
  for (uint64_t left = (end - begin) * unit, n; left > 0; left -= n) {
    n = tm_walk_line(&m.y, tm_min_u64(left, TM_RUN));
    load(&m.first, n, first);
    run(&m, n, first, y);
    tm_stream_store(&m.y.streams[0], y, n, m.y.addresses[0]);
    advance(&m, n);
  }
}

/* ---- shapes ---- */

static uint64_t setting_count(const tm_operation *operation) {
  const uint64_t others = other_count(operation);
  const uint64_t each = operation->op == TM_OP_WEIGHTED_SUM ? 1 : operation->op == TM_OP_DARE_SUM ? TM_DARE_WORDS : 2;
  return 1 + each * others;
}

static tm_status require_settings(const tm_operation *operation, tm_error *error) {
  const uint32_t expected = operation->op == TM_OP_DARE_SUM ? TM_FORMAT_U64 : TM_FORMAT_F64;
  const uint32_t found = operation->operands[SETTINGS].format;
  const uint64_t count = setting_count(operation);
  char name[16];
  if (found != expected)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s has format %s, expected %s", tm_op_name(operation),
                   tm_input_name(operation, SETTINGS, name), tm_format_title(found), tm_format_title(expected));
  if (operation->op == TM_OP_TIES_SUM) {
    const tm_ties_attributes *attributes = operation->attributes;
    TM_TRY(tm_require_switch(operation, "sum", attributes->sum, error));
    TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  }
  return tm_require_dims(operation, SETTINGS, 1, &count, error);
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_operand *first = &operation->operands[FIRST];
  for (uint32_t i = 0; i < operation->input_count; i++) {
    if (i == SETTINGS) continue;
    TM_TRY(tm_require_format(operation, i, TM_SET_FLOAT | TM_SET_ANY_BLOCK, error));
    TM_TRY(tm_require_dims(operation, i, first->rank, first->dims, error));
  }
  TM_TRY(require_settings(operation, error));
  TM_TRY(tm_choose_format(operation, TM_FORMAT_F32, TM_SET_FLOAT, out_outputs, error));
  return tm_make_output(operation, first->rank, first->dims, out_outputs, error);
}

/* Four words of the generator cost about 70 operations; a sign is elected and then looked at again. */
static void work(const tm_operation *operation, tm_work *out_work) {
  const uint64_t inputs = operation->input_count - 1;
  const uint64_t each = operation->op == TM_OP_WEIGHTED_SUM ? 2 : operation->op == TM_OP_DARE_SUM ? 20 : 8;
  tm_work_of(operation, tm_saturating_mul(tm_output_of(operation)->element_count, each * inputs), out_work);
}

/* Of a part the number of the first element would differ. */
#define MERGE_ROW(id, op_name, text, least, attributes, joined, split, padding, ...)                                      \
  {                                                                                                                       \
    .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_ELEMENTWISE,                   \
    .input_min = least, .input_max = TM_MAX_OPERANDS - 1, .output_count = 1, .attribute_bytes = attributes,               \
    .default_numerics = TM_NUMERICS_N0, .combine = joined, .pad_value = padding, .infer = infer,                          \
    .check = tm_check_outputs, .work = work, .splittable = split, .units = tm_units_elementwise, .reference = reference,  \
    .input_names = { __VA_ARGS__ }, .merged_operands = 0xffff & ~(1u << SETTINGS), .may_alias = 0xff & ~(1u << SETTINGS), \
  }

const tm_op_row tm_op_rows_merge[] = {
  MERGE_ROW(WEIGHTED_SUM, "weighted_sum", "weights[0] * x_0 + weights[1] * x_1 + ... in f64, rounded once", 2, 0,
            TM_COMBINE_CONCATENATE, tm_splittable_elementwise, 0, "x", "weights"),
  MERGE_ROW(DARE_SUM, "dare_sum", "base plus weighted differences, of which a counter-based generator drops some", 3, 0,
            TM_COMBINE_NONE, tm_splittable_none, (double)NAN, "base", "settings"),
  MERGE_ROW(TIES_SUM, "ties_sum", "base plus the weighted mean of the trimmed differences that have the elected sign", 3,
            sizeof(tm_ties_attributes), TM_COMBINE_CONCATENATE, tm_splittable_elementwise, 0, "base", "settings"),
};
TM_OP_ROWS_COUNT(merge);
