/* SPDX-License-Identifier: Apache-2.0 */
/* TM_OP_LERP as it is defined, in f64, on an interface that has none: on bits. */
#include "webgpu_elementwise.h"
#include "webgpu_shaders.h"

static const char *const shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_exact, webgpu_wgsl_lerp, webgpu_wgsl_elementwise, 0 };

static const char body[] =
    "let x = wide(a); let z = wide(b); let t = wide(c);\n"
    "  let choice = lerp_choice(x, z, t);\n"
    "  if (choice == 0u) { return a; }\n"
    "  if (choice == 1u) { return b; }\n"
    "  if (is_lerp_special(x, z, t)) { return narrow(lerp_special(x, z, t)); }\n"
    "  return ";

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  *out_operand = 0;
  if (webgpu_kind_of(operation->operands[0].format) != WEBGPU_FLOAT) return TM_REASON_FORMAT;
  return webgpu_refuses_numbers(limits, operation, out_operand);
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const int is_f32 = operation->operands[3].format == TM_FORMAT_F32;
  (void)row;
  webgpu_say_conversions(out_plan, operation);
  webgpu_say(out_plan, "fn body(a: u32, b: u32, c: u32) -> u32 {\n  %s%s;\n}\n", body,
             is_f32 ? "nearest_f32(lerp_wide(x, z, t))" : "narrow(odd_f32(lerp_wide(x, z, t)))");
  webgpu_plan_elements(limits, operation, out_plan);
}

static const webgpu_row rows[] = {
  { .op = TM_OP_LERP, WEBGPU_EXACT, .name = "webgpu_lerp", .shaders = shaders, .refuses = refuses, .plan = plan },
};

const kernel_row_table webgpu_rows_lerp = { rows, sizeof rows / sizeof rows[0] };
