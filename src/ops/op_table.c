/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op_table.h"

#include <string.h>

#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_one_pass.h"
#include "ops/op_rows.h"
#include "tensor/shape.h"

typedef struct family {
  const tm_op_row *rows;
  const uint32_t  *count;
} family;

#define FAMILY(name) { tm_op_rows_##name, &tm_op_rows_##name##_count }

static const family families[] = {
  FAMILY(move),
  FAMILY(gather),
  FAMILY(cast),
  FAMILY(binary),
  FAMILY(unary),
  FAMILY(ternary),
  FAMILY(merge),
  FAMILY(reduce),
  FAMILY(one_pass),
  FAMILY(matmul),
  FAMILY(normalize),
  FAMILY(rope),
  FAMILY(update),
  FAMILY(attention),
};
#define FAMILY_COUNT (sizeof families / sizeof families[0])

const tm_op_row *tm_op_at(uint32_t index) {
  for (size_t i = 0; i < FAMILY_COUNT; i++) {
    if (index < *families[i].count) return &families[i].rows[index];
    index -= *families[i].count;
  }
  return NULL;
}

/* The rows of a family are in the order of their numbers. */
const tm_op_row *tm_op_find(uint32_t op) {
  for (size_t i = 0; i < FAMILY_COUNT; i++) {
    const tm_op_row *rows = families[i].rows;
    const uint32_t count = *families[i].count;
    if (op < rows[0].op || op > rows[count - 1].op) continue;
    for (uint32_t j = 0; j < count; j++)
      if (rows[j].op == op) return &rows[j];
  }
  return NULL;
}

const tm_op_row *tm_op_by_name(const char *name, uint64_t length) {
  const tm_op_row *row;
  for (uint32_t i = 0; (row = tm_op_at(i)) != NULL; i++)
    if (strlen(row->name) == length && memcmp(row->name, name, (size_t)length) == 0) return row;
  return NULL;
}

static tm_status check_counts(const tm_operation *operation, const tm_op_row *row, tm_error *error) {
  if (operation->version != row->version)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: version %u, expected %u", row->name, (unsigned)operation->version,
                   (unsigned)row->version);
  if (operation->input_count < row->input_min || operation->input_count > row->input_max)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %u inputs, expected %u to %u", row->name,
                   (unsigned)operation->input_count, (unsigned)row->input_min, (unsigned)row->input_max);
  if (operation->output_count != row->output_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %u outputs, expected %u", row->name,
                   (unsigned)operation->output_count, (unsigned)row->output_count);
  if (operation->attribute_bytes == row->attribute_bytes &&
      (row->attribute_bytes == 0 || operation->attributes != NULL))
    return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %u bytes of attributes, expected %u", row->name,
                 (unsigned)(operation->attributes != NULL ? operation->attribute_bytes : 0),
                 (unsigned)row->attribute_bytes);
}

/* What the host derives must agree with what it was derived from.  Private layouts are known to their backend alone. */
static tm_status check_operand(const tm_operation *operation, uint32_t index, tm_error *error) {
  const tm_operand *given = &operation->operands[index];
  if (given->format >= TM_FORMAT_PRIVATE) return TM_OK;
  char buffer[16];
  const char *name = index < operation->input_count ? tm_input_name(operation, index, buffer) : "y";
  tm_operand derived = *given;
  const tm_status status = tm_operand_derive(&derived, error);
  if (status != TM_OK) tm_error_prefix(error, "%s: %s", tm_op_name(operation), name);
  else if (derived.element_count != given->element_count || derived.byte_count != given->byte_count)
    return tm_fail(error, TM_ERROR_ARGUMENT,
                   "%s: %s has %llu elements in %llu bytes, expected %llu in %llu from its dims and strides",
                   tm_op_name(operation), name, (unsigned long long)given->element_count,
                   (unsigned long long)given->byte_count, (unsigned long long)derived.element_count,
                   (unsigned long long)derived.byte_count);
  return status;
}

/* An output element must not be written twice; without elements any stride will do. */
static tm_status check_output_strides(const tm_operation *operation, const tm_operand *output, tm_error *error) {
  for (uint32_t i = 0; i < output->rank && output->element_count != 0; i++)
    if (output->dims[i] > 1 && output->strides_bytes[i] == 0 && output->format < TM_FORMAT_PRIVATE)
      return tm_fail(error, TM_ERROR_ARGUMENT,
                     "%s: y has stride 0 on axis %u of extent %llu; an output cannot be broadcast",
                     tm_op_name(operation), (unsigned)i, (unsigned long long)output->dims[i]);
  return TM_OK;
}

/* What infer may look at in an output: the format and, for fill, the shape. */
static tm_operand wanted_of(const tm_operand *output) {
  tm_operand wanted = { .format = output->format, .rank = output->rank };
  memcpy(wanted.dims, output->dims, sizeof wanted.dims);
  return wanted;
}

static tm_status find_row(const tm_operation *operation, const tm_op_row **out_row, tm_error *error) {
  *out_row = tm_op_find(operation->op);
  if (*out_row == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "operation number %u is not known", (unsigned)operation->op);
  return check_counts(operation, *out_row, error);
}

tm_status tm_op_infer_outputs(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_op_row *row;
  tm_operand outputs[TM_MAX_OPERANDS] = { { 0 } };
  TM_TRY(find_row(operation, &row, error));
  for (uint32_t i = 0; i < operation->input_count; i++) TM_TRY(check_operand(operation, i, error));
  for (uint32_t i = 0; i < operation->output_count; i++) outputs[i] = wanted_of(&out_outputs[i]);
  TM_TRY(row->infer(operation, outputs, error));
  memcpy(out_outputs, outputs, operation->output_count * sizeof outputs[0]);
  return TM_OK;
}

tm_status tm_op_check(const tm_operation *operation, tm_error *error) {
  const tm_op_row *row;
  TM_TRY(find_row(operation, &row, error));
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; i++) TM_TRY(check_operand(operation, i, error));
  for (uint32_t i = operation->input_count; i < count; i++)
    TM_TRY(check_output_strides(operation, &operation->operands[i], error));
  return row->check(operation, error);
}
