/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of f64.  There are half as many elements in a byte as of f32, so the extremes can be of floating point: one
 * comparison of the magnitude decides whether a block is finite, another one whether it has anything small.
 */
#include "cpu_stats_lanes.h"

#define BLOCK_VECTORS (TM_SUM_BLOCK / 4)
#define SMALLEST_NORMAL 0x1p-1022

typedef struct extremes {
  __m256d min, max;             /* of the values */
  __m256d small;                /* the smallest magnitude */
} extremes;

typedef enum verdict { CLEAN, HAS_SMALL, HAS_NONFINITE } verdict;

CPU_INLINE __m256d magnitude(__m256d x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }

CPU_INLINE extremes no_extremes(void) {
  const __m256d infinity = _mm256_set1_pd(HUGE_VAL);
  return (extremes){ infinity, _mm256_set1_pd(-HUGE_VAL), infinity };
}

/* The value is the first operand throughout: then a NaN is passed over, and whether there was one shows in `ordered`. */
CPU_INLINE void take(extremes *e, __m256d *ordered, __m256d *sum, __m256d *squares, __m256d x) {
  e->min = _mm256_min_pd(x, e->min);
  e->max = _mm256_max_pd(x, e->max);
  e->small = _mm256_min_pd(magnitude(x), e->small);
  *ordered = _mm256_add_pd(*ordered, _mm256_sub_pd(x, x));
  *sum = _mm256_add_pd(*sum, x);
  *squares = _mm256_fmadd_pd(x, x, *squares);
}

CPU_INLINE void merge(cpu_stats_state *state, const extremes *e) {
  double parts[2][4];
  _mm256_storeu_pd(parts[0], e->min);
  _mm256_storeu_pd(parts[1], e->max);
  for (int i = 0; i < 4; ++i) {
    if (parts[0][i] < state->min) state->min = parts[0][i];
    if (parts[1][i] > state->max) state->max = parts[1][i];
  }
}

/* Leaves the state as it was if something is not finite: x - x is 0 for finite x only. */
static __attribute__((noinline)) CPU_AVX2 verdict fast_block(const unsigned char *data, cpu_stats_state *state) {
  lanes l = load_lanes(state);
  extremes e = no_extremes();
  __m256d ordered = _mm256_setzero_pd();
  for (int i = 0; i < BLOCK_VECTORS; i += 4, data += 128) {
    CPU_PREFETCH(data);
    CPU_PREFETCH(data + 64);
    take(&e, &ordered, &l.sum_a, &l.squares_a, cpu_load_pd(data));
    take(&e, &ordered, &l.sum_b, &l.squares_b, cpu_load_pd(data + 32));
    take(&e, &ordered, &l.sum_c, &l.squares_c, cpu_load_pd(data + 64));
    take(&e, &ordered, &l.sum_d, &l.squares_d, cpu_load_pd(data + 96));
  }
  if (_mm256_movemask_pd(_mm256_cmp_pd(ordered, _mm256_setzero_pd(), _CMP_NEQ_UQ)) != 0) return HAS_NONFINITE;
  store_lanes(state, &l);
  merge(state, &e);
  return _mm256_movemask_pd(_mm256_cmp_pd(e.small, _mm256_set1_pd(SMALLEST_NORMAL), _CMP_LT_OQ)) != 0 ? HAS_SMALL : CLEAN;
}

CPU_INLINE __m256i count_mask(__m256i counter, __m256d mask) { return _mm256_sub_epi64(counter, _mm256_castpd_si256(mask)); }

static __attribute__((noinline)) CPU_AVX2 void count_small(const unsigned char *data, cpu_stats_state *state) {
  const __m256d normal = _mm256_set1_pd(SMALLEST_NORMAL);
  __m256i zero = _mm256_setzero_si256(), small = zero;
  for (int i = 0; i < BLOCK_VECTORS; ++i) {
    const __m256d size = magnitude(cpu_load_pd(data + 32 * i));
    zero = count_mask(zero, _mm256_cmp_pd(size, _mm256_setzero_pd(), _CMP_EQ_OQ));
    small = count_mask(small, _mm256_cmp_pd(size, normal, _CMP_LT_OQ));
  }
  const uint64_t zeros = cpu_sum_epi64(zero);
  state->zero += zeros;
  state->subnormal += cpu_sum_epi64(small) - zeros;
}

CPU_INLINE __m256d finite_mask(__m256d x) { return _mm256_cmp_pd(magnitude(x), _mm256_set1_pd(HUGE_VAL), _CMP_LT_OQ); }

static __attribute__((noinline)) CPU_AVX2 void masked_counts(const unsigned char *data, cpu_stats_state *state) {
  const __m256d infinity = _mm256_set1_pd(HUGE_VAL), minus = _mm256_set1_pd(-HUGE_VAL);
  __m256i nan = _mm256_setzero_si256(), pos = nan, neg = nan;
  extremes e = no_extremes();
  for (int i = 0; i < BLOCK_VECTORS; ++i) {
    const __m256d x = cpu_load_pd(data + 32 * i), finite = finite_mask(x);
    nan = count_mask(nan, _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
    pos = count_mask(pos, _mm256_cmp_pd(x, infinity, _CMP_EQ_OQ));
    neg = count_mask(neg, _mm256_cmp_pd(x, minus, _CMP_EQ_OQ));
    e.min = _mm256_min_pd(e.min, _mm256_blendv_pd(e.min, x, finite));
    e.max = _mm256_max_pd(e.max, _mm256_blendv_pd(e.max, x, finite));
  }
  state->nan += cpu_sum_epi64(nan);
  state->pos_inf += cpu_sum_epi64(pos);
  state->neg_inf += cpu_sum_epi64(neg);
  merge(state, &e);
}

/* What is excluded becomes +0, which changes no lane: lanes start at +0 and so are never -0. */
static __attribute__((noinline)) CPU_AVX2 void masked_sums(const unsigned char *data, cpu_stats_state *state) {
  for (int i = 0; i < BLOCK_VECTORS; ++i) {
    double *sum = state->sum + i % 4 * 4, *squares = state->squares + i % 4 * 4;
    const __m256d x = cpu_load_pd(data + 32 * i), kept = _mm256_and_pd(x, finite_mask(x));
    _mm256_storeu_pd(sum, _mm256_add_pd(cpu_load_pd(sum), kept));
    _mm256_storeu_pd(squares, _mm256_fmadd_pd(kept, kept, cpu_load_pd(squares)));
  }
}

static void masked_block(const unsigned char *data, cpu_stats_state *state) {
  masked_counts(data, state);
  count_small(data, state);
  masked_sums(data, state);
}

/* The last, short block is filled up with NaN, which the masked pass excludes, and which are then not counted. */
static void short_block(const unsigned char *data, uint64_t count, cpu_stats_state *state) {
  double padded[TM_SUM_BLOCK];
  memcpy(padded, data, count * sizeof padded[0]);
  for (uint64_t i = count; i < TM_SUM_BLOCK; ++i) padded[i] = NAN;
  masked_block((const unsigned char *)padded, state);
  state->nan -= TM_SUM_BLOCK - count;
}

void cpu_stats_f64(const unsigned char *data, uint64_t count, cpu_stats_state *state) {
  verdict found = CLEAN;
  for (; count >= TM_SUM_BLOCK; count -= TM_SUM_BLOCK, data += TM_SUM_BLOCK * sizeof(double)) {
    /* Where one block was bad the next one likely is, so the fast pass would be in vain. */
    if (found != HAS_NONFINITE) found = fast_block(data, state);
    if (found == HAS_NONFINITE) masked_block(data, state);
    if (found == HAS_SMALL) count_small(data, state);
  }
  if (count > 0) short_block(data, count, state);
}
