/* SPDX-License-Identifier: Apache-2.0 */
/* matmul of i8 by i8 into i32: exact, whatever the order. */
#include "webgpu_matmul.h"
#include "webgpu_number.h"
#include "webgpu_shaders.h"

#define PRODUCTS_PER_US 300000.0

static const char *const shaders[] = { webgpu_wgsl_wide, webgpu_wgsl_matmul, webgpu_wgsl_matmul_integer, 0 };

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  webgpu_matmul m;
  if (!webgpu_matmul_make(operation, &m)) return 0;
  const double products = (double)m.batch_count * (double)m.rows * (double)m.columns * (double)m.depth;
  return webgpu_cost_ns(limits, products, PRODUCTS_PER_US, webgpu_operand_bytes(operation));
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  webgpu_matmul m;
  (void)row;
  if (!webgpu_matmul_make(operation, &m)) return;
  webgpu_say_matmul(limits, operation, &m, out_plan);
  webgpu_say_result(out_plan, TM_FORMAT_F32);   /* of i32 as well: 4 bytes */
  webgpu_add_matmul_pass(limits, operation, &m, "multiply", webgpu_matmul_blocks(limits, &m), 0, out_plan);
}

static const webgpu_row rows[] = {
  { .op = TM_OP_MATMUL, .formats = { TM_FORMAT_I8, TM_FORMAT_I8, TM_FORMAT_I32 }, .attribute_bytes = sizeof(tm_matmul_attributes),
    WEBGPU_BIT_EQUAL, .name = "webgpu_matmul_i8", .shaders = shaders, .refuses = webgpu_refuses_matmul,
    .split = webgpu_split_matmul, .cost_ns = cost_ns, .plan = plan },
};

const webgpu_row_table webgpu_rows_matmul_integer = { rows, sizeof rows / sizeof rows[0] };
