/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One or two bits an element, or three values:
 *   tq1_0  256 elements in 54 bytes: 52 bytes of 5 (the last four: of 4) base-3 digits, f16 d    (q - 1) d
 *   tq2_0  256 elements in 66 bytes: 64 bytes of 2-bit q, f16 d                                  (q - 1) d
 *   q1_0   128 elements in 18 bytes: f16 d, 16 bytes of bits                                     +d or -d
 *   q2_0    64 elements in 18 bytes: f16 d, 16 bytes of 2-bit q                                  (q - 1) d
 */
#include "tensor/codec_block.h"

static void put(double *out, int quant, float d) {
  const float value = (float)quant * d;
  *out = (double)value;
}

/* Digit `place` of a byte that holds five of them as a fraction of 256. */
static int ternary_digit(unsigned byte, uint32_t place) {
  static const unsigned powers[] = { 1, 3, 9, 27, 81 };
  return (int)((byte * powers[place] & 255u) * 3 >> 8) - 1;
}

static double *put_digits(const unsigned char *bytes, uint32_t count, uint32_t places, float d, double *out) {
  for (uint32_t place = 0; place < places; place++)
    for (uint32_t i = 0; i < count; i++) put(out++, ternary_digit(bytes[i], place), d);
  return out;
}

static void tq1_0_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block + 52);
  out = put_digits(block, 32, 5, d, out);
  out = put_digits(block + 32, 16, 5, d, out);
  (void)put_digits(block + 48, 4, 4, d, out);
}

static void tq2_0_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block + 64);
  for (uint32_t i = 0; i < 256; i++) put(out + i, (block[i / 128 * 32 + i % 32] >> 2 * (i / 32 % 4) & 3) - 1, d);
}

static void q1_0_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block);
  for (uint32_t i = 0; i < 128; i++) put(out + i, (block[2 + i / 8] >> i % 8 & 1) != 0 ? 1 : -1, d);
}

static void q2_0_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block);
  for (uint32_t i = 0; i < 64; i++) put(out + i, (block[2 + i / 4] >> 2 * (i % 4) & 3) - 1, d);
}

TM_DECODE_BLOCKS(tq1_0, 256, 54)
TM_DECODE_BLOCKS(tq2_0, 256, 66)
TM_DECODE_BLOCKS(q1_0, 128, 18)
TM_DECODE_BLOCKS(q2_0, 64, 18)

static const tm_codec codecs[] = { TM_READ_ONLY_CODEC(TQ1_0, tq1_0), TM_READ_ONLY_CODEC(TQ2_0, tq2_0), TM_READ_ONLY_CODEC(Q1_0, q1_0),
                                   TM_READ_ONLY_CODEC(Q2_0, q2_0) };

const tm_codec_family tm_codec_family_ternary = { codecs, sizeof codecs / sizeof codecs[0] };
