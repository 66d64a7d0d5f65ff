/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/codec.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "tensor/codec_family.h"

static const tm_codec_family *const families[] = {
  &tm_codec_family_float,
  &tm_codec_family_integer,
  &tm_codec_family_q4_0,
  &tm_codec_family_q8_0,
  &tm_codec_family_legacy,
  &tm_codec_family_k,
  &tm_codec_family_nonlinear,
  &tm_codec_family_ternary,
};

const tm_codec *tm_codec_find(uint32_t format) {
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
    for (uint32_t j = 0; j < families[i]->count; j++)
      if (families[i]->codecs[j].format == format) return &families[i]->codecs[j];
  return NULL;
}

double tm_f64_to_odd(int64_t value, bool is_unsigned) {
  const bool negative = !is_unsigned && value < 0;
  uint64_t magnitude = negative ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
  if (magnitude >> 53 != 0) {
    const int shift = 11 - __builtin_clzll(magnitude);
    const uint64_t lost = magnitude & ((UINT64_C(1) << shift) - 1);
    magnitude = ((magnitude >> shift) | (lost != 0)) << shift;
  }
  return negative ? -(double)magnitude : (double)magnitude;
}

double tm_f64_quiet(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value != value) bits |= UINT64_C(1) << 51;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double tm_f64_unified(double value) {
  if (isnan(value)) return (double)NAN;
  return value == 0 ? 0 : value;
}
