/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of TM_OP_COMPARE_TENSORS with AVX-512: as cpu_compare_avx2.c, with registers for all lanes at once. */
#include <math.h>
#include <string.h>

#include "cpu_compare.h"
#include "cpu_simd.h"

#define BLOCK TM_SUM_BLOCK
#define INLINE_512 static inline __attribute__((always_inline)) CPU_AVX512

INLINE_512 __m512d load_lanes(const double *lanes) { return _mm512_loadu_pd(lanes); }
INLINE_512 __m512d load_wide(const float *x) { return _mm512_cvtps_pd(_mm256_loadu_ps(x)); }
INLINE_512 __m512i load_bits(const void *data) { return _mm512_loadu_si512(data); }
INLINE_512 int is_finite(__m512d x) { return _mm512_cmp_pd_mask(_mm512_sub_pd(x, x), _mm512_setzero_pd(), _CMP_NEQ_UQ) == 0; }

/* ---- pairs ---- */

/* Eight lanes of each sum. */
typedef struct half {
  __m512d squared, dot, norm_a, norm_b;
} half;

INLINE_512 half load_half(const cpu_compare_lanes *lanes, int at) {
  return (half){ load_lanes(lanes->squared + at), load_lanes(lanes->dot + at), load_lanes(lanes->norm_a + at), load_lanes(lanes->norm_b + at) };
}
INLINE_512 void store_half(const half *h, cpu_compare_lanes *lanes, int at) {
  _mm512_storeu_pd(lanes->squared + at, h->squared);
  _mm512_storeu_pd(lanes->dot + at, h->dot);
  _mm512_storeu_pd(lanes->norm_a + at, h->norm_a);
  _mm512_storeu_pd(lanes->norm_b + at, h->norm_b);
}

typedef struct largest {
  __m512d abs, rel, more;
} largest;

/* The larger of two magnitudes, in one instruction. */
INLINE_512 __m512d larger_of(__m512d x, __m512d y) { return _mm512_range_pd(x, y, 0xb); }

INLINE_512 void add_eight(half *h, largest *l, const float *a, const float *b) {
  const __m512d x = load_wide(a), y = load_wide(b), difference = _mm512_sub_pd(x, y), distance = _mm512_abs_pd(difference);
  h->squared = _mm512_fmadd_pd(difference, difference, h->squared);
  h->dot = _mm512_fmadd_pd(x, y, h->dot);
  h->norm_a = _mm512_fmadd_pd(x, x, h->norm_a);
  h->norm_b = _mm512_fmadd_pd(y, y, h->norm_b);
  l->more = _mm512_or_pd(l->more, _mm512_sub_pd(l->abs, distance));
  l->more = _mm512_or_pd(l->more, _mm512_fmsub_pd(larger_of(x, y), l->rel, distance));
}

static CPU_AVX512 int add_f32(const void *a, const void *b, int is_masked, cpu_compare_state *state) {
  const float *from_a = a, *from_b = b;
  half low = load_half(&state->lanes, 0), high = load_half(&state->lanes, 8);
  largest l = { _mm512_set1_pd(state->max_abs), _mm512_set1_pd(state->max_rel), _mm512_setzero_pd() };
  __m512i different = _mm512_setzero_si512();
  const __m512i one = _mm512_set1_epi32(1);
  for (int i = 0; i < BLOCK; i += TM_SUM_LANES) {
    CPU_PREFETCH(from_a + i);
    CPU_PREFETCH(from_b + i);
    add_eight(&low, &l, from_a + i, from_b + i);
    add_eight(&high, &l, from_a + i + 8, from_b + i + 8);
    const __mmask16 differ = _mm512_cmpneq_epi32_mask(load_bits(from_a + i), load_bits(from_b + i));
    different = _mm512_mask_add_epi32(different, differ, different, one);
  }
  if (!is_masked) state->equal += BLOCK - (uint64_t)_mm512_reduce_add_epi32(different);
  if (!is_finite(_mm512_add_pd(low.squared, high.squared))) return 0;
  store_half(&low, &state->lanes, 0);
  store_half(&high, &state->lanes, 8);
  if (_mm512_movepi64_mask(_mm512_castpd_si512(l.more)) != 0) cpu_compare_find_largest(a, b, state);
  return 1;
}

/* ---- equal blocks ---- */

static CPU_AVX512 int add_norm(const float *a, double *lanes) {
  __m512d low = load_lanes(lanes), high = load_lanes(lanes + 8);
  for (int i = 0; i < BLOCK; i += TM_SUM_LANES) {
    const __m512d x = load_wide(a + i), y = load_wide(a + i + 8);
    low = _mm512_fmadd_pd(x, x, low);
    high = _mm512_fmadd_pd(y, y, high);
  }
  if (!is_finite(_mm512_add_pd(low, high))) return 0;
  _mm512_storeu_pd(lanes, low);
  _mm512_storeu_pd(lanes + 8, high);
  return 1;
}

INLINE_512 void add_square(half *h, const float *a) {
  const __m512d x = load_wide(a), square = _mm512_mul_pd(x, x);
  h->dot = _mm512_add_pd(h->dot, square);
  h->norm_a = _mm512_add_pd(h->norm_a, square);
  h->norm_b = _mm512_add_pd(h->norm_b, square);
}

static CPU_AVX512 int add_squares(const float *a, cpu_compare_lanes *lanes) {
  half low = load_half(lanes, 0), high = load_half(lanes, 8);
  for (int i = 0; i < BLOCK; i += TM_SUM_LANES) {
    add_square(&low, a + i);
    add_square(&high, a + i + 8);
  }
  if (!is_finite(_mm512_add_pd(low.norm_a, high.norm_a))) return 0;
  store_half(&low, lanes, 0);
  store_half(&high, lanes, 8);
  return 1;
}

static CPU_AVX512 int add_equal_f32(const void *a, int is_masked, cpu_compare_state *state) {
  if (!is_masked) state->equal += BLOCK;
  return state->is_alike ? add_norm(a, state->lanes.norm_a) : add_squares(a, &state->lanes);
}

static CPU_AVX512 int same_bytes(const unsigned char *a, const unsigned char *b, uint64_t bytes) {
  uint64_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    CPU_PREFETCH(a + at);
    CPU_PREFETCH(b + at);
    if (_mm512_cmpneq_epi64_mask(load_bits(a + at), load_bits(b + at)) != 0) return 0;
  }
  return memcmp(a + at, b + at, bytes - at) == 0;
}

const cpu_compare_kernels cpu_compare_avx512 = {
  .add_f32 = add_f32,
  .add_f64 = cpu_compare_add_f64,
  .add_equal_f32 = add_equal_f32,
  .add_equal_f64 = cpu_compare_add_equal_f64,
  .same_bytes = same_bytes,
};
