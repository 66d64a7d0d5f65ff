/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register tile: 6 x 16 sums in 12 registers, two for b, the rest for what is broadcast from a.  Each sum is named,
 * because arrays of vectors end up in memory when an optimizer does not unroll the loops over them.
 */
#include "cpu_matmul.h"
#include "cpu_vector_avx2.h"

#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)

#define DECLARE(i) __m256 left_##i = _mm256_setzero_ps(), right_##i = _mm256_setzero_ps();
#define MULTIPLY(i)                                                                                                   \
  {                                                                                                                   \
    const __m256 value = _mm256_broadcast_ss(a + (i));                                                                \
    left_##i = _mm256_fmadd_ps(value, b0, left_##i);                                                                  \
    right_##i = _mm256_fmadd_ps(value, b1, right_##i);                                                                \
  }
#define STEP                                                                                                          \
  {                                                                                                                   \
    const __m256 b0 = _mm256_loadu_ps(b);                                                                             \
    const __m256 b1 = _mm256_loadu_ps(b + 8);                                                                         \
    FOR_ROWS(MULTIPLY)                                                                                                \
    a += MATMUL_TILE_ROWS;                                                                                            \
    b += MATMUL_TILE_COLUMNS;                                                                                         \
  }
#define ROW(i) ((float *)(void *)((char *)y + (i) * y_row_bytes))
#define PREFETCH(i) _mm_prefetch((const char *)ROW(i), _MM_HINT_T0);
#define ADD(i)                                                                                                        \
  left_##i = _mm256_add_ps(left_##i, _mm256_loadu_ps(ROW(i)));                                                        \
  right_##i = _mm256_add_ps(right_##i, _mm256_loadu_ps(ROW(i) + 8));
#define STORE(i)                                                                                                      \
  _mm256_storeu_ps(ROW(i), left_##i);                                                                                 \
  _mm256_storeu_ps(ROW(i) + 8, right_##i);

CPU_AVX2 void cpu_matmul_tile(const float *a, const float *b, uint64_t depth, float *y, int64_t y_row_bytes,
                              uint32_t accumulate) {
  FOR_ROWS(DECLARE)
  FOR_ROWS(PREFETCH)
  for (uint64_t k = depth / 4; k > 0; k--) {
    STEP STEP STEP STEP
  }
  for (uint64_t k = depth % 4; k > 0; k--) STEP
  if (accumulate) {
    FOR_ROWS(ADD)
  }
  FOR_ROWS(STORE)
}
