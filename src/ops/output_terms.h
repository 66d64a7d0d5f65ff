/* SPDX-License-Identifier: Apache-2.0 */
/* output_terms.h - of how much an element of a result is made: what class N2 allows errors in proportion to. */
#ifndef TM_OPS_OUTPUT_TERMS_H
#define TM_OPS_OUTPUT_TERMS_H

#include "ops/op_table.h"

/* At least the sum of the magnitudes of the terms of the element of y at `index` (one index an axis of y), whose value is `result`. */
double tm_output_terms(const tm_operation *operation, void *const *pointers, const uint64_t *index, double result);

#endif
