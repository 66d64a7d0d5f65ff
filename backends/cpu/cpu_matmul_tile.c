/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register tiles of AVX2: 6 x 2 vectors of sums in 12 registers, two for b, the rest for what is broadcast from a.  Each
 * sum is named, because arrays of vectors end up in memory when an optimizer does not unroll the loops over them.
 */
#include "cpu_matmul.h"
#include "cpu_vector_avx2.h"

#define TILE_ROWS 6
#define FOR_ROWS(X, T) X(0, T) X(1, T) X(2, T) X(3, T) X(4, T) X(5, T)

/* What differs between the kinds of sums; multiply_i32 takes pairs of 16-bit values. */
#define VALUE_f32 float
#define VALUE_f64 double
#define VALUE_i32 int32_t
CPU_INLINE_AVX2 __m256 zero_f32(void) { return _mm256_setzero_ps(); }
CPU_INLINE_AVX2 __m256d zero_f64(void) { return _mm256_setzero_pd(); }
CPU_INLINE_AVX2 __m256i zero_i32(void) { return _mm256_setzero_si256(); }
CPU_INLINE_AVX2 __m256 repeat_f32(const float *p) { return _mm256_broadcast_ss(p); }
CPU_INLINE_AVX2 __m256d repeat_f64(const double *p) { return _mm256_broadcast_sd(p); }
CPU_INLINE_AVX2 __m256i repeat_i32(const int32_t *p) { return _mm256_set1_epi32(*p); }
CPU_INLINE_AVX2 __m256 multiply_f32(__m256 a, __m256 b, __m256 sum) { return _mm256_fmadd_ps(a, b, sum); }
CPU_INLINE_AVX2 __m256d multiply_f64(__m256d a, __m256d b, __m256d sum) { return _mm256_fmadd_pd(a, b, sum); }
CPU_INLINE_AVX2 __m256i multiply_i32(__m256i a, __m256i b, __m256i sum) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
CPU_INLINE_AVX2 __m256 plus_f32(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
CPU_INLINE_AVX2 __m256d plus_f64(__m256d a, __m256d b) { return _mm256_add_pd(a, b); }
CPU_INLINE_AVX2 __m256i plus_i32(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }

#define ROW(i) ((char *)call->y + (i) * call->y_row_bytes)
#define DECLARE(i, T)  CPU_VECTOR_##T left_##i = zero_##T(), right_##i = zero_##T();
#define PREFETCH(i, T) _mm_prefetch(ROW(i), _MM_HINT_T0);
#define MULTIPLY(i, T)                                                                                                \
  {                                                                                                                   \
    const CPU_VECTOR_##T value = repeat_##T(a + (i));                                                                 \
    left_##i = multiply_##T(value, b_left, left_##i);                                                                 \
    right_##i = multiply_##T(value, b_right, right_##i);                                                              \
  }
#define STEP(T)                                                                                                       \
  {                                                                                                                   \
    const CPU_VECTOR_##T b_left = load_##T(b, 0);                                                                     \
    const CPU_VECTOR_##T b_right = load_##T(b, CPU_LANES_##T);                                                        \
    FOR_ROWS(MULTIPLY, T)                                                                                             \
    a += TILE_ROWS;                                                                                                   \
    b += 2 * CPU_LANES_##T;                                                                                           \
  }
#define ADD(i, T)                                                                                                     \
  left_##i = plus_##T(left_##i, load_##T(ROW(i), 0));                                                                 \
  right_##i = plus_##T(right_##i, load_##T(ROW(i), CPU_LANES_##T));
#define STORE(i, T)                                                                                                   \
  store_##T(ROW(i), 0, left_##i);                                                                                     \
  store_##T(ROW(i), CPU_LANES_##T, right_##i);

#define DEFINE_TILE(NAME, T, PRODUCT_NS)                                                                              \
  CPU_AVX2 static void tile_##NAME(const cpu_tile_call *call) {                                                       \
    const VALUE_##T *a = call->a, *b = call->b;                                                                       \
    FOR_ROWS(DECLARE, T)                                                                                              \
    FOR_ROWS(PREFETCH, T)                                                                                             \
    for (uint64_t k = call->depth / 4; k > 0; k--) {                                                                  \
      STEP(T) STEP(T) STEP(T) STEP(T)                                                                                 \
    }                                                                                                                 \
    for (uint64_t k = call->depth % 4; k > 0; k--) STEP(T)                                                            \
    if (call->accumulate) {                                                                                           \
      FOR_ROWS(ADD, T)                                                                                                \
    }                                                                                                                 \
    FOR_ROWS(STORE, T)                                                                                                \
  }                                                                                                                   \
  const cpu_matmul_tile cpu_matmul_tile_##NAME##_avx2 = {                                                             \
    .run = tile_##NAME, .rows = TILE_ROWS, .columns = 2 * CPU_LANES_##T, .value_bytes = sizeof(VALUE_##T),            \
    .product_ns = (PRODUCT_NS),                                                                                       \
  };
DEFINE_TILE(f32, f32, 0.0205)
DEFINE_TILE(f64, f64, 0.041)
DEFINE_TILE(i8, i32, 0.028)             /* a packed value is two of them */
