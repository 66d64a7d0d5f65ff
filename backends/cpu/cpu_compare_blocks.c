/* SPDX-License-Identifier: Apache-2.0 */
/*
 * q8_0 and q4_0 against themselves, 512 elements at a time.
 *
 * SUMS are exact and in no order (canonical_sum.h).  A product of two elements is a product of two scales times a small integer, and
 * as long as all scales of a superblock are of similar size, every sum of such products is a whole number of units (as the smallest
 * scale's last place squared) of at most 2^53, which f64 holds; (a - b)^2 is a^2 + b^2 - 2ab.  Whether it was so is seen at the end
 * of the superblock: if not, its sums are made again in integers of 128 bits.
 *
 * FIGURES: often the integers tell enough (cpu_compare_integers.c).  Otherwise values are looked at in f32, in which they are exact,
 * and differences too unless a pair of scales is more than 32 times apart.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cpu_block_sums.h"
#include "cpu_compare.h"
#include "cpu_decode.h"

#define BLOCK    TM_SUM_BLOCK
#define ELEMENTS CPU_QUANT_ELEMENTS
#define QUANTS   CPU_COMPARE_QUANTS

/* ---- what there is in 512 elements ---- */

CPU_INLINE void unpack_nibbles(const unsigned char *data, unsigned char *out) {
  const __m128i mask = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  for (int i = 0; i < QUANTS; ++i, data += CPU_Q4_0_BYTES, out += ELEMENTS) {
    const __m128i nibbles = cpu_load128(data + CPU_SCALE_BYTES);
    _mm_storeu_si128((__m128i_u *)(void *)out, _mm_sub_epi8(_mm_and_si128(nibbles, mask), eight));
    _mm_storeu_si128((__m128i_u *)(void *)(out + 16), _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(nibbles, 4), mask), eight));
  }
}

/* Returns 0 if a scale is not finite. */
CPU_INLINE int read_quants(const unsigned char *data, uint32_t block_bytes, cpu_compare_quants *out) {
  const uint32_t half = QUANTS / 2;
  const __m128i low = cpu_load_scales(data, block_bytes), high = cpu_load_scales(data + half * block_bytes, block_bytes);
  const __m256i bits = _mm256_set_m128i(high, low);
  cpu_store(out->bits, bits);
  _mm256_storeu_ps(out->scales, _mm256_cvtph_ps(low));
  _mm256_storeu_ps(out->scales + half, _mm256_cvtph_ps(high));
  out->data = data;
  out->block_bytes = block_bytes;
  out->integers = data + CPU_SCALE_BYTES;
  out->stride = block_bytes;
  if (block_bytes == CPU_Q4_0_BYTES) {
    unpack_nibbles(data, out->unpacked);
    out->integers = out->unpacked;
    out->stride = ELEMENTS;
  }
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi16(0x7fff));
  return !cpu_any(_mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x7bff)));
}

/* The smallest scale that is not zero; less 1, by which zero becomes the largest number. */
CPU_INLINE void note_scales(const cpu_compare_quants *q, uint16_t *smallest) {
  const __m256i magnitude = _mm256_and_si256(cpu_load(q->bits), _mm256_set1_epi16(0x7fff));
  const __m256i below = _mm256_sub_epi16(magnitude, _mm256_set1_epi16(1));
  cpu_store(smallest, _mm256_min_epu16(cpu_load(smallest), below));
}

/* ---- figures ---- */

/* Whether differences are exact in f32: no pair of scales with exponents more than 5 apart, unless one is zero. */
CPU_INLINE int has_exact_differences(const cpu_compare_quants *a, const cpu_compare_quants *b) {
  const __m256i mask = _mm256_set1_epi16(0x7fff), one = _mm256_set1_epi16(1), zero = _mm256_setzero_si256();
  const __m256i x = _mm256_and_si256(cpu_load(a->bits), mask), y = _mm256_and_si256(cpu_load(b->bits), mask);
  const __m256i exponent_x = _mm256_max_epi16(_mm256_srli_epi16(x, 10), one);
  const __m256i exponent_y = _mm256_max_epi16(_mm256_srli_epi16(y, 10), one);
  const __m256i apart = _mm256_cmpgt_epi16(_mm256_abs_epi16(_mm256_sub_epi16(exponent_x, exponent_y)), _mm256_set1_epi16(5));
  const __m256i either_zero = _mm256_or_si256(_mm256_cmpeq_epi16(x, zero), _mm256_cmpeq_epi16(y, zero));
  return !cpu_any(_mm256_andnot_si256(either_zero, apart));
}

/* Looks at values where f32 does not show that no difference and no quotient is larger; they are finite. */
void cpu_compare_find_largest_of_blocks(const cpu_compare_format *format, const unsigned char *a, const unsigned char *b,
                                        cpu_compare_state *state) {
  float wide_a[BLOCK], wide_b[BLOCK];
  format->to_f32(a, wide_a);
  format->to_f32(b, wide_b);
  cpu_compare_find_largest(wide_a, wide_b, state);
}

/* All figures of values that may not be finite. */
static __attribute__((noinline)) CPU_AVX2 void look_at_values(const cpu_compare_format *format, const unsigned char *a,
                                                              const unsigned char *b, cpu_compare_state *state) {
  float wide_a[BLOCK], wide_b[BLOCK], masked_a[BLOCK], masked_b[BLOCK];
  format->to_f32(a, wide_a);
  format->to_f32(b, wide_b);
  state->equal += cpu_compare_count_same(wide_a, wide_b);
  state->nonfinite += cpu_compare_mask_f32(wide_a, wide_b, masked_a, masked_b);
  cpu_compare_find_largest(masked_a, masked_b, state);
}

/* Looks at the values of some blocks, by bits, and at those of all where f32 does not show enough. */
static __attribute__((noinline)) CPU_AVX2 void look_at_blocks(const cpu_compare_kernels *kernels, const cpu_compare_format *format,
                                                              const unsigned char *data_a, const unsigned char *data_b,
                                                              const cpu_compare_quants *a, const cpu_compare_quants *b,
                                                              uint32_t blocks, cpu_compare_state *state) {
  const float max_abs = cpu_compare_rounded_down(state->max_abs), max_rel = cpu_compare_rounded_down(state->max_rel);
  if (kernels->compare_quants(a, b, blocks, max_abs, max_rel, &state->equal) || !has_exact_differences(a, b)) {
    cpu_compare_find_largest_of_blocks(format, data_a, data_b, state);
  }
}

/* 512 elements that differ, in blocks of so many bytes; 0 if their sums were not added. */
CPU_INLINE int add_blocks(const cpu_compare_kernels *kernels, const cpu_compare_format *format, uint32_t bytes,
                          const unsigned char *data_a, const unsigned char *data_b, cpu_compare_state *state,
                          cpu_compare_totals *totals) {
  cpu_compare_quants a, b;
  if (!(read_quants(data_a, bytes, &a) & read_quants(data_b, bytes, &b))) {
    look_at_values(format, data_a, data_b, state);
    return 0;
  }
  note_scales(&a, totals->smallest_a);
  note_scales(&b, totals->smallest_b);
  const uint32_t untold = kernels->add_integers(&a, &b, state, totals);
  if (untold != 0) look_at_blocks(kernels, format, data_a, data_b, &a, &b, untold, state);
  return 1;
}

/* With a number of bytes that is known before. */
static CPU_AVX2 int add_chunk(const cpu_compare_kernels *kernels, const cpu_compare_format *format, const unsigned char *data_a,
                              const unsigned char *data_b, cpu_compare_state *state, cpu_compare_totals *totals) {
  if (format->bytes == CPU_Q8_0_BYTES) return add_blocks(kernels, format, CPU_Q8_0_BYTES, data_a, data_b, state, totals);
  return add_blocks(kernels, format, format->bytes, data_a, data_b, state, totals);
}

static CPU_AVX2 int add_equal_chunk(const cpu_compare_format *format, const unsigned char *data, cpu_compare_state *state,
                                    cpu_compare_totals *totals) {
  cpu_compare_quants a;
  if (!read_quants(data, format->bytes, &a)) {
    look_at_values(format, data, data, state);
    return 0;
  }
  state->equal += BLOCK;
  note_scales(&a, totals->smallest_a);
  note_scales(&a, totals->smallest_b);
  cpu_compare_add_equal_integers(&a, totals);
  return 1;
}

CPU_INLINE __m256 decode_eight(const unsigned char *integers, __m256 scale) {
  return cpu_times_bytes(scale, _mm_loadl_epi64((const __m128i_u *)(const void *)integers));
}

CPU_AVX2 int cpu_compare_quants_avx2(const cpu_compare_quants *a, const cpu_compare_quants *b, uint32_t blocks, float max_abs,
                                     float max_rel, uint64_t *equal) {
  const __m256 sign = _mm256_set1_ps(-0.0f), abs = _mm256_set1_ps(max_abs), rel = _mm256_set1_ps(max_rel);
  __m256 more = _mm256_setzero_ps();
  __m256i same = _mm256_setzero_si256();
  for (; blocks != 0; blocks &= blocks - 1) {
    const int i = __builtin_ctz(blocks);
    const unsigned char *from_a = a->integers + (uint64_t)i * a->stride, *from_b = b->integers + (uint64_t)i * b->stride;
    const __m256 scale_a = _mm256_set1_ps(a->scales[i]), scale_b = _mm256_set1_ps(b->scales[i]);
    for (uint32_t k = 0; k < ELEMENTS; k += 8) {
      const __m256 x = decode_eight(from_a + k, scale_a), y = decode_eight(from_b + k, scale_b);
      const __m256 distance = _mm256_andnot_ps(sign, _mm256_sub_ps(x, y));
      const __m256 larger = _mm256_max_ps(_mm256_andnot_ps(sign, x), _mm256_andnot_ps(sign, y));
      more = _mm256_or_ps(more, _mm256_or_ps(_mm256_sub_ps(abs, distance), _mm256_fmsub_ps(larger, rel, distance)));
      same = _mm256_sub_epi32(same, _mm256_cmpeq_epi32(_mm256_castps_si256(x), _mm256_castps_si256(y)));
    }
  }
  *equal += cpu_sum_epi32(same);
  return _mm256_movemask_ps(more) != 0;
}

/* ---- the end of a superblock ---- */

static CPU_AVX2 double total_of(const double *parts) {
  double total = 0;
  for (int i = 0; i < CPU_BLOCK_GROUP; ++i) total += parts[i];
  return total;
}

/* What the smallest scale's last place weighs; of zeros only a large number, and no sum is above zero. */
static double unit_of(const uint16_t *below) {
  uint16_t smallest = UINT16_MAX;
  for (size_t i = 0; i < QUANTS; ++i) smallest = below[i] < smallest ? below[i] : smallest;
  const int exponent = (smallest + 1) >> 10;
  return ldexp(1, (exponent > 0 ? exponent : 1) - 25);
}

/* With units u and v of both sides and w the smaller one: norms of at most 2^53 u^2 and 2^53 v^2 have been summed exactly, and
   so have products, whose partial sums are at most the root of the norms' product.  A sum of squared differences is exact as
   (a^2 - ab) + (b^2 - ab) if both halves and it are below 2^53 w^2.  What had to be rounded on its way is not below: rounding
   keeps the order. */
static CPU_AVX2 int end_totals(const cpu_compare_totals *totals, double out_sums[4]) {
  const double u = unit_of(totals->smallest_a), v = unit_of(totals->smallest_b), w = u < v ? u : v, limit = 0x1p53 * w * w;
  const double same = total_of(totals->same), dot = total_of(totals->dot) + same;
  const double norm_a = total_of(totals->norm_a) + same, norm_b = total_of(totals->norm_b) + same;
  const double rest_a = norm_a - dot, rest_b = norm_b - dot, squared = rest_a + rest_b;
  if (!(norm_a < 0x1p53 * u * u) || !(norm_b < 0x1p53 * v * v)) return 0;
  if (!(fabs(rest_a) < limit) || !(fabs(rest_b) < limit) || !(squared < limit)) return 0;
  out_sums[0] = squared;
  out_sums[1] = dot;
  out_sums[2] = norm_a;
  out_sums[3] = norm_b;
  return 1;
}

/* ---- sums in wide integers ---- */

/* Scales are whole numbers of 2^-24, below 2^40; so of 2^-48 all sums of a superblock are less than 2^111. */
__extension__ typedef __int128 wide_integer;
__extension__ typedef unsigned __int128 wide_magnitude;
#define UNIT_SHIFT 16           /* from 2^-48 to the weight of a digit, 2^-64, */
#define UNIT_DIGIT 33           /* which is this one */

static void add_wide_integer(uint64_t *words, wide_integer value) {
  uint64_t parts[4];
  const wide_magnitude magnitude = (wide_magnitude)(value < 0 ? -value : value) << UNIT_SHIFT;
  for (int i = 0; i < 4; ++i) {
    parts[i] = (uint64_t)(magnitude >> (32 * i)) & TM_SUM_DIGIT_MASK;
    if (value < 0) parts[i] = ~parts[i] + 1;
  }
  tm_sum_add_digits(words, UNIT_DIGIT, parts, 4);
}

CPU_INLINE wide_integer sum_of(__m256i low, __m256i high) { return (int32_t)(uint32_t)cpu_sum_epi32(_mm256_add_epi32(low, high)); }

CPU_INLINE void add_exact_block(const cpu_compare_quants *a, const cpu_compare_quants *b, uint64_t i, wide_integer *sums) {
  const unsigned char *from_a = a->integers + i * a->stride, *from_b = b->integers + i * b->stride;
  const __m256i x = _mm256_cvtepi8_epi16(cpu_load128(from_a)), more_x = _mm256_cvtepi8_epi16(cpu_load128(from_a + 16));
  const __m256i y = _mm256_cvtepi8_epi16(cpu_load128(from_b)), more_y = _mm256_cvtepi8_epi16(cpu_load128(from_b + 16));
  if (!isfinite(a->scales[i]) || !isfinite(b->scales[i])) return;
  const int64_t scale_a = (int64_t)(a->scales[i] * 0x1p24f), scale_b = (int64_t)(b->scales[i] * 0x1p24f);
  const wide_integer dot = sum_of(_mm256_madd_epi16(x, y), _mm256_madd_epi16(more_x, more_y)) * scale_a * scale_b;
  const wide_integer norm_a = sum_of(_mm256_madd_epi16(x, x), _mm256_madd_epi16(more_x, more_x)) * scale_a * scale_a;
  const wide_integer norm_b = sum_of(_mm256_madd_epi16(y, y), _mm256_madd_epi16(more_y, more_y)) * scale_b * scale_b;
  sums[0] += norm_a - 2 * dot + norm_b;
  sums[1] += dot;
  sums[2] += norm_a;
  sums[3] += norm_b;
}

static CPU_AVX2 void add_exactly(const cpu_compare_format *format, const unsigned char *a, const unsigned char *b, uint64_t chunks,
                                 uint64_t (*words)[TM_SUM_WORDS]) {
  const uint64_t bytes = (uint64_t)format->bytes * QUANTS;
  wide_integer sums[4] = { 0, 0, 0, 0 };
  cpu_compare_quants x, y;
  for (uint64_t k = 0; k < chunks; ++k, a += bytes, b += bytes) {
    (void)read_quants(a, format->bytes, &x);
    (void)read_quants(b, format->bytes, &y);
    for (uint64_t i = 0; i < QUANTS; ++i) add_exact_block(&x, &y, i, sums);
  }
  for (int i = 0; i < 4; ++i) add_wide_integer(words[i], sums[i]);
}

/* ---- a superblock, or a part of one ---- */

void cpu_compare_add_quants(const cpu_compare_kernels *kernels, const cpu_compare_format *format, const unsigned char *a,
                            const unsigned char *b, uint64_t chunks, cpu_compare_state *state, uint64_t (*words)[TM_SUM_WORDS]) {
  const uint64_t bytes = (uint64_t)format->bytes * QUANTS;
  cpu_compare_totals totals;
  double sums[4];
  int is_good = 1;
  memset(&totals, 0, offsetof(cpu_compare_totals, listed));
  memset(totals.smallest_a, 0xff, sizeof totals.smallest_a);
  memset(totals.smallest_b, 0xff, sizeof totals.smallest_b);
  for (uint64_t k = 0; k < chunks; ++k) {
    const unsigned char *x = a + k * bytes, *y = b + k * bytes;
    totals.begin = (uint32_t)(k * QUANTS);
    if (totals.listed_count > CPU_COMPARE_LISTED) cpu_compare_look_at_listed(format, a, b, state, &totals);
    if (kernels->same_bytes(x, y, bytes)) is_good &= add_equal_chunk(format, x, state, &totals);
    else is_good &= add_chunk(kernels, format, x, y, state, &totals);
  }
  if (totals.listed_count > 0) cpu_compare_look_at_listed(format, a, b, state, &totals);
  for (int i = 0; i < 8; ++i) state->equal -= totals.unequal[i];
  if (!is_good || !end_totals(&totals, sums)) {
    add_exactly(format, a, b, chunks, words);
    return;
  }
  for (int i = 0; i < 4; ++i) tm_sum_add(words[i], sums[i]);
}
