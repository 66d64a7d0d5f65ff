/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - a thread that makes calls for others and can be lost: who hands it a call waits a limited time.  One that has
 * not come back by then is left alone for ever, with all that the call may still touch.
 */
#ifndef TM_PLUGIN_WORKER_H
#define TM_PLUGIN_WORKER_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/thread.h"

typedef struct tm_worker tm_worker;
typedef void (*tm_worker_fn)(void *argument);

/* How long to wait for a call. */
typedef struct tm_worker_patience {
  uint64_t limit_ns;
  const _Atomic uint32_t *cancelled;    /* not 0: the caller is in a hurry, see worker.c; NULL: it never is */
} tm_worker_patience;

/* TM_ERROR_NO_MEMORY */
tm_status tm_worker_start(tm_memory *memory, tm_worker **out_worker, tm_error *error);
/* Runs function(argument) on the worker's thread; callers take turns.  False: it has not returned in time, or the worker was
   lost before its turn came; whatever `argument` reaches must then stay for ever.  [any thread] */
bool tm_worker_call(tm_worker *worker, tm_worker_fn function, void *argument, const tm_worker_patience *patience);
/* Nobody is calling any more.  A lost worker stays where it is.  NULL is accepted. */
void tm_worker_stop(tm_worker *worker);

#endif
