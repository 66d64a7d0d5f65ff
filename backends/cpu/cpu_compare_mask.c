/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of blocks in which pairs that are not finite are zeros: they add nothing to any figure but their count. */
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
