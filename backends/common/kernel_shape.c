/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_shape.h"

/* ---- axes ---- */

static int runs_on(int64_t outer_step, int64_t step, uint64_t extent) { return (uint64_t)outer_step == (uint64_t)step * extent; }

void kernel_axes_append(kernel_axes *axes, kernel_axis axis) {
  if (axis.extent == 1) return;
  kernel_axis *last = axes->count > 0 ? &axes->items[axes->count - 1] : NULL;
  if (last != NULL && runs_on(last->x_step_bytes, axis.x_step_bytes, axis.extent) &&
      runs_on(last->y_step_bytes, axis.y_step_bytes, axis.extent)) {
    axis.extent *= last->extent;
    *last = axis;
  } else {
    axes->items[axes->count++] = axis;
  }
}

/* ---- reductions ---- */

/* Stays within y's axes, whatever the attributes: y_axis is at most i. */
static void part_axes(const tm_operation *operation, uint32_t reduced, int keeps_dims, kernel_reduction *out) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[operation->input_count];
  uint32_t y_axis = 0;
  *out = (kernel_reduction){ .output_count = 1, .term_count = 1 };
  for (uint32_t i = 0; i < x->rank; ++i) {
    const int is_reduced = (reduced >> i & 1u) != 0;
    if (is_reduced) {
      out->term_count *= x->dims[i];
      kernel_axes_append(&out->reduced, (kernel_axis){ x->dims[i], x->strides_bytes[i], 0 });
    } else {
      out->output_count *= x->dims[i];
      kernel_axes_append(&out->kept, (kernel_axis){ x->dims[i], x->strides_bytes[i], y->strides_bytes[y_axis] });
    }
    y_axis += !is_reduced || keeps_dims;
  }
}

void kernel_reduction_make(const tm_operation *operation, kernel_reduction *out_reduction) {
  const tm_reduce_attributes *attributes = operation->attributes;
  part_axes(operation, attributes->axes, attributes->keep_dims != 0, out_reduction);
}

void kernel_reduction_make_lines(const tm_operation *operation, uint32_t axis, kernel_reduction *out_reduction) {
  part_axes(operation, UINT32_C(1) << axis, 1, out_reduction);
}

/* ---- products ---- */

/* The attributes of both operations begin alike. */
kernel_product kernel_product_of(const tm_operation *operation) {
  const tm_operand *a = &operation->operands[0], *b = &operation->operands[1], *y = &operation->operands[operation->input_count];
  const tm_matmul_attributes *attributes = operation->attributes;
  kernel_product product = { .rows = y->dims[y->rank - 2], .columns = y->dims[y->rank - 1], .batch_count = 1 };
  product.k_axis[0] = a->rank - (attributes->transpose_a ? 2 : 1);
  product.k_axis[1] = b->rank - (attributes->transpose_b ? 1 : 2);
  product.line_axis[0] = 2 * a->rank - 3 - product.k_axis[0];
  product.line_axis[1] = 2 * b->rank - 3 - product.k_axis[1];
  product.depth = a->dims[product.k_axis[0]];
  for (uint32_t i = 0; i + 2 < y->rank; ++i) product.batch_count *= y->dims[i];
  return product;
}
