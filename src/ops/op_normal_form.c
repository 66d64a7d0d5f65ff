/* SPDX-License-Identifier: Apache-2.0 */
/* The one form in which backends see an operation: expanded, merged, with its facts. */
#include <string.h>

#include "ops/op_check.h"
#include "ops/op_table.h"
#include "tensor/format.h"
#include "tensor/shape.h"

static void expand_inputs(const tm_operation *operation, tm_operand *operands) {
  const tm_operand *y = tm_output_of(operation);
  for (uint32_t i = 0; i < operation->input_count; i++)
    tm_operand_broadcast(&operands[i], y->rank, y->dims, &operands[i]);
}

static bool takes_part(const tm_op_row *row, uint32_t index) { return row->merged_operands >> index & 1u; }

/* Bytes from one index of `axis` to the next if everything further in lies densely behind it. */
static int64_t merged_stride(const tm_operand *operand, uint32_t axis) {
  const uint32_t inner = axis + 1;
  const uint32_t elements = inner + 1 == operand->rank ? tm_format_find(operand->format)->block_elements : 1;
  return (int64_t)(operand->dims[inner] / elements * (uint64_t)operand->strides_bytes[inner]);
}

static bool can_merge(const tm_op_row *row, const tm_operand *operands, uint32_t count, uint32_t axis) {
  for (uint32_t i = 0; i < count; i++) {
    if (!takes_part(row, i)) continue;
    const tm_operand *operand = &operands[i];
    if (operand->dims[axis] == 1 || operand->dims[axis + 1] == 1) continue;
    if (operand->strides_bytes[axis] != merged_stride(operand, axis)) return false;
  }
  return true;
}

static void remove_axis(tm_operand *operand, uint32_t axis) {
  for (uint32_t i = axis; i + 1 < operand->rank; i++) {
    operand->dims[i] = operand->dims[i + 1];
    operand->strides_bytes[i] = operand->strides_bytes[i + 1];
  }
  operand->rank--;
  operand->dims[operand->rank] = 0;
  operand->strides_bytes[operand->rank] = 0;
}

static void merge_axis(tm_operand *operand, uint32_t axis) {
  const uint64_t outer = operand->dims[axis];
  const bool inner_is_one = operand->dims[axis + 1] == 1;
  const int64_t stride = operand->strides_bytes[axis];
  remove_axis(operand, axis);
  operand->dims[axis] *= outer;
  if (inner_is_one) operand->strides_bytes[axis] = stride;
}

/* An operation without elements does nothing, so all its shapes are one: rank 1, extent 0. */
static void make_empty(tm_operand *operand) {
  const uint32_t alignment = operand->alignment;
  const uint32_t flags = operand->flags & (TM_OPERAND_CONSTANT | TM_OPERAND_IN_PLACE);
  const uint64_t none = 0;
  tm_operand_contiguous(operand->format, 1, &none, operand, NULL);
  operand->alignment = alignment;
  operand->flags |= flags;
}

static void make_rank_1(tm_operand *operand) {
  operand->rank = 1;
  operand->dims[0] = 1;
  operand->strides_bytes[0] = tm_format_find(operand->format)->block_bytes;
}

static void merge_axes(const tm_op_row *row, tm_operand *operands, uint32_t count) {
  uint32_t first = 0;
  while (first < count && !takes_part(row, first)) first++;
  if (first == count) return;
  const bool is_empty = operands[first].element_count == 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!takes_part(row, i)) continue;
    if (is_empty) make_empty(&operands[i]);
    else if (operands[i].rank == 0) make_rank_1(&operands[i]);
  }
  for (uint32_t axis = operands[first].rank - 1; axis-- > 0;) {
    if (!can_merge(row, operands, count, axis)) continue;
    for (uint32_t i = 0; i < count; i++)
      if (takes_part(row, i)) merge_axis(&operands[i], axis);
  }
}

/* A stride that is never stepped over must not tell signatures apart: it becomes the dense one. */
static void settle_strides(tm_operand *operand) {
  const tm_format_info *info = tm_format_find(operand->format);
  if (info == NULL) return;
  uint64_t dense = info->block_bytes;
  for (uint32_t axis = operand->rank; axis-- > 0;) {
    const uint64_t steps = axis + 1 == operand->rank ? operand->dims[axis] / info->block_elements : operand->dims[axis];
    if (steps <= 1 || operand->element_count == 0) operand->strides_bytes[axis] = (int64_t)dense;
    dense *= steps == 0 ? 1 : steps;
  }
  tm_operand_derive(operand, NULL);
}

static uint32_t facts_of(const tm_operand *operands, uint32_t count) {
  uint32_t facts = TM_OPERATION_ALL_CONTIGUOUS | TM_OPERATION_ALL_SAME_SHAPE | TM_OPERATION_ALL_SAME_FORMAT;
  for (uint32_t i = 0; i < count; i++) {
    if ((operands[i].flags & TM_OPERAND_CONTIGUOUS) == 0) facts &= ~TM_OPERATION_ALL_CONTIGUOUS;
    if (!tm_same_dims(&operands[0], &operands[i])) facts &= ~TM_OPERATION_ALL_SAME_SHAPE;
    if (operands[0].format != operands[i].format) facts &= ~TM_OPERATION_ALL_SAME_FORMAT;
  }
  return facts;
}

void tm_op_normalize(tm_operation *operation, tm_operand *operands) {
  const tm_op_row *row = tm_op_find(operation->op);
  const uint32_t count = operation->input_count + operation->output_count;
  if (row == NULL) return;
  if (row->broadcasts) (row->expand != NULL ? row->expand : expand_inputs)(operation, operands);
  merge_axes(row, operands, count);
  for (uint32_t i = 0; i < count; i++) settle_strides(&operands[i]);
  operation->flags = (operation->flags & ~TM_OPERATION_FACTS) | facts_of(operands, count);
}
