/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_vector_avx2.h - eight elements of a float format as one vector of f32, and back.  Loads never touch a byte beyond
 * the elements asked for; narrowing rounds to nearest, ties to even, once.
 *
 * For each format T: load_T(p, i) and store_T(p, i, v) move elements [i, i + 8); load_part_T and store_part_T move the
 * first n <= 8 of them (a partial load fills with zeros).
 */
#ifndef CPU_VECTOR_AVX2_H
#define CPU_VECTOR_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "cpu_kernel.h"

#define CPU_INLINE_AVX2 static inline __attribute__((always_inline, unused, target("avx2,fma,f16c")))

/* What a loop written for any format T needs to know: the type of its vector, and the elements in one. */
#define CPU_VECTOR_f64  __m256d
#define CPU_VECTOR_f32  __m256
#define CPU_VECTOR_bf16 __m256
#define CPU_VECTOR_f16  __m256
#define CPU_VECTOR_i32  __m256i
#define CPU_VECTOR_i8   __m256i
#define CPU_VECTOR_w16  __m256i
#define CPU_VECTOR_16   __m128i
#define CPU_LANES_f64   4u
#define CPU_LANES_f32   8u
#define CPU_LANES_bf16  8u
#define CPU_LANES_f16   8u
#define CPU_LANES_i32   8u
#define CPU_LANES_i8    32u
#define CPU_LANES_w16   16u
#define CPU_LANES_16    8u

/* The first n <= 16 bytes at p, zeros behind.  Put together in registers: to read back what was just stored in
   pieces takes the processor longer than all of this. */
CPU_INLINE_AVX2 uint64_t load_few_bytes(const char *p, uint64_t n) {
  uint64_t value = 0, shift = 0;
  if (n & 4) {
    uint32_t four;
    memcpy(&four, p, sizeof(four));
    value = four;
    shift = 32;
  }
  if (n & 2) {
    uint16_t two;
    memcpy(&two, p + shift / 8, sizeof(two));
    value |= (uint64_t)two << shift;
    shift += 16;
  }
  if (n & 1) value |= (uint64_t)(uint8_t)p[shift / 8] << shift;
  return value;
}
CPU_INLINE_AVX2 __m128i load_part_bytes(const void *bytes, uint64_t n) {
  const char *p = bytes;
  uint64_t low;
  if (n == 16) return _mm_loadu_si128((const __m128i *)bytes);
  if (n < 8) return _mm_cvtsi64_si128((long long)load_few_bytes(p, n));
  memcpy(&low, p, sizeof(low));
  return _mm_set_epi64x((long long)load_few_bytes(p + 8, n - 8), (long long)low);
}
/* The same for n < 32. */
CPU_INLINE_AVX2 __m256i load_part_long(const void *bytes, uint64_t n) {
  if (n < 16) return _mm256_zextsi128_si256(load_part_bytes(bytes, n));
  const __m128i low = _mm_loadu_si128((const __m128i *)bytes);
  return _mm256_set_m128i(load_part_bytes((const char *)bytes + 16, n - 16), low);
}

/* All ones in the first n of eight (four) lanes. */
CPU_INLINE_AVX2 __m256i first_lanes_32(uint64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
CPU_INLINE_AVX2 __m256i first_lanes_64(uint64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), _mm256_setr_epi64x(0, 1, 2, 3));
}

/* f64, four elements at a time. */
CPU_INLINE_AVX2 __m256d load_f64(const void *p, uint64_t i) { return _mm256_loadu_pd((const double *)p + i); }
CPU_INLINE_AVX2 void store_f64(void *p, uint64_t i, __m256d v) { _mm256_storeu_pd((double *)p + i, v); }
CPU_INLINE_AVX2 __m256d load_part_f64(const void *p, uint64_t i, uint64_t n) {
  return _mm256_maskload_pd((const double *)p + i, first_lanes_64(n));
}
CPU_INLINE_AVX2 void store_part_f64(void *p, uint64_t i, __m256d v, uint64_t n) {
  _mm256_maskstore_pd((double *)p + i, first_lanes_64(n), v);
}

/* f32 */
CPU_INLINE_AVX2 __m256 load_f32(const void *p, uint64_t i) { return _mm256_loadu_ps((const float *)p + i); }
CPU_INLINE_AVX2 void store_f32(void *p, uint64_t i, __m256 v) { _mm256_storeu_ps((float *)p + i, v); }
CPU_INLINE_AVX2 __m256 load_part_f32(const void *p, uint64_t i, uint64_t n) {
  return _mm256_maskload_ps((const float *)p + i, first_lanes_32(n));
}
CPU_INLINE_AVX2 void store_part_f32(void *p, uint64_t i, __m256 v, uint64_t n) {
  _mm256_maskstore_ps((float *)p + i, first_lanes_32(n), v);
}

/* The halves of eight f32 as f64. */
CPU_INLINE_AVX2 __m256d low_half(__m256 v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
CPU_INLINE_AVX2 __m256d high_half(__m256 v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }

/* Integers: 8 of 32 bits, 32 of 8 bits. */
CPU_INLINE_AVX2 __m256i load_i32(const void *p, uint64_t i) {
  return _mm256_loadu_si256((const __m256i *)(const void *)((const int32_t *)p + i));
}
CPU_INLINE_AVX2 void store_i32(void *p, uint64_t i, __m256i v) {
  _mm256_storeu_si256((__m256i *)(void *)((int32_t *)p + i), v);
}
CPU_INLINE_AVX2 __m256i load_part_i32(const void *p, uint64_t i, uint64_t n) {
  return _mm256_maskload_epi32((const int32_t *)p + i, first_lanes_32(n));
}
CPU_INLINE_AVX2 void store_part_i32(void *p, uint64_t i, __m256i v, uint64_t n) {
  _mm256_maskstore_epi32((int32_t *)p + i, first_lanes_32(n), v);
}
CPU_INLINE_AVX2 __m256i load_i8(const void *p, uint64_t i) {
  return _mm256_loadu_si256((const __m256i *)(const void *)((const int8_t *)p + i));
}
CPU_INLINE_AVX2 void store_i8(void *p, uint64_t i, __m256i v) {
  _mm256_storeu_si256((__m256i *)(void *)((int8_t *)p + i), v);
}
CPU_INLINE_AVX2 __m256i load_part_i8(const void *p, uint64_t i, uint64_t n) {
  return load_part_long((const int8_t *)p + i, n);
}
CPU_INLINE_AVX2 void store_part_i8(void *p, uint64_t i, __m256i v, uint64_t n) {
  int8_t part[32];
  store_i8(part, 0, v);
  memcpy((int8_t *)p + i, part, n);
}

/* w16: sixteen 16-bit elements as they lie. */
CPU_INLINE_AVX2 __m256i load_w16(const void *p, uint64_t i) {
  return _mm256_loadu_si256((const __m256i *)(const void *)((const uint16_t *)p + i));
}
CPU_INLINE_AVX2 void store_w16(void *p, uint64_t i, __m256i v) {
  _mm256_storeu_si256((__m256i *)(void *)((uint16_t *)p + i), v);
}
CPU_INLINE_AVX2 __m256i load_part_w16(const void *p, uint64_t i, uint64_t n) {
  return load_part_long((const uint16_t *)p + i, n * sizeof(uint16_t));
}
CPU_INLINE_AVX2 void store_part_w16(void *p, uint64_t i, __m256i v, uint64_t n) {
  uint16_t part[16];
  store_w16(part, 0, v);
  memcpy((uint16_t *)p + i, part, n * sizeof(uint16_t));
}

/* Eight 16-bit elements as they lie. */
CPU_INLINE_AVX2 __m128i load_16(const void *p, uint64_t i) {
  return _mm_loadu_si128((const __m128i *)(const void *)((const uint16_t *)p + i));
}
CPU_INLINE_AVX2 void store_16(void *p, uint64_t i, __m128i v) {
  _mm_storeu_si128((__m128i *)(void *)((uint16_t *)p + i), v);
}
CPU_INLINE_AVX2 __m128i load_part_16(const void *p, uint64_t i, uint64_t n) {
  return load_part_bytes((const uint16_t *)p + i, n * sizeof(uint16_t));
}
CPU_INLINE_AVX2 void store_part_16(void *p, uint64_t i, __m128i v, uint64_t n) {
  uint16_t part[8];
  store_16(part, 0, v);
  memcpy((uint16_t *)p + i, part, n * sizeof(uint16_t));
}

/* bf16: the upper half of an f32.  NaN stays NaN (made quiet), where adding the rounding bias could carry into Inf. */
CPU_INLINE_AVX2 __m256 widen_bf16(__m128i x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
CPU_INLINE_AVX2 __m128i narrow_bf16(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i bias = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(upper, _mm256_set1_epi32(1)));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i words = _mm256_blendv_epi8(rounded, quiet, is_nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

/* f16: the instruction set converts it.  The empty statement keeps clang from seeing through the conversion: it would
   turn what follows into arithmetic on halves, which it then does one by one. */
CPU_INLINE_AVX2 __m256 widen_f16(__m128i x) {
  __m256 v = _mm256_cvtph_ps(x);
  __asm__("" : "+x"(v));
  return v;
}
CPU_INLINE_AVX2 __m128i narrow_f16(__m256 v) {
  return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

#define CPU_HALF_FORMAT(T)                                                                                            \
  CPU_INLINE_AVX2 __m256 load_##T(const void *p, uint64_t i) { return widen_##T(load_16(p, i)); }                     \
  CPU_INLINE_AVX2 void store_##T(void *p, uint64_t i, __m256 v) { store_16(p, i, narrow_##T(v)); }                    \
  CPU_INLINE_AVX2 __m256 load_part_##T(const void *p, uint64_t i, uint64_t n) {                                       \
    return widen_##T(load_part_16(p, i, n));                                                                          \
  }                                                                                                                   \
  CPU_INLINE_AVX2 void store_part_##T(void *p, uint64_t i, __m256 v, uint64_t n) {                                    \
    store_part_16(p, i, narrow_##T(v), n);                                                                            \
  }
CPU_HALF_FORMAT(bf16)
CPU_HALF_FORMAT(f16)
#undef CPU_HALF_FORMAT

#endif
