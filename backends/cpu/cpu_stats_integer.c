/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of 8-bit integers.  Sums of a superblock are far below 2^53, so every order of additions gives the same f64;
 * they are made in integers and stand in the first lane.
 */
#include "cpu_simd.h"
#include "cpu_stats.h"

typedef struct byte_sums {
  __m256i min, max;             /* as unsigned bytes, offset so that the order is that of the values */
  __m256i zero;                 /* 64 bits: 255 times the count */
  __m256i sum;                  /* 64 bits: of the offset bytes */
  __m256i squares;              /* 32 bits: enough for a superblock */
} byte_sums;

/* Signed bytes are offset by 128, so that they run from 0 to 255 too. */
CPU_INLINE void take(byte_sums *s, __m256i v, int is_signed) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i shifted = is_signed ? _mm256_xor_si256(v, _mm256_set1_epi8(INT8_MIN)) : v;
  const __m256i low = is_signed ? _mm256_cvtepi8_epi16(_mm256_castsi256_si128(v)) : _mm256_cvtepu8_epi16(_mm256_castsi256_si128(v));
  const __m256i high = is_signed ? _mm256_cvtepi8_epi16(_mm256_extracti128_si256(v, 1)) : _mm256_cvtepu8_epi16(_mm256_extracti128_si256(v, 1));
  const __m256i squares = _mm256_add_epi32(_mm256_madd_epi16(low, low), _mm256_madd_epi16(high, high));
  s->min = _mm256_min_epu8(s->min, shifted);
  s->max = _mm256_max_epu8(s->max, shifted);
  s->zero = _mm256_add_epi64(s->zero, _mm256_sad_epu8(_mm256_cmpeq_epi8(v, zero), zero));
  s->sum = _mm256_add_epi64(s->sum, _mm256_sad_epu8(shifted, zero));
  s->squares = _mm256_add_epi32(s->squares, squares);
}

static CPU_AVX2 double extreme(__m256i bytes, int want_max, int offset) {
  uint8_t parts[32];
  cpu_store(parts, bytes);
  int best = parts[0];
  for (int i = 1; i < 32; ++i) {
    if (want_max ? parts[i] > best : parts[i] < best) best = parts[i];
  }
  return best - offset;
}

/* Eight 32-bit sums may be more than 32 bits together. */
CPU_INLINE uint64_t sum_squares(__m256i v) {
  const __m256i zero = _mm256_setzero_si256();
  return cpu_sum_epi64(_mm256_add_epi64(_mm256_unpacklo_epi32(v, zero), _mm256_unpackhi_epi32(v, zero)));
}

/* A function of its own, because what the compiler keeps across calls it keeps in memory. */
CPU_INLINE byte_sums whole_vectors(const unsigned char *data, uint64_t count, int is_signed) {
  const __m256i none = _mm256_setzero_si256();
  byte_sums s = { _mm256_set1_epi8(-1), none, none, none, none };
  for (uint64_t i = 0; i < count; i += 32) {
    CPU_PREFETCH(data + i);
    take(&s, cpu_load(data + i), is_signed);
    __asm__("" : "+x"(s.min), "+x"(s.max), "+x"(s.zero), "+x"(s.sum), "+x"(s.squares));
  }
  return s;
}
static __attribute__((noinline)) CPU_AVX2 void sum_i8(const unsigned char *data, uint64_t count, byte_sums *out) {
  *out = whole_vectors(data, count, 1);
}
static __attribute__((noinline)) CPU_AVX2 void sum_u8(const unsigned char *data, uint64_t count, byte_sums *out) {
  *out = whole_vectors(data, count, 0);
}

/* The last vector is filled up with its first element, `filler`, and that is taken off again. */
CPU_INLINE void superblock(const unsigned char *data, uint64_t count, int is_signed, cpu_stats_state *state) {
  if (count == 0) return;
  byte_sums s;
  const uint64_t whole = count / 32 * 32, rest = count - whole, extra = rest == 0 ? 0 : 32 - rest;
  if (is_signed) sum_i8(data, whole, &s);
  else sum_u8(data, whole, &s);
  int filler = 0;
  if (rest > 0) {
    unsigned char last[32];
    memset(last, data[whole], sizeof last);
    memcpy(last, data + whole, rest);
    take(&s, cpu_load(last), is_signed);
    filler = is_signed ? (int8_t)data[whole] : data[whole];
  }
  const int offset = is_signed ? 128 : 0;
  cpu_stats_extreme(state, extreme(s.min, 0, offset));
  cpu_stats_extreme(state, extreme(s.max, 1, offset));
  state->zero += cpu_sum_epi64(s.zero) / 255 - (filler == 0 ? extra : 0);
  const int64_t sum = (int64_t)cpu_sum_epi64(s.sum) - offset * (int64_t)(count + extra) - filler * (int64_t)extra;
  const int64_t squares = (int64_t)sum_squares(s.squares) - filler * filler * (int64_t)extra;
  state->sum[0] += (double)sum;
  state->squares[0] += (double)squares;
}

CPU_AVX2 void cpu_stats_i8(const unsigned char *data, uint64_t count, cpu_stats_state *state) { superblock(data, count, 1, state); }
CPU_AVX2 void cpu_stats_u8(const unsigned char *data, uint64_t count, cpu_stats_state *state) { superblock(data, count, 0, state); }
