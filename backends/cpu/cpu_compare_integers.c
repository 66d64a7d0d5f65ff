/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the integers of 512 elements of q8_0 or q4_0 on both sides tell without decoding them: their sums of products, and often
 * enough about the other figures.
 *
 * A difference of two elements is at most the difference of their integers times a scale, and the largest one times what their
 * scales differ by.  No quotient is above 1 unless two values have opposite signs.  Of equal scales those values are equal that
 * have equal integers, and of nearly equal ones only zeros.
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

/* Sums of neighbouring products.  The sign of the first factor has gone to the second one; of -128 it could not (mend_lowest). */
CPU_INLINE __m256i products_of(__m256i size, __m256i other) {
  return _mm256_madd_epi16(_mm256_maddubs_epi16(size, other), _mm256_set1_epi16(1));
}

CPU_INLINE __m256i products(two_blocks sizes, two_blocks other) {
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
  __m256i apart[QUANTS / 2];    /* the largest differences in two blocks, a half each; of 127 and more some such number */
  __m256i opposite;             /* negative where signs are opposite */
  __m256i sizes;                /* bits of all magnitudes, of which -128 has one of its own */
  __m256i equal;                /* the number of those whose scales are equal or that are zeros */
} quant_look;

/* Returns the differences. */
CPU_INLINE __m256i look_at(quant_look *l, __m256i x, __m256i y, __m256i directed, __m256i have_same_scale) {
  const __m256i difference = _mm256_subs_epi8(x, y), zero = _mm256_setzero_si256();
  const __m256i counts = _mm256_or_si256(have_same_scale, _mm256_cmpeq_epi8(x, zero));
  l->opposite = _mm256_min_epi8(l->opposite, directed);
  l->equal = _mm256_sub_epi8(l->equal, _mm256_and_si256(_mm256_cmpeq_epi8(difference, zero), counts));
  return _mm256_abs_epi8(difference);
}

/* A byte for each block, in both halves: -1 where scales are the same. */
CPU_INLINE __m256i same_scales(const cpu_compare_quants *a, const cpu_compare_quants *b) {
  const __m256i same = _mm256_cmpeq_epi16(cpu_load(a->bits), cpu_load(b->bits));
  return _mm256_broadcastsi128_si256(_mm_packs_epi16(_mm256_castsi256_si128(same), _mm256_extracti128_si256(same, 1)));
}
/* Those of blocks i and i + 1, in a half each. */
CPU_INLINE __m256i bytes_of_two(__m256i bytes, int i) {
  const __m256i first = _mm256_set_m128i(_mm_set1_epi8(1), _mm_setzero_si128());
  return _mm256_shuffle_epi8(bytes, _mm256_add_epi8(first, _mm256_set1_epi8((char)i)));
}

typedef struct pair_sums {
  __m256i dot, norm_a, norm_b;
} pair_sums;

/* Of blocks i and i + 1. */
CPU_INLINE pair_sums sum_two(const cpu_compare_quants *a, const cpu_compare_quants *b, int i, __m256i same,
                             quant_look *l) {
  const two_blocks x = load_two(a, i), y = load_two(b, i), size_x = sizes_of(x), size_y = sizes_of(y);
  const two_blocks directed = { _mm256_sign_epi8(y.first, x.first), _mm256_sign_epi8(y.second, x.second) };
  const __m256i have_same_scale = bytes_of_two(same, i), apart = look_at(l, x.first, y.first, directed.first, have_same_scale);
  l->apart[i / 2] = _mm256_max_epu8(apart, look_at(l, x.second, y.second, directed.second, have_same_scale));
  l->sizes = _mm256_or_si256(l->sizes, _mm256_or_si256(size_x.first, size_y.first));
  l->sizes = _mm256_or_si256(l->sizes, _mm256_or_si256(size_x.second, size_y.second));
  pair_sums sums = { products(size_x, directed), products(size_x, size_x),
                     products(size_y, size_y) };
  /* One after the other; without it gcc 12 keeps everything of all blocks on the stack until the end. */
  __asm__ volatile("" : "+v"(l->opposite), "+v"(l->sizes), "+v"(l->equal), "+v"(sums.dot), "+v"(sums.norm_a), "+v"(sums.norm_b)
                      : : "memory");
  return sums;
}

CPU_INLINE void prefetch_four(const cpu_compare_quants *a, const cpu_compare_quants *b, int block) {
  cpu_compare_prefetch(a, (uint64_t)block);
  cpu_compare_prefetch(b, (uint64_t)block);
}

CPU_INLINE void sum_group(const cpu_compare_quants *a, const cpu_compare_quants *b, int group, quant_look *l,
                          cpu_compare_totals *totals) {
  const __m256i same = same_scales(a, b);
  prefetch_four(a, b, group);
  prefetch_four(a, b, group + 4);
  const pair_sums p = sum_two(a, b, group, same, l), q = sum_two(a, b, group + 2, same, l);
  const pair_sums r = sum_two(a, b, group + 4, same, l), s = sum_two(a, b, group + 6, same, l);
  const __m256 scales_a = folded_scales(a, group), scales_b = folded_scales(b, group);
  add_scaled(totals->dot, scales_a, scales_b, fold(p.dot, q.dot, r.dot, s.dot));
  add_scaled(totals->norm_a, scales_a, scales_a, fold(p.norm_a, q.norm_a, r.norm_a, s.norm_a));
  add_scaled(totals->norm_b, scales_b, scales_b, fold(p.norm_b, q.norm_b, r.norm_b, s.norm_b));
}

CPU_INLINE __m256i square_two(const cpu_compare_quants *q, int i, __m256i *sizes) {
  const two_blocks size = sizes_of(load_two(q, i));
  *sizes = _mm256_or_si256(*sizes, _mm256_or_si256(size.first, size.second));
  return products(size, size);
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

/* ---- the integer -128 ---- */

/* Sums of neighbouring bytes without a sign, times 256. */
CPU_INLINE __m256i sums_of_256(__m256i sizes) {
  const __m256i pairs = _mm256_maddubs_epi16(sizes, _mm256_set1_epi8(1));
  return _mm256_slli_epi32(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)), 8);
}
CPU_INLINE __m256i where_lowest(__m256i x) { return _mm256_cmpeq_epi8(x, _mm256_set1_epi8(-128)); }

/* What was subtracted for -128 * -128, and is to be added, twice. */
CPU_INLINE __m256i lost_squares(two_blocks x) {
  const __m256i lowest = _mm256_set1_epi8(-128);
  return _mm256_add_epi32(sums_of_256(_mm256_and_si256(where_lowest(x.first), lowest)),
                          sums_of_256(_mm256_and_si256(where_lowest(x.second), lowest)));
}

/* The same for x * -128 where x is negative. */
CPU_INLINE __m256i lost_sizes(__m256i x, __m256i y) {
  const __m256i both = _mm256_and_si256(where_lowest(y), _mm256_cmpgt_epi8(_mm256_setzero_si256(), x));
  return sums_of_256(_mm256_and_si256(_mm256_abs_epi8(x), both));
}
CPU_INLINE __m256i lost_products(two_blocks x, two_blocks y) {
  return _mm256_add_epi32(lost_sizes(x.first, y.first), lost_sizes(x.second, y.second));
}

CPU_INLINE __m256i lost_squares_of(const cpu_compare_quants *q, int group) {
  return fold(lost_squares(load_two(q, group)), lost_squares(load_two(q, group + 2)), lost_squares(load_two(q, group + 4)),
              lost_squares(load_two(q, group + 6)));
}
CPU_INLINE __m256i lost_products_of(const cpu_compare_quants *a, const cpu_compare_quants *b, int group) {
  return fold(lost_products(load_two(a, group), load_two(b, group)), lost_products(load_two(a, group + 2), load_two(b, group + 2)),
              lost_products(load_two(a, group + 4), load_two(b, group + 4)),
              lost_products(load_two(a, group + 6), load_two(b, group + 6)));
}

/* Adds what the sums lack because of integers that are -128. */
static __attribute__((noinline)) CPU_AVX2 void mend_lowest(const cpu_compare_quants *a, const cpu_compare_quants *b,
                                                           cpu_compare_totals *totals) {
  for (int group = 0; group < QUANTS; group += CPU_BLOCK_GROUP) {
    const __m256 scales_a = folded_scales(a, group), scales_b = folded_scales(b, group);
    add_scaled(totals->dot, scales_a, scales_b, lost_products_of(a, b, group));
    add_scaled(totals->norm_a, scales_a, scales_a, lost_squares_of(a, group));
    add_scaled(totals->norm_b, scales_b, scales_b, lost_squares_of(b, group));
  }
}
static __attribute__((noinline)) CPU_AVX2 void mend_lowest_of_equal(const cpu_compare_quants *q, cpu_compare_totals *totals) {
  for (int group = 0; group < QUANTS; group += CPU_BLOCK_GROUP) {
    const __m256 scales = folded_scales(q, group);
    add_scaled(totals->same, scales, scales, lost_squares_of(q, group));
  }
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

/* The larger of bytes of each two blocks, eight bytes of each. */
CPU_INLINE __m256i larger_64(__m256i v, __m256i w) {
  return _mm256_max_epu8(_mm256_unpacklo_epi64(v, w), _mm256_unpackhi_epi64(v, w));
}

/* How far the integers of each of eight blocks are apart, at most. */
CPU_INLINE __m256 largest_apart(const __m256i *apart) {
  const __m256 low = _mm256_castsi256_ps(larger_64(apart[0], apart[1])), high = _mm256_castsi256_ps(larger_64(apart[2], apart[3]));
  const __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
  const __m256i four = _mm256_max_epu8(even, _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xdd)));
  const __m256i two = _mm256_max_epu8(four, _mm256_srli_epi32(four, 16)), one = _mm256_max_epu8(two, _mm256_srli_epi32(two, 8));
  const __m256i in_order = _mm256_permutevar8x32_epi32(one, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  const __m256 seen = _mm256_cvtepi32_ps(_mm256_and_si256(in_order, _mm256_set1_epi32(255)));
  return _mm256_blendv_ps(seen, _mm256_set1_ps(255), _mm256_cmp_ps(seen, _mm256_set1_ps(127), _CMP_GE_OQ));
}

CPU_INLINE __m256 magnitudes(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }

CPU_AVX2 uint32_t cpu_compare_odd_blocks(const cpu_compare_quants *a, const cpu_compare_quants *b) {
  const __m256i bits_a = cpu_load(a->bits), bits_b = cpu_load(b->bits), zero = _mm256_setzero_si256();
  const __m256i a_zero = _mm256_cmpeq_epi16(_mm256_slli_epi16(bits_a, 1), zero);
  const __m256i b_zero = _mm256_cmpeq_epi16(_mm256_slli_epi16(bits_b, 1), zero);
  const __m256i odd = _mm256_or_si256(_mm256_or_si256(a_zero, b_zero), _mm256_cmpgt_epi16(zero, _mm256_xor_si256(bits_a, bits_b)));
  return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(_mm256_castsi256_si128(odd), _mm256_extracti128_si256(odd, 1)));
}

/* Bits of four scales with a larger quotient, which is that of all pairs with equal integers. */
CPU_INLINE uint32_t larger_quotients(__m128 a, __m128 b, double best) {
  const __m256d x = _mm256_cvtps_pd(a), y = _mm256_cvtps_pd(b), sign = _mm256_set1_pd(-0.0);
  const __m256d distance = _mm256_andnot_pd(sign, _mm256_sub_pd(x, y));
  const __m256d quotients = _mm256_div_pd(distance, _mm256_max_pd(x, y));
  return (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(quotients, _mm256_set1_pd(best), _CMP_GT_OQ));
}

CPU_INLINE uint32_t eight_larger_quotients(__m256 s, __m256 t, double best) {
  const uint32_t high = larger_quotients(_mm256_extractf128_ps(s, 1), _mm256_extractf128_ps(t, 1), best);
  return larger_quotients(_mm256_castps256_ps128(s), _mm256_castps256_ps128(t), best) | high << 4;
}
CPU_INLINE uint32_t lanes_of(__m256 mask) { return (uint32_t)_mm256_movemask_ps(mask); }

/* Lanes of smaller and larger scales s and t with which pairs of different integers may be equal: x s is y t only if
   (x - y) s is y (t - s), and so only if s is at most a reach of the largest integer times t - s.  If even 2 s is more than that,
   x - y is 1, and y is s / (t - s): a whole number. */
CPU_INLINE __m256 may_be_equal(__m256 s, __m256 t, __m256 reach) {
  const __m256 integers = _mm256_div_ps(s, _mm256_sub_ps(t, s));
  const __m256 nearest = _mm256_round_ps(integers, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 are_whole = _mm256_cmp_ps(integers, nearest, _CMP_EQ_OQ);
  const __m256 far = _mm256_cmp_ps(reach, _mm256_add_ps(s, s), _CMP_NLT_UQ);
  return _mm256_and_ps(_mm256_cmp_ps(reach, s, _CMP_NLT_UQ), _mm256_or_ps(far, are_whole));
}

/* Bits of eight blocks of which the integers do not tell that no difference and no quotient is above the largest one, or which
   pairs are equal.  x s - y t is (x - y) s + y (s - t); if x is not y, the quotient may be up to 1. */
CPU_INLINE uint32_t untold_blocks(const cpu_compare_quants *a, const cpu_compare_quants *b, const quant_look *l, int group,
                                  float size, const cpu_compare_state *state) {
  const __m256 s = magnitudes(cpu_load_ps(a->scales + group)), t = magnitudes(cpu_load_ps(b->scales + group));
  const __m256 apart = largest_apart(l->apart + group / 2), least = _mm256_min_ps(s, t), most = _mm256_max_ps(s, t);
  const __m256 up = _mm256_set1_ps(1 + 0x1p-20f), sizes = _mm256_set1_ps(size);
  const __m256 reach = _mm256_mul_ps(_mm256_mul_ps(sizes, up), _mm256_sub_ps(most, least));
  const __m256 distance = _mm256_min_ps(_mm256_fmadd_ps(apart, least, reach), _mm256_mul_ps(_mm256_add_ps(sizes, sizes), most));
  const uint32_t beyond = lanes_of(_mm256_cmp_ps(_mm256_mul_ps(distance, up), _mm256_set1_ps((float)state->max_abs), _CMP_GT_OQ));
  const uint32_t differ = lanes_of(_mm256_cmp_ps(apart, _mm256_setzero_ps(), _CMP_GT_OQ));
  if (state->max_rel < 1) return beyond | differ | eight_larger_quotients(s, t, state->max_rel);
  return beyond | (differ & lanes_of(may_be_equal(least, most, reach)));
}

/* What quant_look counts as equal in these blocks. */
CPU_AVX2 uint64_t cpu_compare_count_equal_integers(const cpu_compare_quants *a, const cpu_compare_quants *b, uint32_t blocks) {
  __m256i equal = _mm256_setzero_si256();
  for (; blocks != 0; blocks &= blocks - 1) {
    const uint64_t i = (uint64_t)__builtin_ctz(blocks);
    const __m256i x = cpu_load(a->integers + i * a->stride), y = cpu_load(b->integers + i * b->stride);
    const __m256i have_same = _mm256_set1_epi8(a->bits[i] == b->bits[i] ? -1 : 0);
    const __m256i counts = _mm256_or_si256(have_same, _mm256_cmpeq_epi8(x, _mm256_setzero_si256()));
    equal = _mm256_sub_epi8(equal, _mm256_and_si256(_mm256_cmpeq_epi8(x, y), counts));
  }
  return sum_bytes(equal);
}

CPU_INLINE uint32_t tell_figures(const cpu_compare_quants *a, const cpu_compare_quants *b, const quant_look *l,
                                 cpu_compare_state *state) {
  const float size = (float)largest_byte(l->sizes);
  if (state->max_rel < 2 && _mm256_movemask_epi8(l->opposite) != 0) return CPU_COMPARE_ALL;
  const uint32_t low = untold_blocks(a, b, l, 0, size, state), high = untold_blocks(a, b, l, CPU_BLOCK_GROUP, size, state);
  const uint32_t untold = cpu_compare_odd_blocks(a, b) | low | high << CPU_BLOCK_GROUP;
  state->equal += sum_bytes(l->equal);
  if (untold != 0) state->equal -= cpu_compare_count_equal_integers(a, b, untold);
  return untold;
}

CPU_AVX2 uint32_t cpu_compare_add_integers(const cpu_compare_quants *a, const cpu_compare_quants *b, cpu_compare_state *state,
                                           cpu_compare_totals *totals) {
  const __m256i none = _mm256_setzero_si256();
  quant_look l = { .opposite = none, .sizes = none, .equal = none };
  sum_group(a, b, 0, &l, totals);
  sum_group(a, b, CPU_BLOCK_GROUP, &l, totals);
  if (has_lowest(l.sizes)) mend_lowest(a, b, totals);
  return tell_figures(a, b, &l, state);
}

CPU_AVX2 void cpu_compare_add_equal_integers(const cpu_compare_quants *a, cpu_compare_totals *totals) {
  const __m256i low = sum_equal_group(a, 0, totals), high = sum_equal_group(a, CPU_BLOCK_GROUP, totals);
  if (has_lowest(_mm256_or_si256(low, high))) mend_lowest_of_equal(a, totals);
}
