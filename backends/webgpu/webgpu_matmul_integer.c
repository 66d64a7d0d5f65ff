/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul of i8 by i8 into i32: exact, whatever the order; and matmul_scaled of i8 by i8 with one scale for a tensor or one a
 * row of a and a column of b.  Such scales stand outside of the sum, an exact integer: one rounding in f64 meets the product,
 * the reference's own are counted too.
 */
#include "webgpu_matmul.h"
#include "webgpu_number.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define A_SCALE         2u
#define MOST_DEPTH      131071u /* products of i8 summed in 32 bits stay exact up to here */
#define OVERHEAD_TURNS  64u     /* of an invocation, besides those along k */
#define SCALED_BOUND    2.0

static const char *const shaders[] = { webgpu_wgsl_wide, webgpu_wgsl_matmul, webgpu_wgsl_matmul_integer, 0 };

/* ---- scales ---- */

/* One entry in all, or one a line; the same for every k and every batch. */
static int is_one_a_line(const tm_operation *operation, const webgpu_matmul *m, uint32_t input) {
  const tm_operand *x = &operation->operands[input], *scale = &operation->operands[input + A_SCALE];
  if (scale->rank != 0 && scale->rank != x->rank) return 0;
  for (uint32_t i = 0; i < scale->rank; ++i) {
    if (scale->dims[i] != 1 && (i != m->shape.line_axis[input] || scale->dims[i] != x->dims[i])) return 0;
    if (scale->strides_bytes[i] % 4 != 0 || scale->strides_bytes[i] > INT32_MAX || scale->strides_bytes[i] < INT32_MIN) return 0;
  }
  return 1;
}

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  webgpu_matmul m;
  const uint32_t reasons = webgpu_refuses_matmul(limits, operation, out_operand);
  if (reasons != 0 || !webgpu_matmul_make(operation, &m)) return reasons;
  const uint64_t repeats = webgpu_matmul_blocks(limits, &m) / limits->workgroup_count + 1;
  return (m.shape.depth / 4 + OVERHEAD_TURNS) * repeats > WEBGPU_MOST_TURNS ? TM_REASON_SIZE : 0;
}

static uint32_t refuses_scaled(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  webgpu_matmul m;
  const uint32_t reasons = refuses(limits, operation, out_operand);
  if (reasons != 0 || !webgpu_matmul_make(operation, &m)) return reasons;
  if (m.shape.depth > MOST_DEPTH) return TM_REASON_SIZE;
  for (uint32_t input = 0; input < 2; ++input) {
    *out_operand = input + A_SCALE;
    if (!is_one_a_line(operation, &m, input)) return TM_REASON_SHAPE;
  }
  *out_operand = TM_NO_OPERAND;
  return 0;
}

static void put_scale(const webgpu_limits *limits, const tm_operation *operation, const webgpu_matmul *m, uint32_t input,
                      webgpu_pass *pass) {
  const tm_operand *scale = &operation->operands[input + A_SCALE];
  const uint32_t axis = m->shape.line_axis[input];
  const int is_shared = scale->rank == 0 || scale->dims[axis] == 1;
  webgpu_put(pass, webgpu_first_byte(limits, scale) / 4);
  webgpu_put(pass, is_shared ? 0 : (uint32_t)(scale->strides_bytes[axis] / 4));
}

/* ---- rows ---- */

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  webgpu_matmul m;
  if (!webgpu_matmul_make(operation, &m)) return 0;
  const double products = (double)m.shape.batch_count * (double)m.shape.rows * (double)m.shape.columns * (double)m.shape.depth;
  return webgpu_work_ns(limits, WEBGPU_WORK_INTEGER_PRODUCT, products, kernel_operand_bytes(operation));
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  webgpu_matmul m;
  const int is_scaled = operation->op == TM_OP_MATMUL_SCALED;
  (void)row;
  if (!webgpu_matmul_make(operation, &m)) return;
  webgpu_say_matmul(limits, operation, &m, out_plan);
  webgpu_say_result(out_plan, TM_FORMAT_F32);   /* of i32 as well: 4 bytes */
  webgpu_say(out_plan, "const SCALES = %s;\n", is_scaled ? "true" : "false");
  webgpu_say(out_plan, "fn scale_word(input: u32, i: u32) -> u32 { %s }\n",
             is_scaled ? "if (input == 0u) { return x2[i]; } return x3[i];" : "return 0u;");
  webgpu_pass *pass = webgpu_add_matmul_pass(limits, operation, &m, "multiply", webgpu_matmul_blocks(limits, &m), 0, out_plan);
  for (uint32_t input = 0; input < 2 && is_scaled && pass != NULL; ++input) put_scale(limits, operation, &m, input, pass);
}

static const webgpu_row rows[] = {
  { .op = TM_OP_MATMUL, .formats = { TM_FORMAT_I8, TM_FORMAT_I8, TM_FORMAT_I32 }, .attribute_bytes = sizeof(tm_matmul_attributes),
    WEBGPU_BIT_EQUAL, .name = "webgpu_matmul_i8", .shaders = shaders, .refuses = refuses,
    .split = webgpu_split_matmul, .cost_ns = cost_ns, .plan = plan },
  { .op = TM_OP_MATMUL_SCALED, .formats = { TM_FORMAT_I8, TM_FORMAT_I8, TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 },
    .attribute_bytes = sizeof(tm_matmul_scaled_attributes), .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N2,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_FLUSHES, .numerics_bound = SCALED_BOUND, .growth = TM_GROWTH_LINEAR,
    .accumulator = TM_FORMAT_F64, .name = "webgpu_matmul_scaled_i8", .shaders = shaders, .refuses = refuses_scaled,
    .split = webgpu_split_matmul, .cost_ns = cost_ns, .plan = plan },
};

const kernel_row_table webgpu_rows_matmul_integer = { rows, sizeof rows / sizeof rows[0] };
