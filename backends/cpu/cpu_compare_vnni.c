/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the integers of 512 elements of q8_0 or q4_0 on both sides tell (cpu_compare_integers.c), in one pass over them where 64
 * bytes are a vector and four products of bytes an instruction.  Only where no quotient can become the largest one: from 1 on.
 *
 *   INTEGERS  of four blocks at a time, blocks 0 4 and 1 5 in a vector each, are interleaved by four: what is summed in a vector of
 *             two blocks then belongs to four, and three steps put the sums of sixteen blocks in their order.
 *   PRODUCTS  take a factor without a sign: x + 128.  What is too much is subtracted before, as -128 (y + 128) + 128^2.  So -128 is
 *             a number like others.
 *   LISTED    are blocks that need another look, and looked at many at a time, in f32: whether there are some in 512 elements is as
 *             good as random, and no branch hangs on it.
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
  cpu_compare_prefetch(a, 4 * (uint64_t)round);
  cpu_compare_prefetch(b, 4 * (uint64_t)round);
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

/* Bits of blocks in which some difference may be above the largest one, and of other ones in which pairs of different integers may
   be equal.  See untold_blocks there.  No integer is above 128. */
typedef struct untold_bits {
  __mmask16 far, near;
} untold_bits;

INLINE_VNNI untold_bits untold_blocks(__m512 scales_a, __m512 scales_b, __m512 apart, float max_abs) {
  const __m512 s = _mm512_abs_ps(scales_a), t = _mm512_abs_ps(scales_b), least = _mm512_min_ps(s, t), most = _mm512_max_ps(s, t);
  const __m512 up = _mm512_set1_ps(1 + 0x1p-20f);
  const __m512 reach = _mm512_mul_ps(_mm512_set1_ps(128 * (1 + 0x1p-20f)), _mm512_sub_ps(most, least));
  const __m512 distance = _mm512_min_ps(_mm512_fmadd_ps(apart, least, reach), _mm512_mul_ps(_mm512_set1_ps(256), most));
  const __mmask16 far = _mm512_cmp_ps_mask(_mm512_mul_ps(distance, up), _mm512_set1_ps(max_abs), _CMP_GT_OQ);
  const __mmask16 differ = _mm512_cmp_ps_mask(apart, _mm512_setzero_ps(), _CMP_GT_OQ);
  return (untold_bits){ far, may_be_equal(least, most, reach, differ & ~far & _mm512_cmp_ps_mask(reach, least, _CMP_NLT_UQ)) };
}

/* Few blocks are looked at later; many, as of unrelated tensors, at once. */
INLINE_VNNI void list_blocks(cpu_compare_totals *totals, __mmask16 blocks) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32((int32_t)totals->begin));
  _mm512_storeu_si512(totals->listed + totals->listed_count, _mm512_maskz_compress_epi32(blocks, numbers));
  totals->listed_count += (uint32_t)__builtin_popcount(blocks);
}

/* Whether f32 does not show all differences: scales are more than 32 times apart. */
INLINE_VNNI int are_far_apart(__m512 scales_a, __m512 scales_b) {
  const __m512 s = _mm512_abs_ps(scales_a), t = _mm512_abs_ps(scales_b);
  return _mm512_cmp_ps_mask(_mm512_max_ps(s, t), _mm512_mul_ps(_mm512_set1_ps(32), _mm512_min_ps(s, t)), _CMP_GT_OQ) != 0;
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
  if ((has_signs && _mm512_movepi8_mask(l.opposite) != 0) || are_far_apart(s, t)) return CPU_COMPARE_ALL;
  const untold_bits untold = untold_blocks(s, t, largest_apart(p.apart, q.apart, r.apart, u.apart), (float)state->max_abs);
  const int are_many = __builtin_popcount(untold.near) > CPU_COMPARE_QUANTS / 2;
  if (are_many) state->equal += count_equal_products(a, b, untold.near);
  list_blocks(totals, untold.far | (are_many ? 0 : untold.near));
  return 0;
}

/* ---- blocks that their integers do not tell enough of ---- */

typedef struct block_values {
  __m512i integers[2];
  __m512  scale;
} block_values;

INLINE_VNNI block_values load_block(const unsigned char *block, uint32_t bytes) {
  const __m128i first = cpu_load128(block + CPU_SCALE_BYTES), mask = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  const __m512 scale = _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_loadu_si16(block)));
  __m128i integers[2] = { first, cpu_load128(block + bytes - 16) };
  if (bytes == CPU_Q4_0_BYTES) {
    integers[0] = _mm_sub_epi8(_mm_and_si128(first, mask), eight);
    integers[1] = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(first, 4), mask), eight);
  }
  return (block_values){ { _mm512_cvtepi8_epi32(integers[0]), _mm512_cvtepi8_epi32(integers[1]) }, scale };
}

/* Adds the pairs that are equal though their integers are not.  Returns whether a difference is above `most`. */
INLINE_VNNI int look_at_block(const block_values *a, const block_values *b, float most, uint64_t *equal) {
  const __m512 largest = _mm512_set1_ps(most);
  __mmask16 more = 0;
  for (int i = 0; i < 2; ++i) {
    const __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(a->integers[i]), a->scale);
    const __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(b->integers[i]), b->scale);
    const __mmask16 same = _mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ);
    more |= _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_sub_ps(x, y)), largest, _CMP_GT_OQ);
    *equal += (uint64_t)__builtin_popcount(_mm512_mask_cmpneq_epi32_mask(same, a->integers[i], b->integers[i]));
  }
  return more != 0;
}

INLINE_VNNI void look_at_listed(const cpu_compare_format *format, uint32_t bytes, const unsigned char *a, const unsigned char *b,
                                const cpu_compare_totals *totals, cpu_compare_state *state) {
  float most = cpu_compare_rounded_down(state->max_abs);
  uint64_t equal = 0;
  for (uint32_t i = 0; i < totals->listed_count; ++i) {
    const uint64_t number = totals->listed[i], chunk = number / CPU_COMPARE_QUANTS * CPU_COMPARE_QUANTS;
    const block_values x = load_block(a + number * bytes, bytes), y = load_block(b + number * bytes, bytes);
    if (!look_at_block(&x, &y, most, &equal)) continue;
    cpu_compare_find_largest_of_blocks(format, a + chunk * bytes, b + chunk * bytes, state);
    most = cpu_compare_rounded_down(state->max_abs);
  }
  state->equal += equal;
}

CPU_VNNI void cpu_compare_look_at_listed(const cpu_compare_format *format, const unsigned char *a, const unsigned char *b,
                                         cpu_compare_state *state, cpu_compare_totals *totals) {
  if (format->bytes == CPU_Q8_0_BYTES) look_at_listed(format, CPU_Q8_0_BYTES, a, b, totals, state);
  else look_at_listed(format, format->bytes, a, b, totals, state);
  totals->listed_count = 0;
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
