/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "tensor/codec_family.h"

/* How a float narrower than f64 splits its bits. */
typedef struct layout {
  int      exponent_bits;
  int      mantissa_bits;
  bool     has_infinity;        /* else only the largest code of each sign is NaN */
} layout;

static const layout layout_f32 = { 8, 23, true };
static const layout layout_f16 = { 5, 10, true };
static const layout layout_bf16 = { 8, 7, true };
static const layout layout_e4m3fn = { 4, 3, false };
static const layout layout_e5m2 = { 5, 2, true };

static inline uint64_t to_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline double from_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline int bias_of(layout f) { return (1 << (f.exponent_bits - 1)) - 1; }

static inline uint32_t infinity_of(layout f) { return ((1u << f.exponent_bits) - 1) << f.mantissa_bits; }

/* One past the largest finite code. */
static inline uint32_t finite_end_of(layout f) {
  return f.has_infinity ? infinity_of(f) : (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
}

/* 2^exponent for exponents of normal f64. */
static inline double power_of_two(int exponent) { return from_bits((uint64_t)(exponent + 1023) << 52); }

static inline double decode_one(uint32_t code, layout f) {
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t sign = (uint64_t)(code >> width & 1) << 63;
  const uint32_t rest = code & ((1u << width) - 1);
  const uint64_t mantissa = (uint64_t)(rest & ((1u << f.mantissa_bits) - 1)) << (52 - f.mantissa_bits);
  if (rest >= finite_end_of(f)) return from_bits(sign | UINT64_C(0x7ff) << 52 | mantissa);
  const int exponent = (int)(rest >> f.mantissa_bits);
  if (exponent == 0) return from_bits(sign | to_bits((double)rest * power_of_two(1 - bias_of(f) - f.mantissa_bits)));
  return from_bits(sign | (uint64_t)(exponent - bias_of(f) + 1023) << 52 | mantissa);
}

/* The upper payload bits are kept; a payload lost altogether becomes the quiet bit, so that it stays a NaN. */
static inline uint32_t encode_nan(uint64_t bits, layout f) {
  if (!f.has_infinity) return finite_end_of(f);
  const uint32_t payload = (uint32_t)(bits >> (52 - f.mantissa_bits)) & ((1u << f.mantissa_bits) - 1);
  return infinity_of(f) | (payload != 0 ? payload : 1u << (f.mantissa_bits - 1));
}

/* Below the smallest normal code the distance between codes no longer shrinks with the exponent. */
static inline uint64_t round_subnormal(uint64_t magnitude, layout f) {
  const int exponent = (int)(magnitude >> 52) - 1023;
  const int shift = 52 - f.mantissa_bits + 1 - bias_of(f) - exponent;
  if (shift > 53) return 0;
  const uint64_t mantissa = (magnitude & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  return (mantissa + (UINT64_C(1) << (shift - 1)) - 1 + (mantissa >> shift & 1)) >> shift;
}

/* Rounds a magnitude to the nearest code, ties to even; the code of a large one lies beyond the finite ones.  Adding in
   place carries from the mantissa into the exponent by itself. */
static inline uint64_t round_magnitude(uint64_t magnitude, layout f) {
  const uint64_t bias_difference = (uint64_t)(1023 - bias_of(f));
  const int shift = 52 - f.mantissa_bits;
  if (magnitude < (bias_difference + 1) << 52) return round_subnormal(magnitude, f);
  const uint64_t rounded = (magnitude + (UINT64_C(1) << (shift - 1)) - 1 + (magnitude >> shift & 1)) >> shift;
  return rounded - (bias_difference << f.mantissa_bits);
}

static inline uint32_t encode_one(double value, layout f, bool saturate) {
  const uint64_t bits = to_bits(value);
  const uint64_t magnitude = bits & ~(UINT64_C(1) << 63);
  const uint64_t infinity = UINT64_C(0x7ff) << 52;
  const uint32_t sign = (uint32_t)(bits >> 63) << (f.exponent_bits + f.mantissa_bits);
  const uint32_t end = finite_end_of(f);
  if (magnitude > infinity) return sign | encode_nan(bits, f);
  const uint64_t code = round_magnitude(magnitude, f);
  if (code < end) return sign | (uint32_t)code;
  return sign | (saturate && magnitude != infinity ? end - 1 : end);
}

/* Written once for all narrow formats; the layout is a constant at each use, so the compiler folds it. */
#define NARROW_DECODER(name, code_type, layout_name)                                                        \
  static void decode_##name(const void *source, uint64_t elements, double *out_values) {                  \
    const unsigned char *bytes = source;                                                                   \
    for (uint64_t i = 0; i < elements; i++) {                                                              \
      code_type code;                                                                                      \
      memcpy(&code, bytes + i * sizeof code, sizeof code);                                                 \
      out_values[i] = decode_one(code, layout_name);                                                       \
    }                                                                                                      \
  }

#define NARROW_ENCODERS(name, code_type, layout_name)                                                       \
  static inline void encode_run_##name(const double *values, uint64_t elements, void *out, bool saturate) { \
    unsigned char *bytes = out;                                                                            \
    for (uint64_t i = 0; i < elements; i++) {                                                              \
      const code_type code = (code_type)encode_one(values[i], layout_name, saturate);                      \
      memcpy(bytes + i * sizeof code, &code, sizeof code);                                                 \
    }                                                                                                      \
  }                                                                                                        \
  static void encode_##name(const double *values, uint64_t elements, void *out_bytes) {                   \
    encode_run_##name(values, elements, out_bytes, false);                                                 \
  }                                                                                                        \
  static void encode_saturating_##name(const double *values, uint64_t elements, void *out_bytes) {        \
    encode_run_##name(values, elements, out_bytes, true);                                                  \
  }

NARROW_DECODER(f16, uint16_t, layout_f16)
NARROW_DECODER(e4m3fn, uint8_t, layout_e4m3fn)
NARROW_DECODER(e5m2, uint8_t, layout_e5m2)
NARROW_ENCODERS(f16, uint16_t, layout_f16)
NARROW_ENCODERS(bf16, uint16_t, layout_bf16)
NARROW_ENCODERS(e4m3fn, uint8_t, layout_e4m3fn)
NARROW_ENCODERS(e5m2, uint8_t, layout_e5m2)

/* The processor converts f32 exactly as wanted, except that it quiets signalling NaN. */
static inline double widen(uint32_t f32_code) {
  float value;
  memcpy(&value, &f32_code, sizeof value);
  return value != value ? decode_one(f32_code, layout_f32) : (double)value;
}

static void decode_f32(const void *source, uint64_t elements, double *out_values) {
  const unsigned char *bytes = source;
  for (uint64_t i = 0; i < elements; i++) {
    uint32_t code;
    memcpy(&code, bytes + i * sizeof code, sizeof code);
    out_values[i] = widen(code);
  }
}

static void decode_bf16(const void *source, uint64_t elements, double *out_values) {
  const unsigned char *bytes = source;
  for (uint64_t i = 0; i < elements; i++) {
    uint16_t code;
    memcpy(&code, bytes + i * sizeof code, sizeof code);
    out_values[i] = widen((uint32_t)code << 16);
  }
}

static void encode_f32(const double *values, uint64_t elements, void *out_bytes) {
  unsigned char *bytes = out_bytes;
  for (uint64_t i = 0; i < elements; i++) {
    const float value = (float)values[i];
    memcpy(bytes + i * sizeof value, &value, sizeof value);
    if (value != value) {
      const uint32_t code = encode_one(values[i], layout_f32, false);
      memcpy(bytes + i * sizeof code, &code, sizeof code);
    }
  }
}

static void encode_saturating_f32(const double *values, uint64_t elements, void *out_bytes) {
  unsigned char *bytes = out_bytes;
  for (uint64_t i = 0; i < elements; i++) {
    const uint32_t code = encode_one(values[i], layout_f32, true);
    memcpy(bytes + i * sizeof code, &code, sizeof code);
  }
}

static void decode_f64(const void *source, uint64_t elements, double *out_values) {
  memcpy(out_values, source, (size_t)elements * sizeof *out_values);
}

static void encode_f64(const double *values, uint64_t elements, void *out_bytes) {
  memcpy(out_bytes, values, (size_t)elements * sizeof *values);
}

static const tm_codec codecs[] = {
  { TM_FORMAT_F64, decode_f64, encode_f64, encode_f64, NULL, NULL },
  { TM_FORMAT_F32, decode_f32, encode_f32, encode_saturating_f32, NULL, NULL },
  { TM_FORMAT_F16, decode_f16, encode_f16, encode_saturating_f16, NULL, NULL },
  { TM_FORMAT_BF16, decode_bf16, encode_bf16, encode_saturating_bf16, NULL, NULL },
  { TM_FORMAT_F8_E4M3FN, decode_e4m3fn, encode_e4m3fn, encode_saturating_e4m3fn, NULL, NULL },
  { TM_FORMAT_F8_E5M2, decode_e5m2, encode_e5m2, encode_saturating_e5m2, NULL, NULL },
};

const tm_codec_family tm_codec_family_float = { codecs, sizeof codecs / sizeof codecs[0] };
