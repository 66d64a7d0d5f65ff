/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "k" formats: 256 elements in groups, each with a small integer as its scale, which f16 scales of the block multiply.
 *   q2_k   84 bytes: 16 (scale, minimum) nibbles, 64 bytes of 2-bit q, f16 d, f16 dmin      d s q - dmin m, 16 groups of 16
 *   q3_k  110 bytes: 32 bytes of third bits, 64 bytes of 2-bit q, 16 6-bit scales, f16 d    d (s - 32) (q - 4), 16 groups of 16
 *   q4_k  144 bytes: f16 d, f16 dmin, 8 6-bit (scale, minimum), 128 bytes of nibbles        d s q - dmin m, 8 groups of 32
 *   q5_k  176 bytes: the same with 32 bytes of fifth bits before the nibbles
 *   q6_k  210 bytes: 128 bytes of nibbles, 64 bytes of upper bits, 16 signed scales, f16 d  d s (q - 32), 16 groups of 16
 *   q8_k  292 bytes: f32 d, 256 signed bytes, 16 sums                                       d q
 */
#include <string.h>

#include "tensor/codec_block.h"

#define ELEMENTS 256u
#define RUN 32u                 /* bytes in which the quants of several groups lie on top of each other */

/* 32 elements as two groups of 16 with factors of their own: out = (q - offset) * factor - minimum. */
static void put_halves(const int *quants, const float *factors, const float *minima, double *out) {
  for (uint32_t i = 0; i < RUN; i++) {
    const float product = factors[i / 16] * (float)quants[i];
    const float value = minima == NULL ? product : product - minima[i / 16];
    out[i] = (double)value;
  }
}

static void q2_k_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block + 80), dmin = tm_block_scale_load(block + 82);
  for (uint32_t run = 0; run < ELEMENTS / RUN; run++) {
    const unsigned char *packed = block + 16 + run / 4 * RUN, *scales = block + 2 * run;
    const float factors[2] = { d * (float)(scales[0] & 15), d * (float)(scales[1] & 15) };
    const float minima[2] = { dmin * (float)(scales[0] >> 4), dmin * (float)(scales[1] >> 4) };
    int quants[RUN];
    for (uint32_t i = 0; i < RUN; i++) quants[i] = packed[i] >> 2 * (run % 4) & 3;
    put_halves(quants, factors, minima, out + run * RUN);
  }
}

/* Scale `group` of 16: the low four bits lie in the nibbles of 8 bytes, the high two in the 4 bytes behind them. */
static int q3_k_scale(const unsigned char *scales, uint32_t group) {
  const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
  return (low | (scales[8 + group % 4] >> 2 * (group / 4) & 3) << 4) - 32;
}

static void q3_k_block(const unsigned char *block, double *out) {
  const unsigned char *third_bits = block, *scales = block + 96;
  const float d = tm_block_scale_load(block + 108);
  for (uint32_t run = 0; run < ELEMENTS / RUN; run++) {
    const unsigned char *packed = block + 32 + run / 4 * RUN;
    const float factors[2] = { d * (float)q3_k_scale(scales, 2 * run), d * (float)q3_k_scale(scales, 2 * run + 1) };
    int quants[RUN];
    for (uint32_t i = 0; i < RUN; i++)
      quants[i] = (packed[i] >> 2 * (run % 4) & 3) - ((third_bits[i] >> run & 1) != 0 ? 0 : 4);
    put_halves(quants, factors, NULL, out + run * RUN);
  }
}

/* Scale and minimum `group` of 8, 6 bits each in 12 bytes: four of either lie in the low bits of a byte each, the others in nibbles and
   what is left of the first eight bytes. */
static void q4_k_scales(const unsigned char *packed, uint32_t group, int *out_scale, int *out_minimum) {
  const uint32_t other = group % 4;
  const int nibbles = packed[8 + other];
  const bool is_first = group < 4;
  *out_scale = is_first ? packed[other] & 63 : (nibbles & 15) | packed[other] >> 6 << 4;
  *out_minimum = is_first ? packed[other + 4] & 63 : nibbles >> 4 | packed[other + 4] >> 6 << 4;
}

/* fifth_bits NULL: there are none. */
static void put_k_block(const unsigned char *block, const unsigned char *nibbles, const unsigned char *fifth_bits, double *out) {
  const float d = tm_block_scale_load(block), dmin = tm_block_scale_load(block + 2);
  for (uint32_t group = 0; group < ELEMENTS / RUN; group++) {
    const unsigned char *packed = nibbles + group / 2 * RUN;
    int scale, minimum;
    q4_k_scales(block + 4, group, &scale, &minimum);
    const float factor = d * (float)scale, least = dmin * (float)minimum;
    const float factors[2] = { factor, factor }, minima[2] = { least, least };
    int quants[RUN];
    for (uint32_t i = 0; i < RUN; i++) {
      quants[i] = group % 2 == 0 ? packed[i] & 15 : packed[i] >> 4;
      if (fifth_bits != NULL) quants[i] |= (fifth_bits[i] >> group & 1) << 4;
    }
    put_halves(quants, factors, minima, out + group * RUN);
  }
}

static void q4_k_block(const unsigned char *block, double *out) { put_k_block(block, block + 16, NULL, out); }
static void q5_k_block(const unsigned char *block, double *out) { put_k_block(block, block + 48, block + 16, out); }

/* Of each 128 elements the first 64 are in the low nibbles and the others in the high ones; upper bits lie four on top of each other. */
static void q6_k_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block + 208);
  for (uint32_t run = 0; run < ELEMENTS / RUN; run++) {
    const uint32_t part = run / 4, in_part = run % 4;
    const unsigned char *nibbles = block + part * 64 + in_part % 2 * RUN, *upper = block + 128 + part * RUN;
    const signed char *scales = (const signed char *)block + 192 + run * 2;
    const float factors[2] = { d * (float)scales[0], d * (float)scales[1] };
    int quants[RUN];
    for (uint32_t i = 0; i < RUN; i++) {
      const int nibble = in_part < 2 ? nibbles[i] & 15 : nibbles[i] >> 4;
      quants[i] = (nibble | (upper[i] >> 2 * in_part & 3) << 4) - 32;
    }
    put_halves(quants, factors, NULL, out + run * RUN);
  }
}

static void q8_k_block(const unsigned char *block, double *out) {
  float d;
  memcpy(&d, block, sizeof d);
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    const float value = d * (float)(signed char)block[4 + i];
    out[i] = (double)value;
  }
}

TM_DECODE_BLOCKS(q2_k, ELEMENTS, 84)
TM_DECODE_BLOCKS(q3_k, ELEMENTS, 110)
TM_DECODE_BLOCKS(q4_k, ELEMENTS, 144)
TM_DECODE_BLOCKS(q5_k, ELEMENTS, 176)
TM_DECODE_BLOCKS(q6_k, ELEMENTS, 210)
TM_DECODE_BLOCKS(q8_k, ELEMENTS, 292)

static const tm_codec codecs[] = { TM_READ_ONLY_CODEC(Q2_K, q2_k), TM_READ_ONLY_CODEC(Q3_K, q3_k), TM_READ_ONLY_CODEC(Q4_K, q4_k),
                                   TM_READ_ONLY_CODEC(Q5_K, q5_k), TM_READ_ONLY_CODEC(Q6_K, q6_k), TM_READ_ONLY_CODEC(Q8_K, q8_k) };

const tm_codec_family tm_codec_family_k = { codecs, sizeof codecs / sizeof codecs[0] };
