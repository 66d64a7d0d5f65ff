/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_weights.h - the factors that inputs are multiplied with.  Those that have to sum to 1 lie on a grid, the multiples of
 * 2^-28, and do so exactly: with values of at most 24 significant bits every product and partial sum is exact in f64, and equal
 * inputs give their own bits.  Longer values have no use for a grid (see merge_equals.h), which would only take digits from the
 * factors.
 */
#ifndef TM_JOBS_MERGE_WEIGHTS_H
#define TM_JOBS_MERGE_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

/* Divides by the sum and, on the grid, rounds; what is left of 1 then goes to the largest, the first of those.  false: the sum is
   0, or so much smaller than the weights that dividing by it means nothing. */
bool tm_merge_weights_normalize(double *weights, uint32_t count, bool on_grid);

/* Two vectors more parallel than this, or one of them without length, are mixed linearly: the arc has no direction there. */
#define TM_MERGE_SLERP_PARALLEL 0.9995

/* Factors of the point at t on the arc from a to b; for equal lengths its length is theirs.   dot: a*b; squares: a*a and b*b.
   out_angle: between both, in radians; NaN where the mix is linear, which alone may be on the grid. */
void tm_merge_weights_slerp(double dot, double square_a, double square_b, double t, bool on_grid, double out_weights[2],
                            double *out_angle);

#endif
