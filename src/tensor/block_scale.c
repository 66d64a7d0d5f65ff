/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/block_scale.h"

#include <math.h>

float tm_block_scale_load(const unsigned char *f16_bytes) {
  double scale;
  tm_codec_find(TM_FORMAT_F16)->decode(f16_bytes, 1, &scale);
  return (float)scale;
}

void tm_block_scale_store(float scale, unsigned char *out_f16_bytes) {
  const double wide = (double)scale;
  tm_codec_find(TM_FORMAT_F16)->encode(&wide, 1, out_f16_bytes);
}

float tm_block_to_f32(const double *values, uint32_t count, float *out_values) {
  float largest = 0.0f;
  for (uint32_t i = 0; i < count; i++) {
    out_values[i] = (float)values[i];
    const float magnitude = fabsf(out_values[i]);
    if (magnitude > largest || magnitude != magnitude) largest = magnitude;
    if (largest != largest) return largest;
  }
  return largest;
}
