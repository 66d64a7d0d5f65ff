/* SPDX-License-Identifier: Apache-2.0 */
/*
 * add, sub, mul, div, sqrt of floats, in f32; add, sub, mul, div of integers.
 *
 * WGSL rounds + - * to one of the two neighbours, whichever it likes, / within 2.5 ulp, and may flush subnormals.  In f16
 * and bf16 an f32 carries more than twice the digits, so such an error moves the second rounding by one step at most.  A
 * product of two f16 is exact in f32 and never subnormal there: it is bit-equal.
 */
#include "webgpu_elementwise.h"

#define FLOAT(OP, NAME, T, FORMAT, BOUND, ...)                                                                          \
  { .op = OP, .formats = { __VA_ARGS__ }, WEBGPU_ELEMENTWISE, .numerics = TM_NUMERICS_N1, .numerics_bound = BOUND,       \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE | TM_NUMERICS_FLUSHES,                        \
    .name = "webgpu_" #NAME "_" #T, .body = NAME##_BODY },
#define INTEGER(OP, NAME, T, FORMAT)                                                                                    \
  { .op = OP, .formats = { FORMAT, FORMAT, FORMAT }, WEBGPU_ELEMENTWISE, WEBGPU_EXACT, .name = "webgpu_" #NAME "_" #T,   \
    .body = NAME##_WHOLE },

#define add_BODY "return result(real(a) + real(b));"
#define sub_BODY "return result(real(a) - real(b));"
#define mul_BODY "return result(real(a) * real(b));"
#define div_BODY "return result(real(a) / real(b));"
#define sqrt_BODY "return result(sqrt(real(a)));"
#define add_WHOLE "return a + b;"
#define sub_WHOLE "return a - b;"
#define mul_WHOLE "return a * b;"

#define FLOATS(T, FORMAT, DIV_BOUND)                                                                                    \
  FLOAT(TM_OP_ADD, add, T, FORMAT, 1.0, FORMAT, FORMAT, FORMAT)                                                         \
  FLOAT(TM_OP_SUB, sub, T, FORMAT, 1.0, FORMAT, FORMAT, FORMAT)                                                         \
  FLOAT(TM_OP_MUL, mul, T, FORMAT, 1.0, FORMAT, FORMAT, FORMAT)                                                         \
  FLOAT(TM_OP_DIV, div, T, FORMAT, DIV_BOUND, FORMAT, FORMAT, FORMAT)                                                   \
  FLOAT(TM_OP_SQRT, sqrt, T, FORMAT, DIV_BOUND, FORMAT, FORMAT)

#define INTEGERS(T, FORMAT)                                                                                             \
  INTEGER(TM_OP_ADD, add, T, FORMAT)                                                                                    \
  INTEGER(TM_OP_SUB, sub, T, FORMAT)                                                                                    \
  INTEGER(TM_OP_MUL, mul, T, FORMAT)

static const webgpu_row rows[] = {
  { .op = TM_OP_MUL, .formats = { TM_FORMAT_F16, TM_FORMAT_F16, TM_FORMAT_F16 }, WEBGPU_ELEMENTWISE, WEBGPU_EXACT,
    .name = "webgpu_mul_f16", .body = mul_BODY },
  FLOATS(f32, TM_FORMAT_F32, 4.0)
  FLOATS(f16, TM_FORMAT_F16, 1.0)
  FLOATS(bf16, TM_FORMAT_BF16, 1.0)
  INTEGERS(i8, TM_FORMAT_I8)
  INTEGERS(u8, TM_FORMAT_U8)
  INTEGERS(i16, TM_FORMAT_I16)
  INTEGERS(u16, TM_FORMAT_U16)
  INTEGERS(i32, TM_FORMAT_I32)
  INTEGERS(u32, TM_FORMAT_U32)
};

const webgpu_row_table webgpu_rows_arithmetic = { rows, sizeof rows / sizeof rows[0] };
