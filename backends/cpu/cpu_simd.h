/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_simd.h - small vector helpers that several kernel families share. */
#ifndef CPU_SIMD_H
#define CPU_SIMD_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#include "cpu_kernel.h"

#define CPU_INLINE static inline __attribute__((always_inline)) CPU_AVX2

/* So far ahead a single stream is asked for, by line of 64 bytes: measured to be worth it against the hardware's own
   prefetching, which stops at pages; asking for what is nearer than a page is in its way.  Asking beyond the end of the data
   is harmless. */
#define CPU_PREFETCH_BYTES 6144
#define CPU_PREFETCH(pointer) _mm_prefetch((const char *)(pointer) + CPU_PREFETCH_BYTES, _MM_HINT_T0)

CPU_INLINE __m256i cpu_load(const void *pointer) { return _mm256_loadu_si256((const __m256i_u *)pointer); }
CPU_INLINE __m128i cpu_load128(const void *pointer) { return _mm_loadu_si128((const __m128i_u *)pointer); }
CPU_INLINE __m256 cpu_load_ps(const void *pointer) { return _mm256_loadu_ps((const float *)pointer); }
CPU_INLINE __m256d cpu_load_pd(const void *pointer) { return _mm256_loadu_pd((const double *)pointer); }
CPU_INLINE void cpu_store(void *pointer, __m256i value) { _mm256_storeu_si256((__m256i_u *)pointer, value); }

/* The halves of eight f32 as f64. */
CPU_INLINE __m256d cpu_low_half(__m256 x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
CPU_INLINE __m256d cpu_high_half(__m256 x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }

CPU_INLINE __m256d cpu_abs_pd(__m256d x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }
CPU_INLINE int cpu_is_finite_pd(__m256d x) {
  return _mm256_movemask_pd(_mm256_cmp_pd(_mm256_sub_pd(x, x), _mm256_setzero_pd(), _CMP_NEQ_UQ)) == 0;
}
CPU_INLINE double cpu_largest_pd(__m256d x) {
  double parts[4];
  _mm256_storeu_pd(parts, x);
  return fmax(fmax(parts[0], parts[1]), fmax(parts[2], parts[3]));
}

/* The sum of 16-bit counters, each below 2^15; and of 32-bit ones. */
CPU_INLINE uint64_t cpu_sum_epi32(__m256i v) {
  const __m128i halves = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i pairs = _mm_add_epi32(halves, _mm_unpackhi_epi64(halves, halves));
  return (uint32_t)(_mm_cvtsi128_si32(pairs) + _mm_extract_epi32(pairs, 1));
}
CPU_INLINE uint64_t cpu_sum_epi16(__m256i v) { return cpu_sum_epi32(_mm256_madd_epi16(v, _mm256_set1_epi16(1))); }
CPU_INLINE uint64_t cpu_sum_epi64(__m256i v) {
  const __m128i halves = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  return (uint64_t)_mm_cvtsi128_si64(halves) + (uint64_t)_mm_extract_epi64(halves, 1);
}

/* Whether any bit of a comparison's result is set. */
CPU_INLINE int cpu_any(__m256i mask) { return !_mm256_testz_si256(mask, mask); }

#endif
