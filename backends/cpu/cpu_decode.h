/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_decode.h - vectors of f32 from the formats that hold no more than f32 does, and back to the 16-bit ones.  All values are exact, and so are the
 * bits of NaN, except where a function says that it quiets them.
 */
#ifndef CPU_DECODE_H
#define CPU_DECODE_H

#include <string.h>

#include "cpu_simd.h"

#define CPU_QUANT_ELEMENTS 32u  /* of a block of q8_0 or q4_0 */
#define CPU_SCALE_BYTES    2u
#define CPU_Q8_0_BYTES     34u
#define CPU_Q4_0_BYTES     18u

/* Where decoded vectors go.  Streamed stores pass by the caches.  They are halves of vectors, so that an address aligned
   to 16 bytes, as allocators give it, will do. */
typedef enum cpu_store_kind { CPU_STORE_PLAIN, CPU_STORE_STREAMED } cpu_store_kind;

CPU_INLINE void cpu_put(float *to, __m256 x, cpu_store_kind kind) {
  if (kind == CPU_STORE_PLAIN) {
    _mm256_storeu_ps(to, x);
  } else {
    _mm_stream_ps(to, _mm256_castps256_ps128(x));
    _mm_stream_ps(to + 4, _mm256_extractf128_ps(x, 1));
  }
}

CPU_INLINE __m256 cpu_widen_bf16(__m128i v) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

/* The bits of e4m3 moved to those of an f16 give the value times 2^-8, subnormals included; 0x7f is NaN. */
CPU_INLINE __m256 cpu_widen_e4m3(__m128i bytes) {
  const __m256i v = _mm256_cvtepu8_epi32(bytes), magnitude = _mm256_and_si256(v, _mm256_set1_epi32(0x7f));
  const __m256 sign = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_xor_si256(v, magnitude), 24));
  const __m256i halves = _mm256_packus_epi32(_mm256_slli_epi32(magnitude, 7), _mm256_setzero_si256());
  const __m128i f16 = _mm_unpacklo_epi64(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  const __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(f16), _mm256_set1_ps(256.0f));
  const __m256 is_nan = _mm256_castsi256_ps(_mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7f)));
  return _mm256_or_ps(_mm256_blendv_ps(value, _mm256_castsi256_ps(_mm256_set1_epi32(0x7ff00000)), is_nan), sign);
}

/* Sixteen 8-bit floats as f16; of NaN too, different ones stay so.  e5m2 is the upper half of an f16. */
CPU_INLINE __m256i cpu_f16_of_e5m2(__m128i bytes) { return _mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes), 8); }

/* A normal e4m3 has its bits 7 places higher in an f16, and an exponent that counts from 8 less.  The seven subnormal
   magnitudes, normal in f16, have only their upper byte set there: a table.  0x7f is NaN. */
CPU_INLINE __m256i cpu_f16_of_e4m3(__m128i bytes) {
  const __m256i upper = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0x18, 0x1c, 0x1e, 0x20, 0x21, 0x22, 0x23, 0, 0, 0, 0, 0, 0, 0, 0));
  const __m256i v = _mm256_cvtepu8_epi16(bytes), magnitude = _mm256_and_si256(v, _mm256_set1_epi16(0x7f));
  const __m256i sign = _mm256_slli_epi16(_mm256_xor_si256(v, magnitude), 8);
  const __m256i normal = _mm256_add_epi16(_mm256_slli_epi16(magnitude, 7), _mm256_set1_epi16(0x2000));
  const __m256i subnormal = _mm256_slli_epi16(_mm256_shuffle_epi8(upper, magnitude), 8);
  const __m256i value = _mm256_blendv_epi8(normal, subnormal, _mm256_cmpgt_epi16(_mm256_set1_epi16(8), magnitude));
  const __m256i nan = _mm256_and_si256(_mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f)), _mm256_set1_epi16(0x7fff));
  return _mm256_or_si256(_mm256_or_si256(value, nan), sign);
}

/* Sixteen values rounded to bf16, to nearest, ties to even, by carrying; the carry makes infinity of what is too large. */
CPU_INLINE __m256i cpu_bf16_bits(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x), upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(0x0040));
  return _mm256_blendv_epi8(rounded, nan, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
CPU_INLINE __m256i cpu_narrow_bf16(__m256 low, __m256 high) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(cpu_bf16_bits(low), cpu_bf16_bits(high)), 0xd8);
}
CPU_INLINE __m256i cpu_narrow_f16(__m256 low, __m256 high) {
  return _mm256_set_m128i(_mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT), _mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT));
}

/* Sets the quiet bit of what is a NaN. */
CPU_INLINE __m256 cpu_quiet_ps(__m256 x) {
  const __m256 quiet_bit = _mm256_castsi256_ps(_mm256_set1_epi32(0x00400000));
  return _mm256_or_ps(x, _mm256_and_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), quiet_bit));
}

CPU_INLINE float cpu_scale_of(const unsigned char *block) {
  uint16_t bits;
  memcpy(&bits, block, sizeof bits);
  return _cvtsh_ss(bits);
}

CPU_INLINE __m256 cpu_times_bytes(__m256 scale, __m128i bytes) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), scale);
}

/* The 32 values of a block. */
CPU_INLINE void cpu_decode_q8_0(const unsigned char *block, float *to, cpu_store_kind kind) {
  const __m256 scale = _mm256_set1_ps(cpu_scale_of(block));
  for (int i = 0; i < 4; ++i) {
    cpu_put(to + 8 * i, cpu_times_bytes(scale, _mm_loadl_epi64((const __m128i_u *)(const void *)(block + 2 + 8 * i))), kind);
  }
}

CPU_INLINE void cpu_decode_q4_0(const unsigned char *block, float *to, cpu_store_kind kind) {
  const __m256 scale = _mm256_set1_ps(cpu_scale_of(block));
  const __m128i nibbles = cpu_load128(block + 2), mask = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  const __m128i low = _mm_sub_epi8(_mm_and_si128(nibbles, mask), eight);
  const __m128i high = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(nibbles, 4), mask), eight);
  cpu_put(to, cpu_times_bytes(scale, low), kind);
  cpu_put(to + 8, cpu_times_bytes(scale, _mm_unpackhi_epi64(low, low)), kind);
  cpu_put(to + 16, cpu_times_bytes(scale, high), kind);
  cpu_put(to + 24, cpu_times_bytes(scale, _mm_unpackhi_epi64(high, high)), kind);
}

#endif
