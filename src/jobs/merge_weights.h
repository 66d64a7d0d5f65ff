/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_weights.h - the factors that inputs are multiplied with.  Those that have to sum to 1 are multiples of 2^-28 and do so
 * exactly: with values of at most 24 significant bits every product and partial sum is exact in f64, and equal inputs give
 * their own bits.
 */
#ifndef TM_JOBS_MERGE_WEIGHTS_H
#define TM_JOBS_MERGE_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

/* Divides by the sum and rounds; what is left of 1 goes to the largest, the first of those.  false: the sum is 0, or so much
   smaller than the weights that dividing by it means nothing. */
bool tm_merge_weights_normalize(double *weights, uint32_t count);

/* Two vectors more parallel than this, or one of them without length, are mixed linearly: the arc has no direction there. */
#define TM_MERGE_SLERP_PARALLEL 0.9995

/* Factors of the point at t on the arc from a to b; for equal lengths its length is theirs.   dot: a*b; squares: a*a and b*b.
   out_angle: between both, in radians; NaN where the mix is linear.  Rounded to multiples of 2^-28 on the arc, too, which hides in
   which place one library's sine is off. */
void tm_merge_weights_slerp(double dot, double square_a, double square_b, double t, double out_weights[2], double *out_angle);

#endif
