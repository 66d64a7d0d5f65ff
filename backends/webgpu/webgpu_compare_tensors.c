/* SPDX-License-Identifier: Apache-2.0 */
/* compare_tensors, bit for bit: webgpu_compare_tensors.wgsl.  Formats whose values fit an f32, densely packed; b may be blocks. */
#include "webgpu_elementwise.h"
#include "webgpu_number.h"
#include "webgpu_one_pass.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define BLOCK        512u
#define LANES        16u
#define RECORD_BYTES 56u

static const char *const plain_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_digits,
                                             webgpu_wgsl_compare_tensors, 0 };
static const char *const block_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_block, webgpu_wgsl_digits,
                                             webgpu_wgsl_compare_tensors, 0 };

static int is_short_float(uint32_t format) {
  return format == TM_FORMAT_F16 || format == TM_FORMAT_BF16 || format == TM_FORMAT_F8_E4M3FN || format == TM_FORMAT_F8_E5M2;
}

static int has_chains(const tm_operation *operation) {
  return is_short_float(operation->operands[0].format) && is_short_float(operation->operands[1].format);
}

static uint64_t blocks_of(const tm_operand *x) { return (x->element_count + BLOCK - 1) / BLOCK; }

static uint64_t records_bytes(const tm_operand *x) { return webgpu_superblocks_of(x) * LANES * RECORD_BYTES; }

static uint64_t workspace_bytes(const webgpu_limits *limits, const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0];
  (void)limits;
  return records_bytes(x) + (has_chains(operation) ? blocks_of(x) * sizeof(uint32_t) : 0);
}

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  return webgpu_work_ns(limits, WEBGPU_WORK_COMPARE, (double)operation->operands[0].element_count, kernel_operand_bytes(operation));
}

/* Of one format the elements themselves are compared; of two their values: 0 is -0, and any NaN another one. */
static void say_sameness(webgpu_plan *plan, uint32_t a, uint32_t b) {
  if (a == b) {
    webgpu_say(plan, "fn is_same(e: u32) -> bool { return x_raw(e) == z_raw(e); }\n");
    return;
  }
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t format = i == 0 ? a : b;
    const char name = i == 0 ? 'x' : 'z';
    webgpu_say(plan, "fn %c_whole(e: u32) -> u32 {\n", name);
    if (format == TM_FORMAT_F32) webgpu_say(plan, "  return %c_raw(e);\n}\n", name);
    else if (format == TM_FORMAT_BF16) webgpu_say(plan, "  return %c_raw(e) << 16u;\n}\n", name);
    else if (format != TM_FORMAT_F16) webgpu_say(plan, "  return %c_value(e);\n}\n", name);
    else webgpu_say(plan, "  let raw = %c_raw(e);\n  let nan = ((raw & 0x8000u) << 16u) | 0x7f800000u | ((raw & 0x3ffu) << 13u);\n"
                          "  return select(bits_from_f16(raw), nan, (raw & 0x7fffu) > 0x7c00u);\n}\n", name);
  }
  webgpu_say(plan, "fn is_same(e: u32) -> bool {\n  let a = x_whole(e);\n  let b = z_whole(e);\n"
                   "  return a == b || ((a | b) & 0x7fffffffu) == 0u || min(a & 0x7fffffffu, b & 0x7fffffffu) > 0x7f800000u;\n}\n");
}

static void add_pass(const webgpu_limits *limits, const tm_operand *x, const char *entry, uint64_t items, webgpu_plan *plan) {
  webgpu_pass *pass = webgpu_add_pass(limits, plan, entry, items);
  if (pass == NULL) return;
  webgpu_put(pass, (uint32_t)x->element_count);
  webgpu_put(pass, (uint32_t)webgpu_superblocks_of(x));
  webgpu_put(pass, (uint32_t)(records_bytes(x) / sizeof(uint32_t)));
  webgpu_put(pass, (uint32_t)items);
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const tm_operand *x = &operation->operands[0];
  (void)row;
  webgpu_say_bindings(out_plan, operation, 1);
  webgpu_say(out_plan, "const SUMS = 4u;\nconst CHAINS = %s;\n", has_chains(operation) ? "true" : "false");
  webgpu_say_values(out_plan, 0, x->format);
  webgpu_say_values(out_plan, 1, operation->operands[1].format);
  say_sameness(out_plan, x->format, operation->operands[1].format);
  if (has_chains(operation)) add_pass(limits, x, "blocks", blocks_of(x), out_plan);
  add_pass(limits, x, "lanes", webgpu_superblocks_of(x) * LANES, out_plan);
  add_pass(limits, x, "superblocks", webgpu_superblocks_of(x), out_plan);
  add_pass(limits, x, "result", 1, out_plan);
}

#define ROW(A, a, B, b, SHADERS)                                                                                        \
  { .op = TM_OP_COMPARE_TENSORS, .formats = { TM_FORMAT_##A, TM_FORMAT_##B, TM_FORMAT_U64 }, \
    WEBGPU_BIT_EQUAL, .name = "webgpu_compare_tensors_" #a "_" #b, .shaders = SHADERS, .refuses = webgpu_refuses_one_pass,  \
    .split = webgpu_split_one_pass, .cost_ns = cost_ns, .workspace_bytes = workspace_bytes, .plan = plan },
#define SAME(X, x) ROW(X, x, X, x, plain_shaders)
#define MIXED(A, a)                                                                                                     \
  ROW(A, a, F32, f32, plain_shaders) ROW(A, a, F16, f16, plain_shaders) ROW(A, a, BF16, bf16, plain_shaders)            \
  ROW(A, a, Q8_0, q8_0, block_shaders) ROW(A, a, Q4_0, q4_0, block_shaders)

static const webgpu_row rows[] = {
  MIXED(F32, f32) MIXED(F16, f16) MIXED(BF16, bf16)
  SAME(F8_E4M3FN, f8_e4m3fn) SAME(F8_E5M2, f8_e5m2) SAME(I8, i8) SAME(U8, u8) SAME(I16, i16) SAME(U16, u16)
};

const kernel_row_table webgpu_rows_compare_tensors = { rows, sizeof rows / sizeof rows[0] };
