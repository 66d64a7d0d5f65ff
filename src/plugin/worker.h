/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - a thread that makes calls for others and can be lost: who hands it a call waits a limited time.  One that has
 * not come back by then is left alone for ever, with all that the call may still touch.  Who has to go before that leaves
 * the call behind and looks later what became of it.
 */
#ifndef TM_PLUGIN_WORKER_H
#define TM_PLUGIN_WORKER_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/thread.h"

typedef struct tm_worker tm_worker;
typedef void (*tm_worker_fn)(void *argument);

/* How long to wait for a call. */
typedef struct tm_worker_patience {
  uint64_t limit_ns;
  const _Atomic uint32_t *cancelled;    /* not 0: the caller wants to go, but gives a call that it just made a moment; NULL:
                                           it never does */
} tm_worker_patience;

/* TM_ERROR_NO_MEMORY */
tm_status tm_worker_start(tm_memory *memory, tm_worker **out_worker, tm_error *error);
typedef enum tm_worker_outcome {
  TM_WORKER_BACK,               /* the call has returned */
  TM_WORKER_UNMADE,             /* the caller went before the call's turn came: it is not made */
  TM_WORKER_LEFT,               /* the caller went, the call goes on: what `argument` reaches must stay until it is back */
  TM_WORKER_LOST                /* not back in time, or lost before the call's turn came: all of that must stay for ever */
} tm_worker_outcome;

/* A call that may still be under way. */
typedef struct tm_left_call {
  tm_worker *worker;
  uint64_t   number;
  uint64_t   deadline_ns;       /* its own, whoever waits for it */
} tm_left_call;

/* Runs function(argument) on the worker's thread; callers take turns.  [any thread] */
tm_worker_outcome tm_worker_call(tm_worker *worker, tm_worker_fn function, void *argument, const tm_worker_patience *patience,
                                 tm_left_call *out_left);
/* What became of a call that was left; one whose time has passed loses the worker now. */
tm_worker_outcome tm_worker_look(const tm_left_call *left);
/* Nobody will look any more: the worker is lost unless it is back, and what the call reaches stays for ever. */
void tm_worker_forget(const tm_left_call *left);
/* Whether its thread's work has the pool. */
bool tm_worker_holds_pool(tm_worker *worker, const tm_pool *pool);
/* Nobody is calling any more.  A lost worker stays where it is.  NULL is accepted. */
void tm_worker_stop(tm_worker *worker);

#endif
