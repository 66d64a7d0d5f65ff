/* SPDX-License-Identifier: Apache-2.0 */
/* question.h - a random operation as a host would ask about it: shapes, layouts, alignments, requirements. */
#ifndef CONFORMANCE_QUESTION_H
#define CONFORMANCE_QUESTION_H

#include "conformance/kernel_cases.h"

/* An operation with the formats of its operands; the output is the last. */
typedef struct combination {
  const tm_op_row *row;
  uint32_t         inputs;
  uint32_t         formats[CASE_MAX_OPERANDS];
} combination;

typedef struct combination_list {
  combination *items;
  uint32_t     count;
  uint32_t     capacity;
} combination_list;

/* Appends the combinations of formats that the operation takes at all.  False without memory. */
bool combination_list_add(combination_list *list, const tm_op_row *row);
void combination_list_free(combination_list *list);

/* An input that the device reads in a format of its own. */
typedef struct packed_input {
  uint32_t format;              /* TM_FORMAT_NONE: it is as it was */
  uint32_t reserved;
  uint64_t bytes;
} packed_input;

typedef struct question {
  kernel_case  c;
  packed_input packed[CASE_MAX_OPERANDS];
  temper       temper;
  bool         sweeps;          /* the input holds every bit pattern of its format once, in order */
  bool         crosses;         /* the inputs hold special values, of two each with each */
  bool         shares;          /* where the first two inputs are alike, they lie in one place */
} question;

/* The operation as the device is asked about it, packed inputs included. */
typedef struct asked_operation {
  tm_operation operation;
  tm_operand   operands[CASE_MAX_OPERANDS];
} asked_operation;

/* Whether the first two inputs are one: the same bytes in the same place. */
bool question_shares(const question *q);
void question_asked(const question *q, asked_operation *out_asked);
bool question_is_packed(const question *q);
/* The conversion of a packed input: from its public format to the private one. */
void question_packing(const question *q, uint32_t input, asked_operation *out_asked);
/* A copy that stands on its own feet. */
void question_copy(const question *from, question *out_to);

/* Number `number` for the combination; 0 is dense, aligned and without requirements.  Not all numbers make an operation:
   then false. */
bool question_make(question *q, const combination *which, uint32_t number, uint64_t seed);
/* A dense one with about this many elements (multiplications, for a product). */
bool question_make_plain(question *q, const combination *which, uint64_t elements, uint64_t seed);

/* One of these dims, dense and aligned. */
bool question_make_planned(question *q, const combination *which, const case_plan *plan, uint64_t *state);
/* About weights: all inputs but this one keep their bytes. */
void question_make_constant(question *q, uint32_t but);
/* Once its operands are as they shall be; false if that is no operation. */
bool question_settle(question *q);

/* "matmul f32[3,4] q8_0[2,32](view) -> f32[3,2]" */
void question_describe(const question *q, char *text, uint64_t capacity);
/* "f32,q8_0,f32"; private formats by their number */
void combination_describe(const combination *which, char *text, uint64_t capacity);

#endif
