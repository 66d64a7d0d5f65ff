/* SPDX-License-Identifier: Apache-2.0 */
/* sum and mean in f64 and in the canonical order, on integers, so bit-equal: webgpu_reduce_sum.wgsl. */
#include "webgpu_elementwise.h"
#include "webgpu_number.h"
#include "webgpu_reduce.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define SUPERBLOCK   32768u
#define LANES        16u
#define WIDE_BYTES   8u
#define FEW_TERMS    64u        /* which one invocation may as well add alone */
#define MOST_TERMS   (WEBGPU_MOST_TURNS / (TM_MAX_RANK + 2))    /* that it can: a term costs a turn for each axis as well */
#define SUPERBLOCK_TURNS 6u     /* of adding one exactly, and its first digit's carry now and then */
#define MANY_OUTPUTS 1024u

static const char *const shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_reduce, webgpu_wgsl_reduce_sum, 0 };

static uint64_t superblocks_of(const kernel_reduction *r) { return r->term_count == 0 ? 1 : (r->term_count - 1) / SUPERBLOCK + 1; }

static int is_direct(const kernel_reduction *r) {
  return r->term_count <= FEW_TERMS || (r->output_count >= MANY_OUTPUTS && r->term_count <= MOST_TERMS);
}

static uint64_t workspace_bytes(const webgpu_limits *limits, const tm_operation *operation) {
  kernel_reduction r;
  (void)limits;
  kernel_reduction_make(operation, &r);
  return r.output_count == 0 || is_direct(&r) ? 0 : r.output_count * superblocks_of(&r) * LANES * WIDE_BYTES;
}

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  const uint32_t reasons = webgpu_refuses_reduction(limits, operation, out_operand);
  if (reasons != 0) return reasons;
  if (workspace_bytes(limits, operation) > limits->binding_bytes) return TM_REASON_SIZE;
  kernel_reduction r;
  kernel_reduction_make(operation, &r);
  return superblocks_of(&r) > WEBGPU_MOST_TURNS / SUPERBLOCK_TURNS ? TM_REASON_SIZE : 0;
}

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  return webgpu_work_ns(limits, WEBGPU_WORK_SUM, (double)operation->operands[0].element_count, kernel_operand_bytes(operation));
}

static void say_formats(const tm_operation *operation, webgpu_plan *plan) {
  const uint32_t x = operation->operands[0].format;
  webgpu_say_result(plan, operation->operands[1].format);
  webgpu_say(plan, "const MEAN = %uu;\nconst OP = %uu;\n", TM_OP_MEAN, operation->op);
  webgpu_say(plan, "fn wide_of_raw(raw: u32) -> vec2<u32> {\n");
  if (webgpu_float_name(x) != 0) {
    webgpu_say(plan, "  return wide_of_f32(bits_from_%s(raw));\n}\n", webgpu_float_name(x));
  } else if (webgpu_number_sign(x) > 0) {
    webgpu_say(plan, "  return wide_of_i32(extractBits(bitcast<i32>(raw), 0u, %uu));\n}\n", 8 * kernel_element_bytes(x));
  } else {
    webgpu_say(plan, "  return wide_of_u32(raw);\n}\n");
  }
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  kernel_reduction r;
  (void)row;
  kernel_reduction_make(operation, &r);
  webgpu_say_reduction(operation, &r, out_plan);
  say_formats(operation, out_plan);
  if (is_direct(&r)) {
    webgpu_add_reduction_pass(limits, operation, &r, "direct", r.output_count, 1, out_plan);
    return;
  }
  const uint64_t parts = superblocks_of(&r), sums = r.output_count * parts;
  webgpu_add_reduction_pass(limits, operation, &r, "lanes", sums * LANES, parts, out_plan);
  webgpu_add_reduction_pass(limits, operation, &r, "superblocks", sums, parts, out_plan);
  webgpu_add_reduction_pass(limits, operation, &r, "results", r.output_count, parts, out_plan);
}

#define ROW(OP, NAME, X, x, Y, y)                                                                                       \
  { .op = OP, .formats = { TM_FORMAT_##X, TM_FORMAT_##Y }, .attribute_bytes = sizeof(tm_reduce_attributes),             \
    WEBGPU_BIT_EQUAL, .name = "webgpu_" #NAME "_" #x "_" #y, .shaders = shaders,                  \
    .refuses = refuses, .split = webgpu_split_reduction, .cost_ns = cost_ns, .workspace_bytes = workspace_bytes,        \
    .plan = plan },
#define ROWS(OP, NAME, X, x)                                                                                            \
  ROW(OP, NAME, X, x, F32, f32) ROW(OP, NAME, X, x, F16, f16) ROW(OP, NAME, X, x, BF16, bf16) ROW(OP, NAME, X, x, F64, f64)
#define FLOATS(OP, NAME)                                                                                                \
  ROWS(OP, NAME, F32, f32) ROWS(OP, NAME, F16, f16) ROWS(OP, NAME, BF16, bf16) ROWS(OP, NAME, F8_E4M3FN, f8_e4m3fn)     \
  ROWS(OP, NAME, F8_E5M2, f8_e5m2)

static const webgpu_row rows[] = {
  FLOATS(TM_OP_SUM, sum)
  FLOATS(TM_OP_MEAN, mean)
  ROWS(TM_OP_MEAN, mean, I8, i8)
  ROWS(TM_OP_MEAN, mean, U8, u8)
  ROWS(TM_OP_MEAN, mean, I16, i16)
  ROWS(TM_OP_MEAN, mean, U16, u16)
  ROWS(TM_OP_MEAN, mean, I32, i32)
  ROWS(TM_OP_MEAN, mean, U32, u32)
};

const kernel_row_table webgpu_rows_reduce_sum = { rows, sizeof rows / sizeof rows[0] };
