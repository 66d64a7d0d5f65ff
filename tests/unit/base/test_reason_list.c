/* SPDX-License-Identifier: Apache-2.0 */
/* An error's list of who said what: nothing in it is cut, and who has no room is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/reason_list.h"

static void names_each_with_its_reason(void **state) {
  (void)state;
  tm_reason_list list = { .used = 0 };
  tm_reason_list_end(&list);
  assert_string_equal(list.text, "");
  tm_reason_list_add(&list, "a:0", "no");
  tm_reason_list_add(&list, "b:0", "not that");
  tm_reason_list_end(&list);
  assert_string_equal(list.text, "a:0 (no), b:0 (not that)");
}

/* However long the reasons are: as many as fit are there in full, and the others are a number. */
static void counts_what_has_no_room(void **state) {
  (void)state;
  for (int length = 1; length < 700; length++) {
    tm_reason_list list = { .used = 0 };
    char reason[701], wanted[800];
    memset(reason, 'r', (size_t)length);
    reason[length] = '\0';
    for (int i = 0; i < 9; i++) tm_reason_list_add(&list, "d:0", reason);
    tm_reason_list_end(&list);
    unsigned told = 0, more = 0;
    const char *at = list.text;
    (void)snprintf(wanted, sizeof wanted, "d:0 (%s)", reason);
    for (; strncmp(at, wanted, strlen(wanted)) == 0; told++) {
      at += strlen(wanted);
      if (strncmp(at, ", ", 2) == 0) at += 2;
    }
    if (told != 9) assert_int_equal(sscanf(at, told == 0 ? "%u more" : " and %u more", &more), 1);
    assert_int_equal(told + more, 9);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(names_each_with_its_reason), cmocka_unit_test(counts_what_has_no_room) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
