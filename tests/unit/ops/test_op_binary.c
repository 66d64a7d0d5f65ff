/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

static op_case binary(uint32_t op, uint32_t format, uint64_t count, const double *a, const double *b) {
  op_case c = op_begin(op, NULL, 0);
  op_input(&c, format, 1, DIMS(count), a);
  op_input(&c, format, 1, DIMS(count), b);
  op_run(&c, TM_FORMAT_NONE);
  return c;
}

static void adds_floats(void **state) {
  (void)state;
  op_case c = binary(TM_OP_ADD, TM_FORMAT_F32, 6, VALUES(1, -0.0, -0.0, INFINITY, NAN, 0x1p24),
                     VALUES(2, 0.0, -0.0, -INFINITY, 1, 1));
  op_expect(&c, 6, VALUES(3, 0.0, -0.0, NAN, NAN, 0x1p24));
  c = binary(TM_OP_ADD, TM_FORMAT_BF16, 2, VALUES(256, 0x1.fep127), VALUES(1, 0x1.fep127));
  op_expect(&c, 2, VALUES(256, INFINITY));
  c = binary(TM_OP_ADD, TM_FORMAT_F8_E4M3FN, 2, VALUES(448, 448), VALUES(16, 32));
  op_expect(&c, 2, VALUES(448, NAN));
}

static void integers_wrap(void **state) {
  (void)state;
  op_case c = binary(TM_OP_ADD, TM_FORMAT_I8, 3, VALUES(127, -128, 5), VALUES(1, -1, -7));
  op_expect(&c, 3, VALUES(-128, 127, -2));
  c = binary(TM_OP_SUB, TM_FORMAT_U16, 2, VALUES(0, 7), VALUES(1, 7));
  op_expect(&c, 2, VALUES(65535, 0));
  c = binary(TM_OP_MUL, TM_FORMAT_I32, 1, VALUES(65536), VALUES(65536));
  op_expect(&c, 1, VALUES(0));
}

static void integer_division_is_total(void **state) {
  (void)state;
  op_case c = binary(TM_OP_DIV, TM_FORMAT_I8, 5, VALUES(7, -7, -128, 3, -128), VALUES(-2, 2, -1, 0, 1));
  op_expect(&c, 5, VALUES(-3, -3, -128, 0, -128));
  c = binary(TM_OP_DIV, TM_FORMAT_U8, 3, VALUES(200, 255, 9), VALUES(100, 255, 0));
  op_expect(&c, 3, VALUES(2, 1, 0));
  const int64_t a[] = { INT64_MIN, INT64_MIN, INT64_MAX };
  const int64_t b[] = { -1, 0, -1 };
  const int64_t quotient[] = { INT64_MIN, 0, -INT64_MAX };
  op_case wide = op_begin(TM_OP_DIV, NULL, 0);
  op_input_bytes(&wide, TM_FORMAT_I64, 1, DIMS(3), a);
  op_input_bytes(&wide, TM_FORMAT_I64, 1, DIMS(3), b);
  op_run(&wide, TM_FORMAT_NONE);
  op_expect_bytes(&wide, quotient, sizeof quotient);
  const uint64_t ua[] = { UINT64_MAX, UINT64_C(1) << 63 };
  const uint64_t ub[] = { 2, UINT64_MAX };
  const uint64_t uq[] = { UINT64_MAX / 2, 0 };
  op_case u = op_begin(TM_OP_DIV, NULL, 0);
  op_input_bytes(&u, TM_FORMAT_U64, 1, DIMS(2), ua);
  op_input_bytes(&u, TM_FORMAT_U64, 1, DIMS(2), ub);
  op_run(&u, TM_FORMAT_NONE);
  op_expect_bytes(&u, uq, sizeof uq);
}

static void divides_floats(void **state) {
  (void)state;
  op_case c = binary(TM_OP_DIV, TM_FORMAT_F32, 4, VALUES(1, -1, 0, 1), VALUES(0.0, 0.0, 0, 3));
  op_expect(&c, 4, VALUES(INFINITY, -INFINITY, NAN, (double)(1.0f / 3.0f)));
}

static void broadcasts(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_SUB, NULL, 0);
  op_input(&c, TM_FORMAT_F16, 2, DIMS(2, 1), VALUES(10, 20));
  op_input(&c, TM_FORMAT_F16, 1, DIMS(3), VALUES(1, 2, 3));
  op_run(&c, TM_FORMAT_NONE);
  op_expect_dims(&c, 2, DIMS(2, 3));
  op_expect(&c, 6, VALUES(9, 8, 7, 19, 18, 17));
}

static void compares(uint32_t predicate, const double *expected) {
  const tm_compare_attributes attributes = { predicate, 0 };
  op_case c = op_begin(TM_OP_COMPARE, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(5), VALUES(1, 2, 3, NAN, -0.0));
  op_input(&c, TM_FORMAT_F32, 1, DIMS(5), VALUES(2, 2, 2, NAN, 0.0));
  op_run(&c, TM_FORMAT_NONE);
  assert_int_equal(op_y(&c)->format, TM_FORMAT_BOOL);
  op_expect(&c, 5, expected);
}

static void nan_is_unordered(void **state) {
  (void)state;
  compares(TM_COMPARE_EQUAL, VALUES(0, 1, 0, 0, 1));
  compares(TM_COMPARE_NOT_EQUAL, VALUES(1, 0, 1, 1, 0));
  compares(TM_COMPARE_LESS, VALUES(1, 0, 0, 0, 0));
  compares(TM_COMPARE_LESS_EQUAL, VALUES(1, 1, 0, 0, 1));
  compares(TM_COMPARE_GREATER, VALUES(0, 0, 1, 0, 0));
  compares(TM_COMPARE_GREATER_EQUAL, VALUES(0, 1, 1, 0, 1));
}

static void compares_wide_integers_exactly(void **state) {
  (void)state;
  const tm_compare_attributes less = { TM_COMPARE_LESS, 0 };
  const int64_t a[] = { -1, INT64_C(1) << 53, 0 };
  const int64_t b[] = { 1, (INT64_C(1) << 53) + 1, -1 };
  op_case c = op_begin(TM_OP_COMPARE, &less, sizeof less);
  op_input_bytes(&c, TM_FORMAT_I64, 1, DIMS(3), a);
  op_input_bytes(&c, TM_FORMAT_I64, 1, DIMS(3), b);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 3, VALUES(1, 1, 0));
  op_case u = op_begin(TM_OP_COMPARE, &less, sizeof less);
  op_input_bytes(&u, TM_FORMAT_U64, 1, DIMS(3), a);
  op_input_bytes(&u, TM_FORMAT_U64, 1, DIMS(3), b);
  op_run(&u, TM_FORMAT_NONE);
  op_expect(&u, 3, VALUES(0, 1, 1));
}

static void any_nonzero_byte_is_true(void **state) {
  (void)state;
  const tm_compare_attributes equal = { TM_COMPARE_EQUAL, 0 };
  op_case c = op_begin(TM_OP_COMPARE, &equal, sizeof equal);
  op_input_bytes(&c, TM_FORMAT_BOOL, 1, DIMS(3), (const uint8_t[]){ 1, 7, 0 });
  op_input_bytes(&c, TM_FORMAT_BOOL, 1, DIMS(3), (const uint8_t[]){ 255, 0, 0 });
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 3, VALUES(1, 0, 1));
}

static void refuses(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_ADD, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 3), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("add", "[2,3]", "[2]", "broadcast"));
  c = op_begin(TM_OP_ADD, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F16, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("add: b", "f16", "f32"));
  c = op_begin(TM_OP_MUL, NULL, 0);
  op_input(&c, TM_FORMAT_BOOL, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_BOOL, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("mul: a", "bool", "float or integer"));
  c = op_begin(TM_OP_ADD, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("1 inputs", "expected 2"));
  const tm_compare_attributes wrong = { 6, 0 };
  c = op_begin(TM_OP_COMPARE, &wrong, sizeof wrong);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("predicate", "6"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(adds_floats),
    cmocka_unit_test(integers_wrap),
    cmocka_unit_test(integer_division_is_total),
    cmocka_unit_test(divides_floats),
    cmocka_unit_test(broadcasts),
    cmocka_unit_test(nan_is_unordered),
    cmocka_unit_test(compares_wide_integers_exactly),
    cmocka_unit_test(any_nonzero_byte_is_true),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
