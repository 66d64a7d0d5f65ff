/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of 16-bit floats, and of 8-bit ones widened to f16 in L1.  As cpu_stats_f32.c, with extremes of 16 raw bits
 * and, where the block's content allows, sums in 32 short chains of f32 (canonical_sum.h).
 *
 * Values of a vector come apart in the order that is cheapest.  bf16: even elements by a shift, odd ones by a mask; so
 * vector 0 of f32 has the elements 0, 2, .. 14 of 16 and vector 1 has 1, 3, .. 15.  f16: elements 0-7 and 8-15.  The state's
 * lanes stand in that order while a superblock runs and are put right at its end.
 */
#include "cpu_decode.h"
#include "cpu_simd.h"
#include "cpu_stats.h"

#define MAGNITUDE 0x7fff
#define BLOCK_BYTES (TM_SUM_BLOCK * 2)
#define BLOCK_VECTORS (TM_SUM_BLOCK / 16)

/* The bits that decide, by format; compile-time constants in every kernel. */
typedef struct half_format {
  int16_t infinite;             /* bits of +Inf */
  int16_t smallest_normal;
  int16_t chain_smallest;       /* bits of the magnitudes between which chains are used */
  int16_t chain_limit;
  int     is_f16;
} half_format;

#define BF16    ((half_format){ 0x7f80, 0x0080, 0x2680, 0x5d80, 0 })
#define F16     ((half_format){ 0x7c00, 0x0400, 0x0001, 0x7c00, 1 })    /* every magnitude allows chains */
#define F8_E4M3 ((half_format){ 0x7c00, 0x2400, 0x0001, 0x7c00, 1 })    /* subnormal below 2^-6 */

typedef struct extremes {
  __m256i signed_min, signed_max, unsigned_min, unsigned_max;
} extremes;

typedef enum verdict { CLEAN, HAS_SMALL, NEEDS_CARE } verdict;

CPU_INLINE extremes no_extremes(void) {
  return (extremes){ _mm256_set1_epi16(INT16_MAX), _mm256_set1_epi16(INT16_MIN), _mm256_set1_epi16(-1), _mm256_setzero_si256() };
}

CPU_INLINE void widen(extremes *e, __m256i v) {
  e->signed_min = _mm256_min_epi16(e->signed_min, v);
  e->signed_max = _mm256_max_epi16(e->signed_max, v);
  e->unsigned_min = _mm256_min_epu16(e->unsigned_min, v);
  e->unsigned_max = _mm256_max_epu16(e->unsigned_max, v);
}

/* Ties the four to registers here; without it gcc 12 moves some of them through memory in every turn of the loop. */
CPU_INLINE void pin(extremes *e) {
  __asm__("" : "+x"(e->signed_min), "+x"(e->signed_max), "+x"(e->unsigned_min), "+x"(e->unsigned_max));
}

CPU_INLINE void merge(extremes *e, const extremes *other) {
  e->signed_min = _mm256_min_epi16(e->signed_min, other->signed_min);
  e->signed_max = _mm256_max_epi16(e->signed_max, other->signed_max);
  e->unsigned_min = _mm256_min_epu16(e->unsigned_min, other->unsigned_min);
  e->unsigned_max = _mm256_max_epu16(e->unsigned_max, other->unsigned_max);
}

CPU_INLINE __m256i largest_magnitudes(const extremes *e) {
  return _mm256_max_epi16(e->signed_max, _mm256_and_si256(e->unsigned_max, _mm256_set1_epi16(MAGNITUDE)));
}

/* Chains or lanes, by the largest magnitudes of the block.  A block of zeros may go either way. */
CPU_INLINE int allows_chains(half_format f, __m256i largest) {
  if (cpu_any(_mm256_cmpgt_epi16(largest, _mm256_set1_epi16((int16_t)(f.chain_limit - 1))))) return 0;
  return cpu_any(_mm256_cmpgt_epi16(largest, _mm256_set1_epi16((int16_t)(f.chain_smallest - 1)))) ||
         !cpu_any(_mm256_cmpgt_epi16(largest, _mm256_setzero_si256()));
}

CPU_INLINE verdict judge(half_format f, const extremes *e) {
  if (!allows_chains(f, largest_magnitudes(e))) return NEEDS_CARE;
  const __m256i smallest = _mm256_min_epu16(e->unsigned_min, _mm256_and_si256(e->signed_min, _mm256_set1_epi16(MAGNITUDE)));
  return cpu_any(_mm256_cmpgt_epi16(_mm256_set1_epi16(f.smallest_normal), smallest)) ? HAS_SMALL : CLEAN;
}

/* The two halves of 16 values. */
CPU_INLINE __m256 first_half(half_format f, __m256i v) {
  return f.is_f16 ? _mm256_cvtph_ps(_mm256_castsi256_si128(v)) : _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}
CPU_INLINE __m256 second_half(half_format f, __m256i v) {
  return f.is_f16 ? _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1))
                  : _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32((int32_t)0xffff0000)));
}

/* The second half of v, which was loaded from `data`; reading it there again is cheaper than taking v apart. */
CPU_INLINE __m256 second_half_at(half_format f, const unsigned char *data, __m256i v) {
  return f.is_f16 ? _mm256_cvtph_ps(cpu_load128(data + 16)) : second_half(f, v);
}

/* a, b: the halves of chains 0-15; c, d: of chains 16-31.  Scalars, not arrays: gcc 12 keeps those on the stack. */
typedef struct chains {
  __m256 sum_a, sum_b, sum_c, sum_d, squares_a, squares_b, squares_c, squares_d;
} chains;

CPU_INLINE chains no_chains(void) {
  const __m256 zero = _mm256_setzero_ps();
  return (chains){ zero, zero, zero, zero, zero, zero, zero, zero };
}

CPU_INLINE void chain(__m256 *sum, __m256 *squares, __m256 x) {
  *sum = _mm256_add_ps(*sum, x);
  *squares = _mm256_fmadd_ps(x, x, *squares);
}

CPU_INLINE void chain_32(half_format f, chains *c, __m256i v, __m256i w) {
  chain(&c->sum_a, &c->squares_a, first_half(f, v));
  chain(&c->sum_b, &c->squares_b, second_half(f, v));
  chain(&c->sum_c, &c->squares_c, first_half(f, w));
  chain(&c->sum_d, &c->squares_d, second_half(f, w));
}

CPU_INLINE void add_to_lanes(double *lanes, __m256 x) {
  _mm256_storeu_pd(lanes, _mm256_add_pd(cpu_load_pd(lanes), _mm256_cvtps_pd(_mm256_castps256_ps128(x))));
  _mm256_storeu_pd(lanes + 4, _mm256_add_pd(cpu_load_pd(lanes + 4), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))));
}

CPU_INLINE void end_chains(const chains *c, cpu_stats_state *state) {
  add_to_lanes(state->sum, _mm256_add_ps(c->sum_a, c->sum_c));
  add_to_lanes(state->sum + 8, _mm256_add_ps(c->sum_b, c->sum_d));
  add_to_lanes(state->squares, _mm256_add_ps(c->squares_a, c->squares_c));
  add_to_lanes(state->squares + 8, _mm256_add_ps(c->squares_b, c->squares_d));
}

/* Leaves the state as it was if the block needs care. */
CPU_INLINE verdict fast_block(half_format f, const unsigned char *data, cpu_stats_state *state, extremes *all) {
  chains c = no_chains();
  extremes e = no_extremes();
  for (int i = 0; i < BLOCK_VECTORS; i += 2, data += 64) {
    CPU_PREFETCH(data);
    const __m256i v = cpu_load(data);
    widen(&e, v);
    chain(&c.sum_a, &c.squares_a, first_half(f, v));
    chain(&c.sum_b, &c.squares_b, second_half_at(f, data, v));
    pin(&e);
    const __m256i w = cpu_load(data + 32);
    widen(&e, w);
    chain(&c.sum_c, &c.squares_c, first_half(f, w));
    chain(&c.sum_d, &c.squares_d, second_half_at(f, data + 32, w));
    pin(&e);
  }
  const verdict found = judge(f, &e);
  if (found == NEEDS_CARE) return found;
  end_chains(&c, state);
  merge(all, &e);
  return found;
}

CPU_INLINE void count_small(half_format f, const unsigned char *data, cpu_stats_state *state) {
  const __m256i mask = _mm256_set1_epi16(MAGNITUDE), normal = _mm256_set1_epi16(f.smallest_normal);
  __m256i zero = _mm256_setzero_si256(), small = _mm256_setzero_si256();
  for (int i = 0; i < BLOCK_VECTORS; ++i) {
    const __m256i magnitude = _mm256_and_si256(cpu_load(data + 32 * i), mask);
    zero = _mm256_sub_epi16(zero, _mm256_cmpeq_epi16(magnitude, _mm256_setzero_si256()));
    small = _mm256_sub_epi16(small, _mm256_cmpgt_epi16(normal, magnitude));
  }
  const uint64_t zeros = cpu_sum_epi16(zero);
  state->zero += zeros;
  state->subnormal += cpu_sum_epi16(small) - zeros;
}

CPU_INLINE __m256i magnitude_of(__m256i v) { return _mm256_and_si256(v, _mm256_set1_epi16(MAGNITUDE)); }
CPU_INLINE __m256i finite_mask(half_format f, __m256i v) { return _mm256_cmpgt_epi16(_mm256_set1_epi16(f.infinite), magnitude_of(v)); }
CPU_INLINE __m256i count(__m256i counter, __m256i mask) { return _mm256_sub_epi16(counter, mask); }

/* Takes only what `finite` selects; elsewhere each extreme meets itself. */
CPU_INLINE void widen_where(extremes *e, __m256i v, __m256i finite) {
  e->signed_min = _mm256_min_epi16(e->signed_min, _mm256_blendv_epi8(e->signed_min, v, finite));
  e->signed_max = _mm256_max_epi16(e->signed_max, _mm256_blendv_epi8(e->signed_max, v, finite));
  e->unsigned_min = _mm256_min_epu16(e->unsigned_min, _mm256_blendv_epi8(e->unsigned_min, v, finite));
  e->unsigned_max = _mm256_max_epu16(e->unsigned_max, _mm256_and_si256(v, finite));
}

/* Counts everything there is to count; gives the extremes of what is finite. */
CPU_INLINE void masked_counts(half_format f, const unsigned char *data, cpu_stats_state *state, extremes *out) {
  const __m256i infinite = _mm256_set1_epi16(f.infinite), none = _mm256_setzero_si256();
  __m256i nan = none, pos = none, finite_count = none, zero = none, small = none;
  extremes e = no_extremes();
  for (int i = 0; i < BLOCK_VECTORS; ++i) {
    if (i % 2 == 0) CPU_PREFETCH(data + 32 * i);
    const __m256i v = cpu_load(data + 32 * i), magnitude = magnitude_of(v), finite = _mm256_cmpgt_epi16(infinite, magnitude);
    widen_where(&e, v, finite);
    pin(&e);
    finite_count = count(finite_count, finite);
    nan = count(nan, _mm256_cmpgt_epi16(magnitude, infinite));
    pos = count(pos, _mm256_cmpeq_epi16(v, infinite));
    zero = count(zero, _mm256_cmpeq_epi16(magnitude, none));
    small = count(small, _mm256_cmpgt_epi16(_mm256_set1_epi16(f.smallest_normal), magnitude));
  }
  const uint64_t nans = cpu_sum_epi16(nan), positives = cpu_sum_epi16(pos), zeros = cpu_sum_epi16(zero);
  state->nan += nans;
  state->pos_inf += positives;
  state->neg_inf += TM_SUM_BLOCK - cpu_sum_epi16(finite_count) - nans - positives;
  state->zero += zeros;
  state->subnormal += cpu_sum_epi16(small) - zeros;
  *out = e;
}

/* What is excluded becomes +0, which changes no chain and no lane: they start at +0 and so are never -0. */
CPU_INLINE void masked_chains(half_format f, const unsigned char *data, cpu_stats_state *state) {
  chains c = no_chains();
  for (int i = 0; i < BLOCK_VECTORS; i += 2) {
    const __m256i v = cpu_load(data + 32 * i), w = cpu_load(data + 32 * i + 32);
    chain_32(f, &c, _mm256_and_si256(v, finite_mask(f, v)), _mm256_and_si256(w, finite_mask(f, w)));
  }
  end_chains(&c, state);
}

CPU_INLINE void lane_4(__m256d *sum, __m256d *squares, __m128 x) {
  const __m256d wide = _mm256_cvtps_pd(x);
  *sum = _mm256_add_pd(*sum, wide);
  *squares = _mm256_fmadd_pd(wide, wide, *squares);
}

/* All 16 lanes of a half of them at a time: with both, and what is on its way, registers would not do. */
CPU_INLINE void masked_lanes_of_half(half_format f, int second, const unsigned char *data, double *sums, double *squares) {
  __m256d a = cpu_load_pd(sums), b = cpu_load_pd(sums + 4), c = cpu_load_pd(squares), d = cpu_load_pd(squares + 4);
  for (int i = 0; i < BLOCK_VECTORS; ++i) {
    const __m256i v = cpu_load(data + 32 * i), kept = _mm256_and_si256(v, finite_mask(f, v));
    const __m256 x = second ? second_half(f, kept) : first_half(f, kept);
    lane_4(&a, &c, _mm256_castps256_ps128(x));
    lane_4(&b, &d, _mm256_extractf128_ps(x, 1));
  }
  _mm256_storeu_pd(sums, a);
  _mm256_storeu_pd(sums + 4, b);
  _mm256_storeu_pd(squares, c);
  _mm256_storeu_pd(squares + 4, d);
}

static CPU_AVX2 double value_of(int is_f16, uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return is_f16 ? (double)_cvtsh_ss(bits) : (double)value;
}

/* See cpu_stats_f32.c: which of the four extremes is which. */
static CPU_AVX2 void reduce_extremes(int is_f16, const extremes *all, cpu_stats_state *state) {
  uint16_t parts[3][16];
  cpu_store(parts[0], all->signed_max);
  cpu_store(parts[1], all->unsigned_min);
  cpu_store(parts[2], all->unsigned_max);
  int16_t signed_max = INT16_MIN;
  uint16_t unsigned_min = UINT16_MAX, unsigned_max = 0;
  for (int i = 0; i < 16; ++i) {
    if ((int16_t)parts[0][i] > signed_max) signed_max = (int16_t)parts[0][i];
    if (parts[1][i] < unsigned_min) unsigned_min = parts[1][i];
    if (parts[2][i] > unsigned_max) unsigned_max = parts[2][i];
  }
  if (unsigned_min > unsigned_max) return;      /* nothing was finite */
  cpu_stats_extreme(state, value_of(is_f16, unsigned_max > MAGNITUDE ? unsigned_max : unsigned_min));
  cpu_stats_extreme(state, value_of(is_f16, signed_max >= 0 ? (uint16_t)signed_max : unsigned_min));
}

/* From even elements, then odd ones, to the order of lanes. */
static void reorder(double *lanes) {
  double old[TM_SUM_LANES];
  memcpy(old, lanes, sizeof old);
  for (int l = 0; l < TM_SUM_LANES; ++l) lanes[l] = old[l / 2 + (l % 2) * (TM_SUM_LANES / 2)];
}

/* The passes over a block, each a function of its own so that the compiler gives its loop all registers. */
typedef struct passes {
  verdict (*fast)(const unsigned char *data, cpu_stats_state *state, extremes *all);
  void    (*small)(const unsigned char *data, cpu_stats_state *state);
  void    (*counts)(const unsigned char *data, cpu_stats_state *state, extremes *out);
  void    (*chains)(const unsigned char *data, cpu_stats_state *state);
  void    (*lanes)(const unsigned char *data, cpu_stats_state *state);
} passes;

#define NOINLINE static __attribute__((noinline)) CPU_AVX2
#define PASSES(name, f)                                                                                                    \
  NOINLINE verdict fast_##name(const unsigned char *data, cpu_stats_state *state, extremes *all) { return fast_block(f, data, state, all); } \
  NOINLINE void small_##name(const unsigned char *data, cpu_stats_state *state) { count_small(f, data, state); }           \
  NOINLINE void counts_##name(const unsigned char *data, cpu_stats_state *state, extremes *out) { masked_counts(f, data, state, out); } \
  NOINLINE void chains_##name(const unsigned char *data, cpu_stats_state *state) { masked_chains(f, data, state); }        \
  NOINLINE void lanes_##name(const unsigned char *data, cpu_stats_state *state) {                                          \
    masked_lanes_of_half(f, 0, data, state->sum, state->squares);                                                          \
    masked_lanes_of_half(f, 1, data, state->sum + 8, state->squares + 8);                                                  \
  }                                                                                                                        \
  static const passes name = { fast_##name, small_##name, counts_##name, chains_##name, lanes_##name };
PASSES(bf16_passes, BF16)
PASSES(f16_passes, F16)
PASSES(e4m3_passes, F8_E4M3)

CPU_INLINE void masked_block(half_format f, const passes *p, const unsigned char *data, cpu_stats_state *state, extremes *all) {
  extremes e;
  p->counts(data, state, &e);
  if (allows_chains(f, largest_magnitudes(&e))) p->chains(data, state);
  else p->lanes(data, state);
  merge(all, &e);
}

/* One block, by the fast pass unless `found` says that the block before was bad. */
CPU_INLINE verdict whole_block(half_format f, const passes *p, const unsigned char *data, verdict found, cpu_stats_state *state, extremes *all) {
  if (found != NEEDS_CARE) found = p->fast(data, state, all);
  if (found == NEEDS_CARE) masked_block(f, p, data, state, all);
  if (found == HAS_SMALL) p->small(data, state);
  return found;
}

/* The last block is filled up with NaN, which are excluded and then not counted. */
CPU_INLINE void short_block(half_format f, const passes *p, const unsigned char *data, uint64_t elements, cpu_stats_state *state, extremes *all) {
  uint16_t padded[TM_SUM_BLOCK];
  memcpy(padded, data, elements * sizeof padded[0]);
  for (uint64_t i = elements; i < TM_SUM_BLOCK; ++i) padded[i] = MAGNITUDE;
  masked_block(f, p, (const unsigned char *)padded, state, all);
  state->nan -= TM_SUM_BLOCK - elements;
}

CPU_INLINE void superblock(half_format f, const passes *p, const unsigned char *data, uint64_t elements, cpu_stats_state *state) {
  extremes all = no_extremes();
  verdict found = CLEAN;
  for (; elements >= TM_SUM_BLOCK; elements -= TM_SUM_BLOCK, data += BLOCK_BYTES) found = whole_block(f, p, data, found, state, &all);
  if (elements > 0) short_block(f, p, data, elements, state, &all);
  reduce_extremes(f.is_f16, &all, state);
}

CPU_AVX2 void cpu_stats_f16(const unsigned char *data, uint64_t elements, cpu_stats_state *state) {
  superblock(F16, &f16_passes, data, elements, state);
}

CPU_AVX2 void cpu_stats_bf16(const unsigned char *data, uint64_t elements, cpu_stats_state *state) {
  superblock(BF16, &bf16_passes, data, elements, state);
  reorder(state->sum);
  reorder(state->squares);
}

CPU_INLINE void widen_8bit(int is_e4m3, const unsigned char *data, uint16_t *out) {
  for (int i = 0; i < TM_SUM_BLOCK; i += 16) {
    if (i % 64 == 0) CPU_PREFETCH(data + i);
    cpu_store(out + i, is_e4m3 ? cpu_f16_of_e4m3(cpu_load128(data + i)) : cpu_f16_of_e5m2(cpu_load128(data + i)));
  }
}

CPU_INLINE void superblock_8bit(half_format f, const passes *p, int is_e4m3, const unsigned char *data, uint64_t elements,
                                cpu_stats_state *state) {
  uint16_t wide[TM_SUM_BLOCK];
  unsigned char last[TM_SUM_BLOCK] = { 0 };
  extremes all = no_extremes();
  verdict found = CLEAN;
  while (elements > 0) {
    const uint64_t now = elements < TM_SUM_BLOCK ? elements : TM_SUM_BLOCK;
    if (now < TM_SUM_BLOCK) memcpy(last, data, now);
    const unsigned char *source = now < TM_SUM_BLOCK ? last : data;
    widen_8bit(is_e4m3, source, wide);
    if (now < TM_SUM_BLOCK) short_block(f, p, (const unsigned char *)wide, now, state, &all);
    else found = whole_block(f, p, (const unsigned char *)wide, found, state, &all);
    data += now;
    elements -= now;
  }
  reduce_extremes(f.is_f16, &all, state);
}

CPU_AVX2 void cpu_stats_f8_e4m3fn(const unsigned char *data, uint64_t elements, cpu_stats_state *state) {
  superblock_8bit(F8_E4M3, &e4m3_passes, 1, data, elements, state);
}

CPU_AVX2 void cpu_stats_f8_e5m2(const unsigned char *data, uint64_t elements, cpu_stats_state *state) {
  superblock_8bit(F16, &f16_passes, 0, data, elements, state);
}
