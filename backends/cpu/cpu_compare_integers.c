/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the integers of 512 elements of q8_0 or q4_0 on both sides tell without decoding them: their sums of products, and often
 * enough about the other figures.
 *
 * A difference of two elements is at most the difference of their integers times a scale, and the largest one
 * times what their scales differ by.
 * No quotient is above 1 unless two values have opposite signs.  Of equal scales those values are equal that have equal integers; of
 * different ones those that have equal products with their scales, and so modulo 2^16.
 */
#include "cpu_block_sums.h"
#include "cpu_compare.h"
#include "cpu_decode.h"

#define ELEMENTS CPU_QUANT_ELEMENTS
#define QUANTS   CPU_COMPARE_QUANTS

/* ---- sums ---- */

/* Two blocks' integers, 16 of each block in a vector. */
typedef struct two_blocks {
  __m256i first, second;
} two_blocks;

CPU_INLINE two_blocks load_two(const cpu_compare_quants *q, int i) {
  const unsigned char *from = q->integers + (uint64_t)i * q->stride, *next = from + q->stride;
  return (two_blocks){ _mm256_set_m128i(cpu_load128(next), cpu_load128(from)),
                       _mm256_set_m128i(cpu_load128(next + 16), cpu_load128(from + 16)) };
}

/* Sums of neighbouring products.  The sign of the first factor has gone to the second one, which must not be -128. */
CPU_INLINE __m256i products_of(__m256i size, __m256i other) {
  return _mm256_madd_epi16(_mm256_maddubs_epi16(size, other), _mm256_set1_epi16(1));
}

/* The same in one instruction.  As text, because a function for another instruction set would not be part of its caller. */
CPU_INLINE __m256i add_products_vnni(__m256i sums, __m256i size, __m256i other) {
  __asm__("vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(size), "x"(other));
  return sums;
}

CPU_INLINE __m256i products(two_blocks sizes, two_blocks other, int has_vnni) {
  if (has_vnni) return add_products_vnni(add_products_vnni(_mm256_setzero_si256(), sizes.first, other.first), sizes.second, other.second);
  return _mm256_add_epi32(products_of(sizes.first, other.first), products_of(sizes.second, other.second));
}
CPU_INLINE two_blocks sizes_of(two_blocks x) { return (two_blocks){ _mm256_abs_epi8(x.first), _mm256_abs_epi8(x.second) }; }

/* The sums of blocks 0 2 4 6 1 3 5 7, from those of neighbouring products in each two of them. */
CPU_INLINE __m256i fold(__m256i a, __m256i b, __m256i c, __m256i d) { return cpu_fold_64(cpu_fold_32(a, b), cpu_fold_32(c, d)); }
CPU_INLINE __m256 folded_scales(const cpu_compare_quants *q, int group) {
  return _mm256_permutevar8x32_ps(cpu_load_ps(q->scales + group), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

CPU_INLINE void add_scaled(double *total, __m256 scales_a, __m256 scales_b, __m256i sums) {
  const __m256d low = _mm256_mul_pd(cpu_low_half(scales_a), cpu_low_half(scales_b));
  const __m256d high = _mm256_mul_pd(cpu_high_half(scales_a), cpu_high_half(scales_b));
  _mm256_storeu_pd(total, _mm256_fmadd_pd(low, _mm256_cvtepi32_pd(_mm256_castsi256_si128(sums)), cpu_load_pd(total)));
  _mm256_storeu_pd(total + 4, _mm256_fmadd_pd(high, _mm256_cvtepi32_pd(_mm256_extracti128_si256(sums, 1)), cpu_load_pd(total + 4)));
}

/* What integers of all pairs tell. */
typedef struct quant_look {
  __m256i apart;                /* the largest differences; of 127 and more some such number */
  __m256i opposite;             /* negative where signs are opposite */
  __m256i sizes;                /* bits of all magnitudes, of which -128 has one of its own */
  __m256i equal;                /* their number */
} quant_look;

CPU_INLINE void look_at(quant_look *l, __m256i x, __m256i y, __m256i directed) {
  const __m256i difference = _mm256_subs_epi8(x, y);
  l->apart = _mm256_max_epu8(l->apart, _mm256_abs_epi8(difference));
  l->opposite = _mm256_min_epi8(l->opposite, directed);
  l->equal = _mm256_sub_epi8(l->equal, _mm256_cmpeq_epi8(difference, _mm256_setzero_si256()));
}

typedef struct pair_sums {
  __m256i dot, norm_a, norm_b;
} pair_sums;

/* Of blocks i and i + 1. */
CPU_INLINE pair_sums sum_two(const cpu_compare_quants *a, const cpu_compare_quants *b, int i, int has_vnni, quant_look *l) {
  const two_blocks x = load_two(a, i), y = load_two(b, i), size_x = sizes_of(x), size_y = sizes_of(y);
  const two_blocks directed = { _mm256_sign_epi8(y.first, x.first), _mm256_sign_epi8(y.second, x.second) };
  look_at(l, x.first, y.first, directed.first);
  look_at(l, x.second, y.second, directed.second);
  l->sizes = _mm256_or_si256(l->sizes, _mm256_or_si256(size_x.first, size_y.first));
  l->sizes = _mm256_or_si256(l->sizes, _mm256_or_si256(size_x.second, size_y.second));
  pair_sums sums = { products(size_x, directed, has_vnni), products(size_x, size_x, has_vnni),
                     products(size_y, size_y, has_vnni) };
  /* One after the other; without it gcc 12 keeps everything of all blocks on the stack until the end. */
  __asm__ volatile("" : "+x"(l->apart), "+x"(l->opposite), "+x"(l->sizes), "+x"(l->equal),
                        "+x"(sums.dot), "+x"(sums.norm_a), "+x"(sums.norm_b) : : "memory");
  return sums;
}

CPU_INLINE void sum_group(const cpu_compare_quants *a, const cpu_compare_quants *b, int group, int has_vnni, quant_look *l,
                          cpu_compare_totals *totals) {
  const pair_sums p = sum_two(a, b, group, has_vnni, l), q = sum_two(a, b, group + 2, has_vnni, l);
  const pair_sums r = sum_two(a, b, group + 4, has_vnni, l), s = sum_two(a, b, group + 6, has_vnni, l);
  const __m256 scales_a = folded_scales(a, group), scales_b = folded_scales(b, group);
  add_scaled(totals->dot, scales_a, scales_b, fold(p.dot, q.dot, r.dot, s.dot));
  add_scaled(totals->norm_a, scales_a, scales_a, fold(p.norm_a, q.norm_a, r.norm_a, s.norm_a));
  add_scaled(totals->norm_b, scales_b, scales_b, fold(p.norm_b, q.norm_b, r.norm_b, s.norm_b));
}

CPU_INLINE __m256i square_two(const cpu_compare_quants *q, int i, __m256i *sizes) {
  const two_blocks size = sizes_of(load_two(q, i));
  *sizes = _mm256_or_si256(*sizes, _mm256_or_si256(size.first, size.second));
  return products(size, size, 0);
}

/* Returns bits of all magnitudes. */
CPU_INLINE __m256i sum_equal_group(const cpu_compare_quants *q, int group, cpu_compare_totals *totals) {
  __m256i sizes = _mm256_setzero_si256();
  const __m256i a = square_two(q, group, &sizes), b = square_two(q, group + 2, &sizes);
  const __m256i c = square_two(q, group + 4, &sizes), d = square_two(q, group + 6, &sizes);
  const __m256 scales = folded_scales(q, group);
  add_scaled(totals->same, scales, scales, fold(a, b, c, d));
  return sizes;
}

CPU_INLINE int has_lowest(__m256i sizes) { return _mm256_movemask_epi8(sizes) != 0; }

/* ---- figures ---- */

CPU_INLINE int largest_byte(__m256i v) {
  const __m128i four = _mm_max_epu8(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i pairs = _mm_max_epu8(four, _mm_srli_epi16(four, 8));
  const __m128i below = _mm_andnot_si128(pairs, _mm_set1_epi16(255));
  return 255 - (_mm_cvtsi128_si32(_mm_minpos_epu16(below)) & 0xffff);
}

CPU_INLINE uint64_t sum_bytes(__m256i v) { return cpu_sum_epi64(_mm256_sad_epu8(v, _mm256_setzero_si256())); }

/* Of all scales of both sides. */
CPU_INLINE double largest_scale(const cpu_compare_quants *a, const cpu_compare_quants *b) {
  const __m256i both = _mm256_max_epu16(_mm256_slli_epi16(cpu_load(a->bits), 1), _mm256_slli_epi16(cpu_load(b->bits), 1));
  const __m128i eight = _mm_max_epu16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  const int below = _mm_cvtsi128_si32(_mm_minpos_epu16(_mm_xor_si128(eight, _mm_set1_epi16(-1)))) & 0xffff;
  return (double)_cvtsh_ss((uint16_t)((0xffff ^ below) >> 1));
}

/* Whether a difference or a quotient may be above the largest one, if scales differ by at most `off`. */
CPU_INLINE int may_be_larger(const cpu_compare_quants *a, const cpu_compare_quants *b, const quant_look *l, double off,
                             const cpu_compare_state *state) {
  const int seen = largest_byte(l->apart), apart = seen < 127 ? seen : 254;
  if (state->max_rel < 1 && (apart > 0 || off > 0)) return 1;
  if (state->max_rel < 2 && _mm256_movemask_epi8(l->opposite) != 0) return 1;
  const int size = largest_byte(l->sizes);
  const double scale = largest_scale(a, b), nearer = apart * scale + size * off, farther = 2 * size * scale;
  return (nearer < farther ? nearer : farther) > state->max_abs;
}

/* Whether scales of zero, whose zeros have signs, or of opposite signs are among them. */
CPU_INLINE int have_odd_scales(__m256i a, __m256i b) {
  const __m256i zero = _mm256_setzero_si256(), a_zero = _mm256_cmpeq_epi16(_mm256_slli_epi16(a, 1), zero);
  const __m256i b_zero = _mm256_cmpeq_epi16(_mm256_slli_epi16(b, 1), zero);
  return cpu_any(_mm256_or_si256(_mm256_or_si256(a_zero, b_zero), _mm256_cmpgt_epi16(zero, _mm256_xor_si256(a, b))));
}

/* An upper bound of what two scales of a pair differ by. */
CPU_INLINE double largest_offset(const cpu_compare_quants *a, const cpu_compare_quants *b) {
  const __m256 sign = _mm256_set1_ps(-0.0f), low = _mm256_sub_ps(cpu_load_ps(a->scales), cpu_load_ps(b->scales));
  const __m256 high = _mm256_sub_ps(cpu_load_ps(a->scales + 8), cpu_load_ps(b->scales + 8));
  const __m256 eight = _mm256_max_ps(_mm256_andnot_ps(sign, low), _mm256_andnot_ps(sign, high));
  return cpu_largest_pd(_mm256_max_pd(cpu_low_half(eight), cpu_high_half(eight))) * (1 + 0x1p-20);
}

/* Significands of eight scales as whole numbers of the smaller unit of both, modulo 2^32. */
CPU_INLINE __m256i whole_scales(__m256i bits, __m256i other) {
  const __m256i one = _mm256_set1_epi32(1), mask = _mm256_set1_epi32(0x1f);
  const __m256i field = _mm256_and_si256(_mm256_srli_epi32(bits, 10), mask), exponent = _mm256_max_epi32(field, one);
  const __m256i least = _mm256_min_epi32(exponent, _mm256_max_epi32(_mm256_and_si256(_mm256_srli_epi32(other, 10), mask), one));
  const __m256i lead = _mm256_slli_epi32(_mm256_min_epi32(field, one), 10);
  const __m256i significand = _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x3ff)), lead);
  return _mm256_sllv_epi32(significand, _mm256_sub_epi32(exponent, least));
}

CPU_INLINE __m256i equal_products(__m128i x, __m128i y, __m256i factor_x, __m256i factor_y) {
  const __m256i left = _mm256_mullo_epi16(_mm256_cvtepi8_epi16(x), factor_x);
  return _mm256_cmpeq_epi16(left, _mm256_mullo_epi16(_mm256_cvtepi8_epi16(y), factor_y));
}

/* Pairs of zeros; -1 if others may be equal as well. */
static __attribute__((noinline)) CPU_AVX2 int64_t count_equal_zeros(const cpu_compare_quants *a, const cpu_compare_quants *b) {
  uint32_t factors_a[QUANTS], factors_b[QUANTS];
  __m256i zeros = _mm256_setzero_si256(), products = zeros;
  for (uint32_t i = 0; i < QUANTS; i += 8) {
    const __m256i x = _mm256_cvtepu16_epi32(cpu_load128(a->bits + i)), y = _mm256_cvtepu16_epi32(cpu_load128(b->bits + i));
    cpu_store(factors_a + i, whole_scales(x, y));
    cpu_store(factors_b + i, whole_scales(y, x));
  }
  for (uint32_t i = 0; i < QUANTS; ++i) {
    const unsigned char *from_a = a->integers + i * a->stride, *from_b = b->integers + i * b->stride;
    const __m256i factor_a = _mm256_set1_epi16((int16_t)factors_a[i]), factor_b = _mm256_set1_epi16((int16_t)factors_b[i]);
    const __m256i first = equal_products(cpu_load128(from_a), cpu_load128(from_b), factor_a, factor_b);
    const __m256i second = equal_products(cpu_load128(from_a + 16), cpu_load128(from_b + 16), factor_a, factor_b);
    const __m256i both = _mm256_or_si256(cpu_load(from_a), cpu_load(from_b));
    products = _mm256_sub_epi16(products, _mm256_add_epi16(first, second));
    zeros = _mm256_sub_epi8(zeros, _mm256_cmpeq_epi8(both, _mm256_setzero_si256()));
  }
  const uint64_t count = sum_bytes(zeros);
  return cpu_sum_epi16(products) == count ? (int64_t)count : -1;
}

CPU_INLINE int tell_figures(const cpu_compare_quants *a, const cpu_compare_quants *b, const quant_look *l, cpu_compare_state *state) {
  const __m256i bits_a = cpu_load(a->bits), bits_b = cpu_load(b->bits);
  if (have_odd_scales(bits_a, bits_b)) return 0;
  if (!cpu_any(_mm256_xor_si256(bits_a, bits_b))) {
    if (may_be_larger(a, b, l, 0, state)) return 0;
    state->equal += sum_bytes(l->equal);
    return 1;
  }
  if (may_be_larger(a, b, l, largest_offset(a, b), state)) return 0;
  const int64_t zeros = count_equal_zeros(a, b);
  if (zeros < 0) return 0;
  state->equal += (uint64_t)zeros;
  return 1;
}

/* Both groups, with the instructions there are. */
#define SUM_ALL(name, has_vnni)                                                                                                   \
  static __attribute__((noinline)) CPU_AVX2 void name(const cpu_compare_quants *a, const cpu_compare_quants *b, quant_look *out,   \
                                                      cpu_compare_totals *totals) {                                                \
    const __m256i none = _mm256_setzero_si256();                                                                                  \
    quant_look l = { none, none, none, none };                                                                                    \
    sum_group(a, b, 0, has_vnni, &l, totals);                                                                                     \
    sum_group(a, b, CPU_BLOCK_GROUP, has_vnni, &l, totals);                                                                       \
    *out = l;                                                                                                                     \
  }
SUM_ALL(sum_all, 0)
SUM_ALL(sum_all_vnni, 1)

CPU_AVX2 int cpu_compare_add_integers(const cpu_compare_quants *a, const cpu_compare_quants *b, int has_vnni,
                                      cpu_compare_state *state, cpu_compare_totals *totals, int *out_is_summed) {
  quant_look l;
  if (has_vnni) sum_all_vnni(a, b, &l, totals);
  else sum_all(a, b, &l, totals);
  *out_is_summed = !has_lowest(l.sizes);
  return *out_is_summed && tell_figures(a, b, &l, state);
}

CPU_AVX2 int cpu_compare_add_equal_integers(const cpu_compare_quants *a, cpu_compare_totals *totals) {
  const __m256i low = sum_equal_group(a, 0, totals), high = sum_equal_group(a, CPU_BLOCK_GROUP, totals);
  return !has_lowest(_mm256_or_si256(low, high));
}
