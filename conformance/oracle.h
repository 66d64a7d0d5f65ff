/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - what a numerics class is measured against: the results in f64 before their one rounding, and the sum of the
 * magnitudes of the terms that each of them is made of.
 */
#ifndef CONFORMANCE_ORACLE_H
#define CONFORMANCE_ORACLE_H

#include "conformance/question.h"

/* Both in the output's row-major order; NULL where the class of the operation has no use for it. */
typedef struct oracle {
  double  *results;
  double  *terms;
  uint64_t count;
} oracle;

/* From the operands at `pointers`, which the normalized operation describes.  False when there is no memory or the output
   is no float. */
bool oracle_make(oracle *o, const kernel_case *c, void *const *pointers);
void oracle_free(oracle *o);

/* The values of an operand in row-major order; for the caller to free. */
double *oracle_decode(const tm_operand *operand, const void *first);

#endif
