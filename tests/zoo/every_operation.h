/* SPDX-License-Identifier: Apache-2.0 */
/* every_operation.h - each operation of the table on usual formats in two contexts, whose results must be the same bits. */
#ifndef TM_TESTS_EVERY_OPERATION_H
#define TM_TESTS_EVERY_OPERATION_H

#include "unit/plugin/plugin_case.h"

enum { EVERY_ROWS = 32, EVERY_COLUMNS = 64, EVERY_MOST_INPUTS = 4 };

typedef union every_attributes {
  tm_transpose_attributes transpose;
  tm_axis_attributes      axis;
  tm_reduce_attributes    reduce;
  tm_matmul_attributes    matmul;
  tm_matmul_scaled_attributes scaled;
  tm_attention_attributes attention;
  uint64_t                words[8];
} every_attributes;

static inline every_attributes every_attributes_of(uint32_t op) {
  every_attributes chosen = { .words = { 0 } };
  if (op == TM_OP_TRANSPOSE) chosen.transpose = (tm_transpose_attributes){ { 1, 0 } };
  if (op == TM_OP_SOFTMAX) chosen.axis.axis = 1;
  if (op >= TM_OP_SUM && op <= TM_OP_ARGMAX) chosen.reduce.axes = 2;
  if (op == TM_OP_ATTENTION) chosen.attention.causal = 1;
  if (op == TM_OP_MATMUL) chosen.matmul.transpose_b = 1;
  if (op == TM_OP_MATMUL_SCALED) chosen.scaled.transpose_b = 1;
  return chosen;
}

/* Input `index`: a matrix of `format` unless the operation wants something else there. */
static inline tm_operand every_input(uint32_t op, uint32_t format, uint32_t index) {
  tm_operand input = { .format = format, .rank = 2, .dims = { EVERY_ROWS, EVERY_COLUMNS } };
  const bool is_norm = op == TM_OP_LAYER_NORM || op == TM_OP_RMS_NORM;
  if (op == TM_OP_GATHER && index == 1) input.format = TM_FORMAT_I32;
  if (op == TM_OP_WHERE && index == 0) input.format = TM_FORMAT_BOOL;
  if (op == TM_OP_MATMUL && index == 0 && format == TM_FORMAT_Q8_0) input.format = TM_FORMAT_F32;
  if (op == TM_OP_MATMUL_SCALED && index >= 2) input.format = TM_FORMAT_F32;
  if (op == TM_OP_WEIGHTED_SUM && index == 1) return (tm_operand){ .format = TM_FORMAT_F64, .rank = 1, .dims = { 1 } };
  if (op == TM_OP_DARE_SUM && index == 1) return (tm_operand){ .format = TM_FORMAT_U64, .rank = 1, .dims = { 1 + TM_DARE_WORDS } };
  if (op == TM_OP_TIES_SUM && index == 1) return (tm_operand){ .format = TM_FORMAT_F64, .rank = 1, .dims = { 3 } };
  if (op == TM_OP_FILL || (op == TM_OP_MATMUL_SCALED && index >= 2)) input.rank = 0;
  if (is_norm && index >= 1) {
    input.rank = 1;
    input.dims[0] = EVERY_COLUMNS;
  }
  return input;
}

/* Of operations over tokens: a row of heads a token, and indices. */
static inline tm_operand every_token_input(uint32_t op, uint32_t format, uint32_t index) {
  tm_operand input = { .format = format, .rank = 3, .dims = { EVERY_ROWS, 2, EVERY_COLUMNS } };
  if (op == TM_OP_ROPE && index == 1) return (tm_operand){ .format = TM_FORMAT_I32, .rank = 1, .dims = { EVERY_ROWS } };
  if ((op == TM_OP_UPDATE && index == 2) || (op == TM_OP_ATTENTION && index == 3)) return (tm_operand){ .format = TM_FORMAT_I32 };
  if (op == TM_OP_UPDATE && index == 1) input.dims[0] = 3;
  return input;
}

static inline tm_operand every_wanted(uint32_t op, uint32_t format) {
  tm_operand wanted = { .format = TM_FORMAT_NONE, .rank = 2, .dims = { EVERY_ROWS, EVERY_COLUMNS } };
  if (op == TM_OP_CAST || op == TM_OP_DEQUANTIZE) wanted.format = format == TM_FORMAT_F32 ? TM_FORMAT_BF16 : TM_FORMAT_F32;
  if (op == TM_OP_QUANTIZE) wanted.format = TM_FORMAT_Q8_0;
  return wanted;
}

/* Bytes that are a NaN in no format and a valid bool; indices within the rows. */
static inline tm_tensor *every_tensor(tm_context *context, const tm_operand *like, uint32_t seed) {
  tm_tensor *tensor = NULL;
  tm_error error = TM_ERROR_INIT;
  if (tm_tensor_create(context, like->format, like->rank, like->dims, &tensor, &error) != TM_OK) fail_msg("%s", error.text);
  unsigned char *bytes = tm_tensor_data(tensor);
  for (uint64_t i = 0; i < tm_tensor_operand(tensor)->byte_count; i++) {
    bytes[i] = (unsigned char)((i * 37 + seed) % 59);
    if (like->format == TM_FORMAT_BOOL) bytes[i] &= 1;
    if (like->format == TM_FORMAT_I32) bytes[i] = i % 4 == 0 ? (unsigned char)(bytes[i] % EVERY_ROWS) : 0;
  }
  return tensor;
}

/* The result for the caller to destroy; NULL where the operation does not take the format. */
static inline tm_tensor *every_run(tm_context *context, const tm_op_description *op, uint32_t format) {
  const every_attributes attributes = every_attributes_of(op->op);
  tm_tensor *inputs[EVERY_MOST_INPUTS] = { NULL }, *output = NULL;
  tm_operand layouts[EVERY_MOST_INPUTS], wanted = every_wanted(op->op, format);
  tm_error error = TM_ERROR_INIT;
  assert_true(op->input_min <= EVERY_MOST_INPUTS);
  if (op->op == TM_OP_FILL && format == TM_FORMAT_Q8_0) return NULL;    /* a block has no single value */
  for (uint32_t i = 0; i < op->input_min; i++) {
    const tm_operand like = op->op < TM_OP_ROPE ? every_input(op->op, format, i) : every_token_input(op->op, format, i);
    inputs[i] = every_tensor(context, &like, i);
    layouts[i] = *tm_tensor_operand(inputs[i]);
  }
  if (tm_op_infer(op->op, attributes.words, op->attribute_bytes, layouts, op->input_min, &wanted, 1, NULL) == TM_OK) {
    const tm_run_options exact = { .struct_size = sizeof exact, .worst_numerics = TM_NUMERICS_N0 };
    output = every_tensor(context, &wanted, 5);
    if (tm_run(context, op->op, attributes.words, op->attribute_bytes, inputs, op->input_min, &output, 1, &exact, &error) != TM_OK)
      fail_msg("%s on format %u: %s", op->name, format, error.text);
  }
  for (uint32_t i = 0; i < op->input_min; i++) tm_tensor_destroy(inputs[i]);
  return output;
}

/* How many of the formats the operation takes. */
static inline uint32_t every_format_agrees(tm_context *one, tm_context *other, const tm_op_description *op) {
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_I8, TM_FORMAT_Q8_0 };
  uint32_t ran = 0;
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    tm_tensor *got = every_run(one, op, formats[i]), *expected = every_run(other, op, formats[i]);
    assert_true((got == NULL) == (expected == NULL));
    if (got == NULL) continue;
    const size_t bytes = (size_t)tm_tensor_operand(expected)->byte_count;
    if (memcmp(tm_tensor_data(got), tm_tensor_data(expected), bytes) != 0) fail_msg("%s on format %u: other bits", op->name, formats[i]);
    tm_tensor_destroy(got);
    tm_tensor_destroy(expected);
    ran++;
  }
  return ran;
}

/* Every operation but `convert`, which has a meaning only between a device and its own format. */
static inline void every_operation_agrees(tm_context *one, tm_context *other) {
  tm_op_description op = { .struct_size = sizeof op };
  for (uint32_t i = 0; tm_op_describe(i, &op) == TM_OK; i++)
    if (op.op != TM_OP_CONVERT && every_format_agrees(one, other, &op) == 0) fail_msg("%s ran on no format", op.name);
}

#endif
