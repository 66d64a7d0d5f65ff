/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_request.h - one operation with the formats and shapes of its operands, as explain and bench take it from the
 * command line: OP --dtype LIST --shape LIST and attributes.
 */
#ifndef TM_CLI_OP_REQUEST_H
#define TM_CLI_OP_REQUEST_H

#include "arguments.h"
#include "op_attributes.h"
#include "tensormorph/tensormorph.h"

#define TM_OP_REQUEST_FLAGS                                                                                            \
  { "dtype", 0, TM_FLAG_TEXT, false, "LIST", "formats of the inputs, in order; the last one counts for the rest" },    \
  { "shape", 0, TM_FLAG_TEXT, false, "LIST",                                                                           \
    "shapes of the inputs, such as 4096x4096,4096x64 or scalar; the last one counts for the rest; one more is the output's" }, \
  { "output-dtype", 0, TM_FLAG_TEXT, false, "FORMAT", "format of the output, where there is a choice" },               \
  { "attr", 0, TM_FLAG_TEXT, false, "KEY=VALUE", "an attribute of the operation; repeatable" },                        \
  { "transpose-a", 0, TM_FLAG_SWITCH, false, NULL, "the first matrix lies transposed" },                               \
  { "transpose-b", 0, TM_FLAG_SWITCH, false, NULL, "the second matrix lies transposed" },                              \
  { "axis", 0, TM_FLAG_TEXT, false, "LIST", "the axis or axes to work along; -1 is the last" },                        \
  { "constant", 0, TM_FLAG_COUNT, false, "N", "input N (from 0) never changes, as weights do; repeatable" }

typedef struct tm_op_request {
  tm_op_description op;
  tm_operand        inputs[TM_MAX_OPERANDS];
  tm_operand        outputs[TM_MAX_OPERANDS];   /* as tm_op_infer gives them */
  uint32_t          input_count;
  tm_operand        asked_output;               /* its shape alone, */
  bool              has_asked_output;           /* if it was given */
  tm_op_attributes  attributes;
  char              note[768];                  /* how it was understood, where that is not literal; else "" */
} tm_op_request;

/* TM_ERROR_ARGUMENT: an unknown operation or format (with a suggestion), a shape that is none, operands that do not go
   together. */
tm_status tm_op_request_parse(const tm_arguments *arguments, tm_op_request *out_request, tm_error *error);

/* "f32 4096x4096". */
void tm_operand_describe(const tm_operand *operand, char *out, size_t capacity);
/* {"dtype": "f32", "shape": [4096, 4096], "constant": true} */
void tm_operand_print_json(const tm_operand *operand, tm_json_writer *json);

/* The description of an operation by its name.   TM_ERROR_ARGUMENT, with a suggestion */
tm_status tm_op_describe_by_name(const char *name, tm_op_description *out_op, tm_error *error);

#endif
