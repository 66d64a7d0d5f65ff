/* SPDX-License-Identifier: Apache-2.0 */
/* A crew some of whose threads the system refuses, or all.  pthread_create is wrapped by the linker. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crew.h"
#include "base/pool.h"

#define SIZE 6u
#define COUNT 1000u
#define RUNS 200u
/* A run that waits for a thread that never started would wait for ever. */
#define SECONDS_AT_MOST 100u

static uint32_t granted, asked;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
  if (asked++ >= granted) return EAGAIN;
  return __real_pthread_create(thread, attributes, function, argument);
}

typedef struct count_up {
  _Atomic uint64_t next;
  uint32_t times[COUNT];        /* plain on purpose: the thread sanitizer sees whether the crew orders it */
  uint32_t calls[SIZE];
} count_up;

static void count_rest(void *argument, uint32_t member) {
  count_up *all = argument;
  all->calls[member]++;
  for (uint64_t i; (i = atomic_fetch_add(&all->next, 1)) < COUNT;) all->times[i]++;
}

static void run_with(uint32_t threads) {
  tm_memory memory;
  tm_crew *crew = NULL;
  tm_memory_init(&memory, 0);
  granted = threads;
  asked = 0;
  assert_int_equal(tm_crew_create(&memory, SIZE, &crew, NULL), TM_OK);
  assert_int_equal(asked, 0);
  count_up all = { 0 };
  for (uint32_t run = 0; run < RUNS; run++) {
    atomic_store(&all.next, 0);
    tm_crew_run(crew, 1 + run % SIZE, count_rest, &all);
    for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(all.times[i], run + 1);
    assert_int_equal(all.calls[0], run + 1);
    for (uint32_t member = 1; member < SIZE; member++) assert_true(all.calls[member] <= run + 1);
  }
  if (threads == 0) for (uint32_t member = 1; member < SIZE; member++) assert_int_equal(all.calls[member], 0);
  assert_int_equal(asked, threads < SIZE - 1 ? threads + 1 : SIZE - 1);
  tm_crew_destroy(crew);
  assert_int_equal(memory.used_bytes, 0);
}

static void runs_with_as_many_as_there_are(void **state) {
  (void)state;
  for (uint32_t threads = 0; threads <= SIZE; threads++) run_with(threads);
}

static void see(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  uint32_t *times = argument;
  assert_true(lane < SIZE);
  for (uint64_t i = begin; i < end; i++) times[i]++;
}

static void the_pool_does_without(void **state) {
  (void)state;
  for (granted = 0; granted < SIZE - 1; granted++) {
    tm_memory memory;
    tm_pool *pool = NULL;
    uint32_t times[COUNT] = { 0 };
    tm_memory_init(&memory, 0);
    asked = 0;
    assert_int_equal(tm_pool_create(&memory, SIZE, &pool, NULL), TM_OK);
    tm_pool_run(pool, COUNT, 7, see, times);
    for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(times[i], 1);
    assert_int_equal(asked, granted + 1);
    tm_pool_destroy(pool);
    assert_int_equal(memory.used_bytes, 0);
  }
}

typedef struct rounding {
  _Atomic uint32_t arrived;
  int modes[SIZE];
} rounding;

/* Each waits for another, so that a thread of the crew is among them. */
static void look_at_rounding(void *argument, uint32_t member) {
  rounding *all = argument;
  all->modes[member] = fegetround();
  atomic_fetch_add(&all->arrived, 1);
  while (atomic_load(&all->arrived) < 2) (void)usleep(100);
}

/* Threads start in the midst of a backend's work, which may have its own rounding. */
static void threads_round_to_nearest_whoever_starts_them(void **state) {
  (void)state;
  tm_memory memory;
  tm_crew *crew = NULL;
  rounding all = { .arrived = 0 };
  tm_memory_init(&memory, 0);
  granted = SIZE;
  asked = 0;
  for (uint32_t i = 0; i < SIZE; i++) all.modes[i] = FE_TONEAREST;
  assert_int_equal(tm_crew_create(&memory, SIZE, &crew, NULL), TM_OK);
  assert_int_equal(fesetround(FE_UPWARD), 0);
  tm_crew_run(crew, SIZE, look_at_rounding, &all);
  assert_int_equal(fesetround(FE_TONEAREST), 0);
  assert_int_equal(all.modes[0], FE_UPWARD);
  for (uint32_t i = 1; i < SIZE; i++) assert_int_equal(all.modes[i], FE_TONEAREST);
  tm_crew_destroy(crew);
}

static void no_memory_is_an_error(void **state) {
  (void)state;
  for (uint64_t limit = 1; limit < 400; limit += 20) {
    tm_memory memory;
    tm_crew *crew = NULL;
    tm_memory_init(&memory, limit);
    const tm_status status = tm_crew_create(&memory, SIZE, &crew, NULL);
    assert_true(status == TM_OK || (status == TM_ERROR_NO_MEMORY && crew == NULL));
    tm_crew_destroy(crew);
    assert_int_equal(memory.used_bytes, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(runs_with_as_many_as_there_are),
    cmocka_unit_test(the_pool_does_without),
    cmocka_unit_test(threads_round_to_nearest_whoever_starts_them),
    cmocka_unit_test(no_memory_is_an_error),
  };
  alarm(SECONDS_AT_MOST);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
