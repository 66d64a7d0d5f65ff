/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "tensor/codec_family.h"

/* Truncates towards zero into [low, high]; NaN gives 0.  `end` is the first f64 above the range. */
static inline int64_t truncate_signed(double value, int64_t low, int64_t high, double end) {
  if (value != value) return 0;
  if (value >= end) return high;
  if (value <= (double)low) return low;
  return (int64_t)value;
}

static inline uint64_t truncate_unsigned(double value, uint64_t high, double end) {
  if (!(value >= 1.0)) return 0;
  return value >= end ? high : (uint64_t)value;
}

#define INTEGER_CODEC(name, type, wide_type, truncated)                                                    \
  static void decode_##name(const void *source, uint64_t elements, double *out_values) {                  \
    const unsigned char *bytes = source;                                                                   \
    for (uint64_t i = 0; i < elements; i++) {                                                              \
      type element;                                                                                        \
      memcpy(&element, bytes + i * sizeof element, sizeof element);                                        \
      out_values[i] = (double)element;                                                                     \
    }                                                                                                      \
  }                                                                                                        \
  static void encode_##name(const double *values, uint64_t elements, void *out_bytes) {                   \
    unsigned char *bytes = out_bytes;                                                                      \
    for (uint64_t i = 0; i < elements; i++) {                                                              \
      const double value = values[i];                                                                      \
      const type element = (type)(truncated);                                                              \
      memcpy(bytes + i * sizeof element, &element, sizeof element);                                        \
    }                                                                                                      \
  }                                                                                                        \
  static void decode_integer_##name(const void *source, uint64_t elements, int64_t *out_values) {         \
    const unsigned char *bytes = source;                                                                   \
    for (uint64_t i = 0; i < elements; i++) {                                                              \
      type element;                                                                                        \
      memcpy(&element, bytes + i * sizeof element, sizeof element);                                        \
      out_values[i] = (int64_t)(wide_type)element;                                                         \
    }                                                                                                      \
  }                                                                                                        \
  static void encode_integer_##name(const int64_t *values, uint64_t elements, void *out_bytes) {          \
    unsigned char *bytes = out_bytes;                                                                      \
    for (uint64_t i = 0; i < elements; i++) {                                                              \
      const type element = (type)values[i];                                                                \
      memcpy(bytes + i * sizeof element, &element, sizeof element);                                        \
    }                                                                                                      \
  }

INTEGER_CODEC(i8, int8_t, int64_t, truncate_signed(value, INT8_MIN, INT8_MAX, 128.0))
INTEGER_CODEC(u8, uint8_t, uint64_t, truncate_unsigned(value, UINT8_MAX, 256.0))
INTEGER_CODEC(i16, int16_t, int64_t, truncate_signed(value, INT16_MIN, INT16_MAX, 32768.0))
INTEGER_CODEC(u16, uint16_t, uint64_t, truncate_unsigned(value, UINT16_MAX, 65536.0))
INTEGER_CODEC(i32, int32_t, int64_t, truncate_signed(value, INT32_MIN, INT32_MAX, 0x1p31))
INTEGER_CODEC(u32, uint32_t, uint64_t, truncate_unsigned(value, UINT32_MAX, 0x1p32))
INTEGER_CODEC(i64, int64_t, int64_t, truncate_signed(value, INT64_MIN, INT64_MAX, 0x1p63))
INTEGER_CODEC(u64, uint64_t, uint64_t, truncate_unsigned(value, UINT64_MAX, 0x1p64))

static void decode_bool(const void *source, uint64_t elements, double *out_values) {
  const unsigned char *bytes = source;
  for (uint64_t i = 0; i < elements; i++) out_values[i] = bytes[i] != 0 ? 1.0 : 0.0;
}

static void encode_bool(const double *values, uint64_t elements, void *out_bytes) {
  unsigned char *bytes = out_bytes;
  for (uint64_t i = 0; i < elements; i++) bytes[i] = values[i] != 0.0;
}

static void decode_integer_bool(const void *source, uint64_t elements, int64_t *out_values) {
  const unsigned char *bytes = source;
  for (uint64_t i = 0; i < elements; i++) out_values[i] = bytes[i] != 0;
}

static void encode_integer_bool(const int64_t *values, uint64_t elements, void *out_bytes) {
  unsigned char *bytes = out_bytes;
  for (uint64_t i = 0; i < elements; i++) bytes[i] = values[i] != 0;
}

static inline unsigned nibble_at(const unsigned char *bytes, uint64_t i) {
  return (unsigned)bytes[i / 2] >> (i % 2 * 4) & 15u;
}

static inline int64_t signed_nibble(unsigned nibble) { return (int64_t)(nibble ^ 8u) - 8; }

static inline unsigned char pair(uint64_t low, uint64_t high) { return (unsigned char)((low & 15) | (high & 15) << 4); }

static void decode_i4(const void *source, uint64_t elements, double *out_values) {
  for (uint64_t i = 0; i < elements; i++) out_values[i] = (double)signed_nibble(nibble_at(source, i));
}

static void decode_u4(const void *source, uint64_t elements, double *out_values) {
  for (uint64_t i = 0; i < elements; i++) out_values[i] = (double)nibble_at(source, i);
}

static void encode_i4(const double *values, uint64_t elements, void *out_bytes) {
  unsigned char *bytes = out_bytes;
  for (uint64_t i = 0; i < elements / 2; i++)
    bytes[i] = pair((uint64_t)truncate_signed(values[2 * i], -8, 7, 8.0),
                    (uint64_t)truncate_signed(values[2 * i + 1], -8, 7, 8.0));
}

static void encode_u4(const double *values, uint64_t elements, void *out_bytes) {
  unsigned char *bytes = out_bytes;
  for (uint64_t i = 0; i < elements / 2; i++)
    bytes[i] = pair(truncate_unsigned(values[2 * i], 15, 16.0), truncate_unsigned(values[2 * i + 1], 15, 16.0));
}

static void decode_integer_i4(const void *source, uint64_t elements, int64_t *out_values) {
  for (uint64_t i = 0; i < elements; i++) out_values[i] = signed_nibble(nibble_at(source, i));
}

static void decode_integer_u4(const void *source, uint64_t elements, int64_t *out_values) {
  for (uint64_t i = 0; i < elements; i++) out_values[i] = (int64_t)nibble_at(source, i);
}

static void encode_integer_4(const int64_t *values, uint64_t elements, void *out_bytes) {
  unsigned char *bytes = out_bytes;
  for (uint64_t i = 0; i < elements / 2; i++) bytes[i] = pair((uint64_t)values[2 * i], (uint64_t)values[2 * i + 1]);
}

typedef struct range {
  uint32_t format;
  int64_t  min;
  int64_t  max;
} range;

static const range ranges[] = {
  { TM_FORMAT_I4, -8, 7 },
  { TM_FORMAT_U4, 0, 15 },
  { TM_FORMAT_I8, INT8_MIN, INT8_MAX },
  { TM_FORMAT_U8, 0, UINT8_MAX },
  { TM_FORMAT_I16, INT16_MIN, INT16_MAX },
  { TM_FORMAT_U16, 0, UINT16_MAX },
  { TM_FORMAT_I32, INT32_MIN, INT32_MAX },
  { TM_FORMAT_U32, 0, UINT32_MAX },
  { TM_FORMAT_I64, INT64_MIN, INT64_MAX },
  { TM_FORMAT_U64, 0, -1 },
  { TM_FORMAT_BOOL, 0, 1 },
};

void tm_integer_range(uint32_t format, int64_t *out_min, int64_t *out_max) {
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    if (ranges[i].format != format) continue;
    *out_min = ranges[i].min;
    *out_max = ranges[i].max;
  }
}

#define ROW(id, name) \
  { TM_FORMAT_##id, decode_##name, encode_##name, encode_##name, decode_integer_##name, encode_integer_##name }

static const tm_codec codecs[] = {
  { TM_FORMAT_I4, decode_i4, encode_i4, encode_i4, decode_integer_i4, encode_integer_4 },
  { TM_FORMAT_U4, decode_u4, encode_u4, encode_u4, decode_integer_u4, encode_integer_4 },
  ROW(I8, i8),
  ROW(U8, u8),
  ROW(I16, i16),
  ROW(U16, u16),
  ROW(I32, i32),
  ROW(U32, u32),
  ROW(I64, i64),
  ROW(U64, u64),
  ROW(BOOL, bool),
};

const tm_codec_family tm_codec_family_integer = { codecs, sizeof codecs / sizeof codecs[0] };
