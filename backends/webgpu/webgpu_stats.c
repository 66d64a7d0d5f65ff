/* SPDX-License-Identifier: Apache-2.0 */
/* stats, bit for bit: webgpu_stats.wgsl.  Formats whose values fit an f32, densely packed. */
#include "webgpu_elementwise.h"
#include "webgpu_number.h"
#include "webgpu_one_pass.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define BLOCK        512u
#define LANES        16u
#define RECORD_BYTES 48u

static const char *const plain_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_no_block, webgpu_wgsl_digits,
                                             webgpu_wgsl_stats, 0 };
static const char *const block_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_block, webgpu_wgsl_digits,
                                             webgpu_wgsl_stats, 0 };

static int is_block(uint32_t format) { return format == TM_FORMAT_Q8_0 || format == TM_FORMAT_Q4_0; }

static int has_chains(uint32_t format) {
  return format == TM_FORMAT_F16 || format == TM_FORMAT_BF16 || format == TM_FORMAT_F8_E4M3FN || format == TM_FORMAT_F8_E5M2;
}

static uint64_t blocks_of(const tm_operand *x) { return (x->element_count + BLOCK - 1) / BLOCK; }

static uint64_t records_bytes(const tm_operand *x) { return webgpu_superblocks_of(x) * LANES * RECORD_BYTES; }

static uint64_t workspace_bytes(const webgpu_limits *limits, const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0];
  (void)limits;
  return records_bytes(x) + (has_chains(x->format) ? blocks_of(x) * sizeof(uint32_t) : 0) + sizeof(uint32_t);
}

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  return webgpu_work_ns(limits, WEBGPU_WORK_STATS, (double)operation->operands[0].element_count, kernel_operand_bytes(operation));
}

/* ---- text ---- */

/* Bits of an f32; 0 where the format has no subnormal numbers. */
static uint32_t smallest_normal_of(uint32_t format) {
  switch (format) {
    case TM_FORMAT_F32:
    case TM_FORMAT_BF16: return 0x00800000;
    case TM_FORMAT_F16:
    case TM_FORMAT_F8_E5M2: return 0x38800000;
    case TM_FORMAT_F8_E4M3FN: return 0x3c800000;
    default: return 0;
  }
}

static void say(const tm_operation *operation, webgpu_plan *plan) {
  const uint32_t format = operation->operands[0].format;
  webgpu_say_bindings(plan, operation, 1);
  webgpu_say(plan, "const SUMS = 2u;\nconst CHAINS = %s;\nconst GROUPS = %s;\nconst SMALLEST_NORMAL = %uu;\n",
             has_chains(format) ? "true" : "false", is_block(format) ? "true" : "false", smallest_normal_of(format));
  webgpu_say_values(plan, 0, format);
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
  say(operation, out_plan);
  if (has_chains(x->format)) add_pass(limits, x, "blocks", blocks_of(x), out_plan);
  add_pass(limits, x, "lanes", webgpu_superblocks_of(x) * LANES, out_plan);
  add_pass(limits, x, "superblocks", webgpu_superblocks_of(x), out_plan);
  add_pass(limits, x, "result", 1, out_plan);
}

#define ROW(X, x, SHADERS)                                                                                              \
  { .op = TM_OP_STATS, .formats = { TM_FORMAT_##X, TM_FORMAT_U64 }, WEBGPU_BIT_EQUAL,             \
    .name = "webgpu_stats_" #x, .shaders = SHADERS, .refuses = webgpu_refuses_one_pass, .split = webgpu_split_one_pass, \
    .cost_ns = cost_ns, .workspace_bytes = workspace_bytes, .plan = plan },

static const webgpu_row rows[] = {
  ROW(F32, f32, plain_shaders) ROW(F16, f16, plain_shaders) ROW(BF16, bf16, plain_shaders)
  ROW(F8_E4M3FN, f8_e4m3fn, plain_shaders) ROW(F8_E5M2, f8_e5m2, plain_shaders) ROW(I8, i8, plain_shaders)
  ROW(U8, u8, plain_shaders) ROW(I16, i16, plain_shaders) ROW(U16, u16, plain_shaders) ROW(Q8_0, q8_0, block_shaders)
  ROW(Q4_0, q4_0, block_shaders)
};

const kernel_row_table webgpu_rows_stats = { rows, sizeof rows / sizeof rows[0] };
