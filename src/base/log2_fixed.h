/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log2_fixed.h - logarithms to base 2 in whole numbers, so that what is computed with them is the same on every compiler,
 * processor and C library.  A logarithm is counted in 2^-32.
 */
#ifndef TM_BASE_LOG2_FIXED_H
#define TM_BASE_LOG2_FIXED_H

#include <stdint.h>

#define TM_LOG2_ONE (INT64_C(1) << 32)

/* log2(numerator / denominator), within 2^-24; 0 counts as 1. */
int64_t  tm_log2_of_ratio(uint64_t numerator, uint64_t denominator);
/* value * 2^log2, rounded down, at most `most`; exactly the value where log2 is 0.   value and most: at most 2^52. */
uint64_t tm_log2_multiply(uint64_t value, int64_t log2, uint64_t most);
/* value * numerator / denominator without overflow; numerator <= denominator <= 2^30. */
int64_t  tm_fraction_of(int64_t value, int64_t numerator, int64_t denominator);
/* The largest whole number whose square is not above. */
uint64_t tm_square_root(uint64_t value);

#endif
