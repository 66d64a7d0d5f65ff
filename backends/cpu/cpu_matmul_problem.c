/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_matmul.h"

#include "kernel_shape.h"

/* The stride of an operand on the batch axis that is `from_end` axes before the matrix's two; what is not there
   repeats. */
static int64_t batch_stride(const tm_operand *operand, uint32_t from_end) {
  if (operand->rank < from_end + 3) return 0;
  const uint32_t axis = operand->rank - 3 - from_end;
  return operand->dims[axis] == 1 ? 0 : operand->strides_bytes[axis];
}

cpu_matmul_problem cpu_matmul_describe(const tm_operation *operation) {
  const tm_operand *a = &operation->operands[0], *b = &operation->operands[1];
  const tm_operand *y = &operation->operands[operation->input_count];
  const kernel_product p = kernel_product_of(operation);
  return (cpu_matmul_problem){
    .operation = operation, .m = p.rows, .n = p.columns, .k = p.depth, .batch_count = p.batch_count, .batch_rank = y->rank - 2,
    .a_line_bytes = a->strides_bytes[p.line_axis[0]], .a_k_bytes = a->strides_bytes[p.k_axis[0]],
    .b_line_bytes = b->strides_bytes[p.line_axis[1]], .b_k_bytes = b->strides_bytes[p.k_axis[1]],
    .y_row_bytes = y->strides_bytes[y->rank - 2], .y_column_bytes = y->strides_bytes[y->rank - 1],
  };
}

void cpu_matmul_batch_offsets(const cpu_matmul_problem *problem, uint64_t batch, int64_t out_offsets[3]) {
  const tm_operation *operation = problem->operation;
  const tm_operand *y = &operation->operands[operation->input_count];
  out_offsets[0] = out_offsets[1] = out_offsets[2] = 0;
  for (uint32_t from_end = 0; from_end < problem->batch_rank; from_end++) {
    const uint64_t extent = y->dims[problem->batch_rank - 1 - from_end];
    const int64_t index = (int64_t)(batch % extent);
    batch /= extent;
    out_offsets[0] += index * batch_stride(&operation->operands[0], from_end);
    out_offsets[1] += index * batch_stride(&operation->operands[1], from_end);
    out_offsets[2] += index * batch_stride(y, from_end);
  }
}
