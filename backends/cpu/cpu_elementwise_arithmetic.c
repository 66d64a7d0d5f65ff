/* SPDX-License-Identifier: Apache-2.0 */
/*
 * add, sub, mul, div, sqrt of floats, exactly rounded; add, sub, mul of integers.
 *
 * bf16 and f16 are widened to f32, computed there, and narrowed: two roundings that together equal one.  f32 carries 24
 * bits, at least 2p + 2 for p = 8 (bf16) and p = 11 (f16), which is enough for + - * / and sqrt while results are
 * normal.  Below that: sums are exact.  An f16 product has 22 bits and is exact in f32.  A bf16 product has 16 bits; to
 * be rounded by f32 (at 2^-149) across or onto a tie of bf16 (an odd multiple of 2^-134) it would need 17, or be 255 *
 * 257.  A quotient a/b that is no tie h = k * 2^-134 differs from it by |a - h b| / b >= 2^-143 (f16: by 2^-22 of
 * itself), more than f32 rounds away.  sqrt is never subnormal.
 *
 * NaN: arithmetic on a NaN gives a quiet NaN whose payload is not part of the promise.  What only moves bits
 * (cpu_elementwise_select.c) keeps payloads.
 */
#include "cpu_elementwise_loops.h"

#define FLOAT_KERNELS(ONE, TWO, T, F, BYTES, SUFFIX, EASY, DIV_PS, SQRT_PS)                                           \
  TWO(TM_OP_ADD, add, T, F, BYTES, EASY, _mm256_add_##SUFFIX(a, b))                                                   \
  TWO(TM_OP_SUB, sub, T, F, BYTES, EASY, _mm256_sub_##SUFFIX(a, b))                                                   \
  TWO(TM_OP_MUL, mul, T, F, BYTES, EASY, _mm256_mul_##SUFFIX(a, b))                                                   \
  TWO(TM_OP_DIV, div, T, F, BYTES, DIV_PS, _mm256_div_##SUFFIX(a, b))                                                 \
  ONE(TM_OP_SQRT, sqrt, T, F, BYTES, SQRT_PS, _mm256_sqrt_##SUFFIX(a))

#define KERNELS(ONE, TWO)                                                                                             \
  FLOAT_KERNELS(ONE, TWO, f32, TM_FORMAT_F32, 4, ps, 80, 300, 240)                                                    \
  FLOAT_KERNELS(ONE, TWO, f64, TM_FORMAT_F64, 8, pd, 160, 750, 650)                                                   \
  FLOAT_KERNELS(ONE, TWO, bf16, TM_FORMAT_BF16, 2, ps, 200, 300, 280)                                                 \
  FLOAT_KERNELS(ONE, TWO, f16, TM_FORMAT_F16, 2, ps, 100, 140, 190)                                                   \
  TWO(TM_OP_ADD, add, i32, TM_FORMAT_I32, 4, 60, _mm256_add_epi32(a, b))                                              \
  TWO(TM_OP_SUB, sub, i32, TM_FORMAT_I32, 4, 60, _mm256_sub_epi32(a, b))                                              \
  TWO(TM_OP_MUL, mul, i32, TM_FORMAT_I32, 4, 60, _mm256_mullo_epi32(a, b))                                            \
  TWO(TM_OP_ADD, add, i8, TM_FORMAT_I8, 1, 20, _mm256_add_epi8(a, b))                                                 \
  TWO(TM_OP_SUB, sub, i8, TM_FORMAT_I8, 1, 20, _mm256_sub_epi8(a, b))                                                 \
  TWO(TM_OP_MUL, mul, i8, TM_FORMAT_I8, 1, 40, multiply_i8(a, b))

/* There is no 8-bit product: even and odd bytes apart, low halves put together again. */
CPU_INLINE_AVX2 __m256i multiply_i8(__m256i a, __m256i b) {
  const __m256i low_byte = _mm256_set1_epi16(0xff);
  const __m256i even = _mm256_and_si256(_mm256_mullo_epi16(a, b), low_byte);
  const __m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
  return _mm256_or_si256(even, _mm256_slli_epi16(odd, 8));
}

#define LOOP_1(OP, NAME, T, FORMAT, BYTES, PICOSECONDS, EXPRESSION) CPU_LOOP_1(NAME, T, BYTES, PICOSECONDS, EXPRESSION)
#define LOOP_2(OP, NAME, T, FORMAT, BYTES, PICOSECONDS, EXPRESSION) CPU_LOOP_2(NAME, T, BYTES, PICOSECONDS, EXPRESSION)
KERNELS(LOOP_1, LOOP_2)

#define ROW_1(OP, NAME, T, FORMAT, BYTES, PICOSECONDS, EXPRESSION)                                                    \
  CPU_EXACT_ROW(OP, #NAME "_" #T, NAME##_##T, 0, CPU_ALIASES_1, FORMAT, FORMAT),
#define ROW_2(OP, NAME, T, FORMAT, BYTES, PICOSECONDS, EXPRESSION)                                                    \
  CPU_EXACT_ROW(OP, #NAME "_" #T, NAME##_##T, 0, CPU_ALIASES_2, FORMAT, FORMAT, FORMAT),
static const cpu_row rows[] = { KERNELS(ROW_1, ROW_2) };

const kernel_row_table cpu_rows_arithmetic = { rows, sizeof(rows) / sizeof(rows[0]) };
