/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of f32.  The fast pass over a block of 512 keeps 12 vectors in registers: 4 for the sum and 4 for the sum of
 * squares (16 f64 lanes each; fewer would wait for the additions' latency), and 4 extremes of the raw bits taken as
 * signed and as unsigned integers.  Those four tell the largest and smallest value, and whether a magnitude is too large
 * (not finite: the block is done again with masks) or too small (zeros and subnormals are then counted, hot in L1).
 */
#include "cpu_stats_lanes.h"

#define MAGNITUDE 0x7fffffff
#define INFINITE  0x7f800000
#define SMALLEST_NORMAL 0x00800000
#define BLOCK_VECTORS (TM_SUM_BLOCK / 8)

typedef struct extremes {
  __m256i signed_min, signed_max, unsigned_min, unsigned_max;
} extremes;

typedef enum verdict { CLEAN, HAS_SMALL, HAS_NONFINITE } verdict;

CPU_INLINE extremes no_extremes(void) {
  return (extremes){ _mm256_set1_epi32(INT32_MAX), _mm256_set1_epi32(INT32_MIN), _mm256_set1_epi32(-1), _mm256_setzero_si256() };
}

CPU_INLINE void widen(extremes *e, __m256i v) {
  e->signed_min = _mm256_min_epi32(e->signed_min, v);
  e->signed_max = _mm256_max_epi32(e->signed_max, v);
  e->unsigned_min = _mm256_min_epu32(e->unsigned_min, v);
  e->unsigned_max = _mm256_max_epu32(e->unsigned_max, v);
}

/* Ties the four to registers here; without it gcc 12 moves one of them through memory in every turn of the loop. */
CPU_INLINE void pin(extremes *e) {
  __asm__("" : "+x"(e->signed_min), "+x"(e->signed_max), "+x"(e->unsigned_min), "+x"(e->unsigned_max));
}

CPU_INLINE void merge(extremes *e, const extremes *other) {
  e->signed_min = _mm256_min_epi32(e->signed_min, other->signed_min);
  e->signed_max = _mm256_max_epi32(e->signed_max, other->signed_max);
  e->unsigned_min = _mm256_min_epu32(e->unsigned_min, other->unsigned_min);
  e->unsigned_max = _mm256_max_epu32(e->unsigned_max, other->unsigned_max);
}

CPU_INLINE verdict judge(const extremes *e) {
  const __m256i mask = _mm256_set1_epi32(MAGNITUDE);
  const __m256i largest = _mm256_max_epi32(e->signed_max, _mm256_and_si256(e->unsigned_max, mask));
  const __m256i smallest = _mm256_min_epu32(e->unsigned_min, _mm256_and_si256(e->signed_min, mask));
  if (cpu_any(_mm256_cmpgt_epi32(largest, _mm256_set1_epi32(INFINITE - 1)))) return HAS_NONFINITE;
  return cpu_any(_mm256_cmpgt_epi32(_mm256_set1_epi32(SMALLEST_NORMAL), smallest)) ? HAS_SMALL : CLEAN;
}

CPU_INLINE void add_quarter(__m256d *sum, __m256d *squares, __m128 x) {
  const __m256d wide = _mm256_cvtps_pd(x);
  *sum = _mm256_add_pd(*sum, wide);
  *squares = _mm256_fmadd_pd(wide, wide, *squares);
}

CPU_INLINE __m128 load_quarter(const unsigned char *data) { return _mm_loadu_ps((const float *)(const void *)data); }

/* Leaves the state as it was if something is not finite. */
static __attribute__((noinline)) CPU_AVX2 verdict fast_block(const unsigned char *data, cpu_stats_state *state, extremes *all) {
  lanes l = load_lanes(state);
  extremes e = no_extremes();
  for (int i = 0; i < BLOCK_VECTORS; i += 2, data += 64) {
    CPU_PREFETCH(data);
    widen(&e, cpu_load(data));
    add_quarter(&l.sum_a, &l.squares_a, load_quarter(data));
    add_quarter(&l.sum_b, &l.squares_b, load_quarter(data + 16));
    pin(&e);
    widen(&e, cpu_load(data + 32));
    add_quarter(&l.sum_c, &l.squares_c, load_quarter(data + 32));
    add_quarter(&l.sum_d, &l.squares_d, load_quarter(data + 48));
    pin(&e);
  }
  const verdict found = judge(&e);
  if (found == HAS_NONFINITE) return found;
  store_lanes(state, &l);
  merge(all, &e);
  return found;
}

static __attribute__((noinline)) CPU_AVX2 void count_small(const unsigned char *data, cpu_stats_state *state) {
  const __m256i mask = _mm256_set1_epi32(MAGNITUDE), normal = _mm256_set1_epi32(SMALLEST_NORMAL);
  __m256i zero = _mm256_setzero_si256(), small = _mm256_setzero_si256();
  for (int i = 0; i < BLOCK_VECTORS; ++i) {
    const __m256i magnitude = _mm256_and_si256(cpu_load(data + 32 * i), mask);
    zero = _mm256_sub_epi32(zero, _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256()));
    small = _mm256_sub_epi32(small, _mm256_cmpgt_epi32(normal, magnitude));
  }
  const uint64_t zeros = cpu_sum_epi32(zero);
  state->zero += zeros;
  state->subnormal += cpu_sum_epi32(small) - zeros;
}

CPU_INLINE __m256i magnitude_of(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi32(MAGNITUDE)); }
CPU_INLINE __m256i finite_mask(__m256i v) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(INFINITE), magnitude_of(v)); }
CPU_INLINE __m256i count(__m256i counter, __m256i mask) { return _mm256_sub_epi32(counter, mask); }

/* Takes only what `finite` selects; elsewhere each extreme meets itself. */
CPU_INLINE void widen_where(extremes *e, __m256i v, __m256i finite) {
  e->signed_min = _mm256_min_epi32(e->signed_min, _mm256_blendv_epi8(e->signed_min, v, finite));
  e->signed_max = _mm256_max_epi32(e->signed_max, _mm256_blendv_epi8(e->signed_max, v, finite));
  e->unsigned_min = _mm256_min_epu32(e->unsigned_min, _mm256_blendv_epi8(e->unsigned_min, v, finite));
  e->unsigned_max = _mm256_max_epu32(e->unsigned_max, _mm256_and_si256(v, finite));
}

/* Counts everything there is to count. */
static __attribute__((noinline)) CPU_AVX2 void masked_counts(const unsigned char *data, cpu_stats_state *state, extremes *all) {
  const __m256i infinite = _mm256_set1_epi32(INFINITE), none = _mm256_setzero_si256();
  __m256i nan = none, pos = none, finite_count = none, zero = none, small = none;
  extremes e = no_extremes();
  for (int i = 0; i < BLOCK_VECTORS; ++i) {
    if (i % 2 == 0) CPU_PREFETCH(data + 32 * i);
    const __m256i v = cpu_load(data + 32 * i), magnitude = magnitude_of(v), finite = _mm256_cmpgt_epi32(infinite, magnitude);
    widen_where(&e, v, finite);
    pin(&e);
    finite_count = count(finite_count, finite);
    nan = count(nan, _mm256_cmpgt_epi32(magnitude, infinite));
    pos = count(pos, _mm256_cmpeq_epi32(v, infinite));
    zero = count(zero, _mm256_cmpeq_epi32(magnitude, none));
    small = count(small, _mm256_cmpgt_epi32(_mm256_set1_epi32(SMALLEST_NORMAL), magnitude));
  }
  const uint64_t nans = cpu_sum_epi32(nan), positives = cpu_sum_epi32(pos), zeros = cpu_sum_epi32(zero);
  state->nan += nans;
  state->pos_inf += positives;
  state->neg_inf += TM_SUM_BLOCK - cpu_sum_epi32(finite_count) - nans - positives;
  state->zero += zeros;
  state->subnormal += cpu_sum_epi32(small) - zeros;
  merge(all, &e);
}

/* What is excluded becomes +0, which changes no lane: lanes start at +0 and so are never -0. */
static __attribute__((noinline)) CPU_AVX2 void masked_sums(const unsigned char *data, cpu_stats_state *state) {
  lanes l = load_lanes(state);
  for (int i = 0; i < BLOCK_VECTORS; i += 2, data += 64) {
    const __m256i v = cpu_load(data), w = cpu_load(data + 32);
    const __m256 low = _mm256_castsi256_ps(_mm256_and_si256(v, finite_mask(v)));
    const __m256 high = _mm256_castsi256_ps(_mm256_and_si256(w, finite_mask(w)));
    add_quarter(&l.sum_a, &l.squares_a, _mm256_castps256_ps128(low));
    add_quarter(&l.sum_b, &l.squares_b, _mm256_extractf128_ps(low, 1));
    add_quarter(&l.sum_c, &l.squares_c, _mm256_castps256_ps128(high));
    add_quarter(&l.sum_d, &l.squares_d, _mm256_extractf128_ps(high, 1));
  }
  store_lanes(state, &l);
}

static void masked_block(const unsigned char *data, cpu_stats_state *state, extremes *all) {
  masked_counts(data, state, all);
  masked_sums(data, state);
}

static double from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

/* Of the finite values: with a negative one around, the unsigned maximum is the smallest; without, the unsigned minimum.
   With a positive one, the signed maximum is the largest; without, the unsigned minimum. */
static CPU_AVX2 void reduce_extremes(const extremes *all, cpu_stats_state *state) {
  uint32_t parts[3][8];
  cpu_store(parts[0], all->signed_max);
  cpu_store(parts[1], all->unsigned_min);
  cpu_store(parts[2], all->unsigned_max);
  int32_t signed_max = INT32_MIN;
  uint32_t unsigned_min = UINT32_MAX, unsigned_max = 0;
  for (int i = 0; i < 8; ++i) {
    if ((int32_t)parts[0][i] > signed_max) signed_max = (int32_t)parts[0][i];
    if (parts[1][i] < unsigned_min) unsigned_min = parts[1][i];
    if (parts[2][i] > unsigned_max) unsigned_max = parts[2][i];
  }
  if (unsigned_min > unsigned_max) return;      /* nothing was finite */
  cpu_stats_extreme(state, from_bits(unsigned_max > MAGNITUDE ? unsigned_max : unsigned_min));
  cpu_stats_extreme(state, from_bits(signed_max >= 0 ? (uint32_t)signed_max : unsigned_min));
}

/* The last, short block is filled up with NaN, which the masked pass excludes, and which are then not counted. */
static CPU_AVX2 void short_block(const unsigned char *data, uint64_t count, cpu_stats_state *state, extremes *all) {
  uint32_t padded[TM_SUM_BLOCK];
  memcpy(padded, data, count * sizeof padded[0]);
  for (uint64_t i = count; i < TM_SUM_BLOCK; ++i) padded[i] = 0x7fc00000;
  masked_block((const unsigned char *)padded, state, all);
  state->nan -= TM_SUM_BLOCK - count;
}

CPU_AVX2 void cpu_stats_f32(const unsigned char *data, uint64_t count, cpu_stats_state *state) {
  extremes all = no_extremes();
  verdict found = CLEAN;
  for (; count >= TM_SUM_BLOCK; count -= TM_SUM_BLOCK, data += TM_SUM_BLOCK * sizeof(float)) {
    /* Where one block was bad the next one likely is, so the fast pass would be in vain. */
    if (found != HAS_NONFINITE) found = fast_block(data, state, &all);
    if (found == HAS_NONFINITE) masked_block(data, state, &all);
    if (found == HAS_SMALL) count_small(data, state);
  }
  if (count > 0) short_block(data, count, state, &all);
  reduce_extremes(&all, state);
}
