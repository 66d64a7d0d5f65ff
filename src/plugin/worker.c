/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/worker.h"

#include <stddef.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/pool.h"

/* A caller that may be cancelled looks this often. */
#define LOOK_NS UINT64_C(10000000)

struct tm_worker {
  tm_memory   *memory;
  tm_thread    thread;
  tm_mutex     lock;
  tm_condition changed;         /* of anything below; few wait, so one condition serves all */
  tm_worker_fn function;        /* NULL: idle */
  void        *argument;
  uint64_t     issued;          /* calls handed over */
  uint64_t     finished;
  uint64_t     deadline_ns;     /* of the call under way: who waits for a turn gives it up, too */
  const void  *pool_thread;     /* its thread's name in the pool */
  bool         stopping;
  bool         is_lost;
};

/* A call that comes back after it was given up finds nobody: the thread ends, and what it had stays. */
static void *serve(void *self) {
  tm_worker *worker = self;
  tm_mutex_lock(&worker->lock);
  worker->pool_thread = tm_pool_thread();
  for (;;) {
    while (worker->function == NULL && !worker->stopping && !worker->is_lost) (void)tm_condition_wait(&worker->changed, &worker->lock, UINT64_MAX);
    if (worker->function == NULL) break;
    const tm_worker_fn function = worker->function;
    void *argument = worker->argument;
    tm_mutex_unlock(&worker->lock);
    function(argument);
    tm_mutex_lock(&worker->lock);
    if (worker->is_lost) break;
    worker->function = NULL;
    worker->finished++;
    tm_condition_wake_all(&worker->changed);
  }
  tm_mutex_unlock(&worker->lock);
  return NULL;
}

tm_status tm_worker_start(tm_memory *memory, tm_worker **out_worker, tm_error *error) {
  tm_worker *worker = tm_memory_calloc(memory, 1, sizeof *worker);
  if (worker == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a thread");
  worker->memory = memory;
  if (tm_mutex_init(&worker->lock) != TM_OK) goto free_worker;
  if (tm_condition_init(&worker->changed) != TM_OK) goto deinit_lock;
  if (tm_thread_start(&worker->thread, serve, worker, error) != TM_OK) goto deinit_condition;
  *out_worker = worker;
  return TM_OK;

deinit_condition:
  tm_condition_deinit(&worker->changed);
deinit_lock:
  tm_mutex_deinit(&worker->lock);
free_worker:
  tm_memory_free(memory, worker, sizeof *worker);
  return tm_fail(error, TM_ERROR_NO_MEMORY, "cannot start a thread");
}

/* Most calls of a caller in a hurry are over before it would have left them. */
static bool is_hurried(const tm_worker_patience *patience, uint64_t begin_ns) {
  if (patience->cancelled == NULL || atomic_load_explicit(patience->cancelled, memory_order_relaxed) == 0) return false;
  return tm_now_ns() - begin_ns >= LOOK_NS;
}

/* When to look next, at the latest at the deadline. */
static uint64_t next_look(const tm_worker_patience *patience, uint64_t deadline_ns) {
  return patience->cancelled == NULL ? deadline_ns : tm_min_u64(deadline_ns, tm_now_ns() + LOOK_NS);
}

/* Under the lock. */
static void lose(tm_worker *worker) {
  if (worker->is_lost) return;
  worker->is_lost = true;
  tm_thread_detach(&worker->thread);
  tm_condition_wake_all(&worker->changed);
}

/* Under the lock: until no call is under way, or it is late.  False: the caller went before. */
static bool await_turn(tm_worker *worker, const tm_worker_patience *patience) {
  const uint64_t begin = tm_now_ns();
  while (worker->function != NULL && !worker->is_lost) {
    if (tm_now_ns() >= worker->deadline_ns) lose(worker);
    else if (is_hurried(patience, begin)) return false;
    else (void)tm_condition_wait(&worker->changed, &worker->lock, next_look(patience, worker->deadline_ns));
  }
  return true;
}

/* Under the lock. */
static tm_worker_outcome judge(tm_worker *worker, const tm_left_call *call) {
  if (worker->finished >= call->number) return TM_WORKER_BACK;
  if (tm_now_ns() >= call->deadline_ns) lose(worker);
  return worker->is_lost ? TM_WORKER_LOST : TM_WORKER_LEFT;
}

/* Under the lock. */
static tm_worker_outcome await(tm_worker *worker, const tm_left_call *call, const tm_worker_patience *patience) {
  const uint64_t begin = tm_now_ns();
  for (;;) {
    const tm_worker_outcome outcome = judge(worker, call);
    if (outcome != TM_WORKER_LEFT || is_hurried(patience, begin)) return outcome;
    (void)tm_condition_wait(&worker->changed, &worker->lock, next_look(patience, call->deadline_ns));
  }
}

static uint64_t deadline_of(const tm_worker_patience *patience) {
  const uint64_t now = tm_now_ns();
  return patience->limit_ns > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + patience->limit_ns;
}

tm_worker_outcome tm_worker_call(tm_worker *worker, tm_worker_fn function, void *argument, const tm_worker_patience *patience,
                                 tm_left_call *out_left) {
  tm_worker_outcome outcome = TM_WORKER_LOST;
  tm_mutex_lock(&worker->lock);
  const bool has_turn = await_turn(worker, patience);
  *out_left = (tm_left_call){ worker, worker->issued + 1, deadline_of(patience) };
  if (!has_turn) {
    outcome = TM_WORKER_UNMADE;
  } else if (!worker->is_lost) {
    worker->function = function;
    worker->argument = argument;
    worker->deadline_ns = out_left->deadline_ns;
    worker->issued++;
    tm_condition_wake_all(&worker->changed);
    outcome = await(worker, out_left, patience);
  }
  tm_mutex_unlock(&worker->lock);
  return outcome;
}

tm_worker_outcome tm_worker_look(const tm_left_call *left) {
  tm_mutex_lock(&left->worker->lock);
  const tm_worker_outcome outcome = judge(left->worker, left);
  tm_mutex_unlock(&left->worker->lock);
  return outcome;
}

void tm_worker_forget(const tm_left_call *left) {
  tm_mutex_lock(&left->worker->lock);
  lose(left->worker);
  tm_mutex_unlock(&left->worker->lock);
}

bool tm_worker_holds_pool(tm_worker *worker, const tm_pool *pool) {
  tm_mutex_lock(&worker->lock);
  const bool holds = worker->pool_thread != NULL && tm_pool_is_held_by(pool, worker->pool_thread);
  tm_mutex_unlock(&worker->lock);
  return holds;
}

void tm_worker_stop(tm_worker *worker) {
  if (worker == NULL) return;
  tm_mutex_lock(&worker->lock);
  const bool is_lost = worker->is_lost;
  worker->stopping = true;
  tm_condition_wake_all(&worker->changed);
  tm_mutex_unlock(&worker->lock);
  if (is_lost) return;
  tm_thread_join(&worker->thread);
  tm_condition_deinit(&worker->changed);
  tm_mutex_deinit(&worker->lock);
  tm_memory_free(worker->memory, worker, sizeof *worker);
}
