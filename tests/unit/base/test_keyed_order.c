/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting by 64-bit keys: against a plain sort, stable, and with keys that all are equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/keyed_order.h"

#define MOST 3000

static uint64_t random_number(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state ^ (*state >> 29);
}

/* Every key's low bits say which of equal ones came first. */
static int by_key(const void *left, const void *right) {
  const tm_keyed_item *a = left, *b = right;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

static void in_the_order_of_keys(void **state) {
  (void)state;
  static const uint64_t masks[] = { UINT64_MAX, 0, 1, 0xff, 0xff00, UINT64_C(0xff00000000000001), 7 };
  static tm_keyed_item items[MOST], spare[MOST], expected[MOST];
  uint64_t seed = 5;
  for (size_t m = 0; m < sizeof masks / sizeof masks[0]; m++) {
    for (uint64_t count = 0; count <= MOST; count = count * 3 + 1) {
      for (uint64_t i = 0; i < count; i++) items[i] = expected[i] = (tm_keyed_item){ random_number(&seed) & masks[m], i };
      qsort(expected, (size_t)count, sizeof *expected, by_key);
      tm_keyed_order_sort(items, spare, count, NULL);
      for (uint64_t i = 0; i < count; i++) assert_true(items[i].key == expected[i].key && items[i].item == expected[i].item);
    }
  }
}

static void cancelled_it_loses_nothing(void **state) {
  (void)state;
  static tm_keyed_item items[MOST], spare[MOST];
  _Atomic uint32_t cancelled = 1;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < MOST; i++) items[i] = (tm_keyed_item){ MOST - i, i };
  tm_keyed_order_sort(items, spare, MOST, &cancelled);
  for (uint64_t i = 0; i < MOST; i++) sum += items[i].item;
  assert_true(sum == (uint64_t)MOST * (MOST - 1) / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(in_the_order_of_keys),
    cmocka_unit_test(cancelled_it_loses_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
