/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/codec.h"
#include "tensor/format.h"

/* The formats again, in the words of their specifications and with nothing but ldexp: the oracle of the codecs. */
typedef struct narrow {
  uint32_t format;
  int      exponent_bits;
  int      mantissa_bits;
  int      bias;
  uint32_t largest_finite;
  uint32_t infinity;            /* 0 = none */
} narrow;

static const narrow narrows[] = {
  { TM_FORMAT_F16, 5, 10, 15, 0x7bff, 0x7c00 },
  { TM_FORMAT_BF16, 8, 7, 127, 0x7f7f, 0x7f80 },
  { TM_FORMAT_F8_E4M3FN, 4, 3, 7, 0x7e, 0 },
  { TM_FORMAT_F8_E5M2, 5, 2, 15, 0x7b, 0x7c },
};
#define NARROW_COUNT (sizeof narrows / sizeof narrows[0])

static int width_of(const narrow *n) { return n->exponent_bits + n->mantissa_bits; }

static double value_of(const narrow *n, uint32_t code) {
  const uint32_t rest = code & ((1u << width_of(n)) - 1);
  const double sign = code >> width_of(n) != 0 ? -1.0 : 1.0;
  const int exponent = (int)(rest >> n->mantissa_bits);
  const double mantissa = (double)(rest & ((1u << n->mantissa_bits) - 1));
  if (n->infinity != 0 && rest == n->infinity) return sign * INFINITY;
  if (rest > n->largest_finite) return NAN;
  if (exponent == 0) return sign * ldexp(mantissa, 1 - n->bias - n->mantissa_bits);
  return sign * ldexp(ldexp(1.0, n->mantissa_bits) + mantissa, exponent - n->bias - n->mantissa_bits);
}

static double decode(uint32_t format, uint32_t code) {
  double value;
  tm_codec_find(format)->decode(&code, 1, &value);
  return value;
}

static uint32_t encode(uint32_t format, double value) {
  uint32_t code = 0;
  tm_codec_find(format)->encode(&value, 1, &code);
  return code;
}

static uint32_t encode_saturating(uint32_t format, double value) {
  uint32_t code = 0;
  tm_codec_find(format)->encode_saturating(&value, 1, &code);
  return code;
}

static void every_code_decodes_and_comes_back(void **state) {
  (void)state;
  for (size_t f = 0; f < NARROW_COUNT; f++) {
    const narrow *n = &narrows[f];
    for (uint32_t code = 0; code < 2u << width_of(n); code++) {
      const double expected = value_of(n, code);
      const double found = decode(n->format, code);
      const int same = isnan(expected) ? isnan(found) : expected == found && !signbit(expected) == !signbit(found);
      if (!same) fail_msg("format %u code 0x%x: %a, expected %a", n->format, code, found, expected);
      if (encode(n->format, found) != code)
        fail_msg("format %u code 0x%x comes back as 0x%x", n->format, code, encode(n->format, found));
      if (encode_saturating(n->format, found) != code) fail_msg("format %u code 0x%x saturates", n->format, code);
    }
  }
}

/* Between two neighbouring codes: the middle goes to the even one, a hair beside it to the nearer one. */
static void encoding_rounds_once_to_nearest_even(void **state) {
  (void)state;
  for (size_t f = 0; f < NARROW_COUNT; f++) {
    const narrow *n = &narrows[f];
    for (uint32_t low = 0; low < n->largest_finite; low++) {
      const double a = value_of(n, low);
      const double b = value_of(n, low + 1);
      const double middle = (a + b) / 2;
      const uint32_t sign = 1u << width_of(n);
      const uint32_t even = low % 2 == 0 ? low : low + 1;
      const double points[] = {middle, nextafter(middle, 0), nextafter(middle, INFINITY), nextafter(a, INFINITY),
                               nextafter(b, 0)};
      const uint32_t codes[] = { even, low, low + 1, low, low + 1 };
      for (size_t i = 0; i < 5; i++) {
        if (encode(n->format, points[i]) != codes[i])
          fail_msg("format %u: %a gives 0x%x", n->format, points[i], encode(n->format, points[i]));
        if (encode(n->format, -points[i]) != (codes[i] | sign)) fail_msg("format %u: %a", n->format, -points[i]);
      }
    }
  }
}

static void beyond_the_range(void **state) {
  (void)state;
  for (size_t f = 0; f < NARROW_COUNT; f++) {
    const narrow *n = &narrows[f];
    const double largest = value_of(n, n->largest_finite);
    const double step = largest - value_of(n, n->largest_finite - 1);
    const uint32_t over = n->largest_finite + 1;
    const uint32_t tie = n->largest_finite % 2 == 0 ? n->largest_finite : over;
    assert_int_equal(encode(n->format, largest + step / 2), tie);
    assert_int_equal(encode(n->format, nextafter(largest + step / 2, 0)), n->largest_finite);
    assert_int_equal(encode(n->format, nextafter(largest + step / 2, INFINITY)), over);
    assert_int_equal(encode(n->format, 1e300), over);
    assert_int_equal(encode(n->format, INFINITY), over);
    assert_int_equal(encode_saturating(n->format, 1e300), n->largest_finite);
    assert_int_equal(encode_saturating(n->format, INFINITY), over);
    assert_int_equal(encode(n->format, 0x1p-1074), 0);
    assert_int_equal(encode(n->format, -0.0), 1u << width_of(n));
    assert_true(isnan(decode(n->format, encode(n->format, NAN))));
  }
  assert_int_equal(encode_saturating(TM_FORMAT_F32, 1e300), 0x7f7fffff);
  assert_int_equal(encode(TM_FORMAT_F32, 1e300), 0x7f800000);
}

static void nan_keeps_its_payload(void **state) {
  (void)state;
  const uint32_t codes[] = { 0x7f800001, 0xff800001, 0x7fc00000, 0x7fabcdef };
  for (size_t i = 0; i < 4; i++) assert_int_equal(encode(TM_FORMAT_F32, decode(TM_FORMAT_F32, codes[i])), codes[i]);
  assert_int_equal(encode(TM_FORMAT_F32, tm_f64_quiet(decode(TM_FORMAT_F32, 0x7f800001))), 0x7fc00001);
  /* A payload whose bits are all cut off must not become an infinity. */
  assert_int_equal(encode(TM_FORMAT_F16, decode(TM_FORMAT_F32, 0x7f800001)), 0x7e00);
}

static void floats_to_integers_truncate_and_saturate(void **state) {
  (void)state;
  assert_int_equal(encode(TM_FORMAT_I8, -1.99) & 0xff, 0xff);
  assert_int_equal(encode(TM_FORMAT_I8, 127.99), 127);
  assert_int_equal(encode(TM_FORMAT_I8, 128.0), 127);
  assert_int_equal(encode(TM_FORMAT_I8, -1e9), 0x80);
  assert_int_equal(encode(TM_FORMAT_I8, NAN), 0);
  assert_int_equal(encode(TM_FORMAT_U8, -0.99), 0);
  assert_int_equal(encode(TM_FORMAT_U8, INFINITY), 255);
  assert_int_equal(encode(TM_FORMAT_I32, -INFINITY), 0x80000000);
  assert_int_equal(encode(TM_FORMAT_U32, 4294967295.5), 0xffffffff);
  assert_int_equal(encode(TM_FORMAT_BOOL, -0.0), 0);
  assert_int_equal(encode(TM_FORMAT_BOOL, 1e-300), 1);
  assert_int_equal(encode(TM_FORMAT_BOOL, NAN), 1);
  const double wide[] = { 0x1p63, -0x1p63, -0x1.8p63, 0x1.fffffffffffffp62 };
  int64_t i64[4];
  tm_codec_find(TM_FORMAT_I64)->encode(wide, 4, i64);
  assert_true(i64[0] == INT64_MAX && i64[1] == INT64_MIN && i64[2] == INT64_MIN);
  assert_true(i64[3] == INT64_C(0x7ffffffffffffc00));
  const double wider[] = { 0x1p64, 0x1.fffffffffffffp63, -1.0 };
  uint64_t u64[3];
  tm_codec_find(TM_FORMAT_U64)->encode(wider, 3, u64);
  assert_true(u64[0] == UINT64_MAX && u64[1] == UINT64_C(0xfffffffffffff800) && u64[2] == 0);
}

static void nibbles_lie_low_first(void **state) {
  (void)state;
  const double values[] = { -8, 7, -1, 100, NAN, -100 };
  unsigned char bytes[3];
  tm_codec_find(TM_FORMAT_I4)->encode(values, 6, bytes);
  assert_int_equal(bytes[0], 0x78);
  assert_int_equal(bytes[1], 0x7f);
  assert_int_equal(bytes[2], 0x80);
  int64_t integers[4];
  tm_codec_find(TM_FORMAT_I4)->decode_integer(bytes, 4, integers);
  assert_true(integers[0] == -8 && integers[1] == 7 && integers[2] == -1 && integers[3] == 7);
  tm_codec_find(TM_FORMAT_U4)->decode_integer(bytes, 4, integers);
  assert_true(integers[0] == 8 && integers[1] == 7 && integers[2] == 15 && integers[3] == 7);
  tm_codec_find(TM_FORMAT_U4)->encode_integer((const int64_t[]){ 17, -1 }, 2, bytes);
  assert_int_equal(bytes[0], 0xf1);
}

static void integers_keep_all_bits(void **state) {
  (void)state;
  const int64_t values[] = { INT64_MIN, -1, INT64_MAX, 0x123456789abcdef0 };
  int64_t back[4];
  const uint32_t formats[] = { TM_FORMAT_I64, TM_FORMAT_U64 };
  for (size_t f = 0; f < 2; f++) {
    const tm_codec *codec = tm_codec_find(formats[f]);
    unsigned char bytes[32];
    codec->encode_integer(values, 4, bytes);
    codec->decode_integer(bytes, 4, back);
    assert_memory_equal(values, back, sizeof values);
  }
  double all_ones;
  tm_codec_find(TM_FORMAT_U64)->decode(&(int64_t){ -1 }, 1, &all_ones);
  assert_true(all_ones == 0x1p64);
  unsigned char low;
  tm_codec_find(TM_FORMAT_I8)->encode_integer(&values[3], 1, &low);
  assert_int_equal(low, 0xf0);
}

static void ranges_match_the_formats(void **state) {
  (void)state;
  int64_t low, high;
  tm_integer_range(TM_FORMAT_I4, &low, &high);
  assert_true(low == -8 && high == 7);
  tm_integer_range(TM_FORMAT_U64, &low, &high);
  assert_true(low == 0 && (uint64_t)high == UINT64_MAX);
  tm_integer_range(TM_FORMAT_I16, &low, &high);
  assert_true(low == -32768 && high == 32767);
}

/* f32 of a 64-bit integer by way of f64 must equal the compiler's direct conversion. */
static void odd_rounding_makes_the_second_rounding_right(void **state) {
  (void)state;
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 200000; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const uint64_t near_tie = (random | UINT64_C(1) << 62) & (i % 3 == 0 ? ~UINT64_C(0) : UINT64_C(0xffffff8000000003));
    assert_true((float)tm_f64_to_odd((int64_t)near_tie, true) == (float)near_tie);
    assert_true((float)tm_f64_to_odd((int64_t)near_tie, false) == (float)(int64_t)near_tie);
  }
  assert_true(tm_f64_to_odd(INT64_MIN, false) == -0x1p63);
  assert_true(tm_f64_to_odd(-1, true) == 0x1.fffffffffffffp63);
  assert_true(tm_f64_to_odd(-5, false) == -5.0);
}

static void formats_with_values_have_codecs(void **state) {
  (void)state;
  const tm_format_info *info;
  for (uint32_t i = 0; (info = tm_format_at(i)) != NULL; i++) {
    const tm_codec *codec = tm_codec_find(info->format);
    if ((codec != NULL) != info->has_values || (info->has_arithmetic && !info->has_values)) fail_msg("%s", info->name);
    if (codec == NULL) continue;
    assert_non_null(codec->decode);
    assert_true((codec->encode != NULL) == info->has_arithmetic && (codec->encode_saturating != NULL) == info->has_arithmetic);
    const int is_integer = info->kind == TM_KIND_SIGNED || info->kind == TM_KIND_UNSIGNED || info->kind == TM_KIND_BOOL;
    assert_true((codec->decode_integer != NULL) == is_integer && (codec->encode_integer != NULL) == is_integer);
  }
  assert_null(tm_codec_find(TM_FORMAT_PRIVATE));
}

/* Each by its own number, and nothing by any other. */
static void formats_are_found_by_number(void **state) {
  (void)state;
  uint32_t found = 0, count = 0;
  for (; tm_format_at(count) != NULL; count++) assert_ptr_equal(tm_format_find(tm_format_at(count)->format), tm_format_at(count));
  for (uint32_t format = 0; format < 2 * TM_FORMAT_GGUF; format++) {
    const tm_format_info *info = tm_format_find(format);
    if (info != NULL) assert_int_equal(info->format, format);
    found += info != NULL;
  }
  assert_int_equal(found, count);
  assert_null(tm_format_find(TM_FORMAT_PRIVATE));
  assert_null(tm_format_find(UINT32_MAX));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(formats_are_found_by_number),
    cmocka_unit_test(every_code_decodes_and_comes_back),
    cmocka_unit_test(encoding_rounds_once_to_nearest_even),
    cmocka_unit_test(beyond_the_range),
    cmocka_unit_test(nan_keeps_its_payload),
    cmocka_unit_test(floats_to_integers_truncate_and_saturate),
    cmocka_unit_test(nibbles_lie_low_first),
    cmocka_unit_test(integers_keep_all_bits),
    cmocka_unit_test(ranges_match_the_formats),
    cmocka_unit_test(odd_rounding_makes_the_second_rounding_right),
    cmocka_unit_test(formats_with_values_have_codecs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
