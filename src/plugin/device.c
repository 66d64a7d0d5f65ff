/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "plugin/answer.h"
#include "plugin/host_services.h"
#include "plugin/table.h"

#define QUERY_BATCH 32u
#define BUSY_PAUSE_NS UINT64_C(50000)
#define BUSY_PATIENCE_NS (UINT64_C(30) * 1000000000)
#define HOST_BUFFER_ALIGNMENT 64u

bool tm_device_is_usable(const tm_device_slot *device) {
  return atomic_load(&device->state) == TM_DEVICE_READY && atomic_load(&device->backend->state) == TM_BACKEND_READY;
}

/* ---- questions ---- */

static void query_batch(tm_device_slot *device, const tm_operation *const *operations, uint32_t count, tm_answer *answers) {
  tm_answer *pointers[QUERY_BATCH];
  const uint64_t epoch = atomic_load(&device->epoch);
  for (uint32_t i = 0; i < count; i++) {
    memset(&answers[i], 0, sizeof answers[i]);
    answers[i].struct_size = sizeof answers[i];
    answers[i].operand = TM_NO_OPERAND;
    pointers[i] = &answers[i];
  }
  tm_backend_slot *backend = device->backend;
  tm_call_frame frame;
  tm_call_enter(&frame, NULL);
  const tm_status status = backend->table.query(backend->handle, device->index_in_backend, operations, count, pointers);
  tm_call_leave(&frame);
  for (uint32_t i = 0; i < count; i++) {
    if (status != TM_OK) {
      answers[i].level = TM_LEVEL_REFUSED;
      answers[i].reasons = TM_REASON_RESOURCES;
    }
    tm_answer_make_sound(operations[i], &answers[i]);
    if (answers[i].epoch == 0) answers[i].epoch = epoch;
  }
  if (status == TM_ERROR_DEVICE_LOST) tm_inventory_retire(device, TM_DEVICE_LOST);
}

void tm_device_query(tm_device_slot *device, const tm_operation *const *operations, uint32_t count, tm_answer *out_answers) {
  for (uint32_t done = 0; done < count; done += QUERY_BATCH) {
    const uint32_t batch = count - done < QUERY_BATCH ? count - done : QUERY_BATCH;
    query_batch(device, operations + done, batch, out_answers + done);
  }
}

/* ---- opening and preparing ---- */

static tm_status open_once(tm_device_slot *device, tm_error *error) {
  if (atomic_load_explicit(&device->is_open, memory_order_acquire)) return TM_OK;
  tm_mutex_lock(&device->opening);
  tm_status status = TM_OK;
  if (!atomic_load(&device->is_open)) {
    tm_device *handle = NULL;
    tm_call_frame frame;
    tm_call_enter(&frame, error);
    status = device->backend->table.open(device->backend->handle, device->index_in_backend, &handle);
    tm_call_leave(&frame);
    if (status == TM_OK) {
      atomic_store(&device->handle, handle);
      atomic_store_explicit(&device->is_open, true, memory_order_release);
    }
  }
  tm_mutex_unlock(&device->opening);
  if (status == TM_ERROR_DEVICE_LOST) tm_inventory_retire(device, TM_DEVICE_LOST);
  return status;
}

static tm_device *handle_of(const tm_device_slot *device) { return atomic_load_explicit(&device->handle, memory_order_acquire); }

tm_status tm_device_prepare(tm_device_slot *device, const tm_operation *operation, const tm_answer *answer,
                            tm_kernel **out_kernel, tm_error *error) {
  TM_TRY(open_once(device, error));
  tm_kernel *kernel = NULL;
  tm_call_frame frame;
  tm_call_enter(&frame, error);
  const tm_status status = device->backend->table.prepare(handle_of(device), operation, answer, &kernel);
  tm_call_leave(&frame);
  if (status == TM_OK) *out_kernel = kernel;
  return status;
}

void tm_device_release(tm_device_slot *device, tm_kernel *kernel) {
  if (!atomic_load(&device->is_open)) return;
  tm_call_frame frame;
  tm_call_enter(&frame, NULL);
  device->backend->table.release(handle_of(device), kernel);
  tm_call_leave(&frame);
}

/* ---- buffers ---- */

/* A space that is host memory needs nothing of the backend: a buffer is its address. */
static bool host_makes_buffers(const tm_device_slot *device) {
  return (device->memories[0].flags & TM_MEMORY_HOST_POINTER) != 0 && !tm_plugin_table_has_buffers(&device->backend->table);
}

tm_status tm_device_buffer_create(tm_device_slot *device, uint64_t bytes, tm_buffer **out_buffer, tm_error *error) {
  TM_TRY(open_once(device, error));
  const tm_memory_space *space = &device->memories[0];
  if (space->largest_buffer_bytes != 0 && bytes > space->largest_buffer_bytes)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: a buffer of %llu bytes is larger than its largest, %llu", device->name,
                   (unsigned long long)bytes, (unsigned long long)space->largest_buffer_bytes);
  if (host_makes_buffers(device)) {
    const uint64_t alignment = space->alignment > HOST_BUFFER_ALIGNMENT ? space->alignment : HOST_BUFFER_ALIGNMENT;
    void *memory = tm_memory_alloc(device->backend->inventory->memory, bytes, alignment);
    if (memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)bytes);
    *out_buffer = memory;
    return TM_OK;
  }
  tm_call_frame frame;
  tm_call_enter(&frame, error);
  const tm_status status = device->backend->table.buffer_create(handle_of(device), 0, bytes, out_buffer);
  tm_call_leave(&frame);
  return status;
}

void tm_device_buffer_destroy(tm_device_slot *device, tm_buffer *buffer, uint64_t bytes) {
  if (buffer == NULL) return;
  if (host_makes_buffers(device)) {
    tm_memory_free(device->backend->inventory->memory, buffer, bytes);
    return;
  }
  tm_call_frame frame;
  tm_call_enter(&frame, NULL);
  device->backend->table.buffer_destroy(handle_of(device), 0, buffer, bytes, 0);
  tm_call_leave(&frame);
}

/* ---- queues ---- */

/* Threads start looking at different queues, so that they rarely meet. */
static uint32_t preferred_queue(const tm_device_slot *device) {
  static _Thread_local char here;
  return (uint32_t)(((uintptr_t)&here >> 12) % device->info.queue_count);
}

uint32_t tm_device_queue_acquire(tm_device_slot *device) {
  const uint32_t first = preferred_queue(device);
  for (uint32_t i = 0; i < device->info.queue_count; i++) {
    const uint32_t queue = (first + i) % device->info.queue_count;
    if (tm_mutex_try_lock(&device->queues[queue])) return queue;
  }
  tm_mutex_lock(&device->queues[first]);
  return first;
}

void tm_device_queue_release(tm_device_slot *device, uint32_t queue) { tm_mutex_unlock(&device->queues[queue]); }

/* Collects the outcome of what was just enqueued; a failed queue is made usable again, since its error is now known. */
static tm_status finish(tm_device_slot *device, const tm_ticket *ticket, tm_error *error) {
  if ((device->info.flags & TM_DEVICE_SYNCHRONOUS) != 0) return TM_OK;
  tm_device *handle = handle_of(device);
  tm_call_frame frame;
  tm_call_enter(&frame, error);
  tm_status status = device->backend->table.wait(handle, ticket, 1, TM_WAIT_FOREVER);
  if (status < 0)
    while (device->backend->table.cancel(handle, ticket->queue) == TM_BUSY) tm_sleep_ns(BUSY_PAUSE_NS);
  tm_call_leave(&frame);
  return status;
}

typedef tm_status (*transfer_fn)(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);

static tm_status transfer(tm_device_slot *device, transfer_fn function, const tm_transfer *what, tm_error *error) {
  const uint64_t give_up = tm_now_ns() + BUSY_PATIENCE_NS;
  tm_ticket ticket = { what->queue, 0, 0 };
  tm_status status;
  do {
    tm_call_frame frame;
    tm_call_enter(&frame, error);
    status = function(handle_of(device), what, &ticket);
    tm_call_leave(&frame);
    if (status == TM_BUSY) tm_sleep_ns(BUSY_PAUSE_NS);
  } while (status == TM_BUSY && tm_now_ns() < give_up);
  return status == TM_OK ? finish(device, &ticket, error) : status;
}

tm_status tm_device_upload(tm_device_slot *device, uint32_t queue, tm_buffer *destination, uint64_t offset, const void *host,
                           uint64_t bytes, tm_error *error) {
  const tm_transfer what = { .struct_size = sizeof what, .queue = queue, .destination = destination,
                             .destination_offset = offset, .host = (void *)(uintptr_t)host, .bytes = bytes };
  return transfer(device, device->backend->table.upload, &what, error);
}

tm_status tm_device_download(tm_device_slot *device, uint32_t queue, tm_buffer *source, uint64_t offset, void *host,
                             uint64_t bytes, tm_error *error) {
  const tm_transfer what = { .struct_size = sizeof what, .queue = queue, .source = source, .source_offset = offset,
                             .host = host, .bytes = bytes };
  return transfer(device, device->backend->table.download, &what, error);
}

tm_status tm_device_run(tm_device_slot *device, uint32_t queue, tm_kernel *kernel, const tm_binding *bindings,
                        uint32_t binding_count, tm_error *error) {
  const tm_launch launch = { .struct_size = sizeof launch, .queue = queue, .kernel = kernel, .bindings = bindings,
                             .binding_count = binding_count };
  tm_ticket ticket = { queue, 0, 0 };
  tm_status status;
  uint64_t give_up = 0;
  for (;;) {
    tm_call_frame frame;
    tm_call_enter(&frame, error);
    status = device->backend->table.launch(handle_of(device), &launch, &ticket);
    tm_call_leave(&frame);
    if (status != TM_BUSY) break;
    if (give_up == 0) give_up = tm_now_ns() + BUSY_PATIENCE_NS;
    if (tm_now_ns() >= give_up) return status;
    tm_sleep_ns(BUSY_PAUSE_NS);
  }
  atomic_fetch_add_explicit(&device->launch_count, 1, memory_order_relaxed);
  return status == TM_OK ? finish(device, &ticket, error) : status;
}
