/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kernel families: one declaration and one entry each. */
#include "webgpu_kernel.h"

extern const kernel_row_table webgpu_rows_moving;
extern const kernel_row_table webgpu_rows_cast;
extern const kernel_row_table webgpu_rows_arithmetic;
extern const kernel_row_table webgpu_rows_select;
extern const kernel_row_table webgpu_rows_lerp;
extern const kernel_row_table webgpu_rows_merge;
extern const kernel_row_table webgpu_rows_transcendental;
extern const kernel_row_table webgpu_rows_reduce_sum;
extern const kernel_row_table webgpu_rows_reduce_parts;
extern const kernel_row_table webgpu_rows_matmul_float;
extern const kernel_row_table webgpu_rows_compare_tensors;
extern const kernel_row_table webgpu_rows_normalize;
extern const kernel_row_table webgpu_rows_stats;
extern const kernel_row_table webgpu_rows_block;
extern const kernel_row_table webgpu_rows_matmul_integer;
extern const kernel_row_table webgpu_rows_tokens;

const kernel_row_table *const webgpu_row_tables[] = {
  &webgpu_rows_moving,
  &webgpu_rows_cast,
  &webgpu_rows_arithmetic,
  &webgpu_rows_select,
  &webgpu_rows_lerp,
  &webgpu_rows_merge,
  &webgpu_rows_transcendental,
  &webgpu_rows_reduce_sum,
  &webgpu_rows_reduce_parts,
  &webgpu_rows_matmul_float,
  &webgpu_rows_compare_tensors,
  &webgpu_rows_normalize,
  &webgpu_rows_stats,
  &webgpu_rows_block,
  &webgpu_rows_matmul_integer,
  &webgpu_rows_tokens,
  0,
};
