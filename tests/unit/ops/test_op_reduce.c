/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tensormorph/canonical_sum.h"
#include "unit/ops/op_case.h"

static op_case reduce(uint32_t op, uint32_t axes, uint32_t keep_dims, uint32_t format, uint32_t rank,
                      const uint64_t *dims, const double *x) {
  static tm_reduce_attributes attributes;
  attributes = (tm_reduce_attributes){ axes, keep_dims };
  op_case c = op_begin(op, &attributes, sizeof attributes);
  op_input(&c, format, rank, dims, x);
  op_run(&c, TM_FORMAT_NONE);
  return c;
}

static void sums_over_any_axes(void **state) {
  (void)state;
  const double x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
  op_case c = reduce(TM_OP_SUM, 4, 0, TM_FORMAT_F32, 3, DIMS(2, 2, 3), x);
  op_expect(&c, 4, VALUES(6, 15, 24, 33));
  c = reduce(TM_OP_SUM, 1, 0, TM_FORMAT_F32, 3, DIMS(2, 2, 3), x);
  op_expect_dims(&c, 2, DIMS(2, 3));
  op_expect(&c, 6, VALUES(8, 10, 12, 14, 16, 18));
  c = reduce(TM_OP_SUM, 5, 1, TM_FORMAT_F32, 3, DIMS(2, 2, 3), x);
  op_expect_dims(&c, 3, DIMS(1, 2, 1));
  op_expect(&c, 2, VALUES(30, 48));
  c = reduce(TM_OP_SUM, 7, 0, TM_FORMAT_F32, 3, DIMS(2, 2, 3), x);
  op_expect_dims(&c, 0, NULL);
  op_expect(&c, 1, VALUES(78));
  c = reduce(TM_OP_SUM, 0, 0, TM_FORMAT_F32, 1, DIMS(3), x);
  op_expect(&c, 3, VALUES(1, 2, 3));
}

/* Along both kinds of axes, over more than one superblock: bit for bit what the streaming form gives. */
static void sums_in_canonical_order(void **state) {
  (void)state;
  enum { N = 70001 };
  double *x = op_alloc(3 * N * sizeof *x);
  for (int i = 0; i < 3 * N; i++) x[i] = (double)(float)(sin(i) * exp(i % 40 - 20));
  static tm_sum_stream sum;
  double expected[3];
  for (int row = 0; row < 3; row++) {
    tm_sum_stream_init(&sum);
    for (int i = 0; i < N; i++) tm_sum_stream_add(&sum, x[row * N + i]);
    expected[row] = tm_sum_stream_result(&sum);
  }
  op_case c = reduce(TM_OP_SUM, 2, 0, TM_FORMAT_F64, 2, DIMS(3, N), x);
  op_expect(&c, 3, expected);
  double *y = op_alloc(3 * N * sizeof *y);
  for (int i = 0; i < N; i++)
    for (int row = 0; row < 3; row++) y[i * 3 + row] = x[row * N + i];
  c = reduce(TM_OP_SUM, 1, 0, TM_FORMAT_F64, 2, DIMS(N, 3), y);
  op_expect(&c, 3, expected);
  free(x);
  free(y);
}

static void sums_of_integers_wrap(void **state) {
  (void)state;
  op_case c = reduce(TM_OP_SUM, 1, 0, TM_FORMAT_I8, 1, DIMS(3), VALUES(127, 127, -3));
  assert_int_equal(op_y(&c)->format, TM_FORMAT_I64);
  op_expect(&c, 1, VALUES(251));
  c = reduce(TM_OP_SUM, 1, 0, TM_FORMAT_U8, 1, DIMS(2), VALUES(255, 255));
  assert_int_equal(op_y(&c)->format, TM_FORMAT_U64);
  op_expect(&c, 1, VALUES(510));
  c = reduce(TM_OP_SUM, 1, 0, TM_FORMAT_BOOL, 1, DIMS(3), VALUES(1, 0, 1));
  op_expect(&c, 1, VALUES(2));
  const tm_reduce_attributes attributes = { 1, 0 };
  op_case narrow = op_begin(TM_OP_SUM, &attributes, sizeof attributes);
  op_input(&narrow, TM_FORMAT_I8, 1, DIMS(2), VALUES(127, 1));
  op_run(&narrow, TM_FORMAT_I8);
  op_expect(&narrow, 1, VALUES(-128));
}

static void means(void **state) {
  (void)state;
  op_case c = reduce(TM_OP_MEAN, 1, 0, TM_FORMAT_F32, 1, DIMS(4), VALUES(1, 2, 3, 5));
  op_expect(&c, 1, VALUES(2.75));
  c = reduce(TM_OP_MEAN, 1, 0, TM_FORMAT_U8, 1, DIMS(2), VALUES(255, 0));
  assert_int_equal(op_y(&c)->format, TM_FORMAT_F64);
  op_expect(&c, 1, VALUES(127.5));
  c = reduce(TM_OP_MEAN, 1, 0, TM_FORMAT_F32, 2, DIMS(0, 2), NULL);
  op_expect(&c, 2, VALUES(NAN, NAN));
}

static void extremes_order_zeros_and_let_nan_win(void **state) {
  (void)state;
  op_case c =
      reduce(TM_OP_MIN, 1, 0, TM_FORMAT_F32, 2, DIMS(3, 3), VALUES(0.0, 3, -INFINITY, -0.0, NAN, 5, 0.0, 1, INFINITY));
  op_expect(&c, 3, VALUES(-0.0, NAN, -INFINITY));
  c = reduce(TM_OP_MAX, 1, 0, TM_FORMAT_F32, 2, DIMS(3, 3),
             VALUES(-0.0, 3, -INFINITY, 0.0, NAN, -5, -0.0, INFINITY, -7));
  op_expect(&c, 3, VALUES(0.0, NAN, -5));
  c = reduce(TM_OP_MAX, 2, 0, TM_FORMAT_U8, 2, DIMS(2, 2), VALUES(200, 100, 0, 1));
  op_expect(&c, 2, VALUES(200, 1));
  c = reduce(TM_OP_MIN, 1, 0, TM_FORMAT_I8, 1, DIMS(3), VALUES(-128, 127, 0));
  op_expect(&c, 1, VALUES(-128));
  const uint64_t large[] = { UINT64_MAX, 1 };
  const tm_reduce_attributes attributes = { 1, 0 };
  op_case u = op_begin(TM_OP_MAX, &attributes, sizeof attributes);
  op_input_bytes(&u, TM_FORMAT_U64, 1, DIMS(2), large);
  op_run(&u, TM_FORMAT_NONE);
  op_expect_bytes(&u, large, 8);
}

static void the_first_nan_keeps_its_bits(void **state) {
  (void)state;
  const uint32_t x[] = { 0x3f800000, 0xff812345, 0x7fc00000 };
  const tm_reduce_attributes attributes = { 1, 0 };
  const uint32_t ops[] = { TM_OP_MIN, TM_OP_MAX };
  for (int i = 0; i < 2; i++) {
    op_case c = op_begin(ops[i], &attributes, sizeof attributes);
    op_input_bytes(&c, TM_FORMAT_F32, 1, DIMS(3), x);
    op_run(&c, TM_FORMAT_NONE);
    op_expect_bytes(&c, &x[1], 4);
  }
}

static void argmax_takes_the_first(void **state) {
  (void)state;
  op_case c = reduce(TM_OP_ARGMAX, 2, 0, TM_FORMAT_F32, 2, DIMS(4, 3),
                     VALUES(1, 3, 3, -0.0, 0.0, -1, 5, NAN, NAN, -INFINITY, -INFINITY, -INFINITY));
  assert_int_equal(op_y(&c)->format, TM_FORMAT_I64);
  op_expect(&c, 4, VALUES(1, 0, 1, 0));
  c = reduce(TM_OP_ARGMAX, 1, 0, TM_FORMAT_I16, 2, DIMS(2, 2), VALUES(1, -3, 1, -2));
  op_expect(&c, 2, VALUES(0, 1));
}

static void of_nothing(void **state) {
  (void)state;
  op_case c = reduce(TM_OP_SUM, 1, 0, TM_FORMAT_F32, 1, DIMS(0), NULL);
  op_expect(&c, 1, VALUES(0.0));
  c = reduce(TM_OP_MIN, 1, 0, TM_FORMAT_F32, 1, DIMS(0), NULL);
  op_expect(&c, 1, VALUES(INFINITY));
  c = reduce(TM_OP_MAX, 2, 0, TM_FORMAT_BF16, 2, DIMS(2, 0), NULL);
  op_expect(&c, 2, VALUES(-INFINITY, -INFINITY));
  c = reduce(TM_OP_MIN, 1, 0, TM_FORMAT_U8, 1, DIMS(0), NULL);
  op_expect(&c, 1, VALUES(255));
  c = reduce(TM_OP_MAX, 1, 0, TM_FORMAT_I16, 1, DIMS(0), NULL);
  op_expect(&c, 1, VALUES(-32768));
  c = reduce(TM_OP_MIN, 1, 0, TM_FORMAT_F8_E4M3FN, 1, DIMS(0), NULL);
  op_expect(&c, 1, VALUES(NAN));
  c = reduce(TM_OP_ARGMAX, 1, 0, TM_FORMAT_F32, 2, DIMS(0, 2), NULL);
  op_expect(&c, 2, VALUES(-1, -1));
  c = reduce(TM_OP_SUM, 1, 0, TM_FORMAT_F32, 2, DIMS(3, 0), NULL);
  op_expect(&c, 0, NULL);
}

static void sums_spread_non_finite_values(void **state) {
  (void)state;
  op_case c = reduce(TM_OP_SUM, 2, 0, TM_FORMAT_F32, 2, DIMS(3, 2), VALUES(INFINITY, 1, INFINITY, -INFINITY, NAN, 1));
  op_expect(&c, 3, VALUES(INFINITY, NAN, NAN));
}

static void refuses(void **state) {
  (void)state;
  const tm_reduce_attributes beyond = { 4, 0 };
  op_case c = op_begin(TM_OP_SUM, &beyond, sizeof beyond);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("sum: axes is 0x4", "2, the rank of x"));
  const tm_reduce_attributes two = { 3, 0 };
  c = op_begin(TM_OP_ARGMAX, &two, sizeof two);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("argmax", "exactly one"));
  const tm_reduce_attributes one = { 1, 0 };
  c = op_begin(TM_OP_SUM, &one, sizeof one);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_I64, WORDS("sum: y", "i64", "expected float"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_over_any_axes),
    cmocka_unit_test(sums_in_canonical_order),
    cmocka_unit_test(sums_of_integers_wrap),
    cmocka_unit_test(means),
    cmocka_unit_test(extremes_order_zeros_and_let_nan_win),
    cmocka_unit_test(the_first_nan_keeps_its_bits),
    cmocka_unit_test(argmax_takes_the_first),
    cmocka_unit_test(of_nothing),
    cmocka_unit_test(sums_spread_non_finite_values),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
