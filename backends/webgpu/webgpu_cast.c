/* SPDX-License-Identifier: Apache-2.0 */
/* TM_OP_CAST between all formats of 1, 2 and 4 bytes, on bits: f32 holds every narrower float exactly. */
#include "webgpu_elementwise.h"

/* Largest values of an integer format: above and below zero. */
typedef struct range {
  uint32_t most, least;
} range;

static range range_of(uint32_t format) {
  switch (format) {
    case TM_FORMAT_I8: return (range){ 0x7f, 0x80 };
    case TM_FORMAT_U8: return (range){ 0xff, 0 };
    case TM_FORMAT_I16: return (range){ 0x7fff, 0x8000 };
    case TM_FORMAT_U16: return (range){ 0xffff, 0 };
    case TM_FORMAT_I32: return (range){ 0x7fffffff, 0x80000000u };
    default: return (range){ 0xffffffffu, 0 };
  }
}

static void say_to_float(webgpu_plan *plan, uint32_t from, uint32_t to, int saturates) {
  const char *name = webgpu_float_name(to);
  const char *way = saturates && to != TM_FORMAT_F32 ? "saturated" : "from_bits", *to_odd = to == TM_FORMAT_F32 ? "false" : "true";
  switch (webgpu_kind_of(from)) {
    case WEBGPU_FLOAT: webgpu_say(plan, "  return %s_%s(wide(a));\n", name, way); break;
    case WEBGPU_SIGNED: webgpu_say(plan, "  return %s_%s(bits_from_i32(wide(a), %s));\n", name, way, to_odd); break;
    default: webgpu_say(plan, "  return %s_%s(bits_from_magnitude(%s, %s));\n", name, way,
                        from == TM_FORMAT_BOOL ? "select(0u, 1u, a != 0u)" : "a", to_odd);
  }
}

static void say_to_integer(webgpu_plan *plan, uint32_t from, uint32_t to) {
  const range r = range_of(to);
  if (webgpu_kind_of(from) == WEBGPU_FLOAT) webgpu_say(plan, "  return whole_from_bits(wide(a), 0x%xu, 0x%xu);\n", r.most, r.least);
  else webgpu_say(plan, from == TM_FORMAT_BOOL ? "  return select(0u, 1u, a != 0u);\n" : "  return wide(a);\n");
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const uint32_t from = operation->operands[0].format, to = operation->operands[1].format;
  const tm_cast_attributes *attributes = operation->attributes;
  (void)row;
  webgpu_say_conversions(out_plan, operation);
  webgpu_say(out_plan, "fn body(a: u32, b: u32, c: u32) -> u32 {\n");
  if (from == to) webgpu_say(out_plan, "  return a;\n");
  else if (to == TM_FORMAT_BOOL) {
    webgpu_say(out_plan, "  return select(0u, 1u, %s != 0u);\n", webgpu_kind_of(from) == WEBGPU_FLOAT ? "(a & ~SIGN)" : "a");
  } else if (webgpu_kind_of(to) == WEBGPU_FLOAT) say_to_float(out_plan, from, to, attributes != 0 && attributes->saturate != 0);
  else say_to_integer(out_plan, from, to);
  webgpu_say(out_plan, "}\n");
  webgpu_plan_elements(limits, operation, out_plan);
}

static const webgpu_row rows[] = {
  { .op = TM_OP_CAST, WEBGPU_EXACT, .attribute_bytes = sizeof(tm_cast_attributes), .name = "webgpu_cast",
    .shaders = webgpu_elementwise_shaders, .refuses = webgpu_refuses_numbers, .plan = plan },
};

const kernel_row_table webgpu_rows_cast = { rows, sizeof rows / sizeof rows[0] };
