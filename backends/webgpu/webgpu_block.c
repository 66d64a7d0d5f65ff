/* SPDX-License-Identifier: Apache-2.0 */
/* q8_0 and q4_0 into floats and back, bit for bit: webgpu_dequantize.wgsl, webgpu_quantize.wgsl. */
#include "webgpu_elementwise.h"
#include "webgpu_number.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define BLOCK_ELEMENTS   32u
#define QUAD_ELEMENTS    4u
#define PAIR_ELEMENTS    64u
#define LARGEST_COUNT    UINT64_C(0xfffffff0)

static const char *const decode_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_block, webgpu_wgsl_dequantize, 0 };
static const char *const encode_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_quantize, 0 };

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  (void)limits;
  const uint32_t reasons = kernel_refuses_strided(operation, out_operand);
  if (reasons != 0) return reasons;
  return operation->operands[0].element_count > LARGEST_COUNT ? TM_REASON_SIZE : 0;
}

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  const webgpu_work work = operation->op == TM_OP_DEQUANTIZE ? WEBGPU_WORK_DEQUANTIZE : WEBGPU_WORK_QUANTIZE;
  return webgpu_work_ns(limits, work, (double)operation->operands[0].element_count, kernel_operand_bytes(operation));
}

/* Rows are whole blocks, so the bytes of a part are found from its rows; webgpu_split_output knows plain formats only. */
static int split(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[1];
  const uint64_t largest = x->byte_count > y->byte_count ? x->byte_count : y->byte_count;
  const uint64_t parts = largest / (limits->binding_bytes - limits->offset_alignment) + 1;
  for (uint32_t axis = 0; axis < x->rank; ++axis) {
    const uint64_t unit = axis + 1 == x->rank ? BLOCK_ELEMENTS : 1;
    if (x->dims[axis] < 2 * unit) continue;
    const uint64_t part = x->dims[axis] / parts / unit * unit;
    *out_change = (tm_change){ .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis = axis, .value = part < unit ? unit : part };
    return 1;
  }
  return 0;
}

static void plan_decode(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const tm_operand *y = &operation->operands[1];
  const uint64_t quads = y->element_count / QUAD_ELEMENTS;
  (void)row;
  webgpu_say_bindings(out_plan, operation, 0);
  webgpu_say(out_plan, "const BLOCK_BYTES = %uu;\nconst Y_BYTES = %uu;\n", kernel_block_bytes(operation->operands[0].format),
             kernel_element_bytes(y->format));
  webgpu_say(out_plan, "fn block_word(i: u32) -> u32 { return x0[i]; }\n");
  webgpu_say(out_plan, "fn narrow(bits: u32) -> u32 { return %s_from_bits(bits); }\n", webgpu_float_name(y->format));
  webgpu_pass *pass = webgpu_add_pass(limits, out_plan, "run", quads);
  if (pass != NULL) webgpu_put(pass, (uint32_t)quads);
}

static void plan_encode(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const tm_operand *x = &operation->operands[0];
  const uint64_t pairs = (x->element_count + PAIR_ELEMENTS - 1) / PAIR_ELEMENTS;
  (void)row;
  webgpu_say_bindings(out_plan, operation, 0);
  webgpu_say(out_plan, "const BLOCK_BYTES = %uu;\nconst X_BYTES = %uu;\n", kernel_block_bytes(operation->operands[1].format),
             kernel_element_bytes(x->format));
  webgpu_say(out_plan, "fn from_x(raw: u32) -> u32 { return bits_from_%s(raw); }\n", webgpu_float_name(x->format));
  webgpu_pass *pass = webgpu_add_pass(limits, out_plan, "run", pairs);
  if (pass == NULL) return;
  webgpu_put(pass, (uint32_t)pairs);
  webgpu_put(pass, (uint32_t)(x->element_count / BLOCK_ELEMENTS));
}

#define ROW(OP, NAME, X, x, Y, y, SHADERS, PLAN)                                                                        \
  { .op = OP, .formats = { TM_FORMAT_##X, TM_FORMAT_##Y }, WEBGPU_BIT_EQUAL,                      \
    .name = "webgpu_" #NAME "_" #x "_" #y, .shaders = SHADERS, .refuses = refuses, .split = split, .cost_ns = cost_ns,  \
    .plan = PLAN },
#define ROWS(B, b, F, f)                                                                                                \
  ROW(TM_OP_DEQUANTIZE, dequantize, B, b, F, f, decode_shaders, plan_decode)                                            \
  ROW(TM_OP_QUANTIZE, quantize, F, f, B, b, encode_shaders, plan_encode)

static const webgpu_row rows[] = {
  ROWS(Q8_0, q8_0, F32, f32) ROWS(Q8_0, q8_0, F16, f16) ROWS(Q8_0, q8_0, BF16, bf16)
  ROWS(Q4_0, q4_0, F32, f32) ROWS(Q4_0, q4_0, F16, f16) ROWS(Q4_0, q4_0, BF16, bf16)
};

const kernel_row_table webgpu_rows_block = { rows, sizeof rows / sizeof rows[0] };
