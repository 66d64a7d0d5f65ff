/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_WEIGHTED_SUM as it is defined, in f64, on an interface that has none: on bits (webgpu_double.wgsl).  Dense floats
 * that an f32 holds, each of a format of its own, as many as the device binds at once.
 */
#include <stdio.h>

#include "webgpu_elementwise.h"
#include "webgpu_number.h"
#include "webgpu_shaders.h"

#define WEIGHTS 1u
#define OTHER_BINDINGS 2u       /* the weights and y */
#define PRODUCTS_PER_US 4000.0

static const char *const shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_exact, webgpu_wgsl_wide, webgpu_wgsl_double,
                                       webgpu_wgsl_weighted_sum, 0 };

static int is_result(uint32_t format) {
  return format == TM_FORMAT_F32 || format == TM_FORMAT_F16 || format == TM_FORMAT_BF16;
}

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    *out_operand = i;
    if (i != WEIGHTS && webgpu_float_name(operation->operands[i].format) == NULL) return TM_REASON_FORMAT;
  }
  *out_operand = operation->input_count;
  if (!is_result(operation->operands[operation->input_count].format)) return TM_REASON_FORMAT;
  *out_operand = TM_NO_OPERAND;
  if (operation->input_count - 1 + OTHER_BINDINGS > limits->storage_buffers) return TM_REASON_RESOURCES;
  return kernel_refuses_strided(operation, out_operand);
}

/* The weights have no axis of y. */
static uint32_t axis_of(const tm_operation *operation, uint32_t operand, uint32_t axis) {
  (void)operation;
  return operand == WEIGHTS ? TM_MAX_RANK : axis;
}

static int split(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  return webgpu_split_by(limits, operation, axis_of, out_change);
}

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  const double products = (double)operation->operands[0].element_count * (operation->input_count - 1);
  return webgpu_cost_ns(limits, products, PRODUCTS_PER_US, kernel_operand_bytes(operation));
}

static void say_value(webgpu_plan *plan, uint32_t input, uint32_t format) {
  const uint32_t bytes = kernel_element_bytes(format);
  char raw[80];
  if (bytes == 4) snprintf(raw, sizeof raw, "x%u[e]", input);
  else if (bytes == 2) snprintf(raw, sizeof raw, "(x%u[e >> 1u] >> ((e & 1u) * 16u)) & 0xffffu", input);
  else snprintf(raw, sizeof raw, "(x%u[e >> 2u] >> ((e & 3u) * 8u)) & 0xffu", input);
  webgpu_say(plan, "fn value%u(e: u32) -> u32 { return bits_from_%s(%s); }\n", input, webgpu_float_name(format), raw);
}

static void say_total(webgpu_plan *plan, const tm_operation *operation) {
  webgpu_say(plan, "fn total(e: u32) -> vec2<u32> {\n  var sum = double_product(weight(0u), value0(e));\n");
  for (uint32_t i = WEIGHTS + 1; i < operation->input_count; ++i)
    webgpu_say(plan, "  sum = double_sum(sum, double_product(weight(%uu), value%u(e)));\n", i - 1, i);
  webgpu_say(plan, "  return sum;\n}\n");
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const tm_operand *y = &operation->operands[operation->input_count];
  const uint32_t per_word = 4 / kernel_element_bytes(y->format);
  const uint64_t words = (y->element_count + per_word - 1) / per_word;
  (void)row;
  webgpu_say_bindings(out_plan, operation, 0);
  webgpu_say_result(out_plan, y->format);
  webgpu_say(out_plan, "const PER_WORD = %uu;\nconst BITS = %uu;\n", per_word, 32 / per_word);
  for (uint32_t i = 0; i < operation->input_count; ++i)
    if (i != WEIGHTS) say_value(out_plan, i, operation->operands[i].format);
  say_total(out_plan, operation);
  webgpu_pass *pass = webgpu_add_pass(limits, out_plan, "run", words);
  if (pass == NULL) return;
  webgpu_put(pass, (uint32_t)words);
  webgpu_put(pass, (uint32_t)y->element_count);
}

static const webgpu_row rows[] = {
  { .op = TM_OP_WEIGHTED_SUM, WEBGPU_BIT_EQUAL, .name = "webgpu_weighted_sum", .shaders = shaders, .refuses = refuses,
    .split = split, .cost_ns = cost_ns, .plan = plan },
};

const kernel_row_table webgpu_rows_merge = { rows, sizeof rows / sizeof rows[0] };
