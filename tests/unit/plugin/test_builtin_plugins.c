/* SPDX-License-Identifier: Apache-2.0 */
/* The generated list: as many rows as it says, each a plugin that answers to this version of the contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/builtin_plugins.h"

static void rows_are_counted(void **state) {
  (void)state;
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++) {
    assert_non_null(tm_builtin_plugins[i].name);
    assert_non_null(tm_builtin_plugins[i].query);
  }
  assert_null(tm_builtin_plugins[tm_builtin_plugin_count].name);
}

static void names_are_sorted_and_unique(void **state) {
  (void)state;
  for (uint32_t i = 1; i < tm_builtin_plugin_count; i++) {
    assert_true(strcmp(tm_builtin_plugins[i - 1].name, tm_builtin_plugins[i].name) < 0);
  }
}

static void every_plugin_answers(void **state) {
  (void)state;
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++) {
    const tm_plugin_header *header = tm_builtin_plugins[i].query(TM_ABI_MAJOR, TM_ABI_MINOR);
    assert_non_null(header);
    assert_int_equal(header->magic, TM_PLUGIN_MAGIC);
    assert_int_equal(header->layout_fingerprint, TM_LAYOUT_FINGERPRINT);
    assert_null(tm_builtin_plugins[i].query(TM_ABI_MAJOR + 1, 0));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_are_counted),
    cmocka_unit_test(names_are_sorted_and_unique),
    cmocka_unit_test(every_plugin_answers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
