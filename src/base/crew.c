/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crew.h"

#include <fenv.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

/* The others mostly end a few microseconds apart, and the next run mostly follows soon.  A core that has nothing to do falls asleep,
   and takes tens of microseconds to wake. */
#define LOOK_NS UINT64_C(50000)

struct tm_crew {
  tm_memory       *memory;
  tm_thread       *threads;
  uint32_t         room;          /* for so many threads */
  uint32_t         thread_count;  /* that run */
  bool             is_started, is_ending;
  tm_mutex         lock;          /* for all that follows */
  tm_condition     wanted, idle;
  tm_crew_fn       function;
  void            *argument;
  uint32_t         next_member, member_limit; /* equal: nobody is wanted */
  _Atomic uint32_t busy_count, call_count;    /* also read without the lock */
};

/* ---- threads ---- */

/* Under the lock, which is let go meanwhile.  Whoever has found nothing left to do wants nobody else to come. */
static void take_part(tm_crew *crew) {
  const tm_crew_fn function = crew->function;
  void *argument = crew->argument;
  const uint32_t member = crew->next_member++;
  atomic_fetch_add_explicit(&crew->busy_count, 1, memory_order_relaxed);
  tm_mutex_unlock(&crew->lock);
  function(argument, member);
  tm_mutex_lock(&crew->lock);
  crew->next_member = crew->member_limit;
  if (atomic_fetch_sub_explicit(&crew->busy_count, 1, memory_order_release) == 1) tm_condition_wake_all(&crew->idle);
}

/* Under the lock, which is let go meanwhile. */
static void look_for_call(tm_crew *crew) {
  const uint32_t seen = atomic_load_explicit(&crew->call_count, memory_order_relaxed);
  const uint64_t until_ns = tm_now_ns() + LOOK_NS;
  tm_mutex_unlock(&crew->lock);
  while (atomic_load_explicit(&crew->call_count, memory_order_relaxed) == seen && tm_now_ns() < until_ns) {}
  tm_mutex_lock(&crew->lock);
}

/* A thread begins with the rounding of the one that starts it, which may be in the midst of a backend's work. */
static void *serve(void *pointer) {
  tm_crew *crew = pointer;
  (void)fesetenv(FE_DFL_ENV);
  bool has_looked = true;
  tm_mutex_lock(&crew->lock);
  while (!crew->is_ending) {
    const bool is_wanted = crew->next_member != crew->member_limit;
    if (is_wanted) take_part(crew);
    else if (!has_looked) look_for_call(crew);
    else (void)tm_condition_wait(&crew->wanted, &crew->lock, UINT64_MAX);
    has_looked = !is_wanted;
  }
  tm_mutex_unlock(&crew->lock);
  return NULL;
}

/* What the system refuses once it is not asked for again: every run would take the time of being refused. */
static void start(tm_crew *crew) {
  crew->is_started = true;
  while (crew->thread_count < crew->room && tm_thread_start(&crew->threads[crew->thread_count], serve, crew, NULL) == TM_OK)
    crew->thread_count++;
}

/* ---- life ---- */

static void release(tm_crew *crew) {
  tm_memory_free(crew->memory, crew->threads, crew->room * sizeof *crew->threads);
  tm_memory_free(crew->memory, crew, sizeof *crew);
}

static tm_status init_waiting(tm_crew *crew) {
  if (tm_mutex_init(&crew->lock) != TM_OK) return TM_ERROR_NO_MEMORY;
  if (tm_condition_init(&crew->wanted) != TM_OK) goto deinit_lock;
  if (tm_condition_init(&crew->idle) != TM_OK) goto deinit_wanted;
  return TM_OK;
deinit_wanted:
  tm_condition_deinit(&crew->wanted);
deinit_lock:
  tm_mutex_deinit(&crew->lock);
  return TM_ERROR_NO_MEMORY;
}

tm_status tm_crew_create(tm_memory *memory, uint32_t size, tm_crew **out_crew, tm_error *error) {
  tm_crew *crew = tm_memory_calloc(memory, 1, sizeof *crew);
  if (crew == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for threads");
  crew->memory = memory;
  crew->room = size - (size != 0);
  crew->threads = tm_memory_calloc(memory, crew->room, sizeof *crew->threads);
  if (crew->threads == NULL || init_waiting(crew) != TM_OK) {
    release(crew);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for threads");
  }
  *out_crew = crew;
  return TM_OK;
}

void tm_crew_destroy(tm_crew *crew) {
  if (crew == NULL) return;
  tm_mutex_lock(&crew->lock);
  crew->is_ending = true;
  tm_condition_wake_all(&crew->wanted);
  tm_mutex_unlock(&crew->lock);
  for (uint32_t i = 0; i < crew->thread_count; i++) tm_thread_join(&crew->threads[i]);
  tm_condition_deinit(&crew->idle);
  tm_condition_deinit(&crew->wanted);
  tm_mutex_deinit(&crew->lock);
  release(crew);
}

/* ---- runs ---- */

static void call_for(tm_crew *crew, uint32_t size, tm_crew_fn function, void *argument) {
  tm_mutex_lock(&crew->lock);
  crew->function = function;
  crew->argument = argument;
  crew->next_member = 1;
  crew->member_limit = size;
  atomic_fetch_add_explicit(&crew->call_count, 1, memory_order_relaxed);
  tm_condition_wake_all(&crew->wanted);
  tm_mutex_unlock(&crew->lock);
}

static void wait_for_all(tm_crew *crew) {
  tm_mutex_lock(&crew->lock);
  crew->next_member = crew->member_limit;
  tm_mutex_unlock(&crew->lock);
  const uint64_t until_ns = tm_now_ns() + LOOK_NS;
  do {
    if (atomic_load_explicit(&crew->busy_count, memory_order_acquire) == 0) return;
  } while (tm_now_ns() < until_ns);
  tm_mutex_lock(&crew->lock);
  while (atomic_load_explicit(&crew->busy_count, memory_order_acquire) != 0)
    (void)tm_condition_wait(&crew->idle, &crew->lock, UINT64_MAX);
  tm_mutex_unlock(&crew->lock);
}

void tm_crew_run(tm_crew *crew, uint32_t size, tm_crew_fn function, void *argument) {
  if (!crew->is_started) start(crew);
  const bool is_shared = size > 1 && crew->thread_count != 0;
  if (is_shared) call_for(crew, size, function, argument);
  function(argument, 0);
  if (is_shared) wait_for_all(crew);
}
