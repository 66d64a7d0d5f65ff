/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of TM_OP_COMPARE_TENSORS with AVX2.  Sixteen lanes of four sums would take every register there is, so a block
 * is gone through twice, for eight lanes each: no value is loaded or converted more than once.
 */
#include <string.h>

#include "cpu_compare.h"
#include "cpu_simd.h"

#define BLOCK TM_SUM_BLOCK
#define HALF  (TM_SUM_LANES / 2)

CPU_INLINE __m256d load_wide(const float *x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }

/* ---- pairs of f32 ---- */

/* Four lanes of each sum. */
typedef struct quarter {
  __m256d squared, dot, norm_a, norm_b;
} quarter;

CPU_INLINE quarter load_quarter(const cpu_compare_lanes *lanes, int at) {
  return (quarter){
    cpu_load_pd(lanes->squared + at), cpu_load_pd(lanes->dot + at),
    cpu_load_pd(lanes->norm_a + at), cpu_load_pd(lanes->norm_b + at),
  };
}
CPU_INLINE void store_quarter(const quarter *q, cpu_compare_lanes *lanes, int at) {
  _mm256_storeu_pd(lanes->squared + at, q->squared);
  _mm256_storeu_pd(lanes->dot + at, q->dot);
  _mm256_storeu_pd(lanes->norm_a + at, q->norm_a);
  _mm256_storeu_pd(lanes->norm_b + at, q->norm_b);
}

typedef struct largest {
  __m256d abs, rel, rel_margin;
  __m256d more;                 /* negative where a pair is beyond */
} largest;

CPU_INLINE void add_four(quarter *q, largest *l, const float *a, const float *b) {
  const __m256d x = load_wide(a), y = load_wide(b), difference = _mm256_sub_pd(x, y), distance = cpu_abs_pd(difference);
  q->squared = _mm256_fmadd_pd(difference, difference, q->squared);
  q->dot = _mm256_fmadd_pd(x, y, q->dot);
  q->norm_a = _mm256_fmadd_pd(x, x, q->norm_a);
  q->norm_b = _mm256_fmadd_pd(y, y, q->norm_b);
  l->more = _mm256_or_pd(l->more, _mm256_sub_pd(l->abs, distance));
  const __m256d larger = _mm256_max_pd(cpu_abs_pd(x), cpu_abs_pd(y));
  l->more = _mm256_or_pd(l->more, _mm256_fmadd_pd(larger, l->rel_margin, _mm256_fmsub_pd(larger, l->rel, distance)));
}

typedef struct half_result {
  uint64_t equal;
  int      has_more, is_finite;
} half_result;

static __attribute__((noinline)) CPU_AVX2 half_result add_half(const float *a, const float *b, const cpu_compare_state *state,
                                                               cpu_compare_lanes *lanes, int at) {
  quarter p = load_quarter(lanes, at), q = load_quarter(lanes, at + 4);
  largest l = {
    _mm256_set1_pd(state->max_abs), _mm256_set1_pd(state->max_rel), _mm256_set1_pd(cpu_compare_margin(state->max_rel)),
    _mm256_setzero_pd(),
  };
  __m256i equal = _mm256_setzero_si256();
  for (int i = at; i < BLOCK; i += TM_SUM_LANES) {
    CPU_COMPARE_PREFETCH(a + i);
    CPU_COMPARE_PREFETCH(b + i);
    add_four(&p, &l, a + i, b + i);
    add_four(&q, &l, a + i + 4, b + i + 4);
    equal = _mm256_sub_epi32(equal, _mm256_cmpeq_epi32(cpu_load(a + i), cpu_load(b + i)));
  }
  store_quarter(&p, lanes, at);
  store_quarter(&q, lanes, at + 4);
  return (half_result){
    .equal = cpu_sum_epi32(equal),
    .has_more = _mm256_movemask_pd(l.more) != 0,
    .is_finite = cpu_is_finite_pd(_mm256_add_pd(p.squared, q.squared)),
  };
}

/* A difference of f32 is finite if both are, and so are sums of its squares. */
static CPU_AVX2 int add_f32(const void *a, const void *b, int is_masked, cpu_compare_state *state) {
  cpu_compare_lanes lanes = state->lanes;
  const half_result low = add_half(a, b, state, &lanes, 0), high = add_half(a, b, state, &lanes, HALF);
  if (!is_masked) state->equal += low.equal + high.equal;
  if (!low.is_finite || !high.is_finite) return 0;
  state->lanes = lanes;
  if (low.has_more || high.has_more) cpu_compare_find_largest(a, b, state);
  return 1;
}

/* 0/0 is NaN, and as the first operand of a maximum it is passed over. */
CPU_AVX2 void cpu_compare_find_largest(const void *a, const void *b, cpu_compare_state *state) {
  const float *from_a = a, *from_b = b;
  __m256d farthest = _mm256_set1_pd(state->max_abs), best = _mm256_set1_pd(state->max_rel);
  for (int i = 0; i < BLOCK; i += 4) {
    const __m256d x = load_wide(from_a + i), y = load_wide(from_b + i);
    const __m256d distance = cpu_abs_pd(_mm256_sub_pd(x, y)), larger = _mm256_max_pd(cpu_abs_pd(x), cpu_abs_pd(y));
    farthest = _mm256_max_pd(distance, farthest);
    best = _mm256_max_pd(_mm256_div_pd(distance, larger), best);
  }
  state->max_abs = cpu_largest_pd(farthest);
  state->max_rel = cpu_largest_pd(best);
}

/* ---- equal blocks ---- */

/* While three sums are alike, one of them will do. */
static __attribute__((noinline)) CPU_AVX2 int add_norm(const float *a, double *lanes) {
  __m256d n0 = cpu_load_pd(lanes), n1 = cpu_load_pd(lanes + 4), n2 = cpu_load_pd(lanes + 8), n3 = cpu_load_pd(lanes + 12);
  for (int i = 0; i < BLOCK; i += TM_SUM_LANES) {
    const __m256d x0 = load_wide(a + i), x1 = load_wide(a + i + 4), x2 = load_wide(a + i + 8), x3 = load_wide(a + i + 12);
    n0 = _mm256_fmadd_pd(x0, x0, n0);
    n1 = _mm256_fmadd_pd(x1, x1, n1);
    n2 = _mm256_fmadd_pd(x2, x2, n2);
    n3 = _mm256_fmadd_pd(x3, x3, n3);
  }
  if (!cpu_is_finite_pd(_mm256_add_pd(_mm256_add_pd(n0, n1), _mm256_add_pd(n2, n3)))) return 0;
  _mm256_storeu_pd(lanes, n0);
  _mm256_storeu_pd(lanes + 4, n1);
  _mm256_storeu_pd(lanes + 8, n2);
  _mm256_storeu_pd(lanes + 12, n3);
  return 1;
}

/* The square of an f32 is exact in f64. */
CPU_INLINE void add_square(__m256d *dot, __m256d *norm_a, __m256d *norm_b, const float *a) {
  const __m256d x = load_wide(a), square = _mm256_mul_pd(x, x);
  *dot = _mm256_add_pd(*dot, square);
  *norm_a = _mm256_add_pd(*norm_a, square);
  *norm_b = _mm256_add_pd(*norm_b, square);
}

static __attribute__((noinline)) CPU_AVX2 int add_squares(const float *a, cpu_compare_lanes *lanes, int at) {
  quarter p = load_quarter(lanes, at), q = load_quarter(lanes, at + 4);
  for (int i = at; i < BLOCK; i += TM_SUM_LANES) {
    add_square(&p.dot, &p.norm_a, &p.norm_b, a + i);
    add_square(&q.dot, &q.norm_a, &q.norm_b, a + i + 4);
  }
  store_quarter(&p, lanes, at);
  store_quarter(&q, lanes, at + 4);
  return cpu_is_finite_pd(_mm256_add_pd(p.norm_a, q.norm_a));
}

CPU_AVX2 int cpu_compare_add_equal_f32(const void *a, int is_masked, cpu_compare_state *state) {
  if (!is_masked) state->equal += BLOCK;
  if (state->is_alike) return add_norm(a, state->lanes.norm_a);
  cpu_compare_lanes lanes = state->lanes;
  if (!add_squares(a, &lanes, 0) || !add_squares(a, &lanes, HALF)) return 0;
  state->lanes = lanes;
  return 1;
}

static CPU_AVX2 int same_bytes(const unsigned char *a, const unsigned char *b, uint64_t bytes) {
  uint64_t at = 0;
  for (; at + 64 <= bytes; at += 64) {
    CPU_COMPARE_PREFETCH(a + at);
    CPU_COMPARE_PREFETCH(b + at);
    const __m256i low = _mm256_xor_si256(cpu_load(a + at), cpu_load(b + at));
    const __m256i high = _mm256_xor_si256(cpu_load(a + at + 32), cpu_load(b + at + 32));
    if (cpu_any(_mm256_or_si256(low, high))) return 0;
  }
  return memcmp(a + at, b + at, bytes - at) == 0;
}

const cpu_compare_kernels cpu_compare_avx2 = {
  .add_f32 = add_f32,
  .add_bf16 = cpu_compare_add_bf16,
  .add_f16 = cpu_compare_add_f16,
  .add_f64 = cpu_compare_add_f64,
  .add_equal_f32 = cpu_compare_add_equal_f32,
  .add_equal_f64 = cpu_compare_add_equal_f64,
  .add_integers = cpu_compare_add_integers,
  .compare_quants = cpu_compare_quants_avx2,
  .same_bytes = same_bytes,
};
