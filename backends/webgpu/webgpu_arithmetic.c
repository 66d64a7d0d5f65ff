/* SPDX-License-Identifier: Apache-2.0 */
/*
 * add, sub, mul, div, sqrt, all on bits (docs/decisions/009).  Floats of 8 and 16 bits are widened to f32, computed there
 * and narrowed: two roundings that together equal one, since f32 has at least 2p + 2 digits for their p, and what is
 * subnormal in bf16 is exact or no tie in f32.
 */
#include "webgpu_elementwise.h"

/* What one operation is for each kind of number. */
typedef struct arithmetic {
  uint32_t    op;
  const char *bodies[WEBGPU_UNSIGNED + 1];
} arithmetic;

#define ANY_INTEGER(text) [WEBGPU_SIGNED] = text, [WEBGPU_UNSIGNED] = text

static const arithmetic operations[] = {
  { TM_OP_ADD, { [WEBGPU_FLOAT] = "return narrow(add_bits(wide(a), wide(b)));", ANY_INTEGER("return a + b;") } },
  { TM_OP_SUB, { [WEBGPU_FLOAT] = "return narrow(sub_bits(wide(a), wide(b)));", ANY_INTEGER("return a - b;") } },
  { TM_OP_MUL, { [WEBGPU_FLOAT] = "return narrow(mul_bits(wide(a), wide(b)));", ANY_INTEGER("return a * b;") } },
  { TM_OP_DIV, {
      [WEBGPU_FLOAT] = "return narrow(div_bits(wide(a), wide(b)));",
      [WEBGPU_SIGNED] = "let s = wide(a); let t = wide(b); if (t == 0u) { return 0u; }\n"
                        "  let q = select(s, 0u - s, s >= 0x80000000u) / select(t, 0u - t, t >= 0x80000000u);\n"
                        "  return select(q, 0u - q, (s ^ t) >= 0x80000000u);",
      [WEBGPU_UNSIGNED] = "if (b == 0u) { return 0u; }\n  return a / b;" } },
  { TM_OP_SQRT, { [WEBGPU_FLOAT] = "return narrow(sqrt_bits(wide(a)));" } },
};

static const char *body_of(const tm_operation *operation) {
  const webgpu_kind kind = webgpu_kind_of(operation->operands[0].format);
  for (uint32_t i = 0; i < sizeof operations / sizeof operations[0]; ++i) {
    if (operations[i].op == operation->op) return operations[i].bodies[kind];
  }
  return 0;
}

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  *out_operand = 0;
  return body_of(operation) == 0 ? TM_REASON_FORMAT : webgpu_refuses_numbers(limits, operation, out_operand);
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  (void)row;
  webgpu_plan_body(limits, operation, body_of(operation), out_plan);
}

#define ROW(OP, NAME)                                                                                                   \
  { .op = OP, WEBGPU_EXACT, .name = "webgpu_" NAME, .shaders = webgpu_exact_shaders, .refuses = refuses, .plan = plan }

static const webgpu_row rows[] = {
  ROW(TM_OP_ADD, "add"), ROW(TM_OP_SUB, "sub"), ROW(TM_OP_MUL, "mul"), ROW(TM_OP_DIV, "div"), ROW(TM_OP_SQRT, "sqrt"),
};

const kernel_row_table webgpu_rows_arithmetic = { rows, sizeof rows / sizeof rows[0] };
