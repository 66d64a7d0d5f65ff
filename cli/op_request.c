/* SPDX-License-Identifier: Apache-2.0 */
#include "op_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "nearest_format.h"

tm_status tm_op_describe_by_name(const char *name, tm_op_description *out_op, tm_error *error) {
  tm_nearest_name nearest;
  tm_nearest_name_init(&nearest, name);
  memset(out_op, 0, sizeof *out_op);
  out_op->struct_size = sizeof *out_op;
  for (uint32_t i = 0; tm_op_describe(i, out_op) == TM_OK; i++) {
    if (strcmp(out_op->name, name) == 0) return TM_OK;
    tm_nearest_name_offer(&nearest, out_op->name);
  }
  if (nearest.best != NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "unknown operation \"%s\"; did you mean \"%s\"?", name, nearest.best);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "unknown operation \"%s\"; tensormorph ops lists all", name);
}

static tm_status lookup_format(const char *name, uint32_t *out_format, tm_error *error) {
  *out_format = tm_format_lookup(name);
  if (*out_format != TM_FORMAT_NONE) return TM_OK;
  tm_nearest_name nearest;
  tm_nearest_format_find(&nearest, name);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "unknown format \"%s\"%s%s%s", name,
                   nearest.best != NULL ? "; did you mean \"" : "; tensormorph ops lists all", nearest.best != NULL ? nearest.best : "",
                   nearest.best != NULL ? "\"?" : "");
}

/* Cuts the next element off a list; false at its end. */
static bool next_element(const char **list, char *out, size_t capacity) {
  if (**list == '\0') return false;
  const size_t length = strcspn(*list, ",");
  snprintf(out, capacity, "%.*s", (int)(length < capacity ? length : capacity - 1), *list);
  *list += length;
  if (**list == ',') ++*list;
  return true;
}

static tm_status parse_formats(const char *list, tm_op_request *request, uint32_t *out_count, tm_error *error) {
  char      name[64];
  tm_status status = TM_OK;
  *out_count = 0;
  while (status == TM_OK && next_element(&list, name, sizeof name)) {
    if (*out_count == TM_MAX_OPERANDS)
      return tm_refuse(error, TM_ERROR_ARGUMENT, "--dtype: more than %d formats", TM_MAX_OPERANDS);
    status = lookup_format(name, &request->inputs[*out_count].format, error);
    ++*out_count;
  }
  return status;
}

static bool parse_shape(const char *text, tm_operand *operand) {
  operand->rank = 0;
  if (strcmp(text, "scalar") == 0) return true;
  for (;;) {
    char *end = NULL;
    if (*text < '0' || *text > '9' || operand->rank == TM_MAX_RANK) return false;
    operand->dims[operand->rank++] = strtoull(text, &end, 10);
    if (*end == '\0') return true;
    if (*end != 'x') return false;
    text = end + 1;
  }
}

static tm_status parse_shapes(const char *list, tm_op_request *request, uint32_t *out_count, tm_error *error) {
  char text[256];
  *out_count = 0;
  while (next_element(&list, text, sizeof text)) {
    if (*out_count == TM_MAX_OPERANDS)
      return tm_refuse(error, TM_ERROR_ARGUMENT, "--shape: more than %d shapes", TM_MAX_OPERANDS);
    if (!parse_shape(text, &request->inputs[*out_count]))
      return tm_refuse(error, TM_ERROR_ARGUMENT,
                       "--shape wants shapes such as 4096x64 (%d axes at most) or scalar, not \"%s\"", TM_MAX_RANK,
                       text);
    ++*out_count;
  }
  return TM_OK;
}

/* As many inputs as the longer list has; what the shorter one lacks is its last entry again.  A shape beyond all inputs is the
   output's. */
static tm_status settle_inputs(tm_op_request *request, uint32_t formats, uint32_t shapes, tm_error *error) {
  const tm_op_description *op = &request->op;
  if (formats == 0 || shapes == 0)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s needs --dtype and --shape of its inputs", op->name);
  if (shapes == op->input_max + 1 && shapes > 1) {
    request->asked_output = request->inputs[--shapes];
    request->has_asked_output = true;
  }
  request->input_count = formats > shapes ? formats : shapes;
  if (request->input_count < op->input_min) request->input_count = op->input_min;
  if (request->input_count > op->input_max)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "%s takes %u input%s, not %u", op->name, op->input_max,
                     op->input_max == 1 ? "" : "s", request->input_count);
  for (uint32_t i = formats; i < request->input_count; i++)
    request->inputs[i].format = request->inputs[formats - 1].format;
  for (uint32_t i = shapes; i < request->input_count; i++) {
    request->inputs[i].rank = request->inputs[shapes - 1].rank;
    memcpy(request->inputs[i].dims, request->inputs[shapes - 1].dims, sizeof request->inputs[i].dims);
  }
  return TM_OK;
}

static tm_status mark_constants(const tm_arguments *arguments, tm_op_request *request, tm_error *error) {
  for (uint32_t i = 0; i < arguments->count; i++) {
    if (strcmp(arguments->items[i].flag->name, "constant") != 0) continue;
    const unsigned long index = strtoul(arguments->items[i].value, NULL, 10);
    if (index >= request->input_count)
      return tm_refuse(error, TM_ERROR_ARGUMENT, "--constant %lu: there are %u inputs, counted from 0", index,
                       request->input_count);
    request->inputs[index].flags |= TM_OPERAND_CONSTANT;
  }
  return TM_OK;
}

static tm_status set_attribute(tm_op_request *request, const char *pair, tm_error *error) {
  char         key[64];
  const size_t length = strcspn(pair, "=");
  if (pair[length] == '\0') return tm_refuse(error, TM_ERROR_ARGUMENT, "--attr wants KEY=VALUE, not \"%s\"", pair);
  snprintf(key, sizeof key, "%.*s", (int)(length < sizeof key ? length : sizeof key - 1), pair);
  return tm_op_attributes_set(&request->attributes, key, pair + length + 1, error);
}

static tm_status parse_attributes(const tm_arguments *arguments, tm_op_request *request, tm_error *error) {
  tm_status status = TM_OK;
  tm_op_attributes_init(&request->attributes, request->op.op, request->inputs[0].rank);
  for (uint32_t i = 0; i < arguments->count && status == TM_OK; i++) {
    const char *name = arguments->items[i].flag->name, *value = arguments->items[i].value;
    if (strcmp(name, "attr") == 0) status = set_attribute(request, value, error);
    if (strcmp(name, "axis") == 0) status = tm_op_attributes_set_axis(&request->attributes, value, error);
    if (strcmp(name, "transpose-a") == 0)
      status = tm_op_attributes_set(&request->attributes, "transpose_a", "1", error);
    if (strcmp(name, "transpose-b") == 0)
      status = tm_op_attributes_set(&request->attributes, "transpose_b", "1", error);
  }
  return status != TM_OK ? status : tm_op_attributes_check(&request->attributes, request->op.name, error);
}

static void describe_shape(const tm_operand *operand, char *out, size_t capacity) {
  snprintf(out, capacity, "%s", operand->rank == 0 ? "scalar" : "");
  for (uint32_t i = 0; i < operand->rank; i++) {
    const size_t used = strlen(out);
    if (used < capacity)
      snprintf(out + used, capacity - used, "%s%llu", i > 0 ? "x" : "", (unsigned long long)operand->dims[i]);
  }
}

static tm_status check_output(const tm_op_request *request, tm_error *error) {
  char              asked_text[256], found_text[256];
  const tm_operand *asked = &request->asked_output, *found = &request->outputs[0];
  if (!request->has_asked_output) return TM_OK;
  if (asked->rank == found->rank && memcmp(asked->dims, found->dims, asked->rank * sizeof *asked->dims) == 0) return TM_OK;
  describe_shape(asked, asked_text, sizeof asked_text);
  describe_shape(found, found_text, sizeof found_text);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "--shape: the output of %s has shape %s, not %s", request->op.name, found_text,
                   asked_text);
}

static tm_status infer(tm_op_request *request, const char *output_format, tm_error *error) {
  uint32_t format = TM_FORMAT_NONE;
  if (output_format != NULL) {
    const tm_status status = lookup_format(output_format, &format, error);
    if (status != TM_OK) return status;
  }
  memset(request->outputs, 0, sizeof request->outputs);
  request->outputs[0] = request->asked_output;
  for (uint32_t i = 0; i < request->op.output_count; i++) request->outputs[i].format = format;
  const tm_status status = tm_op_infer(request->op.op, request->op.attribute_bytes > 0 ? request->attributes.value.bytes : NULL,
                                       request->op.attribute_bytes, request->inputs, request->input_count, request->outputs,
                                       request->op.output_count, error);
  return status != TM_OK ? status : check_output(request, error);
}

static bool is_block_format(uint32_t wanted) {
  tm_format_description format = { .struct_size = sizeof format };
  for (uint32_t i = 0; tm_format_describe(i, &format) == TM_OK; i++)
    if (format.format == wanted) return format.block_elements > 2;
  return false;
}

/*
 * People write weights first, "q4_0,f32"; the operation wants them second.  W x X is computed as (X^T x W^T)^T, which
 * reads the same bytes: X with transpose_a, W with transpose_b; only the result lies transposed.  False: not that case.
 */
static bool put_weights_second(tm_op_request *request) {
  const uint8_t nothing[TM_OP_ATTRIBUTE_BYTES] = { 0 };
  tm_operand   *a = &request->inputs[0], *b = &request->inputs[1];
  if (request->op.op != TM_OP_MATMUL || !is_block_format(a->format) || is_block_format(b->format)) return false;
  if (memcmp(request->attributes.value.bytes, nothing, request->op.attribute_bytes) != 0) return false;
  const tm_operand weights = *a;
  char             a_text[256], b_text[256];
  *a = *b;
  *b = weights;
  const tm_matmul_attributes both = { .transpose_a = 1, .transpose_b = 1 };
  memcpy(request->attributes.value.bytes, &both, sizeof both);
  tm_operand_describe(a, a_text, sizeof a_text);
  tm_operand_describe(b, b_text, sizeof b_text);
  snprintf(request->note, sizeof request->note,
           "block-format weights are the second operand: taken as %s, %s with transpose_a and transpose_b, which "
           "computes the "
           "transposed product from the same bytes",
           a_text, b_text);
  return true;
}

tm_status tm_op_request_parse(const tm_arguments *arguments, tm_op_request *out_request, tm_error *error) {
  const char *formats = tm_arguments_value(arguments, "dtype"), *shapes = tm_arguments_value(arguments, "shape");
  const char *output_format = tm_arguments_value(arguments, "output-dtype");
  uint32_t    format_count = 0, shape_count = 0;
  memset(out_request, 0, sizeof *out_request);
  tm_status status = tm_op_describe_by_name(arguments->operands[0], &out_request->op, error);
  if (status == TM_OK) status = parse_formats(formats != NULL ? formats : "", out_request, &format_count, error);
  if (status == TM_OK) status = parse_shapes(shapes != NULL ? shapes : "", out_request, &shape_count, error);
  if (status == TM_OK) status = settle_inputs(out_request, format_count, shape_count, error);
  if (status == TM_OK) status = mark_constants(arguments, out_request, error);
  if (status == TM_OK) status = parse_attributes(arguments, out_request, error);
  if (status != TM_OK) return status;
  status = infer(out_request, output_format, error);
  if (status == TM_OK || !put_weights_second(out_request)) return status;
  /* If this does not go either, what was written is what the message must be about; but why it would not do is said, too. */
  tm_error other = TM_CLI_ERROR_INIT;
  const tm_error first = *error;
  if (infer(out_request, output_format, &other) == TM_OK) return TM_OK;
  return tm_refuse(error, status, "%.450s; and as the second operand: %.450s", first.text, other.text);
}

void tm_operand_describe(const tm_operand *operand, char *out, size_t capacity) {
  snprintf(out, capacity, "%s ", tm_format_name(operand->format));
  const size_t used = strlen(out);
  describe_shape(operand, out + used, capacity - used);
}

void tm_operand_print_json(const tm_operand *operand, tm_json_writer *json) {
  tm_json_begin_object(json, NULL, true);
  tm_json_text(json, "dtype", tm_format_name(operand->format));
  tm_json_begin_array(json, "shape", true);
  for (uint32_t i = 0; i < operand->rank; i++) tm_json_count(json, NULL, operand->dims[i]);
  tm_json_end_array(json);
  tm_json_bool(json, "constant", (operand->flags & TM_OPERAND_CONSTANT) != 0);
  tm_json_end_object(json);
}
