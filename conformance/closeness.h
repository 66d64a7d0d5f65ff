/* SPDX-License-Identifier: Apache-2.0 */
/* closeness.h - is an output as close to the reference's as its numerics class promises?  (types.h has the formulas.) */
#ifndef CONFORMANCE_CLOSENESS_H
#define CONFORMANCE_CLOSENESS_H

#include "conformance/oracle.h"
#include "tensormorph/plugin.h"

typedef struct closeness {
  bool   is_close;
  double worst;                 /* largest distance as a fraction of what is allowed; 0 where all bits are equal */
  char   text[200];             /* the first element that is too far off */
} closeness;

/* `actual` and `expected`: addresses of the outputs' first elements; `o` may be NULL for the classes N0 and N1. */
void closeness_measure(closeness *out, const kernel_case *c, const tm_answer *answer, const void *actual, const void *expected,
                       const oracle *o);

#endif
