/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_round_odd.h - f64 to the 16-bit formats with one rounding, by way of an f32 whose last bit says whether it is inexact. */
#ifndef CPU_ROUND_ODD_H
#define CPU_ROUND_ODD_H

#include "cpu_vector_avx2.h"

/* f64 to f32 rounded to odd: an inexact result is cut off and its last bit set, so that rounding it once more, to a
   format at least two bits shorter, gives what rounding the f64 would have given. */
CPU_INLINE_AVX2 __m128 round_to_odd(__m256d v) {
  const __m128 nearest = _mm256_cvtpd_ps(v);
  const __m256d back = _mm256_cvtps_pd(nearest);
  const __m256d sign = _mm256_set1_pd(-0.0);
  const __m256d too_far = _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, v), _CMP_GT_OQ);
  const __m256d inexact = _mm256_cmp_pd(back, v, _CMP_NEQ_OQ);
  const __m256i lanes = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
  const __m128i far_32 = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(_mm256_castpd_si256(too_far), lanes));
  const __m128i inexact_32 = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(_mm256_castpd_si256(inexact), lanes));
  const __m128i cut = _mm_add_epi32(_mm_castps_si128(nearest), far_32);
  return _mm_castsi128_ps(_mm_or_si128(cut, _mm_srli_epi32(inexact_32, 31)));
}

/* The same where no f32 would be subnormal, for less: what f32 has no room for becomes the last bit that it has. */
CPU_INLINE_AVX2 __m128 round_normal_to_odd(__m256d v) {
  const __m256i bits = _mm256_castpd_si256(v), rest_mask = _mm256_set1_epi64x(0x1fffffff);
  const __m256i carried = _mm256_add_epi64(_mm256_and_si256(bits, rest_mask), rest_mask);
  const __m256i odd = _mm256_or_si256(bits, _mm256_and_si256(carried, _mm256_set1_epi64x(0x20000000)));
  return _mm256_cvtpd_ps(_mm256_castsi256_pd(_mm256_andnot_si256(rest_mask, odd)));
}

CPU_INLINE_AVX2 __m256d is_f32_subnormal(__m256d v) {
  const __m256d magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), v);
  return _mm256_and_pd(_mm256_cmp_pd(magnitude, _mm256_set1_pd(0x1p-126), _CMP_LT_OQ),
                       _mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_NEQ_OQ));
}

/* Eight f64 to each format that a kernel may have to write, one rounding. */
CPU_INLINE_AVX2 __m256 round_to_f32(__m256d low, __m256d high) {
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}
CPU_INLINE_AVX2 __m128i round_to_bf16(__m256d low, __m256d high) {
  const __m256d subnormal = _mm256_or_pd(is_f32_subnormal(low), is_f32_subnormal(high));
  if (_mm256_movemask_pd(subnormal) != 0) return narrow_bf16(_mm256_set_m128(round_to_odd(high), round_to_odd(low)));
  return narrow_bf16(_mm256_set_m128(round_normal_to_odd(high), round_normal_to_odd(low)));
}
/* What is subnormal in f32 is far below all of f16. */
CPU_INLINE_AVX2 __m128i round_to_f16(__m256d low, __m256d high) {
  return narrow_f16(_mm256_set_m128(round_normal_to_odd(high), round_normal_to_odd(low)));
}

#endif
