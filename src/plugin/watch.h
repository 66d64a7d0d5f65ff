/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - calls into backends that may not come back, made on threads that can be spared, with a time limit.
 * [any thread]
 */
#ifndef TM_PLUGIN_WATCH_H
#define TM_PLUGIN_WATCH_H

#include "plugin/worker.h"

#define TM_WATCH_IDLE_KEPT 8

typedef struct tm_watch {
  tm_memory *memory;
  uint64_t   patience_ns;
  tm_mutex   lock;
  tm_worker *idle[TM_WATCH_IDLE_KEPT];
  uint32_t   idle_count;
} tm_watch;

/* patience_ns: the least time that any call gets; 0: the usual. */
tm_status tm_watch_init(tm_watch *watch, tm_memory *memory, uint64_t patience_ns);
/* Ends the threads that are idle; lost ones stay. */
void tm_watch_deinit(tm_watch *watch);

/* What a call gets that should take expected_ns; generous, since it decides between slow and dead. */
uint64_t tm_watch_limit_ns(const tm_watch *watch, uint64_t expected_ns);

/* As tm_worker_call.  Where the system gives no thread the call is made here, unwatched. */
tm_worker_outcome tm_watch_call(tm_watch *watch, tm_worker_fn function, void *argument, const tm_worker_patience *patience,
                                tm_left_call *out_left);
/* As tm_worker_look, once more after each TM_WORKER_LEFT and not after anything else. */
tm_worker_outcome tm_watch_look(tm_watch *watch, const tm_left_call *left);

#endif
