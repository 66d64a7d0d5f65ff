/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clamp, where, lerp.  Where an operand is the result its bits are kept, NaN payloads included.  lerp is computed step
 * by step in f64, each step rounded there, then once to the format.
 */
#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"

/* ---- clamp and lerp: one format for all operands ---- */

static double clamp_float(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static double lerp_float(double a, double b, double t) {
  if (t == 0 || a == b) return a;
  if (t == 1) return b;
  return a + t * (b - a);
}

static void clamp_floats(uint64_t count, const double *x, const double *low, const double *high, double *out_y) {
  for (uint64_t i = 0; i < count; i++) out_y[i] = clamp_float(x[i], low[i], high[i]);
}

static void lerp_floats(uint64_t count, const double *a, const double *b, const double *t, double *out_y) {
  for (uint64_t i = 0; i < count; i++) out_y[i] = lerp_float(a[i], b[i], t[i]);
}

/* Flipping the top bit makes the signed order that of unsigned numbers. */
static void clamp_integers(int64_t flip, uint64_t count, const int64_t *x, const int64_t *low, const int64_t *high,
                           int64_t *out_y) {
  for (uint64_t i = 0; i < count; i++) {
    const bool is_below = (x[i] ^ flip) < (low[i] ^ flip);
    const bool is_above = (x[i] ^ flip) > (high[i] ^ flip);
    out_y[i] = is_below ? low[i] : is_above ? high[i] : x[i];
  }
}

static void run_floats(const tm_operation *operation, tm_walk *walk, uint64_t count) {
  double a[TM_RUN], b[TM_RUN], c[TM_RUN], y[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load(&walk->streams[0], walk->addresses[0], n, a);
    tm_stream_load(&walk->streams[1], walk->addresses[1], n, b);
    tm_stream_load(&walk->streams[2], walk->addresses[2], n, c);
    (operation->op == TM_OP_LERP ? lerp_floats : clamp_floats)(n, a, b, c, y);
    tm_stream_store(&walk->streams[3], y, n, walk->addresses[3]);
    tm_walk_advance(walk, n);
  }
}

static void run_integers(int64_t flip, tm_walk *walk, uint64_t count) {
  int64_t x[TM_RUN], low[TM_RUN], high[TM_RUN], y[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load_integer(&walk->streams[0], walk->addresses[0], n, x);
    tm_stream_load_integer(&walk->streams[1], walk->addresses[1], n, low);
    tm_stream_load_integer(&walk->streams[2], walk->addresses[2], n, high);
    clamp_integers(flip, n, x, low, high, y);
    tm_stream_store_integer(&walk->streams[3], y, n, walk->addresses[3]);
    tm_walk_advance(walk, n);
  }
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const tm_format_info *info = tm_format_find(operation->operands[0].format);
  tm_walk walk = tm_walk_begin(tm_output_of(operation), operation->operands, pointers, 4, begin);
  if (info->kind == TM_KIND_FLOAT) run_floats(operation, &walk, end - begin);
  else run_integers(info->kind == TM_KIND_UNSIGNED ? INT64_MIN : 0, &walk, end - begin);
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  TM_TRY(tm_require_format(operation, 0, operation->op == TM_OP_LERP ? TM_SET_FLOAT : TM_SET_NUMBER, error));
  TM_TRY(tm_require_same_format(operation, 1, 0, error));
  TM_TRY(tm_require_same_format(operation, 2, 0, error));
  TM_TRY(tm_choose_input_format(operation, 0, out_outputs, error));
  return tm_make_broadcast_output(operation, out_outputs, error);
}

/* ---- where ---- */

/* Elements from `from` on that have the same condition. */
static uint64_t stretch(const int64_t *condition, uint64_t from, uint64_t count) {
  uint64_t end = from + 1;
  while (end < count && condition[end] == condition[from]) end++;
  return end - from;
}

static void where_line(const tm_walk *walk, const int64_t *condition, uint64_t count) {
  const tm_element_stream *y = &walk->streams[3];
  for (uint64_t i = 0, n; i < count; i += n) {
    n = stretch(condition, i, count);
    const uint32_t chosen = condition[i] != 0 ? 1 : 2;
    const tm_element_stream *from = &walk->streams[chosen];
    tm_stream_move(from, walk->addresses[chosen] + (int64_t)i * from->step_bytes, y,
                   walk->addresses[3] + (int64_t)i * y->step_bytes, n);
  }
}

static void where_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  int64_t condition[TM_RUN];
  tm_walk walk = tm_walk_begin(tm_output_of(operation), operation->operands, pointers, 4, begin);
  for (uint64_t left = end - begin, n; left > 0; left -= n) {
    n = tm_walk_line(&walk, tm_min_u64(left, TM_RUN));
    tm_stream_load_integer(&walk.streams[0], walk.addresses[0], n, condition);
    where_line(&walk, condition, n);
    tm_walk_advance(&walk, n);
  }
}

static tm_status where_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  TM_TRY(tm_require_format(operation, 0, TM_SET_BOOL, error));
  TM_TRY(tm_require_format(operation, 1, TM_SET_PLAIN, error));
  TM_TRY(tm_require_same_format(operation, 2, 1, error));
  TM_TRY(tm_choose_input_format(operation, 1, out_outputs, error));
  return tm_make_broadcast_output(operation, out_outputs, error);
}

#define TERNARY_ROW(id, op_name, text, infer_fn, reference_fn, ...)                                               \
  {                                                                                                               \
    .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_ELEMENTWISE,           \
    .input_min = 3, .input_max = 3, .output_count = 1, .default_numerics = TM_NUMERICS_N0, .broadcasts = true,    \
    .combine = TM_COMBINE_CONCATENATE, .infer = infer_fn, .check = tm_check_outputs, .work = tm_work_elementwise, \
    .splittable = tm_splittable_elementwise, .units = tm_units_elementwise, .reference = reference_fn,            \
    .input_names = { __VA_ARGS__ }, .merged_operands = 0xf, .may_alias = 0x7,                                     \
  }

const tm_op_row tm_op_rows_ternary[] = {
  TERNARY_ROW(CLAMP, "clamp", "x < low ? low : x > high ? high : x", infer, reference, "x", "low", "high"),
  TERNARY_ROW(WHERE, "where", "condition ? a : b", where_infer, where_reference, "condition", "a", "b"),
  TERNARY_ROW(LERP, "lerp", "a + t * (b - a)", infer, reference, "a", "b", "t"),
};
TM_OP_ROWS_COUNT(ternary);
