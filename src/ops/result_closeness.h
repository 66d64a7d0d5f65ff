/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_closeness.h - is an element of a result as close to the reference's as its numerics class promises?  (types.h has the
 * formulas.)  The one piece by which a trial, a conformance run and the checks of running work judge.
 */
#ifndef TM_OPS_RESULT_CLOSENESS_H
#define TM_OPS_RESULT_CLOSENESS_H

#include <stdbool.h>

#include "ops/op_table.h"

typedef struct tm_result_element {
  const void *actual;           /* a block of y's format each */
  const void *expected;         /* the reference's */
  double      exact;            /* the result in f64 before its one rounding; only if `is_exact` */
  double      terms;            /* sum of the magnitudes of what it is made of; class N2 */
  bool        is_exact;         /* false: what the rounding may have hidden is allowed besides */
} tm_result_element;

/* Distance as a fraction of what is allowed: 0 for equal bits, more than 1 is too far.  Of class N3, whose bound is about all elements
   together, only whether it is finite as the reference is. */
double tm_closeness_of(const tm_operation *operation, const tm_answer *answer, const tm_result_element *element);

/* Whether the class needs `terms` to judge a float. */
bool tm_closeness_needs_terms(const tm_answer *answer);

/* Whether the operation keeps bits, payloads of NaN included.  Elsewhere a NaN is a NaN: which of two operands' payloads an addition
   keeps is nobody's promise. */
bool tm_closeness_keeps_bits(uint32_t op);

/* N2: how far a result may be from `exact`. */
double tm_closeness_allowed(const tm_operation *operation, const tm_answer *answer, double exact, double terms);

/* The largest bound that still promises something of this operation in the answer's class (types.h has the rule); 0 for classes
   without one. */
double tm_closeness_largest_bound(const tm_operation *operation, const tm_answer *answer);

/* Steps from one float to the other through the numbers of their format, whose bits are sign and magnitude. */
uint64_t tm_closeness_ulps(const void *a, const void *b, uint32_t bytes);

/* The smallest normal number of a float format; 0 for any other. */
double tm_closeness_smallest_normal(uint32_t format);

#endif
