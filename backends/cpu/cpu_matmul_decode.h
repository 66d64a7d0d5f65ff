/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_matmul_decode.h - eight weights of a quantized block as f32: exactly the values that dequantizing gives. */
#ifndef CPU_MATMUL_DECODE_H
#define CPU_MATMUL_DECODE_H

#include "cpu_vector_avx2.h"

/* The scale of a quantized block, in all lanes. */
CPU_INLINE_AVX2 __m256 block_scale(const char *block) {
  int16_t bits;
  memcpy(&bits, block, sizeof(bits));
  return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

/* Elements [8 * part, 8 * part + 8) of a block. */
CPU_INLINE_AVX2 __m256 decode_q8_0(const char *block, uint64_t part) {
  const __m128i q = _mm_loadl_epi64((const __m128i *)(const void *)(block + 2 + 8 * part));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), block_scale(block));
}
CPU_INLINE_AVX2 __m256 decode_q4_0(const char *block, uint64_t part) {
  const __m128i pairs = _mm_loadl_epi64((const __m128i *)(const void *)(block + 2 + 8 * (part & 1)));
  const __m128i q = _mm_and_si128(part < 2 ? pairs : _mm_srli_epi16(pairs, 4), _mm_set1_epi8(0xf));
  const __m256i centred = _mm256_sub_epi32(_mm256_cvtepu8_epi32(q), _mm256_set1_epi32(8));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(centred), block_scale(block));
}

#endif
