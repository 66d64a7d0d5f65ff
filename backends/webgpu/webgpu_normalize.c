/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax, layer_norm, rms_norm: a record for each part of a line, one for each line, then the elements.  A short line is
 * made by one invocation.
 *
 * softmax in f32: an exponential is within 2.5 eps (webgpu_softmax.wgsl), a sum of n of them within n + 6, the quotient
 * within 2.5.  The largest element's exponential is exact, so 4 n covers small n as well.  The norms are made in f64, with an
 * error that n * eps of f32 covers also where a line's elements differ by their last bits only.
 */
#include <string.h>

#include "webgpu_elementwise.h"
#include "webgpu_number.h"
#include "webgpu_reduce.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define MOST_PARTS    64u
#define LEAST_TERMS   32u       /* of a part */
#define LARGEST_COUNT UINT64_C(0xfffffff0)
#define MOST_LENGTH   (WEBGPU_MOST_TURNS / 4 * MOST_PARTS)      /* two loops over a part, and a margin */
#define SOFTMAX_BYTES 12u       /* of a record */
#define NORM_BYTES    16u
#define SOFTMAX_BOUND 4.0
#define NORM_BOUND    1.0

static const char *const softmax_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_line, webgpu_wgsl_softmax, 0 };
static const char *const norm_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_line, webgpu_wgsl_norm, 0 };

typedef struct lines {
  uint64_t    count, length, parts;
  uint32_t    axis;
  kernel_axes kept;
} lines;

static int is_softmax(const tm_operation *operation) { return operation->op == TM_OP_SOFTMAX; }

static uint32_t axis_of(const tm_operation *operation) {
  const tm_axis_attributes *attributes = operation->attributes;
  return is_softmax(operation) ? attributes->axis : operation->operands[0].rank - 1;
}

static lines lines_of(const tm_operation *operation) {
  kernel_reduction r;
  kernel_reduction_make_lines(operation, axis_of(operation), &r);
  lines l = { .count = r.output_count, .length = r.term_count, .axis = axis_of(operation), .kept = r.kept };
  l.parts = l.length / LEAST_TERMS;
  if (l.parts > MOST_PARTS) l.parts = MOST_PARTS;
  if (l.parts == 0) l.parts = 1;
  return l;
}

/* ---- predicates ---- */

static uint32_t refuses_operand(const tm_operand *operand) {
  if (operand->element_count > LARGEST_COUNT) return TM_REASON_SIZE;
  return webgpu_refuses_steps(operand, kernel_element_bytes(operand->format));
}

static uint64_t workspace_bytes(const webgpu_limits *limits, const tm_operation *operation) {
  (void)limits;
  const lines l = lines_of(operation);
  return l.parts == 1 ? 0 : l.count * l.parts * (is_softmax(operation) ? SOFTMAX_BYTES : NORM_BYTES);
}

/* An epsilon that emulated f64 takes for zero. */
static int epsilon_is_subnormal(const tm_operation *operation) {
  const tm_norm_attributes *attributes = operation->attributes;
  return attributes->epsilon > 0 && attributes->epsilon < 0x1p-1022;
}

static uint32_t refuses(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  const tm_operand *x = &operation->operands[0];
  *out_operand = TM_NO_OPERAND;
  if (x->rank == 0 || operation->operands[operation->input_count].rank != x->rank) return TM_REASON_RANK;
  if (axis_of(operation) >= x->rank) return TM_REASON_ATTRIBUTE;
  if (!is_softmax(operation) && epsilon_is_subnormal(operation)) return TM_REASON_ATTRIBUTE;
  for (uint32_t i = 0; i <= operation->input_count; ++i) {
    const uint32_t reasons = refuses_operand(&operation->operands[i]);
    *out_operand = i;
    if (reasons != 0) return reasons;
  }
  *out_operand = TM_NO_OPERAND;
  if (x->dims[axis_of(operation)] > MOST_LENGTH) return TM_REASON_SIZE;
  return workspace_bytes(limits, operation) > limits->binding_bytes ? TM_REASON_SIZE : 0;
}

/* Any axis but the one that lines run along. */
static int split(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  const tm_operand *x = &operation->operands[0];
  const uint64_t room = limits->binding_bytes - 2 * limits->offset_alignment;
  for (uint32_t i = 0; i < x->rank; ++i) {
    const uint64_t extent = x->dims[i], stride = (uint64_t)(x->strides_bytes[i] < 0 ? -x->strides_bytes[i] : x->strides_bytes[i]);
    if (i == axis_of(operation) || extent < 2 || stride == 0) continue;
    const uint64_t fitting = room / stride;
    const uint64_t most = fitting == 0 ? 1 : fitting >= extent ? extent - 1 : fitting;
    *out_change = (tm_change){ .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis = i, .value = most };
    return 1;
  }
  return 0;
}

static uint64_t cost_ns(const webgpu_limits *limits, const tm_operation *operation) {
  const webgpu_work work = is_softmax(operation) ? WEBGPU_WORK_SOFTMAX : WEBGPU_WORK_NORM;
  return webgpu_work_ns(limits, work, (double)operation->operands[0].element_count, 2 * kernel_operand_bytes(operation));
}

/* ---- plans ---- */

static void say(const tm_operation *operation, webgpu_plan *plan) {
  const uint32_t x = operation->operands[0].format, y = operation->operands[operation->input_count].format;
  uint32_t binding = 1;
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    webgpu_say(plan, "@group(0) @binding(%u) var<storage, read> x%u: array<u32>;\n", binding++, i);
  }
  webgpu_say(plan, "@group(0) @binding(%u) var<storage, read_write> y: array<atomic<u32>>;\n", binding++);
  webgpu_say(plan, "@group(0) @binding(%u) var<storage, read_write> w: array<u32>;\n", binding);
  webgpu_say(plan, "const X_BYTES = %uu;\n", kernel_element_bytes(x));
  webgpu_say(plan, "fn x_bits(raw: u32) -> u32 { return bits_from_%s(raw); }\n", webgpu_float_name(x));
  webgpu_say_result(plan, y);
  if (is_softmax(operation)) return;
  const int is_layer_norm = operation->op == TM_OP_LAYER_NORM;
  webgpu_say(plan, "const IS_LAYER_NORM = %s;\n", is_layer_norm ? "true" : "false");
  webgpu_say(plan, "const SCALE_BYTES = %uu;\n", kernel_element_bytes(operation->operands[1].format));
  webgpu_say(plan, "fn shift_word(i: u32) -> u32 { return %s; }\n", is_layer_norm ? "x2[i]" : "0u");
}

static void put_operands(const webgpu_limits *limits, const tm_operation *operation, const lines *l, webgpu_pass *pass) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[operation->input_count];
  const tm_operand *all[4] = { x, y, NULL, NULL };
  for (uint32_t i = 1; i < operation->input_count && i < 3; ++i) all[1 + i] = &operation->operands[i];
  for (uint32_t i = 0; i < 4; ++i) webgpu_put(pass, all[i] != NULL ? webgpu_first_byte(limits, all[i]) : 0);
  for (uint32_t i = 0; i < 4; ++i) {
    webgpu_put(pass, all[i] != NULL ? (uint32_t)all[i]->strides_bytes[i < 2 ? l->axis : 0] : 0);
  }
}

static void add_pass(const webgpu_limits *limits, const tm_operation *operation, const lines *l, const char *entry,
                     uint64_t items, webgpu_plan *plan) {
  webgpu_pass *pass = webgpu_add_pass(limits, plan, entry, items);
  if (pass == NULL) return;
  uint64_t epsilon = 0;
  if (!is_softmax(operation)) memcpy(&epsilon, &((const tm_norm_attributes *)operation->attributes)->epsilon, sizeof epsilon);
  const uint64_t counts[4] = { l->count, l->length, l->parts, items };
  for (uint32_t i = 0; i < 4; ++i) webgpu_put(pass, (uint32_t)counts[i]);
  put_operands(limits, operation, l, pass);
  webgpu_put(pass, (uint32_t)epsilon);
  webgpu_put(pass, (uint32_t)(epsilon >> 32));
  webgpu_put(pass, l->kept.count);
  webgpu_put(pass, 0);
  webgpu_put_axes(pass, &l->kept, l->kept.count);
}

static void plan(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const lines l = lines_of(operation);
  (void)row;
  say(operation, out_plan);
  if (l.count * l.length == 0) return;
  if (l.parts == 1) {
    add_pass(limits, operation, &l, "direct", l.count, out_plan);
    return;
  }
  add_pass(limits, operation, &l, "parts", l.count * l.parts, out_plan);
  add_pass(limits, operation, &l, "lines", l.count, out_plan);
  add_pass(limits, operation, &l, "results", l.count * l.length, out_plan);
}

#define ROW(OP, NAME, ATTRIBUTES, SHADERS, BOUND, ...)                                                                  \
  { .op = OP, .formats = { __VA_ARGS__ }, .attribute_bytes = sizeof(ATTRIBUTES), .level = TM_LEVEL_NATIVE,              \
    .numerics = TM_NUMERICS_N2, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,                 \
    .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F32, .numerics_bound = BOUND, .name = "webgpu_" NAME,          \
    .shaders = SHADERS, .refuses = refuses, .split = split, .cost_ns = cost_ns, .workspace_bytes = workspace_bytes,     \
    .plan = plan },
#define SOFTMAX(X, x, Y, y)                                                                                             \
  ROW(TM_OP_SOFTMAX, "softmax_" #x "_" #y, tm_axis_attributes, softmax_shaders, SOFTMAX_BOUND, TM_FORMAT_##X, TM_FORMAT_##Y)
#define NORMS(X, x, W, weight)                                                                                          \
  ROW(TM_OP_LAYER_NORM, "layer_norm_" #x "_" #weight, tm_norm_attributes, norm_shaders, NORM_BOUND, TM_FORMAT_##X,      \
      TM_FORMAT_##W, TM_FORMAT_##W, TM_FORMAT_##X)                                                                      \
  ROW(TM_OP_RMS_NORM, "rms_norm_" #x "_" #weight, tm_norm_attributes, norm_shaders, NORM_BOUND, TM_FORMAT_##X,          \
      TM_FORMAT_##W, TM_FORMAT_##X)

static const webgpu_row rows[] = {
  SOFTMAX(F32, f32, F32, f32) SOFTMAX(F16, f16, F16, f16) SOFTMAX(BF16, bf16, BF16, bf16) SOFTMAX(F16, f16, F32, f32)
  SOFTMAX(BF16, bf16, F32, f32)
  NORMS(F32, f32, F32, f32) NORMS(F16, f16, F16, f16) NORMS(BF16, bf16, BF16, bf16) NORMS(F16, f16, F32, f32)
  NORMS(BF16, bf16, F32, f32)
};

const kernel_row_table webgpu_rows_normalize = { rows, sizeof rows / sizeof rows[0] };
