/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

static op_case ternary(uint32_t op, uint32_t format, uint64_t count, const double *a, const double *b,
                       const double *d) {
  op_case c = op_begin(op, NULL, 0);
  op_input(&c, format, 1, DIMS(count), a);
  op_input(&c, format, 1, DIMS(count), b);
  op_input(&c, format, 1, DIMS(count), d);
  op_run(&c, TM_FORMAT_NONE);
  return c;
}

static void clamps(void **state) {
  (void)state;
  op_case c = ternary(TM_OP_CLAMP, TM_FORMAT_F32, 6, VALUES(-2, 0.5, 9, NAN, 1, 1), VALUES(-1, -1, -1, -1, NAN, 3),
                      VALUES(1, 1, 1, 1, 0, 2));
  op_expect(&c, 6, VALUES(-1, 0.5, 1, NAN, 0, 3));
  c = ternary(TM_OP_CLAMP, TM_FORMAT_U8, 3, VALUES(200, 3, 50), VALUES(10, 10, 10), VALUES(100, 100, 100));
  op_expect(&c, 3, VALUES(100, 10, 50));
  c = op_begin(TM_OP_CLAMP, NULL, 0);
  op_input_bytes(&c, TM_FORMAT_U64, 0, NULL, &(uint64_t){ UINT64_MAX });
  op_input_bytes(&c, TM_FORMAT_U64, 0, NULL, &(uint64_t){ 5 });
  op_input_bytes(&c, TM_FORMAT_U64, 0, NULL, &(uint64_t){ UINT64_C(1) << 63 });
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, &(uint64_t){ UINT64_C(1) << 63 }, 8);
}

static void clamp_keeps_nan_bits(void **state) {
  (void)state;
  const uint32_t nan = 0xff812345;
  op_case c = op_begin(TM_OP_CLAMP, NULL, 0);
  op_input_bytes(&c, TM_FORMAT_F32, 1, DIMS(1), &nan);
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(0));
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(1));
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, &nan, sizeof nan);
}

static void lerp_is_exact_where_it_says_so(void **state) {
  (void)state;
  op_case c = ternary(TM_OP_LERP, TM_FORMAT_F32, 7, VALUES(1, 3, 0.1, INFINITY, NAN, 2, -0.0),
                      VALUES(2, 1e30, 0.1, INFINITY, 5, 4, 0.0), VALUES(0, 1, 0.3, 0.5, 1, 0.25, 1));
  op_expect(&c, 7, VALUES(1, (double)1e30f, (double)0.1f, INFINITY, 5, 2.5, -0.0));
  const uint32_t a = 0x7f812345;
  c = op_begin(TM_OP_LERP, NULL, 0);
  op_input_bytes(&c, TM_FORMAT_F32, 0, NULL, &a);
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(2));
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(0));
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, &a, sizeof a);
}

static void lerp_rounds_once(void **state) {
  (void)state;
  op_case c = ternary(TM_OP_LERP, TM_FORMAT_BF16, 1, VALUES(1), VALUES(1.0078125), VALUES(0.5));
  op_expect(&c, 1, VALUES(1));
  c = ternary(TM_OP_LERP, TM_FORMAT_F32, 1, VALUES(1), VALUES(3), VALUES(0x1p-24));
  op_expect(&c, 1, VALUES(1 + 0x1p-23));
}

static void where_moves_bits(void **state) {
  (void)state;
  const uint8_t condition[] = { 1, 0, 7 };
  const uint32_t a[] = { 0x7f800001, 2, 3 };
  const uint32_t b[] = { 4, 0xff800001, 6 };
  const uint32_t expected[] = { 0x7f800001, 0xff800001, 3 };
  op_case c = op_begin(TM_OP_WHERE, NULL, 0);
  op_input_bytes(&c, TM_FORMAT_BOOL, 1, DIMS(3), condition);
  op_input_bytes(&c, TM_FORMAT_F32, 1, DIMS(3), a);
  op_input_bytes(&c, TM_FORMAT_F32, 1, DIMS(3), b);
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, expected, sizeof expected);
}

static void where_broadcasts_and_takes_opaque_formats(void **state) {
  (void)state;
  const uint8_t condition[] = { 0, 1 };
  const uint64_t a[] = { 11, 12, 13 };
  const uint64_t b = 99;
  const uint64_t expected[] = { 99, 99, 99, 11, 12, 13 };
  op_case c = op_begin(TM_OP_WHERE, NULL, 0);
  op_input_bytes(&c, TM_FORMAT_BOOL, 2, DIMS(2, 1), condition);
  op_input_bytes(&c, TM_FORMAT_C64, 1, DIMS(3), a);
  op_input_bytes(&c, TM_FORMAT_C64, 0, NULL, &b);
  op_run(&c, TM_FORMAT_NONE);
  op_expect_dims(&c, 2, DIMS(2, 3));
  op_expect_bytes(&c, expected, sizeof expected);
}

static void refuses(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_WHERE, NULL, 0);
  op_input(&c, TM_FORMAT_I8, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("where: condition", "i8", "expected bool"));
  c = op_begin(TM_OP_LERP, NULL, 0);
  for (int i = 0; i < 3; i++) op_input(&c, TM_FORMAT_I8, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("lerp: a", "i8", "expected float"));
  c = op_begin(TM_OP_CLAMP, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("clamp: high", "f64", "f32"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(clamps),
    cmocka_unit_test(clamp_keeps_nan_bits),
    cmocka_unit_test(lerp_is_exact_where_it_says_so),
    cmocka_unit_test(lerp_rounds_once),
    cmocka_unit_test(where_moves_bits),
    cmocka_unit_test(where_broadcasts_and_takes_opaque_formats),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
