/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes in three digits and a unit, never on the wrong side of what they stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/shown_size.h"

static void sizes_have_three_digits(void **state) {
  (void)state;
  static const struct { uint64_t bytes; const char *needed, *available; } sizes[] = {
    { 0, "0 B", "0 B" }, { 1, "1 B", "1 B" }, { 999, "999 B", "999 B" }, { 1000, "1.00 kB", "1.00 kB" },
    { 1001, "1.01 kB", "1.00 kB" }, { 9999, "10.0 kB", "9.99 kB" }, { 12345, "12.4 kB", "12.3 kB" },
    { 999000, "999 kB", "999 kB" }, { 999001, "1.00 MB", "999 kB" }, { 1234567, "1.24 MB", "1.23 MB" },
    { UINT64_C(5000000000), "5.00 GB", "5.00 GB" }, { UINT64_MAX, "18.5 EB", "18.4 EB" },
  };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    assert_string_equal(tm_show_needed(sizes[i].bytes).text, sizes[i].needed);
    assert_string_equal(tm_show_available(sizes[i].bytes).text, sizes[i].available);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(sizes_have_three_digits) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
