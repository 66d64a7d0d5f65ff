/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_shape.h - what kernels make of shapes: axes merged into longer ones, kept apart from reduced ones, those of a product. */
#ifndef KERNEL_SHAPE_H
#define KERNEL_SHAPE_H

#include <stdint.h>

#include "tensormorph/plugin.h"

/* An axis that is walked in two operands at once. */
typedef struct kernel_axis {
  uint64_t extent;
  int64_t  x_step_bytes;
  int64_t  y_step_bytes;        /* 0 on reduced axes */
} kernel_axis;

typedef struct kernel_axes {
  kernel_axis items[TM_MAX_RANK];       /* outermost first */
  uint32_t    count;
} kernel_axes;

/* Appends the next axis inwards: nothing for an extent of 1, a longer last axis where both operands run on. */
void kernel_axes_append(kernel_axes *axes, kernel_axis axis);

/* x's axes as those that y has as well and those that it has not; both in order, merged. */
typedef struct kernel_reduction {
  kernel_axes kept;
  kernel_axes reduced;
  uint64_t    output_count;
  uint64_t    term_count;       /* of an output */
} kernel_reduction;

/* Of an operation with tm_reduce_attributes. */
void kernel_reduction_make(const tm_operation *operation, kernel_reduction *out_reduction);

/* Of one whose y has x's rank and is made line by line along `axis`, which counts as reduced. */
void kernel_reduction_make_lines(const tm_operation *operation, uint32_t axis, kernel_reduction *out_reduction);

/* A matrix product: y[batch, row, column] sums over k. */
typedef struct kernel_product {
  uint64_t rows, columns, depth, batch_count;
  uint32_t k_axis[2];           /* of a and of b */
  uint32_t line_axis[2];        /* rows of a, columns of b */
} kernel_product;

/* Of TM_OP_MATMUL or TM_OP_MATMUL_SCALED with ranks of 2 at least. */
kernel_product kernel_product_of(const tm_operation *operation);

#endif
