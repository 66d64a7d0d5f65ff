/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kernel families: one declaration and one entry each. */
#include "webgpu_kernel.h"

extern const webgpu_row_table webgpu_rows_moving;
extern const webgpu_row_table webgpu_rows_cast;
extern const webgpu_row_table webgpu_rows_arithmetic;
extern const webgpu_row_table webgpu_rows_select;
extern const webgpu_row_table webgpu_rows_transcendental;

const webgpu_row_table *const webgpu_row_tables[] = {
  &webgpu_rows_moving,
  &webgpu_rows_cast,
  &webgpu_rows_arithmetic,
  &webgpu_rows_select,
  &webgpu_rows_transcendental,
  0,
};
