/* SPDX-License-Identifier: Apache-2.0 */
/* copy, transpose, fill, convert: bits are kept, so every known format will do. */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"

static void copy_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const uint64_t unit = tm_unit_elements(operation);
  tm_walk walk = tm_walk_begin(tm_output_of(operation), operation->operands, pointers, 2, begin * unit);
  tm_walk_copy(&walk, (end - begin) * unit);
}

static tm_status copy_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_operand *x = &operation->operands[0];
  TM_TRY(tm_require_format(operation, 0, TM_SET_ALL, error));
  TM_TRY(tm_choose_input_format(operation, 0, out_outputs, error));
  return tm_make_output(operation, x->rank, x->dims, out_outputs, error);
}

/* ---- transpose ---- */

static tm_status require_permutation(const tm_operation *operation, tm_error *error) {
  const tm_transpose_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  uint32_t seen = 0;
  for (uint32_t i = 0; i < TM_MAX_RANK; i++) {
    const uint32_t axis = attributes->permutation[i];
    const bool is_wrong = i < x->rank ? axis >= x->rank || (seen >> axis & 1u) != 0 : axis != 0;
    if (is_wrong)
      return tm_fail(error, TM_ERROR_ARGUMENT,
                     "transpose: permutation[%u] is %u, expected each axis of rank %u once, then zeros", (unsigned)i,
                     (unsigned)axis, (unsigned)x->rank);
    seen |= 1u << axis;
  }
  return TM_OK;
}

static tm_status transpose_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_transpose_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  TM_TRY(tm_require_format(operation, 0, TM_SET_ALL, error));
  TM_TRY(require_permutation(operation, error));
  if (tm_format_find(x->format)->block_elements > 1 && attributes->permutation[x->rank - 1] != x->rank - 1)
    return tm_fail(error, TM_ERROR_ARGUMENT,
                   "transpose: x has format %s, so its last axis must stay; expected permutation[%u] = %u",
                   tm_format_title(x->format), (unsigned)(x->rank - 1), (unsigned)(x->rank - 1));
  uint64_t dims[TM_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) dims[i] = x->dims[attributes->permutation[i]];
  TM_TRY(tm_choose_input_format(operation, 0, out_outputs, error));
  return tm_make_output(operation, x->rank, dims, out_outputs, error);
}

static void transpose_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const tm_transpose_attributes *attributes = operation->attributes;
  const uint64_t unit = tm_unit_elements(operation);
  tm_operand views[2] = { operation->operands[0], operation->operands[1] };
  for (uint32_t i = 0; i < views[0].rank; i++) {
    const uint32_t axis = attributes->permutation[i];
    views[0].dims[i] = operation->operands[0].dims[axis];
    views[0].strides_bytes[i] = operation->operands[0].strides_bytes[axis];
  }
  tm_walk walk = tm_walk_begin(&views[1], views, pointers, 2, begin * unit);
  tm_walk_copy(&walk, (end - begin) * unit);
}

/* ---- fill ---- */

/* The shape cannot come from the inputs: it is what the caller put into the output. */
static tm_status fill_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  TM_TRY(tm_require_format(operation, 0, TM_SET_PLAIN, error));
  TM_TRY(tm_require_dims(operation, 0, 0, NULL, error));
  TM_TRY(tm_choose_input_format(operation, 0, out_outputs, error));
  return tm_make_output(operation, out_outputs->rank, out_outputs->dims, out_outputs, error);
}

/* ---- convert ---- */

static tm_status convert_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_operand *x = &operation->operands[0];
  const bool from_private = x->format >= TM_FORMAT_PRIVATE;
  const bool to_private = out_outputs->format >= TM_FORMAT_PRIVATE;
  if (from_private == to_private)
    return tm_fail(
        error, TM_ERROR_ARGUMENT,
        "convert: from %s to %s, expected one public format and one private to a backend, which alone can do it; "
        "use cast, quantize or dequantize between public ones",
        tm_format_title(x->format), tm_format_title(out_outputs->format));
  if (from_private) return tm_make_output(operation, x->rank, x->dims, out_outputs, error);
  TM_TRY(tm_require_format(operation, 0, TM_SET_ALL, error));
  tm_operand y = { .format = out_outputs->format, .rank = x->rank, .element_count = x->element_count, .alignment = 1 };
  memcpy(y.dims, x->dims, sizeof y.dims);
  *out_outputs = y;
  return TM_OK;
}

static uint64_t no_units(const tm_operation *operation) {
  (void)operation;
  return 0;
}

static uint32_t splittable_axes(const tm_operation *operation) { return tm_axis_mask(operation->operands[0].rank); }

#define MOVE_ROW(id, op_name, text, infer_fn, bytes)                                                                 \
  .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_MOVE, .input_min = 1,       \
  .input_max = 1, .output_count = 1, .attribute_bytes = bytes, .default_numerics = TM_NUMERICS_N0, .infer = infer_fn, \
  .check = tm_check_outputs, .work = tm_work_elementwise

const tm_op_row tm_op_rows_move[] = {
    {MOVE_ROW(COPY, "copy", "the same bits in another place or with other strides", copy_infer, 0),
     .combine = TM_COMBINE_CONCATENATE, .splittable = tm_splittable_elementwise, .units = tm_units_elementwise,
     .reference = copy_reference, .input_names = {"x"}, .merged_operands = 0x3},
    {MOVE_ROW(TRANSPOSE, "transpose", "axes in another order", transpose_infer, sizeof(tm_transpose_attributes)),
     .combine = TM_COMBINE_CONCATENATE, .splittable = splittable_axes, .units = tm_units_elementwise,
     .reference = transpose_reference, .input_names = {"x"}},
    {MOVE_ROW(FILL, "fill", "one value everywhere; the caller gives the shape of y", fill_infer, 0),
     .combine = TM_COMBINE_CONCATENATE, .splittable = tm_splittable_none, .units = tm_units_elementwise,
     .reference = copy_reference, .input_names = {"value"}, .merged_operands = 0x2},
    {MOVE_ROW(CONVERT, "convert", "to or from a backend's private format; only that backend can do it", convert_infer,
              0),
     .combine = TM_COMBINE_NONE, .splittable = tm_splittable_none, .units = no_units, .input_names = {"x"}},
};
TM_OP_ROWS_COUNT(move);
