/* SPDX-License-Identifier: Apache-2.0 */
/* op_check.h - what the infer functions of all families share: requirements on operands with messages that name them.
 */
#ifndef TM_OPS_OP_CHECK_H
#define TM_OPS_OP_CHECK_H

#include "ops/op_table.h"

/* Sets of formats. */
#define TM_SET_FLOAT        0x01u       /* f64 f32 f16 bf16 and both f8 */
#define TM_SET_INTEGER      0x02u       /* 8 to 64 bits */
#define TM_SET_BOOL         0x04u
#define TM_SET_INTEGER_4    0x08u
#define TM_SET_BLOCK        0x10u       /* block formats with a codec */
#define TM_SET_PLAIN_OPAQUE 0x20u       /* whole bytes an element, no arithmetic */
#define TM_SET_BLOCK_OPAQUE 0x40u       /* packed or block, no codec */
#define TM_SET_BLOCK_READ   0x80u       /* block formats with a decoder alone */
#define TM_SET_PLAIN (TM_SET_FLOAT | TM_SET_INTEGER | TM_SET_BOOL | TM_SET_PLAIN_OPAQUE)
#define TM_SET_NUMBER (TM_SET_FLOAT | TM_SET_INTEGER)
#define TM_SET_ANY_BLOCK (TM_SET_BLOCK | TM_SET_BLOCK_READ)     /* what can be read */
#define TM_SET_ALL 0xffu

/* The one set a format belongs to; 0 if unknown or private. */
uint32_t tm_format_set(uint32_t format);
/* "f32", "private" or "unknown". */
const char *tm_format_title(uint32_t format);

/* "float or block format (q4_0 or q8_0)": a set in words.  Returns `text`, of TM_SET_NAME_BYTES. */
#define TM_SET_NAME_BYTES 512
const char *tm_format_set_name(uint32_t set, char *text);

/* Each returns TM_ERROR_ARGUMENT with a text when the requirement is not met. */
tm_status tm_require_format(const tm_operation *operation, uint32_t input, uint32_t set, tm_error *error);
/* i32 or i64: positions, indices, lengths. */
tm_status tm_require_index_format(const tm_operation *operation, uint32_t input, tm_error *error);
tm_status tm_require_same_format(const tm_operation *operation, uint32_t input, uint32_t as_input, tm_error *error);
tm_status tm_require_dims(const tm_operation *operation, uint32_t input, uint32_t rank, const uint64_t *dims,
                          tm_error *error);
tm_status tm_require_axis(const tm_operation *operation, uint32_t input, uint32_t axis, tm_error *error);
/* An attribute that is 0 or 1; a reserved one that is 0. */
tm_status tm_require_switch(const tm_operation *operation, const char *name, uint32_t value, tm_error *error);
tm_status tm_require_reserved(const tm_operation *operation, uint32_t value, tm_error *error);

/* Puts the wanted format (if it is in `set`) or else `usual` into out_output->format. */
tm_status tm_choose_format(const tm_operation *operation, uint32_t usual, uint32_t set, tm_operand *out_output,
                           tm_error *error);
/* For operations whose output has the format of an input and no other. */
tm_status tm_choose_input_format(const tm_operation *operation, uint32_t input, tm_operand *out_output,
                                 tm_error *error);
/* A dense output of the format in out_output->format. */
tm_status tm_make_output(const tm_operation *operation, uint32_t rank, const uint64_t *dims, tm_operand *out_output,
                         tm_error *error);
/* The same with the dims that all inputs broadcast to. */
tm_status tm_make_broadcast_output(const tm_operation *operation, tm_operand *out_output, tm_error *error);

/* tm_op_row.check of every row: the outputs must be what infer makes of the inputs, strides apart. */
tm_status tm_check_outputs(const tm_operation *operation, tm_error *error);

/* The operation's first output. */
static inline const tm_operand *tm_output_of(const tm_operation *operation) {
  return &operation->operands[operation->input_count];
}

/* "b", or "operand 1"; `buffer` of 16 characters. */
const char *tm_input_name(const tm_operation *operation, uint32_t input, char *buffer);
const char *tm_op_name(const tm_operation *operation);

#endif
