/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lazy_control.h - what a test tells a lazy accelerator, through the pointer option "control", and what it counts.  It computes
 * every operation with the reference's kernels, exactly, but nothing of what is enqueued is done before somebody waits for
 * it: who does not wait where that is needed finds poison.  It notes what no plan may do, and fails when it is told to.
 */
#ifndef TM_TESTS_LAZY_CONTROL_H
#define TM_TESTS_LAZY_CONTROL_H

#include <stdatomic.h>

#include "tensormorph/plugin.h"

typedef enum lazy_function {
  LAZY_NOTHING, LAZY_PREPARE, LAZY_BUFFER_CREATE, LAZY_UPLOAD, LAZY_DOWNLOAD, LAZY_LAUNCH, LAZY_WORK, LAZY_FUNCTIONS
} lazy_function;

typedef struct lazy_control {
  uint64_t    cost_ns;          /* declared; 0: 1 */
  uint64_t    cost_spread_ns;   /* not 0: what an operation costs beyond is less than that, by what the operation is */
  uint64_t    cost_seed;
  uint64_t    element_cost_ns;  /* declared for each element of the output as well */
  uint64_t    setup_ns;
  uint64_t    open_ns;
  uint32_t    is_host;          /* it works in the host's memory, as lazily */
  uint32_t    is_prompt;        /* it works within its calls, and says so */
  uint32_t    aliases;          /* output 0 may lie where input 0 does */
  uint32_t    granule;          /* of offsets; 0: 1 */
  uint32_t    alignment;        /* of its memory; 0: 1 */
  uint32_t    depth;            /* not 0: a queue with so much undone work is full */
  uint32_t    workspace_op;     /* not 0: this one wants so much more memory while it runs */
  uint64_t    workspace_bytes;
  uint32_t    refused_op;       /* not 0: this one it does not do */
  tm_identity uuid;
  tm_identity resource;
  _Atomic uint32_t holds_prepare;       /* while it is 1 prepare does not come back, for a few seconds at most */
  /* The calls of `function` from the first to the last, counted from 1, fail with `status`; work with TM_PENDING
     never ends. */
  _Atomic uint32_t function;
  _Atomic uint64_t first;
  _Atomic uint64_t last;
  _Atomic int32_t  status;
  _Atomic uint32_t is_lost;             /* all fails from now on: set by a failure with TM_ERROR_DEVICE_LOST */
  _Atomic uint64_t calls[LAZY_FUNCTIONS];
  _Atomic uint64_t complaints;          /* what no plan may do */
  _Atomic uint64_t buffers;             /* that there are now */
  _Atomic uint64_t queries;
  _Atomic uint64_t places;              /* launches of kernels that were told that their output lies where input 0 does */
  /* Not NULL: work takes what was declared on this clock, shared by all; who waits is there when it is done.  Copies take what
     copy_ns says, or nothing.  One thread at a time then. */
  _Atomic uint64_t *clock_ns;
  uint64_t  (*copy_ns)(const void *context, uint64_t bytes, uint32_t is_upload);
  const void *copy_context;
  uint64_t    free_ns;                  /* since when nothing is to be done */
  const tm_host   *host;                /* set by init */
} lazy_control;

#define LAZY_CONTROL_KEY "control"

#endif
