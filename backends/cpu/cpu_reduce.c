/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_reduce.h"

#include "kernel_shape.h"

int cpu_reduce_shape_of(const tm_operation *operation, cpu_reduce_shape *out_shape) {
  kernel_reduction r;
  kernel_reduction_make(operation, &r);
  if (operation->operands[0].element_count == 0 || r.reduced.count > 1) return 0;
  *out_shape = (cpu_reduce_shape){ 1, r.term_count, 1 };
  for (uint32_t i = 0; i < r.kept.count; ++i) {
    const int is_outside = r.reduced.count == 0 || r.kept.items[i].x_step_bytes > r.reduced.items[0].x_step_bytes;
    *(is_outside ? &out_shape->outer : &out_shape->inner) *= r.kept.items[i].extent;
  }
  return 1;
}

uint32_t cpu_reduce_refuses(const tm_operation *operation, uint32_t *out_operand) {
  cpu_reduce_shape shape;
  const uint32_t reasons = kernel_refuses_strided(operation, out_operand);
  if (reasons != 0) return reasons;
  *out_operand = 0;
  return cpu_reduce_shape_of(operation, &shape) ? 0 : TM_REASON_SHAPE;
}

int cpu_reduce_shares_rows(const cpu_reduce_shape *shape, uint32_t lanes) {
  return shape->inner == 1 && shape->outer < 2 * (uint64_t)lanes && shape->reduced >= CPU_REDUCE_LONG;
}

uint64_t cpu_reduce_cost_ns(const tm_operation *operation, double elements_per_us, uint32_t lanes) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[1];
  cpu_reduce_shape shape = { 1, 1, 1 };
  const uint32_t busy = x->element_count < CPU_REDUCE_PART ? 1 : lanes;
  const int has_shape = cpu_reduce_shape_of(operation, &shape);
  /* A row costs something however short it is; columns are taken together. */
  const double row_ns = has_shape && shape.inner == 1 ? 16.0 : 1.0;
  const double elements = (double)x->element_count + (double)y->element_count * row_ns * elements_per_us / 1000.0;
  return cpu_cost_ns(elements, elements_per_us, kernel_operand_bytes(operation), busy);
}
