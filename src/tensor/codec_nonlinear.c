/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nibbles that stand for unequal steps:
 *   iq4_nl   32 elements in  18 bytes: f16 d, 16 bytes of nibbles                               d v[q]
 *   iq4_xs  256 elements in 136 bytes: f16 d, 8 6-bit scales (2 bytes of high bits, 4 of low    d (s - 32) v[q], 8 groups of 32
 *                                      nibbles), 128 bytes of nibbles
 *   mxfp4    32 elements in  17 bytes: an E8M0 exponent e, 16 bytes of E2M1 (OCP MX v1.0)       2^(e - 127) x
 *   nvfp4    64 elements in  36 bytes: 4 E4M3 scales without a sign, 32 bytes of E2M1           s x, 4 groups of 16
 * In a group the low nibbles are the first half, and the high ones the second.
 */
#include <math.h>

#include "tensor/codec_block.h"

static const signed char steps[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
static const signed char twice_e2m1[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

static void put_group(float scale, const signed char *table, const unsigned char *nibbles, uint32_t half, double *out) {
  for (uint32_t i = 0; i < half; i++) {
    const float low = scale * (float)table[nibbles[i] & 15], high = scale * (float)table[nibbles[i] >> 4];
    out[i] = (double)low;
    out[half + i] = (double)high;
  }
}

static void iq4_nl_block(const unsigned char *block, double *out) { put_group(tm_block_scale_load(block), steps, block + 2, 16, out); }

static void iq4_xs_block(const unsigned char *block, double *out) {
  const float d = tm_block_scale_load(block);
  const int high = block[2] | block[3] << 8;
  for (uint32_t group = 0; group < 8; group++) {
    const int low = block[4 + group / 2] >> 4 * (group % 2) & 15;
    const int scale = (low | (high >> 2 * group & 3) << 4) - 32;
    put_group(d * (float)scale, steps, block + 8 + group * 16, 16, out + group * 32);
  }
}

static void mxfp4_block(const unsigned char *block, double *out) {
  put_group(ldexpf(1.0f, (int)block[0] - 128), twice_e2m1, block + 1, 16, out);
}

/* Half of the scale, as twice the elements stand in the table.  The code of E4M3's NaN is 0. */
static float half_e4m3(unsigned code) {
  const int exponent = (int)(code >> 3 & 15u), mantissa = (int)(code & 7u);
  if (code == 0 || code == 0x7f) return 0.0f;
  return exponent == 0 ? ldexpf((float)mantissa, -10) : ldexpf((float)(8 + mantissa), exponent - 11);
}

static void nvfp4_block(const unsigned char *block, double *out) {
  for (uint32_t group = 0; group < 4; group++)
    put_group(half_e4m3(block[group]), twice_e2m1, block + 4 + group * 8, 8, out + group * 16);
}

TM_DECODE_BLOCKS(iq4_nl, 32, 18)
TM_DECODE_BLOCKS(iq4_xs, 256, 136)
TM_DECODE_BLOCKS(mxfp4, 32, 17)
TM_DECODE_BLOCKS(nvfp4, 64, 36)

static const tm_codec codecs[] = { TM_READ_ONLY_CODEC(IQ4_NL, iq4_nl), TM_READ_ONLY_CODEC(IQ4_XS, iq4_xs), TM_READ_ONLY_CODEC(MXFP4, mxfp4),
                                   TM_READ_ONLY_CODEC(NVFP4, nvfp4) };

const tm_codec_family tm_codec_family_nonlinear = { codecs, sizeof codecs / sizeof codecs[0] };
