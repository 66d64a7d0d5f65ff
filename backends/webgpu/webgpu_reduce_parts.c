/* SPDX-License-Identifier: Apache-2.0 */
/* min, max, argmax and the sum of integers: parts of the terms may be reduced in any order, so all rows are bit-equal. */
#include "webgpu_number.h"
#include "webgpu_reduce.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define SUM_WORDS     2u        /* what a part leaves in the workspace */
#define EXTREME_WORDS 3u

static const char *const extreme_shaders[] = { webgpu_wgsl_wide, webgpu_wgsl_reduce, webgpu_wgsl_reduce_extreme, 0 };
static const char *const sum_shaders[] = { webgpu_wgsl_wide, webgpu_wgsl_reduce, webgpu_wgsl_reduce_integer, 0 };

static uint64_t workspace_bytes(const webgpu_limits *limits, const tm_operation *operation) {
  kernel_reduction r;
  (void)limits;
  kernel_reduction_make(operation, &r);
  const uint64_t parts = webgpu_reduction_parts(&r);
  if (parts == 1) return 0;
  return r.output_count * parts * (operation->op == TM_OP_SUM ? SUM_WORDS : EXTREME_WORDS) * sizeof(uint32_t);
}

static uint32_t refuses_sum(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  *out_operand = 1;
  if (webgpu_number_sign(operation->operands[1].format) == 0) return TM_REASON_FORMAT;
  return webgpu_refuses_reduction(limits, operation, out_operand);
}

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  return webgpu_work_ns(limits, WEBGPU_WORK_PART, (double)operation->operands[0].element_count, kernel_operand_bytes(operation));
}

/* ---- text ---- */

/* Magnitudes of floats at the upper end of 64 bits: the largest that is a number, and infinity (without one, NaN). */
static void say_float(uint32_t format, uint32_t op, webgpu_plan *plan) {
  static const struct { uint32_t format, infinite[2], nothing[2]; } facts[] = {
    { TM_FORMAT_F64, { 0, 0x7ff00000 }, { 0, 0x7ff00000 } },  { TM_FORMAT_F32, { 0, 0x7f800000 }, { 0x7f800000, 0 } },
    { TM_FORMAT_F16, { 0, 0x7c000000 }, { 0x7c00, 0 } },      { TM_FORMAT_BF16, { 0, 0x7f800000 }, { 0x7f80, 0 } },
    { TM_FORMAT_F8_E4M3FN, { 0, 0x7e000000 }, { 0x7f, 0 } },  { TM_FORMAT_F8_E5M2, { 0, 0x7c000000 }, { 0x7c, 0 } },
  };
  uint32_t i = 0;
  while (facts[i].format != format) i++;
  const uint32_t sign = op == TM_OP_MIN ? 0 : UINT32_C(1) << (8 * (format == TM_FORMAT_F64 ? 4 : kernel_element_bytes(format)) - 1);
  const uint32_t low = facts[i].nothing[0] | (format == TM_FORMAT_F64 ? 0 : sign);
  const uint32_t high = facts[i].nothing[1] | (format == TM_FORMAT_F64 ? sign : 0);
  webgpu_say(plan, "const INFINITE = vec2<u32>(%uu, %uu);\nconst OF_NOTHING = vec2<u32>(%uu, %uu);\n", facts[i].infinite[0],
             facts[i].infinite[1], low, high);
}

static void say_integer(uint32_t format, uint32_t op, webgpu_plan *plan) {
  const uint32_t bits = 8 * kernel_element_bytes(format);
  const uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1, top = (mask >> 1) + 1;
  const int is_signed = webgpu_number_sign(format) > 0;
  const uint64_t largest = is_signed ? mask ^ top : mask, smallest = is_signed ? top : 0;
  const uint64_t nothing = op == TM_OP_MIN ? largest : smallest;
  webgpu_say(plan, "const INFINITE = vec2<u32>(0u, 0u);\nconst OF_NOTHING = vec2<u32>(%uu, %uu);\n", (uint32_t)nothing,
             (uint32_t)(nothing >> 32));
}

static void say_kind(const tm_operation *operation, webgpu_plan *plan) {
  const uint32_t format = operation->operands[0].format;
  const int sign = webgpu_number_sign(format);
  webgpu_say(plan, "const FLOAT = 0u;\nconst SIGNED = 1u;\nconst UNSIGNED = 2u;\nconst KIND = %s;\n",
             sign == 0 ? "FLOAT" : sign > 0 ? "SIGNED" : "UNSIGNED");
  webgpu_say(plan, "const MIN = %uu;\nconst ARGMAX = %uu;\nconst OP = %uu;\n", TM_OP_MIN, TM_OP_ARGMAX, operation->op);
  if (sign == 0) say_float(format, operation->op, plan);
  else say_integer(format, operation->op, plan);
}

static void say_output(uint32_t format, webgpu_plan *plan) {
  const uint32_t bytes = kernel_element_bytes(format);
  webgpu_say(plan, "const Y_BYTES = %uu;\nconst Y_MASK = %uu;\n", bytes, 0xffffffffu >> (bytes < 4 ? 32 - 8 * bytes : 0));
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  kernel_reduction r;
  (void)row;
  kernel_reduction_make(operation, &r);
  webgpu_say_reduction(operation, &r, out_plan);
  say_output(operation->operands[1].format, out_plan);
  say_kind(operation, out_plan);
  const uint64_t parts = webgpu_reduction_parts(&r);
  if (parts == 1) {
    webgpu_add_reduction_pass(limits, operation, &r, "direct", r.output_count, 1, out_plan);
    return;
  }
  webgpu_add_reduction_pass(limits, operation, &r, "parts", r.output_count * parts, parts, out_plan);
  webgpu_add_reduction_pass(limits, operation, &r, "results", r.output_count, parts, out_plan);
}

#define ROW(OP, NAME, X, Y, SHADERS, REFUSES)                                                                           \
  { .op = OP, .formats = { TM_FORMAT_##X, Y }, .attribute_bytes = sizeof(tm_reduce_attributes),                         \
    WEBGPU_BIT_EQUAL, .name = "webgpu_" NAME, .shaders = SHADERS, .refuses = REFUSES,             \
    .split = webgpu_split_reduction, .cost_ns = cost_ns, .workspace_bytes = workspace_bytes, .plan = plan },
#define EXTREMES(X, x)                                                                                                  \
  ROW(TM_OP_MIN, "min_" #x, X, TM_FORMAT_##X, extreme_shaders, webgpu_refuses_reduction)                                \
  ROW(TM_OP_MAX, "max_" #x, X, TM_FORMAT_##X, extreme_shaders, webgpu_refuses_reduction)                                \
  ROW(TM_OP_ARGMAX, "argmax_" #x, X, TM_FORMAT_I64, extreme_shaders, webgpu_refuses_reduction)
#define INTEGER(X, x)                                                                                                   \
  EXTREMES(X, x)                                                                                                        \
  ROW(TM_OP_SUM, "sum_" #x, X, TM_FORMAT_NONE, sum_shaders, refuses_sum)

static const webgpu_row rows[] = {
  EXTREMES(F64, f64) EXTREMES(F32, f32) EXTREMES(F16, f16) EXTREMES(BF16, bf16) EXTREMES(F8_E4M3FN, f8_e4m3fn)
  EXTREMES(F8_E5M2, f8_e5m2)
  INTEGER(I8, i8) INTEGER(U8, u8) INTEGER(I16, i16) INTEGER(U16, u16) INTEGER(I32, i32) INTEGER(U32, u32) INTEGER(I64, i64)
  INTEGER(U64, u64)
};

const kernel_row_table webgpu_rows_reduce_parts = { rows, sizeof rows / sizeof rows[0] };
