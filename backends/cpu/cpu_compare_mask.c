/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the formats' values say pair by pair: copies of blocks in which pairs that are not finite are zeros, so that they add nothing
 * to any figure but their count; and how many are equal.
 */
#include <math.h>

#include "cpu_compare.h"
#include "cpu_simd.h"

#define BLOCK TM_SUM_BLOCK

CPU_AVX2 uint64_t cpu_compare_mask_f32(const void *a, const void *b, float *out_a, float *out_b) {
  const float *from_a = a, *from_b = b;
  const __m256i mask = _mm256_set1_epi32(INT32_MAX), infinite = _mm256_set1_epi32(0x7f800000);
  __m256i finite_count = _mm256_setzero_si256();
  for (int i = 0; i < BLOCK; i += 8) {
    const __m256i x = cpu_load(from_a + i), y = cpu_load(from_b + i);
    const __m256i larger = _mm256_max_epi32(_mm256_and_si256(x, mask), _mm256_and_si256(y, mask));
    const __m256i finite = _mm256_cmpgt_epi32(infinite, larger);
    finite_count = _mm256_sub_epi32(finite_count, finite);
    cpu_store(out_a + i, _mm256_and_si256(x, finite));
    cpu_store(out_b + i, _mm256_and_si256(y, finite));
  }
  return BLOCK - cpu_sum_epi32(finite_count);
}

CPU_AVX2 uint64_t cpu_compare_mask_f64(const void *a, const void *b, double *out_a, double *out_b) {
  const double *from_a = a, *from_b = b;
  const __m256d sign = _mm256_set1_pd(-0.0), infinite = _mm256_set1_pd(HUGE_VAL);
  __m256i finite_count = _mm256_setzero_si256();
  for (int i = 0; i < BLOCK; i += 4) {
    const __m256d x = cpu_load_pd(from_a + i), y = cpu_load_pd(from_b + i);
    const __m256d finite_x = _mm256_cmp_pd(_mm256_andnot_pd(sign, x), infinite, _CMP_LT_OQ);
    const __m256d finite_y = _mm256_cmp_pd(_mm256_andnot_pd(sign, y), infinite, _CMP_LT_OQ);
    const __m256d finite = _mm256_and_pd(finite_x, finite_y);
    finite_count = _mm256_sub_epi64(finite_count, _mm256_castpd_si256(finite));
    _mm256_storeu_pd(out_a + i, _mm256_and_pd(x, finite));
    _mm256_storeu_pd(out_b + i, _mm256_and_pd(y, finite));
  }
  return BLOCK - cpu_sum_epi64(finite_count);
}

CPU_AVX2 uint64_t cpu_compare_count_same(const void *a, const void *b) {
  const float *from_a = a, *from_b = b;
  __m256i equal = _mm256_setzero_si256();
  for (int i = 0; i < BLOCK; i += 8) equal = _mm256_sub_epi32(equal, _mm256_cmpeq_epi32(cpu_load(from_a + i), cpu_load(from_b + i)));
  return cpu_sum_epi32(equal);
}

CPU_AVX2 uint64_t cpu_compare_count_f32(const void *a, const void *b) {
  const float *from_a = a, *from_b = b;
  __m256i equal = _mm256_setzero_si256();
  for (int i = 0; i < BLOCK; i += 8) {
    const __m256 x = _mm256_loadu_ps(from_a + i), y = _mm256_loadu_ps(from_b + i);
    const __m256 are_nan = _mm256_and_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), _mm256_cmp_ps(y, y, _CMP_UNORD_Q));
    equal = _mm256_sub_epi32(equal, _mm256_castps_si256(_mm256_or_ps(_mm256_cmp_ps(x, y, _CMP_EQ_OQ), are_nan)));
  }
  return cpu_sum_epi32(equal);
}

CPU_AVX2 uint64_t cpu_compare_count_f64(const void *a, const void *b) {
  const double *from_a = a, *from_b = b;
  __m256i equal = _mm256_setzero_si256();
  for (int i = 0; i < BLOCK; i += 4) {
    const __m256d x = cpu_load_pd(from_a + i), y = cpu_load_pd(from_b + i);
    const __m256d are_nan = _mm256_and_pd(_mm256_cmp_pd(x, x, _CMP_UNORD_Q), _mm256_cmp_pd(y, y, _CMP_UNORD_Q));
    equal = _mm256_sub_epi64(equal, _mm256_castpd_si256(_mm256_or_pd(_mm256_cmp_pd(x, y, _CMP_EQ_OQ), are_nan)));
  }
  return cpu_sum_epi64(equal);
}
