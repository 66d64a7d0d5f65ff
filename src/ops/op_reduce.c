/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sum, mean, min, max, argmax.  A unit is an element of y.  Where x's last axis is reduced, each output takes runs
 * along it; where it is kept, a row of neighbouring outputs is taken together, so that memory is read in its own order.
 * Either way an output sees its terms in row-major order of the reduced axes.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"
#include "tensormorph/canonical_sum.h"

/* Outputs that are taken together. */
#define COLUMNS 32u

/* The best element so far; larger keys are better, and the first of equal ones stays. */
typedef struct extreme {
  int64_t  key;
  int64_t  bits;                /* of the value, f64 or integer */
  int64_t  index;               /* -1: none yet */
  uint64_t position;
} extreme;

typedef union state {
  tm_sum_stream sum;
  uint64_t      integer_sum;
  extreme       best;
} state;

typedef struct reduction reduction;

/* One way to reduce.  `take` reads `count` elements along `stream`: all into states[0], or one into each of `count`
 * states. */
typedef struct reduce_kernel {
  void (*take)(const reduction *r, const tm_element_stream *stream, const char *address, uint64_t count,
               bool into_columns);
  void (*store)(const reduction *r, const tm_element_stream *y, char *address, uint64_t count);
} reduce_kernel;

struct reduction {
  const tm_operation  *operation;
  const reduce_kernel *kernel;
  state               *states;
  tm_operand           kept;            /* x's kept axes */
  tm_operand           y;               /* y's axes for these */
  tm_operand           reduced;         /* x's reduced axes */
  uint64_t             reduced_count;
  bool                 by_columns;
};

/* ---- sums of floats: the canonical order ---- */

static void add_run(tm_sum_stream *sum, const double *values, uint64_t count) {
  for (uint64_t at = 0, n; at < count; at += n) {
    n = tm_min_u64(count - at, TM_SUM_SUPERBLOCK - sum->position % TM_SUM_SUPERBLOCK);
    for (uint64_t i = 0; i < n; i++) sum->lanes[(sum->position + i) % TM_SUM_LANES] += values[at + i];
    tm_sum_stream_skip(sum, n);
  }
}

static void take_sum(const reduction *r, const tm_element_stream *stream, const char *address, uint64_t count,
                     bool into_columns) {
  double values[TM_RUN];
  tm_stream_load(stream, address, count, values);
  if (!into_columns) add_run(&r->states[0].sum, values, count);
  for (uint64_t i = 0; i < count && into_columns; i++) tm_sum_stream_add(&r->states[i].sum, values[i]);
}

/* One superblock's sum is a single f64, which the exact accumulator would give back unchanged. */
static double finish(tm_sum_stream *sum) {
  return sum->position < TM_SUM_SUPERBLOCK ? tm_sum_of_lanes(sum->lanes) : tm_sum_stream_result(sum);
}

static void store_sum(const reduction *r, const tm_element_stream *y, char *address, uint64_t count) {
  double values[COLUMNS];
  for (uint64_t i = 0; i < count; i++) {
    values[i] = finish(&r->states[i].sum);
    if (r->operation->op == TM_OP_MEAN) values[i] /= (double)r->reduced_count;
  }
  tm_stream_store(y, values, count, address);
}

/* ---- sums of integers ---- */

static void take_integer_sum(const reduction *r, const tm_element_stream *stream, const char *address, uint64_t count,
                             bool into_columns) {
  int64_t values[TM_RUN];
  tm_stream_load_integer(stream, address, count, values);
  for (uint64_t i = 0; i < count; i++) r->states[into_columns ? i : 0].integer_sum += (uint64_t)values[i];
}

static void store_integer_sum(const reduction *r, const tm_element_stream *y, char *address, uint64_t count) {
  int64_t values[COLUMNS];
  for (uint64_t i = 0; i < count; i++) values[i] = (int64_t)r->states[i].integer_sum;
  tm_stream_store_integer(y, values, count, address);
}

/* ---- extremes ---- */

static int64_t bits_of(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Numbers in the order of their value, -0 below +0, any NaN above all. */
static int64_t key_of_float(double value) {
  const int64_t bits = bits_of(value);
  if (value != value) return INT64_MAX;
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

/* argmax takes -0 and +0 for equal. */
static int64_t key_for(uint32_t op, double value) {
  if (op == TM_OP_MIN) return value != value ? INT64_MAX : -key_of_float(value);
  return op == TM_OP_ARGMAX && value == 0 ? 0 : key_of_float(value);
}

/* Flipping the top bit makes the signed order that of unsigned numbers; flipping all bits reverses it. */
static int64_t integer_key_mask(const reduction *r) {
  const int64_t sign = tm_format_find(r->operation->operands[0].format)->kind == TM_KIND_UNSIGNED ? INT64_MIN : 0;
  return r->operation->op == TM_OP_MIN ? ~sign : sign;
}

static void take_best(extreme *best, int64_t key, int64_t bits) {
  if (best->index < 0 || key > best->key) {
    best->key = key;
    best->bits = bits;
    best->index = (int64_t)best->position;
  }
  best->position++;
}

static void take_extreme(const reduction *r, const tm_element_stream *stream, const char *address, uint64_t count,
                         bool into_columns) {
  const uint32_t op = r->operation->op;
  double values[TM_RUN];
  tm_stream_load(stream, address, count, values);
  for (uint64_t i = 0; i < count; i++)
    take_best(&r->states[into_columns ? i : 0].best, key_for(op, values[i]), bits_of(values[i]));
}

static void take_integer_extreme(const reduction *r, const tm_element_stream *stream, const char *address,
                                 uint64_t count, bool into_columns) {
  const int64_t mask = integer_key_mask(r);
  int64_t values[TM_RUN];
  tm_stream_load_integer(stream, address, count, values);
  for (uint64_t i = 0; i < count; i++) take_best(&r->states[into_columns ? i : 0].best, values[i] ^ mask, values[i]);
}

static void store_extreme(const reduction *r, const tm_element_stream *y, char *address, uint64_t count) {
  const int64_t nothing = bits_of(r->operation->op == TM_OP_MIN ? (double)INFINITY : -(double)INFINITY);
  double values[COLUMNS];
  for (uint64_t i = 0; i < count; i++) {
    const extreme *best = &r->states[i].best;
    memcpy(&values[i], best->index < 0 ? &nothing : &best->bits, sizeof values[i]);
  }
  tm_stream_store(y, values, count, address);
}

static void store_integer_extreme(const reduction *r, const tm_element_stream *y, char *address, uint64_t count) {
  int64_t values[COLUMNS];
  int64_t low = 0, high = 0;
  tm_integer_range(r->operation->operands[0].format, &low, &high);
  for (uint64_t i = 0; i < count; i++) {
    const extreme *best = &r->states[i].best;
    values[i] = best->index >= 0 ? best->bits : r->operation->op == TM_OP_MIN ? high : low;
  }
  tm_stream_store_integer(y, values, count, address);
}

static void store_index(const reduction *r, const tm_element_stream *y, char *address, uint64_t count) {
  int64_t values[COLUMNS];
  for (uint64_t i = 0; i < count; i++) values[i] = r->states[i].best.index;
  tm_stream_store_integer(y, values, count, address);
}

/* ---- the loop over outputs ---- */

/* A mean of integers takes them as f64. */
static const struct { uint32_t op; reduce_kernel floats; reduce_kernel integers; } kernels[] = {
  { TM_OP_SUM, { take_sum, store_sum }, { take_integer_sum, store_integer_sum } },
  { TM_OP_MEAN, { take_sum, store_sum }, { take_sum, store_sum } },
  { TM_OP_MIN, { take_extreme, store_extreme }, { take_integer_extreme, store_integer_extreme } },
  { TM_OP_MAX, { take_extreme, store_extreme }, { take_integer_extreme, store_integer_extreme } },
  { TM_OP_ARGMAX, { take_extreme, store_index }, { take_integer_extreme, store_index } },
};

static const reduce_kernel *kernel_of(const tm_operation *operation) {
  size_t i = 0;
  while (kernels[i].op != operation->op) i++;
  const bool is_float = tm_format_set(operation->operands[0].format) == TM_SET_FLOAT;
  return is_float ? &kernels[i].floats : &kernels[i].integers;
}

/* The words of a sum are by far its largest part and stay unused within one superblock. */
static void start(const reduction *r, uint64_t count) {
  const bool is_sum = r->operation->op == TM_OP_SUM || r->operation->op == TM_OP_MEAN;
  const size_t used = r->reduced_count < TM_SUM_SUPERBLOCK ? offsetof(tm_sum_stream, words) : sizeof(tm_sum_stream);
  for (uint64_t i = 0; i < count; i++) {
    if (is_sum) memset(&r->states[i], 0, used);
    else r->states[i].best = (extreme){ .index = -1 };
  }
}

/* All terms of the `count` outputs whose first one's terms begin at `address`. */
static void take_all(const reduction *r, tm_walk *terms, const tm_element_stream *columns, char *address, uint64_t count) {
  tm_walk_restart(terms, address);
  for (uint64_t left = r->reduced_count, n; left > 0; left -= n) {
    n = r->by_columns ? 1 : tm_walk_line(terms, tm_min_u64(left, TM_RUN));
    if (r->by_columns) r->kernel->take(r, columns, terms->addresses[0], count, true);
    else r->kernel->take(r, &terms->streams[0], terms->addresses[0], n, false);
    tm_walk_advance(terms, n);
  }
}

static void append_axis(tm_operand *operand, uint64_t extent, int64_t stride) {
  operand->dims[operand->rank] = extent;
  operand->strides_bytes[operand->rank] = stride;
  operand->rank++;
}

static uint32_t reduced_axes(const tm_operation *operation) {
  const tm_reduce_attributes *attributes = operation->attributes;
  return attributes->axes;
}

/* Sorts x's axes into kept and reduced ones, and finds y's axes of the kept ones. */
static reduction split_axes(const tm_operation *operation) {
  const tm_reduce_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  const tm_operand *y = tm_output_of(operation);
  reduction r = { .operation = operation, .kernel = kernel_of(operation), .reduced_count = 1 };
  r.kept.format = r.reduced.format = x->format;
  r.y.format = y->format;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (attributes->axes >> i & 1u) {
      append_axis(&r.reduced, x->dims[i], x->strides_bytes[i]);
      r.reduced_count *= x->dims[i];
    } else {
      const uint32_t y_axis = attributes->keep_dims ? i : r.kept.rank;
      append_axis(&r.y, x->dims[i], y->strides_bytes[y_axis]);
      append_axis(&r.kept, x->dims[i], x->strides_bytes[i]);
    }
  }
  r.by_columns = x->rank > 0 && (attributes->axes >> (x->rank - 1) & 1u) == 0;
  return r;
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  state states[COLUMNS];
  reduction r = split_axes(operation);
  r.states = states;
  const tm_operand views[2] = { r.kept, r.y };
  tm_walk walk = tm_walk_begin(&r.kept, views, pointers, 2, begin);
  tm_walk terms = tm_walk_begin(&r.reduced, &r.reduced, pointers, 1, 0);
  for (uint64_t left = end - begin, n; left > 0; left -= n) {
    n = tm_walk_line(&walk, tm_min_u64(left, r.by_columns ? COLUMNS : 1));
    start(&r, n);
    take_all(&r, &terms, &walk.streams[0], walk.addresses[0], n);
    r.kernel->store(&r, &walk.streams[1], walk.addresses[1], n);
    tm_walk_advance(&walk, n);
  }
}

/* ---- shapes ---- */

static bool is_one_bit(uint32_t mask) { return mask != 0 && (mask & (mask - 1)) == 0; }

static tm_status require_axes(const tm_operation *operation, tm_error *error) {
  const tm_reduce_attributes *attributes = operation->attributes;
  const uint32_t rank = operation->operands[0].rank;
  TM_TRY(tm_require_switch(operation, "keep_dims", attributes->keep_dims, error));
  if ((attributes->axes & ~tm_axis_mask(rank)) != 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: axes is 0x%x, expected bits below %u, the rank of x",
                   tm_op_name(operation), (unsigned)attributes->axes, (unsigned)rank);
  if (operation->op == TM_OP_ARGMAX && !is_one_bit(attributes->axes))
    return tm_fail(error, TM_ERROR_ARGUMENT, "argmax: axes is 0x%x, expected exactly one axis, which is one bit",
                   (unsigned)attributes->axes);
  return TM_OK;
}

/* The output's usual format and the ones it may have instead. */
static tm_status choose_output(const tm_operation *operation, tm_operand *out_output, tm_error *error) {
  const uint32_t format = operation->operands[0].format;
  const bool is_float = tm_format_set(format) == TM_SET_FLOAT;
  const bool is_unsigned = tm_format_find(format)->kind == TM_KIND_UNSIGNED;
  switch (operation->op) {
    case TM_OP_SUM:
      if (is_float) return tm_choose_format(operation, format, TM_SET_FLOAT, out_output, error);
      return tm_choose_format(operation, is_unsigned ? TM_FORMAT_U64 : TM_FORMAT_I64, TM_SET_INTEGER, out_output,
                              error);
    case TM_OP_MEAN:
      return tm_choose_format(operation, is_float ? format : TM_FORMAT_F64, TM_SET_FLOAT, out_output, error);
    case TM_OP_ARGMAX: return tm_choose_format(operation, TM_FORMAT_I64, TM_SET_INTEGER, out_output, error);
    default: return tm_choose_input_format(operation, 0, out_output, error);
  }
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_reduce_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  TM_TRY(require_axes(operation, error));
  TM_TRY(tm_require_format(operation, 0, TM_SET_NUMBER | TM_SET_BOOL, error));
  TM_TRY(choose_output(operation, out_outputs, error));
  if (operation->op == TM_OP_ARGMAX && out_outputs->format != TM_FORMAT_I64)
    return tm_fail(error, TM_ERROR_ARGUMENT, "argmax: y has format %s, expected i64",
                   tm_format_title(out_outputs->format));
  uint64_t dims[TM_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    const bool is_reduced = attributes->axes >> i & 1u;
    if (!is_reduced || attributes->keep_dims) dims[rank++] = is_reduced ? 1 : x->dims[i];
  }
  return tm_make_output(operation, rank, dims, out_outputs, error);
}

static void work(const tm_operation *operation, tm_work *out_work) {
  tm_work_of(operation, operation->operands[0].element_count, out_work);
}

static uint32_t splittable(const tm_operation *operation) {
  return tm_axis_mask(operation->operands[0].rank) & ~reduced_axes(operation);
}

static uint64_t units(const tm_operation *operation) { return tm_output_of(operation)->element_count; }

#define REDUCE_ROW(id, op_name, text, numerics, padding)                                                           \
  {                                                                                                                \
    .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_REDUCE, .input_min = 1, \
    .input_max = 1, .output_count = 1, .attribute_bytes = sizeof(tm_reduce_attributes),                            \
    .default_numerics = TM_NUMERICS_##numerics, .combine = TM_COMBINE_CONCATENATE, .infer = infer,                 \
    .check = tm_check_outputs, .work = work, .splittable = splittable, .units = units, .reference = reference,     \
    .input_names = {"x"}, .pad_value = padding,                                                                    \
  }

const tm_op_row tm_op_rows_reduce[] = {
    REDUCE_ROW(SUM, "sum",
               "sum over axes, floats in the canonical order; y: x's format or any float, of integers i64 or u64 or any integer", N2, 0.0),
    REDUCE_ROW(MEAN, "mean",
               "mean over axes, sums in the canonical order; y: x's format or any float, of integers f64 or any float", N2, (double)NAN),
    REDUCE_ROW(MIN, "min", "smallest element over axes; NaN wins", N0, (double)INFINITY),
    REDUCE_ROW(MAX, "max", "largest element over axes; NaN wins", N0, -(double)INFINITY),
    REDUCE_ROW(ARGMAX, "argmax", "index of the largest element along an axis; the first wins, NaN is the largest; y: i64", N0,
               -(double)INFINITY),
};
TM_OP_ROWS_COUNT(reduce);
