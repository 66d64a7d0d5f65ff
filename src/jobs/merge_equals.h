/* SPDX-License-Identifier: Apache-2.0 */
/* merge_equals.h - elements that all inputs of a mean have alike, and which are therefore what the mean is: where products are too
   long for f64, or of different signs, its sums would miss them by a little. */
#ifndef TM_JOBS_MERGE_EQUALS_H
#define TM_JOBS_MERGE_EQUALS_H

#include "jobs/merge_elements.h"

/* Puts what all inputs have alike, bit for bit when decoded and no NaN, in the place of what was computed.  format: a float. */
void tm_merge_equals_keep(const tm_merge_elements *inputs, uint32_t input_count, uint64_t elements, uint32_t format, void *data);

#endif
