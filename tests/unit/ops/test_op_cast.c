/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

static const tm_cast_attributes plain = { 0, 0 };
static const tm_cast_attributes saturating = { 1, 0 };

static void expect_cast(const tm_cast_attributes *attributes, uint32_t from, uint32_t to, uint64_t count,
                        const double *x, const double *y) {
  op_case c = op_begin(TM_OP_CAST, attributes, sizeof *attributes);
  op_input(&c, from, 1, DIMS(count), x);
  op_run(&c, to);
  op_expect(&c, count, y);
}

static void between_floats(void **state) {
  (void)state;
  expect_cast(&plain, TM_FORMAT_F32, TM_FORMAT_F16, 5, VALUES(65504, 65520, -1e9, INFINITY, 0x1p-25),
              VALUES(65504, INFINITY, -INFINITY, INFINITY, 0));
  expect_cast(&saturating, TM_FORMAT_F32, TM_FORMAT_F16, 4, VALUES(65520, -1e9, INFINITY, NAN),
              VALUES(65504, -65504, INFINITY, NAN));
  expect_cast(&plain, TM_FORMAT_F32, TM_FORMAT_F8_E4M3FN, 4, VALUES(464, 465, -INFINITY, 0.0625),
              VALUES(448, NAN, NAN, 0.0625));
  expect_cast(&saturating, TM_FORMAT_F32, TM_FORMAT_F8_E4M3FN, 3, VALUES(1000, -1000, INFINITY),
              VALUES(448, -448, NAN));
  /* Through f32 this would round twice: up to the tie, then up to even. */
  expect_cast(&plain, TM_FORMAT_F64, TM_FORMAT_BF16, 1, VALUES(1 + 0x1p-8 - 0x1p-40), VALUES(1));
}

static void nan_becomes_quiet(void **state) {
  (void)state;
  const uint32_t signalling[] = { 0xff800001, 0x7fa00000, 0x7fc54321 };
  const uint16_t f16[] = { 0xfe00, 0x7f00, 0x7e2a };
  const uint16_t bf16[] = { 0xffc0, 0x7fe0, 0x7fc5 };
  op_case c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input_bytes(&c, TM_FORMAT_F32, 1, DIMS(3), signalling);
  op_run(&c, TM_FORMAT_F16);
  op_expect_bytes(&c, f16, sizeof f16);
  c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input_bytes(&c, TM_FORMAT_F32, 1, DIMS(3), signalling);
  op_run(&c, TM_FORMAT_BF16);
  op_expect_bytes(&c, bf16, sizeof bf16);
  c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input_bytes(&c, TM_FORMAT_F32, 1, DIMS(3), signalling);
  op_run(&c, TM_FORMAT_F32);
  op_expect_bytes(&c, signalling, sizeof signalling);
}

static void to_integers(void **state) {
  (void)state;
  expect_cast(&plain, TM_FORMAT_F32, TM_FORMAT_I8, 6, VALUES(-1.9, 1.9, 300, -300, NAN, -INFINITY),
              VALUES(-1, 1, 127, -128, 0, -128));
  expect_cast(&plain, TM_FORMAT_F32, TM_FORMAT_U8, 3, VALUES(-5, 255.9, INFINITY), VALUES(0, 255, 255));
  expect_cast(&plain, TM_FORMAT_F32, TM_FORMAT_I4, 4, VALUES(7.9, -9, NAN, -0.5), VALUES(7, -8, 0, 0));
  expect_cast(&plain, TM_FORMAT_F16, TM_FORMAT_BOOL, 4, VALUES(-0.0, 0x1p-24, NAN, 0), VALUES(0, 1, 1, 0));
}

static void between_integers(void **state) {
  (void)state;
  expect_cast(&plain, TM_FORMAT_I32, TM_FORMAT_I8, 3, VALUES(128, -129, 255), VALUES(-128, 127, -1));
  expect_cast(&plain, TM_FORMAT_I8, TM_FORMAT_U32, 1, VALUES(-1), VALUES(4294967295.0));
  expect_cast(&plain, TM_FORMAT_U8, TM_FORMAT_I4, 2, VALUES(15, 24), VALUES(-1, -8));
  expect_cast(&plain, TM_FORMAT_I4, TM_FORMAT_I64, 2, VALUES(-8, 7), VALUES(-8, 7));
  expect_cast(&plain, TM_FORMAT_I32, TM_FORMAT_BOOL, 2, VALUES(256, 0), VALUES(1, 0));
  op_case c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input_bytes(&c, TM_FORMAT_BOOL, 1, DIMS(2), (const uint8_t[]){ 9, 0 });
  op_run(&c, TM_FORMAT_I8);
  op_expect(&c, 2, VALUES(1, 0));
}

/* 2^24 + 1 + something small: to the nearest f64 and then to f32 would be a tie and go the wrong way. */
static void wide_integers_round_once(void **state) {
  (void)state;
  const int64_t x[] = {(INT64_C(1) << 62) + (INT64_C(1) << 38) + 1, -((INT64_C(1) << 62) + (INT64_C(1) << 38) + 1),
                       INT64_MIN, 7};
  const float y[] = { 0x1.000002p62f, -0x1.000002p62f, -0x1p63f, 7 };
  op_case c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input_bytes(&c, TM_FORMAT_I64, 1, DIMS(4), x);
  op_run(&c, TM_FORMAT_F32);
  op_expect_bytes(&c, y, sizeof y);
  const uint64_t u[] = { UINT64_MAX, (UINT64_C(1) << 63) + 1 };
  c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input_bytes(&c, TM_FORMAT_U64, 1, DIMS(2), u);
  op_run(&c, TM_FORMAT_F64);
  op_expect(&c, 2, VALUES(0x1p64, 0x1p63));
  expect_cast(&plain, TM_FORMAT_I32, TM_FORMAT_F16, 2, VALUES(70000, 2049), VALUES(INFINITY, 2048));
  expect_cast(&saturating, TM_FORMAT_I32, TM_FORMAT_F16, 1, VALUES(70000), VALUES(65504));
}

static void quantizes_and_comes_back(void **state) {
  (void)state;
  double x[64], expected[64];
  for (int i = 0; i < 64; i++) x[i] = (i - 32) * 0.125;
  unsigned char block[2 * 34];
  tm_codec_find(TM_FORMAT_Q8_0)->encode(x, 64, block);
  tm_codec_find(TM_FORMAT_Q8_0)->decode(block, 64, expected);
  const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_F64, TM_FORMAT_F16, TM_FORMAT_BF16 };
  for (int i = 0; i < 4; i++) {
    op_case c = op_begin(TM_OP_QUANTIZE, NULL, 0);
    op_input(&c, formats[i], 2, DIMS(1, 64), x);
    op_run(&c, TM_FORMAT_Q8_0);
    op_expect_bytes(&c, block, sizeof block);
  }
  op_case c = op_begin(TM_OP_DEQUANTIZE, NULL, 0);
  op_input_bytes(&c, TM_FORMAT_Q8_0, 2, DIMS(2, 32), block);
  op_run(&c, TM_FORMAT_NONE);
  assert_int_equal(op_y(&c)->format, TM_FORMAT_F32);
  op_expect(&c, 64, expected);
}

static void refuses(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("cast", "format of y must be given"));
  c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(3), NULL);
  op_refused(&c, TM_FORMAT_I4, WORDS("cast: y", "i4", "3 elements"));
  c = op_begin(TM_OP_CAST, &plain, sizeof plain);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(32), NULL);
  op_refused(&c, TM_FORMAT_Q8_0, WORDS("cast: y", "q8_0"));
  c = op_begin(TM_OP_QUANTIZE, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(33), NULL);
  op_refused(&c, TM_FORMAT_Q8_0, WORDS("quantize: y", "33 elements", "whole blocks of 32"));
  c = op_begin(TM_OP_QUANTIZE, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(256), NULL);
  op_refused(&c, TM_FORMAT_Q4_K, WORDS("q4_k", "expected block format (q4_0 or q8_0)"));
  c = op_begin(TM_OP_QUANTIZE, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(256), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("quantize: the format of y must be given: block format (q4_0 or q8_0)"));
  c = op_begin(TM_OP_DEQUANTIZE, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(32), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("dequantize: x", "f32", "expected block format"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(between_floats),
    cmocka_unit_test(nan_becomes_quiet),
    cmocka_unit_test(to_integers),
    cmocka_unit_test(between_integers),
    cmocka_unit_test(wide_integers_round_once),
    cmocka_unit_test(quantizes_and_comes_back),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
