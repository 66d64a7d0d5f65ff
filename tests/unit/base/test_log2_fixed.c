/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms in whole numbers, against the C library's, and at their ends. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/log2_fixed.h"

#define MOST UINT64_C(1000000000000000)

static uint64_t next(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return *seed >> 11;
}

static void logarithms_are_close(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int i = 0; i < 20000; i++) {
    const uint64_t a = 1 + (next(&seed) >> (i % 50)), b = 1 + (next(&seed) >> (i % 41));
    const double found = (double)tm_log2_of_ratio(a, b) / (double)TM_LOG2_ONE, expected = log2((double)a / (double)b);
    assert_true(fabs(found - expected) < 1.0 / (1 << 23));
  }
}

static void products_are_close(void **state) {
  (void)state;
  uint64_t seed = 2;
  for (int i = 0; i < 20000; i++) {
    const uint64_t value = next(&seed) >> (3 + i % 40);
    const int64_t power = (int64_t)(next(&seed) % (40 * (uint64_t)TM_LOG2_ONE)) - 20 * TM_LOG2_ONE;
    const double expected = fmin((double)MOST, (double)value * exp2((double)power / (double)TM_LOG2_ONE));
    const double found = (double)tm_log2_multiply(value, power, MOST);
    assert_true(fabs(found - expected) <= 1 + expected * 1e-7);
  }
}

static void powers_of_two_and_ends_are_exact(void **state) {
  (void)state;
  for (int i = 0; i < 50; i++) {
    const uint64_t value = UINT64_C(1) << i;
    assert_int_equal(tm_log2_of_ratio(value, 1), i * TM_LOG2_ONE);
    assert_int_equal(tm_log2_of_ratio(1, value), -i * TM_LOG2_ONE);
    assert_int_equal(tm_log2_multiply(1, i * TM_LOG2_ONE, UINT64_C(1) << 50), value);
    assert_int_equal(tm_log2_multiply(value, -i * TM_LOG2_ONE, MOST), 1);
    assert_int_equal(tm_log2_multiply(value + 12345, 0, UINT64_C(1) << 52), value + 12345);
  }
  assert_int_equal(tm_log2_of_ratio(0, 0), 0);
  assert_int_equal(tm_log2_of_ratio(UINT64_MAX, 1) >> 32, 63);
  assert_int_equal(tm_log2_multiply(0, 40 * TM_LOG2_ONE, MOST), 0);
  assert_int_equal(tm_log2_multiply(0, INT64_MAX, MOST), 0);
  assert_int_equal(tm_log2_multiply(1, INT64_MAX, MOST), MOST);
  assert_int_equal(tm_log2_multiply(MOST, INT64_MIN, MOST), 0);
}

static void fractions_and_roots_are_exact(void **state) {
  (void)state;
  assert_int_equal(tm_fraction_of(INT64_MAX, 1 << 30, 1 << 30), INT64_MAX);
  assert_int_equal(tm_fraction_of(-1000, 1, 3), -333);
  assert_int_equal(tm_fraction_of(INT64_MIN + 1, 0, 7), 0);
  uint64_t seed = 3;
  for (int i = 0; i < 20000; i++) {
    const uint64_t value = next(&seed) >> (i % 50), root = tm_square_root(value);
    assert_true(root * root <= value && (root + 1) * (root + 1) > value);
  }
  assert_int_equal(tm_square_root(UINT64_MAX), UINT32_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(logarithms_are_close),
    cmocka_unit_test(products_are_close),
    cmocka_unit_test(powers_of_two_and_ends_are_exact),
    cmocka_unit_test(fractions_and_roots_are_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
