/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_round_odd.h - f64 to the formats of 16 and 8 bits with one rounding, by way of an f32 whose last bit says if it is exact. */
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

/* Eight f64 to each format that a kernel may have to write, one rounding. */
CPU_INLINE_AVX2 __m256 round_to_f32(__m256d low, __m256d high) {
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

#define LEAST_NORMAL 0x38100000 /* upper words of f64: the smallest normal number of bf16, and 2^128 */
#define TOO_LARGE    0x47f00000

/* On the upper words of the f64, with a bit for what the lower ones hold: rounding is a carry, and changing the bias a
   subtraction.  What is not a normal number or zero takes the long way. */
CPU_INLINE_AVX2 __m128i round_to_bf16(__m256d low, __m256d high) {
  const __m256 a = _mm256_castpd_ps(low), b = _mm256_castpd_ps(high);
  const __m256i rest = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
  const __m256i upper = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
  const __m256i nothing = _mm256_setzero_si256(), one = _mm256_set1_epi32(1);
  const __m256i bits = _mm256_or_si256(upper, _mm256_andnot_si256(_mm256_cmpeq_epi32(rest, nothing), one));
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)), is_zero = _mm256_cmpeq_epi32(magnitude, nothing);
  const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(LEAST_NORMAL), magnitude);
  const __m256i is_large = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(TOO_LARGE - 1));
  const __m256i is_other = _mm256_or_si256(_mm256_andnot_si256(is_zero, is_small), is_large);
  if (!_mm256_testz_si256(is_other, is_other)) return narrow_bf16(_mm256_set_m128(round_to_odd(high), round_to_odd(low)));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 13), one);
  const __m256i raised = _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0xfff)), odd);
  const __m256i biased = _mm256_sub_epi32(_mm256_srli_epi32(raised, 13), _mm256_set1_epi32((1023 - 127) << 7));
  const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x8000));
  const __m256i words = _mm256_or_si256(_mm256_andnot_si256(is_zero, biased), sign);
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  return _mm_shuffle_epi32(packed, 0xd8);
}

/* What is subnormal in f32 is far below all of f16. */
CPU_INLINE_AVX2 __m128i round_to_f16(__m256d low, __m256d high) {
  return narrow_f16(_mm256_set_m128(round_normal_to_odd(high), round_normal_to_odd(low)));
}

/* ---- 8 bits ---- */

/* An f16 that is cut off, with its last bit set where it is inexact; what is too large is the largest, and inexact. */
CPU_INLINE_AVX2 __m128i cut_to_f16(__m256 v) {
  const __m128i cut = _mm256_cvtps_ph(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m256i differs = _mm256_castps_si256(_mm256_cmp_ps(widen_f16(cut), v, _CMP_NEQ_OQ));
  const __m128i inexact = _mm_packs_epi32(_mm256_castsi256_si128(differs), _mm256_extracti128_si256(differs, 1));
  return _mm_or_si128(cut, _mm_srli_epi16(inexact, 15));
}

/* Codes of 16 bits without their last `bits`, to nearest, ties to even; `half` is what lies just below a tie. */
CPU_INLINE_AVX2 __m128i round_code(__m128i code, int bits, int half) {
  const __m128i odd = _mm_and_si128(_mm_srli_epi16(code, bits), _mm_set1_epi16(1));
  return _mm_srli_epi16(_mm_add_epi16(_mm_add_epi16(code, _mm_set1_epi16((int16_t)half)), odd), bits);
}

/* Eight bytes, in 16 bits each: f16 has the same exponents.  NaN is not rounded, which could carry into the sign. */
CPU_INLINE_AVX2 __m128i round_to_f8_e5m2(__m256d low, __m256d high) {
  const __m128i code = cut_to_f16(_mm256_set_m128(round_normal_to_odd(high), round_normal_to_odd(low)));
  const __m128i magnitude = _mm_and_si128(code, _mm_set1_epi16(0x7fff)), sign = _mm_srli_epi16(_mm_xor_si128(code, magnitude), 8);
  const __m128i is_nan = _mm_cmpgt_epi16(magnitude, _mm_set1_epi16(0x7c00));
  return _mm_or_si128(_mm_blendv_epi8(round_code(magnitude, 8, 0x7f), _mm_srli_epi16(magnitude, 8), is_nan), sign);
}

/* The exponents are those of an f16 of 2^-8 times the value; behind the last finite code there is NaN alone. */
CPU_INLINE_AVX2 __m128i round_to_f8_e4m3fn(__m256d low, __m256d high) {
  const __m256 odd = _mm256_set_m128(round_normal_to_odd(high), round_normal_to_odd(low));
  const __m128i code = cut_to_f16(_mm256_mul_ps(odd, _mm256_set1_ps(0x1p-8f)));
  const __m128i magnitude = _mm_and_si128(code, _mm_set1_epi16(0x7fff)), sign = _mm_srli_epi16(_mm_xor_si128(code, magnitude), 8);
  return _mm_or_si128(_mm_min_epu16(round_code(magnitude, 7, 0x3f), _mm_set1_epi16(0x7f)), sign);
}

#endif
