/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op_measure.h"

#include "base/checked.h"
#include "ops/op_check.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define TRANSCENDENTAL_FLOPS 16

/* byte_count would count the gaps of a view; this counts what is there. */
static uint64_t distinct_bytes(const tm_operand *operand) {
  const tm_format_info *info = tm_format_find(operand->format);
  if (info == NULL || operand->element_count == 0) return operand->byte_count;
  uint64_t elements = 1;
  for (uint32_t i = 0; i < operand->rank; i++)
    if (operand->strides_bytes[i] != 0) elements = tm_saturating_mul(elements, operand->dims[i]);
  return tm_saturating_mul(tm_divide_up(elements, info->block_elements), info->block_bytes);
}

void tm_work_of(const tm_operation *operation, uint64_t flops, tm_work *out_work) {
  tm_work work = { .flops = flops };
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++) {
    uint64_t *total = i < operation->input_count ? &work.read_bytes : &work.written_bytes;
    if (!tm_checked_add(*total, distinct_bytes(&operation->operands[i]), total)) *total = UINT64_MAX;
  }
  *out_work = work;
}

void tm_work_elementwise(const tm_operation *operation, tm_work *out_work) {
  const tm_op_class op_class = tm_op_find(operation->op)->op_class;
  const uint64_t each = op_class == TM_CLASS_MOVE ? 0 : op_class == TM_CLASS_TRANSCENDENTAL ? TRANSCENDENTAL_FLOPS : 1;
  tm_work_of(operation, tm_saturating_mul(tm_output_of(operation)->element_count, each), out_work);
}

uint32_t tm_unit_elements(const tm_operation *operation) {
  uint32_t largest = 1;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++) {
    const tm_format_info *info = tm_format_find(operation->operands[i].format);
    if (info != NULL && info->block_elements > largest) largest = info->block_elements;
  }
  return largest;
}

uint64_t tm_units_elementwise(const tm_operation *operation) {
  return tm_output_of(operation)->element_count / tm_unit_elements(operation);
}

uint32_t tm_splittable_elementwise(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0];
  return tm_same_dims(x, tm_output_of(operation)) ? tm_axis_mask(x->rank) : 0;
}

uint32_t tm_splittable_none(const tm_operation *operation) {
  (void)operation;
  return 0;
}
