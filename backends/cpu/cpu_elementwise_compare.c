/* SPDX-License-Identifier: Apache-2.0 */
/* compare: one function a predicate, since the instruction wants it as a constant. */
#include "cpu_elementwise_loops.h"

#define PREDICATES 6u

/* Eight lanes of all ones or zeros become eight bytes of 1 or 0. */
CPU_INLINE_AVX2 __m128i flags_of(__m256 mask) {
  const __m256i lanes = _mm256_castps_si256(mask);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  return _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
}

CPU_INLINE_AVX2 __m256 join_masks(__m256d low, __m256d high) {
  const __m256 mixed = _mm256_shuffle_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high), 0x88);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
}

/* The elements [i, i + n), n <= 8, of both operands compared. */
#define COMPARED(T, PREDICATE) _mm256_cmp_ps(load_##T(left, i), load_##T(right, i), PREDICATE)
#define COMPARED_PART(T, PREDICATE) _mm256_cmp_ps(load_part_##T(left, i, n), load_part_##T(right, i, n), PREDICATE)
#define COMPARED_f64(T, PREDICATE)                                                                                    \
  join_masks(_mm256_cmp_pd(load_f64(left, i), load_f64(right, i), PREDICATE),                                         \
             _mm256_cmp_pd(load_f64(left, i + 4), load_f64(right, i + 4), PREDICATE))
#define COMPARED_PART_f64(T, PREDICATE)                                                                               \
  join_masks(_mm256_cmp_pd(load_part_f64(left, i, n), load_part_f64(right, i, n), PREDICATE),                         \
             _mm256_cmp_pd(load_part_f64(left, i + 4, n > 4 ? n - 4 : 0),                                             \
                           load_part_f64(right, i + 4, n > 4 ? n - 4 : 0),                                            \
                           PREDICATE))

#define LOOP_COMPARE(NAME, T, WHOLE, PART, PREDICATE)                                                                 \
  CPU_AVX2 static void NAME##_##T(const void *left, const void *right, uint8_t *output, uint64_t count) {             \
    uint64_t i = 0;                                                                                                   \
    for (; i + 8 <= count; i += 8)                                                                                    \
      _mm_storel_epi64((__m128i *)(void *)(output + i), flags_of(WHOLE(T, PREDICATE)));                               \
    if (i < count) {                                                                                                  \
      const uint64_t n = count - i;                                                                                   \
      uint8_t part[8];                                                                                                \
      _mm_storel_epi64((__m128i *)(void *)part, flags_of(PART(T, PREDICATE)));                                        \
      memcpy(output + i, part, n);                                                                                    \
    }                                                                                                                 \
  }

#define DEFINE_COMPARE(T, FORMAT, BYTES, PICOSECONDS, WHOLE, PART)                                                    \
  LOOP_COMPARE(equal, T, WHOLE, PART, _CMP_EQ_OQ)                                                                     \
  LOOP_COMPARE(not_equal, T, WHOLE, PART, _CMP_NEQ_UQ)                                                                \
  LOOP_COMPARE(less, T, WHOLE, PART, _CMP_LT_OQ)                                                                      \
  LOOP_COMPARE(less_equal, T, WHOLE, PART, _CMP_LE_OQ)                                                                \
  LOOP_COMPARE(greater, T, WHOLE, PART, _CMP_GT_OQ)                                                                   \
  LOOP_COMPARE(greater_equal, T, WHOLE, PART, _CMP_GE_OQ)                                                             \
  static void compare_##T(const void *attributes, const void *const *inputs, void *output, uint64_t count) {          \
    static void (*const loops[PREDICATES])(const void *, const void *, uint8_t *, uint64_t) = {                       \
      [TM_COMPARE_EQUAL] = equal_##T,     [TM_COMPARE_NOT_EQUAL] = not_equal_##T,                                     \
      [TM_COMPARE_LESS] = less_##T,       [TM_COMPARE_LESS_EQUAL] = less_equal_##T,                                   \
      [TM_COMPARE_GREATER] = greater_##T, [TM_COMPARE_GREATER_EQUAL] = greater_equal_##T,                             \
    };                                                                                                                \
    loops[((const tm_compare_attributes *)attributes)->predicate](inputs[0], inputs[1], output, count);               \
  }                                                                                                                   \
  static const cpu_span span_compare_##T = { compare_##T, 2, { BYTES, BYTES, 1, 0 }, PICOSECONDS };                   \
  static uint64_t cost_compare_##T(const tm_operation *operation, uint32_t lanes) {                                   \
    return cpu_span_cost_ns(&span_compare_##T, operation, lanes);                                                     \
  }                                                                                                                   \
  static uint32_t refuses_compare_##T(const tm_operation *operation, uint32_t *out_operand) {                         \
    const tm_compare_attributes *attributes = operation->attributes;                                                  \
    if (attributes == NULL || attributes->predicate >= PREDICATES) return TM_REASON_ATTRIBUTE;                        \
    return cpu_span_refuses(&span_compare_##T, operation, out_operand);                                               \
  }                                                                                                                   \
  static void run_compare_##T(const cpu_call *call) { cpu_span_run(&span_compare_##T, call); }

#define KERNELS(X)                                                                                                    \
  X(f32, TM_FORMAT_F32, 4, 170, COMPARED, COMPARED_PART)                                                              \
  X(f64, TM_FORMAT_F64, 8, 240, COMPARED_f64, COMPARED_PART_f64)                                                      \
  X(bf16, TM_FORMAT_BF16, 2, 130, COMPARED, COMPARED_PART)                                                            \
  X(f16, TM_FORMAT_F16, 2, 130, COMPARED, COMPARED_PART)
KERNELS(DEFINE_COMPARE)

#define ROW(T, FORMAT, BYTES, PICOSECONDS, WHOLE, PART)                                                               \
  CPU_EXACT_ROW(TM_OP_COMPARE, "compare_" #T, compare_##T, sizeof(tm_compare_attributes), 0, FORMAT, FORMAT,          \
                TM_FORMAT_BOOL),
static const cpu_row rows[] = { KERNELS(ROW) };

const kernel_row_table cpu_rows_compare = { rows, sizeof(rows) / sizeof(rows[0]) };
