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

typedef struct question {
  kernel_case c;
  temper      temper;
  bool        sweeps;           /* the input holds every bit pattern of its format once, in order */
} question;

/* Number `number` for the combination; 0 is dense, aligned and without requirements.  Not all numbers make an operation:
   then false. */
bool question_make(question *q, const combination *which, uint32_t number, uint64_t seed);
/* A dense one with about this many elements (multiplications, for a product). */
bool question_make_plain(question *q, const combination *which, uint64_t elements, uint64_t seed);

/* "matmul f32[3,4] q8_0[2,32](view) -> f32[3,2]" */
void question_describe(const question *q, char *text, uint64_t capacity);
/* "f32,q8_0,f32" */
void combination_describe(const combination *which, char *text, uint64_t capacity);

#endif
