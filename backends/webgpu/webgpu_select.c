/* SPDX-License-Identifier: Apache-2.0 */
/* neg, abs, relu, clamp and compare: one of the operands as it lies, a bit of it changed, or a truth. */
#include "webgpu_elementwise.h"

static const char *neg_body(const tm_operation *operation) {
  return webgpu_kind_of(operation->operands[0].format) == WEBGPU_FLOAT ? "return a ^ SIGN;" : "return 0u - a;";
}

static const char *abs_body(const tm_operation *operation) {
  switch (webgpu_kind_of(operation->operands[0].format)) {
    case WEBGPU_FLOAT: return "return a & ~SIGN;";
    case WEBGPU_SIGNED: return "return select(a, 0u - a, (a & SIGN) != 0u);";
    default: return "return a;";
  }
}

static const char *body_of(const tm_operation *operation) {
  static const char *const predicates[] = {
    [TM_COMPARE_EQUAL] = "return select(0u, 1u, same(wide(a), wide(b)));",
    [TM_COMPARE_NOT_EQUAL] = "return select(1u, 0u, same(wide(a), wide(b)));",
    [TM_COMPARE_LESS] = "return select(0u, 1u, less(wide(a), wide(b)));",
    [TM_COMPARE_LESS_EQUAL] = "return select(0u, 1u, less(wide(a), wide(b)) || same(wide(a), wide(b)));",
    [TM_COMPARE_GREATER] = "return select(0u, 1u, less(wide(b), wide(a)));",
    [TM_COMPARE_GREATER_EQUAL] = "return select(0u, 1u, less(wide(b), wide(a)) || same(wide(a), wide(b)));",
  };
  switch (operation->op) {
    case TM_OP_NEG: return neg_body(operation);
    case TM_OP_ABS: return abs_body(operation);
    case TM_OP_RELU: return "if (less(wide(a), 0u)) { return 0u; }\n  return a;";
    case TM_OP_CLAMP: return "if (less(wide(a), wide(b))) { return b; }\n  if (less(wide(c), wide(a))) { return c; }\n  return a;";
    default: {
      const uint32_t predicate = ((const tm_compare_attributes *)operation->attributes)->predicate;
      return predicate < sizeof predicates / sizeof predicates[0] ? predicates[predicate] : 0;
    }
  }
}

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  *out_operand = TM_NO_OPERAND;
  return body_of(operation) == 0 ? TM_REASON_ATTRIBUTE : webgpu_refuses_numbers(limits, operation, out_operand);
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const int is_float = webgpu_kind_of(operation->operands[0].format) == WEBGPU_FLOAT;
  (void)row;
  webgpu_say(out_plan, is_float ? "fn same(a: u32, b: u32) -> bool {\n"
                                  "  return !is_nan_bits(a) && !is_nan_bits(b) && order_of_bits(a) == order_of_bits(b);\n}\n"
                                : "fn same(a: u32, b: u32) -> bool { return a == b; }\n");
  webgpu_plan_body(limits, operation, body_of(operation), out_plan);
}

#define ROW(OP, NAME, BYTES)                                                                                            \
  { .op = OP, WEBGPU_EXACT, .attribute_bytes = BYTES, .name = "webgpu_" NAME, .shaders = webgpu_elementwise_shaders,    \
    .refuses = refuses, .plan = plan }

static const webgpu_row rows[] = {
  ROW(TM_OP_NEG, "neg", 0), ROW(TM_OP_ABS, "abs", 0), ROW(TM_OP_RELU, "relu", 0), ROW(TM_OP_CLAMP, "clamp", 0),
  ROW(TM_OP_COMPARE, "compare", sizeof(tm_compare_attributes)),
};

const kernel_row_table webgpu_rows_select = { rows, sizeof rows / sizeof rows[0] };
