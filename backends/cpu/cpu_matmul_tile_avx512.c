/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register tiles of AVX-512: 12 x 2 vectors of sums in 24 registers, two for b, the rest for what is broadcast from a.
 * There are functions for each number of rows, with the second vector and without; columns that do not exist are masked.
 */
#include <immintrin.h>

#include "cpu_matmul.h"

#define CPU_INLINE_AVX512 static inline __attribute__((always_inline)) CPU_AVX512
#define TILE_ROWS 12

#define ROWS_1(X, T)  X(0, T)
#define ROWS_2(X, T)  ROWS_1(X, T) X(1, T)
#define ROWS_3(X, T)  ROWS_2(X, T) X(2, T)
#define ROWS_4(X, T)  ROWS_3(X, T) X(3, T)
#define ROWS_5(X, T)  ROWS_4(X, T) X(4, T)
#define ROWS_6(X, T)  ROWS_5(X, T) X(5, T)
#define ROWS_7(X, T)  ROWS_6(X, T) X(6, T)
#define ROWS_8(X, T)  ROWS_7(X, T) X(7, T)
#define ROWS_9(X, T)  ROWS_8(X, T) X(8, T)
#define ROWS_10(X, T) ROWS_9(X, T) X(9, T)
#define ROWS_11(X, T) ROWS_10(X, T) X(10, T)
#define ROWS_12(X, T) ROWS_11(X, T) X(11, T)

/* What differs between the kinds of sums. */
#define VALUE_f32  float
#define VALUE_f64  double
#define VECTOR_f32 __m512
#define VECTOR_f64 __m512d
#define LANES_f32  16u
#define LANES_f64  8u
#define MASK_f32   __mmask16
#define MASK_f64   __mmask8
CPU_INLINE_AVX512 __m512 zero_f32(void) { return _mm512_setzero_ps(); }
CPU_INLINE_AVX512 __m512d zero_f64(void) { return _mm512_setzero_pd(); }
CPU_INLINE_AVX512 __m512 repeat_f32(const float *p) { return _mm512_set1_ps(*p); }
CPU_INLINE_AVX512 __m512d repeat_f64(const double *p) { return _mm512_set1_pd(*p); }
CPU_INLINE_AVX512 __m512 load_f32(const float *p) { return _mm512_loadu_ps(p); }
CPU_INLINE_AVX512 __m512d load_f64(const double *p) { return _mm512_loadu_pd(p); }
CPU_INLINE_AVX512 __m512 multiply_f32(__m512 a, __m512 b, __m512 sum) { return _mm512_fmadd_ps(a, b, sum); }
CPU_INLINE_AVX512 __m512d multiply_f64(__m512d a, __m512d b, __m512d sum) { return _mm512_fmadd_pd(a, b, sum); }
CPU_INLINE_AVX512 __m512 plus_f32(__m512 sum, const void *y, __mmask16 some) {
  return _mm512_add_ps(sum, _mm512_maskz_loadu_ps(some, y));
}
CPU_INLINE_AVX512 __m512d plus_f64(__m512d sum, const void *y, __mmask8 some) {
  return _mm512_add_pd(sum, _mm512_maskz_loadu_pd(some, y));
}
CPU_INLINE_AVX512 void store_f32(void *y, __mmask16 some, __m512 sum) { _mm512_mask_storeu_ps(y, some, sum); }
CPU_INLINE_AVX512 void store_f64(void *y, __mmask8 some, __m512d sum) { _mm512_mask_storeu_pd(y, some, sum); }

/* The first of `lanes` lanes. */
static inline uint32_t first_lanes(uint32_t count, uint32_t lanes) { return (1u << (count < lanes ? count : lanes)) - 1u; }

#define ROW(i) ((char *)call->y + (i) * call->y_row_bytes)
#define DECLARE(i, T)  VECTOR_##T left_##i = zero_##T(), right_##i = zero_##T();
#define PREFETCH(i, T) _mm_prefetch(ROW(i), _MM_HINT_T0); _mm_prefetch(ROW(i) + 64, _MM_HINT_T0);
#define MULTIPLY(i, T)                                                                                                \
  {                                                                                                                   \
    const VECTOR_##T value = repeat_##T(a + (i));                                                                     \
    left_##i = multiply_##T(value, b_left, left_##i);                                                                 \
    if (is_wide) right_##i = multiply_##T(value, b_right, right_##i);                                                 \
  }
#define STEP(FOR_ROWS, T)                                                                                             \
  {                                                                                                                   \
    const VECTOR_##T b_left = load_##T(b), b_right = is_wide ? load_##T(b + LANES_##T) : zero_##T();                  \
    FOR_ROWS(MULTIPLY, T)                                                                                             \
    a += TILE_ROWS;                                                                                                   \
    b += 2 * LANES_##T;                                                                                               \
  }
#define ADD(i, T)                                                                                                     \
  left_##i = plus_##T(left_##i, ROW(i), left);                                                                        \
  if (is_wide) right_##i = plus_##T(right_##i, ROW(i) + 64, right);
#define STORE(i, T)                                                                                                   \
  store_##T(ROW(i), left, left_##i);                                                                                  \
  if (is_wide) store_##T(ROW(i) + 64, right, right_##i);

#define DEFINE_ROWS(COUNT, T)                                                                                         \
  CPU_INLINE_AVX512 void sum_##COUNT##_##T(const cpu_tile_call *call, const int is_wide) {                            \
    const VALUE_##T *a = call->a, *b = call->b;                                                                       \
    ROWS_##COUNT(DECLARE, T)                                                                                          \
    ROWS_##COUNT(PREFETCH, T)                                                                                         \
    for (uint64_t k = call->depth / 4; k > 0; k--) {                                                                  \
      STEP(ROWS_##COUNT, T) STEP(ROWS_##COUNT, T) STEP(ROWS_##COUNT, T) STEP(ROWS_##COUNT, T)                         \
    }                                                                                                                 \
    for (uint64_t k = call->depth % 4; k > 0; k--) STEP(ROWS_##COUNT, T)                                              \
    const MASK_##T left = (MASK_##T)first_lanes(call->columns, LANES_##T);                                            \
    const MASK_##T right = (MASK_##T)(is_wide ? first_lanes(call->columns - LANES_##T, LANES_##T) : 0);               \
    if (call->accumulate) {                                                                                           \
      ROWS_##COUNT(ADD, T)                                                                                            \
    }                                                                                                                 \
    ROWS_##COUNT(STORE, T)                                                                                            \
  }                                                                                                                   \
  CPU_AVX512 static void narrow_##COUNT##_##T(const cpu_tile_call *call) { sum_##COUNT##_##T(call, 0); }              \
  CPU_AVX512 static void wide_##COUNT##_##T(const cpu_tile_call *call) { sum_##COUNT##_##T(call, 1); }

#define FOR_COUNTS(X, T) X(1, T) X(2, T) X(3, T) X(4, T) X(5, T) X(6, T) X(7, T) X(8, T) X(9, T) X(10, T) X(11, T) X(12, T)
#define NARROW(COUNT, T) narrow_##COUNT##_##T,
#define WIDE(COUNT, T)   wide_##COUNT##_##T,

#define DEFINE_TILE(T, PRODUCT_NS)                                                                                    \
  FOR_COUNTS(DEFINE_ROWS, T)                                                                                          \
  static void tile_##T(const cpu_tile_call *call) {                                                                   \
    static void (*const by_rows[2][TILE_ROWS])(const cpu_tile_call *) = { { FOR_COUNTS(NARROW, T) }, { FOR_COUNTS(WIDE, T) } };\
    by_rows[call->columns > LANES_##T][call->rows - 1](call);                                                         \
  }                                                                                                                   \
  const cpu_matmul_tile cpu_matmul_tile_##T##_avx512 = {                                                              \
    .run = tile_##T, .rows = TILE_ROWS, .columns = 2 * LANES_##T, .value_bytes = sizeof(VALUE_##T), .takes_parts = 1, \
    .product_ns = (PRODUCT_NS),                                                                                       \
  };
DEFINE_TILE(f32, 0.0108)
DEFINE_TILE(f64, 0.0216)
