/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/shared_axes.h"

#include <string.h>

/* Fills the axes that belong to axis `axis` of input 0 or, with `from_output`, of the output. */
typedef bool (*share_fn)(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared);

static const tm_operand *output_of(const tm_operation *operation) { return &operation->operands[operation->input_count]; }

/* ---- one axis number for all ---- */

static bool share_elementwise(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const tm_op_row *row = tm_op_find(operation->op);
  if ((row->merged_operands >> operand & 1u) == 0) return false;
  if (row->combine == TM_COMBINE_NONE) shared->role = TM_AXIS_COUPLED;  /* elements are numbered across all axes */
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++)
    if ((row->merged_operands >> i & 1u) != 0) shared->axes[i] = (int32_t)axis;
  return true;
}

static bool share_transpose(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const tm_transpose_attributes *attributes = operation->attributes;
  for (uint32_t i = 0; i < operation->operands[0].rank; i++) {
    if ((operand == 0 ? attributes->permutation[i] : i) != axis) continue;
    shared->axes[0] = attributes->permutation[i];
    shared->axes[1] = (int32_t)i;
    return true;
  }
  return false;
}

/* ---- along one axis ---- */

static bool share_gather(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const tm_axis_attributes *attributes = operation->attributes;
  const uint32_t at = attributes->axis, added = operation->operands[1].rank;
  if (operand == 0 && axis == at) {
    shared->role = TM_AXIS_COUPLED;
    shared->axes[0] = (int32_t)axis;
    return true;
  }
  if (operand == 0) axis = axis < at ? axis : axis + added - 1;
  if (operand == 1) axis += at;
  shared->axes[2] = (int32_t)axis;
  if (axis >= at && axis < at + added) shared->axes[1] = (int32_t)(axis - at);
  else shared->axes[0] = (int32_t)(axis < at ? axis : axis - added + 1);
  return true;
}

static bool share_softmax(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const tm_axis_attributes *attributes = operation->attributes;
  (void)operand;
  if (axis == attributes->axis) shared->role = TM_AXIS_COUPLED;
  shared->axes[0] = shared->axes[1] = (int32_t)axis;
  return true;
}

/* x, the parameters of the last axis, y. */
static bool share_norm(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const uint32_t last = operation->operands[0].rank - 1, y = operation->input_count;
  const bool is_parameter = operand != 0 && operand != y;
  if (is_parameter) axis = last;
  shared->axes[0] = shared->axes[y] = (int32_t)axis;
  if (axis != last) return true;
  shared->role = TM_AXIS_COUPLED;
  for (uint32_t i = 1; i < y; i++) shared->axes[i] = 0;
  return true;
}

static bool share_reduce(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const tm_reduce_attributes *attributes = operation->attributes;
  uint32_t y_axis = 0;
  for (uint32_t i = 0; i < operation->operands[0].rank; i++) {
    const bool is_reduced = (attributes->axes >> i & 1u) != 0;
    const bool is_meant = operand == 0 ? i == axis : !is_reduced && y_axis == axis;
    if (is_meant) {
      shared->axes[0] = (int32_t)i;
      if (!is_reduced) shared->axes[1] = (int32_t)y_axis;
      else shared->role = operation->op == TM_OP_SUM ? TM_AXIS_SUMMED : TM_AXIS_COUPLED;
      return true;
    }
    if (!is_reduced || attributes->keep_dims != 0) y_axis++;
  }
  return false;
}

/* Figures over all elements: parts combine, but not along an axis of the output. */
static bool share_one_pass(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  if (operand >= operation->input_count) return false;
  shared->role = TM_AXIS_COUPLED;
  for (uint32_t i = 0; i < operation->input_count; i++) shared->axes[i] = (int32_t)axis;
  return true;
}

/* ---- products ---- */

/* Scales (and zero points) go along where there is one an element, and do not matter where there is one for all. */
static bool share_scales(const tm_operation *operation, tm_shared_axes *shared) {
  for (uint32_t i = 2; i < operation->input_count; i++) {
    const tm_operand *scale = &operation->operands[i], *factor = &operation->operands[i % 2];
    const int32_t axis = shared->axes[i % 2];
    if (axis == TM_NO_AXIS || scale->rank == 0 || scale->dims[axis] == 1) continue;
    if (scale->dims[axis] != factor->dims[axis]) return false;
    shared->axes[i] = axis;
  }
  return true;
}

static bool share_matmul(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const tm_matmul_attributes *attributes = operation->attributes;       /* both structs begin alike */
  const uint32_t rank = output_of(operation)->rank, y = operation->input_count;
  if (operand != 0 && operand != 1 && operand != y) return false;
  if (axis + 2 < rank) {
    shared->axes[0] = shared->axes[1] = shared->axes[y] = (int32_t)axis;
    return operation->operands[0].rank == rank && operation->operands[1].rank == rank && share_scales(operation, shared);
  }
  const int32_t a_k = (int32_t)(rank - (attributes->transpose_a != 0 ? 2u : 1u));
  const int32_t b_k = (int32_t)(rank - (attributes->transpose_b != 0 ? 1u : 2u));
  const int32_t last_two = (int32_t)(2 * rank - 3), at = (int32_t)axis;
  if ((operand == 0 && at == a_k) || (operand == 1 && at == b_k)) {
    shared->role = TM_AXIS_SUMMED;
    shared->axes[0] = a_k;
    shared->axes[1] = b_k;
  } else if (operand == 0 || (operand == y && axis + 2 == rank)) {
    shared->axes[0] = last_two - a_k;
    shared->axes[y] = (int32_t)rank - 2;
  } else {
    shared->axes[1] = last_two - b_k;
    shared->axes[y] = (int32_t)rank - 1;
  }
  return share_scales(operation, shared);
}

/* ---- over tokens ---- */

/* Positions go with the tokens; the elements of a head turn together. */
static bool share_rope(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const uint32_t rank = operation->operands[0].rank, tokens = rank - 3;
  if (operand == 1) axis = tokens;
  if (axis + 1 == rank) shared->role = TM_AXIS_COUPLED;
  shared->axes[0] = shared->axes[2] = (int32_t)axis;
  if (axis == tokens) shared->axes[1] = 0;
  return true;
}

static bool share_update(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const tm_axis_attributes *attributes = operation->attributes;
  if (operand == 2 || axis == attributes->axis) return false;
  shared->axes[0] = shared->axes[1] = shared->axes[3] = (int32_t)axis;
  return true;
}

/* Batches, and tokens that all see the same keys; a mask goes along where it has the axis. */
static bool share_attention(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *shared) {
  const tm_attention_attributes *attributes = operation->attributes;
  const uint32_t rank = operation->operands[0].rank, y = operation->input_count, tokens = rank - 3;
  const bool is_batch = rank == 4 && axis == 0, is_tokens = axis == tokens && attributes->causal == 0;
  if ((operand != 0 && operand != y) || (!is_batch && !is_tokens)) return false;
  shared->axes[0] = shared->axes[y] = (int32_t)axis;
  if (is_batch) shared->axes[1] = shared->axes[2] = 0;
  if (y <= 4) return true;
  const tm_operand *mask = &operation->operands[4];
  if (is_batch && mask->rank == 4 && mask->dims[0] != 1) shared->axes[4] = 0;
  if (is_tokens && mask->dims[mask->rank - 2] != 1) shared->axes[4] = (int32_t)mask->rank - 2;
  return true;
}

static share_fn share_of(const tm_op_row *row) {
  if (row->merged_operands != 0) return share_elementwise;
  if (row->combine == TM_COMBINE_WORDS) return share_one_pass;
  switch (row->op) {
    case TM_OP_TRANSPOSE: return share_transpose;
    case TM_OP_GATHER: return share_gather;
    case TM_OP_SOFTMAX: return share_softmax;
    case TM_OP_LAYER_NORM:
    case TM_OP_RMS_NORM: return share_norm;
    case TM_OP_MATMUL:
    case TM_OP_MATMUL_SCALED: return share_matmul;
    case TM_OP_ROPE: return share_rope;
    case TM_OP_UPDATE: return share_update;
    case TM_OP_ATTENTION: return share_attention;
    default: return row->op_class == TM_CLASS_REDUCE ? share_reduce : NULL;
  }
}

bool tm_shared_axes_find(const tm_operation *operation, uint32_t operand, uint32_t axis, tm_shared_axes *out_shared) {
  const tm_op_row *row = tm_op_find(operation->op);
  if (row == NULL || operand >= operation->input_count + operation->output_count || axis >= operation->operands[operand].rank)
    return false;
  const share_fn share = share_of(row);
  out_shared->role = TM_AXIS_INDEPENDENT;
  for (uint32_t i = 0; i < TM_MAX_OPERANDS; i++) out_shared->axes[i] = TM_NO_AXIS;
  return share != NULL && share(operation, operand, axis, out_shared);
}
