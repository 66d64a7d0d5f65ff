/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kernel families: one declaration and one entry each. */
#include "cpu_kernel.h"

#if defined(__x86_64__)
extern const kernel_row_table cpu_rows_move;
extern const kernel_row_table cpu_rows_stats;
extern const kernel_row_table cpu_rows_compare_tensors;
extern const kernel_row_table cpu_rows_cast;
extern const kernel_row_table cpu_rows_quantize;
extern const kernel_row_table cpu_rows_reduce_sum;
extern const kernel_row_table cpu_rows_reduce_extreme;
extern const kernel_row_table cpu_rows_arithmetic;
extern const kernel_row_table cpu_rows_select;
extern const kernel_row_table cpu_rows_compare;
extern const kernel_row_table cpu_rows_lerp;
extern const kernel_row_table cpu_rows_weighted_sum;
extern const kernel_row_table cpu_rows_dare_sum;
extern const kernel_row_table cpu_rows_ties_sum;
extern const kernel_row_table cpu_rows_magnitudes;
extern const kernel_row_table cpu_rows_transcendental;
extern const kernel_row_table cpu_rows_matmul_vector;
extern const kernel_row_table cpu_rows_matmul;
extern const kernel_row_table cpu_rows_matmul_scaled;
extern const kernel_row_table cpu_rows_normalize;
extern const kernel_row_table cpu_rows_rope;
extern const kernel_row_table cpu_rows_update;
extern const kernel_row_table cpu_rows_attention;
#endif

const kernel_row_table *const cpu_row_tables[] = {
#if defined(__x86_64__)
  &cpu_rows_move,
  &cpu_rows_stats,
  &cpu_rows_compare_tensors,
  &cpu_rows_cast,
  &cpu_rows_quantize,
  &cpu_rows_reduce_sum,
  &cpu_rows_reduce_extreme,
  &cpu_rows_arithmetic,
  &cpu_rows_select,
  &cpu_rows_compare,
  &cpu_rows_lerp,
  &cpu_rows_weighted_sum,
  &cpu_rows_dare_sum,
  &cpu_rows_ties_sum,
  &cpu_rows_magnitudes,
  &cpu_rows_transcendental,
  &cpu_rows_matmul_vector,
  &cpu_rows_matmul,
  &cpu_rows_matmul_scaled,
  &cpu_rows_normalize,
  &cpu_rows_rope,
  &cpu_rows_update,
  &cpu_rows_attention,
#endif
  NULL,
};
