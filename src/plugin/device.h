/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the only place from which a backend's devices are used.  Opens devices when first needed, makes answers sound,
 * keeps one thread a queue, and waits: to its callers every device is synchronous.  What does not come back is given up.
 */
#ifndef TM_PLUGIN_DEVICE_H
#define TM_PLUGIN_DEVICE_H

#include "plugin/device_queue.h"
#include "plugin/trial.h"

/* Whether it may be used now: its backend is ready and it is neither lost nor excluded. */
bool tm_device_is_usable(const tm_device_slot *device);

/* `cancelled`, here and below: not 0: the caller wants to go, and does so within some 20 ms, whatever the device does; NULL:
   it never does. */

/* Judges operations; never fails: a device that cannot answer refuses them all.  What a cancelled caller gets means nothing. */
void tm_device_query(tm_device_slot *device, const tm_operation *const *operations, uint32_t count, const _Atomic uint32_t *cancelled,
                     tm_answer *out_answers);

typedef struct tm_preparation {
  const tm_operation *operation;
  const tm_answer    *answer;
  tm_trial           *trial;            /* NULL: nothing to prove */
  const _Atomic uint32_t *cancelled;
} tm_preparation;

/* Opens the device if it is not, and prepares.   TM_STALE, TM_BUSY, TM_ERROR_* as the backend says, TM_ERROR_CANCELLED */
tm_status tm_device_prepare(tm_device_slot *device, const tm_preparation *what, tm_kernel **out_kernel, tm_error *error);
/* Once no launch of it can be pending: see tm_device_buffer_destroy. */
void tm_device_release(tm_device_slot *device, tm_kernel *kernel);

/* Closes it if it is open and not stuck; nothing of it is in use.  Calls and work that were left behind get until then; what
   they reach stays for ever if they are not over, and the device is not closed. */
void tm_device_close(tm_device_slot *device, uint64_t until_ns);

/* One use of a queue: everything between begin and end runs in order on it.  The caller fills in what it knows. */
typedef struct tm_device_use {
  tm_device_slot *device;
  tm_trial       *trial;                /* of the work that is done; NULL: it is not on trial */
  const _Atomic uint32_t *cancelled;
  uint64_t        expected_ns;          /* what the work should take */
  uint64_t        pending_ns;           /* likewise, all that was enqueued and not waited for */
  tm_ticket       pending;              /* the last of that; 0: there is none */
  uint32_t        queue;                /* TM_NO_QUEUE: cancelled before there was one; every call fails */
  bool            has_own_operands;     /* all that is named in calls is the library's, so that the caller may go before they end */
  bool            is_abandoned;         /* set: what was named in a call may still be touched, for ever */
  bool            is_apart;             /* ... and all of that is the library's */
  bool            queue_is_left;        /* set: a call or work that was left behind has the queue, and may touch what was named */
} tm_device_use;

#define TM_NO_QUEUE UINT32_MAX

/* Takes a queue of the device, waiting for one if need be; on a device that is stuck every call then fails. */
tm_device_use tm_device_use_begin(tm_device_slot *device, const _Atomic uint32_t *cancelled);
void          tm_device_use_end(const tm_device_use *use);

/* Memory in space 0 of a device that is not host memory. */
tm_status tm_device_buffer_create(const tm_device_use *use, uint64_t bytes, tm_buffer **out_buffer, tm_error *error);
/* What calls or work that were left behind may still touch is kept until they have ended; on a stuck device, for ever. */
void tm_device_buffer_destroy(tm_device_slot *device, tm_buffer *buffer, uint64_t bytes, const _Atomic uint32_t *cancelled);
/* Likewise for memory of the inventory's that was named in a call. */
void tm_device_memory_free(tm_device_slot *device, void *memory, uint64_t bytes);

/* A full queue is tried again until work on it must have made room.  One that is full for that long hangs, and is given up.
   Move bytes and return when they are there. */
tm_status tm_device_upload(tm_device_use *use, tm_buffer *destination, uint64_t offset, const void *host, uint64_t bytes, tm_error *error);
tm_status tm_device_download(tm_device_use *use, tm_buffer *source, uint64_t offset, void *host, uint64_t bytes, tm_error *error);
/* Runs a prepared kernel and returns when it is done.  TM_ERROR_CANCELLED: the caller was in a hurry; in memory of the
   device's own, or with own operands, the kernel may still run. */
tm_status tm_device_run(tm_device_use *use, tm_kernel *kernel, const tm_binding *bindings, uint32_t binding_count, tm_error *error);

/* The same without waiting: *out_ticket is 0 where it is done already.  What is named stays as it is until then. */
tm_status tm_device_enqueue(tm_device_use *use, const tm_launch *launch, tm_ticket *out_ticket, tm_error *error);
tm_status tm_device_enqueue_upload(tm_device_use *use, const tm_transfer *transfer, tm_ticket *out_ticket, tm_error *error);
tm_status tm_device_enqueue_download(tm_device_use *use, const tm_transfer *transfer, tm_ticket *out_ticket, tm_error *error);
/* Returns when all up to the ticket is done, of which tickets from `first_value` on are the caller's; expected_ns is what that
   should take.  After an error nothing of the queue is under way any more, unless the use is abandoned or its queue left;
   *out_failed_value is then the ticket of what failed, 0 if that is not known.  TM_ERROR_CANCELLED: with own operands, the
   caller was in a hurry. */
tm_status tm_device_finish(tm_device_use *use, const tm_ticket *ticket, uint64_t first_value, uint64_t expected_ns,
                           uint64_t *out_failed_value, tm_error *error);

/* Looks whether what was left behind has ended, and frees what it kept. */
void tm_device_settle(tm_device_slot *device);

#endif
