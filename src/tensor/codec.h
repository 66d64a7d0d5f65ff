/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - the values behind the bytes: scalar decoding and encoding of runs of elements, one row a format.  The
 * reference of every operation goes through it; nothing here knows shapes or strides.
 *
 * A run starts at a block and holds whole blocks.  Decoding then encoding gives back the bytes of every float format,
 * NaN payloads included.  "One rounding" is to nearest, ties to even.
 */
#ifndef TM_TENSOR_CODEC_H
#define TM_TENSOR_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

typedef void (*tm_decode_fn)(const void *source, uint64_t elements, double *out_values);
typedef void (*tm_encode_fn)(const double *values, uint64_t elements, void *out_bytes);
typedef void (*tm_decode_integer_fn)(const void *source, uint64_t elements, int64_t *out_values);
typedef void (*tm_encode_integer_fn)(const int64_t *values, uint64_t elements, void *out_bytes);

typedef struct tm_codec {
  uint32_t format;
  /* Floats and blocks: exactly.  Integers: to the nearest f64.  bool: 0 or 1. */
  tm_decode_fn decode;
  /* NULL where only reading is known.  Floats: one rounding; beyond the range infinity, or NaN where there is none.  Integers: truncates, saturates, NaN
     gives 0.  bool: x != 0, NaN is true.  Blocks: rounds to f32, then the family's reference encoder. */
  tm_encode_fn encode;
  /* As encode, but a finite value beyond a float's range becomes its largest finite one. */
  tm_encode_fn encode_saturating;
  /* Integers and bool only, else NULL.  64-bit two's complement: u64 comes as the same bits.  Encoding keeps the low
     bits; bool: x != 0. */
  tm_decode_integer_fn decode_integer;
  tm_encode_integer_fn encode_integer;
} tm_codec;

/* NULL for a format without values (tm_format_info.has_values); without arithmetic its encoders are NULL. */
const tm_codec *tm_codec_find(uint32_t format);

/* The range of an integer format as 64-bit two's complement (the maximum of u64 as the bits of -1); bool: 0 and 1. */
void tm_integer_range(uint32_t format, int64_t *out_min, int64_t *out_max);

/* 64-bit integers to f64 so that one more rounding to a narrower float is right: what is lost sets the last bit. */
double tm_f64_to_odd(int64_t value, bool is_unsigned);

/* Sets the quiet bit of a NaN; any other value is returned as it is. */
double tm_f64_quiet(double value);

/* Values that count as equal across formats get the same bits: -0 those of 0, and every NaN those of one. */
double tm_f64_unified(double value);

#endif
