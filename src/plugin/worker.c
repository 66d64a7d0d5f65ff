/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/worker.h"

#include <stddef.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"

/* A caller that was cancelled looks this often, and grants the call this long. */
#define LOOK_NS UINT64_C(10000000)
#define HURRY_NS UINT64_C(60000000)

struct tm_worker {
  tm_memory   *memory;
  tm_thread    thread;
  tm_mutex     lock;
  tm_condition changed;         /* of anything below; few wait, so one condition serves all */
  tm_worker_fn function;        /* NULL: idle */
  void        *argument;
  uint64_t     issued;          /* calls handed over */
  uint64_t     finished;
  bool         stopping;
  bool         is_lost;
};

/* A call that comes back after it was given up finds nobody: the thread ends, and what it had stays. */
static void *serve(void *self) {
  tm_worker *worker = self;
  tm_mutex_lock(&worker->lock);
  for (;;) {
    while (worker->function == NULL && !worker->stopping) (void)tm_condition_wait(&worker->changed, &worker->lock, UINT64_MAX);
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

static bool is_hurried(const tm_worker_patience *patience) {
  return patience->cancelled != NULL && atomic_load_explicit(patience->cancelled, memory_order_relaxed) != 0;
}

/* Under the lock, until the call with this number has finished or time is up. */
static bool await(tm_worker *worker, uint64_t number, const tm_worker_patience *patience) {
  const uint64_t now = tm_now_ns();
  uint64_t deadline = patience->limit_ns > UINT64_MAX - 1 - now ? UINT64_MAX - 1 : now + patience->limit_ns;
  bool hurried = false;
  while (worker->finished < number) {
    const uint64_t at = tm_now_ns();
    if (at >= deadline) return false;
    if (!hurried && is_hurried(patience)) {
      hurried = true;
      deadline = tm_min_u64(deadline, at + HURRY_NS);
    }
    const uint64_t look = patience->cancelled == NULL ? deadline : tm_min_u64(deadline, at + LOOK_NS);
    (void)tm_condition_wait(&worker->changed, &worker->lock, look);
  }
  return true;
}

bool tm_worker_call(tm_worker *worker, tm_worker_fn function, void *argument, const tm_worker_patience *patience) {
  bool done = false;
  tm_mutex_lock(&worker->lock);
  while (worker->function != NULL && !worker->is_lost)
    (void)tm_condition_wait(&worker->changed, &worker->lock, UINT64_MAX);
  if (!worker->is_lost) {
    worker->function = function;
    worker->argument = argument;
    const uint64_t mine = ++worker->issued;
    tm_condition_wake_all(&worker->changed);
    done = await(worker, mine, patience);
    if (!done) {
      worker->is_lost = true;
      tm_thread_detach(&worker->thread);
      tm_condition_wake_all(&worker->changed);
    }
  }
  tm_mutex_unlock(&worker->lock);
  return done;
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
