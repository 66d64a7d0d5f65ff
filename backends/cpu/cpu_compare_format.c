/* SPDX-License-Identifier: Apache-2.0 */
/* How TM_OP_COMPARE_TENSORS reads blocks of 512 elements of every format that has a kernel. */
#include "cpu_blocks.h"
#include "cpu_compare.h"

#include <string.h>

#include "cpu_decode.h"

#define BLOCK TM_SUM_BLOCK

static CPU_AVX2 void decode_bf16(const unsigned char *data, float *to) {
  for (int i = 0; i < BLOCK; i += 8) {
    if (i % 32 == 0) CPU_COMPARE_PREFETCH(data + 2 * i);
    _mm256_storeu_ps(to + i, cpu_widen_bf16(cpu_load128(data + 2 * i)));
  }
}

/* The processor quiets NaN, which must not make two different ones equal: those are put together by hand. */
CPU_INLINE __m256 widen_f16(__m128i v) {
  const __m256i wide = _mm256_cvtepu16_epi32(v), magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7fff));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7c00));
  const __m256i sign = _mm256_slli_epi32(_mm256_xor_si256(wide, magnitude), 16);
  const __m256i nan = _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi32(magnitude, 13), _mm256_set1_epi32(0x7f800000)), sign);
  return _mm256_blendv_ps(_mm256_cvtph_ps(v), _mm256_castsi256_ps(nan), _mm256_castsi256_ps(is_nan));
}
static CPU_AVX2 void decode_f16(const unsigned char *data, float *to) {
  for (int i = 0; i < BLOCK; i += 8) {
    if (i % 32 == 0) CPU_COMPARE_PREFETCH(data + 2 * i);
    _mm256_storeu_ps(to + i, widen_f16(cpu_load128(data + 2 * i)));
  }
}

/* e5m2 is the upper half of an f16. */
static CPU_AVX2 void decode_f8_e5m2(const unsigned char *data, float *to) {
  for (int i = 0; i < BLOCK; i += 8) {
    const __m128i bytes = _mm_loadl_epi64((const __m128i_u *)(const void *)(data + i));
    _mm256_storeu_ps(to + i, widen_f16(_mm_unpacklo_epi8(_mm_setzero_si128(), bytes)));
  }
}

static CPU_AVX2 void decode_f8_e4m3fn(const unsigned char *data, float *to) {
  for (int i = 0; i < BLOCK; i += 8) {
    _mm256_storeu_ps(to + i, cpu_widen_e4m3(_mm_loadl_epi64((const __m128i_u *)(const void *)(data + i))));
  }
}

#define TO_F16(name, widen)                                                                                              \
  static CPU_AVX2 void name(const unsigned char *data, unsigned char *to) {                                                  \
    for (int i = 0; i < BLOCK; i += 16) {                                                                                    \
      if (i % 64 == 0) CPU_COMPARE_PREFETCH(data + i);                                                                       \
      cpu_store(to + 2 * i, widen(cpu_load128(data + i)));                                                                   \
    }                                                                                                                        \
  }
TO_F16(f16_of_f8_e5m2, cpu_f16_of_e5m2)
TO_F16(f16_of_f8_e4m3fn, cpu_f16_of_e4m3)

static CPU_AVX2 void decode_q8_0(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < BLOCK; i += CPU_QUANT_ELEMENTS, data += CPU_Q8_0_BYTES) {
    CPU_COMPARE_PREFETCH(data);
    cpu_decode_q8_0(data, to + i, CPU_STORE_PLAIN);
  }
}

static CPU_AVX2 void decode_q4_0(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < BLOCK; i += CPU_QUANT_ELEMENTS, data += CPU_Q4_0_BYTES) {
    CPU_COMPARE_PREFETCH(data);
    cpu_decode_q4_0(data, to + i, CPU_STORE_PLAIN);
  }
}

#define SMALL_INTEGER(name, widen, bytes)                                                                        \
  static CPU_AVX2 void decode_##name(const unsigned char *data, float *to) {                                     \
    for (int i = 0; i < BLOCK; i += 8) {                                                                         \
      const __m128i v = (bytes) == 1 ? _mm_loadl_epi64((const __m128i_u *)(const void *)(data + i)) : cpu_load128(data + 2 * i); \
      _mm256_storeu_ps(to + i, _mm256_cvtepi32_ps(widen(v)));                                                    \
    }                                                                                                            \
  }
SMALL_INTEGER(i8, _mm256_cvtepi8_epi32, 1)
SMALL_INTEGER(u8, _mm256_cvtepu8_epi32, 1)
SMALL_INTEGER(i16, _mm256_cvtepi16_epi32, 2)
SMALL_INTEGER(u16, _mm256_cvtepu16_epi32, 2)

static void decode_bool(const unsigned char *data, float *to) {
  for (int i = 0; i < BLOCK; ++i) to[i] = data[i] != 0 ? 1.0f : 0.0f;
}

#define WIDE_INTEGER(name, type)                                                  \
  static void decode_##name(const unsigned char *data, double *to) {              \
    for (int i = 0; i < BLOCK; ++i) {                                             \
      type value;                                                                 \
      memcpy(&value, data + (size_t)i * sizeof value, sizeof value);              \
      to[i] = (double)value;                                                      \
    }                                                                             \
  }
WIDE_INTEGER(i32, int32_t)
WIDE_INTEGER(u32, uint32_t)
WIDE_INTEGER(i64, int64_t)
WIDE_INTEGER(u64, uint64_t)

#define READ_BLOCKS(id, name, elements, bytes, ps) { TM_FORMAT_##id, bytes, elements, ps, 0, 0, 0, 0, cpu_decode_##name, NULL, NULL },

static const cpu_compare_format formats[] = {
  { TM_FORMAT_F32, 4, 1, 0, 0, 0, 0, 0, NULL, NULL, NULL },
  { TM_FORMAT_BF16, 2, 1, 30, 0, 0, 0, 1, decode_bf16, NULL, NULL },
  { TM_FORMAT_F16, 2, 1, 30, 0, 0, 0, 1, decode_f16, NULL, NULL },
  { TM_FORMAT_Q8_0, CPU_Q8_0_BYTES, CPU_QUANT_ELEMENTS, 50, 0, 1, 0, 0, decode_q8_0, NULL, NULL },
  { TM_FORMAT_Q4_0, CPU_Q4_0_BYTES, CPU_QUANT_ELEMENTS, 50, 0x88, 1, 0, 0, decode_q4_0, NULL, NULL },
  { TM_FORMAT_F8_E4M3FN, 1, 1, 130, 0, 0, 0, 1, decode_f8_e4m3fn, f16_of_f8_e4m3fn, NULL },
  { TM_FORMAT_F8_E5M2, 1, 1, 70, 0, 0, 0, 1, decode_f8_e5m2, f16_of_f8_e5m2, NULL },
  { TM_FORMAT_I8, 1, 1, 30, 0, 0, 0, 0, decode_i8, NULL, NULL },
  { TM_FORMAT_U8, 1, 1, 30, 0, 0, 0, 0, decode_u8, NULL, NULL },
  { TM_FORMAT_I16, 2, 1, 30, 0, 0, 0, 0, decode_i16, NULL, NULL },
  { TM_FORMAT_U16, 2, 1, 30, 0, 0, 0, 0, decode_u16, NULL, NULL },
  { TM_FORMAT_BOOL, 1, 1, 400, 0, 0, 0, 0, decode_bool, NULL, NULL },
  { TM_FORMAT_F64, 8, 1, 0, 0, 0, 0, 0, NULL, NULL, NULL },
  { TM_FORMAT_I32, 4, 1, 500, 0, 0, 0, 0, NULL, NULL, decode_i32 },
  { TM_FORMAT_U32, 4, 1, 500, 0, 0, 0, 0, NULL, NULL, decode_u32 },
  { TM_FORMAT_I64, 8, 1, 2000, 0, 0, 1, 0, NULL, NULL, decode_i64 },
  { TM_FORMAT_U64, 8, 1, 2000, 0, 0, 1, 0, NULL, NULL, decode_u64 },
  CPU_READ_BLOCKS(READ_BLOCKS)
};
_Static_assert(BLOCK == CPU_BLOCKS_RUN, "both decode as much at a time");

const cpu_compare_format *cpu_compare_format_find(uint32_t format) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; ++i) {
    if (formats[i].format == format) return &formats[i];
  }
  return NULL;
}

/* A NaN of f64 has the sign and, 29 places higher, the payload of that of f32. */
CPU_AVX2 void cpu_compare_widen(const void *from, double *to) {
  const float *source = from;
  for (int i = 0; i < BLOCK; i += 4) {
    const __m128 x = _mm_loadu_ps(source + i);
    const __m256d value = _mm256_cvtps_pd(x);
    const __m256i bits = _mm256_cvtepi32_epi64(_mm_castps_si128(x));
    const __m256i sign = _mm256_and_si256(bits, _mm256_set1_epi64x(INT64_MIN));
    const __m256i payload = _mm256_slli_epi64(_mm256_and_si256(bits, _mm256_set1_epi64x(0x7fffff)), 29);
    const __m256i nan = _mm256_or_si256(_mm256_or_si256(sign, payload), _mm256_set1_epi64x(INT64_C(0x7ff) << 52));
    const __m256d is_nan = _mm256_cmp_pd(value, value, _CMP_UNORD_Q);
    _mm256_storeu_pd(to + i, _mm256_blendv_pd(value, _mm256_castsi256_pd(nan), is_nan));
  }
}
