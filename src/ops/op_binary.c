/* SPDX-License-Identifier: Apache-2.0 */
/*
 * add, sub, mul, div, compare.  Floats: one f64 operation and one rounding, which for every narrower float is the
 * correctly rounded result (f64 has more than twice their digits).  Integers: 64-bit wrapping arithmetic, low bits
 * kept. A result that is NaN has no defined sign and payload.
 */
#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"

static bool is_unsigned(uint32_t format) {
  const tm_format_kind kind = tm_format_find(format)->kind;
  return kind == TM_KIND_UNSIGNED || kind == TM_KIND_BOOL;
}

/* ---- arithmetic ---- */

typedef struct binary_kernel {
  uint32_t op;
  void (*floats)(uint64_t count, const double *a, const double *b, double *out_y);
  void (*integers)(bool without_sign, uint64_t count, const int64_t *a, const int64_t *b, int64_t *out_y);
} binary_kernel;

#define BINARY_KERNEL(name, operator)                                                                                  \
  static void name##_floats(uint64_t count, const double *a, const double *b, double *out_y) {                        \
    for (uint64_t i = 0; i < count; i++) out_y[i] = a[i] operator b[i];                                                \
  }                                                                                                                    \
  static void name##_integers(bool without_sign, uint64_t count, const int64_t *a, const int64_t *b, int64_t *out_y) { \
    (void)without_sign;                                                                                                \
    for (uint64_t i = 0; i < count; i++) out_y[i] = (int64_t)((uint64_t)a[i] operator(uint64_t) b[i]);                 \
  }

BINARY_KERNEL(add, +)
BINARY_KERNEL(sub, -)
BINARY_KERNEL(mul, *)

static void div_floats(uint64_t count, const double *a, const double *b, double *out_y) {
  for (uint64_t i = 0; i < count; i++) out_y[i] = a[i] / b[i];
}

/* x / 0 is 0; negating instead of dividing by -1 makes MIN wrap. */
static int64_t divide(bool without_sign, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (without_sign) return (int64_t)((uint64_t)a / (uint64_t)b);
  return b == -1 ? (int64_t)(UINT64_C(0) - (uint64_t)a) : a / b;
}

static void div_integers(bool without_sign, uint64_t count, const int64_t *a, const int64_t *b, int64_t *out_y) {
  for (uint64_t i = 0; i < count; i++) out_y[i] = divide(without_sign, a[i], b[i]);
}

static const binary_kernel kernels[] = {
  { TM_OP_ADD, add_floats, add_integers },
  { TM_OP_SUB, sub_floats, sub_integers },
  { TM_OP_MUL, mul_floats, mul_integers },
  { TM_OP_DIV, div_floats, div_integers },
};

static void arithmetic_floats(const binary_kernel *kernel, tm_walk *walk, uint64_t count) {
  double a[TM_RUN], b[TM_RUN], y[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load(&walk->streams[0], walk->addresses[0], n, a);
    tm_stream_load(&walk->streams[1], walk->addresses[1], n, b);
    kernel->floats(n, a, b, y);
    tm_stream_store(&walk->streams[2], y, n, walk->addresses[2]);
    tm_walk_advance(walk, n);
  }
}

static void arithmetic_integers(const binary_kernel *kernel, bool without_sign, tm_walk *walk, uint64_t count) {
  int64_t a[TM_RUN], b[TM_RUN], y[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load_integer(&walk->streams[0], walk->addresses[0], n, a);
    tm_stream_load_integer(&walk->streams[1], walk->addresses[1], n, b);
    kernel->integers(without_sign, n, a, b, y);
    tm_stream_store_integer(&walk->streams[2], y, n, walk->addresses[2]);
    tm_walk_advance(walk, n);
  }
}

static void arithmetic_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const uint32_t format = operation->operands[0].format;
  const binary_kernel *kernel = kernels;
  while (kernel->op != operation->op) kernel++;
  tm_walk walk = tm_walk_begin(tm_output_of(operation), operation->operands, pointers, 3, begin);
  if (tm_format_set(format) == TM_SET_FLOAT) arithmetic_floats(kernel, &walk, end - begin);
  else arithmetic_integers(kernel, is_unsigned(format), &walk, end - begin);
}

static tm_status arithmetic_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  TM_TRY(tm_require_format(operation, 0, TM_SET_NUMBER, error));
  TM_TRY(tm_require_same_format(operation, 1, 0, error));
  TM_TRY(tm_choose_input_format(operation, 0, out_outputs, error));
  return tm_make_broadcast_output(operation, out_outputs, error);
}

/* ---- compare ---- */

#define IS_LESS      0x1u
#define IS_EQUAL     0x2u
#define IS_GREATER   0x4u
#define IS_UNORDERED 0x8u

/* Which relations of a to b make each predicate true. */
static const unsigned predicates[] = {
  [TM_COMPARE_EQUAL] = IS_EQUAL,
  [TM_COMPARE_NOT_EQUAL] = IS_LESS | IS_GREATER | IS_UNORDERED,
  [TM_COMPARE_LESS] = IS_LESS,
  [TM_COMPARE_LESS_EQUAL] = IS_LESS | IS_EQUAL,
  [TM_COMPARE_GREATER] = IS_GREATER,
  [TM_COMPARE_GREATER_EQUAL] = IS_GREATER | IS_EQUAL,
};
#define PREDICATE_COUNT (sizeof predicates / sizeof predicates[0])

static unsigned relate_floats(double a, double b) {
  return a < b ? IS_LESS : a > b ? IS_GREATER : a == b ? IS_EQUAL : IS_UNORDERED;
}

static unsigned relate_integers(bool without_sign, int64_t a, int64_t b) {
  if (a == b) return IS_EQUAL;
  return (without_sign ? (uint64_t)a < (uint64_t)b : a < b) ? IS_LESS : IS_GREATER;
}

static void compare_floats(unsigned wanted, tm_walk *walk, uint64_t count) {
  double a[TM_RUN], b[TM_RUN];
  int64_t y[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load(&walk->streams[0], walk->addresses[0], n, a);
    tm_stream_load(&walk->streams[1], walk->addresses[1], n, b);
    for (uint64_t i = 0; i < n; i++) y[i] = (relate_floats(a[i], b[i]) & wanted) != 0;
    tm_stream_store_integer(&walk->streams[2], y, n, walk->addresses[2]);
    tm_walk_advance(walk, n);
  }
}

static void compare_integers(unsigned wanted, bool without_sign, tm_walk *walk, uint64_t count) {
  int64_t a[TM_RUN], b[TM_RUN], y[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load_integer(&walk->streams[0], walk->addresses[0], n, a);
    tm_stream_load_integer(&walk->streams[1], walk->addresses[1], n, b);
    for (uint64_t i = 0; i < n; i++) y[i] = (relate_integers(without_sign, a[i], b[i]) & wanted) != 0;
    tm_stream_store_integer(&walk->streams[2], y, n, walk->addresses[2]);
    tm_walk_advance(walk, n);
  }
}

static void compare_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const tm_compare_attributes *attributes = operation->attributes;
  const uint32_t format = operation->operands[0].format;
  const unsigned wanted = predicates[attributes->predicate];
  tm_walk walk = tm_walk_begin(tm_output_of(operation), operation->operands, pointers, 3, begin);
  if (tm_format_set(format) == TM_SET_FLOAT) compare_floats(wanted, &walk, end - begin);
  else compare_integers(wanted, is_unsigned(format), &walk, end - begin);
}

static tm_status compare_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_compare_attributes *attributes = operation->attributes;
  TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  if (attributes->predicate >= PREDICATE_COUNT)
    return tm_fail(error, TM_ERROR_ARGUMENT, "compare: predicate is %u, expected less than %u",
                   (unsigned)attributes->predicate, (unsigned)PREDICATE_COUNT);
  TM_TRY(tm_require_format(operation, 0, TM_SET_NUMBER | TM_SET_BOOL, error));
  TM_TRY(tm_require_same_format(operation, 1, 0, error));
  TM_TRY(tm_choose_format(operation, TM_FORMAT_BOOL, TM_SET_BOOL, out_outputs, error));
  return tm_make_broadcast_output(operation, out_outputs, error);
}

/* ---- rows ---- */

#define BINARY_ROW(id, op_name, text, infer_fn, reference_fn, bytes)                                               \
  {                                                                                                                \
    .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_ELEMENTWISE,            \
    .input_min = 2, .input_max = 2, .output_count = 1, .attribute_bytes = bytes,                                   \
    .default_numerics = TM_NUMERICS_N0, .broadcasts = true, .combine = TM_COMBINE_CONCATENATE, .infer = infer_fn,  \
    .check = tm_check_outputs, .work = tm_work_elementwise, .splittable = tm_splittable_elementwise,               \
    .units = tm_units_elementwise, .reference = reference_fn, .input_names = { "a", "b" }, .merged_operands = 0x7, \
    .may_alias = 0x3,                                                                                              \
  }

const tm_op_row tm_op_rows_binary[] = {
  BINARY_ROW(ADD, "add", "a + b; integers wrap", arithmetic_infer, arithmetic_reference, 0),
  BINARY_ROW(SUB, "sub", "a - b; integers wrap", arithmetic_infer, arithmetic_reference, 0),
  BINARY_ROW(MUL, "mul", "a * b; integers wrap", arithmetic_infer, arithmetic_reference, 0),
  BINARY_ROW(DIV, "div", "a / b; integers truncate, x / 0 is 0", arithmetic_infer, arithmetic_reference, 0),
  BINARY_ROW(COMPARE, "compare", "whether a stands in a relation to b, as bool", compare_infer, compare_reference,
             sizeof(tm_compare_attributes)),
};
TM_OP_ROWS_COUNT(binary);
