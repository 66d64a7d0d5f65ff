/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of f64 of TM_OP_COMPARE_TENSORS.  A pair takes memory so long that there is time for a division.  Products are
 * rounded with the addition, and everything may overflow, which is what the reference does too.
 */
#include <math.h>

#include "cpu_compare.h"
#include "cpu_simd.h"

#define BLOCK TM_SUM_BLOCK
#define HALF  (TM_SUM_LANES / 2)

/* Four lanes of each sum, and what goes with them. */
typedef struct quarter {
  __m256d squared, dot, norm_a, norm_b, farthest, best;
  __m256i equal;
} quarter;

/* The maxima pass over 0/0, which is NaN, as the first operand. */
CPU_INLINE void add_four(quarter *q, const double *a, const double *b) {
  const __m256d x = cpu_load_pd(a), y = cpu_load_pd(b), difference = _mm256_sub_pd(x, y), distance = cpu_abs_pd(difference);
  q->squared = _mm256_fmadd_pd(difference, difference, q->squared);
  q->dot = _mm256_fmadd_pd(x, y, q->dot);
  q->norm_a = _mm256_fmadd_pd(x, x, q->norm_a);
  q->norm_b = _mm256_fmadd_pd(y, y, q->norm_b);
  q->farthest = _mm256_max_pd(distance, q->farthest);
  q->best = _mm256_max_pd(_mm256_div_pd(distance, _mm256_max_pd(cpu_abs_pd(x), cpu_abs_pd(y))), q->best);
  q->equal = _mm256_sub_epi64(q->equal, _mm256_cmpeq_epi64(_mm256_castpd_si256(x), _mm256_castpd_si256(y)));
}

typedef struct block_result {
  double   farthest, best;
  uint64_t equal;
  int      is_finite;
} block_result;

static __attribute__((noinline)) CPU_AVX2 void add_quarter(const double *a, const double *b, cpu_compare_lanes *lanes, int at,
                                                           block_result *result) {
  quarter q = {
    .squared = cpu_load_pd(lanes->squared + at), .dot = cpu_load_pd(lanes->dot + at),
    .norm_a = cpu_load_pd(lanes->norm_a + at), .norm_b = cpu_load_pd(lanes->norm_b + at),
  };
  const double *ahead = (at < HALF ? a : b) + at % HALF * 2;    /* of the four lines that a step needs, each quarter asks for one */
  for (int i = 0; i < BLOCK; i += TM_SUM_LANES) {
    CPU_COMPARE_PREFETCH(ahead + i);
    add_four(&q, a + at + i, b + at + i);
  }
  _mm256_storeu_pd(lanes->squared + at, q.squared);
  _mm256_storeu_pd(lanes->dot + at, q.dot);
  _mm256_storeu_pd(lanes->norm_a + at, q.norm_a);
  _mm256_storeu_pd(lanes->norm_b + at, q.norm_b);
  result->farthest = fmax(result->farthest, cpu_largest_pd(q.farthest));
  result->best = fmax(result->best, cpu_largest_pd(q.best));
  result->equal += cpu_sum_epi64(q.equal);
  result->is_finite &= cpu_is_finite_pd(q.squared);
}

CPU_AVX2 int cpu_compare_add_f64(const void *a, const void *b, int is_masked, cpu_compare_state *state) {
  cpu_compare_lanes lanes = state->lanes;
  block_result result = { .farthest = state->max_abs, .best = state->max_rel, .is_finite = 1 };
  for (int at = 0; at < TM_SUM_LANES; at += 4) add_quarter(a, b, &lanes, at, &result);
  if (!is_masked) state->equal += result.equal;
  if (!result.is_finite && !is_masked) return 0;
  state->lanes = lanes;
  state->max_abs = result.farthest;
  state->max_rel = result.best;
  return 1;
}

CPU_AVX2 int cpu_compare_add_equal_f64(const void *a, int is_masked, cpu_compare_state *state) {
  const double *from = a;
  cpu_compare_lanes lanes = state->lanes;
  int finite = 1;
  if (!is_masked) state->equal += BLOCK;
  for (int at = 0; at < TM_SUM_LANES; at += 4) {
    __m256d dot = cpu_load_pd(lanes.dot + at), norm_a = cpu_load_pd(lanes.norm_a + at), norm_b = cpu_load_pd(lanes.norm_b + at);
    for (int i = at; i < BLOCK; i += TM_SUM_LANES) {
      const __m256d x = cpu_load_pd(from + i);
      dot = _mm256_fmadd_pd(x, x, dot);
      norm_a = _mm256_fmadd_pd(x, x, norm_a);
      norm_b = _mm256_fmadd_pd(x, x, norm_b);
    }
    _mm256_storeu_pd(lanes.dot + at, dot);
    _mm256_storeu_pd(lanes.norm_a + at, norm_a);
    _mm256_storeu_pd(lanes.norm_b + at, norm_b);
    finite &= cpu_is_finite_pd(norm_a);
  }
  if (!finite && !is_masked) return 0;
  state->lanes = lanes;
  return 1;
}
