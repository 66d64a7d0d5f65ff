/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "quantity.h"

static void parses_sizes(void **state) {
  (void)state;
  static const struct { const char *text; uint64_t bytes; } rows[] = {
    { "0", 0 }, { "4096", 4096 }, { "1K", 1024 }, { "1KiB", 1024 }, { "1kb", 1000 }, { "64M", UINT64_C(64) << 20 },
    { "1.5G", UINT64_C(3) << 29 }, { "2 GB", 2000000000 }, { "16TiB", UINT64_C(16) << 40 }, { "7B", 7 } };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    uint64_t bytes = 1;
    assert_true(tm_quantity_parse_size(rows[i].text, &bytes));
    assert_int_equal(bytes, rows[i].bytes);
  }
}

static void refuses_what_is_no_size(void **state) {
  (void)state;
  static const char *const texts[] = { "",          "-1", "K",   "1X", "1KK", "0x10", "99999999999999999999",
                                       "20000000T", " 1", "1e3", "nan" };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    uint64_t bytes = 42;
    assert_false(tm_quantity_parse_size(texts[i], &bytes));
    assert_int_equal(bytes, 42);
  }
}

static void parses_durations_and_counts(void **state) {
  (void)state;
  uint64_t value = 0;
  assert_true(tm_quantity_parse_duration("0.5", &value));
  assert_int_equal(value, 500000000);
  assert_true(tm_quantity_parse_duration("20us", &value));
  assert_int_equal(value, 20000);
  assert_false(tm_quantity_parse_duration("-1", &value));
  assert_true(tm_quantity_parse_count("18446744073709551615", &value));
  assert_true(value == UINT64_MAX);
  assert_false(tm_quantity_parse_count("18446744073709551616", &value));
  assert_false(tm_quantity_parse_count("1.0", &value));
  assert_false(tm_quantity_parse_count("+1", &value));
}

static void prints_for_people(void **state) {
  (void)state;
  tm_quantity q;
  assert_string_equal(tm_quantity_bytes(0, &q), "0 B");
  assert_string_equal(tm_quantity_bytes(999, &q), "999 B");
  assert_string_equal(tm_quantity_bytes(1000, &q), "1.00 kB");
  assert_string_equal(tm_quantity_bytes(999499, &q), "999 kB");
  assert_string_equal(tm_quantity_bytes(999999, &q), "1.00 MB");
  assert_string_equal(tm_quantity_bytes(90868376, &q), "90.9 MB");
  assert_string_equal(tm_quantity_bytes(UINT64_MAX, &q), "> 18.4 EB");
  assert_string_equal(tm_quantity_count(0, &q), "0");
  assert_string_equal(tm_quantity_count(1234567, &q), "1,234,567");
  assert_string_equal(tm_quantity_count(UINT64_MAX, &q), "18,446,744,073,709,551,615");
  assert_string_equal(tm_quantity_short_count(22713216, &q), "22.7 M");
  assert_string_equal(tm_quantity_short_count(7, &q), "7");
  assert_string_equal(tm_quantity_duration(412, &q), "412 ns");
  assert_string_equal(tm_quantity_duration(3210, &q), "3.21 us");
  assert_string_equal(tm_quantity_duration(59900000000, &q), "59.9 s");
  assert_string_equal(tm_quantity_duration(123000000000, &q), "2:03 min");
  assert_string_equal(tm_quantity_duration(3723000000000, &q), "1:02:03 h");
  assert_string_equal(tm_quantity_duration(UINT64_C(999999000000000), &q), "277:46:39 h");
  assert_string_equal(tm_quantity_duration(UINT64_C(1000000000000000), &q), "> 277:46:40 h");
  assert_string_equal(tm_quantity_short_count(UINT64_MAX, &q), "> 18.4 E");
  assert_string_equal(tm_quantity_clock(9, &q), "0:09");
  assert_string_equal(tm_quantity_rate(1, 0, &q), "-");
  assert_string_equal(tm_quantity_rate(2000000000, 500000000, &q), "4.00 GB/s");
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(parses_sizes), cmocka_unit_test(refuses_what_is_no_size),
                                      cmocka_unit_test(parses_durations_and_counts),
                                      cmocka_unit_test(prints_for_people) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
