/* SPDX-License-Identifier: Apache-2.0 */
/* output_terms.h - of how much an element of a result is made: what class N2 allows errors in proportion to. */
#ifndef TM_OPS_OUTPUT_TERMS_H
#define TM_OPS_OUTPUT_TERMS_H

#include "ops/op_table.h"
#include "ops/walk.h"

/* What the elements of one part of a result (ops/output_parts.h) have in common, so that it is found once for all of them. */
typedef struct tm_part_terms {
  uint64_t column_count;        /* 0: nothing is known yet, as before a part's first element */
  uint64_t first_column;        /* along y's last axis */
  double   score;               /* what the scores of attention's keys are made of, at most */
  double   largest[TM_RUN];     /* of the values of a column */
} tm_part_terms;

/* At least the sum of the magnitudes of the terms of the element of y at `index` (one index an axis of y), whose value is
   `result`; infinite where that is not known. */
double tm_output_terms(const tm_operation *operation, void *const *pointers, const uint64_t *index, double result,
                       tm_part_terms *part);

/* Whether those of a part take about as long as computing it. */
bool tm_output_terms_take_a_pass(uint32_t op);

#endif
