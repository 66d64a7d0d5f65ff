/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_elementwise.h"

#include <stdio.h>

#include "webgpu_shaders.h"

#define ELEMENTS_PER_US 20000.0

const char *const webgpu_elementwise_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_elementwise, 0 };
const char *const webgpu_exact_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_exact, webgpu_wgsl_elementwise, 0 };

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

webgpu_kind webgpu_kind_of(uint32_t format) {
  switch (format) {
    case TM_FORMAT_F32:
    case TM_FORMAT_F16:
    case TM_FORMAT_BF16:
    case TM_FORMAT_F8_E4M3FN:
    case TM_FORMAT_F8_E5M2: return WEBGPU_FLOAT;
    case TM_FORMAT_I8:
    case TM_FORMAT_I16:
    case TM_FORMAT_I32: return WEBGPU_SIGNED;
    case TM_FORMAT_U8:
    case TM_FORMAT_U16:
    case TM_FORMAT_U32:
    case TM_FORMAT_BOOL: return WEBGPU_UNSIGNED;
    default: return WEBGPU_NO_NUMBER;
  }
}

static int strides_fit(const tm_operand *operand, int64_t bytes) {
  for (uint32_t i = 0; i < operand->rank; ++i) {
    if (operand->strides_bytes[i] % bytes != 0) return 0;
  }
  return 1;
}

/* The lowest element lies on the device's granule, and the others whole elements away from it. */
uint32_t webgpu_refuses_moves(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  (void)limits;
  for (uint32_t i = 0; i <= operation->input_count; ++i) {
    const tm_operand *operand = &operation->operands[i];
    const uint32_t bytes = kernel_element_bytes(operand->format);
    *out_operand = i;
    if (bytes == 0) return TM_REASON_FORMAT;
    if (!strides_fit(operand, bytes)) return TM_REASON_LAYOUT;
  }
  return operation->operands[operation->input_count].flags & TM_OPERAND_CONTIGUOUS ? 0 : TM_REASON_LAYOUT;
}

uint32_t webgpu_refuses_numbers(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  for (uint32_t i = 0; i <= operation->input_count; ++i) {
    *out_operand = i;
    if (webgpu_kind_of(operation->operands[i].format) == WEBGPU_NO_NUMBER) return TM_REASON_FORMAT;
  }
  return webgpu_refuses_moves(limits, operation, out_operand);
}

uint64_t webgpu_cost_elementwise(const webgpu_limits *limits, const tm_operation *operation) {
  const double elements = (double)operation->operands[operation->input_count].element_count;
  return webgpu_cost_ns(limits, elements, ELEMENTS_PER_US, kernel_operand_bytes(operation));
}

/* ---- text ---- */

/* How the bits of an element are taken out of its word; `at` counts bytes. */
static void say_load(webgpu_plan *plan, uint32_t input, uint32_t bytes, const char *at) {
  webgpu_say(plan, "fn load%u(e: u32) -> u32 {\n  let at = %s;\n", input, at);
  if (bytes >= 4) webgpu_say(plan, "  return x%u[at >> 2u];\n}\n", input);
  else webgpu_say(plan, "  return (x%u[at >> 2u] >> ((at & 3u) * 8u)) & 0x%xu;\n}\n", input, bytes == 1 ? 0xffu : 0xffffu);
}

/* A dense input has the output's order of elements if it has its element count: it can only be the output's shape.  e
   counts elements of the output, or half elements where those have 8 bytes. */
static void say_input(webgpu_plan *plan, const tm_operation *operation, uint32_t input) {
  const tm_operand *x = &operation->operands[input], *y = &operation->operands[operation->input_count];
  const uint32_t bytes = kernel_element_bytes(x->format);
  const int halves = kernel_element_bytes(y->format) == 8;
  const char *element = halves ? "(e >> 1u)" : "e", *half = bytes == 8 ? " + (e & 1u) * 4u" : "";
  char at[64];
  if ((x->flags & TM_OPERAND_CONTIGUOUS) != 0 && x->element_count == y->element_count) {
    snprintf(at, sizeof at, "%s * %uu%s", element, bytes, half);
  } else if (x->element_count == 1) {
    snprintf(at, sizeof at, "p.first[%u]%s", input, half);
  } else {
    snprintf(at, sizeof at, "place(%uu, %s)%s", input, element, half);
  }
  say_load(plan, input, bytes, at);
}

void webgpu_say_conversions(webgpu_plan *plan, const tm_operation *operation) {
  const uint32_t from = operation->operands[operation->input_count - 1].format;
  const uint32_t to = operation->operands[operation->input_count].format;
  const uint32_t bits = kernel_element_bytes(from) < 4 ? 8 * kernel_element_bytes(from) : 32;
  const char *out = webgpu_float_name(to);
  webgpu_say(plan, "const SIGN: u32 = 0x%xu;\n", 1u << (bits - 1));
  switch (webgpu_kind_of(from)) {
    case WEBGPU_FLOAT:
      webgpu_say(plan, "fn wide(v: u32) -> u32 { return bits_from_%s(v); }\n"
                       "fn less(a: u32, b: u32) -> bool {\n"
                       "  return !is_nan_bits(a) && !is_nan_bits(b) && order_of_bits(a) < order_of_bits(b);\n}\n",
                 webgpu_float_name(from));
      break;
    case WEBGPU_SIGNED:
      webgpu_say(plan, "fn wide(v: u32) -> u32 { return bitcast<u32>(extractBits(bitcast<i32>(v), 0u, %uu)); }\n"
                       "fn less(a: u32, b: u32) -> bool { return bitcast<i32>(a) < bitcast<i32>(b); }\n", bits);
      break;
    default:
      webgpu_say(plan, "fn wide(v: u32) -> u32 { return %s; }\nfn less(a: u32, b: u32) -> bool { return a < b; }\n",
                 from == TM_FORMAT_BOOL ? "select(0u, 1u, v != 0u)" : "v");
  }
  if (out == 0) webgpu_say(plan, "fn narrow(v: u32) -> u32 { return v; }\n");
  else webgpu_say(plan, "fn narrow(v: u32) -> u32 { return %s_from_bits(v); }\n", out);
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
  static const char *const arguments[] = { "", "load0(e), 0u, 0u", "load0(e), load1(e), 0u", "load0(e), load1(e), load2(e)" };
  const tm_operand *y = &operation->operands[operation->input_count];
  const uint32_t bytes = kernel_element_bytes(y->format), per_word = bytes < 4 ? 4 / bytes : 1;
  const uint64_t elements = bytes == 8 ? 2 * y->element_count : y->element_count;
  const uint64_t words = (elements + per_word - 1) / per_word;
  webgpu_say_bindings(out_plan, operation, 0);
  webgpu_say(out_plan, "const PER_WORD: u32 = %uu;\nconst BITS: u32 = %uu;\nconst MASK: u32 = 0x%xu;\n", per_word, 32 / per_word,
             per_word == 1 ? 0xffffffffu : (1u << 8 * bytes) - 1u);
  for (uint32_t i = 0; i < operation->input_count; ++i) say_input(out_plan, operation, i);
  webgpu_say(out_plan, "fn element(e: u32) -> u32 { return body(%s); }\n", arguments[operation->input_count]);
  webgpu_pass *pass = webgpu_add_pass(limits, out_plan, "run", words);
  if (pass == 0) return;
  webgpu_put(pass, (uint32_t)words);
  webgpu_put(pass, (uint32_t)elements);
  webgpu_put(pass, y->rank);
  webgpu_put(pass, 0);
  put_operands(limits, operation, pass);
}

void webgpu_plan_body(const webgpu_limits *limits, const tm_operation *operation, const char *body, webgpu_plan *out_plan) {
  webgpu_say_conversions(out_plan, operation);
  webgpu_say(out_plan, "fn body(a: u32, b: u32, c: u32) -> u32 {\n  %s\n}\n", body);
  webgpu_plan_elements(limits, operation, out_plan);
}

void webgpu_plan_row(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  webgpu_plan_body(limits, operation, row->body, out_plan);
}
