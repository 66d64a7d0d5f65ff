/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 32 elements with one scale and, of some, a smallest value:
 *   q4_1  20 bytes: f16 d, f16 m, 16 bytes of nibbles                     q d + m
 *   q5_0  22 bytes: f16 d, 32 high bits, 16 bytes of nibbles              (q - 16) d
 *   q5_1  24 bytes: f16 d, f16 m, 32 high bits, 16 bytes of nibbles       q d + m
 *   q8_1  36 bytes: f16 d, f16 (d times the sum), 32 signed bytes         q d
 * Elements 0..15 lie in the low nibbles, 16..31 in the high ones; bit i of the high bits is that of element i.
 */
#include "tensor/codec_block.h"

#define ELEMENTS 32u
#define HALF 16u

/* Element i of nibbles and, where there are some, high bits. */
static int quant_of(const unsigned char *nibbles, const unsigned char *high_bits, uint32_t i) {
  const int nibble = i < HALF ? nibbles[i] & 15 : nibbles[i - HALF] >> 4;
  return high_bits == NULL ? nibble : nibble | (high_bits[i / 8] >> i % 8 & 1) << 4;
}

static void shifted_block(const unsigned char *block, const unsigned char *nibbles, const unsigned char *high_bits, double *out) {
  const float d = tm_block_scale_load(block), m = tm_block_scale_load(block + 2);
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    const float product = (float)quant_of(nibbles, high_bits, i) * d;
    const float value = product != product ? product : product + m;    /* of two NaN the first, whatever the compiler does */
    out[i] = (double)value;
  }
}

static void q4_1_block(const unsigned char *block, double *out) { shifted_block(block, block + 4, NULL, out); }
static void q5_1_block(const unsigned char *block, double *out) { shifted_block(block, block + 8, block + 4, out); }

static void q5_0_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block);
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    const float value = (float)(quant_of(block + 6, block + 2, i) - 16) * d;
    out[i] = (double)value;
  }
}

static void q8_1_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block);
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    const float value = (float)(signed char)block[4 + i] * d;
    out[i] = (double)value;
  }
}

TM_DECODE_BLOCKS(q4_1, ELEMENTS, 20)
TM_DECODE_BLOCKS(q5_0, ELEMENTS, 22)
TM_DECODE_BLOCKS(q5_1, ELEMENTS, 24)
TM_DECODE_BLOCKS(q8_1, ELEMENTS, 36)

static const tm_codec codecs[] = { TM_READ_ONLY_CODEC(Q4_1, q4_1), TM_READ_ONLY_CODEC(Q5_0, q5_0), TM_READ_ONLY_CODEC(Q5_1, q5_1),
                                   TM_READ_ONLY_CODEC(Q8_1, q8_1) };

const tm_codec_family tm_codec_family_legacy = { codecs, sizeof codecs / sizeof codecs[0] };
