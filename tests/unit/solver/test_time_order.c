/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in the order of their times: against the plainest way to do it, few and many, narrow and wide times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "problem_builder.h"
#include "solver/time_order.h"

#define MOST 3000u

static uint64_t times_ns[2 * MOST];

/* Numbers come as their own order says, which tells equals apart. */
typedef struct item {
  uint32_t number;
  uint32_t came;
} item;

static int compare(const void *left, const void *right) {
  const item *a = left, *b = right;
  if (times_ns[a->number] != times_ns[b->number]) return times_ns[a->number] < times_ns[b->number] ? -1 : 1;
  return a->came < b->came ? -1 : 1;
}

static void check(uint32_t count, uint32_t bits, uint64_t *random) {
  static uint32_t numbers[MOST], room[MOST];
  static item items[MOST];
  for (uint32_t i = 0; i < 2 * MOST; i++) times_ns[i] = bits == 0 ? 7 : builder_random(random) >> (64 - bits);
  for (uint32_t i = 0; i < count; i++) {
    numbers[i] = builder_below(random, 2 * MOST);
    items[i] = (item){ numbers[i], i };
  }
  qsort(items, count, sizeof *items, compare);
  tm_time_order_sort(numbers, room, count, times_ns);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(numbers[i], items[i].number);
  tm_time_order_sort(numbers, room, count, times_ns);           /* what is in order stays */
  for (uint32_t i = 0; i < count; i++) assert_int_equal(numbers[i], items[i].number);
}

static void test_all_sizes(void **state) {
  (void)state;
  static const uint32_t counts[] = { 0, 1, 2, 63, 255, 256, 257, 1000, MOST };
  uint64_t random = 5;
  for (uint32_t c = 0; c < sizeof counts / sizeof *counts; c++)
    for (uint32_t bits = 0; bits <= 64; bits += 4) check(counts[c], bits, &random);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_sizes) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
