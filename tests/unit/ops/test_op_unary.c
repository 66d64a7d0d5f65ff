/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

static op_case unary(uint32_t op, uint32_t format, uint64_t count, const double *x) {
  static const tm_gelu_attributes plain = { 0, 0 };
  op_case c = op_begin(op, op == TM_OP_GELU ? &plain : NULL, op == TM_OP_GELU ? sizeof plain : 0);
  op_input(&c, format, 1, DIMS(count), x);
  op_run(&c, TM_FORMAT_NONE);
  return c;
}

static void expect(uint32_t op, uint32_t format, uint64_t count, const double *x, const double *y) {
  op_case c = unary(op, format, count, x);
  op_expect(&c, count, y);
}

static void expect_bits(uint32_t op, uint32_t x, uint32_t y) {
  op_case c = op_begin(op, NULL, 0);
  op_input_bytes(&c, TM_FORMAT_F32, 0, NULL, &x);
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, &y, sizeof y);
}

static void signs_and_relu_keep_bits(void **state) {
  (void)state;
  expect_bits(TM_OP_NEG, 0x7f800001, 0xff800001);
  expect_bits(TM_OP_NEG, 0xffc12345, 0x7fc12345);
  expect_bits(TM_OP_NEG, 0x00000000, 0x80000000);
  expect_bits(TM_OP_ABS, 0xff800001, 0x7f800001);
  expect_bits(TM_OP_ABS, 0x80000000, 0x00000000);
  expect_bits(TM_OP_RELU, 0xffc12345, 0xffc12345);
  expect_bits(TM_OP_RELU, 0x80000000, 0x80000000);
  expect_bits(TM_OP_RELU, 0xbf800000, 0x00000000);
  expect(TM_OP_RELU, TM_FORMAT_BF16, 3, VALUES(-INFINITY, 2, INFINITY), VALUES(0, 2, INFINITY));
}

static void integers_wrap(void **state) {
  (void)state;
  expect(TM_OP_NEG, TM_FORMAT_I8, 3, VALUES(-128, 127, 0), VALUES(-128, -127, 0));
  expect(TM_OP_NEG, TM_FORMAT_U8, 2, VALUES(1, 0), VALUES(255, 0));
  expect(TM_OP_ABS, TM_FORMAT_I16, 3, VALUES(-32768, -5, 5), VALUES(-32768, 5, 5));
  expect(TM_OP_RELU, TM_FORMAT_I32, 2, VALUES(-7, 7), VALUES(0, 7));
  const uint64_t large = UINT64_C(1) << 63;
  const uint32_t ops[] = { TM_OP_ABS, TM_OP_RELU };
  for (int i = 0; i < 2; i++) {
    op_case c = op_begin(ops[i], NULL, 0);
    op_input_bytes(&c, TM_FORMAT_U64, 0, NULL, &large);
    op_run(&c, TM_FORMAT_NONE);
    op_expect_bytes(&c, &large, sizeof large);
  }
}

static void square_roots(void **state) {
  (void)state;
  expect(TM_OP_SQRT, TM_FORMAT_F32, 6, VALUES(4, 2, -0.0, -1, INFINITY, NAN),
         VALUES(2, (double)sqrtf(2.0f), -0.0, NAN, INFINITY, NAN));
}

static void exponentials_and_logarithms(void **state) {
  (void)state;
  expect(TM_OP_EXP, TM_FORMAT_F32, 6, VALUES(0, 1, -INFINITY, INFINITY, 89, -104),
         VALUES(1, (double)(float)exp(1), 0, INFINITY, INFINITY, 0));
  expect(TM_OP_LOG, TM_FORMAT_F32, 5, VALUES(1, 0.0, -0.0, -1, INFINITY),
         VALUES(0, -INFINITY, -INFINITY, NAN, INFINITY));
  expect(TM_OP_EXP, TM_FORMAT_F16, 1, VALUES(1), VALUES(2.71875));
}

static void bounded_functions(void **state) {
  (void)state;
  expect(TM_OP_TANH, TM_FORMAT_F32, 4, VALUES(-INFINITY, INFINITY, -0.0, NAN), VALUES(-1, 1, -0.0, NAN));
  expect(TM_OP_ERF, TM_FORMAT_F32, 4, VALUES(-INFINITY, INFINITY, -0.0, NAN), VALUES(-1, 1, -0.0, NAN));
  expect(TM_OP_SIGMOID, TM_FORMAT_F64, 5, VALUES(0, -INFINITY, INFINITY, -740, NAN), VALUES(0.5, 0, 1, exp(-740), NAN));
}

/* The lower tails are the places where simple formulas lose all digits. */
static void gated_functions(void **state) {
  (void)state;
  expect(TM_OP_SILU, TM_FORMAT_F64, 4, VALUES(0, -720, 1000, NAN), VALUES(0, -720 * exp(-720), 1000, NAN));
  expect(TM_OP_SILU, TM_FORMAT_F32, 2, VALUES(INFINITY, -INFINITY), VALUES(INFINITY, NAN));
  expect(TM_OP_GELU, TM_FORMAT_F32, 5, VALUES(0, -0.0, INFINITY, -INFINITY, NAN), VALUES(0, -0.0, INFINITY, NAN, NAN));
  op_case c = unary(TM_OP_GELU, TM_FORMAT_F64, 1, VALUES(-10));
  const double tail = ((const double *)c.pointers[1])[0];
  /* -10 * Phi(-10), from tables of the normal distribution: Phi(-10) = 7.61985302416052606e-24. */
  assert_true(fabs(tail / -7.61985302416052606e-23 - 1) < 1e-13);
  op_end(&c);
}

static void tanh_form_of_gelu(void **state) {
  (void)state;
  const tm_gelu_attributes attributes = { 1, 0 };
  const double x[] = { 1, -1, 3, -3, 0.1 };
  op_case c = op_begin(TM_OP_GELU, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(5), x);
  op_run(&c, TM_FORMAT_NONE);
  for (int i = 0; i < 5; i++) {
    const double plain = 0.5 * x[i] * (1 + tanh(sqrt(2 / acos(-1.0)) * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
    assert_true(fabs(((const double *)c.pointers[1])[i] - plain) < 1e-14);
  }
  op_end(&c);
}

static void refuses(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_EXP, NULL, 0);
  op_input(&c, TM_FORMAT_I32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("exp: x", "i32", "expected float"));
  c = op_begin(TM_OP_ABS, NULL, 0);
  op_input(&c, TM_FORMAT_F16, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_F32, WORDS("abs: y", "f32", "expected f16"));
  const tm_gelu_attributes wrong = { 2, 0 };
  c = op_begin(TM_OP_GELU, &wrong, sizeof wrong);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("tanh_form", "2"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(signs_and_relu_keep_bits),
    cmocka_unit_test(integers_wrap),
    cmocka_unit_test(square_roots),
    cmocka_unit_test(exponentials_and_logarithms),
    cmocka_unit_test(bounded_functions),
    cmocka_unit_test(gated_functions),
    cmocka_unit_test(tanh_form_of_gelu),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
