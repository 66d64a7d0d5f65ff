/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_call.h - one call into a backend about a device: framed, on the thread that the device wants, watched as long as
 * the device has to prove itself.  What a watched call reaches is copied first, so that one that never comes back holds
 * nothing of its caller's.
 */
#ifndef TM_PLUGIN_DEVICE_CALL_H
#define TM_PLUGIN_DEVICE_CALL_H

#include "plugin/trial.h"

/* One call with all that any kind needs; each uses its part. */
typedef struct tm_device_call {
  tm_device_slot     *device;
  tm_call_kind        kind;
  uint32_t            queue;
  tm_error           *error;
  tm_trial           *trial;            /* NULL: nothing to prove */
  uint64_t            expected_ns;      /* what it should take, if known */
  const _Atomic uint32_t *cancelled;    /* not 0: whoever waits wants to go, and may; NULL: never */
  const tm_operation *operation;
  const tm_answer    *answer;
  const tm_transfer  *transfer;
  const tm_launch    *launch;
  uint64_t            bytes;
  uint64_t            timeout_ns;
  /* Set by the call. */
  tm_status           status;
  bool                is_hung;          /* it never came back; status and error say so */
  bool                is_left;          /* its caller went, it goes on: see tm_device_call_settle */
  bool                is_unmade;        /* its caller went before it could be made */
  uint32_t            mark;             /* crash_marks.h */
  struct tm_lasting_mark *lasting;      /* likewise; NULL: none */
  tm_device          *handle;
  tm_kernel          *kernel;
  tm_buffer          *buffer;
  tm_ticket           ticket;
  tm_answer          *out_answer;
} tm_device_call;

/* Makes the call and returns its status; that of a call that was left, or not made, is TM_ERROR_CANCELLED. */
tm_status tm_device_call_make(tm_device_call *call);

/* What became of the call that was left on a queue, if any was.  Its time is that which it would have had with somebody
   waiting; when that is over the device is given up.  Nobody else looks at the queue. */
tm_worker_outcome tm_device_call_settle(tm_device_slot *device, uint32_t queue);
/* Likewise for calls without a queue; each counts as unfinished until it is back.  What they gave is taken, or given back. */
void tm_device_calls_settle(tm_device_slot *device);
/* The context ends, and nobody will look any more: what calls that are not back reach stays for ever, and nobody is blamed. */
void tm_device_calls_forget(tm_device_slot *device);

/* Nobody knows when a call or its work will end: the device is not used again, its backend not shut down, and what may still
   be touched is never freed.  `what` is a sentence without its device.  Returns TM_ERROR_INTERNAL with it. */
tm_status tm_device_give_up(tm_device_slot *device, const char *what, tm_error *error);
/* Likewise for a backend that did not come back from a call of its own. */
tm_status tm_backend_give_up(tm_backend_slot *backend, const char *what, tm_error *error);

#endif
