/* SPDX-License-Identifier: Apache-2.0 */
/* q8_0: 32 elements in 34 bytes, an f16 scale d and 32 signed bytes q; the value is d * q in f32. */
#include <math.h>
#include <stddef.h>

#include "tensor/block_scale.h"
#include "tensor/codec_family.h"

#define BLOCK_ELEMENTS 32
#define BLOCK_BYTES 34
#define QUANTS_AT 2

static void decode_q8_0(const void *source, uint64_t elements, double *out_values) {
  const unsigned char *block = source;
  for (uint64_t at = 0; at < elements; at += BLOCK_ELEMENTS, block += BLOCK_BYTES) {
    const float d = tm_block_scale_load(block);
    for (uint32_t i = 0; i < BLOCK_ELEMENTS; i++) {
      const float value = (float)(int8_t)block[QUANTS_AT + i] * d;
      out_values[at + i] = (double)value;
    }
  }
}

/* Rounds halves away from zero; the fraction is exact.  A scale so small that its inverse overflows leaves quotients
   beyond a byte. */
static int8_t to_quant(float quotient) {
  if (quotient >= 127.0f) return INT8_MAX;
  if (quotient <= -128.0f) return INT8_MIN;
  if (quotient != quotient) return 0;
  const int whole = (int)quotient;
  const float fraction = quotient - (float)whole;
  return (int8_t)(whole + (fraction >= 0.5f) - (fraction <= -0.5f));
}

/* A block with a value that is not finite keeps no finite scale, so all of it decodes to NaN and the damage shows. */
static void encode_block(const double *values, unsigned char *block) {
  float x[BLOCK_ELEMENTS];
  const float largest = tm_block_to_f32(values, BLOCK_ELEMENTS, x);
  const float d = largest / 127.0f;
  const float inverse = d != 0.0f && isfinite(d) ? 1.0f / d : 0.0f;
  tm_block_scale_store(d, block);
  for (uint32_t i = 0; i < BLOCK_ELEMENTS; i++) block[QUANTS_AT + i] = (unsigned char)to_quant(x[i] * inverse);
}

static void encode_q8_0(const double *values, uint64_t elements, void *out_bytes) {
  unsigned char *block = out_bytes;
  for (uint64_t at = 0; at < elements; at += BLOCK_ELEMENTS, block += BLOCK_BYTES) encode_block(values + at, block);
}

static const tm_codec codec = { TM_FORMAT_Q8_0, decode_q8_0, encode_q8_0, encode_q8_0, NULL, NULL };

const tm_codec_family tm_codec_family_q8_0 = { &codec, 1 };
