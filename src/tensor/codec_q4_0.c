/* SPDX-License-Identifier: Apache-2.0 */
/* q4_0: 32 elements in 18 bytes, an f16 scale d and 16 bytes of nibbles q (elements 0..15 low, 16..31 high); the value
   is (q - 8) * d in f32. */
#include <math.h>
#include <stddef.h>

#include "tensor/block_scale.h"
#include "tensor/codec_family.h"

#define BLOCK_ELEMENTS 32
#define HALF_ELEMENTS 16
#define BLOCK_BYTES 18
#define QUANTS_AT 2

static void decode_q4_0(const void *source, uint64_t elements, double *out_values) {
  const unsigned char *block = source;
  for (uint64_t at = 0; at < elements; at += BLOCK_ELEMENTS, block += BLOCK_BYTES) {
    const float d = tm_block_scale_load(block);
    for (uint32_t i = 0; i < HALF_ELEMENTS; i++) {
      const int quants = block[QUANTS_AT + i];
      const float low = (float)((quants & 15) - 8) * d;
      const float high = (float)((quants >> 4) - 8) * d;
      out_values[at + i] = (double)low;
      out_values[at + HALF_ELEMENTS + i] = (double)high;
    }
  }
}

static unsigned to_quant(float quotient) {
  const float shifted = quotient + 8.5f;
  if (shifted >= 15.0f) return 15;
  return shifted > 0.0f ? (unsigned)shifted : 0;
}

/* The signed value of the largest magnitude; the first one wins a tie; of zeros of either sign +0. */
static float extreme_of(const float *x, float largest) {
  if (largest == 0.0f) return 0.0f;
  for (uint32_t i = 0; i < BLOCK_ELEMENTS; i++)
    if (fabsf(x[i]) == largest) return x[i];
  return largest;
}

/* A block with a value that is not finite keeps no finite scale; quants away from 8 would then decode to infinities, so
   all of them are 8 and the block decodes to NaN. */
static void encode_block(const double *values, unsigned char *block) {
  float x[BLOCK_ELEMENTS];
  const float largest = tm_block_to_f32(values, BLOCK_ELEMENTS, x);
  const float d = extreme_of(x, largest) / -8.0f;
  const float inverse = d != 0.0f ? 1.0f / d : 0.0f;
  tm_block_scale_store(d, block);
  for (uint32_t i = 0; i < HALF_ELEMENTS; i++) {
    const unsigned low = isfinite(d) ? to_quant(x[i] * inverse) : 8;
    const unsigned high = isfinite(d) ? to_quant(x[HALF_ELEMENTS + i] * inverse) : 8;
    block[QUANTS_AT + i] = (unsigned char)(low | high << 4);
  }
}

static void encode_q4_0(const double *values, uint64_t elements, void *out_bytes) {
  unsigned char *block = out_bytes;
  for (uint64_t at = 0; at < elements; at += BLOCK_ELEMENTS, block += BLOCK_BYTES) encode_block(values + at, block);
}

static const tm_codec codec = { TM_FORMAT_Q4_0, decode_q4_0, encode_q4_0, encode_q4_0, NULL, NULL };

const tm_codec_family tm_codec_family_q4_0 = { &codec, 1 };
