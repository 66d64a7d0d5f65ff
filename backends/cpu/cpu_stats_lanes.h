/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_stats_lanes.h - the partial sums of one pass in registers: 16 of the values and 16 of their squares. */
#ifndef CPU_STATS_LANES_H
#define CPU_STATS_LANES_H

#include "cpu_simd.h"
#include "cpu_stats.h"

/* Scalars, not arrays: gcc 12 keeps an array of vectors on the stack. */
typedef struct lanes {
  __m256d sum_a, sum_b, sum_c, sum_d, squares_a, squares_b, squares_c, squares_d;
} lanes;

CPU_INLINE lanes load_lanes(const cpu_stats_state *state) {
  return (lanes){
    cpu_load_pd(state->sum), cpu_load_pd(state->sum + 4), cpu_load_pd(state->sum + 8), cpu_load_pd(state->sum + 12),
    cpu_load_pd(state->squares), cpu_load_pd(state->squares + 4), cpu_load_pd(state->squares + 8), cpu_load_pd(state->squares + 12),
  };
}

CPU_INLINE void store_lanes(cpu_stats_state *state, const lanes *l) {
  _mm256_storeu_pd(state->sum, l->sum_a);
  _mm256_storeu_pd(state->sum + 4, l->sum_b);
  _mm256_storeu_pd(state->sum + 8, l->sum_c);
  _mm256_storeu_pd(state->sum + 12, l->sum_d);
  _mm256_storeu_pd(state->squares, l->squares_a);
  _mm256_storeu_pd(state->squares + 4, l->squares_b);
  _mm256_storeu_pd(state->squares + 8, l->squares_c);
  _mm256_storeu_pd(state->squares + 12, l->squares_d);
}

#endif
