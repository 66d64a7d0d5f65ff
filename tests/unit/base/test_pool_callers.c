/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with several lane counts and several callers at once: each call sees each index once and its own lanes only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pool.h"
#include "base/thread.h"

#define CALLERS 6u
#define CALLS 100u
#define COUNT 500u
#define MOST_LANES 7u

typedef struct caller {
  tm_pool *pool;
  uint64_t grain;
  uint32_t times[COUNT];
  uint32_t busy[MOST_LANES];    /* plain on purpose: two threads on one lane of one call are a race to be seen */
  uint32_t wrong_lane;
} caller;

static void visit(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  caller *me = argument;
  if (lane >= tm_pool_lane_count(me->pool)) {
    me->wrong_lane = 1;
    return;
  }
  me->busy[lane]++;
  for (uint64_t i = begin; i < end; i++) me->times[i]++;
}

static void *call_often(void *argument) {
  caller *me = argument;
  for (uint32_t i = 0; i < CALLS; i++) tm_pool_run(me->pool, COUNT, me->grain, visit, me);
  return NULL;
}

static void callers_do_not_meet(void **state) {
  (void)state;
  static const uint32_t lane_counts[] = { 1, 2, 3, MOST_LANES };
  tm_memory memory;
  tm_memory_init(&memory, 0);
  for (size_t lanes = 0; lanes < sizeof lane_counts / sizeof lane_counts[0]; lanes++) {
    tm_pool *pool = NULL;
    assert_int_equal(tm_pool_create(&memory, lane_counts[lanes], &pool, NULL), TM_OK);
    assert_int_equal(tm_pool_lane_count(pool), lane_counts[lanes]);
    caller callers[CALLERS];
    tm_thread threads[CALLERS];
    for (uint32_t i = 0; i < CALLERS; i++) {
      callers[i] = (caller){ .pool = pool, .grain = 1 + 7 * i };
      assert_int_equal(tm_thread_start(&threads[i], call_often, &callers[i], NULL), TM_OK);
    }
    for (uint32_t i = 0; i < CALLERS; i++) tm_thread_join(&threads[i]);
    for (uint32_t i = 0; i < CALLERS; i++) {
      assert_false(callers[i].wrong_lane);
      for (uint32_t k = 0; k < COUNT; k++) assert_int_equal(callers[i].times[k], CALLS);
    }
    tm_pool_destroy(pool);
  }
  assert_int_equal(memory.used_bytes, 0);
}

static void the_machines_lanes_are_the_default(void **state) {
  (void)state;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  tm_pool *pool = NULL;
  assert_int_equal(tm_pool_create(&memory, 0, &pool, NULL), TM_OK);
  assert_true(tm_pool_lane_count(pool) >= 1);
  tm_pool_destroy(pool);
}

static void no_memory_is_an_error(void **state) {
  (void)state;
  tm_memory memory;
  tm_memory_init(&memory, 1);
  tm_pool *pool = NULL;
  assert_int_equal(tm_pool_create(&memory, 2, &pool, NULL), TM_ERROR_NO_MEMORY);
  assert_null(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(callers_do_not_meet),
    cmocka_unit_test(the_machines_lanes_are_the_default),
    cmocka_unit_test(no_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
