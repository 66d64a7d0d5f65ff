/* SPDX-License-Identifier: Apache-2.0 */
/* op_attributes.h - the attributes of operations (types.h) by name: which there are, and what a text for one means. */
#ifndef TM_CLI_OP_ATTRIBUTES_H
#define TM_CLI_OP_ATTRIBUTES_H

#include "json_writer.h"
#include "tensormorph/types.h"

#define TM_OP_ATTRIBUTE_BYTES 64

typedef struct tm_op_attributes {
  uint32_t op;
  uint32_t rank;                /* of the first input: axes may be counted from the end */
  uint32_t is_given;            /* bit i: row i of the operation was set */
  union {
    double   alignment;
    uint8_t  bytes[TM_OP_ATTRIBUTE_BYTES];
  } value;                      /* the operation's struct of types.h */
} tm_op_attributes;

/* Zero, or what is usual where zero would be of no use. */
void      tm_op_attributes_init(tm_op_attributes *attributes, uint32_t op, uint32_t rank);
/* TM_ERROR_ARGUMENT (no such attribute: the text lists them; or not a value for it) */
tm_status tm_op_attributes_set(tm_op_attributes *attributes, const char *key, const char *value, tm_error *error);
/* The shortcut --axis: "axis" or "axes", whichever the operation has. */
tm_status tm_op_attributes_set_axis(tm_op_attributes *attributes, const char *value, tm_error *error);
/* TM_ERROR_ARGUMENT when one that has no usual value was not given. */
tm_status tm_op_attributes_check(const tm_op_attributes *attributes, const char *op_name, tm_error *error);
/* Members "key": value. */
void      tm_op_attributes_print_json(const tm_op_attributes *attributes, tm_json_writer *json);
/* "transpose_b=1 axis=2"; "" if all are zero. */
void      tm_op_attributes_print(const tm_op_attributes *attributes, char *out, size_t capacity);

#endif
