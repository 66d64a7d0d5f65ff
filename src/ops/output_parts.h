/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_parts.h - a result in the smallest parts that the reference can compute each for itself: an element, a row of a softmax, a
 * head of a token; all of it where each output needs all inputs.  For whoever looks at a few of them, and cannot afford the whole.
 *
 *     tm_output_parts parts;
 *     if (tm_output_parts_init(&parts, &operation)) ... parts.count of them, parts.part_bytes each
 *     tm_output_parts_check(&parts, answer, pointers, index, room, text)
 */
#ifndef TM_OPS_OUTPUT_PARTS_H
#define TM_OPS_OUTPUT_PARTS_H

#include <stdbool.h>

#include "ops/op_table.h"

#define TM_OUTPUT_FAULT_BYTES 120

typedef struct tm_output_parts {
  const tm_operation *whole;
  tm_operation operation;               /* a unit of it is a part, and all parts are written to one place */
  tm_operand   operands[TM_MAX_OPERANDS];
  uint64_t     count;
  uint64_t     part_bytes;              /* dense */
  uint64_t     part_blocks;
  int64_t      part_step_bytes;         /* in y, from block to block of a part */
  uint64_t     columns;                 /* parts a unit: of a matrix product each column, else 1 */
  uint32_t     unit_elements;           /* of a part along the last axis, where it is not all of one axis */
  uint32_t     rank;                    /* of the parts' own space, whose indices these belong to: */
  uint64_t     dims[TM_MAX_RANK];
  int64_t      steps_bytes[TM_MAX_RANK];/* in y */
} tm_output_parts;

/* Of a normalized operation, which must outlive them.  False: no part of it can be computed (or there is none). */
bool tm_output_parts_init(tm_output_parts *parts, const tm_operation *operation);

/* Whether a part of the result at pointers[input_count] is as close to what the reference computes as the answer promises;
   `room` of part_bytes, aligned for any type.  False: out_text says what is wrong. */
bool tm_output_parts_check(const tm_output_parts *parts, const tm_answer *answer, void *const *pointers, uint64_t index, void *room,
                           char out_text[TM_OUTPUT_FAULT_BYTES]);

/* Elements of an input, row by row, that a part depends on: all of them where it is not known to be fewer. */
void tm_output_parts_reads(const tm_output_parts *parts, uint64_t index, uint32_t input, uint64_t *out_begin, uint64_t *out_count);

#endif
