/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp, log, tanh, sigmoid, erf, gelu, silu, computed in f32.  The bounds of f32 are two to four times the largest error
 * that tests/webgpu/function_bounds.c saw (1 to 5 ulp; the tanh form of gelu 199), because an implementation may round
 * worse than those at hand; narrower formats are one step off at most.
 */
#include "webgpu_elementwise.h"
#include "webgpu_shaders.h"

static const char *const shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_exact, webgpu_wgsl_transcendental, webgpu_wgsl_elementwise,
                                       0 };

#define ELEMENTS_PER_US 4000.0

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  const double elements = (double)operation->operands[1].element_count;
  return webgpu_cost_ns(limits, elements, ELEMENTS_PER_US, kernel_operand_bytes(operation));
}

static int is_tanh_form(const tm_operation *operation) {
  const tm_gelu_attributes *attributes = operation->attributes;
  return attributes != 0 && attributes->tanh_form != 0;
}

static void plan_gelu(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  (void)row;
  const char *body = is_tanh_form(operation) ? "return narrow(gelu_tanh_bits(wide(a)));" : "return narrow(gelu_bits(wide(a)));";
  webgpu_plan_body(limits, operation, body, out_plan);
}

/* The two forms differ in f32: in the tail the tanh form loses digits of its own argument. */
static uint32_t refuses_tanh_form(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  *out_operand = TM_NO_OPERAND;
  return is_tanh_form(operation) ? TM_REASON_ATTRIBUTE : webgpu_refuses_numbers(limits, operation, out_operand);
}

#define COMMON                                                                                                          \
  .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N1, .shaders = shaders,                                               \
  .cost_ns = cost_ns,                                                                                                   \
  .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE | TM_NUMERICS_FLUSHES

#define ROW(OP, NAME, T, FORMAT, BOUND)                                                                                 \
  { .op = OP, .formats = { FORMAT, FORMAT }, COMMON, .numerics_bound = BOUND, .name = "webgpu_" #NAME "_" T,            \
    .refuses = webgpu_refuses_numbers, .plan = webgpu_plan_row, .body = "return narrow(" #NAME "_bits(wide(a)));" }
#define GELU(T, FORMAT, BOUND, REFUSES)                                                                                 \
  { .op = TM_OP_GELU, .formats = { FORMAT, FORMAT }, .attribute_bytes = sizeof(tm_gelu_attributes), COMMON,             \
    .numerics_bound = BOUND, .name = "webgpu_gelu_" T, .refuses = REFUSES, .plan = plan_gelu }

#define NARROW(T, FORMAT)                                                                                               \
  ROW(TM_OP_EXP, exp, T, FORMAT, 1.0), ROW(TM_OP_LOG, log, T, FORMAT, 1.0), ROW(TM_OP_TANH, tanh, T, FORMAT, 1.0),      \
  ROW(TM_OP_SIGMOID, sigmoid, T, FORMAT, 1.0), ROW(TM_OP_ERF, erf, T, FORMAT, 1.0), ROW(TM_OP_SILU, silu, T, FORMAT, 1.0), \
  GELU(T, FORMAT, 1.0, webgpu_refuses_numbers)

static const webgpu_row rows[] = {
  ROW(TM_OP_EXP, exp, "f32", TM_FORMAT_F32, 4.0),
  ROW(TM_OP_LOG, log, "f32", TM_FORMAT_F32, 4.0),
  ROW(TM_OP_TANH, tanh, "f32", TM_FORMAT_F32, 4.0),
  ROW(TM_OP_SIGMOID, sigmoid, "f32", TM_FORMAT_F32, 8.0),
  ROW(TM_OP_ERF, erf, "f32", TM_FORMAT_F32, 8.0),
  ROW(TM_OP_SILU, silu, "f32", TM_FORMAT_F32, 12.0),
  GELU("f32", TM_FORMAT_F32, 16.0, refuses_tanh_form),
  GELU("tanh_f32", TM_FORMAT_F32, 640.0, webgpu_refuses_numbers),
  NARROW("bf16", TM_FORMAT_BF16),
  NARROW("f16", TM_FORMAT_F16),
  NARROW("f8_e4m3fn", TM_FORMAT_F8_E4M3FN),
  NARROW("f8_e5m2", TM_FORMAT_F8_E5M2),
};

const kernel_row_table webgpu_rows_transcendental = { rows, sizeof rows / sizeof rows[0] };
