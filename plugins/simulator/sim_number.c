/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_number.h"

#include <math.h>
#include <string.h>

static const sim_format formats[] = {
  { TM_FORMAT_F32, 4, 1, "f32" },   { TM_FORMAT_F16, 2, 1, "f16" },   { TM_FORMAT_BF16, 2, 1, "bf16" },
  { TM_FORMAT_I8, 1, 1, "i8" },     { TM_FORMAT_I32, 4, 1, "i32" },   { TM_FORMAT_F64, 8, 0, "f64" },
  { TM_FORMAT_F8_E4M3FN, 1, 0, "f8_e4m3fn" },                         { TM_FORMAT_F8_E5M2, 1, 0, "f8_e5m2" },
  { TM_FORMAT_Q8_0, 0, 0, "q8_0" }, { TM_FORMAT_Q4_0, 0, 0, "q4_0" },
};
#define FORMATS (sizeof formats / sizeof formats[0])

const sim_format *sim_format_at(uint32_t index) { return index < FORMATS ? &formats[index] : NULL; }

const sim_format *sim_format_find(uint32_t format) {
  for (size_t i = 0; i < FORMATS; i++)
    if (formats[i].format == format) return &formats[i];
  return NULL;
}

const sim_format *sim_format_by_name(const char *name) {
  for (size_t i = 0; i < FORMATS; i++)
    if (strcmp(formats[i].name, name) == 0) return &formats[i];
  return NULL;
}

int sim_is_zero(const void *data, uint64_t begin, uint64_t end) {
  while (begin < end && ((const char *)data)[begin] == 0) begin++;
  return begin >= end;
}

/* ---- 16-bit floats ---- */

static double f32_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

static uint32_t bits_of(double value) {
  const float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return bits;
}

/* The exponent field moves up by 112 in value; what was infinite or NaN stays so. */
static double f16_of(uint16_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return f32_of(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  return f32_of(sign | rest << 13) * 0x1p112;
}

/* `value` rounded to `digits` significant bits and multiples of 2^lowest.  Two roundings, through f32, would not do. */
static double rounded(double value, int digits, int lowest) {
  int exponent = 0;
  if (value == 0 || !isfinite(value)) return value;
  (void)frexp(value, &exponent);
  const int last = exponent - digits > lowest ? exponent - digits : lowest;
  return ldexp(nearbyint(ldexp(value, -last)), last);
}

static uint16_t f16_bits_of(double value) {
  const uint32_t sign = signbit(value) ? 0x8000u : 0;
  const double near = fabs(rounded(value, 11, -24));
  if (isnan(value)) return (uint16_t)(sign | 0x7e00u | (bits_of(value) >> 13 & 0x1ffu));
  if (near > 65504) return (uint16_t)(sign | 0x7c00u);
  return (uint16_t)(sign | bits_of(near * 0x1p-112) >> 13);
}

static uint16_t bf16_bits_of(double value) {
  if (isnan(value)) return (uint16_t)(bits_of(value) >> 16 | 0x40u);
  return (uint16_t)(bits_of(rounded(value, 8, -133)) >> 16);
}

/* ---- elements ---- */

double sim_load(uint32_t format, const void *array, uint64_t index) {
  switch (format) {
    case TM_FORMAT_F32: return (double)((const float *)array)[index];
    case TM_FORMAT_F16: return f16_of(((const uint16_t *)array)[index]);
    case TM_FORMAT_BF16: return f32_of((uint32_t)((const uint16_t *)array)[index] << 16);
    case TM_FORMAT_I8: return ((const int8_t *)array)[index];
    default: return ((const int32_t *)array)[index];
  }
}

void sim_store(uint32_t format, void *array, uint64_t index, double value) {
  switch (format) {
    case TM_FORMAT_F32: ((float *)array)[index] = (float)value; break;
    case TM_FORMAT_F16: ((uint16_t *)array)[index] = f16_bits_of(value); break;
    case TM_FORMAT_BF16: ((uint16_t *)array)[index] = bf16_bits_of(value); break;
    case TM_FORMAT_I8: ((int8_t *)array)[index] = (int8_t)value; break;
    default: ((int32_t *)array)[index] = (int32_t)value; break;
  }
}
