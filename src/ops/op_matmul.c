/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul, matmul_scaled.  A unit is a row of y; rows are numbered through all batches.  Sums run over k ascending in
 * f64 and are rounded once; i8 by i8 sums exactly and wraps in i32.
 */
#include "base/checked.h"
#include "base/error.h"
#include "ops/matmul_rows.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define A 0u
#define B 1u
#define A_SCALE 2u
#define B_SCALE 3u
#define A_ZERO 4u
#define B_ZERO 5u

/* Both attribute structs, as far as they agree. */
typedef struct transposes {
  bool a;
  bool b;
} transposes;

static transposes transposes_of(const tm_operation *operation) {
  if (operation->op == TM_OP_MATMUL) {
    const tm_matmul_attributes *attributes = operation->attributes;
    return (transposes){ attributes->transpose_a != 0, attributes->transpose_b != 0 };
  }
  const tm_matmul_scaled_attributes *attributes = operation->attributes;
  return (transposes){ attributes->transpose_a != 0, attributes->transpose_b != 0 };
}

/* The axis of K and the other one (M of a, N of b). */
typedef struct factor_axes {
  uint32_t k;
  uint32_t outer;
} factor_axes;

static factor_axes axes_of(const tm_operation *operation, uint32_t input) {
  const transposes transposed = transposes_of(operation);
  const uint32_t last = operation->operands[input].rank - 1;
  const bool k_is_last = input == A ? !transposed.a : transposed.b;
  return k_is_last ? (factor_axes){ last, last - 1 } : (factor_axes){ last - 1, last };
}

/* ---- shapes ---- */

static tm_status require_matrix(const tm_operation *operation, uint32_t input, tm_error *error) {
  const tm_operand *x = &operation->operands[input];
  const char *name = input == A ? "a" : "b";
  if (x->rank < 2)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s has rank %u, expected at least 2", tm_op_name(operation), name,
                   (unsigned)x->rank);
  if (tm_format_find(x->format)->block_elements > 1 && axes_of(operation, input).k != x->rank - 1)
    return tm_fail(error, TM_ERROR_ARGUMENT,
                   "%s: %s has format %s, so K must be its last axis; expected transpose_%s = %d",
                   tm_op_name(operation), name, tm_format_title(x->format), name, input == A ? 0 : 1);
  return TM_OK;
}

static tm_status require_equal_inner(const tm_operation *operation, tm_error *error) {
  const tm_operand *a = &operation->operands[A];
  const tm_operand *b = &operation->operands[B];
  const uint32_t a_axis = axes_of(operation, A).k;
  const uint32_t b_axis = axes_of(operation, B).k;
  if (a->dims[a_axis] == b->dims[b_axis]) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: K is %llu in a (axis %u) and %llu in b (axis %u), expected the same",
                 tm_op_name(operation), (unsigned long long)a->dims[a_axis], (unsigned)a_axis,
                 (unsigned long long)b->dims[b_axis], (unsigned)b_axis);
}

/* Batch axes broadcast; M and N follow. */
static tm_status make_product_output(const tm_operation *operation, tm_operand *out_output, tm_error *error) {
  TM_TRY(require_matrix(operation, A, error));
  TM_TRY(require_matrix(operation, B, error));
  TM_TRY(require_equal_inner(operation, error));
  tm_operand batches[2] = { operation->operands[A], operation->operands[B] };
  batches[A].rank -= 2;
  batches[B].rank -= 2;
  uint32_t rank;
  uint64_t dims[TM_MAX_RANK];
  if (!tm_broadcast_dims(batches, 2, &rank, dims)) {
    char a[96], b[96];
    tm_format_dims(&batches[A], a, sizeof a);
    tm_format_dims(&batches[B], b, sizeof b);
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: batch axes %s of a and %s of b do not broadcast",
                   tm_op_name(operation), a, b);
  }
  dims[rank] = operation->operands[A].dims[axes_of(operation, A).outer];
  dims[rank + 1] = operation->operands[B].dims[axes_of(operation, B).outer];
  return tm_make_output(operation, rank + 2, dims, out_output, error);
}

static bool is_integer_product(const tm_operation *operation) {
  return operation->op == TM_OP_MATMUL && operation->operands[A].format == TM_FORMAT_I8;
}

static tm_status infer_integer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  TM_TRY(tm_require_same_format(operation, B, A, error));
  TM_TRY(tm_choose_format(operation, TM_FORMAT_I32, TM_SET_INTEGER, out_outputs, error));
  if (out_outputs->format != TM_FORMAT_I32)
    return tm_fail(error, TM_ERROR_ARGUMENT, "matmul: y has format %s, expected i32",
                   tm_format_title(out_outputs->format));
  return make_product_output(operation, out_outputs, error);
}

static bool is_f8(uint32_t format) { return format == TM_FORMAT_F8_E4M3FN || format == TM_FORMAT_F8_E5M2; }

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_matmul_attributes *attributes = operation->attributes;
  TM_TRY(tm_require_switch(operation, "transpose_a", attributes->transpose_a, error));
  TM_TRY(tm_require_switch(operation, "transpose_b", attributes->transpose_b, error));
  if (is_integer_product(operation)) return infer_integer(operation, out_outputs, error);
  TM_TRY(tm_require_format(operation, A, TM_SET_FLOAT, error));
  TM_TRY(tm_require_format(operation, B, TM_SET_FLOAT | TM_SET_ANY_BLOCK, error));
  const uint32_t a_format = operation->operands[A].format;
  TM_TRY(tm_choose_format(operation, is_f8(a_format) ? TM_FORMAT_F32 : a_format, TM_SET_FLOAT, out_outputs, error));
  return make_product_output(operation, out_outputs, error);
}

/* A scale is 0-d, or each of its extents divides the factor's. */
static tm_status require_scale(const tm_operation *operation, uint32_t scale_input, uint32_t factor_input,
                               tm_error *error) {
  const tm_operand *scale = &operation->operands[scale_input];
  const tm_operand *factor = &operation->operands[factor_input];
  bool fits = scale->rank == 0 || scale->rank == factor->rank;
  for (uint32_t i = 0; i < scale->rank && fits; i++)
    fits = scale->dims[i] != 0 && factor->dims[i] % scale->dims[i] == 0;
  if (fits) return TM_OK;
  char found[96], expected[96], name[16], factor_name[16];
  tm_format_dims(scale, found, sizeof found);
  tm_format_dims(factor, expected, sizeof expected);
  return tm_fail(error, TM_ERROR_ARGUMENT,
                 "%s: %s has shape %s, expected [] or extents that divide %s, the shape of %s", tm_op_name(operation),
                 tm_input_name(operation, scale_input, name), found, expected,
                 tm_input_name(operation, factor_input, factor_name));
}

static tm_status require_input_format(const tm_operation *operation, uint32_t input, uint32_t format, tm_error *error) {
  if (operation->operands[input].format == format) return TM_OK;
  char name[16];
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s has format %s, expected %s", tm_op_name(operation),
                 tm_input_name(operation, input, name), tm_format_title(operation->operands[input].format),
                 tm_format_title(format));
}

static tm_status require_zero_points(const tm_operation *operation, tm_error *error) {
  for (uint32_t input = A_ZERO; input <= B_ZERO; input++) {
    const tm_operand *scale = &operation->operands[input - A_ZERO + A_SCALE];
    TM_TRY(require_input_format(operation, input, TM_FORMAT_I32, error));
    TM_TRY(tm_require_dims(operation, input, scale->rank, scale->dims, error));
  }
  return TM_OK;
}

static tm_status scaled_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_matmul_scaled_attributes *attributes = operation->attributes;
  TM_TRY(tm_require_switch(operation, "transpose_a", attributes->transpose_a, error));
  TM_TRY(tm_require_switch(operation, "transpose_b", attributes->transpose_b, error));
  TM_TRY(tm_require_switch(operation, "zero_points", attributes->zero_points, error));
  TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  const uint32_t expected = attributes->zero_points ? 6 : 4;
  if (operation->input_count != expected)
    return tm_fail(error, TM_ERROR_ARGUMENT, "matmul_scaled: %u inputs, expected %u with zero_points = %u",
                   (unsigned)operation->input_count, (unsigned)expected, (unsigned)attributes->zero_points);
  for (uint32_t input = A; input <= B; input++) {
    TM_TRY(tm_require_format(operation, input, TM_SET_NUMBER | TM_SET_INTEGER_4, error));
    TM_TRY(require_input_format(operation, input + A_SCALE, TM_FORMAT_F32, error));
    TM_TRY(require_scale(operation, input + A_SCALE, input, error));
  }
  if (attributes->zero_points) TM_TRY(require_zero_points(operation, error));
  TM_TRY(tm_choose_format(operation, TM_FORMAT_F32, TM_SET_FLOAT, out_outputs, error));
  return make_product_output(operation, out_outputs, error);
}

/* ---- size ---- */

static uint64_t units(const tm_operation *operation) {
  const tm_operand *y = tm_output_of(operation);
  return y->element_count == 0 ? 0 : y->element_count / y->dims[y->rank - 1];
}

static void work(const tm_operation *operation, tm_work *out_work) {
  const uint64_t inner = operation->operands[A].dims[axes_of(operation, A).k];
  const uint64_t terms = tm_saturating_mul(tm_output_of(operation)->element_count, inner);
  tm_work_of(operation, tm_saturating_mul(terms, 2), out_work);
}

/* Batch axes that a really has, and M. */
static uint32_t splittable(const tm_operation *operation) {
  const tm_operand *a = &operation->operands[A];
  const tm_operand *y = tm_output_of(operation);
  uint32_t mask = 1u << axes_of(operation, A).outer;
  for (uint32_t i = 0; i + 2 < a->rank && a->rank == y->rank; i++)
    if (a->dims[i] == y->dims[i]) mask |= 1u << i;
  return mask;
}

/* Gives `operand` y's batch axes; its last two stay. */
static void expand_batch(const tm_operand *y, tm_operand *operand) {
  uint64_t dims[TM_MAX_RANK];
  for (uint32_t i = 0; i + 2 < y->rank; i++) dims[i] = y->dims[i];
  dims[y->rank - 2] = operand->dims[operand->rank - 2];
  dims[y->rank - 1] = operand->dims[operand->rank - 1];
  tm_operand_broadcast(operand, y->rank, dims, operand);
}

/* Gives a scale the rank of its factor; new axes have extent 1, which means the same as having none. */
static void expand_scale(uint32_t rank, tm_operand *scale) {
  uint64_t dims[TM_MAX_RANK];
  if (scale->rank == 0) return;
  const uint32_t added = rank - scale->rank;
  for (uint32_t i = 0; i < rank; i++) dims[i] = i < added ? 1 : scale->dims[i - added];
  tm_operand_broadcast(scale, rank, dims, scale);
}

static void expand(const tm_operation *operation, tm_operand *operands) {
  const tm_operand *y = tm_output_of(operation);
  expand_batch(y, &operands[A]);
  expand_batch(y, &operands[B]);
  for (uint32_t i = A_SCALE; i < operation->input_count; i++) expand_scale(y->rank, &operands[i]);
}

/* ---- the reference ---- */

/* Index of a batch on axis `axis` of an operand that may lack y's outer axes or repeat along them. */
static uint64_t batch_index(const tm_operand *y, uint64_t batch, uint32_t rank, const tm_operand *operand,
                            uint32_t axis) {
  const uint32_t y_axis = axis + y->rank - rank;
  for (uint32_t i = y->rank - 3; i > y_axis; i--) batch /= y->dims[i];
  return operand->dims[axis] == 1 ? 0 : batch % y->dims[y_axis];
}

static const char *batch_address(const tm_operand *y, uint64_t batch, const tm_operand *operand, const void *pointer) {
  const char *address = pointer;
  for (uint32_t axis = 0; axis + 2 < operand->rank; axis++)
    address += (int64_t)batch_index(y, batch, operand->rank, operand, axis) * operand->strides_bytes[axis];
  return address;
}

/* Elements of the factor that share an entry of its scale on an axis. */
static uint64_t group_of(const tm_operand *factor, const tm_operand *scale, uint32_t axis) {
  return scale->rank == 0 ? tm_max_u64(factor->dims[axis], 1) : tm_max_u64(factor->dims[axis] / scale->dims[axis], 1);
}

static const char *scale_address(const tm_operand *y, uint64_t batch, const tm_operand *factor, const tm_operand *scale,
                                 const void *pointer) {
  const char *address = pointer;
  for (uint32_t axis = 0; axis + 2 < scale->rank; axis++) {
    const uint64_t index = batch_index(y, batch, factor->rank, factor, axis) / group_of(factor, scale, axis);
    address += (int64_t)index * scale->strides_bytes[axis];
  }
  return address;
}

static tm_factor_scale scale_of(const tm_operation *operation, void *const *pointers, uint32_t input, uint64_t batch) {
  const tm_operand *factor = &operation->operands[input];
  const tm_operand *scale = &operation->operands[input + A_SCALE];
  const tm_operand *zero = &operation->operands[input + A_ZERO];
  const factor_axes axes = axes_of(operation, input);
  tm_factor_scale result = {.outer_group = group_of(factor, scale, axes.outer),
                            .k_group = group_of(factor, scale, axes.k)};
  result.scale = scale_address(tm_output_of(operation), batch, factor, scale, pointers[input + A_SCALE]);
  if (scale->rank != 0) {
    result.scale_steps_bytes[0] = scale->strides_bytes[axes.outer];
    result.scale_steps_bytes[1] = scale->strides_bytes[axes.k];
  }
  if (operation->input_count <= A_ZERO) return result;
  result.zero = scale_address(tm_output_of(operation), batch, factor, zero, pointers[input + A_ZERO]);
  if (zero->rank != 0) {
    result.zero_steps_bytes[0] = zero->strides_bytes[axes.outer];
    result.zero_steps_bytes[1] = zero->strides_bytes[axes.k];
  }
  return result;
}

static tm_factor factor_of(const tm_operation *operation, void *const *pointers, uint32_t input, uint64_t batch) {
  const tm_operand *x = &operation->operands[input];
  const factor_axes axes = axes_of(operation, input);
  tm_factor factor = { .along_k = tm_stream_along(x, axes.k), .along_outer = tm_stream_along(x, axes.outer) };
  factor.address = batch_address(tm_output_of(operation), batch, x, pointers[input]);
  if (operation->op == TM_OP_MATMUL_SCALED) factor.scale = scale_of(operation, pointers, input, batch);
  return factor;
}

static tm_matrix_product product_of(const tm_operation *operation, void *const *pointers, uint64_t batch) {
  const tm_operand *y = tm_output_of(operation);
  tm_matrix_product product = { .inner_count = operation->operands[A].dims[axes_of(operation, A).k],
                                .column_count = y->dims[y->rank - 1],
                                .y = tm_stream_along(y, y->rank - 1),
                                .y_row_step_bytes = y->strides_bytes[y->rank - 2],
                                .is_integer = is_integer_product(operation) };
  product.a = factor_of(operation, pointers, A, batch);
  product.b = factor_of(operation, pointers, B, batch);
  const char *first = pointers[operation->input_count];
  const int64_t offset = batch_address(y, batch, y, first) - first;
  product.y_address = (char *)pointers[operation->input_count] + offset;
  return product;
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const tm_operand *y = tm_output_of(operation);
  const uint64_t rows = y->dims[y->rank - 2];
  for (uint64_t row = begin; row < end;) {
    const uint64_t batch = row / rows;
    const uint64_t batch_end = tm_min_u64(end, (batch + 1) * rows);
    const tm_matrix_product product = product_of(operation, pointers, batch);
    tm_matmul_rows(&product, row - batch * rows, batch_end - batch * rows);
    row = batch_end;
  }
}

#define MATMUL_ROW(id, op_name, text, least, most, infer_fn, attributes_type, ...)                                     \
  {                                                                                                                    \
    .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_MATMUL, .input_min = least, \
    .input_max = most, .output_count = 1, .attribute_bytes = sizeof(attributes_type),                                  \
    .default_numerics = TM_NUMERICS_N2, .broadcasts = true, .combine = TM_COMBINE_CONCATENATE, .infer = infer_fn,      \
    .check = tm_check_outputs, .work = work, .splittable = splittable, .units = units, .reference = reference,         \
    .input_names = { __VA_ARGS__ }, .expand = expand,                                                                  \
  }

const tm_op_row tm_op_rows_matmul[] = {
    MATMUL_ROW(MATMUL, "matmul",
               "matrix product over the last two axes; y: a's format, of f8 f32, or any float; of i8 by i8 i32", 2, 2, infer,
               tm_matmul_attributes, "a", "b"),
    MATMUL_ROW(MATMUL_SCALED, "matmul_scaled",
               "matrix product of scaled numbers with optional zero points; y: f32 or any float", 4, 6,
               scaled_infer, tm_matmul_scaled_attributes, "a", "b", "a_scale", "b_scale", "a_zero", "b_zero"),
};
TM_OP_ROWS_COUNT(matmul);
