/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of q8_0 and q4_0 without decoding: a block's sum is its scale times a sum of small integers, exactly.  Eight
 * blocks go together, one a lane.  Extremes are looked for only in blocks whose scale could hold a new one: soon none.
 */
#include "cpu_block_sums.h"
#include "cpu_stats.h"

#define ELEMENTS 32u
#define GROUP CPU_BLOCK_GROUP
#define SCALE_BYTES 2

typedef enum layout { Q8_0, Q4_0 } layout;

CPU_INLINE uint64_t block_bytes(layout l) { return l == Q8_0 ? 34 : 18; }

/* The 32 integers of a block, signed. */
CPU_INLINE __m256i load_integers(layout l, const unsigned char *block) {
  if (l == Q8_0) return cpu_load(block + SCALE_BYTES);
  const __m128i nibbles = cpu_load128(block + SCALE_BYTES), mask = _mm_set1_epi8(15);
  const __m256i both = _mm256_setr_m128i(_mm_and_si128(nibbles, mask), _mm_and_si128(_mm_srli_epi16(nibbles, 4), mask));
  return _mm256_sub_epi8(both, _mm256_set1_epi8(8));
}

/* Eight partial sums of the integers, and of their squares. */
CPU_INLINE __m256i partial_sum(__m256i q) {
  return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), _mm256_set1_epi16(1));
}
CPU_INLINE __m256i partial_squares(layout l, __m256i q) {
  if (l == Q4_0) {
    const __m256i size = _mm256_abs_epi8(q);
    return _mm256_madd_epi16(_mm256_maddubs_epi16(size, size), _mm256_set1_epi16(1));
  }
  const __m256i low = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(q)), high = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(q, 1));
  return _mm256_add_epi32(_mm256_madd_epi16(low, low), _mm256_madd_epi16(high, high));
}

static CPU_AVX2 void count_nonfinite(float scale, const int8_t *q, cpu_stats_state *state) {
  for (uint64_t i = 0; i < ELEMENTS; ++i) {
    const float value = scale * (float)q[i];
    if (value != value) state->nan++;
    else if (value > 0) state->pos_inf++;
    else state->neg_inf++;
  }
}

static CPU_AVX2 void block_extremes(float scale, const int8_t *q, cpu_stats_state *state) {
  int low = q[0], high = q[0];
  for (uint64_t i = 1; i < ELEMENTS; ++i) {
    if (q[i] < low) low = q[i];
    if (q[i] > high) high = q[i];
  }
  cpu_stats_extreme(state, (double)scale * low);
  cpu_stats_extreme(state, (double)scale * high);
}

CPU_INLINE float scale_of(const unsigned char *block) { return _cvtsh_ss(cpu_scale_bits(block)); }

/* Any block whatever, alone; `lane` is its number mod 16. */
static __attribute__((noinline)) CPU_AVX2 void single_block(layout l, const unsigned char *block, uint64_t lane, cpu_stats_state *state) {
  int8_t q[ELEMENTS];
  cpu_store(q, load_integers(l, block));
  const float scale = scale_of(block);
  if (!(fabsf(scale) < HUGE_VALF)) {
    count_nonfinite(scale, q, state);
    return;
  }
  int32_t sum = 0, squares = 0;
  for (uint64_t i = 0; i < ELEMENTS; ++i) {
    sum += q[i];
    squares += q[i] * q[i];
    state->zero += q[i] == 0 || scale == 0;
  }
  block_extremes(scale, q, state);
  state->sum[lane] += (double)scale * sum;
  state->squares[lane] += (double)scale * (double)scale * squares;
}

CPU_INLINE void add_terms(double *lanes, __m256d scale, __m128i integers) {
  _mm256_storeu_pd(lanes, _mm256_fmadd_pd(scale, _mm256_cvtepi32_pd(integers), cpu_load_pd(lanes)));
}

static __attribute__((noinline)) CPU_AVX2 void chosen_extremes(layout l, const unsigned char *data, int chosen, cpu_stats_state *state) {
  for (; chosen != 0; data += block_bytes(l), chosen >>= 1) {
    if ((chosen & 1) == 0) continue;
    int8_t q[ELEMENTS];
    cpu_store(q, load_integers(l, data));
    block_extremes(scale_of(data), q, state);
  }
}

/* Extremes of those of eight blocks that could hold one beyond what is known: the largest integer times the scale bounds
   all of a block. */
CPU_INLINE void group_extremes(layout l, const unsigned char *data, __m256 scales, cpu_stats_state *state) {
  const double bound = state->max < -state->min ? state->max : -state->min;
  const __m256 reach = _mm256_mul_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), scales), _mm256_set1_ps(l == Q8_0 ? 128.0f : 8.0f));
  const int wider = _mm256_movemask_ps(_mm256_cmp_ps(reach, _mm256_set1_ps((float)bound), _CMP_GT_OQ));
  if (wider != 0) chosen_extremes(l, data, wider, state);
}

/* Eight blocks with scales that are neither zero nor infinite nor NaN. */
CPU_INLINE void group_of_blocks(layout l, const unsigned char *data, __m128i bits, uint64_t lane, cpu_stats_state *state) {
  __m256i sums[GROUP], squares[GROUP], zero = _mm256_setzero_si256();
  for (int b = 0; b < GROUP; ++b) {
    const __m256i q = load_integers(l, data + (uint64_t)b * block_bytes(l));
    sums[b] = partial_sum(q);
    squares[b] = partial_squares(l, q);
    zero = _mm256_sub_epi8(zero, _mm256_cmpeq_epi8(q, _mm256_setzero_si256()));
  }
  const __m256i sum = cpu_sum_each(sums), square = cpu_sum_each(squares);
  const __m256 scales = _mm256_cvtph_ps(bits);
  const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(scales)), high = _mm256_cvtps_pd(_mm256_extractf128_ps(scales, 1));
  add_terms(state->sum + lane, low, _mm256_castsi256_si128(sum));
  add_terms(state->sum + lane + 4, high, _mm256_extracti128_si256(sum, 1));
  add_terms(state->squares + lane, _mm256_mul_pd(low, low), _mm256_castsi256_si128(square));
  add_terms(state->squares + lane + 4, _mm256_mul_pd(high, high), _mm256_extracti128_si256(square, 1));
  state->zero += cpu_sum_epi64(_mm256_sad_epu8(zero, _mm256_setzero_si256()));
  group_extremes(l, data, scales, state);
}

/* Whether all eight scales are finite and not zero. */
CPU_INLINE int plain_scales(__m128i bits) {
  const __m128i size = _mm_and_si128(bits, _mm_set1_epi16(0x7fff));
  const __m128i odd = _mm_or_si128(_mm_cmpgt_epi16(size, _mm_set1_epi16(0x7bff)), _mm_cmpeq_epi16(size, _mm_setzero_si128()));
  return _mm_movemask_epi8(odd) == 0;
}

CPU_INLINE void superblock(layout l, const unsigned char *data, uint64_t count, cpu_stats_state *state) {
  const uint64_t blocks = count / ELEMENTS, bytes = block_bytes(l);
  uint64_t b = 0;
  for (; b + GROUP <= blocks; b += GROUP, data += GROUP * bytes) {
    for (uint64_t line = 0; line < GROUP * bytes; line += 64) CPU_PREFETCH(data + line);
    const __m128i bits = cpu_load_scales(data, block_bytes(l));
    if (plain_scales(bits)) {
      group_of_blocks(l, data, bits, b % TM_SUM_LANES, state);
    } else {
      for (uint64_t i = 0; i < GROUP; ++i) single_block(l, data + i * bytes, (b + i) % TM_SUM_LANES, state);
    }
  }
  for (; b < blocks; ++b, data += bytes) single_block(l, data, b % TM_SUM_LANES, state);
}

CPU_AVX2 void cpu_stats_q8_0(const unsigned char *data, uint64_t count, cpu_stats_state *state) { superblock(Q8_0, data, count, state); }
CPU_AVX2 void cpu_stats_q4_0(const unsigned char *data, uint64_t count, cpu_stats_state *state) { superblock(Q4_0, data, count, state); }

#define DECODED_BLOCKS 8u       /* at a time, so that what a call costs does not count, and that they stay in the nearest cache */

void cpu_stats_decoded(void (*decode)(const unsigned char *data, float *to), uint64_t block_elements, uint64_t block_bytes,
                       const unsigned char *data, uint64_t count, cpu_stats_state *state) {
  float values[DECODED_BLOCKS * TM_SUM_BLOCK];
  unsigned char filled[TM_SUM_BLOCK * sizeof(float)];
  const uint64_t subnormal = state->subnormal, step = TM_SUM_BLOCK / block_elements * block_bytes;
  while (count >= TM_SUM_BLOCK) {
    uint64_t decoded = 0;
    for (; decoded < DECODED_BLOCKS * TM_SUM_BLOCK && count >= TM_SUM_BLOCK; decoded += TM_SUM_BLOCK, count -= TM_SUM_BLOCK, data += step)
      decode(data, values + decoded);
    cpu_stats_f32((const unsigned char *)values, decoded, state);
  }
  if (count > 0) {
    const uint64_t bytes = count / block_elements * block_bytes;
    memcpy(filled, data, (size_t)bytes);
    memset(filled + bytes, 0, (size_t)(step - bytes));
    decode(filled, values);
    cpu_stats_f32((const unsigned char *)values, count, state);
  }
  state->subnormal = subnormal;
}
