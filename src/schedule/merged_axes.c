/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/merged_axes.h"

#include "schedule/shared_axes.h"
#include "tensor/format.h"
#include "tensor/shape.h"

typedef struct merge {
  tm_operation    *operation;
  tm_operand      *operands;
  void            *attributes;
  uint32_t         count;
  tm_make_dense_fn make_dense;
  void            *context;
} merge;

void tm_operand_drop_axis(tm_operand *operand, uint32_t axis) {
  for (uint32_t i = axis; i + 1 < operand->rank; i++) {
    operand->dims[i] = operand->dims[i + 1];
    operand->strides_bytes[i] = operand->strides_bytes[i + 1];
  }
  operand->rank--;
  operand->dims[operand->rank] = 0;
  operand->strides_bytes[operand->rank] = 0;
  (void)tm_operand_derive(operand, NULL);
}

/* ---- attributes that name axes ---- */

/* Axis `axis` of x (and where y has it, y's) is gone. */
static void forget_axis(const merge *m, uint32_t axis, int32_t y_axis) {
  if (m->operation->op == TM_OP_SOFTMAX || m->operation->op == TM_OP_GATHER) {
    tm_axis_attributes *attributes = m->attributes;
    if (attributes->axis > axis) attributes->axis--;
  } else if (m->operation->op == TM_OP_TRANSPOSE) {
    tm_transpose_attributes *attributes = m->attributes;
    for (uint32_t i = (uint32_t)y_axis; i + 1 < TM_MAX_RANK; i++) attributes->permutation[i] = attributes->permutation[i + 1];
    attributes->permutation[TM_MAX_RANK - 1] = 0;
    for (uint32_t i = 0; i < TM_MAX_RANK; i++)
      if (attributes->permutation[i] > axis) attributes->permutation[i]--;
  } else if (tm_op_find(m->operation->op)->op_class == TM_CLASS_REDUCE) {
    tm_reduce_attributes *attributes = m->attributes;
    const uint32_t below = (1u << axis) - 1;
    attributes->axes = (attributes->axes & below) | (attributes->axes >> 1 & ~below);
  }
}

/* Reduced axes that are kept with extent 1 would stand between those that merge. */
static void forget_kept_axes(const merge *m) {
  if (tm_op_find(m->operation->op)->op_class != TM_CLASS_REDUCE) return;
  tm_reduce_attributes *attributes = m->attributes;
  for (uint32_t axis = m->operands[0].rank; axis-- > 0 && attributes->keep_dims != 0;)
    if ((attributes->axes >> axis & 1u) != 0) tm_operand_drop_axis(&m->operands[1], axis);
  attributes->keep_dims = 0;
}

/* ---- neighbours ---- */

/* One pass over all elements in their order: any axes may become one. */
static bool is_merging(const merge *m, const tm_shared_axes *shared) {
  const tm_op_row *row = tm_op_find(m->operation->op);
  if (shared->role == TM_AXIS_INDEPENDENT || row->combine == TM_COMBINE_WORDS) return true;
  return row->op_class == TM_CLASS_REDUCE && row->op != TM_OP_ARGMAX;
}

static bool are_neighbours(const merge *m, const tm_shared_axes *outer, const tm_shared_axes *inner) {
  if (outer->role != inner->role || !is_merging(m, outer)) return false;
  for (uint32_t i = 0; i < m->count; i++) {
    if ((outer->axes[i] == TM_NO_AXIS) != (inner->axes[i] == TM_NO_AXIS)) return false;
    if (outer->axes[i] != TM_NO_AXIS && inner->axes[i] != outer->axes[i] + 1) return false;
  }
  return true;
}

static bool steps_as_one(const tm_operand *operand, uint32_t axis) {
  const uint32_t inner = axis + 1;
  const uint32_t elements = inner + 1 == operand->rank ? tm_format_find(operand->format)->block_elements : 1;
  if (operand->dims[axis] == 1 || operand->dims[inner] == 1 || operand->element_count == 0) return true;
  return operand->strides_bytes[axis] == (int64_t)(operand->dims[inner] / elements) * operand->strides_bytes[inner];
}

/* Whether the axis and the next are one for the operand, by a copy if need be. */
static bool can_step_as_one(const merge *m, uint32_t index, uint32_t axis) {
  if (steps_as_one(&m->operands[index], axis)) return true;
  return m->make_dense(m->context, index) && steps_as_one(&m->operands[index], axis);
}

static void merge_axis(tm_operand *operand, uint32_t axis) {
  const uint64_t outer = operand->dims[axis];
  const bool inner_is_one = operand->dims[axis + 1] == 1;
  const int64_t stride = operand->strides_bytes[axis];
  operand->dims[axis + 1] *= outer;
  if (inner_is_one) operand->strides_bytes[axis + 1] = stride;
  tm_operand_drop_axis(operand, axis);
}

static bool merge_pair(const merge *m, const tm_shared_axes *outer) {
  for (uint32_t i = 0; i < m->count; i++) {
    if (outer->axes[i] == TM_NO_AXIS) continue;
    const uint32_t axis = (uint32_t)outer->axes[i];
    if (!can_step_as_one(m, i, axis)) return false;
    merge_axis(&m->operands[i], axis);
  }
  if (outer->axes[0] != TM_NO_AXIS) forget_axis(m, (uint32_t)outer->axes[0] + 1, outer->axes[m->operation->input_count] + 1);
  return true;
}

/* ---- axes of extent 1 ---- */

static bool drop_unit_axis(const merge *m, const tm_shared_axes *shared) {
  if (shared->role != TM_AXIS_INDEPENDENT) return false;
  for (uint32_t i = 0; i < m->count; i++)
    if (shared->axes[i] != TM_NO_AXIS && m->operands[i].dims[shared->axes[i]] != 1) return false;
  for (uint32_t i = 0; i < m->count; i++)
    if (shared->axes[i] != TM_NO_AXIS) tm_operand_drop_axis(&m->operands[i], (uint32_t)shared->axes[i]);
  if (shared->axes[0] != TM_NO_AXIS) forget_axis(m, (uint32_t)shared->axes[0], shared->axes[m->operation->input_count]);
  return true;
}

/* A product needs its matrices. */
static bool is_matrix_axis(const merge *m, const tm_shared_axes *shared) {
  if (tm_op_find(m->operation->op)->op_class != TM_CLASS_MATMUL) return false;
  const uint32_t y = m->operation->input_count;
  return shared->axes[y] == TM_NO_AXIS || (uint32_t)shared->axes[y] + 2 >= m->operands[y].rank;
}

/* A batch of products with one b is one product: the innermost batch axis becomes part of M. */
static bool fold_batch(const merge *m) {
  tm_operand *a = &m->operands[0], *b = &m->operands[1], *y = &m->operands[2];
  if (m->operation->op != TM_OP_MATMUL || y->rank < 3 || a->rank != y->rank || b->rank != y->rank) return false;
  const tm_matmul_attributes *attributes = m->attributes;
  const uint32_t batch = y->rank - 3;
  if (attributes->transpose_a != 0 || (b->strides_bytes[batch] != 0 && b->dims[batch] != 1)) return false;
  if (!can_step_as_one(m, 0, batch) || !can_step_as_one(m, 2, batch)) return false;
  merge_axis(a, batch);
  merge_axis(y, batch);
  tm_operand_drop_axis(b, batch);
  return true;
}

static bool lose_one_axis(const merge *m, uint32_t target) {
  const uint32_t rank = m->operands[target].rank;
  for (uint32_t axis = 0; axis < rank; axis++) {
    tm_shared_axes outer, inner;
    if (!tm_shared_axes_find(m->operation, target, axis, &outer) || is_matrix_axis(m, &outer)) continue;
    if (drop_unit_axis(m, &outer)) return true;
    if (axis + 1 == rank || !tm_shared_axes_find(m->operation, target, axis + 1, &inner)) continue;
    if (!is_matrix_axis(m, &inner) && are_neighbours(m, &outer, &inner)) return merge_pair(m, &outer);
  }
  return fold_batch(m);
}

bool tm_merged_axes_reduce(tm_operation *operation, tm_operand *operands, void *attributes, uint32_t target, uint64_t rank,
                           tm_make_dense_fn make_dense, void *context) {
  const merge m = { operation, operands, attributes, operation->input_count + operation->output_count, make_dense, context };
  if (tm_op_find(operation->op) == NULL || operands[target].format >= TM_FORMAT_PRIVATE) return false;
  forget_kept_axes(&m);
  while (operands[target].rank > rank)
    if (!lose_one_axis(&m, target)) return false;
  return true;
}
