/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opencl_queue.h - tickets over an in-order command queue: each is the event of the last command of its work, kept in a ring
 * until it is complete.  Work that follows a failure is not given to the driver; its ticket completes as such.
 */
#ifndef OPENCL_QUEUE_H
#define OPENCL_QUEUE_H

#include "opencl_backend.h"

#define OPENCL_MOST_WAITS 32u

/* What a piece of work waits for, in the driver's terms.  Holds a reference to each event. */
typedef struct opencl_waits {
  uint32_t     count;
  opencl_event events[OPENCL_MOST_WAITS];
} opencl_waits;

tm_status opencl_queue_open(tm_device *device, opencl_queue *queue);
void      opencl_queue_close(tm_device *device, opencl_queue *queue);

/*
 * Begins a piece of work: checks for room and resolves what it waits for.
 *   TM_OK                 enqueue it, then opencl_queue_commit with its event, or opencl_waits_release if that fails
 *   TM_ERROR_PREDECESSOR  it cannot run; *out_ticket is issued and says so
 *   TM_BUSY, TM_ERROR_ARGUMENT, TM_ERROR_DEVICE_LOST
 */
tm_status opencl_queue_begin(tm_device *device, uint32_t queue, const tm_ticket *waits, uint32_t wait_count,
                             opencl_waits *out_waits, tm_ticket *out_ticket);
void      opencl_queue_commit(tm_device *device, uint32_t queue, opencl_event event, tm_ticket *out_ticket);
void      opencl_waits_release(tm_device *device, opencl_waits *waits);

/* The contract's functions. */
tm_status opencl_flush(tm_device *device, uint32_t queue);
tm_status opencl_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns);
tm_status opencl_cancel(tm_device *device, uint32_t queue);

#endif
