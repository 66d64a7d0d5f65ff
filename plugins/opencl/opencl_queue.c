/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "opencl_queue.h"

#include <string.h>
#include <time.h>

#include "opencl_error.h"

#define SHORTEST_NAP_NS UINT64_C(2000)
#define LONGEST_NAP_NS UINT64_C(500000)

tm_status opencl_queue_open(tm_device *device, opencl_queue *queue) {
  int32_t error = OPENCL_SUCCESS;
  queue->handle = device->backend->api.CreateCommandQueue(device->context, device->found->id, 0, &error);
  if (error != OPENCL_SUCCESS || queue->handle == NULL) return opencl_fail_call(device, "clCreateCommandQueue", error);
  pthread_mutex_init(&queue->lock, NULL);
  return TM_OK;
}

void opencl_queue_close(tm_device *device, opencl_queue *queue) {
  const opencl_api *api = &device->backend->api;
  if (queue->handle == NULL) return;
  (void)api->Finish(queue->handle);
  for (uint64_t value = queue->completed + 1; value <= queue->issued; value++) {
    opencl_event event = queue->ring[value % OPENCL_QUEUE_DEPTH].event;
    if (event != NULL) (void)api->ReleaseEvent(event);
  }
  (void)api->ReleaseCommandQueue(queue->handle);
  pthread_mutex_destroy(&queue->lock);
  queue->handle = NULL;
}

/* ---- under the queue's lock ---- */

/* 1 if the entry is complete, with what became of it. */
static int is_complete(tm_device *device, const opencl_entry *entry, tm_status *out_status) {
  int32_t status = OPENCL_COMPLETE;
  *out_status = entry->status;
  if (entry->event == NULL) return 1;
  const int32_t error = device->backend->api.GetEventInfo(entry->event, OPENCL_EVENT_EXECUTION_STATUS, sizeof status, &status,
                                                          NULL);
  if (error != OPENCL_SUCCESS) status = error;
  if (status > OPENCL_COMPLETE) return 0;
  *out_status = status == OPENCL_COMPLETE ? TM_OK : opencl_event_failure(device, status);
  return 1;
}

/* Takes what has completed out of the ring, in order. */
static void advance(tm_device *device, opencl_queue *queue) {
  while (queue->completed < queue->issued) {
    opencl_entry *entry = &queue->ring[(queue->completed + 1) % OPENCL_QUEUE_DEPTH];
    tm_status status = TM_OK;
    if (!is_complete(device, entry, &status)) return;
    if (entry->event != NULL) (void)device->backend->api.ReleaseEvent(entry->event);
    entry->event = NULL;
    queue->completed++;
    if (status == TM_OK || queue->failed != 0) continue;
    queue->failed = queue->completed;
    queue->failure = status;
  }
}

static tm_status outcome(const opencl_queue *queue, uint64_t value) {
  if (queue->failed == 0 || value < queue->failed) return TM_OK;
  return value == queue->failed ? queue->failure : TM_ERROR_PREDECESSOR;
}

static void flush_commands(tm_device *device, opencl_queue *queue) {
  if (!queue->is_unflushed) return;
  queue->is_unflushed = 0;
  (void)device->backend->api.Flush(queue->handle);
}

static void issue(opencl_queue *queue, uint32_t index, opencl_event event, tm_status status, tm_ticket *out_ticket) {
  queue->issued++;
  queue->ring[queue->issued % OPENCL_QUEUE_DEPTH] = (opencl_entry){ event, status };
  *out_ticket = (tm_ticket){ index, 0, queue->issued };
}

/* ---- dependencies ---- */

/* Adds the event of a ticket that is still pending.  TM_ERROR_PREDECESSOR if it has failed. */
static tm_status resolve(tm_device *device, const tm_ticket *ticket, opencl_waits *waits) {
  if (ticket->queue >= OPENCL_QUEUES) return TM_ERROR_ARGUMENT;
  opencl_queue *queue = &device->queues[ticket->queue];
  tm_status status = TM_OK;
  pthread_mutex_lock(&queue->lock);
  advance(device, queue);
  if (ticket->value > queue->issued) {
    status = TM_ERROR_ARGUMENT;
  } else if (ticket->value <= queue->completed) {
    status = outcome(queue, ticket->value) == TM_OK ? TM_OK : TM_ERROR_PREDECESSOR;
  } else {
    const opencl_entry *entry = &queue->ring[ticket->value % OPENCL_QUEUE_DEPTH];
    flush_commands(device, queue);      /* else the two queues could wait for each other's flush */
    if (entry->event == NULL) status = TM_ERROR_PREDECESSOR;
    else if (waits->count == OPENCL_MOST_WAITS) status = TM_BUSY;
    else if (device->backend->api.RetainEvent(entry->event) == OPENCL_SUCCESS) waits->events[waits->count++] = entry->event;
  }
  pthread_mutex_unlock(&queue->lock);
  return status;
}

void opencl_waits_release(tm_device *device, opencl_waits *waits) {
  for (uint32_t i = 0; i < waits->count; i++) (void)device->backend->api.ReleaseEvent(waits->events[i]);
  waits->count = 0;
}

/* Every ticket is looked at, so that a wrong one is told even beside one that failed. */
static tm_status resolve_all(tm_device *device, const tm_ticket *tickets, uint32_t count, opencl_waits *waits) {
  tm_status first = TM_OK;
  for (uint32_t i = 0; i < count; i++) {
    const tm_status status = resolve(device, &tickets[i], waits);
    if (status == TM_ERROR_ARGUMENT) {
      opencl_waits_release(device, waits);
      return opencl_fail(device->backend->host, status, 0, "waits for ticket %llu of queue %u, which was not issued",
                         (unsigned long long)tickets[i].value, (unsigned)tickets[i].queue);
    }
    if (first == TM_OK) first = status;
  }
  if (first != TM_OK) opencl_waits_release(device, waits);
  return first;
}

tm_status opencl_queue_begin(tm_device *device, uint32_t index, const tm_ticket *waits, uint32_t wait_count,
                             opencl_waits *out_waits, tm_ticket *out_ticket) {
  out_waits->count = 0;
  if (index >= OPENCL_QUEUES)
    return opencl_fail(device->backend->host, TM_ERROR_ARGUMENT, 0, "there is no queue %u", (unsigned)index);
  if (atomic_load(&device->is_lost) != 0) return TM_ERROR_DEVICE_LOST;
  opencl_queue *queue = &device->queues[index];
  tm_status status = resolve_all(device, waits, wait_count, out_waits);
  if (status != TM_OK && status != TM_ERROR_PREDECESSOR) return status;
  pthread_mutex_lock(&queue->lock);
  advance(device, queue);
  const int is_full = queue->issued - queue->completed == OPENCL_QUEUE_DEPTH;
  if (is_full) {
    flush_commands(device, queue);
    status = TM_BUSY;
  } else if (status == TM_ERROR_PREDECESSOR || queue->failed != 0) {
    issue(queue, index, NULL, TM_ERROR_PREDECESSOR, out_ticket);
    status = TM_ERROR_PREDECESSOR;
  }
  pthread_mutex_unlock(&queue->lock);
  if (status != TM_OK) opencl_waits_release(device, out_waits);
  return status;
}

void opencl_queue_commit(tm_device *device, uint32_t index, opencl_event event, tm_ticket *out_ticket) {
  opencl_queue *queue = &device->queues[index];
  pthread_mutex_lock(&queue->lock);
  issue(queue, index, event, TM_OK, out_ticket);
  queue->is_unflushed = 1;
  pthread_mutex_unlock(&queue->lock);
}

/* ---- the contract's functions ---- */

tm_status opencl_flush(tm_device *device, uint32_t index) {
  if (index >= OPENCL_QUEUES) return TM_OK;
  opencl_queue *queue = &device->queues[index];
  pthread_mutex_lock(&queue->lock);
  flush_commands(device, queue);
  pthread_mutex_unlock(&queue->lock);
  return atomic_load(&device->is_lost) != 0 ? TM_ERROR_DEVICE_LOST : TM_OK;
}

static void nap(uint64_t ns) {
  const struct timespec time = { .tv_sec = 0, .tv_nsec = (long)ns };
  (void)nanosleep(&time, NULL);
}

/* TM_PENDING, with a reference to its event, if the ticket is not complete. */
static tm_status look(tm_device *device, const tm_ticket *ticket, opencl_event *out_event) {
  opencl_queue *queue = &device->queues[ticket->queue];
  tm_status status = TM_PENDING;
  *out_event = NULL;
  pthread_mutex_lock(&queue->lock);
  flush_commands(device, queue);
  advance(device, queue);
  if (ticket->value <= queue->completed) {
    status = outcome(queue, ticket->value);
  } else if (ticket->value <= queue->issued) {
    opencl_event event = queue->ring[ticket->value % OPENCL_QUEUE_DEPTH].event;
    if (event != NULL && device->backend->api.RetainEvent(event) == OPENCL_SUCCESS) *out_event = event;
  } else {
    status = TM_ERROR_ARGUMENT;
  }
  pthread_mutex_unlock(&queue->lock);
  return status;
}

/* OpenCL has no wait with a time limit: without one its own wait is used, else short naps. */
static tm_status wait_for(tm_device *device, const tm_ticket *ticket, uint64_t begin_ns, uint64_t timeout_ns) {
  const tm_host *host = device->backend->host;
  if (ticket->queue >= OPENCL_QUEUES) return TM_ERROR_ARGUMENT;
  for (uint64_t pause = SHORTEST_NAP_NS;; pause = pause < LONGEST_NAP_NS ? 2 * pause : LONGEST_NAP_NS) {
    opencl_event event = NULL;
    const tm_status status = look(device, ticket, &event);
    if (status == TM_PENDING && timeout_ns == TM_WAIT_FOREVER && event != NULL) (void)device->backend->api.WaitForEvents(1, &event);
    if (event != NULL) (void)device->backend->api.ReleaseEvent(event);
    if (status != TM_PENDING) return status;
    const uint64_t passed = host->now_ns(host->context) - begin_ns;
    if (timeout_ns != TM_WAIT_FOREVER && passed >= timeout_ns) return TM_PENDING;
    /* After the driver's own wait the first look finds it complete; the nap is for drivers whose status lags behind. */
    if (timeout_ns != TM_WAIT_FOREVER) nap(pause < timeout_ns - passed ? pause : timeout_ns - passed);
    else if (pause > SHORTEST_NAP_NS) nap(pause);
  }
}

tm_status opencl_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  const tm_host *host = device->backend->host;
  const uint64_t begin_ns = host->now_ns(host->context);
  tm_status first = TM_OK;
  int is_pending = 0;
  for (uint32_t i = 0; i < count; i++) {
    const tm_status status = wait_for(device, &tickets[i], begin_ns, timeout_ns);
    is_pending |= status == TM_PENDING;
    if (status != TM_PENDING && first == TM_OK) first = status;
  }
  return is_pending ? TM_PENDING : first;
}

/* The driver has all work already and none can be taken back: what runs is waited for, by asking again. */
tm_status opencl_cancel(tm_device *device, uint32_t index) {
  if (index >= OPENCL_QUEUES) return TM_OK;
  opencl_queue *queue = &device->queues[index];
  pthread_mutex_lock(&queue->lock);
  flush_commands(device, queue);
  advance(device, queue);
  const int is_idle = queue->completed == queue->issued;
  if (is_idle) queue->failed = 0;
  pthread_mutex_unlock(&queue->lock);
  return is_idle ? TM_OK : TM_BUSY;
}
