/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faulty.h - any backend's table under another name, and with a fault in it: the plugin "faulty" passes every call on to the
 * backend that a test gives it through the pointer option "plan", and spoils one of them.  "faulty_far" does the same for
 * backends with memory of their own.
 */
#ifndef TM_TESTS_FAKES_FAULTY_H
#define TM_TESTS_FAKES_FAULTY_H

#include <stdatomic.h>

#include "tensormorph/plugin.h"

typedef enum fault_function {
  FAULT_OPEN, FAULT_QUERY, FAULT_PREPARE, FAULT_LAUNCH, FAULT_BUFFER_CREATE, FAULT_UPLOAD, FAULT_DOWNLOAD, FAULT_WAIT, FAULT_FUNCTIONS
} fault_function;

typedef enum fault_kind {
  FAULT_STATUS,                 /* returns `status` and does nothing */
  FAULT_STATUS_AFTER,           /* does its work, spoils what it wrote, and returns `status` */
  FAULT_WRONG,                  /* does its work, spoils what it wrote, and says nothing: of launches in the host's memory */
  FAULT_HANG,
  FAULT_CRASH
} fault_kind;

typedef struct fault_plan {
  const tm_accelerator_backend_plugin *inner;   /* complete */
  fault_function   function;
  uint64_t         first;       /* the call that is spoiled, counted from 1; 0: none is */
  uint64_t         last;        /* and all up to this one, */
  uint64_t         each;        /* or of these only one in so many; 0: all */
  fault_kind       kind;
  tm_status        status;
  uint32_t         output;      /* FAULT_WRONG: the binding that is spoiled, as the last may be a workspace */
  uint32_t         keeps_costs; /* 1: prices are the backend's own; 0: it costs next to nothing, so that it is chosen */
  uint64_t         price_seed;  /* not 0: prices are random, by operation and this */
  tm_identity      uuid;        /* of devices that have none */
  /* What the backend is told of its options; NULL: what the host says. */
  tm_status      (*config_get)(void *context, tm_string key, tm_string *out_value);
  _Atomic uint64_t calls[FAULT_FUNCTIONS];
  _Atomic uint64_t faults;      /* so far */
} fault_plan;

#define FAULT_PLAN_KEY "plan"

#endif
