/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device.h"

#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "plugin/answer.h"
#include "plugin/host_services.h"
#include "plugin/table.h"
#include "plugin/wake.h"

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

/* What it did wrong in its trial is not asked for again. */
static void refuse_faults(const tm_device_slot *device, const tm_operation *operation, tm_answer *answer) {
  const tm_backend_slot *backend = device->backend;
  for (uint32_t i = 0; i < backend->fault_count; i++) {
    const tm_backend_fault *fault = &backend->faults[i];
    if (fault->device != device->index_in_backend || fault->op != operation->op || fault->format != operation->operands[0].format) continue;
    answer->level = TM_LEVEL_REFUSED;
    answer->reasons = TM_REASON_OPERATION;
    answer->change_count = 0;
    answer->text = (tm_string){ fault->text, strlen(fault->text) };
  }
}

static void refuse_all(const char *reason, const tm_operation *const *operations, uint32_t count, tm_answer *out_answers) {
  for (uint32_t i = 0; i < count; i++) {
    out_answers[i] = (tm_answer){ .struct_size = sizeof *out_answers, .operand = TM_NO_OPERAND, .reasons = TM_REASON_RESOURCES };
    out_answers[i].text = (tm_string){ reason, strlen(reason) };
    tm_answer_make_sound(operations[i], &out_answers[i]);
  }
}

void tm_device_query(tm_device_slot *device, const tm_operation *const *operations, uint32_t count, tm_answer *out_answers) {
  if (!tm_backend_wake(device->backend)) {
    refuse_all(atomic_load(&device->backend->reason), operations, count, out_answers);
    return;
  }
  for (uint32_t done = 0; done < count; done += QUERY_BATCH) {
    const uint32_t batch = count - done < QUERY_BATCH ? count - done : QUERY_BATCH;
    query_batch(device, operations + done, batch, out_answers + done);
  }
  for (uint32_t i = 0; device->backend->fault_count != 0 && i < count; i++) refuse_faults(device, operations[i], &out_answers[i]);
}

/* ---- calls that name an opened device ---- */

/* One call with all that any of them needs; those below use their part. */
typedef struct device_call {
  tm_device_slot     *device;
  tm_device          *handle;
  tm_error           *error;
  tm_status           status;
  uint32_t            queue;
  const tm_operation *operation;
  const tm_answer    *answer;
  tm_kernel          *kernel;
  tm_buffer          *buffer;
  uint64_t            bytes;
  const tm_transfer  *transfer;
  tm_status (*transfer_fn)(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
  const tm_launch    *launch;
  tm_ticket           ticket;
  tm_device_call_fn   body;
} device_call;

static const tm_accelerator_backend_plugin *table_of(const device_call *call) { return &call->device->backend->table; }

/* What surrounds every call, on whichever thread it runs. */
static void framed(void *argument) {
  device_call *call = argument;
  tm_call_frame frame;
  tm_call_enter(&frame, call->error);
  call->body(call);
  tm_call_leave(&frame);
}

/* Here, or on the device's own thread if it wants one. */
static tm_status invoke(tm_device_slot *device, tm_device_call_fn body, device_call *call) {
  call->device = device;
  call->handle = atomic_load_explicit(&device->handle, memory_order_acquire);
  call->body = body;
  if (device->thread != NULL)
    tm_device_thread_call(device->thread, framed, call);
  else
    framed(call);
  return call->status;
}

static void do_open(void *argument) {
  device_call *call = argument;
  call->status = table_of(call)->open(call->device->backend->handle, call->device->index_in_backend, &call->handle);
}

static void do_close(void *argument) {
  device_call *call = argument;
  table_of(call)->close(call->handle);
}

static void do_prepare(void *argument) {
  device_call *call = argument;
  call->status = table_of(call)->prepare(call->handle, call->operation, call->answer, &call->kernel);
}

static void do_release(void *argument) {
  device_call *call = argument;
  table_of(call)->release(call->handle, call->kernel);
}

static void do_buffer_create(void *argument) {
  device_call *call = argument;
  call->status = table_of(call)->buffer_create(call->handle, 0, call->bytes, &call->buffer);
}

static void do_buffer_destroy(void *argument) {
  device_call *call = argument;
  table_of(call)->buffer_destroy(call->handle, 0, call->buffer, call->bytes, 0);
}

static void do_transfer(void *argument) {
  device_call *call = argument;
  call->status = call->transfer_fn(call->handle, call->transfer, &call->ticket);
}

static void do_launch(void *argument) {
  device_call *call = argument;
  call->status = table_of(call)->launch(call->handle, call->launch, &call->ticket);
}

static void do_wait(void *argument) {
  device_call *call = argument;
  call->status = table_of(call)->wait(call->handle, &call->ticket, 1, TM_WAIT_FOREVER);
}

static void do_cancel(void *argument) {
  device_call *call = argument;
  call->status = table_of(call)->cancel(call->handle, call->ticket.queue);
}

/* ---- opening and preparing ---- */

static tm_status open_locked(tm_device_slot *device, tm_error *error) {
  if ((device->info.flags & TM_DEVICE_OPENING_THREAD) != 0 && device->thread == NULL)
    TM_TRY(tm_device_thread_start(device->backend->inventory->memory, &device->thread, error));
  device_call call = { .error = error };
  TM_TRY(invoke(device, do_open, &call));
  atomic_store(&device->handle, call.handle);
  atomic_store_explicit(&device->is_open, true, memory_order_release);
  return TM_OK;
}

static tm_status open_once(tm_device_slot *device, tm_error *error) {
  if (atomic_load_explicit(&device->is_open, memory_order_acquire)) return TM_OK;
  tm_mutex_lock(&device->backend->opening);
  const tm_status status = atomic_load(&device->is_open) ? TM_OK : open_locked(device, error);
  tm_mutex_unlock(&device->backend->opening);
  if (status == TM_ERROR_DEVICE_LOST) tm_inventory_retire(device, TM_DEVICE_LOST);
  return status;
}

void tm_device_close(tm_device_slot *device) {
  device_call call = { .error = NULL };
  if (atomic_load(&device->is_open)) (void)invoke(device, do_close, &call);
  atomic_store(&device->is_open, false);
  tm_device_thread_stop(device->thread);
  device->thread = NULL;
}

tm_status tm_device_prepare(tm_device_slot *device, const tm_operation *operation, const tm_answer *answer,
                            tm_kernel **out_kernel, tm_error *error) {
  TM_TRY(open_once(device, error));
  device_call call = { .error = error, .operation = operation, .answer = answer };
  TM_TRY(invoke(device, do_prepare, &call));
  *out_kernel = call.kernel;
  return TM_OK;
}

void tm_device_release(tm_device_slot *device, tm_kernel *kernel) {
  if (!atomic_load(&device->is_open)) return;
  device_call call = { .kernel = kernel };
  (void)invoke(device, do_release, &call);
}

/* ---- buffers ---- */

/* A space that is host memory needs nothing of the backend: a buffer is its address. */
static bool host_makes_buffers(const tm_device_slot *device) {
  return (device->memories[0].flags & TM_MEMORY_HOST_POINTER) != 0 && !tm_plugin_table_has_buffers(&device->backend->table);
}

static tm_status create_in_host_memory(tm_device_slot *device, uint64_t bytes, tm_buffer **out_buffer, tm_error *error) {
  const uint64_t alignment = tm_max_u64(device->memories[0].alignment, HOST_BUFFER_ALIGNMENT);
  void *memory = tm_memory_alloc(device->backend->inventory->memory, bytes, alignment);
  if (memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)bytes);
  *out_buffer = memory;
  return TM_OK;
}

tm_status tm_device_buffer_create(tm_device_slot *device, uint64_t bytes, tm_buffer **out_buffer, tm_error *error) {
  TM_TRY(open_once(device, error));
  const uint64_t largest = device->memories[0].largest_buffer_bytes;
  if (largest != 0 && bytes > largest)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: a buffer of %llu bytes is larger than its largest, %llu", device->name,
                   (unsigned long long)bytes, (unsigned long long)largest);
  if (host_makes_buffers(device)) return create_in_host_memory(device, bytes, out_buffer, error);
  device_call call = { .error = error, .bytes = bytes };
  TM_TRY(invoke(device, do_buffer_create, &call));
  *out_buffer = call.buffer;
  return TM_OK;
}

struct tm_parked_buffer {
  struct tm_parked_buffer *next;
  tm_buffer *buffer;
  uint64_t   bytes;
};

/* Without memory for the note the buffer is lost, which is better than freed too early. */
static void park(tm_device_slot *device, tm_buffer *buffer, uint64_t bytes) {
  struct tm_parked_buffer *one = tm_memory_alloc(device->backend->inventory->memory, sizeof *one, 0);
  if (one == NULL) return;
  tm_mutex_lock(&device->parking);
  *one = (struct tm_parked_buffer){ device->parked, buffer, bytes };
  device->parked = one;
  tm_mutex_unlock(&device->parking);
}

void tm_device_buffer_destroy(tm_device_slot *device, tm_buffer *buffer, uint64_t bytes) {
  if (buffer == NULL) return;
  device_call call = { .buffer = buffer, .bytes = bytes };
  if (atomic_load(&device->is_stuck))
    park(device, buffer, bytes);
  else if (host_makes_buffers(device))
    tm_memory_free(device->backend->inventory->memory, buffer, bytes);
  else
    (void)invoke(device, do_buffer_destroy, &call);
}

void tm_device_free_parked(tm_device_slot *device) {
  tm_memory *memory = device->backend->inventory->memory;
  while (device->parked != NULL) {
    struct tm_parked_buffer *one = device->parked;
    device->parked = one->next;
    if (host_makes_buffers(device)) tm_memory_free(memory, one->buffer, one->bytes);
    tm_memory_free(memory, one, sizeof *one);
  }
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

/* Calls until the answer is not BUSY, or patience ends. */
static tm_status invoke_patiently(tm_device_slot *device, tm_device_call_fn body, device_call *call) {
  uint64_t give_up = 0;
  while (invoke(device, body, call) == TM_BUSY) {
    const uint64_t now = tm_now_ns();
    if (give_up == 0) give_up = now + BUSY_PATIENCE_NS;
    if (now >= give_up) break;
    tm_sleep_ns(BUSY_PAUSE_NS);
  }
  return call->status;
}

/* Nobody knows when its work will end: it is not used again, and what it may still touch is never freed. */
static tm_status give_up_on(tm_device_slot *device, const char *what, tm_error *error) {
  atomic_store(&device->is_stuck, true);
  tm_inventory_retire(device, TM_DEVICE_QUARANTINED);
  return tm_fail(error, TM_ERROR_INTERNAL, "%s, so its work may still be running", what);
}

/* Collects the outcome of what was enqueued; a failed queue is made usable again, since its error is now known. */
static tm_status collect(tm_device_slot *device, device_call *call) {
  if (call->ticket.value == 0 && call->transfer != NULL) return TM_OK;    /* copied inside the call */
  if (call->ticket.value == 0) return give_up_on(device, "it gave no ticket", call->error);
  const tm_status outcome = invoke(device, do_wait, call);
  if (outcome > TM_OK) return give_up_on(device, "a wait for ever ended without the work's end", call->error);
  if (outcome == TM_OK) return TM_OK;
  device_call cancelling = { .queue = call->queue, .ticket = call->ticket };
  if (invoke_patiently(device, do_cancel, &cancelling) == TM_BUSY)
    return give_up_on(device, "its queue cannot be cancelled", call->error);
  return outcome;
}

/* Enqueues, trying again for a while when the queue is full, and waits for the end. */
static tm_status enqueue_and_wait(tm_device_slot *device, tm_device_call_fn body, device_call *call) {
  call->ticket.queue = call->queue;
  if (invoke_patiently(device, body, call) != TM_OK || (device->info.flags & TM_DEVICE_SYNCHRONOUS) != 0) return call->status;
  return collect(device, call);
}

tm_status tm_device_upload(tm_device_slot *device, uint32_t queue, tm_buffer *destination, uint64_t offset, const void *host,
                           uint64_t bytes, tm_error *error) {
  const tm_transfer what = { .struct_size = sizeof what, .queue = queue, .destination = destination,
                             .destination_offset = offset, .host = (void *)(uintptr_t)host, .bytes = bytes };
  device_call call = { .error = error, .queue = queue, .transfer = &what, .transfer_fn = device->backend->table.upload };
  return enqueue_and_wait(device, do_transfer, &call);
}

tm_status tm_device_download(tm_device_slot *device, uint32_t queue, tm_buffer *source, uint64_t offset, void *host,
                             uint64_t bytes, tm_error *error) {
  const tm_transfer what = { .struct_size = sizeof what, .queue = queue, .source = source, .source_offset = offset,
                             .host = host, .bytes = bytes };
  device_call call = { .error = error, .queue = queue, .transfer = &what, .transfer_fn = device->backend->table.download };
  return enqueue_and_wait(device, do_transfer, &call);
}

tm_status tm_device_run(tm_device_slot *device, uint32_t queue, tm_kernel *kernel, const tm_binding *bindings,
                        uint32_t binding_count, tm_error *error) {
  const tm_launch launch = { .struct_size = sizeof launch, .queue = queue, .kernel = kernel, .bindings = bindings,
                             .binding_count = binding_count };
  device_call call = { .error = error, .queue = queue, .launch = &launch };
  atomic_fetch_add_explicit(&device->launch_count, 1, memory_order_relaxed);
  return enqueue_and_wait(device, do_launch, &call);
}
