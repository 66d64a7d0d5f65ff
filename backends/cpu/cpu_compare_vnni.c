/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the integers of 512 elements of q8_0 or q4_0 on both sides tell (cpu_compare_integers.c), in one pass over them where 64
 * bytes are a vector and four products of bytes an instruction.  Only where no quotient can become the largest one: from 1 on.
 *
 *   INTEGERS  of four blocks at a time, blocks 0 4 and 1 5 in a vector each, are interleaved by four: what is summed in a vector of
 *             two blocks then belongs to four, and three steps put the sums of sixteen blocks in their order.
 *   PRODUCTS  take a factor without a sign: x + 128.  What is too much is subtracted before, as -128 (y + 128) + 128^2.  So -128 is
 *             a number like others.
 *   APART     is how far two integers are, without a sign: the larger one less the smaller one.
 */
#include "cpu_compare.h"
#include "cpu_decode.h"

#define CPU_VNNI    __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define INLINE_VNNI static inline __attribute__((always_inline)) CPU_VNNI

/* ---- integers ---- */

/* What is looked up for each of four rounds: the blocks of a vector's dwords. */
static const int32_t blocks_of_dwords[4][16] = {
  { 0, 1, 0, 1, 0, 1, 0, 1, 4, 5, 4, 5, 4, 5, 4, 5 },
  { 2, 3, 2, 3, 2, 3, 2, 3, 6, 7, 6, 7, 6, 7, 6, 7 },
  { 8, 9, 8, 9, 8, 9, 8, 9, 12, 13, 12, 13, 12, 13, 12, 13 },
  { 10, 11, 10, 11, 10, 11, 10, 11, 14, 15, 14, 15, 14, 15, 14, 15 },
};
static const uint8_t first_block[4] = { 0, 2, 8, 10 };

/* Blocks i and i + 4. */
INLINE_VNNI __m512i load_two(const cpu_compare_quants *q, uint64_t i) {
  const unsigned char *from = q->integers + i * q->stride;
  return _mm512_inserti64x4(_mm512_castsi256_si512(cpu_load(from)), cpu_load(from + 4 * q->stride), 1);
}

/* Blocks i, i + 1, i + 4 and i + 5. */
typedef struct four_blocks {
  __m512i first, second;
} four_blocks;

INLINE_VNNI four_blocks load_four(const cpu_compare_quants *q, uint64_t i) {
  const __m512i a = load_two(q, i), b = load_two(q, i + 1);
  return (four_blocks){ _mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b) };
}

/* Sums of one round, of which four dwords belong to a block. */
typedef struct round_sums {
  __m512i dot, norm_a, norm_b;
  __m512i apart;                /* the largest, in bytes */
} round_sums;

/* Of all rounds. */
typedef struct quant_look {
  __m512i unequal;              /* bytes: the number of pairs that are not equal */
  __m512i opposite;             /* negative bytes where signs are opposite, or may be */
} quant_look;

/* What (x + 128) y has too much, subtracted; for two vectors of y + 128. */
INLINE_VNNI __m512i less_of(four_blocks sizes) {
  const __m512i bias = _mm512_set1_epi8(-128), most = _mm512_set1_epi32(2 * 4 * 128 * 128);
  return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(most, sizes.first, bias), sizes.second, bias);
}
INLINE_VNNI four_blocks sizes_of(four_blocks x) {
  const __m512i bias = _mm512_set1_epi8(-128);
  return (four_blocks){ _mm512_xor_si512(x.first, bias), _mm512_xor_si512(x.second, bias) };
}
INLINE_VNNI __m512i products(__m512i less, four_blocks sizes, four_blocks y) {
  return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(less, sizes.first, y.first), sizes.second, y.second);
}

/* Returns how far they are apart.  `scales_differ`: bytes of 255 where a pair is equal only if it is zeros. */
INLINE_VNNI __m512i look_at(quant_look *l, __m512i x, __m512i y, __m512i scales_differ, int has_signs) {
  const __m512i smaller = _mm512_min_epi8(x, y), larger = _mm512_max_epi8(x, y), apart = _mm512_sub_epi8(larger, smaller);
  const __m512i bits = _mm512_ternarylogic_epi64(apart, scales_differ, x, 0xf8);        /* apart | (scales_differ & x) */
  l->unequal = _mm512_add_epi8(l->unequal, _mm512_min_epu8(bits, _mm512_set1_epi8(1)));
  if (has_signs) {
    const __m512i negated = _mm512_sub_epi8(_mm512_setzero_si512(), larger);
    l->opposite = _mm512_ternarylogic_epi64(l->opposite, smaller, negated, 0xf8);
  }
  return apart;
}

/* `scales_differ`: a dword for each block. */
INLINE_VNNI round_sums sum_round(const cpu_compare_quants *a, const cpu_compare_quants *b, int round, __m512i scales_differ,
                                 int has_signs, quant_look *l) {
  const four_blocks x = load_four(a, first_block[round]), y = load_four(b, first_block[round]);
  const four_blocks sizes_x = sizes_of(x), sizes_y = sizes_of(y);
  const __m512i differ = _mm512_permutexvar_epi32(_mm512_loadu_si512(blocks_of_dwords[round]), scales_differ);
  const __m512i less = less_of(sizes_y), apart = look_at(l, x.first, y.first, differ, has_signs);
  return (round_sums){ products(less, sizes_x, y), products(less_of(sizes_x), sizes_x, x), products(less, sizes_y, y),
                       _mm512_max_epu8(apart, look_at(l, x.second, y.second, differ, has_signs)) };
}

/* ---- sixteen blocks in their order ---- */

/* Of two rounds: in each quarter the sums of two and two blocks. */
INLINE_VNNI __m512i fold_two(__m512i v, __m512i w) {
  return _mm512_add_epi32(_mm512_unpacklo_epi64(v, w), _mm512_unpackhi_epi64(v, w));
}
INLINE_VNNI __m512i fold(__m512i p, __m512i q, __m512i r, __m512i s) {
  const __m512i low = fold_two(p, q), high = fold_two(r, s);
  return _mm512_add_epi32(_mm512_shuffle_i64x2(low, high, 0x88), _mm512_shuffle_i64x2(low, high, 0xdd));
}

INLINE_VNNI __m512i larger_two(__m512i v, __m512i w) {
  return _mm512_max_epu8(_mm512_unpacklo_epi64(v, w), _mm512_unpackhi_epi64(v, w));
}
INLINE_VNNI __m512 largest_apart(__m512i p, __m512i q, __m512i r, __m512i s) {
  const __m512i low = larger_two(p, q), high = larger_two(r, s);
  const __m512i four = _mm512_max_epu8(_mm512_shuffle_i64x2(low, high, 0x88), _mm512_shuffle_i64x2(low, high, 0xdd));
  const __m512i two = _mm512_max_epu8(four, _mm512_srli_epi32(four, 16)), one = _mm512_max_epu8(two, _mm512_srli_epi32(two, 8));
  return _mm512_cvtepi32_ps(_mm512_and_si512(one, _mm512_set1_epi32(255)));
}

INLINE_VNNI __m512d low_half(__m512 v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
INLINE_VNNI __m512d high_half(__m512 v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }

INLINE_VNNI void add_scaled(double *total, __m512 scales_a, __m512 scales_b, __m512i sums) {
  const __m512d low = _mm512_mul_pd(low_half(scales_a), low_half(scales_b));
  const __m512d high = _mm512_mul_pd(high_half(scales_a), high_half(scales_b));
  const __m512d low_sums = _mm512_cvtepi32_pd(_mm512_castsi512_si256(sums));
  const __m512d high_sums = _mm512_cvtepi32_pd(_mm512_extracti32x8_epi32(sums, 1));
  _mm512_storeu_pd(total, _mm512_fmadd_pd(high, high_sums, _mm512_fmadd_pd(low, low_sums, _mm512_loadu_pd(total))));
}

/* ---- figures ---- */

/* See may_be_equal in cpu_compare_integers.c. */
INLINE_VNNI __mmask16 may_be_equal(__m512 s, __m512 t, __m512 reach, __mmask16 near) {
  const __m512 integers = _mm512_div_ps(s, _mm512_sub_ps(t, s));
  const __mmask16 are_whole = _mm512_cmp_ps_mask(integers, _mm512_roundscale_ps(integers, _MM_FROUND_TO_NEAREST_INT), _CMP_EQ_OQ);
  return near & (are_whole | _mm512_cmp_ps_mask(reach, _mm512_add_ps(s, s), _CMP_NLT_UQ));
}

/* Bits of those of sixteen pairs that are equal, as values, though their integers are not. */
INLINE_VNNI uint32_t equal_products(const unsigned char *x, const unsigned char *y, __m512 s, __m512 t) {
  const __m512i u = _mm512_cvtepi8_epi32(cpu_load128(x)), v = _mm512_cvtepi8_epi32(cpu_load128(y));
  const __m512 a = _mm512_mul_ps(_mm512_cvtepi32_ps(u), s), b = _mm512_mul_ps(_mm512_cvtepi32_ps(v), t);
  return _mm512_mask_cmpneq_epi32_mask(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), u, v);
}

/* The number of such pairs in some blocks, by bits. */
static __attribute__((noinline)) CPU_VNNI uint64_t count_equal_products(const cpu_compare_quants *a, const cpu_compare_quants *b,
                                                                        uint32_t blocks) {
  uint64_t equal = 0;
  for (; blocks != 0; blocks &= blocks - 1) {
    const int i = __builtin_ctz(blocks);
    const unsigned char *x = a->integers + (uint64_t)i * a->stride, *y = b->integers + (uint64_t)i * b->stride;
    const __m512 s = _mm512_set1_ps(a->scales[i]), t = _mm512_set1_ps(b->scales[i]);
    equal += (uint64_t)__builtin_popcount(equal_products(x, y, s, t) | equal_products(x + 16, y + 16, s, t) << 16);
  }
  return equal;
}

/* Bits of blocks in which some difference may be above the largest one; and of those in which pairs of different integers may be
   equal.  See untold_blocks there.  No integer is above 128. */
typedef struct looked_blocks {
  __mmask16 far, near;
} looked_blocks;

INLINE_VNNI looked_blocks look_at_blocks(__m512 scales_a, __m512 scales_b, __m512 apart, float max_abs) {
  const __m512 s = _mm512_abs_ps(scales_a), t = _mm512_abs_ps(scales_b), least = _mm512_min_ps(s, t), most = _mm512_max_ps(s, t);
  const __m512 up = _mm512_set1_ps(1 + 0x1p-20f);
  const __m512 reach = _mm512_mul_ps(_mm512_set1_ps(128 * (1 + 0x1p-20f)), _mm512_sub_ps(most, least));
  const __m512 distance = _mm512_min_ps(_mm512_fmadd_ps(apart, least, reach), _mm512_mul_ps(_mm512_set1_ps(256), most));
  const __mmask16 far = _mm512_cmp_ps_mask(_mm512_mul_ps(distance, up), _mm512_set1_ps(max_abs), _CMP_GT_OQ);
  const __mmask16 differ = _mm512_cmp_ps_mask(apart, _mm512_setzero_ps(), _CMP_GT_OQ);
  return (looked_blocks){ far, may_be_equal(least, most, reach, differ & ~far & _mm512_cmp_ps_mask(reach, least, _CMP_NLT_UQ)) };
}

INLINE_VNNI uint32_t add_integers(const cpu_compare_quants *a, const cpu_compare_quants *b, int has_signs, cpu_compare_state *state,
                                  cpu_compare_totals *totals) {
  const __m512 s = _mm512_cvtph_ps(cpu_load(a->bits)), t = _mm512_cvtph_ps(cpu_load(b->bits));
  const __m512i differ = _mm512_movm_epi32(_mm512_cmp_ps_mask(s, t, _CMP_NEQ_UQ)), none = _mm512_setzero_si512();
  quant_look l = { none, none };
  const round_sums p = sum_round(a, b, 0, differ, has_signs, &l), q = sum_round(a, b, 1, differ, has_signs, &l);
  const round_sums r = sum_round(a, b, 2, differ, has_signs, &l), u = sum_round(a, b, 3, differ, has_signs, &l);
  add_scaled(totals->dot, s, t, fold(p.dot, q.dot, r.dot, u.dot));
  add_scaled(totals->norm_a, s, s, fold(p.norm_a, q.norm_a, r.norm_a, u.norm_a));
  add_scaled(totals->norm_b, t, t, fold(p.norm_b, q.norm_b, r.norm_b, u.norm_b));
  const __m512i unequal = _mm512_sad_epu8(l.unequal, none);
  _mm512_storeu_si512(totals->unequal, _mm512_add_epi64(unequal, _mm512_loadu_si512(totals->unequal)));
  state->equal += TM_SUM_BLOCK;
  if (has_signs && _mm512_movepi8_mask(l.opposite) != 0) return CPU_COMPARE_ALL;
  const looked_blocks looked = look_at_blocks(s, t, largest_apart(p.apart, q.apart, r.apart, u.apart), (float)state->max_abs);
  if (looked.near != 0) state->equal += count_equal_products(a, b, looked.near);
  return looked.far;
}

#define ADD(name, has_signs)                                                                                              \
  static __attribute__((noinline)) CPU_VNNI uint32_t name(const cpu_compare_quants *a, const cpu_compare_quants *b,        \
                                                          cpu_compare_state *state, cpu_compare_totals *totals) {          \
    return add_integers(a, b, has_signs, state, totals);                                                                   \
  }
ADD(add_signs_told, 1)
ADD(add_signs_free, 0)

CPU_AVX2 uint32_t cpu_compare_add_integers_vnni(const cpu_compare_quants *a, const cpu_compare_quants *b, cpu_compare_state *state,
                                                cpu_compare_totals *totals) {
  if (state->max_rel < 1 || cpu_compare_odd_blocks(a, b) != 0) return cpu_compare_add_integers(a, b, state, totals);
  const uint32_t untold = state->max_rel < 2 ? add_signs_told(a, b, state, totals) : add_signs_free(a, b, state, totals);
  if (untold != 0) state->equal -= cpu_compare_count_equal_integers(a, b, untold);
  return untold;
}
