/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lerp: a + t * (b - a) in f64, each step rounded there, then once to the format.  Where t is 0 or 1, or a equals b, an
 * operand is the result, bit for bit.
 */
#include "cpu_elementwise_loops.h"
#include "cpu_round_odd.h"

CPU_INLINE_AVX2 __m256d line_pd(__m256d a, __m256d b, __m256d t) {
  return _mm256_add_pd(a, _mm256_mul_pd(t, _mm256_sub_pd(b, a)));
}

CPU_INLINE_AVX2 __m256d lerp_pd(__m256d a, __m256d b, __m256d t) {
  const __m256d is_start = _mm256_cmp_pd(t, _mm256_setzero_pd(), _CMP_EQ_OQ);
  const __m256d take_a = _mm256_or_pd(is_start, _mm256_cmp_pd(a, b, _CMP_EQ_OQ));
  const __m256d take_b = _mm256_cmp_pd(t, _mm256_set1_pd(1.0), _CMP_EQ_OQ);
  return _mm256_blendv_pd(_mm256_blendv_pd(line_pd(a, b, t), b, take_b), a, take_a);
}

CPU_INLINE_AVX2 __m256 takes_a(__m256 a, __m256 b, __m256 t) {
  return _mm256_or_ps(_mm256_cmp_ps(t, _mm256_setzero_ps(), _CMP_EQ_OQ), _mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
CPU_INLINE_AVX2 __m256 takes_b(__m256 t) { return _mm256_cmp_ps(t, _mm256_set1_ps(1.0f), _CMP_EQ_OQ); }

CPU_INLINE_AVX2 __m256 lerp_ps(__m256 a, __m256 b, __m256 t) {
  const __m128 low = _mm256_cvtpd_ps(line_pd(low_half(a), low_half(b), low_half(t)));
  const __m128 high = _mm256_cvtpd_ps(line_pd(high_half(a), high_half(b), high_half(t)));
  const __m256 line = _mm256_set_m128(high, low);
  return _mm256_blendv_ps(_mm256_blendv_ps(line, b, takes_b(t)), a, takes_a(a, b, t));
}

CPU_INLINE_AVX2 __m128i mask_16(__m256 mask) {
  const __m256i lanes = _mm256_castps_si256(mask);
  return _mm_packs_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
}

/* Operands are chosen as they lie, since widening would make a signalling NaN quiet. */
#define DEFINE_LERP_HALF(T)                                                                                           \
  CPU_INLINE_AVX2 __m128i lerp_##T(__m128i a16, __m128i b16, __m128i t16) {                                           \
    const __m256 a = widen_##T(a16), b = widen_##T(b16), t = widen_##T(t16);                                          \
    const __m128 low = round_to_odd(line_pd(low_half(a), low_half(b), low_half(t)));                                  \
    const __m128 high = round_to_odd(line_pd(high_half(a), high_half(b), high_half(t)));                              \
    const __m128i line = narrow_##T(_mm256_set_m128(high, low));                                                      \
    return _mm_blendv_epi8(_mm_blendv_epi8(line, b16, mask_16(takes_b(t))), a16, mask_16(takes_a(a, b, t)));          \
  }
DEFINE_LERP_HALF(bf16)
DEFINE_LERP_HALF(f16)

#define KERNELS(X)                                                                                                    \
  X(f32, lerp, f32, TM_FORMAT_F32, 4, 430, lerp_ps(a, b, c))                                                          \
  X(f64, lerp, f64, TM_FORMAT_F64, 8, 650, lerp_pd(a, b, c))                                                          \
  X(bf16, lerp_bf16, 16, TM_FORMAT_BF16, 2, 1150, lerp_bf16(a, b, c))                                                 \
  X(f16, lerp_f16, 16, TM_FORMAT_F16, 2, 950, lerp_f16(a, b, c))

#define LOOP(TEXT, NAME, T, FORMAT, BYTES, PICOSECONDS, EXPRESSION) CPU_LOOP_3(NAME, T, BYTES, PICOSECONDS, EXPRESSION)
KERNELS(LOOP)

#define ROW(TEXT, NAME, T, FORMAT, BYTES, PICOSECONDS, EXPRESSION)                                                    \
  CPU_EXACT_ROW(TM_OP_LERP, "lerp_" #TEXT, NAME##_##T, 0, CPU_ALIASES_3, FORMAT, FORMAT, FORMAT, FORMAT),
static const cpu_row rows[] = { KERNELS(ROW) };

const kernel_row_table cpu_rows_lerp = { rows, sizeof(rows) / sizeof(rows[0]) };
