/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows are said to be in doubt once a device was wrong: all of each kind of work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/doubted_rows.h"
#include "plugin/trial.h"

#define DEVICES 2u

typedef struct doubt_case {
  tm_device_slot   devices[DEVICES];
  tm_device_slot  *list[DEVICES];
  tm_inventory     inventory;
  tm_doubted_rows  rows;
  tm_trial         trials[TM_DOUBT_MOST + 8];
} doubt_case;

static doubt_case one;

static int begin(void **state) {
  (void)state;
  memset(&one, 0, sizeof one);
  for (uint32_t i = 0; i < DEVICES; i++) {
    one.devices[i].name = i == 0 ? "a:0" : "b:0";
    one.devices[i].is_checked = true;
    one.list[i] = &one.devices[i];
  }
  one.inventory.devices = one.list;
  one.inventory.device_count = DEVICES;
  return 0;
}

static void note(uint32_t device, uint32_t kind, const char *name) {
  const tm_run_outcome outcome = { .device = device, .trial = kind == UINT32_MAX ? NULL : &one.trials[kind] };
  tm_doubted_rows_note(&one.rows, &one.inventory, &outcome, (tm_string){ name, strlen(name) });
}

static void turn_out_wrong(uint32_t device) { atomic_fetch_add(&one.devices[device].wrong_count, 1); }

static void expect(uint32_t index, const char *text) {
  char found[TM_DOUBT_TEXT_BYTES] = "";
  const bool is_there = tm_doubted_rows_tell(&one.rows, &one.inventory, index, found);
  assert_int_equal(is_there, text != NULL);
  if (text == NULL) return;
  const char *of = strstr(found, "too: of ");
  assert_non_null(of);
  assert_string_equal(of + strlen("too: of "), text);
}

static void kinds_are_kept_apart(void **state) {
  (void)state;
  note(0, 0, "x");
  note(0, 1, "y");
  note(0, 1, "z");
  expect(0, NULL);
  turn_out_wrong(1);
  expect(0, NULL);
  turn_out_wrong(0);
  expect(0, "x");
  expect(1, "rows from y to z");
  expect(2, NULL);
}

/* What nobody keeps account of is a kind, too. */
static void all_others_are_one_kind(void **state) {
  (void)state;
  note(0, 0, "x");
  note(0, UINT32_MAX, "y");
  note(0, UINT32_MAX, "z");
  turn_out_wrong(0);
  expect(0, "x");
  expect(1, "rows from y to z");
}

/* They are told apart by all of them, and shown so that no terminal suffers. */
static void names_are_escaped(void **state) {
  char name[100];
  (void)state;
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = '\0';
  note(0, 0, "a\x1b[2J\n");
  note(0, 1, name);
  name[80] = 'm';
  note(0, 1, name);
  note(0, 2, "x");
  note(0, 2, "y");
  note(0, 2, "x");
  turn_out_wrong(0);
  char found[TM_DOUBT_TEXT_BYTES];
  assert_true(tm_doubted_rows_tell(&one.rows, &one.inventory, 0, found));
  assert_null(strchr(found, '\x1b'));
  assert_null(strchr(found, '\n'));
  expect(0, "a\\x1b[2J\\n");
  assert_true(tm_doubted_rows_tell(&one.rows, &one.inventory, 1, found));
  assert_non_null(strstr(found, "rows from nnn"));
  assert_non_null(strstr(found, "n... to n"));
  assert_true(tm_doubted_rows_tell(&one.rows, &one.inventory, 2, found));
  assert_non_null(strstr(found, "rows from x to x"));
}

/* More kinds than there is room for: nothing is left out, and nobody is accused in another's place. */
static void the_last_place_is_shared(void **state) {
  (void)state;
  for (uint32_t i = 0; i < TM_DOUBT_MOST - 1; i++) note(0, i, "early");
  note(1, TM_DOUBT_MOST, "x");
  note(0, TM_DOUBT_MOST + 1, "y");
  note(0, TM_DOUBT_MOST + 1, "z");
  turn_out_wrong(1);
  char found[TM_DOUBT_TEXT_BYTES];
  assert_true(tm_doubted_rows_tell(&one.rows, &one.inventory, 0, found));
  assert_non_null(strstr(found, "a device gave"));
  expect(0, "rows from x to z");
  expect(1, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(kinds_are_kept_apart, begin),
    cmocka_unit_test_setup(all_others_are_one_kind, begin),
    cmocka_unit_test_setup(names_are_escaped, begin),
    cmocka_unit_test_setup(the_last_place_is_shared, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
