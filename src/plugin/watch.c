/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/watch.h"

#include <string.h>

#include "base/checked.h"

/* A machine under load can hold anything up for seconds, and whoever is taken for dead is not used again. */
#define USUAL_PATIENCE_NS (UINT64_C(20) * 1000000000)
/* Less than a turn at the processor may take would give up the living. */
#define LEAST_PATIENCE_NS UINT64_C(50000000)
#define TIMES_EXPECTED UINT64_C(100)
#define LONGEST_LIMIT_NS (UINT64_C(86400) * 1000000000)

tm_status tm_watch_init(tm_watch *watch, tm_memory *memory, uint64_t patience_ns) {
  memset(watch, 0, sizeof *watch);
  if (tm_mutex_init(&watch->lock) != TM_OK) return TM_ERROR_NO_MEMORY;
  watch->memory = memory;
  watch->patience_ns = patience_ns != 0 ? tm_max_u64(patience_ns, LEAST_PATIENCE_NS) : USUAL_PATIENCE_NS;
  return TM_OK;
}

void tm_watch_deinit(tm_watch *watch) {
  if (watch->memory == NULL) return;
  while (watch->idle_count > 0) tm_worker_stop(watch->idle[--watch->idle_count]);
  tm_mutex_deinit(&watch->lock);
}

uint64_t tm_watch_limit_ns(const tm_watch *watch, uint64_t expected_ns) {
  const uint64_t expected = tm_min_u64(expected_ns, LONGEST_LIMIT_NS / TIMES_EXPECTED) * TIMES_EXPECTED;
  return tm_max_u64(watch->patience_ns, expected);
}

static tm_worker *take(tm_watch *watch) {
  tm_mutex_lock(&watch->lock);
  tm_worker *worker = watch->idle_count > 0 ? watch->idle[--watch->idle_count] : NULL;
  tm_mutex_unlock(&watch->lock);
  if (worker == NULL && tm_worker_start(watch->memory, &worker, NULL) != TM_OK) return NULL;
  return worker;
}

static void give(tm_watch *watch, tm_worker *worker) {
  tm_mutex_lock(&watch->lock);
  const bool is_kept = watch->idle_count < TM_WATCH_IDLE_KEPT;
  if (is_kept) watch->idle[watch->idle_count++] = worker;
  tm_mutex_unlock(&watch->lock);
  if (!is_kept) tm_worker_stop(worker);
}

tm_worker_outcome tm_watch_call(tm_watch *watch, tm_worker_fn function, void *argument, const tm_worker_patience *patience,
                                tm_left_call *out_left) {
  tm_worker *worker = take(watch);
  if (worker == NULL) {
    function(argument);
    return TM_WORKER_BACK;
  }
  const tm_worker_outcome outcome = tm_worker_call(worker, function, argument, patience, out_left);
  if (outcome == TM_WORKER_BACK) give(watch, worker);
  return outcome;
}

tm_worker_outcome tm_watch_look(tm_watch *watch, const tm_left_call *left) {
  const tm_worker_outcome outcome = tm_worker_look(left);
  if (outcome == TM_WORKER_BACK) give(watch, left->worker);
  return outcome;
}
