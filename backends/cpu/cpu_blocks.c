/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders of block formats.  How the bytes of each lie, src/tensor/codec_k.c, codec_legacy.c and codec_nonlinear.c say. */
#include "cpu_blocks.h"

#include <string.h>

#define RUN 32                  /* elements with one pair of scales, or two of 16 */

/* Of `count` quants less `offset`; what is taken off is rounded by itself. */
CPU_INLINE void put(const unsigned char *quants, int offset, float factor, float least, int count, float *to) {
  for (int i = 0; i < count; ++i) {
    const float product = factor * (float)(quants[i] - offset);
    to[i] = product - least;
  }
}

/* 32 bytes: all ones where a bit is set. */
CPU_INLINE __m256i bytes_of_bits(const unsigned char *bits) {
  uint32_t word;
  memcpy(&word, bits, sizeof word);
  const __m256i places = _mm256_setr_epi64x(0, INT64_C(0x0101010101010101), INT64_C(0x0202020202020202), INT64_C(0x0303030303030303));
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)word), places);
  const __m256i mask = _mm256_set1_epi64x((int64_t)UINT64_C(0x8040201008040201));    /* bit i in byte i of eight */
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, mask), mask);
}

/* 32 nibbles, the low ones first. */
CPU_INLINE __m256i nibbles_of(const unsigned char *data) {
  const __m128i packed = cpu_load128(data), mask = _mm_set1_epi8(15);
  return _mm256_set_m128i(_mm_and_si128(_mm_srli_epi16(packed, 4), mask), _mm_and_si128(packed, mask));
}

CPU_INLINE void fives_of(const unsigned char *nibbles, const unsigned char *high_bits, unsigned char *quants) {
  cpu_store(quants, _mm256_or_si256(nibbles_of(nibbles), _mm256_and_si256(bytes_of_bits(high_bits), _mm256_set1_epi8(16))));
}

/* ---- 32 elements a block ---- */

CPU_INLINE void put_shifted(const unsigned char *quants, const unsigned char *block, float *to) {
  const float d = cpu_scale_of(block), m = cpu_scale_of(block + 2);
  for (int i = 0; i < RUN; ++i) {
    const float product = (float)quants[i] * d;
    to[i] = product + m;
  }
}

CPU_INLINE void q4_1_block(const unsigned char *block, float *to) {
  unsigned char quants[RUN];
  cpu_store(quants, nibbles_of(block + 4));
  put_shifted(quants, block, to);
}

CPU_INLINE void q5_1_block(const unsigned char *block, float *to) {
  unsigned char quants[RUN];
  fives_of(block + 8, block + 4, quants);
  put_shifted(quants, block, to);
}

CPU_INLINE void q5_0_block(const unsigned char *block, float *to) {
  unsigned char quants[RUN];
  fives_of(block + 6, block + 2, quants);
  put(quants, 16, cpu_scale_of(block), 0, RUN, to);
}

/* ---- 256 elements a block ---- */

CPU_INLINE void put_halves(const unsigned char *quants, int offset, const float *factors, const float *least, float *to) {
  put(quants, offset, factors[0], least[0], RUN / 2, to);
  put(quants + RUN / 2, offset, factors[1], least[1], RUN / 2, to + RUN / 2);
}

CPU_INLINE void q2_k_block(const unsigned char *block, float *to) {
  const float d = cpu_scale_of(block + 80), dmin = cpu_scale_of(block + 82);
  for (int run = 0; run < 8; ++run) {
    const unsigned char *packed = block + 16 + run / 4 * RUN, *scales = block + 2 * run;
    const float factors[2] = { d * (float)(scales[0] & 15), d * (float)(scales[1] & 15) };
    const float least[2] = { dmin * (float)(scales[0] >> 4), dmin * (float)(scales[1] >> 4) };
    unsigned char quants[RUN];
    for (int i = 0; i < RUN; ++i) quants[i] = (unsigned char)(packed[i] >> 2 * (run % 4) & 3);
    put_halves(quants, 0, factors, least, to + run * RUN);
  }
}

CPU_INLINE float q3_k_scale(const unsigned char *scales, int group) {
  const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
  return (float)((low | (scales[8 + group % 4] >> 2 * (group / 4) & 3) << 4) - 32);
}

/* The third bit is 4 of a quant from which 4 is taken. */
CPU_INLINE void q3_k_block(const unsigned char *block, float *to) {
  const float d = cpu_scale_of(block + 108), none[2] = { 0, 0 };
  for (int run = 0; run < 8; ++run) {
    const unsigned char *packed = block + 32 + run / 4 * RUN;
    const float factors[2] = { d * q3_k_scale(block + 96, 2 * run), d * q3_k_scale(block + 96, 2 * run + 1) };
    unsigned char quants[RUN];
    for (int i = 0; i < RUN; ++i)
      quants[i] = (unsigned char)((packed[i] >> 2 * (run % 4) & 3) | (block[i] >> run & 1) << 2);
    put_halves(quants, 4, factors, none, to + run * RUN);
  }
}

CPU_INLINE void q4_k_scales(const unsigned char *packed, int group, float *out_scale, float *out_minimum) {
  const int other = group % 4, nibbles = packed[8 + other];
  *out_scale = (float)(group < 4 ? packed[other] & 63 : (nibbles & 15) | packed[other] >> 6 << 4);
  *out_minimum = (float)(group < 4 ? packed[other + 4] & 63 : nibbles >> 4 | packed[other + 4] >> 6 << 4);
}

CPU_INLINE void k_block(const unsigned char *block, const unsigned char *nibbles, const unsigned char *fifth_bits, float *to) {
  const float d = cpu_scale_of(block), dmin = cpu_scale_of(block + 2);
  for (int group = 0; group < 8; ++group) {
    const unsigned char *packed = nibbles + group / 2 * RUN;
    float scale, minimum;
    unsigned char quants[RUN];
    q4_k_scales(block + 4, group, &scale, &minimum);
    for (int i = 0; i < RUN; ++i) {
      const int fifth = fifth_bits == NULL ? 0 : (fifth_bits[i] >> group & 1) << 4;
      quants[i] = (unsigned char)((packed[i] >> 4 * (group % 2) & 15) | fifth);
    }
    put(quants, 0, d * scale, dmin * minimum, RUN, to + group * RUN);
  }
}

CPU_INLINE void q4_k_block(const unsigned char *block, float *to) { k_block(block, block + 16, NULL, to); }
CPU_INLINE void q5_k_block(const unsigned char *block, float *to) { k_block(block, block + 48, block + 16, to); }

CPU_INLINE void q6_k_block(const unsigned char *block, float *to) {
  const float d = cpu_scale_of(block + 208), none[2] = { 0, 0 };
  for (int run = 0; run < 8; ++run) {
    const int part = run / 4, in_part = run % 4;
    const unsigned char *nibbles = block + part * 64 + in_part % 2 * RUN, *upper = block + 128 + part * RUN;
    const signed char *scales = (const signed char *)block + 192 + run * 2;
    const float factors[2] = { d * (float)scales[0], d * (float)scales[1] };
    unsigned char quants[RUN];
    for (int i = 0; i < RUN; ++i)
      quants[i] = (unsigned char)((nibbles[i] >> 4 * (in_part / 2) & 15) | (upper[i] >> 2 * in_part & 3) << 4);
    put_halves(quants, 32, factors, none, to + run * RUN);
  }
}

/* ---- nibbles that stand for unequal steps ---- */

CPU_INLINE __m128i steps(void) { return _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113); }
CPU_INLINE __m128i twice_e2m1(void) { return _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12); }

/* 16 values, of a nibble in each byte. */
CPU_INLINE void put_steps(__m128i nibbles, __m128i table, float scale, float *to) {
  const __m128i values = _mm_shuffle_epi8(table, nibbles);
  const __m256 factor = _mm256_set1_ps(scale);
  _mm256_storeu_ps(to, cpu_times_bytes(factor, values));
  _mm256_storeu_ps(to + 8, cpu_times_bytes(factor, _mm_unpackhi_epi64(values, values)));
}

CPU_INLINE void put_group(const unsigned char *data, __m128i table, float scale, float *to) {
  const __m256i nibbles = nibbles_of(data);
  put_steps(_mm256_castsi256_si128(nibbles), table, scale, to);
  put_steps(_mm256_extracti128_si256(nibbles, 1), table, scale, to + 16);
}

CPU_INLINE void iq4_nl_block(const unsigned char *block, float *to) { put_group(block + 2, steps(), cpu_scale_of(block), to); }

CPU_INLINE void iq4_xs_block(const unsigned char *block, float *to) {
  const float d = cpu_scale_of(block);
  const int high = block[2] | block[3] << 8;
  for (int group = 0; group < 8; ++group) {
    const int low = block[4 + group / 2] >> 4 * (group % 2) & 15;
    const float scale = d * (float)((low | (high >> 2 * group & 3) << 4) - 32);
    put_group(block + 8 + group * 16, steps(), scale, to + group * RUN);
  }
}

/* 2^(exponent - 128): the two smallest are subnormal. */
CPU_INLINE void mxfp4_block(const unsigned char *block, float *to) {
  const uint32_t bits = block[0] < 2 ? UINT32_C(0x00200000) << block[0] : (uint32_t)(block[0] - 1) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  put_group(block + 1, twice_e2m1(), scale, to);
}

CPU_INLINE float half_e4m3(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (code == 0 || code == 0x7f) return 0.0f;
  return exponent == 0 ? (float)mantissa * 0x1p-10f : (float)(8 + mantissa) * 0x1p-11f * (float)(1 << exponent);
}

CPU_INLINE void nvfp4_block(const unsigned char *block, float *to) {
  for (int group = 0; group < 4; ++group) {
    const __m128i packed = _mm_loadl_epi64((const __m128i_u *)(const void *)(block + 4 + group * 8)), mask = _mm_set1_epi8(15);
    const __m128i nibbles = _mm_unpacklo_epi64(_mm_and_si128(packed, mask), _mm_and_si128(_mm_srli_epi16(packed, 4), mask));
    put_steps(nibbles, twice_e2m1(), half_e4m3(block[group]), to + group * 16);
  }
}

#define DECODER(id, name, elements, bytes, ps)                                                                                  \
  CPU_AVX2 void cpu_decode_##name(const unsigned char *data, float *to) {                                                        \
    for (unsigned at = 0; at < CPU_BLOCKS_RUN; at += (elements), data += (bytes)) name##_block(data, to + at);                   \
  }
CPU_READ_BLOCKS(DECODER)

#define DEQUANTIZER(id, name, elements, bytes, ps)                                                                              \
  CPU_AVX2 void cpu_dequantize_##name(const unsigned char *from, unsigned char *to, uint64_t blocks, cpu_store_kind kind) {      \
    float values[elements];                                                                                                     \
    (void)kind;                                                                                                                 \
    for (; blocks > 0; --blocks, from += (bytes), to += sizeof values) {                                                         \
      name##_block(from, values);                                                                                               \
      memcpy(to, values, sizeof values);                                                                                        \
    }                                                                                                                           \
  }
CPU_READ_BLOCKS(DEQUANTIZER)
