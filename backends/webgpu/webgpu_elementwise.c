/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_elementwise.h"

#include "webgpu_shaders.h"

#define ELEMENTS_PER_US 20000.0

const char *const webgpu_elementwise_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_elementwise, 0 };

const char *webgpu_float_name(uint32_t format) {
  switch (format) {
    case TM_FORMAT_F32: return "f32";
    case TM_FORMAT_F16: return "f16";
    case TM_FORMAT_BF16: return "bf16";
    case TM_FORMAT_F8_E4M3FN: return "f8_e4m3fn";
    case TM_FORMAT_F8_E5M2: return "f8_e5m2";
    default: return 0;
  }
}

int webgpu_integer_sign(uint32_t format) {
  switch (format) {
    case TM_FORMAT_I8:
    case TM_FORMAT_I16:
    case TM_FORMAT_I32: return 1;
    case TM_FORMAT_U8:
    case TM_FORMAT_U16:
    case TM_FORMAT_U32:
    case TM_FORMAT_BOOL: return -1;
    default: return 0;
  }
}

static int strides_fit(const tm_operand *operand, int64_t bytes) {
  for (uint32_t i = 0; i < operand->rank; ++i) {
    if (operand->strides_bytes[i] % bytes != 0) return 0;
  }
  return 1;
}

/* The lowest element lies on the device's granule, and the others whole elements away from it. */
uint32_t webgpu_refuses_elementwise(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  (void)limits;
  for (uint32_t i = 0; i <= operation->input_count; ++i) {
    const tm_operand *operand = &operation->operands[i];
    const uint32_t bytes = webgpu_element_bytes(operand->format);
    *out_operand = i;
    if (bytes != 1 && bytes != 2 && bytes != 4) return TM_REASON_FORMAT;
    if (!strides_fit(operand, bytes)) return TM_REASON_LAYOUT;
  }
  return operation->operands[operation->input_count].flags & TM_OPERAND_CONTIGUOUS ? 0 : TM_REASON_LAYOUT;
}

uint64_t webgpu_cost_elementwise(const webgpu_limits *limits, const tm_operation *operation) {
  const double elements = (double)operation->operands[operation->input_count].element_count;
  return webgpu_cost_ns(limits, elements, ELEMENTS_PER_US, webgpu_operand_bytes(operation));
}

/* ---- text ---- */

/* How the bits of an element are taken out of its word; `at` counts bytes. */
static void say_load(webgpu_plan *plan, uint32_t input, const tm_operand *operand, const char *at) {
  const uint32_t bytes = webgpu_element_bytes(operand->format);
  webgpu_say(plan, "fn load%u(e: u32) -> u32 {\n  let at = %s;\n", input, at);
  if (bytes == 4) webgpu_say(plan, "  return x%u[at >> 2u];\n}\n", input);
  else webgpu_say(plan, "  return (x%u[at >> 2u] >> ((at & 3u) * 8u)) & 0x%xu;\n}\n", input, bytes == 1 ? 0xffu : 0xffffu);
}

/* A dense input has the output's order of elements if it has its element count: it can only be the output's shape. */
static void say_input(webgpu_plan *plan, const tm_operation *operation, uint32_t input) {
  const tm_operand *x = &operation->operands[input], *y = &operation->operands[operation->input_count];
  char at[48] = "p.first[0]";
  if ((x->flags & TM_OPERAND_CONTIGUOUS) != 0 && x->element_count == y->element_count) {
    static const char *const dense[] = { "", "e", "e * 2u", "", "e * 4u" };
    say_load(plan, input, x, dense[webgpu_element_bytes(x->format)]);
    return;
  }
  const char *from = x->element_count == 1 ? "p.first[?]" : "place(?u, e)";
  uint32_t i = 0;
  for (; from[i] != '\0'; ++i) at[i] = from[i] == '?' ? (char)('0' + input) : from[i];
  at[i] = '\0';
  say_load(plan, input, x, at);
}

static void say_conversions(webgpu_plan *plan, uint32_t from, uint32_t to) {
  const char *in = webgpu_float_name(from), *out = webgpu_float_name(to);
  const uint32_t bits = 8 * webgpu_element_bytes(from);
  if (in != 0) {
    webgpu_say(plan, "fn wide(v: u32) -> u32 { return bits_from_%s(v); }\nfn real(v: u32) -> f32 { return bitcast<f32>(wide(v)); }\n", in);
  } else if (webgpu_integer_sign(from) > 0) {
    webgpu_say(plan, "fn wide(v: u32) -> u32 { return bitcast<u32>(extractBits(bitcast<i32>(v), 0u, %uu)); }\n", bits);
  } else {
    webgpu_say(plan, "fn wide(v: u32) -> u32 { return v; }\n");
  }
  if (out == 0) webgpu_say(plan, "fn narrow(v: u32) -> u32 { return v; }\n");
  else webgpu_say(plan, "fn narrow(v: u32) -> u32 { return %s_from_bits(v); }\nfn result(v: f32) -> u32 { return narrow(bitcast<u32>(v)); }\n", out);
}

/* ---- plans ---- */

static void put_operands(const webgpu_limits *limits, const tm_operation *operation, webgpu_pass *pass) {
  const tm_operand *y = &operation->operands[operation->input_count];
  for (uint32_t i = 0; i < 4; ++i) {
    webgpu_put(pass, i < operation->input_count ? webgpu_first_byte(limits, &operation->operands[i]) : 0);
  }
  for (uint32_t axis = 0; axis < TM_MAX_RANK; ++axis) webgpu_put(pass, axis < y->rank ? (uint32_t)y->dims[axis] : 1);
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    for (uint32_t axis = 0; axis < TM_MAX_RANK; ++axis) {
      webgpu_put(pass, axis < y->rank ? (uint32_t)operation->operands[i].strides_bytes[axis] : 0);
    }
  }
}

void webgpu_plan_elements(const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const tm_operand *y = &operation->operands[operation->input_count];
  const uint32_t bytes = webgpu_element_bytes(y->format), per_word = bytes < 4 ? 4 / bytes : 1;
  const uint64_t words = (y->element_count + per_word - 1) / per_word;
  static const char *const arguments[] = { "", "load0(e), 0u, 0u", "load0(e), load1(e), 0u", "load0(e), load1(e), load2(e)" };
  webgpu_say_bindings(out_plan, operation, 0);
  webgpu_say(out_plan, "const PER_WORD: u32 = %uu;\nconst BITS: u32 = %uu;\nconst MASK: u32 = 0x%xu;\n", per_word, 8 * bytes,
             bytes == 4 ? 0xffffffffu : (1u << 8 * bytes) - 1u);
  for (uint32_t i = 0; i < operation->input_count; ++i) say_input(out_plan, operation, i);
  webgpu_say(out_plan, "fn element(e: u32) -> u32 { return body(%s); }\n", arguments[operation->input_count]);
  webgpu_pass *pass = webgpu_add_pass(limits, out_plan, "run", words);
  if (pass == 0) return;
  webgpu_put(pass, (uint32_t)words);
  webgpu_put(pass, (uint32_t)y->element_count);
  webgpu_put(pass, y->rank);
  webgpu_put(pass, 0);
  put_operands(limits, operation, pass);
}

void webgpu_plan_elementwise(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation,
                             webgpu_plan *out_plan) {
  say_conversions(out_plan, operation->operands[0].format, operation->operands[operation->input_count].format);
  webgpu_say(out_plan, "fn body(a: u32, b: u32, c: u32) -> u32 {\n  %s\n}\n", row->body);
  webgpu_plan_elements(limits, operation, out_plan);
}
