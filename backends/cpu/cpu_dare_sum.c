/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_DARE_SUM: the words of the generator for a block, eight counters a step, then the block itself.  Where nothing can be
 * dropped no words are made.
 */
#include "cpu_merge.h"

#define WORDS_PER_COUNTER 4u
#define COUNTERS_PER_STEP 8u
#define STEP_WORDS (WORDS_PER_COUNTER * COUNTERS_PER_STEP)
/* A block may begin in the middle of a counter's words. */
#define ROOM_WORDS (CPU_MERGE_BLOCK + STEP_WORDS)

/* ---- Philox4x32-10 ---- */

typedef struct counters {
  __m256i x[WORDS_PER_COUNTER]; /* word i of eight counters */
} counters;

/* The upper and the lower halves of eight 64-bit products. */
CPU_INLINE void multiply(__m256i a, __m256i factor, __m256i *out_high, __m256i *out_low) {
  const __m256i even = _mm256_mul_epu32(a, factor), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), factor);
  *out_low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  *out_high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

CPU_INLINE counters rounds(counters c, uint64_t key) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    __m256i high_0, low_0, high_2, low_2;
    multiply(c.x[0], _mm256_set1_epi32((int)0xd2511f53), &high_0, &low_0);
    multiply(c.x[2], _mm256_set1_epi32((int)0xcd9e8d57), &high_2, &low_2);
    c = (counters){ { _mm256_xor_si256(_mm256_xor_si256(high_2, c.x[1]), _mm256_set1_epi32((int)k0)), low_2,
                      _mm256_xor_si256(_mm256_xor_si256(high_0, c.x[3]), _mm256_set1_epi32((int)k1)), low_0 } };
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  return c;
}

/* Eight counters from `first` on; their upper words differ where the lower ones have passed 2^32. */
CPU_INLINE counters counters_from(uint64_t first) {
  const __m256i low_ones = _mm256_setr_epi64x(0, 1, 2, 3), high_ones = _mm256_setr_epi64x(4, 5, 6, 7);
  const __m256i base = _mm256_set1_epi64x((long long)first);
  const __m256i a = _mm256_add_epi64(base, low_ones), b = _mm256_add_epi64(base, high_ones);
  const __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
  const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xdd));
  return (counters){ { _mm256_permute4x64_epi64(even, 0xd8), _mm256_permute4x64_epi64(odd, 0xd8), _mm256_setzero_si256(),
                       _mm256_setzero_si256() } };
}

/* Words in the order of elements. */
CPU_INLINE void put_words(counters c, uint32_t *to) {
  const __m256i a = _mm256_unpacklo_epi32(c.x[0], c.x[1]), b = _mm256_unpacklo_epi32(c.x[2], c.x[3]);
  const __m256i d = _mm256_unpackhi_epi32(c.x[0], c.x[1]), e = _mm256_unpackhi_epi32(c.x[2], c.x[3]);
  const __m256i first = _mm256_unpacklo_epi64(a, b), second = _mm256_unpackhi_epi64(a, b);
  const __m256i third = _mm256_unpacklo_epi64(d, e), fourth = _mm256_unpackhi_epi64(d, e);
  cpu_store(to, _mm256_permute2x128_si256(first, second, 0x20));
  cpu_store(to + 8, _mm256_permute2x128_si256(third, fourth, 0x20));
  cpu_store(to + 16, _mm256_permute2x128_si256(first, second, 0x31));
  cpu_store(to + 24, _mm256_permute2x128_si256(third, fourth, 0x31));
}

static CPU_AVX2 void make_words(uint64_t counter, uint64_t key, uint32_t *out_words) {
  for (uint32_t at = 0; at < ROOM_WORDS; at += STEP_WORDS, counter += COUNTERS_PER_STEP)
    put_words(rounds(counters_from(counter), key), out_words + at);
}

/* ---- a block ---- */

/* Lanes of 64 bits where one of 32 is below the threshold, as numbers without sign. */
CPU_INLINE __m256d kept(const uint32_t *words, __m128i threshold) {
  const __m128i flip = _mm_set1_epi32(INT32_MIN);
  const __m128i below = _mm_cmpgt_epi32(_mm_xor_si128(threshold, flip), _mm_xor_si128(cpu_load128(words), flip));
  return _mm256_castsi256_pd(_mm256_cvtepi32_epi64(below));
}

CPU_INLINE __m256d add_difference(__m256d total, __m256d x, __m256d base, __m256d weight, __m256d factor, __m256d is_kept) {
  const __m256d d = _mm256_sub_pd(x, base), differs = _mm256_cmp_pd(x, base, _CMP_NEQ_UQ);
  const __m256d sum = _mm256_add_pd(total, _mm256_mul_pd(weight, _mm256_mul_pd(factor, d)));
  return _mm256_blendv_pd(total, sum, _mm256_and_pd(differs, is_kept));
}

static CPU_AVX2 void add_some(const double *x, const double *base, double weight, double factor, const uint32_t *words,
                              uint32_t threshold, double *total) {
  const __m256d w = _mm256_set1_pd(weight), f = _mm256_set1_pd(factor);
  const __m128i t = _mm_set1_epi32((int)threshold);
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4) {
    const __m256d is_kept = kept(words + i, t);
    _mm256_storeu_pd(total + i, add_difference(cpu_load_pd(total + i), cpu_load_pd(x + i), cpu_load_pd(base + i), w, f, is_kept));
  }
}

static CPU_AVX2 void add_all(const double *x, const double *base, double weight, double factor, double *total) {
  const __m256d w = _mm256_set1_pd(weight), f = _mm256_set1_pd(factor), all = _mm256_castsi256_pd(_mm256_set1_epi64x(-1));
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4)
    _mm256_storeu_pd(total + i, add_difference(cpu_load_pd(total + i), cpu_load_pd(x + i), cpu_load_pd(base + i), w, f, all));
}

static void add_input(const cpu_merge *m, uint32_t input, uint64_t first, uint64_t count, const double *base, double *total) {
  const uint32_t at = 1 + TM_DARE_WORDS * (input - 1);
  const double weight = m->settings.numbers[at + TM_DARE_WEIGHT], factor = m->settings.numbers[at + TM_DARE_FACTOR];
  const uint64_t threshold = m->settings.words[at + TM_DARE_THRESHOLD], element = m->settings.words[0] + first;
  double x[CPU_MERGE_BLOCK];
  uint32_t words[ROOM_WORDS];
  cpu_merge_load_wide(m, input, first, count, x);
  if (threshold > UINT32_MAX) {
    add_all(x, base, weight, factor, total);
    return;
  }
  make_words(element / WORDS_PER_COUNTER, m->settings.words[at + TM_DARE_KEY], words);
  add_some(x, base, weight, factor, words + element % WORDS_PER_COUNTER, (uint32_t)threshold, total);
}

static void block(const cpu_merge *m, uint64_t first, uint64_t count) {
  double base[CPU_MERGE_BLOCK], total[CPU_MERGE_BLOCK];
  cpu_merge_load_wide(m, 0, first, count, base);
  memcpy(total, base, sizeof total);
  for (uint32_t i = 1; i < m->input_count; ++i) add_input(m, i, first, count, base, total);
  cpu_merge_store(m, first, count, total);
}

static void run(const cpu_call *call) { cpu_merge_run(call, block); }

#define ELEMENTS_PER_US 700.0   /* of one core, of an input */

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  return cpu_merge_cost_ns(operation, ELEMENTS_PER_US, lanes);
}

static const cpu_row rows[] = {
  {
    .op = TM_OP_DARE_SUM,
    .isa = CPU_ISA_AVX2,
    .level = TM_LEVEL_NATIVE,
    .numerics = TM_NUMERICS_N0,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,
    .alias_mask = CPU_MERGE_ALIASES,
    .name = "cpu_dare_sum__avx2",
    .refuses = cpu_merge_refuses,
    .cost_ns = cost_ns,
    .run = run,
  },
};

const kernel_row_table cpu_rows_dare_sum = { rows, sizeof rows / sizeof rows[0] };
