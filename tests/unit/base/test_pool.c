/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: every index once, parts at multiples of the grain, lanes never shared, nested runs inline.  Plain
   memory on purpose: the thread sanitizer sees whether the pool orders it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/pool.h"

#define LANES 4u
#define LARGEST_COUNT 1000u

static tm_memory memory;

typedef struct visits {
  tm_pool *pool;
  uint64_t grain;
  uint64_t count;
  uint32_t times[LARGEST_COUNT];
  uint32_t badly_split;
  uint32_t busy[LANES];         /* more than one at once on a lane would lose increments, or be seen as a race */
  uint32_t nested_lane[LARGEST_COUNT];
} visits;

static void visit(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  visits *seen = argument;
  seen->busy[lane]++;
  if (begin % seen->grain != 0 || (end % seen->grain != 0 && end != seen->count)) seen->badly_split = 1;
  for (uint64_t i = begin; i < end; i++) seen->times[i]++;
}

static tm_pool *create(uint32_t lanes) {
  tm_pool *pool = NULL;
  tm_memory_init(&memory, 0);
  assert_int_equal(tm_pool_create(&memory, lanes, &pool, NULL), TM_OK);
  return pool;
}

static void visits_every_index_once(void **state) {
  (void)state;
  static const uint64_t counts[] = { 0, 1, 2, 63, 64, 65, LARGEST_COUNT };
  static const uint64_t grains[] = { 1, 7, 64, 2000 };
  tm_pool *pool = create(LANES);
  assert_int_equal(tm_pool_lane_count(pool), LANES);
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
    for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) {
      visits seen = { .grain = grains[g], .count = counts[c] };
      tm_pool_run(pool, seen.count, seen.grain, visit, &seen);
      assert_false(seen.badly_split);
      for (uint64_t i = 0; i < LARGEST_COUNT; i++) assert_int_equal(seen.times[i], i < seen.count);
    }
  }
  tm_pool_destroy(pool);
}

static void runs_follow_each_other(void **state) {
  (void)state;
  tm_pool *pool = create(LANES);
  visits seen = { .grain = 7, .count = LARGEST_COUNT };
  for (int run = 0; run < 300; run++) tm_pool_run(pool, seen.count, seen.grain, visit, &seen);
  for (uint64_t i = 0; i < seen.count; i++) assert_int_equal(seen.times[i], 300);
  tm_pool_destroy(pool);
}

static void note_part(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  uint32_t *lengths = argument;
  (void)lane;
  lengths[begin] = (uint32_t)(end - begin);
}

/* So that lanes end together: whoever takes them, the parts of a run are the same. */
static void parts_get_smaller(void **state) {
  (void)state;
  tm_pool *pool = create(LANES);
  for (uint64_t grain = 1; grain <= 4; grain++) {
    uint32_t lengths[LARGEST_COUNT] = { 0 };
    uint64_t parts = 0, last = LARGEST_COUNT;
    tm_pool_run(pool, LARGEST_COUNT, grain, note_part, lengths);
    for (uint64_t begin = 0; begin < LARGEST_COUNT; begin += lengths[begin]) {
      assert_in_range(lengths[begin], 1, last);
      last = lengths[begin];
      parts++;
    }
    assert_in_range(lengths[0], LARGEST_COUNT / (2 * LANES) - grain, LARGEST_COUNT / (2 * LANES));
    assert_in_range(last, 1, LARGEST_COUNT / (32 * LANES) + grain);
    assert_in_range(parts, 2 * LANES, 32 * LANES);
  }
  tm_pool_destroy(pool);
}

static void note_lane(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  visits *seen = argument;
  for (uint64_t i = begin; i < end; i++) seen->nested_lane[i] = lane + 1;
}

typedef struct nested_part {
  visits  *seen;
  uint64_t begin;
} nested_part;

static void note_nested_lane(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const nested_part *part = argument;
  note_lane(part->seen, part->begin + begin, part->begin + end, lane);
}

static void run_nested(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  visits *seen = argument;
  (void)lane;
  nested_part part = { seen, begin };
  tm_pool_run(seen->pool, end - begin, 1, note_nested_lane, &part);
}

static void nested_runs_are_inline(void **state) {
  (void)state;
  visits seen = { .pool = create(LANES), .grain = 1, .count = LARGEST_COUNT };
  tm_pool_run(seen.pool, seen.count, 1, run_nested, &seen);
  for (uint64_t i = 0; i < seen.count; i++) assert_int_equal(seen.nested_lane[i], 1);
  tm_pool_destroy(seen.pool);
}

static void one_lane_needs_no_thread(void **state) {
  (void)state;
  visits seen = { .pool = create(1), .grain = 1, .count = LARGEST_COUNT };
  tm_pool_run(seen.pool, seen.count, 1, note_lane, &seen);
  for (uint64_t i = 0; i < seen.count; i++) assert_int_equal(seen.nested_lane[i], 1);
  tm_pool_destroy(seen.pool);
  tm_pool_destroy(NULL);
  assert_int_equal(memory.used_bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(visits_every_index_once),
    cmocka_unit_test(runs_follow_each_other),
    cmocka_unit_test(parts_get_smaller),
    cmocka_unit_test(nested_runs_are_inline),
    cmocka_unit_test(one_lane_needs_no_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
