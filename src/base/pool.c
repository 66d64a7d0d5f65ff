/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/checked.h"
#include "base/crew.h"
#include "base/error.h"
#include "base/thread.h"

struct tm_pool {
  tm_memory      *memory;
  tm_crew        *crew;
  uint32_t        lane_count;
  tm_mutex        in_use;
  _Atomic(const void *) holder;  /* the thread that has the lock, by the address of a variable of its own */
};

/* More lanes than this help nobody and cost everybody: waking them takes turns on the cores that there are. */
#define LANES_PER_CORE 4u
#define LEAST_LIMIT 16u

/* Parts get smaller towards the end: large ones cost little to take, small ones let lanes of different speed end together.  Each is
   half of what a lane's share of the rest would be, and none smaller than this of its share of the whole. */
#define LEAST_PART 32u

/* Which pool's work this thread is in: nested calls must run inline or they would wait for themselves. */
static _Thread_local bool inside_pool;

/* One call of tm_pool_run; lanes take parts from `next`. */
typedef struct run_state {
  tm_pool_fn function;
  void      *argument;
  uint64_t   count;
  uint64_t   grain;
  uint64_t   lanes;
  uint64_t   least;             /* indices of a part, a multiple of the grain */
  _Atomic uint64_t next;
} run_state;

static uint32_t usable_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count < 1 ? 1 : (uint32_t)count;
}

tm_status tm_pool_create(tm_memory *memory, uint32_t lane_count, tm_pool **out_pool, tm_error *error) {
  tm_pool *pool = tm_memory_calloc(memory, 1, sizeof *pool);
  if (pool == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the thread pool");
  pool->memory = memory;
  const uint32_t most = (uint32_t)tm_max_u64(LEAST_LIMIT, LANES_PER_CORE * (uint64_t)usable_cores());
  pool->lane_count = lane_count == 0 ? usable_cores() : (uint32_t)tm_min_u64(lane_count, most);
  if (tm_crew_create(memory, pool->lane_count, &pool->crew, NULL) != TM_OK || tm_mutex_init(&pool->in_use) != TM_OK) {
    tm_crew_destroy(pool->crew);
    tm_memory_free(memory, pool, sizeof *pool);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the thread pool");
  }
  *out_pool = pool;
  return TM_OK;
}

void tm_pool_destroy(tm_pool *pool) {
  if (pool == NULL) return;
  tm_crew_destroy(pool->crew);
  tm_mutex_deinit(&pool->in_use);
  tm_memory_free(pool->memory, pool, sizeof *pool);
}

const void *tm_pool_thread(void) { return &inside_pool; }

bool tm_pool_is_held_by(const tm_pool *pool, const void *thread) { return atomic_load(&pool->holder) == thread; }

static bool hold(tm_pool *pool) {
  if (!tm_mutex_try_lock(&pool->in_use)) return false;
  atomic_store_explicit(&pool->holder, &inside_pool, memory_order_relaxed);
  return true;
}

static void let_go(tm_pool *pool) {
  atomic_store_explicit(&pool->holder, NULL, memory_order_relaxed);
  tm_mutex_unlock(&pool->in_use);
}

uint32_t tm_pool_lane_count(const tm_pool *pool) { return pool->lane_count; }

/* False: nothing is left. */
static bool take_part(run_state *state, uint64_t *out_begin, uint64_t *out_end) {
  uint64_t begin = atomic_load_explicit(&state->next, memory_order_relaxed);
  do {
    if (begin >= state->count) return false;
    const uint64_t left = state->count - begin, half_share = left / (2 * state->lanes) / state->grain * state->grain;
    *out_end = begin + tm_min_u64(tm_max_u64(half_share, state->least), left);
  } while (!atomic_compare_exchange_weak_explicit(&state->next, &begin, *out_end, memory_order_relaxed, memory_order_relaxed));
  *out_begin = begin;
  return true;
}

static void run_lane(void *state_pointer, uint32_t lane) {
  run_state *state = state_pointer;
  const bool was_inside = inside_pool;
  inside_pool = true;
  uint64_t begin, end;
  while (take_part(state, &begin, &end)) state->function(state->argument, begin, end, lane);
  inside_pool = was_inside;
}

static void run_inline(tm_pool_fn function, void *argument, uint64_t count) {
  const bool was_inside = inside_pool;
  inside_pool = true;
  function(argument, 0, count, 0);
  inside_pool = was_inside;
}

void tm_pool_run(tm_pool *pool, uint64_t count, uint64_t grain, tm_pool_fn function, void *argument) {
  if (count == 0) return;
  if (grain == 0) grain = 1;
  const uint64_t grains = tm_divide_up(count, grain);
  if (grains == 1 || pool->lane_count == 1 || inside_pool || !hold(pool)) {
    run_inline(function, argument, count);
    return;
  }
  const uint64_t lanes = tm_min_u64(pool->lane_count, grains);
  run_state state = { .function = function, .argument = argument, .count = count, .grain = grain, .lanes = lanes,
                      .least = tm_max_u64(1, grains / (lanes * LEAST_PART)) * grain };
  atomic_init(&state.next, 0);
  tm_crew_run(pool->crew, (uint32_t)lanes, run_lane, &state);
  let_go(pool);
}
