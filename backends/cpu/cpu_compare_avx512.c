/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of TM_OP_COMPARE_TENSORS with the instructions and the 32 registers of AVX-512, on vectors of 256 bits: 16 lanes of
 * four sums fit, and where 512 bits go through the same units in two turns, 256 keep more of them busy.  As
 * cpu_compare_avx2.c otherwise.
 *
 * Chains of f32 are on vectors of 512 bits, of which a conversion needs fewer.  bf16 comes apart in the order that is cheapest:
 * of 32 elements the even ones by a shift, then the odd ones by a mask; a block's chains are put in order at its end.
 */
#include <string.h>

#include "cpu_compare.h"
#include "cpu_decode.h"

#define BLOCK TM_SUM_BLOCK
#define INLINE_512 static inline __attribute__((always_inline)) CPU_AVX512

INLINE_512 int is_finite(__m256d x) { return _mm256_cmp_pd_mask(_mm256_sub_pd(x, x), _mm256_setzero_pd(), _CMP_NEQ_UQ) == 0; }
INLINE_512 __m512i load_bits(const void *data) { return _mm512_loadu_si512(data); }

/* ---- pairs ---- */

/* Four lanes of each sum. */
typedef struct quarter {
  __m256d squared, dot, norm_a, norm_b;
} quarter;

INLINE_512 quarter load_quarter(const cpu_compare_lanes *l, int at) {
  return (quarter){
    cpu_load_pd(l->squared + at), cpu_load_pd(l->dot + at), cpu_load_pd(l->norm_a + at), cpu_load_pd(l->norm_b + at),
  };
}
INLINE_512 void store_quarter(const quarter *q, cpu_compare_lanes *l, int at) {
  _mm256_storeu_pd(l->squared + at, q->squared);
  _mm256_storeu_pd(l->dot + at, q->dot);
  _mm256_storeu_pd(l->norm_a + at, q->norm_a);
  _mm256_storeu_pd(l->norm_b + at, q->norm_b);
}

typedef struct largest {
  __m256i abs;                  /* bits: of numbers that are not negative they stand in the order of the numbers */
  __m256d rel, rel_margin;
  __m256i more;                 /* negative where a pair is beyond */
} largest;

/* The larger of two magnitudes, in one instruction. */
INLINE_512 __m256d larger_of(__m256d x, __m256d y) { return _mm256_range_pd(x, y, 0xb); }

INLINE_512 void add_four(quarter *q, largest *l, __m256d x, __m256d y) {
  const __m256d difference = _mm256_sub_pd(x, y), distance = _mm256_andnot_pd(_mm256_set1_pd(-0.0), difference);
  const __m256d larger = larger_of(x, y);
  q->squared = _mm256_fmadd_pd(difference, difference, q->squared);
  q->dot = _mm256_fmadd_pd(x, y, q->dot);
  q->norm_a = _mm256_fmadd_pd(x, x, q->norm_a);
  q->norm_b = _mm256_fmadd_pd(y, y, q->norm_b);
  const __m256i beyond_abs = _mm256_sub_epi64(l->abs, _mm256_castpd_si256(distance));
  const __m256d beyond_rel = _mm256_fmadd_pd(larger, l->rel_margin, _mm256_fmsub_pd(larger, l->rel, distance));
  l->more = _mm256_ternarylogic_epi64(l->more, beyond_abs, _mm256_castpd_si256(beyond_rel), 0xfe);
}

INLINE_512 __m256d load_four(const float *x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }

typedef struct all_lanes {
  quarter p, q, r, s;
} all_lanes;

/* Stores nothing and returns 0 if something is not finite. */
INLINE_512 int store_all(cpu_compare_lanes *l, const all_lanes *all) {
  const __m256d low = _mm256_add_pd(all->p.squared, all->q.squared), high = _mm256_add_pd(all->r.squared, all->s.squared);
  if (!is_finite(_mm256_add_pd(low, high))) return 0;
  store_quarter(&all->p, l, 0);
  store_quarter(&all->q, l, 4);
  store_quarter(&all->r, l, 8);
  store_quarter(&all->s, l, 12);
  return 1;
}

INLINE_512 void add_sixteen(all_lanes *all, largest *l, const float *a, const float *b) {
  add_four(&all->p, l, load_four(a), load_four(b));
  add_four(&all->q, l, load_four(a + 4), load_four(b + 4));
  add_four(&all->r, l, load_four(a + 8), load_four(b + 8));
  add_four(&all->s, l, load_four(a + 12), load_four(b + 12));
}

INLINE_512 largest start_largest(const cpu_compare_state *state) {
  return (largest){
    _mm256_castpd_si256(_mm256_set1_pd(state->max_abs)), _mm256_set1_pd(state->max_rel),
    _mm256_set1_pd(cpu_compare_margin(state->max_rel)), _mm256_setzero_si256(),
  };
}

/* Returns 0 and adds nothing if something is not finite; looks for the largest differences if there are larger ones. */
INLINE_512 int add_values(const float *a, const float *b, cpu_compare_state *state) {
  all_lanes all = {
    load_quarter(&state->lanes, 0), load_quarter(&state->lanes, 4), load_quarter(&state->lanes, 8), load_quarter(&state->lanes, 12),
  };
  largest l = start_largest(state);
  for (int i = 0; i < BLOCK; i += 16) {
    CPU_COMPARE_PREFETCH(a + i);
    CPU_COMPARE_PREFETCH(b + i);
    add_sixteen(&all, &l, a + i, b + i);
  }
  if (!store_all(&state->lanes, &all)) return 0;
  if (_mm256_movepi64_mask(l.more) != 0) cpu_compare_find_largest(a, b, state);
  return 1;
}

static CPU_AVX512 uint64_t count_equal(const float *a, const float *b) {
  const __m512i one = _mm512_set1_epi32(1);
  __m512i equal = _mm512_setzero_si512();
  for (int i = 0; i < BLOCK; i += 16) {
    equal = _mm512_mask_add_epi32(equal, _mm512_cmpeq_epi32_mask(load_bits(a + i), load_bits(b + i)), equal, one);
  }
  return (uint64_t)(int64_t)_mm512_reduce_add_epi32(equal);
}

static CPU_AVX512 int add_f32(const void *a, const void *b, int is_masked, cpu_compare_state *state) {
  const int is_added = add_values(a, b, state);
  if (!is_masked) state->equal += count_equal(a, b);
  return is_added;
}

/* ---- pairs of 16 bits ---- */

/* Two vectors of each sum's chains: of bf16 the even ones and the odd ones. */
typedef struct chains {
  __m512  squared[2], dot[2], norm_a[2], norm_b[2];
  __m512i farthest;             /* bits of the largest squares */
  __m512i more;                 /* negative where a quotient is above the threshold */
} chains;

INLINE_512 __m512i above_threshold(__m512i more, __m512 difference, __m512 x, __m512 y, float threshold) {
  const __m512 rest = _mm512_fmsub_ps(_mm512_range_ps(x, y, 0xb), _mm512_set1_ps(threshold), _mm512_abs_ps(difference));
  return _mm512_or_si512(more, _mm512_castps_si512(rest));
}

INLINE_512 void chain_sixteen(chains *c, int k, __m512 x, __m512 y, int has_threshold, float threshold) {
  const __m512 difference = _mm512_sub_ps(x, y), square = _mm512_mul_ps(difference, difference);
  if (has_threshold) c->more = above_threshold(c->more, difference, x, y, threshold);
  c->farthest = _mm512_max_epu32(c->farthest, _mm512_castps_si512(square));
  c->squared[k] = _mm512_add_ps(c->squared[k], square);
  c->dot[k] = _mm512_fmadd_ps(x, y, c->dot[k]);
  c->norm_a[k] = _mm512_fmadd_ps(x, x, c->norm_a[k]);
  c->norm_b[k] = _mm512_fmadd_ps(y, y, c->norm_b[k]);
}

/* As text: what clang 14 sees it takes apart into halves. */
INLINE_512 __m512 widen_f16(const unsigned char *from) {
  __m512 wide;
  __asm__("vcvtph2ps %1, %0" : "=v"(wide) : "m"(*(const __m256i_u *)(const void *)from));
  return wide;
}

INLINE_512 __m512 first_half(__m512i v, const unsigned char *from, int is_f16) {
  return is_f16 ? widen_f16(from) : _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}
INLINE_512 __m512 second_half(__m512i v, const unsigned char *from, int is_f16) {
  return is_f16 ? widen_f16(from + 32) : _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32((int32_t)0xffff0000)));
}

/* How larger quotients are looked for (cpu_compare_window.c). */
typedef enum quotient_look { LOOK_FROM_ONE, LOOK_BELOW_ONE, LOOK_BY_THRESHOLD } quotient_look;

/* What is looked at in 16 bits. */
typedef struct pair_look {
  __m512i apart, smallest, changed;
} pair_look;

INLINE_512 void look_at(pair_look *l, __m512i x, __m512i y, quotient_look kind) {
  const __m512i one = _mm512_set1_epi16(1), apart = _mm512_abs_epi16(_mm512_sub_epi16(x, y));
  if (kind != LOOK_BY_THRESHOLD) l->apart = _mm512_max_epu16(l->apart, apart);
  if (kind != LOOK_BELOW_ONE) {
    l->changed = _mm512_add_epi16(l->changed, _mm512_min_epu16(apart, one));
    return;
  }
  const __mmask32 differ = _mm512_test_epi16_mask(apart, apart);
  l->smallest = _mm512_mask_min_epu16(l->smallest, differ, l->smallest, _mm512_add_epi16(x, x));
  l->changed = _mm512_mask_add_epi16(l->changed, differ, l->changed, one);
}

/* The sums of chain l and chain l + 16, by l. */
INLINE_512 __m512 fold(const __m512 *c, int is_f16) {
  if (is_f16) return _mm512_add_ps(c[0], c[1]);
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return _mm512_add_ps(_mm512_permutex2var_ps(c[0], low, c[1]), _mm512_permutex2var_ps(c[0], high, c[1]));
}

INLINE_512 void add_to_lanes(double *lanes, __m512 sums) {
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(sums)), high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(sums, 1));
  _mm512_storeu_pd(lanes, _mm512_add_pd(_mm512_loadu_pd(lanes), low));
  _mm512_storeu_pd(lanes + 8, _mm512_add_pd(_mm512_loadu_pd(lanes + 8), high));
}

INLINE_512 int has_size(__m512 sums) { return _mm512_cmp_ps_mask(sums, _mm512_set1_ps(CPU_COMPARE_CHAIN_LEAST), _CMP_GE_OQ) != 0; }

/* Returns 0 and adds nothing unless it is sure that all four sums go by chains. */
INLINE_512 int end_chains(const chains *c, int is_f16, cpu_compare_lanes *lanes) {
  const __m512 squared = fold(c->squared, is_f16), norm_a = fold(c->norm_a, is_f16), norm_b = fold(c->norm_b, is_f16);
  const __m512 norms = _mm512_add_ps(norm_a, norm_b);
  if (_mm512_cmp_ps_mask(norms, _mm512_set1_ps(CPU_COMPARE_CHAIN_MOST), _CMP_NLT_UQ) != 0) return 0;
  if (!is_f16 && (!has_size(squared) || !has_size(norm_a) || !has_size(norm_b))) return 0;
  add_to_lanes(lanes->squared, squared);
  add_to_lanes(lanes->dot, fold(c->dot, is_f16));
  add_to_lanes(lanes->norm_a, norm_a);
  add_to_lanes(lanes->norm_b, norm_b);
  return 1;
}

INLINE_512 int is_beyond(const chains *c, const pair_look *l, quotient_look kind, const cpu_compare_state *state) {
  const float farthest = (float)state->max_abs;
  const __m512i square = _mm512_castps_si512(_mm512_set1_ps(farthest * farthest));
  const __mmask16 farther = _mm512_cmpgt_epu32_mask(c->farthest, square);
  if (kind == LOOK_BY_THRESHOLD) return (farther | _mm512_movepi32_mask(c->more)) != 0;
  const __mmask32 apart = _mm512_cmpgt_epu16_mask(l->apart, _mm512_set1_epi16((int16_t)state->window.near));
  const __mmask32 small = _mm512_cmplt_epu16_mask(l->smallest, _mm512_set1_epi16((int16_t)state->window.small));
  return (apart | small | farther) != 0;
}

INLINE_512 int add_16bit(const unsigned char *a, const unsigned char *b, int is_f16, quotient_look kind, cpu_compare_state *state) {
  const int by_threshold = kind == LOOK_BY_THRESHOLD;
  const float threshold = state->window.threshold;
  const __m512 zero = _mm512_setzero_ps();
  const __m512i none = _mm512_setzero_si512();
  chains c = { { zero, zero }, { zero, zero }, { zero, zero }, { zero, zero }, none, none };
  pair_look l = { none, _mm512_set1_epi16(-1), none };
  for (int i = 0; i < 2 * BLOCK; i += 64) {
    CPU_COMPARE_PREFETCH(a + i);
    CPU_COMPARE_PREFETCH(b + i);
    __m512i x = load_bits(a + i), y = load_bits(b + i);
    __asm__("" : "+v"(x), "+v"(y));     /* or they are loaded again for every use */
    look_at(&l, x, y, kind);
    chain_sixteen(&c, 0, first_half(x, a + i, is_f16), first_half(y, b + i, is_f16), by_threshold, threshold);
    chain_sixteen(&c, 1, second_half(x, a + i, is_f16), second_half(y, b + i, is_f16), by_threshold, threshold);
  }
  if (!end_chains(&c, is_f16, &state->lanes)) return 0;
  state->equal += BLOCK - (uint64_t)(int64_t)_mm512_reduce_add_epi32(_mm512_madd_epi16(l.changed, _mm512_set1_epi16(1)));
  if (is_beyond(&c, &l, kind, state)) cpu_compare_find_largest_16bit(a, b, is_f16, state);
  return 1;
}

#define ADD_16BIT(name, is_f16, kind)                                                                                            \
  static __attribute__((noinline)) CPU_AVX512 int name(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) { \
    return add_16bit(a, b, is_f16, kind, state);                                                                                 \
  }
ADD_16BIT(add_bf16_from_one, 0, LOOK_FROM_ONE)
ADD_16BIT(add_bf16_below_one, 0, LOOK_BELOW_ONE)
ADD_16BIT(add_bf16_by_threshold, 0, LOOK_BY_THRESHOLD)
ADD_16BIT(add_f16_from_one, 1, LOOK_FROM_ONE)
ADD_16BIT(add_f16_below_one, 1, LOOK_BELOW_ONE)
ADD_16BIT(add_f16_by_threshold, 1, LOOK_BY_THRESHOLD)

static CPU_AVX512 int add_bf16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  if (state->window.threshold < 1) return add_bf16_by_threshold(a, b, state);
  return state->window.small == 0 ? add_bf16_from_one(a, b, state) : add_bf16_below_one(a, b, state);
}
static CPU_AVX512 int add_f16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  if (state->window.threshold < 1) return add_f16_by_threshold(a, b, state);
  return state->window.small == 0 ? add_f16_from_one(a, b, state) : add_f16_below_one(a, b, state);
}

/* ---- pairs of quants ---- */

INLINE_512 __m512 decode_sixteen(const unsigned char *integers, __m512 scale) {
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(cpu_load128(integers))), scale);
}

static CPU_AVX512 int compare_quants(const cpu_compare_quants *a, const cpu_compare_quants *b, uint32_t blocks, float max_abs,
                                     float max_rel, uint64_t *equal) {
  const __m512 rel = _mm512_set1_ps(max_rel);
  const __m512i abs = _mm512_castps_si512(_mm512_set1_ps(max_abs)), one = _mm512_set1_epi32(1);
  __m512i more = _mm512_setzero_si512(), same = more;
  for (; blocks != 0; blocks &= blocks - 1) {
    const int i = __builtin_ctz(blocks);
    const unsigned char *from_a = a->integers + (uint64_t)i * a->stride, *from_b = b->integers + (uint64_t)i * b->stride;
    const __m512 scale_a = _mm512_set1_ps(a->scales[i]), scale_b = _mm512_set1_ps(b->scales[i]);
    for (uint32_t k = 0; k < CPU_QUANT_ELEMENTS; k += 16) {
      const __m512 x = decode_sixteen(from_a + k, scale_a), y = decode_sixteen(from_b + k, scale_b);
      const __m512 distance = _mm512_abs_ps(_mm512_sub_ps(x, y));
      const __m512 beyond_rel = _mm512_fmsub_ps(_mm512_range_ps(x, y, 0xb), rel, distance);
      const __m512i beyond_abs = _mm512_sub_epi32(abs, _mm512_castps_si512(distance));
      more = _mm512_ternarylogic_epi32(more, beyond_abs, _mm512_castps_si512(beyond_rel), 0xfe);
      same = _mm512_mask_add_epi32(same, _mm512_cmpeq_epi32_mask(_mm512_castps_si512(x), _mm512_castps_si512(y)), same, one);
    }
  }
  *equal += (uint64_t)(int64_t)_mm512_reduce_add_epi32(same);
  return _mm512_movepi32_mask(more) != 0;
}

/* ---- equal blocks ---- */

static CPU_AVX512 int same_bytes(const unsigned char *a, const unsigned char *b, uint64_t bytes) {
  uint64_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    CPU_COMPARE_PREFETCH(a + at);
    CPU_COMPARE_PREFETCH(b + at);
    if (_mm512_cmpneq_epi64_mask(load_bits(a + at), load_bits(b + at)) != 0) return 0;
  }
  return memcmp(a + at, b + at, bytes - at) == 0;
}

#define KERNELS(integers)                                                                                              \
  { .add_f32 = add_f32, .add_bf16 = add_bf16, .add_f16 = add_f16, .add_f64 = cpu_compare_add_f64,                   \
    .add_equal_f32 = cpu_compare_add_equal_f32, .add_equal_f64 = cpu_compare_add_equal_f64,                         \
    .compare_quants = compare_quants, .add_integers = (integers), .same_bytes = same_bytes }

const cpu_compare_kernels cpu_compare_avx512 = KERNELS(cpu_compare_add_integers);
const cpu_compare_kernels cpu_compare_vnni = KERNELS(cpu_compare_add_integers_vnni);
