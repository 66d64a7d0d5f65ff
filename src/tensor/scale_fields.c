/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/scale_fields.h"

#include <stddef.h>

#define ONE(format, offset) { TM_FORMAT_##format, TM_SCALE_F16, 1, { offset } }
#define TWO(format, first, second) { TM_FORMAT_##format, TM_SCALE_F16, 2, { first, second } }

static const tm_scale_fields rows[] = {
  ONE(Q4_0, 0),     TWO(Q4_1, 0, 2),  ONE(Q5_0, 0),    TWO(Q5_1, 0, 2),  ONE(Q8_0, 0),   ONE(Q8_1, 0),    TWO(Q2_K, 80, 82),
  ONE(Q3_K, 108),   TWO(Q4_K, 0, 2),  TWO(Q5_K, 0, 2), ONE(Q6_K, 208),   ONE(IQ2_XXS, 0), ONE(IQ2_XS, 0), ONE(IQ3_XXS, 0),
  ONE(IQ1_S, 0),    ONE(IQ4_NL, 0),   ONE(IQ3_S, 0),   ONE(IQ2_S, 0),    ONE(IQ4_XS, 0), ONE(TQ1_0, 52),  ONE(TQ2_0, 64),
  ONE(Q1_0, 0),     ONE(Q2_0, 0),
  { TM_FORMAT_Q8_K, TM_SCALE_F32, 1, { 0 } },
  { TM_FORMAT_IQ1_M, TM_SCALE_F16_APART, 1, { 48 } },
  { TM_FORMAT_MXFP4, TM_SCALE_E8M0, 1, { 0 } },
  { TM_FORMAT_NVFP4, TM_SCALE_E4M3, 4, { 0, 1, 2, 3 } },
};

const tm_scale_fields *tm_scale_fields_find(uint32_t format) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].format == format) return &rows[i];
  return NULL;
}

static uint32_t load_u16(const unsigned char *bytes) { return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8; }

uint32_t tm_scale_bits(const tm_scale_fields *fields, uint32_t field, const unsigned char *block) {
  const unsigned char *at = block + fields->offsets[field];
  uint32_t bits = 0;
  switch (fields->kind) {
    case TM_SCALE_F16: return load_u16(at);
    case TM_SCALE_F32: return load_u16(at) | load_u16(at + 2) << 16;
    case TM_SCALE_F16_APART:
      for (uint32_t i = 0; i < 4; i++) bits |= load_u16(at + 2 * i) >> 12 << (4 * i);
      return bits;
    case TM_SCALE_E8M0:
    case TM_SCALE_E4M3: break;
  }
  return at[0];
}
