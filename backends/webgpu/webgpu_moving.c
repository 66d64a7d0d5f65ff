/* SPDX-License-Identifier: Apache-2.0 */
/* copy, transpose, fill, where and gather: elements of 1, 2, 4 and 8 bytes, whatever they mean. */
#include <string.h>

#include "webgpu_elementwise.h"

/* ---- transpose: a copy from a view ---- */

/* The operation with x's axes in y's order, in `operands`. */
static int as_copy(const tm_operation *operation, tm_operand *operands, tm_operation *out_copy) {
  const tm_operand *x = &operation->operands[0];
  const tm_transpose_attributes *attributes = operation->attributes;
  memcpy(operands, operation->operands, 2 * sizeof *operands);
  for (uint32_t i = 0; i < x->rank; ++i) {
    const uint32_t axis = attributes->permutation[i];
    if (axis >= x->rank) return 0;
    operands[0].dims[i] = x->dims[axis];
    operands[0].strides_bytes[i] = x->strides_bytes[axis];
  }
  if (memcmp(operands[0].strides_bytes, x->strides_bytes, sizeof x->strides_bytes) != 0)
    operands[0].flags &= ~TM_OPERAND_CONTIGUOUS;
  *out_copy = *operation;
  out_copy->operands = operands;
  return 1;
}

static uint32_t refuses_transpose(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  tm_operand operands[2];
  tm_operation copy;
  *out_operand = TM_NO_OPERAND;
  return as_copy(operation, operands, &copy) ? webgpu_refuses_moves(limits, operation, out_operand) : TM_REASON_ATTRIBUTE;
}

static int split_transpose(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  tm_operand operands[2];
  tm_operation copy;
  return as_copy(operation, operands, &copy) && webgpu_split_output(limits, &copy, out_change);
}

static void plan_transpose(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation,
                           webgpu_plan *out_plan) {
  tm_operand operands[2];
  tm_operation copy;
  if (as_copy(operation, operands, &copy)) webgpu_plan_row(row, limits, &copy, out_plan);
}

/* ---- gather ---- */

/* x as [outer, extent, inner], y as [outer, index_count, inner]. */
static const char gather_text[] =
    "fn load_index(i: u32) -> u32 {\n"
    "  let inner = p.dims[0][0]; let count = p.dims[0][1]; let extent = p.dims[0][2];\n"
    "  let line = i / inner; let at = line %% count; let index = x1[at * %uu];\n"
    "  if (index >= extent%s) { return 0xffffffffu; }\n"
    "  return ((line / count) * extent + index) * inner + i %% inner;\n"
    "}\n"
    "fn element(e: u32) -> u32 {\n"
    "  let source = load_index(%s);\n"
    "  if (source == 0xffffffffu) { return 0u; }\n"
    "  let at = source * %uu%s;\n"
    "  return x0[at >> 2u] >> ((at & 3u) * 8u);\n"
    "}\n";

static uint64_t product(const tm_operand *operand, uint32_t from, uint32_t to) {
  uint64_t count = 1;
  for (uint32_t i = from; i < to; ++i) count *= operand->dims[i];
  return count;
}

static uint32_t refuses_gather(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  const tm_axis_attributes *attributes = operation->attributes;
  (void)limits;
  *out_operand = 0;
  if (kernel_element_bytes(operation->operands[0].format) == 0) return TM_REASON_FORMAT;
  if (attributes->axis >= operation->operands[0].rank) return TM_REASON_ATTRIBUTE;
  return kernel_refuses_strided(operation, out_operand);
}

/* y's axes are x's before the gathered one, those of the indices, and x's behind it. */
static uint32_t gather_axis(const tm_operation *operation, uint32_t operand, uint32_t axis) {
  const uint32_t gathered = ((const tm_axis_attributes *)operation->attributes)->axis, indices = operation->operands[1].rank;
  const int is_index = axis >= gathered && axis < gathered + indices;
  if (operand == 2) return axis;
  if (operand == 1) return is_index ? axis - gathered : TM_MAX_RANK;
  return is_index ? TM_MAX_RANK : axis < gathered ? axis : axis - indices + 1;
}

static int split_gather(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  return webgpu_split_by(limits, operation, gather_axis, out_change);
}

static void plan_gather(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const tm_operand *x = &operation->operands[0], *indices = &operation->operands[1], *y = &operation->operands[2];
  const uint32_t axis = ((const tm_axis_attributes *)operation->attributes)->axis, bytes = kernel_element_bytes(x->format);
  const uint32_t per_word = bytes < 4 ? 4 / bytes : 1;
  const uint64_t elements = bytes == 8 ? 2 * y->element_count : y->element_count, words = (elements + per_word - 1) / per_word;
  const int is_long = indices->format == TM_FORMAT_I64;
  (void)row;
  webgpu_say_bindings(out_plan, operation, 0);
  webgpu_say(out_plan, "const PER_WORD: u32 = %uu;\nconst BITS: u32 = %uu;\nconst MASK: u32 = 0x%xu;\n", per_word, 32 / per_word,
             per_word == 1 ? 0xffffffffu : (1u << 8 * bytes) - 1u);
  webgpu_say(out_plan, gather_text, is_long ? 2u : 1u, is_long ? " || x1[at * 2u + 1u] != 0u" : "",
             bytes == 8 ? "e >> 1u" : "e", bytes, bytes == 8 ? " + (e & 1u) * 4u" : "");
  webgpu_pass *pass = webgpu_add_pass(limits, out_plan, "run", words);
  if (pass == 0) return;
  const uint32_t parameters[] = {
    (uint32_t)words, (uint32_t)elements, 0, 0, 0, 0, 0, 0,
    (uint32_t)product(x, axis + 1, x->rank), (uint32_t)indices->element_count, (uint32_t)x->dims[axis],
  };
  for (uint32_t i = 0; i < sizeof parameters / sizeof parameters[0]; ++i) webgpu_put(pass, parameters[i]);
}

/* ---- rows ---- */

#define MOVE(OP, NAME, BODY)                                                                                            \
  .op = OP, WEBGPU_EXACT, .name = "webgpu_" NAME, .body = BODY, .shaders = webgpu_elementwise_shaders

static const webgpu_row rows[] = {
  { MOVE(TM_OP_COPY, "copy", "return a;"), .refuses = webgpu_refuses_moves, .plan = webgpu_plan_row },
  { MOVE(TM_OP_FILL, "fill", "return a;"), .refuses = webgpu_refuses_moves, .plan = webgpu_plan_row },
  { MOVE(TM_OP_WHERE, "where", "return select(c, b, a != 0u);"), .refuses = webgpu_refuses_moves, .plan = webgpu_plan_row },
  { MOVE(TM_OP_TRANSPOSE, "transpose", "return a;"), .attribute_bytes = sizeof(tm_transpose_attributes),
    .refuses = refuses_transpose, .split = split_transpose, .plan = plan_transpose },
  { MOVE(TM_OP_GATHER, "gather_i32", 0), .formats = { TM_FORMAT_NONE, TM_FORMAT_I32 },
    .attribute_bytes = sizeof(tm_axis_attributes),
    .refuses = refuses_gather, .split = split_gather, .plan = plan_gather },
  { MOVE(TM_OP_GATHER, "gather_i64", 0), .formats = { TM_FORMAT_NONE, TM_FORMAT_I64 },
    .attribute_bytes = sizeof(tm_axis_attributes),
    .refuses = refuses_gather, .split = split_gather, .plan = plan_gather },
};

const kernel_row_table webgpu_rows_moving = { rows, sizeof rows / sizeof rows[0] };
