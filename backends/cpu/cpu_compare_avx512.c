/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of TM_OP_COMPARE_TENSORS with the instructions and the 32 registers of AVX-512, on vectors of 256 bits: 16 lanes of
 * four sums fit, and where 512 bits go through the same units in two turns, 256 keep more of them busy.  As
 * cpu_compare_avx2.c otherwise.
 *
 * 16-bit blocks are widened into buffers here, where the loop that needs their bytes for other things has them.  bf16 comes
 * apart in the order that is cheapest: of 32 elements the even ones by a shift, then the odd ones by a mask.  The lanes stand
 * in that order while such a block runs.
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

/* Lanes 8 * at .. 8 * at + 7 as two quarters, in order or first the even ones. */
INLINE_512 __m256d first_lanes(const double *lanes, int even) {
  const __m256d low = cpu_load_pd(lanes), high = cpu_load_pd(lanes + 4);
  return even ? _mm256_permutex2var_pd(low, _mm256_setr_epi64x(0, 2, 4, 6), high) : low;
}
INLINE_512 __m256d second_lanes(const double *lanes, int even) {
  const __m256d low = cpu_load_pd(lanes), high = cpu_load_pd(lanes + 4);
  return even ? _mm256_permutex2var_pd(low, _mm256_setr_epi64x(1, 3, 5, 7), high) : high;
}
INLINE_512 void store_lanes(double *lanes, __m256d first, __m256d second, int even) {
  _mm256_storeu_pd(lanes, even ? _mm256_permutex2var_pd(first, _mm256_setr_epi64x(0, 4, 1, 5), second) : first);
  _mm256_storeu_pd(lanes + 4, even ? _mm256_permutex2var_pd(first, _mm256_setr_epi64x(2, 6, 3, 7), second) : second);
}

INLINE_512 quarter load_first(const cpu_compare_lanes *l, int at, int even) {
  return (quarter){
    first_lanes(l->squared + at, even), first_lanes(l->dot + at, even),
    first_lanes(l->norm_a + at, even), first_lanes(l->norm_b + at, even),
  };
}
INLINE_512 quarter load_second(const cpu_compare_lanes *l, int at, int even) {
  return (quarter){
    second_lanes(l->squared + at, even), second_lanes(l->dot + at, even),
    second_lanes(l->norm_a + at, even), second_lanes(l->norm_b + at, even),
  };
}
INLINE_512 void store_quarters(cpu_compare_lanes *l, int at, const quarter *first, const quarter *second, int even) {
  store_lanes(l->squared + at, first->squared, second->squared, even);
  store_lanes(l->dot + at, first->dot, second->dot, even);
  store_lanes(l->norm_a + at, first->norm_a, second->norm_a, even);
  store_lanes(l->norm_b + at, first->norm_b, second->norm_b, even);
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

INLINE_512 all_lanes load_all(const cpu_compare_lanes *l, int even) {
  return (all_lanes){ load_first(l, 0, even), load_second(l, 0, even), load_first(l, 8, even), load_second(l, 8, even) };
}

/* Stores nothing and returns 0 if something is not finite. */
INLINE_512 int store_all(cpu_compare_lanes *l, const all_lanes *all, int even) {
  const __m256d low = _mm256_add_pd(all->p.squared, all->q.squared), high = _mm256_add_pd(all->r.squared, all->s.squared);
  if (!is_finite(_mm256_add_pd(low, high))) return 0;
  store_quarters(l, 0, &all->p, &all->q, even);
  store_quarters(l, 8, &all->r, &all->s, even);
  return 1;
}

/* Thirty-two pairs, in order or first the even ones. */
INLINE_512 void add_32(all_lanes *all, largest *l, const float *a, const float *b, int even) {
  const int second = even ? 16 : 4, third = even ? 4 : 8, next = even ? 8 : 16;
  for (int i = 0; i <= next; i += next) {
    add_four(&all->p, l, load_four(a + i), load_four(b + i));
    add_four(&all->q, l, load_four(a + i + second), load_four(b + i + second));
    add_four(&all->r, l, load_four(a + i + third), load_four(b + i + third));
    add_four(&all->s, l, load_four(a + i + second + third), load_four(b + i + second + third));
  }
}

INLINE_512 largest start_largest(const cpu_compare_state *state) {
  return (largest){
    _mm256_castpd_si256(_mm256_set1_pd(state->max_abs)), _mm256_set1_pd(state->max_rel),
    _mm256_set1_pd(cpu_compare_margin(state->max_rel)), _mm256_setzero_si256(),
  };
}

/* Returns 0 and adds nothing if something is not finite; looks for the largest differences if there are larger ones. */
INLINE_512 int add_values(const float *a, const float *b, int even, int is_prefetching, cpu_compare_state *state) {
  all_lanes all = load_all(&state->lanes, even);
  largest l = start_largest(state);
  for (int i = 0; i < BLOCK; i += 32) {
    for (int line = i; is_prefetching && line < i + 32; line += 16) {
      CPU_COMPARE_PREFETCH(a + line);
      CPU_COMPARE_PREFETCH(b + line);
    }
    add_32(&all, &l, a + i, b + i, even);
  }
  if (!store_all(&state->lanes, &all, even)) return 0;
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
  const int is_added = add_values(a, b, 0, 1, state);
  if (!is_masked) state->equal += count_equal(a, b);
  return is_added;
}

/* Widens 32 elements.  That the processor quiets NaN does no harm: equal bits are counted before, and blocks with a NaN are
   not added here. */
INLINE_512 void widen_32(__m512i v, int is_f16, float *to) {
  if (is_f16) {
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm512_castsi512_si256(v)));
    _mm512_storeu_ps(to + 16, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1)));
  } else {
    _mm512_storeu_si512(to, _mm512_slli_epi32(v, 16));
    _mm512_storeu_si512(to + 16, _mm512_and_si512(v, _mm512_set1_epi32((int32_t)0xffff0000)));
  }
}

/* Widens both blocks and returns the number of pairs of equal bits. */
INLINE_512 uint64_t widen_blocks(const unsigned char *a, const unsigned char *b, int is_f16, float *to_a, float *to_b) {
  const __m512i one = _mm512_set1_epi16(1);
  __m512i equal = _mm512_setzero_si512();
  for (int i = 0; i < BLOCK; i += 32) {
    CPU_COMPARE_PREFETCH(a + 2 * i);
    CPU_COMPARE_PREFETCH(b + 2 * i);
    const __m512i x = load_bits(a + 2 * i), y = load_bits(b + 2 * i);
    equal = _mm512_mask_add_epi16(equal, _mm512_cmpeq_epi16_mask(x, y), equal, one);
    widen_32(x, is_f16, to_a + i);
    widen_32(y, is_f16, to_b + i);
  }
  return (uint64_t)(int64_t)_mm512_reduce_add_epi32(_mm512_madd_epi16(equal, one));
}

INLINE_512 int add_16bit(const unsigned char *a, const unsigned char *b, int is_f16, cpu_compare_state *state) {
  float wide_a[BLOCK] __attribute__((aligned(64))), wide_b[BLOCK] __attribute__((aligned(64)));
  const uint64_t equal = widen_blocks(a, b, is_f16, wide_a, wide_b);
  if (!add_values(wide_a, wide_b, !is_f16, 0, state)) return 0;
  state->equal += equal;
  return 1;
}

static CPU_AVX512 int add_bf16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  return add_16bit(a, b, 0, state);
}
static CPU_AVX512 int add_f16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  return add_16bit(a, b, 1, state);
}

INLINE_512 __m512 decode_sixteen(const unsigned char *integers, __m512 scale) {
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(cpu_load128(integers))), scale);
}

static CPU_AVX512 int compare_quants(const cpu_compare_quants *a, const cpu_compare_quants *b, float max_abs, float max_rel,
                                     uint64_t *equal) {
  const __m512 rel = _mm512_set1_ps(max_rel);
  const __m512i abs = _mm512_castps_si512(_mm512_set1_ps(max_abs)), one = _mm512_set1_epi32(1);
  __m512i more = _mm512_setzero_si512(), same = more;
  for (uint32_t i = 0; i < CPU_COMPARE_QUANTS; ++i) {
    const unsigned char *from_a = a->integers + i * a->stride, *from_b = b->integers + i * b->stride;
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

const cpu_compare_kernels cpu_compare_avx512 = {
  .add_f32 = add_f32,
  .add_bf16 = add_bf16,
  .add_f16 = add_f16,
  .add_f64 = cpu_compare_add_f64,
  .add_equal_f32 = cpu_compare_add_equal_f32,
  .add_equal_f64 = cpu_compare_add_equal_f64,
  .compare_quants = compare_quants,
  .same_bytes = same_bytes,
};
