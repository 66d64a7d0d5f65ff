/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_block_sums.h - sums over blocks of small integers with a scale, eight blocks at a time. */
#ifndef CPU_BLOCK_SUMS_H
#define CPU_BLOCK_SUMS_H

#include <string.h>

#include "cpu_simd.h"

#define CPU_BLOCK_GROUP 8       /* blocks that go together */

/* Sums of neighbours in a and b, interleaved: cheaper than the instruction that adds horizontally. */
CPU_INLINE __m256i cpu_fold_32(__m256i a, __m256i b) {
  return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
CPU_INLINE __m256i cpu_fold_64(__m256i a, __m256i b) {
  return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* The sum of each of eight vectors. */
CPU_INLINE __m256i cpu_sum_each(const __m256i v[CPU_BLOCK_GROUP]) {
  const __m256i a = cpu_fold_64(cpu_fold_32(v[0], v[1]), cpu_fold_32(v[2], v[3]));
  const __m256i b = cpu_fold_64(cpu_fold_32(v[4], v[5]), cpu_fold_32(v[6], v[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

CPU_INLINE uint16_t cpu_scale_bits(const unsigned char *block) {
  uint16_t bits;
  memcpy(&bits, block, sizeof bits);
  return bits;
}

/* Put together in a register that is none of vectors', which have more to do. */
CPU_INLINE int64_t cpu_load_four_scales(const unsigned char *data, uint64_t n) {
  const uint64_t low = cpu_scale_bits(data) | (uint64_t)cpu_scale_bits(data + n) << 16;
  const uint64_t high = cpu_scale_bits(data + 2 * n) | (uint64_t)cpu_scale_bits(data + 3 * n) << 16;
  return (int64_t)(low | high << 32);
}

/* Of eight blocks, `n` bytes apart. */
CPU_INLINE __m128i cpu_load_scales(const unsigned char *data, uint64_t n) {
  return _mm_set_epi64x(cpu_load_four_scales(data + 4 * n, n), cpu_load_four_scales(data, n));
}

#endif
