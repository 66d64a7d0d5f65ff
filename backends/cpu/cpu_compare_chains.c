/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of two floats of 16 bits or less in TM_OP_COMPARE_TENSORS: short chains of f32 (canonical_sum.h), with AVX2.  Here are the
 * passes that take every block, of f32 that a format's values were widened to; and the short cut for blocks of 16 bits in which
 * nothing is special, in two passes over 16 of the 32 chains each, because all of them are as many as there are registers.
 */
#include <math.h>
#include <string.h>

#include "cpu_compare.h"
#include "cpu_decode.h"

#define BLOCK TM_SUM_BLOCK

/* ---- largest differences ---- */

/* How elements lie. */
typedef enum element_kind { KIND_BF16, KIND_F16, KIND_F32 } element_kind;

CPU_INLINE float largest_ps(__m256 x) {
  float parts[8], largest = 0;
  _mm256_storeu_ps(parts, x);
  for (int i = 0; i < 8; ++i) largest = parts[i] > largest ? parts[i] : largest;
  return largest;
}

/* The conversion of f16 as text: what clang 14 sees it takes apart into halves. */
CPU_INLINE __m256 load_eight(const unsigned char *from, element_kind kind) {
  __m256 wide;
  if (kind != KIND_F16) return kind == KIND_F32 ? cpu_load_ps(from) : cpu_widen_bf16(cpu_load128(from));
  __asm__("vcvtph2ps %1, %0" : "=x"(wide) : "m"(*(const __m128i_u *)(const void *)from));
  return wide;
}
CPU_INLINE int bytes_of(element_kind kind) { return kind == KIND_F32 ? 4 : 2; }

CPU_INLINE __m256 distance_of(__m256 x, __m256 y) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_sub_ps(x, y)); }
CPU_INLINE __m256 larger_of(__m256 x, __m256 y) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return _mm256_max_ps(_mm256_andnot_ps(sign, x), _mm256_andnot_ps(sign, y));
}

/* 0/0 is NaN, and as the first operand of a maximum it is passed over. */
CPU_INLINE __m256d larger_quotient(__m256d best, __m256 x, __m256 y) {
  const __m256 distance = distance_of(x, y), larger = larger_of(x, y);
  best = _mm256_max_pd(_mm256_div_pd(cpu_low_half(distance), cpu_low_half(larger)), best);
  return _mm256_max_pd(_mm256_div_pd(cpu_high_half(distance), cpu_high_half(larger)), best);
}

CPU_INLINE void find_largest(const unsigned char *a, const unsigned char *b, element_kind kind, cpu_compare_state *state) {
  __m256 farthest = _mm256_set1_ps((float)state->max_abs);
  __m256d best = _mm256_set1_pd(state->max_rel);
  for (int i = 0; i < BLOCK * bytes_of(kind); i += 8 * bytes_of(kind)) {
    const __m256 x = load_eight(a + i, kind), y = load_eight(b + i, kind);
    farthest = _mm256_max_ps(farthest, distance_of(x, y));
    best = larger_quotient(best, x, y);
  }
  state->max_abs = (double)largest_ps(farthest);
  state->max_rel = cpu_largest_pd(best);
}

/* Whether f32 shows a larger difference or a quotient above the threshold: without dividing. */
CPU_INLINE int is_above_threshold(const unsigned char *a, const unsigned char *b, element_kind kind, const cpu_compare_state *state) {
  const __m256 farthest = _mm256_set1_ps((float)state->max_abs), threshold = _mm256_set1_ps(state->window.threshold);
  __m256 more = _mm256_setzero_ps();
  for (int i = 0; i < BLOCK * bytes_of(kind); i += 8 * bytes_of(kind)) {
    const __m256 x = load_eight(a + i, kind), y = load_eight(b + i, kind), distance = distance_of(x, y);
    const __m256 rest = _mm256_fmsub_ps(larger_of(x, y), threshold, distance);
    more = _mm256_or_ps(more, _mm256_or_ps(rest, _mm256_sub_ps(farthest, distance)));
  }
  return _mm256_movemask_ps(more) != 0;
}

CPU_AVX2 void cpu_compare_find_largest_16bit(const unsigned char *a, const unsigned char *b, int is_f16, cpu_compare_state *state) {
  if (state->window.threshold < 1 && !is_above_threshold(a, b, is_f16 ? KIND_F16 : KIND_BF16, state)) return;
  if (is_f16) find_largest(a, b, KIND_F16, state);
  else find_largest(a, b, KIND_BF16, state);
  if (state->max_rel != state->window.best) cpu_compare_open_window(is_f16, state);
}

static CPU_AVX2 void find_largest_f32(const float *a, const float *b, cpu_compare_state *state) {
  find_largest((const unsigned char *)a, (const unsigned char *)b, KIND_F32, state);
}

/* ---- chains of one sum ---- */

/* The sums of chain l and chain l + 16, by l: of squares of the differences, or of products. */
CPU_INLINE __m256 add_product(__m256 sum, const float *x, const float *y, int is_rounded) {
  const __m256 left = cpu_load_ps(x), right = cpu_load_ps(y);
  return is_rounded ? _mm256_add_ps(sum, _mm256_mul_ps(left, right)) : _mm256_fmadd_ps(left, right, sum);
}

CPU_INLINE void add_chains(const float *x, const float *y, int is_rounded, float *out_sums) {
  __m256 p = _mm256_setzero_ps(), q = p, r = p, s = p;
  for (int i = 0; i < BLOCK; i += TM_SUM_CHAINS) {
    p = add_product(p, x + i, y + i, is_rounded);
    q = add_product(q, x + i + 8, y + i + 8, is_rounded);
    r = add_product(r, x + i + 16, y + i + 16, is_rounded);
    s = add_product(s, x + i + 24, y + i + 24, is_rounded);
  }
  _mm256_storeu_ps(out_sums, _mm256_add_ps(p, r));
  _mm256_storeu_ps(out_sums + 8, _mm256_add_ps(q, s));
}

CPU_INLINE void add_to_lanes(const float *sums, double *lanes) {
  for (int l = 0; l < TM_SUM_LANES; l += 4)
    _mm256_storeu_pd(lanes + l, _mm256_add_pd(cpu_load_pd(lanes + l), _mm256_cvtps_pd(_mm_loadu_ps(sums + l))));
}

static CPU_AVX2 void add_products(const float *x, const float *y, double *lanes) {
  for (int i = 0; i < BLOCK; i += TM_SUM_LANES) {
    for (int l = 0; l < TM_SUM_LANES; l += 4) {
      const __m256d left = _mm256_cvtps_pd(_mm_loadu_ps(x + i + l)), right = _mm256_cvtps_pd(_mm_loadu_ps(y + i + l));
      _mm256_storeu_pd(lanes + l, _mm256_fmadd_pd(left, right, cpu_load_pd(lanes + l)));
    }
  }
}

static CPU_AVX2 void add_sum(const float *x, const float *y, int has_chains, int is_rounded, double *lanes) {
  float sums[TM_SUM_LANES];
  if (!has_chains) {
    add_products(x, y, lanes);
    return;
  }
  if (is_rounded) add_chains(x, y, 1, sums);
  else add_chains(x, y, 0, sums);
  add_to_lanes(sums, lanes);
}

static CPU_AVX2 int allows_chains(const float *x) {
  __m256 largest = _mm256_setzero_ps();
  for (int i = 0; i < BLOCK; i += 8) largest = _mm256_max_ps(largest, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), cpu_load_ps(x + i)));
  const double found = (double)largest_ps(largest);
  return found >= TM_SUM_CHAIN_SMALLEST && found < TM_SUM_CHAIN_LIMIT;
}

/* ---- whole blocks, widened to f32 ---- */

static CPU_AVX2 void subtract(const float *a, const float *b, float *out) {
  for (int i = 0; i < BLOCK; i += 8) _mm256_storeu_ps(out + i, _mm256_sub_ps(cpu_load_ps(a + i), cpu_load_ps(b + i)));
}

static CPU_AVX2 void add_with_care(const float *a, const float *b, cpu_compare_state *state) {
  float x[BLOCK], y[BLOCK], differences[BLOCK];
  state->nonfinite += cpu_compare_mask_f32(a, b, x, y);
  subtract(x, y, differences);
  find_largest_f32(x, y, state);
  const int chains_a = allows_chains(x), chains_b = allows_chains(y);
  add_sum(differences, differences, allows_chains(differences), 1, state->lanes.squared);
  add_sum(x, y, chains_a && chains_b, 0, state->lanes.dot);
  add_sum(x, x, chains_a, 0, state->lanes.norm_a);
  add_sum(y, y, chains_b, 0, state->lanes.norm_b);
}

/* Of equal pairs three sums are alike. */
CPU_INLINE void add_to_norms(const float *sums, cpu_compare_state *state) {
  cpu_compare_lanes *lanes = &state->lanes;
  add_to_lanes(sums, lanes->norm_a);
  if (state->is_alike) return;
  add_to_lanes(sums, lanes->dot);
  add_to_lanes(sums, lanes->norm_b);
}

CPU_AVX2 void cpu_compare_add_equal_chains(const float *a, cpu_compare_state *state) {
  float x[BLOCK], same[BLOCK], sums[TM_SUM_LANES];
  cpu_compare_lanes *lanes = &state->lanes;
  state->equal += BLOCK;
  state->nonfinite += cpu_compare_mask_f32(a, a, x, same);
  if (allows_chains(x)) {
    add_chains(x, x, 0, sums);
    add_to_norms(sums, state);
    return;
  }
  add_products(x, x, lanes->norm_a);
  if (state->is_alike) return;
  add_products(x, x, lanes->dot);
  add_products(x, x, lanes->norm_b);
}

/* ---- blocks of 16 bits ---- */

typedef struct half_chains {
  __m256  squared[2], dot[2], norm_a[2], norm_b[2];
  __m256i farthest;             /* bits of the largest squares */
} half_chains;

CPU_INLINE void chain_eight(half_chains *c, int k, __m256 x, __m256 y) {
  const __m256 difference = _mm256_sub_ps(x, y), square = _mm256_mul_ps(difference, difference);
  c->farthest = _mm256_max_epu32(c->farthest, _mm256_castps_si256(square));
  c->squared[k] = _mm256_add_ps(c->squared[k], square);
  c->dot[k] = _mm256_fmadd_ps(x, y, c->dot[k]);
  c->norm_a[k] = _mm256_fmadd_ps(x, x, c->norm_a[k]);
  c->norm_b[k] = _mm256_fmadd_ps(y, y, c->norm_b[k]);
}

/* Eight of 16 elements: the first or the second ones, or of bf16 the even or the odd ones. */
CPU_INLINE __m256 half_of(const unsigned char *from, int second, element_kind kind) {
  if (kind != KIND_BF16) return load_eight(from + 8 * second * bytes_of(kind), kind);
  const __m256i v = cpu_load(from);
  return _mm256_castsi256_ps(second ? _mm256_and_si256(v, _mm256_set1_epi32((int32_t)0xffff0000)) : _mm256_slli_epi32(v, 16));
}

/* Sums by lane, from those of both halves. */
CPU_INLINE void lanes_of_halves(__m256 first, __m256 second, element_kind kind, float *out) {
  const __m256 low = _mm256_unpacklo_ps(first, second), high = _mm256_unpackhi_ps(first, second);
  _mm256_storeu_ps(out, kind != KIND_BF16 ? first : _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_storeu_ps(out + 8, kind != KIND_BF16 ? second : _mm256_permute2f128_ps(low, high, 0x31));
}

CPU_INLINE __m256 add_square(__m256 sum, __m256 x) { return _mm256_fmadd_ps(x, x, sum); }

/* Chains of the squares, as sums by lane; returns whether both sides are the same. */
CPU_INLINE int square_16bit(const unsigned char *a, const unsigned char *b, element_kind kind, __m256 *out_first, __m256 *out_second) {
  __m256 p = _mm256_setzero_ps(), q = p, r = p, s = p;
  __m256i changes = _mm256_setzero_si256();
  for (int i = 0; i < 2 * BLOCK; i += 64, a += 64, b += 64) {
    CPU_COMPARE_PREFETCH(a);
    CPU_COMPARE_PREFETCH(b);
    const __m256i low = _mm256_xor_si256(cpu_load(a), cpu_load(b)), high = _mm256_xor_si256(cpu_load(a + 32), cpu_load(b + 32));
    changes = _mm256_or_si256(changes, _mm256_or_si256(low, high));
    p = add_square(p, half_of(a, 0, kind));
    q = add_square(q, half_of(a, 1, kind));
    r = add_square(r, half_of(a + 32, 0, kind));
    s = add_square(s, half_of(a + 32, 1, kind));
  }
  *out_first = _mm256_add_ps(p, r);
  *out_second = _mm256_add_ps(q, s);
  return !cpu_any(changes);
}

/* 1: added; 0: the blocks differ, or something is special. */
/* Zeros of either sign. */
static __attribute__((noinline)) CPU_AVX2 int are_zeros_16bit(const unsigned char *a) {
  __m256i bits = _mm256_setzero_si256();
  for (int i = 0; i < 2 * BLOCK; i += 32) bits = _mm256_or_si256(bits, cpu_load(a + i));
  return !cpu_any(_mm256_slli_epi16(bits, 1));
}

CPU_INLINE int add_equal_16bit(const unsigned char *a, const unsigned char *b, element_kind kind, cpu_compare_state *state) {
  float sums[TM_SUM_LANES];
  __m256 first, second;
  if (cpu_any(_mm256_xor_si256(cpu_load(a), cpu_load(b)))) return 0;
  if (!square_16bit(a, b, kind, &first, &second)) return 0;
  const __m256 total = _mm256_add_ps(first, second);
  const __m256 is_large = _mm256_cmp_ps(total, _mm256_set1_ps(CPU_COMPARE_CHAIN_LEAST), _CMP_GE_OQ);
  const __m256 is_below = _mm256_cmp_ps(total, _mm256_set1_ps(CPU_COMPARE_CHAIN_MOST), _CMP_LT_OQ);
  const int are_small = kind == KIND_BF16 && _mm256_movemask_ps(is_large) == 0;
  if ((are_small && !are_zeros_16bit(a)) || _mm256_movemask_ps(is_below) != 0xff) return 0;
  state->equal += BLOCK;
  if (are_small) return 1;              /* zeros add nothing */
  lanes_of_halves(first, second, kind, sums);
  add_to_norms(sums, state);
  return 1;
}

CPU_AVX2 int cpu_compare_add_equal_bf16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  return add_equal_16bit(a, b, KIND_BF16, state);
}
CPU_AVX2 int cpu_compare_add_equal_f16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  return add_equal_16bit(a, b, KIND_F16, state);
}

typedef struct half_sums {
  float squared[8], dot[8], norm_a[8], norm_b[8];
  float farthest;               /* the largest square */
} half_sums;

CPU_INLINE void add_half(const unsigned char *a, const unsigned char *b, int second, element_kind kind, half_sums *out) {
  const unsigned char *ahead = second ? b : a;
  const int half = 16 * bytes_of(kind);
  const __m256 zero = _mm256_setzero_ps();
  half_chains c = { { zero, zero }, { zero, zero }, { zero, zero }, { zero, zero }, _mm256_setzero_si256() };
  for (int i = 0; i < BLOCK * bytes_of(kind); i += 2 * half) {
    if (kind != KIND_F32) CPU_COMPARE_PREFETCH(ahead + i);
    chain_eight(&c, 0, half_of(a + i, second, kind), half_of(b + i, second, kind));
    chain_eight(&c, 1, half_of(a + i + half, second, kind), half_of(b + i + half, second, kind));
  }
  _mm256_storeu_ps(out->squared, _mm256_add_ps(c.squared[0], c.squared[1]));
  _mm256_storeu_ps(out->dot, _mm256_add_ps(c.dot[0], c.dot[1]));
  _mm256_storeu_ps(out->norm_a, _mm256_add_ps(c.norm_a[0], c.norm_a[1]));
  _mm256_storeu_ps(out->norm_b, _mm256_add_ps(c.norm_b[0], c.norm_b[1]));
  out->farthest = largest_ps(_mm256_castsi256_ps(c.farthest));
}

/* Counts equal pairs; returns whether some pair is outside of the window. */
static __attribute__((noinline)) CPU_AVX2 int look(const unsigned char *a, const unsigned char *b, cpu_compare_window w, uint64_t *equal) {
  __m256i same = _mm256_setzero_si256(), apart = same, smallest = _mm256_set1_epi16(-1);
  for (int i = 0; i < 2 * BLOCK; i += 32) {
    const __m256i x = cpu_load(a + i), y = cpu_load(b + i), is_same = _mm256_cmpeq_epi16(x, y);
    same = _mm256_sub_epi16(same, is_same);
    apart = _mm256_max_epu16(apart, _mm256_abs_epi16(_mm256_sub_epi16(x, y)));
    smallest = _mm256_min_epu16(smallest, _mm256_or_si256(_mm256_add_epi16(x, x), is_same));
  }
  *equal += cpu_sum_epi16(same);
  const __m256i small = _mm256_set1_epi16((int16_t)w.small), near = _mm256_set1_epi16((int16_t)w.near);
  const __m256i inside = _mm256_cmpeq_epi16(_mm256_max_epu16(apart, near), near);
  const __m256i large = _mm256_cmpeq_epi16(_mm256_max_epu16(smallest, small), smallest);
  return _mm256_movemask_epi8(_mm256_and_si256(inside, large)) != -1;
}

typedef void half_pass(const unsigned char *a, const unsigned char *b, half_sums *out);
#define HALF_PASS(name, second, kind)                                                                                    \
  static __attribute__((noinline)) CPU_AVX2 void name(const unsigned char *a, const unsigned char *b, half_sums *out) {   \
    add_half(a, b, second, kind, out);                                                                                   \
  }
HALF_PASS(even_bf16, 0, KIND_BF16)
HALF_PASS(odd_bf16, 1, KIND_BF16)
HALF_PASS(first_f16, 0, KIND_F16)
HALF_PASS(second_f16, 1, KIND_F16)
HALF_PASS(first_f32, 0, KIND_F32)
HALF_PASS(second_f32, 1, KIND_F32)

CPU_INLINE void join(const float *first, const float *second, element_kind kind, double *lanes) {
  float sums[TM_SUM_LANES];
  lanes_of_halves(cpu_load_ps(first), cpu_load_ps(second), kind, sums);
  add_to_lanes(sums, lanes);
}

CPU_INLINE int has_size(const float *first, const float *second) {
  const __m256 least = _mm256_set1_ps(CPU_COMPARE_CHAIN_LEAST);
  return _mm256_movemask_ps(_mm256_cmp_ps(_mm256_max_ps(cpu_load_ps(first), cpu_load_ps(second)), least, _CMP_GE_OQ)) != 0;
}

/* Whether all four sums go by chains, surely. */
CPU_INLINE int are_usual(const half_sums *one, const half_sums *other, element_kind kind) {
  const __m256 first = _mm256_add_ps(cpu_load_ps(one->norm_a), cpu_load_ps(one->norm_b));
  const __m256 second = _mm256_add_ps(cpu_load_ps(other->norm_a), cpu_load_ps(other->norm_b));
  const __m256 below = _mm256_cmp_ps(_mm256_add_ps(first, second), _mm256_set1_ps(CPU_COMPARE_CHAIN_MOST), _CMP_LT_OQ);
  if (_mm256_movemask_ps(below) != 0xff) return 0;
  return kind == KIND_F16 || (has_size(one->squared, other->squared) && has_size(one->norm_a, other->norm_a) &&
                    has_size(one->norm_b, other->norm_b));
}

/* Adds nothing and returns 0 unless it is sure that all four sums go by chains; out_is_farther: by the largest square. */
CPU_INLINE int add_usual(const unsigned char *a, const unsigned char *b, element_kind kind, half_pass *first, half_pass *second,
                         cpu_compare_state *state, int *out_is_farther) {
  half_sums one, other;
  cpu_compare_lanes *lanes = &state->lanes;
  const float farthest = (float)state->max_abs, square = farthest * farthest;
  first(a, b, &one);
  second(a, b, &other);
  if (!are_usual(&one, &other, kind)) return 0;
  join(one.squared, other.squared, kind, lanes->squared);
  join(one.dot, other.dot, kind, lanes->dot);
  join(one.norm_a, other.norm_a, kind, lanes->norm_a);
  join(one.norm_b, other.norm_b, kind, lanes->norm_b);
  *out_is_farther = one.farthest > square || other.farthest > square;
  return 1;
}

CPU_AVX2 int cpu_compare_add_bf16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  int is_farther;
  if (!add_usual(a, b, KIND_BF16, even_bf16, odd_bf16, state, &is_farther)) return 0;
  if (look(a, b, state->window, &state->equal) || is_farther) cpu_compare_find_largest_16bit(a, b, 0, state);
  return 1;
}
CPU_AVX2 int cpu_compare_add_f16(const unsigned char *a, const unsigned char *b, cpu_compare_state *state) {
  int is_farther;
  if (!add_usual(a, b, KIND_F16, first_f16, second_f16, state, &is_farther)) return 0;
  if (look(a, b, state->window, &state->equal) || is_farther) cpu_compare_find_largest_16bit(a, b, 1, state);
  return 1;
}

/* ---- blocks widened to f32 ---- */

/* Negative where a quotient is beyond the best one (cpu_compare_margin). */
CPU_INLINE __m256d beyond(__m256d distance, __m256d larger, __m256d best, __m256d margin) {
  return _mm256_fmadd_pd(larger, margin, _mm256_fmsub_pd(larger, best, distance));
}

static CPU_AVX2 int has_larger_quotient(const float *a, const float *b, double max_rel) {
  const __m256d best = _mm256_set1_pd(max_rel), margin = _mm256_set1_pd(cpu_compare_margin(max_rel));
  __m256d more = _mm256_setzero_pd();
  for (int i = 0; i < BLOCK; i += 8) {
    const __m256 x = cpu_load_ps(a + i), y = cpu_load_ps(b + i), distance = distance_of(x, y), larger = larger_of(x, y);
    more = _mm256_or_pd(more, beyond(cpu_low_half(distance), cpu_low_half(larger), best, margin));
    more = _mm256_or_pd(more, beyond(cpu_high_half(distance), cpu_high_half(larger), best, margin));
  }
  return _mm256_movemask_pd(more) != 0;
}

CPU_AVX2 void cpu_compare_add_chains(const float *a, const float *b, cpu_compare_state *state) {
  const unsigned char *from_a = (const unsigned char *)a, *from_b = (const unsigned char *)b;
  int is_farther;
  if (!add_usual(from_a, from_b, KIND_F32, first_f32, second_f32, state, &is_farther)) {
    add_with_care(a, b, state);
    return;
  }
  if (is_farther || has_larger_quotient(a, b, state->max_rel)) find_largest_f32(a, b, state);
}
