/* SPDX-License-Identifier: Apache-2.0 */
/* With how many runs a candidate is the one, against trying every number of runs. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/inventory.h"
#include "schedule/worthwhile_repeats.h"

#define MOST 5u
#define TRIED_RUNS 4000u

typedef struct market_day {
  tm_device_slot    devices[MOST];
  tm_plan_candidate candidates[MOST];
  uint32_t          count;
} market_day;

static tm_backend_slot backend = { .build_id = "" };

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

/* Few values, so that ties and dominated ones are common. */
static void make(market_day *day, uint64_t *state) {
  memset(day, 0, sizeof *day);
  day->count = 1 + (uint32_t)(next_random(state) % MOST);
  for (uint32_t i = 0; i < day->count; i++) {
    tm_plan_candidate *one = &day->candidates[i];
    day->devices[i].backend = &backend;
    day->devices[i].told_uuid.bytes[0] = (uint8_t)(i + 1);
    one->device = &day->devices[i];
    one->verdict = next_random(state) % 8 == 0 ? TM_VERDICT_REFUSED : TM_VERDICT_SLOWER;
    one->total_ns = 1 + next_random(state) % 20;
    one->due.cost_ns = next_random(state) % 3 == 0 ? 0 : next_random(state) % 3000;
    one->due.earned_ns = one->due.cost_ns == 0 ? 0 : next_random(state) % one->due.cost_ns;
  }
}

static bool is_chosen(market_day *day, uint32_t index, uint64_t repeats) {
  uint32_t order[MOST];
  for (uint32_t i = 0; i < day->count; i++) day->candidates[i].repeats = repeats;
  tm_candidates_sort(day->candidates, day->count, order);
  return order[0] == index && tm_candidate_can_run(&day->candidates[index]);
}

static void check(market_day *day, uint32_t index) {
  const tm_repeat_range range = tm_worthwhile_repeats(day->candidates, day->count, &day->candidates[index]);
  for (uint64_t repeats = 1; repeats <= TRIED_RUNS; repeats++) {
    const bool is_within = range.from != 0 && repeats >= range.from && repeats <= range.to;
    if (is_chosen(day, index, repeats) != is_within)
      fail_msg("candidate %u of %u with %u runs: not as from %u to %u", index, day->count, (unsigned)repeats, range.from, range.to);
  }
  assert_int_equal(is_chosen(day, index, TM_MOST_REPEATS), range.to == TM_MOST_REPEATS);
}

static void every_number_of_runs_agrees(void **state) {
  (void)state;
  uint64_t seed = 20;
  market_day day;
  for (uint32_t round = 0; round < 400; round++) {
    make(&day, &seed);
    for (uint32_t i = 0; i < day.count; i++) check(&day, i);
  }
}

/* Prices that differ by less than a nanosecond a run are not equal. */
static void fractions_of_a_nanosecond_count(void **state) {
  (void)state;
  market_day day = { .count = 2 };
  for (uint32_t i = 0; i < 2; i++) {
    day.devices[i].backend = &backend;
    day.devices[i].told_uuid.bytes[0] = (uint8_t)(i + 1);
    day.candidates[i] = (tm_plan_candidate){ .device = &day.devices[i], .verdict = TM_VERDICT_SLOWER, .total_ns = 10,
                                             .due = { .cost_ns = i == 0 ? 7 : 0 } };
  }
  assert_true(is_chosen(&day, 1, 1));
  assert_true(is_chosen(&day, 1, 1000));
  assert_true(is_chosen(&day, 1, TM_MOST_REPEATS));
}

/* One that has nothing to pay need not be told of the runs. */
static void who_has_no_set_up_was_not_told(void **state) {
  (void)state;
  uint32_t order[2];
  for (uint32_t heavy = 0; heavy < 2; heavy++) {
    market_day day = { .count = 2 };
    for (uint32_t i = 0; i < 2; i++) {
      day.devices[i].backend = &backend;
      day.devices[i].told_uuid.bytes[0] = (uint8_t)(i + 1);
      day.candidates[i] = (tm_plan_candidate){ .device = &day.devices[i], .verdict = TM_VERDICT_SLOWER, .total_ns = 100 };
    }
    day.candidates[heavy].total_ns = 50;
    day.candidates[heavy].due.cost_ns = 1000;
    day.candidates[heavy].repeats = 100;
    tm_candidates_sort(day.candidates, 2, order);
    assert_int_equal(order[0], heavy);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_number_of_runs_agrees),
    cmocka_unit_test(fractions_of_a_nanosecond_count),
    cmocka_unit_test(who_has_no_set_up_was_not_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
