/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op_check.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define NAME_CAPACITY 16
#define DIMS_CAPACITY 96
#define BLOCKS_CAPACITY 256

uint32_t tm_format_set(uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  if (info == NULL) return 0;
  const bool is_plain = info->block_elements == 1;
  if (!info->has_values) return is_plain ? TM_SET_PLAIN_OPAQUE : TM_SET_BLOCK_OPAQUE;
  switch (info->kind) {
    case TM_KIND_FLOAT: return TM_SET_FLOAT;
    case TM_KIND_SIGNED:
    case TM_KIND_UNSIGNED: return is_plain ? TM_SET_INTEGER : TM_SET_INTEGER_4;
    case TM_KIND_BOOL: return TM_SET_BOOL;
    case TM_KIND_BLOCK: return info->has_arithmetic ? TM_SET_BLOCK : TM_SET_BLOCK_READ;
    case TM_KIND_COMPLEX: break;
  }
  return 0;
}

const char *tm_format_title(uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  if (info != NULL) return info->name;
  return format >= TM_FORMAT_PRIVATE ? "private" : "unknown";
}

static const struct { uint32_t set; const char *name; } set_names[] = {
  { TM_SET_FLOAT, "float" },
  { TM_SET_INTEGER, "integer" },
  { TM_SET_BOOL, "bool" },
  { TM_SET_INTEGER_4, "4-bit integer" },
  { TM_SET_ANY_BLOCK, "block format" },
  { TM_SET_PLAIN_OPAQUE, "other plain format" },
  { TM_SET_BLOCK_OPAQUE, "other packed format" },
};

/* There are more block formats than those that operations can read or write: which is said, so that nobody need guess. */
const char *tm_format_set_name(uint32_t set, char *text) {
  char blocks[BLOCKS_CAPACITY];
  size_t length = 0;
  text[0] = '\0';
  (void)tm_format_list_blocks((set & TM_SET_BLOCK_READ) == 0, blocks, sizeof blocks);
  for (size_t i = 0; i < sizeof set_names / sizeof set_names[0]; i++) {
    const bool is_blocks = set_names[i].set == TM_SET_ANY_BLOCK;
    if ((set & set_names[i].set) == 0) continue;
    length += (size_t)snprintf(text + length, TM_SET_NAME_BYTES - length, "%s%s%s%s%s", length == 0 ? "" : " or ", set_names[i].name,
                               is_blocks ? " (" : "", is_blocks ? blocks : "", is_blocks ? ")" : "");
  }
  return text;
}

const char *tm_op_name(const tm_operation *operation) {
  const tm_op_row *row = tm_op_find(operation->op);
  return row != NULL ? row->name : "operation";
}

const char *tm_input_name(const tm_operation *operation, uint32_t input, char *buffer) {
  const tm_op_row *row = tm_op_find(operation->op);
  const bool has_names = row != NULL && input < sizeof row->input_names / sizeof row->input_names[0];
  if (has_names && row->input_names[input] != NULL) return row->input_names[input];
  snprintf(buffer, NAME_CAPACITY, "operand %u", (unsigned)input);
  return buffer;
}

tm_status tm_require_format(const tm_operation *operation, uint32_t input, uint32_t set, tm_error *error) {
  const uint32_t format = operation->operands[input].format;
  if (tm_format_set(format) & set) return TM_OK;
  char name[NAME_CAPACITY];
  char expected[TM_SET_NAME_BYTES];
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s has format %s, expected %s", tm_op_name(operation),
                 tm_input_name(operation, input, name), tm_format_title(format), tm_format_set_name(set, expected));
}

tm_status tm_require_index_format(const tm_operation *operation, uint32_t input, tm_error *error) {
  const uint32_t format = operation->operands[input].format;
  if (format == TM_FORMAT_I32 || format == TM_FORMAT_I64) return TM_OK;
  char name[NAME_CAPACITY];
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s has format %s, expected i32 or i64", tm_op_name(operation),
                 tm_input_name(operation, input, name), tm_format_title(format));
}

tm_status tm_require_same_format(const tm_operation *operation, uint32_t input, uint32_t as_input, tm_error *error) {
  const uint32_t found = operation->operands[input].format;
  const uint32_t expected = operation->operands[as_input].format;
  if (found == expected) return TM_OK;
  char name[NAME_CAPACITY];
  char as_name[NAME_CAPACITY];
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s has format %s, expected %s as %s has; cast it first",
                 tm_op_name(operation), tm_input_name(operation, input, name), tm_format_title(found),
                 tm_format_title(expected), tm_input_name(operation, as_input, as_name));
}

tm_status tm_require_dims(const tm_operation *operation, uint32_t input, uint32_t rank, const uint64_t *dims,
                          tm_error *error) {
  const tm_operand *operand = &operation->operands[input];
  tm_operand expected = { .rank = rank };
  for (uint32_t i = 0; i < rank; i++) expected.dims[i] = dims[i];
  if (tm_same_dims(operand, &expected)) return TM_OK;
  char name[NAME_CAPACITY];
  char found_text[DIMS_CAPACITY];
  char expected_text[DIMS_CAPACITY];
  tm_format_dims(operand, found_text, sizeof found_text);
  tm_format_dims(&expected, expected_text, sizeof expected_text);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s has shape %s, expected %s", tm_op_name(operation),
                 tm_input_name(operation, input, name), found_text, expected_text);
}

tm_status tm_require_axis(const tm_operation *operation, uint32_t input, uint32_t axis, tm_error *error) {
  const uint32_t rank = operation->operands[input].rank;
  if (axis < rank) return TM_OK;
  char name[NAME_CAPACITY];
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: axis %u, expected less than %u, the rank of %s", tm_op_name(operation),
                 (unsigned)axis, (unsigned)rank, tm_input_name(operation, input, name));
}

tm_status tm_require_switch(const tm_operation *operation, const char *name, uint32_t value, tm_error *error) {
  if (value <= 1) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: attribute %s is %u, expected 0 or 1", tm_op_name(operation), name,
                 (unsigned)value);
}

tm_status tm_require_reserved(const tm_operation *operation, uint32_t value, tm_error *error) {
  if (value == 0) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: a reserved attribute is %u, expected 0", tm_op_name(operation),
                 (unsigned)value);
}

tm_status tm_choose_format(const tm_operation *operation, uint32_t usual, uint32_t set, tm_operand *out_output,
                           tm_error *error) {
  const uint32_t wanted = out_output->format == TM_FORMAT_NONE ? usual : out_output->format;
  char expected[TM_SET_NAME_BYTES];
  if ((tm_format_set(wanted) & set) == 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: y has format %s, expected %s", tm_op_name(operation),
                   tm_format_title(wanted), tm_format_set_name(set, expected));
  out_output->format = wanted;
  return TM_OK;
}

tm_status tm_choose_input_format(const tm_operation *operation, uint32_t input, tm_operand *out_output,
                                 tm_error *error) {
  const uint32_t format = operation->operands[input].format;
  char name[NAME_CAPACITY];
  if (out_output->format != TM_FORMAT_NONE && out_output->format != format)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: y has format %s, expected %s as %s has", tm_op_name(operation),
                   tm_format_title(out_output->format), tm_format_title(format), tm_input_name(operation, input, name));
  out_output->format = format;
  return TM_OK;
}

tm_status tm_make_output(const tm_operation *operation, uint32_t rank, const uint64_t *dims, tm_operand *out_output,
                         tm_error *error) {
  const tm_status status = tm_operand_contiguous(out_output->format, rank, dims, out_output, error);
  if (status != TM_OK) tm_error_prefix(error, "%s: y", tm_op_name(operation));
  return status;
}

tm_status tm_make_broadcast_output(const tm_operation *operation, tm_operand *out_output, tm_error *error) {
  uint32_t rank;
  uint64_t dims[TM_MAX_RANK];
  if (tm_broadcast_dims(operation->operands, operation->input_count, &rank, dims))
    return tm_make_output(operation, rank, dims, out_output, error);
  char shapes[3 * DIMS_CAPACITY] = "";
  size_t length = 0;
  for (uint32_t i = 0; i < operation->input_count && i < 3; i++) {
    char text[DIMS_CAPACITY];
    tm_format_dims(&operation->operands[i], text, sizeof text);
    length += (size_t)snprintf(shapes + length, sizeof shapes - length, i == 0 ? "%s" : " %s", text);
  }
  return tm_fail(error, TM_ERROR_ARGUMENT,
                 "%s: shapes %s do not broadcast; extents must be equal or 1, from the last axis on",
                 tm_op_name(operation), shapes);
}

static tm_status check_output(const tm_operation *operation, const tm_operand *found, const tm_operand *expected,
                              tm_error *error) {
  char found_text[DIMS_CAPACITY];
  char expected_text[DIMS_CAPACITY];
  if (found->format != expected->format)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: y has format %s, expected %s", tm_op_name(operation),
                   tm_format_title(found->format), tm_format_title(expected->format));
  if (tm_same_dims(found, expected)) return TM_OK;
  tm_format_dims(found, found_text, sizeof found_text);
  tm_format_dims(expected, expected_text, sizeof expected_text);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: y has shape %s, expected %s", tm_op_name(operation), found_text,
                 expected_text);
}

tm_status tm_check_outputs(const tm_operation *operation, tm_error *error) {
  const tm_op_row *row = tm_op_find(operation->op);
  const tm_operand *outputs = tm_output_of(operation);
  tm_operand expected[TM_MAX_OPERANDS] = { { 0 } };
  for (uint32_t i = 0; i < operation->output_count; i++) {
    expected[i].format = outputs[i].format;
    expected[i].rank = outputs[i].rank;
    memcpy(expected[i].dims, outputs[i].dims, sizeof expected[i].dims);
  }
  TM_TRY(row->infer(operation, expected, error));
  for (uint32_t i = 0; i < operation->output_count; i++)
    TM_TRY(check_output(operation, &outputs[i], &expected[i], error));
  return TM_OK;
}
