/* SPDX-License-Identifier: Apache-2.0 */
/* neg, abs, relu, clamp and where: they choose between bits and never compute new ones, so NaN payloads survive. */
#include "cpu_elementwise_loops.h"

CPU_INLINE_AVX2 __m256 sign_ps(void) { return _mm256_set1_ps(-0.0f); }
CPU_INLINE_AVX2 __m256d sign_pd(void) { return _mm256_set1_pd(-0.0); }
CPU_INLINE_AVX2 __m256i sign_w16(void) { return _mm256_set1_epi16((int16_t)-0x8000); }

CPU_INLINE_AVX2 __m256 relu_ps(__m256 a) {
  return _mm256_andnot_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_LT_OQ), a);
}
CPU_INLINE_AVX2 __m256d relu_pd(__m256d a) {
  return _mm256_andnot_pd(_mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_LT_OQ), a);
}

/* As signed integers the negative numbers of a 16-bit float lie between -0 (the least integer) and its first NaN. */
CPU_INLINE_AVX2 __m256i relu_w16(__m256i a, int16_t first_negative_nan) {
  const __m256i not_minus_zero = _mm256_cmpgt_epi16(a, sign_w16());
  const __m256i below_nan = _mm256_cmpgt_epi16(_mm256_set1_epi16(first_negative_nan), a);
  return _mm256_andnot_si256(_mm256_and_si256(not_minus_zero, below_nan), a);
}
#define FIRST_NEGATIVE_NAN_BF16 ((int16_t)(0xff81 - 0x10000))
#define FIRST_NEGATIVE_NAN_F16  ((int16_t)(0xfc01 - 0x10000))

CPU_INLINE_AVX2 __m256 clamp_ps(__m256 x, __m256 low, __m256 high) {
  const __m256 below_high = _mm256_blendv_ps(x, high, _mm256_cmp_ps(x, high, _CMP_GT_OQ));
  return _mm256_blendv_ps(below_high, low, _mm256_cmp_ps(x, low, _CMP_LT_OQ));
}
CPU_INLINE_AVX2 __m256d clamp_pd(__m256d x, __m256d low, __m256d high) {
  const __m256d below_high = _mm256_blendv_pd(x, high, _mm256_cmp_pd(x, high, _CMP_GT_OQ));
  return _mm256_blendv_pd(below_high, low, _mm256_cmp_pd(x, low, _CMP_LT_OQ));
}

/* Sixteen comparisons a < b of 16-bit floats, as a mask of 16-bit lanes. */
#define DEFINE_LESS(T)                                                                                                \
  CPU_INLINE_AVX2 __m256i less_##T(__m256i a, __m256i b) {                                                            \
    const __m256 low = _mm256_cmp_ps(widen_##T(_mm256_castsi256_si128(a)), widen_##T(_mm256_castsi256_si128(b)),      \
                                     _CMP_LT_OQ);                                                                     \
    const __m256 high = _mm256_cmp_ps(widen_##T(_mm256_extracti128_si256(a, 1)),                                      \
                                      widen_##T(_mm256_extracti128_si256(b, 1)), _CMP_LT_OQ);                         \
    const __m256i mixed = _mm256_packs_epi32(_mm256_castps_si256(low), _mm256_castps_si256(high));                    \
    return _mm256_permute4x64_epi64(mixed, 0xd8);                                                                     \
  }                                                                                                                   \
  CPU_INLINE_AVX2 __m256i clamp_w16_##T(__m256i x, __m256i low, __m256i high) {                                       \
    const __m256i below_high = _mm256_blendv_epi8(x, high, less_##T(high, x));                                        \
    return _mm256_blendv_epi8(below_high, low, less_##T(x, low));                                                     \
  }
DEFINE_LESS(bf16)
DEFINE_LESS(f16)

CPU_LOOP_1(neg, f32, 4, 60, _mm256_xor_ps(a, sign_ps()))
CPU_LOOP_1(neg, f64, 8, 120, _mm256_xor_pd(a, sign_pd()))
CPU_LOOP_1(neg, w16, 2, 30, _mm256_xor_si256(a, sign_w16()))
CPU_LOOP_1(abs, f32, 4, 60, _mm256_andnot_ps(sign_ps(), a))
CPU_LOOP_1(abs, w16, 2, 30, _mm256_andnot_si256(sign_w16(), a))
CPU_LOOP_1(relu, f32, 4, 60, relu_ps(a))
CPU_LOOP_1(relu, f64, 8, 120, relu_pd(a))
CPU_LOOP_1(relu_bf16, w16, 2, 30, relu_w16(a, FIRST_NEGATIVE_NAN_BF16))
CPU_LOOP_1(relu_f16, w16, 2, 30, relu_w16(a, FIRST_NEGATIVE_NAN_F16))
CPU_LOOP_3(clamp, f32, 4, 80, clamp_ps(a, b, c))
CPU_LOOP_3(clamp, f64, 8, 160, clamp_pd(a, b, c))
CPU_LOOP_3(clamp_bf16, w16, 2, 200, clamp_w16_bf16(a, b, c))
CPU_LOOP_3(clamp_f16, w16, 2, 180, clamp_w16_f16(a, b, c))

/* where: all ones in lanes whose condition byte is zero, for elements of 8, 4 and 2 bytes. */
CPU_INLINE_AVX2 __m256d is_false_f64(const uint8_t *condition) {
  int32_t bytes;
  memcpy(&bytes, condition, sizeof(bytes));
  const __m256i lanes = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes));
  return _mm256_castsi256_pd(_mm256_cmpeq_epi64(lanes, _mm256_setzero_si256()));
}
CPU_INLINE_AVX2 __m256 is_false_f32(const uint8_t *condition) {
  const __m256i lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)condition));
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32(lanes, _mm256_setzero_si256()));
}
CPU_INLINE_AVX2 __m256i is_false_w16(const uint8_t *condition) {
  const __m256i lanes = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)condition));
  return _mm256_cmpeq_epi16(lanes, _mm256_setzero_si256());
}

#define LOOP_WHERE(T, BYTES, PICOSECONDS, BLEND)                                                                      \
  CPU_AVX2 static void where_##T(const void *attributes, const void *const *inputs, void *output, uint64_t count) {   \
    const uint8_t *condition = inputs[0];                                                                             \
    const void *if_true = inputs[1], *if_false = inputs[2];                                                           \
    uint64_t i = 0;                                                                                                   \
    (void)attributes;                                                                                                 \
    for (; i + CPU_LANES_##T <= count; i += CPU_LANES_##T) {                                                          \
      const CPU_VECTOR_##T a = load_##T(if_true, i), b = load_##T(if_false, i);                                       \
      store_##T(output, i, BLEND(a, b, is_false_##T(condition + i)));                                                 \
    }                                                                                                                 \
    if (i < count) {                                                                                                  \
      const uint64_t n = count - i;                                                                                   \
      const CPU_VECTOR_##T a = load_part_##T(if_true, i, n), b = load_part_##T(if_false, i, n);                       \
      uint8_t part[CPU_LANES_##T] = { 0 };                                                                            \
      memcpy(part, condition + i, n);                                                                                 \
      store_part_##T(output, i, BLEND(a, b, is_false_##T(part)), n);                                                  \
    }                                                                                                                 \
  }                                                                                                                   \
  static const cpu_span span_where_##T = { where_##T, 3, { 1, BYTES, BYTES, BYTES }, PICOSECONDS };                   \
  CPU_SPAN_ROW_FUNCTIONS(where_##T)
LOOP_WHERE(f64, 8, 160, _mm256_blendv_pd)
LOOP_WHERE(f32, 4, 80, _mm256_blendv_ps)
LOOP_WHERE(w16, 2, 60, _mm256_blendv_epi8)

#define ROW_1(OP, TEXT, SPAN, FORMAT) CPU_EXACT_ROW(OP, TEXT, SPAN, 0, CPU_ALIASES_1, FORMAT, FORMAT)
#define ROW_CLAMP(TEXT, SPAN, FORMAT)                                                                                 \
  CPU_EXACT_ROW(TM_OP_CLAMP, TEXT, SPAN, 0, CPU_ALIASES_3, FORMAT, FORMAT, FORMAT, FORMAT)
#define ROW_WHERE(TEXT, SPAN, FORMAT)                                                                                 \
  CPU_EXACT_ROW(TM_OP_WHERE, TEXT, SPAN, 0, CPU_ALIASES_3 & ~CPU_ALIASES_1, TM_FORMAT_BOOL, FORMAT, FORMAT, FORMAT)

static const cpu_row rows[] = {
  ROW_1(TM_OP_NEG, "neg_f32", neg_f32, TM_FORMAT_F32),
  ROW_1(TM_OP_NEG, "neg_f64", neg_f64, TM_FORMAT_F64),
  ROW_1(TM_OP_NEG, "neg_bf16", neg_w16, TM_FORMAT_BF16),
  ROW_1(TM_OP_NEG, "neg_f16", neg_w16, TM_FORMAT_F16),
  ROW_1(TM_OP_ABS, "abs_f32", abs_f32, TM_FORMAT_F32),
  ROW_1(TM_OP_ABS, "abs_bf16", abs_w16, TM_FORMAT_BF16),
  ROW_1(TM_OP_ABS, "abs_f16", abs_w16, TM_FORMAT_F16),
  ROW_1(TM_OP_RELU, "relu_f32", relu_f32, TM_FORMAT_F32),
  ROW_1(TM_OP_RELU, "relu_f64", relu_f64, TM_FORMAT_F64),
  ROW_1(TM_OP_RELU, "relu_bf16", relu_bf16_w16, TM_FORMAT_BF16),
  ROW_1(TM_OP_RELU, "relu_f16", relu_f16_w16, TM_FORMAT_F16),
  ROW_CLAMP("clamp_f32", clamp_f32, TM_FORMAT_F32),
  ROW_CLAMP("clamp_f64", clamp_f64, TM_FORMAT_F64),
  ROW_CLAMP("clamp_bf16", clamp_bf16_w16, TM_FORMAT_BF16),
  ROW_CLAMP("clamp_f16", clamp_f16_w16, TM_FORMAT_F16),
  ROW_WHERE("where_f64", where_f64, TM_FORMAT_F64),
  ROW_WHERE("where_f32", where_f32, TM_FORMAT_F32),
  ROW_WHERE("where_bf16", where_w16, TM_FORMAT_BF16),
  ROW_WHERE("where_f16", where_w16, TM_FORMAT_F16),
};

const kernel_row_table cpu_rows_select = { rows, sizeof(rows) / sizeof(rows[0]) };
