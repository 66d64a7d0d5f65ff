/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "plugin/answer.h"
#include "plugin/device_call.h"
#include "plugin/device_parked.h"
#include "plugin/host_services.h"
#include "plugin/wait_slice.h"
#include "plugin/wake.h"

#define QUERY_BATCH 32u
#define NS_PER_MS UINT64_C(1000000)
#define BUSY_PAUSE_NS UINT64_C(50000)
#define LONGEST_PAUSE_NS UINT64_C(1000000)
/* What running work gets to end before it is left. */
#define HURRY_NS UINT64_C(40000000)
#define HOST_BUFFER_ALIGNMENT 64u

bool tm_device_is_usable(const tm_device_slot *device) {
  return atomic_load(&device->state) == TM_DEVICE_READY && atomic_load(&device->backend->state) == TM_BACKEND_READY;
}

/* ---- questions ---- */

static tm_status ask_directly(tm_device_slot *device, const tm_operation *const *operations, uint32_t count, tm_answer *const *answers) {
  tm_backend_slot *backend = device->backend;
  tm_call_frame frame;
  tm_call_enter(&frame, NULL);
  const tm_status status = backend->table.query(backend->handle, device->index_in_backend, operations, count, answers);
  tm_call_leave(&frame);
  return status;
}

/* A device that has yet to prove that it answers such questions is asked one at a time. */
static bool is_proven(const tm_device_slot *device, const tm_operation *const *operations, uint32_t count) {
  for (uint32_t i = 0; i < count && device->is_watched; i++)
    if (atomic_load_explicit(&device->clean_queries[operations[i]->op % TM_QUERY_KINDS], memory_order_relaxed) <= TM_TRIAL_RUNS)
      return false;
  return true;
}

static tm_status ask_watched(tm_device_slot *device, const tm_operation *const *operations, uint32_t count,
                             const _Atomic uint32_t *cancelled, tm_answer *const *answers) {
  for (uint32_t i = 0; i < count; i++) {
    tm_device_call call = { .device = device, .kind = TM_CALL_QUERY, .operation = operations[i], .out_answer = answers[i],
                            .cancelled = cancelled };
    TM_TRY(tm_device_call_make(&call));
  }
  return TM_OK;
}

static void query_batch(tm_device_slot *device, const tm_operation *const *operations, uint32_t count,
                        const _Atomic uint32_t *cancelled, tm_answer *answers) {
  tm_answer *pointers[QUERY_BATCH];
  const uint64_t epoch = atomic_load(&device->epoch);
  for (uint32_t i = 0; i < count; i++) {
    memset(&answers[i], 0, sizeof answers[i]);
    answers[i].struct_size = sizeof answers[i];
    answers[i].operand = TM_NO_OPERAND;
    pointers[i] = &answers[i];
  }
  const tm_status status = is_proven(device, operations, count) ? ask_directly(device, operations, count, pointers)
                                                                : ask_watched(device, operations, count, cancelled, pointers);
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

/* The host knows how large a buffer may be, and asks for none that is larger, whatever was said. */
static void refuse_too_large(const tm_device_slot *device, const tm_operation *operation, tm_answer *answer) {
  static const char text[] = "an operand is larger than the device's largest buffer";
  const uint64_t largest = device->memories[0].largest_buffer_bytes;
  if (largest == 0 || device->is_host_memory || answer->level == TM_LEVEL_REFUSED) return;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++) {
    if (operation->operands[i].byte_count <= largest) continue;
    answer->level = TM_LEVEL_REFUSED;
    answer->reasons = TM_REASON_SIZE;
    answer->operand = i;
    answer->change_count = 0;
    answer->text = (tm_string){ text, sizeof text - 1 };
    return;
  }
}

void tm_device_query(tm_device_slot *device, const tm_operation *const *operations, uint32_t count, const _Atomic uint32_t *cancelled,
                     tm_answer *out_answers) {
  if (!tm_backend_wake(device->backend, cancelled)) {
    refuse_all(atomic_load(&device->backend->reason), operations, count, out_answers);
    return;
  }
  atomic_fetch_add_explicit(&device->backend->inventory->query_count, count, memory_order_relaxed);
  for (uint32_t done = 0; done < count; done += QUERY_BATCH) {
    const uint32_t batch = count - done < QUERY_BATCH ? count - done : QUERY_BATCH;
    query_batch(device, operations + done, batch, cancelled, out_answers + done);
  }
  for (uint32_t i = 0; i < count; i++) refuse_too_large(device, operations[i], &out_answers[i]);
  for (uint32_t i = 0; device->backend->fault_count != 0 && i < count; i++) refuse_faults(device, operations[i], &out_answers[i]);
}

/* ---- opening and preparing ---- */

static bool is_cancelled(const _Atomic uint32_t *flag) {
  return flag != NULL && atomic_load_explicit(flag, memory_order_relaxed) != 0;
}

/* Whoever may have to go does not sleep on a lock whose owner waits for a backend. */
static bool lock_opening(tm_backend_slot *backend, const _Atomic uint32_t *cancelled) {
  if (cancelled == NULL) {
    tm_mutex_lock(&backend->opening);
    return true;
  }
  while (!tm_mutex_try_lock(&backend->opening)) {
    if (is_cancelled(cancelled)) return false;
    tm_sleep_ns(LONGEST_PAUSE_NS);
  }
  return true;
}

/* Under the lock: calls of this kind come one at a time, those that were left behind included. */
static bool await_left(tm_backend_slot *backend, const _Atomic uint32_t *cancelled) {
  while (atomic_load(&backend->left_count) != 0) {
    for (uint32_t i = 0; i < backend->device_count; i++) tm_device_calls_settle(backend->inventory->devices[backend->first_device + i]);
    if (atomic_load(&backend->left_count) == 0) break;
    if (is_cancelled(cancelled)) return false;
    tm_sleep_ns(LONGEST_PAUSE_NS);
  }
  return true;
}

static tm_status open_locked(tm_device_slot *device, const _Atomic uint32_t *cancelled, tm_error *error) {
  if (!await_left(device->backend, cancelled)) return tm_fail(error, TM_ERROR_CANCELLED, "cancelled before open on %s", device->name);
  if (atomic_load(&device->is_open)) return TM_OK;
  if (atomic_load(&device->backend->is_stuck))
    return tm_fail(error, TM_ERROR_DEVICE_LOST, "its backend did not come back from a call");
  if ((device->info.flags & TM_DEVICE_OPENING_THREAD) != 0 && device->thread == NULL)
    TM_TRY(tm_worker_start(device->backend->inventory->memory, &device->thread, error));
  tm_device_call call = { .device = device, .kind = TM_CALL_OPEN, .error = error, .expected_ns = device->info.open_ns,
                          .cancelled = cancelled };
  const tm_clock *clock = &device->backend->inventory->clock;
  const uint64_t begin = tm_clock_now(clock);
  TM_TRY(tm_device_call_make(&call));
  atomic_store(&device->opened_ns, tm_clock_since(clock, begin));
  atomic_store(&device->handle, call.handle);
  atomic_store_explicit(&device->is_open, true, memory_order_release);
  return TM_OK;
}

static tm_status open_once(tm_device_slot *device, const _Atomic uint32_t *cancelled, tm_error *error) {
  if (atomic_load_explicit(&device->is_open, memory_order_acquire)) return TM_OK;
  if (!lock_opening(device->backend, cancelled))
    return tm_fail(error, TM_ERROR_CANCELLED, "cancelled before open on %s", device->name);
  const tm_status status = atomic_load(&device->is_open) ? TM_OK : open_locked(device, cancelled, error);
  tm_mutex_unlock(&device->backend->opening);
  if (status == TM_ERROR_DEVICE_LOST) tm_inventory_retire(device, TM_DEVICE_LOST);
  return status;
}

tm_status tm_device_prepare(tm_device_slot *device, const tm_preparation *what, tm_kernel **out_kernel, tm_error *error) {
  TM_TRY(open_once(device, what->cancelled, error));
  tm_device_call call = { .device = device, .kind = TM_CALL_PREPARE, .error = error, .trial = what->trial, .operation = what->operation,
                          .answer = what->answer, .expected_ns = what->answer->setup_ns, .cancelled = what->cancelled };
  atomic_fetch_add_explicit(&device->backend->inventory->prepare_count, 1, memory_order_relaxed);
  TM_TRY(tm_device_call_make(&call));
  *out_kernel = call.kernel;
  return TM_OK;
}

static bool is_out_of_reach(const tm_device_slot *device) { return !atomic_load(&device->is_open) || atomic_load(&device->is_stuck); }

void tm_device_release(tm_device_slot *device, tm_kernel *kernel) {
  if (!is_out_of_reach(device)) tm_device_discard(device, &(tm_parked){ .kernel = kernel });
}

/* ---- buffers ---- */

static tm_status create_in_host_memory(tm_device_slot *device, uint64_t bytes, tm_buffer **out_buffer, tm_error *error) {
  const uint64_t alignment = tm_max_u64(device->memories[0].alignment, HOST_BUFFER_ALIGNMENT);
  void *memory = tm_memory_alloc(device->backend->inventory->memory, bytes, alignment);
  if (memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)bytes);
  *out_buffer = memory;
  return TM_OK;
}

tm_status tm_device_buffer_create(const tm_device_use *use, uint64_t bytes, tm_buffer **out_buffer, tm_error *error) {
  tm_device_slot *device = use->device;
  TM_TRY(open_once(device, use->cancelled, error));
  const uint64_t largest = device->memories[0].largest_buffer_bytes;
  if (largest != 0 && bytes > largest)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: a buffer of %llu bytes is larger than its largest, %llu", device->name,
                   (unsigned long long)bytes, (unsigned long long)largest);
  if (tm_device_has_host_buffers(device)) return create_in_host_memory(device, bytes, out_buffer, error);
  tm_device_call call = { .device = device, .kind = TM_CALL_BUFFER_CREATE, .error = error, .trial = use->trial, .bytes = bytes,
                          .cancelled = use->cancelled };
  TM_TRY(tm_device_call_make(&call));
  *out_buffer = call.buffer;
  return TM_OK;
}

void tm_device_buffer_destroy(tm_device_slot *device, tm_buffer *buffer, uint64_t bytes, const _Atomic uint32_t *cancelled) {
  if (buffer != NULL) tm_device_discard(device, &(tm_parked){ .buffer = buffer, .bytes = bytes, .cancelled = cancelled });
}

void tm_device_memory_free(tm_device_slot *device, void *memory, uint64_t bytes) {
  if (memory != NULL) tm_device_discard(device, &(tm_parked){ .memory = memory, .bytes = bytes });
}

/* ---- what was left behind ---- */

/* Whether work still runs on a queue to which no call is under way; if it never ends, the device goes. */
static bool still_works(tm_device_slot *device, uint32_t queue) {
  if ((device->info.flags & TM_DEVICE_SYNCHRONOUS) != 0) return false;
  tm_device_call call = { .device = device, .kind = TM_CALL_CANCEL, .queue = queue, .cancelled = &tm_at_once };
  if (tm_device_call_make(&call) != TM_BUSY && !call.is_left && !call.is_unmade) return false;
  if (tm_now_ns() < atomic_load(&device->unfinished_until_ns)) return true;
  (void)tm_device_give_up(device, "work that was cancelled never ended", NULL);
  return false;
}

/* Only when nothing runs on it any more does it cease to count as unfinished. */
static void settle_queue(tm_device_slot *device, uint32_t queue) {
  if (!tm_device_queue_take_unfinished(device, queue)) return;
  const bool is_left = !atomic_load(&device->is_stuck) && tm_device_call_settle(device, queue) == TM_WORKER_LEFT;
  if (is_left || (!atomic_load(&device->is_stuck) && still_works(device, queue)))
    tm_device_queue_put_back(device, queue);
  else
    tm_device_queue_finish(device, queue);
}

void tm_device_settle(tm_device_slot *device) {
  if (atomic_load(&device->unfinished_count) != 0) tm_device_calls_settle(device);
  for (uint32_t i = 0; i < device->info.queue_count && atomic_load(&device->unfinished_count) != 0; i++) settle_queue(device, i);
  tm_device_free_parked(device);
}

/* False: something is under way still.  It was not late, so nobody hears of it; but nothing that it may touch ever goes. */
static bool part_from_left(tm_device_slot *device, uint64_t until_ns) {
  for (tm_device_settle(device); atomic_load(&device->unfinished_count) != 0; tm_device_settle(device)) {
    if (atomic_load(&device->is_stuck)) return true;
    if (tm_now_ns() >= until_ns) break;
    tm_sleep_ns(LONGEST_PAUSE_NS);
  }
  if (atomic_load(&device->unfinished_count) == 0) return true;
  snprintf(device->stuck_reason, sizeof device->stuck_reason, "it was at work when its context ended");
  atomic_store(&device->is_stuck, true);
  atomic_store(&device->backend->is_stuck, true);
  tm_device_calls_forget(device);
  return false;
}

void tm_device_close(tm_device_slot *device, uint64_t until_ns) {
  if (!part_from_left(device, until_ns)) return;
  tm_device_call call = { .device = device, .kind = TM_CALL_CLOSE };
  if (!is_out_of_reach(device) && !atomic_load(&device->backend->is_stuck)) (void)tm_device_call_make(&call);
  if (atomic_load(&device->is_stuck)) return;
  atomic_store(&device->is_open, false);
  tm_worker_stop(device->thread);
  device->thread = NULL;
}

/* ---- work ---- */

tm_device_use tm_device_use_begin(tm_device_slot *device, const _Atomic uint32_t *cancelled) {
  if (atomic_load_explicit(&device->unfinished_count, memory_order_relaxed) != 0) tm_device_settle(device);
  tm_device_use use = { .device = device, .cancelled = cancelled, .queue = TM_NO_QUEUE };
  (void)tm_device_queue_acquire(device, cancelled, &use.queue);
  return use;
}

void tm_device_use_end(const tm_device_use *use) {
  if (!use->queue_is_left && use->queue != TM_NO_QUEUE) tm_device_queue_release(use->device, use->queue);
}

static tm_status abandon(tm_device_use *use, const char *what, tm_error *error) {
  char text[TM_STUCK_REASON_BYTES];
  use->is_abandoned = true;
  snprintf(text, sizeof text, "%s, so its work may still be running", what);
  return tm_device_give_up(use->device, text, error);
}

/* The queue is settled later, by whoever has a use for it. */
static void leave_queue(tm_device_use *use, uint64_t until_ns) {
  tm_device_slot *device = use->device;
  uint64_t known = atomic_load(&device->unfinished_until_ns);
  while (known < until_ns && !atomic_compare_exchange_weak(&device->unfinished_until_ns, &known, until_ns)) {
  }
  use->queue_is_left = true;
  tm_device_queue_leave(device, use->queue);
}

/* A failed or cancelled queue is made usable again.  False: work still runs on it, or the queue is left behind. */
static bool clear_queue(tm_device_use *use, uint64_t patience_ns, const _Atomic uint32_t *cancelled) {
  tm_device_call call = { .device = use->device, .kind = TM_CALL_CANCEL, .queue = use->queue, .cancelled = cancelled };
  const uint64_t give_up = tm_now_ns() + patience_ns;
  for (uint64_t pause_ns = BUSY_PAUSE_NS; tm_device_call_make(&call) == TM_BUSY; pause_ns = tm_min_u64(2 * pause_ns, LONGEST_PAUSE_NS)) {
    if (tm_now_ns() >= give_up) return false;
    tm_sleep_ns(pause_ns);
  }
  if (call.is_left || call.is_unmade) leave_queue(use, tm_now_ns() + 2 * tm_watch_limit_ns(&use->device->backend->inventory->watch, 0));
  return !call.is_hung && !use->queue_is_left;
}

/* Its memory is not the caller's, who may go while the work goes on. */
static tm_status leave(tm_device_use *use, uint64_t until_ns, tm_error *error) {
  if (!clear_queue(use, HURRY_NS, use->cancelled) && !use->queue_is_left && !atomic_load(&use->device->is_stuck))
    leave_queue(use, until_ns);
  return tm_fail(error, TM_ERROR_CANCELLED, "cancelled while it ran on %s", use->device->name);
}

static uint64_t limit_of(const tm_device_use *use, const tm_device_call *call) {
  return tm_watch_limit_ns(&use->device->backend->inventory->watch, call->expected_ns);
}

/* What the call started gets its time once the call is back. */
static tm_status leave_call(tm_device_use *use, const tm_device_call *call) {
  leave_queue(use, tm_now_ns() + 2 * limit_of(use, call));
  return call->status;
}

/* PENDING is an answer only once its time has passed; clocks may differ a little. */
static bool came_too_early(uint64_t begin_ns) { return tm_now_ns() - begin_ns < TM_WAIT_SLICE_NS / 2; }

/* Until the work with this ticket has ended, however; TM_PENDING when the caller wants to go. */
static tm_status await(tm_device_use *use, tm_device_call *call, bool may_leave, uint64_t deadline_ns) {
  call->kind = TM_CALL_WAIT;
  call->timeout_ns = TM_WAIT_SLICE_NS;
  for (;;) {
    const uint64_t begin = tm_now_ns();
    const tm_status outcome = tm_device_call_make(call);
    if (call->is_hung) use->is_abandoned = true;
    if (call->is_left) return leave_call(use, call);
    if (outcome <= TM_OK) return outcome;
    if (outcome != TM_PENDING || came_too_early(begin)) return abandon(use, "a wait ended before its time without the work's end", call->error);
    if (may_leave && is_cancelled(use->cancelled)) return TM_PENDING;
    if (tm_now_ns() >= deadline_ns) return abandon(use, "it did not finish in the time that it gets", call->error);
  }
}

/* The queue is made usable again once it is known what failed on it. */
static tm_status clear_failed(tm_device_use *use, const tm_device_call *call, tm_status outcome) {
  if (clear_queue(use, limit_of(use, call), call->cancelled)) return outcome;
  if (use->queue_is_left) return tm_fail(call->error, TM_ERROR_CANCELLED, "cancelled while it failed on %s", use->device->name);
  return abandon(use, "its queue cannot be cancelled", call->error);
}

/* Collects the outcome of what was enqueued; a failed queue is made usable again, since its error is now known. */
static tm_status collect(tm_device_use *use, tm_device_call *call) {
  if (call->ticket.value == 0 && call->transfer != NULL) return TM_OK;    /* copied inside the call */
  if (call->ticket.value == 0) return abandon(use, "it gave no ticket", call->error);
  const bool may_leave = use->has_own_operands || (call->launch != NULL && !use->device->is_host_memory);
  const uint64_t deadline = tm_now_ns() + limit_of(use, call);
  if (may_leave) call->cancelled = use->cancelled;
  const tm_status outcome = await(use, call, may_leave, deadline);
  if (outcome == TM_OK || use->is_abandoned || use->queue_is_left) return outcome;
  if (outcome == TM_PENDING) return leave(use, deadline, call->error);
  return clear_failed(use, call, outcome);
}

static tm_status cancelled_while_full(const tm_device_use *use, tm_error *error) {
  return tm_fail(error, TM_ERROR_CANCELLED, "cancelled while a queue of %s was full", use->device->name);
}

/* Some devices get on only while somebody waits for them.  What failed before is told of when it is collected. */
static tm_status await_room(tm_device_use *use, uint64_t pause_ns, tm_error *error) {
  if (use->pending.value == 0) {
    tm_sleep_ns(pause_ns);
    return TM_OK;
  }
  const uint64_t begin = tm_now_ns();
  tm_device_call call = { .device = use->device, .queue = use->queue, .kind = TM_CALL_WAIT, .ticket = use->pending, .trial = use->trial,
                          .timeout_ns = pause_ns, .cancelled = use->has_own_operands ? use->cancelled : NULL };
  const tm_status outcome = tm_device_call_make(&call);
  if (call.is_hung) {
    use->is_abandoned = true;
    return tm_fail(error, TM_ERROR_DEVICE_LOST, "it was given up meanwhile");
  }
  if (call.is_left) (void)leave_call(use, &call);
  if (call.is_left || call.is_unmade) return cancelled_while_full(use, error);
  if (outcome == TM_OK) {
    use->pending = (tm_ticket){ 0, 0, 0 };
    use->pending_ns = 0;
  }
  if (outcome != TM_OK && tm_now_ns() - begin < pause_ns) tm_sleep_ns(pause_ns);
  return TM_OK;
}

/* Nothing of this call was enqueued, but what was before may never end. */
static tm_status give_up_full(tm_device_use *use, uint64_t limit_ns, tm_error *error) {
  char text[TM_STUCK_REASON_BYTES];
  use->is_abandoned |= use->pending.value != 0;
  snprintf(text, sizeof text, "a queue was full for %llu ms", (unsigned long long)(limit_ns / NS_PER_MS));
  return tm_device_give_up(use->device, text, error);
}

/* Calls until the answer is not BUSY, or the caller wants to go.  All that is on the queue gets its time to make room. */
static tm_status make_patiently(tm_device_use *use, tm_device_call *call) {
  const uint64_t expected_ns = use->pending_ns > UINT64_MAX - call->expected_ns ? UINT64_MAX : use->pending_ns + call->expected_ns;
  const uint64_t limit = tm_watch_limit_ns(&use->device->backend->inventory->watch, expected_ns);
  uint64_t give_up = 0, pause_ns = BUSY_PAUSE_NS;
  while (tm_device_call_make(call) == TM_BUSY) {
    const uint64_t now = tm_now_ns();
    if (give_up == 0) give_up = now + limit;
    if (is_cancelled(use->cancelled)) return cancelled_while_full(use, call->error);
    if (atomic_load(&use->device->is_stuck)) return tm_fail(call->error, TM_ERROR_DEVICE_LOST, "it was given up meanwhile");
    if (now >= give_up) return give_up_full(use, limit, call->error);
    TM_TRY(await_room(use, pause_ns, call->error));
    pause_ns = tm_min_u64(2 * pause_ns, LONGEST_PAUSE_NS);
  }
  return call->status;
}

/* Enqueues, trying again for a while when the queue is full. */
static tm_status enqueue(tm_device_use *use, tm_device_call *call) {
  tm_device_slot *device = use->device;
  if (atomic_load_explicit(&device->is_stuck, memory_order_relaxed))
    return tm_fail(call->error, TM_ERROR_DEVICE_LOST, "it was given up meanwhile");
  if (use->queue == TM_NO_QUEUE) return tm_fail(call->error, TM_ERROR_CANCELLED, "cancelled while it waited for %s", device->name);
  call->device = device;
  call->queue = call->ticket.queue = use->queue;
  call->trial = use->trial;
  /* What works in the caller's memory must end before the caller may go. */
  if (use->has_own_operands) call->cancelled = use->cancelled;
  const tm_status status = make_patiently(use, call);
  if (call->is_hung) use->is_abandoned = true;
  return call->is_left ? leave_call(use, call) : status;
}

static tm_status enqueue_and_wait(tm_device_use *use, tm_device_call *call) {
  TM_TRY(enqueue(use, call));
  return (use->device->info.flags & TM_DEVICE_SYNCHRONOUS) != 0 ? TM_OK : collect(use, call);
}

/* Any link is faster than this, and the limit is many times as long. */
static uint64_t transfer_ns(uint64_t bytes) { return bytes; }

tm_status tm_device_upload(tm_device_use *use, tm_buffer *destination, uint64_t offset, const void *host, uint64_t bytes, tm_error *error) {
  const tm_transfer what = { .struct_size = sizeof what, .queue = use->queue, .destination = destination,
                             .destination_offset = offset, .host = (void *)(uintptr_t)host, .bytes = bytes };
  tm_device_call call = { .kind = TM_CALL_UPLOAD, .error = error, .transfer = &what, .expected_ns = transfer_ns(bytes) };
  return enqueue_and_wait(use, &call);
}

tm_status tm_device_download(tm_device_use *use, tm_buffer *source, uint64_t offset, void *host, uint64_t bytes, tm_error *error) {
  const tm_transfer what = { .struct_size = sizeof what, .queue = use->queue, .source = source, .source_offset = offset,
                             .host = host, .bytes = bytes };
  tm_device_call call = { .kind = TM_CALL_DOWNLOAD, .error = error, .transfer = &what, .expected_ns = transfer_ns(bytes) };
  return enqueue_and_wait(use, &call);
}

tm_status tm_device_run(tm_device_use *use, tm_kernel *kernel, const tm_binding *bindings, uint32_t binding_count, tm_error *error) {
  const tm_launch launch = { .struct_size = sizeof launch, .queue = use->queue, .kernel = kernel, .bindings = bindings,
                             .binding_count = binding_count };
  tm_device_call call = { .kind = TM_CALL_LAUNCH, .error = error, .launch = &launch, .expected_ns = use->expected_ns };
  atomic_fetch_add_explicit(&use->device->launch_count, 1, memory_order_relaxed);
  return enqueue_and_wait(use, &call);
}

/* ---- work that is waited for later ---- */

static tm_status take_ticket(tm_device_use *use, tm_device_call *call, tm_ticket *out_ticket) {
  TM_TRY(enqueue(use, call));
  const bool is_sync = (use->device->info.flags & TM_DEVICE_SYNCHRONOUS) != 0;
  if (!is_sync && call->ticket.value == 0 && call->launch != NULL) return abandon(use, "it gave no ticket", call->error);
  *out_ticket = (tm_ticket){ .queue = use->queue, .value = is_sync ? 0 : call->ticket.value };
  if (out_ticket->value == 0) return TM_OK;
  use->pending = *out_ticket;
  use->pending_ns = call->expected_ns > UINT64_MAX - use->pending_ns ? UINT64_MAX : use->pending_ns + call->expected_ns;
  return TM_OK;
}

tm_status tm_device_enqueue(tm_device_use *use, const tm_launch *launch, tm_ticket *out_ticket, tm_error *error) {
  tm_device_call call = { .kind = TM_CALL_LAUNCH, .error = error, .launch = launch, .expected_ns = use->expected_ns };
  return take_ticket(use, &call, out_ticket);
}

tm_status tm_device_enqueue_upload(tm_device_use *use, const tm_transfer *transfer, tm_ticket *out_ticket, tm_error *error) {
  tm_device_call call = { .kind = TM_CALL_UPLOAD, .error = error, .transfer = transfer, .expected_ns = transfer_ns(transfer->bytes) };
  return take_ticket(use, &call, out_ticket);
}

tm_status tm_device_enqueue_download(tm_device_use *use, const tm_transfer *transfer, tm_ticket *out_ticket, tm_error *error) {
  tm_device_call call = { .kind = TM_CALL_DOWNLOAD, .error = error, .transfer = transfer, .expected_ns = transfer_ns(transfer->bytes) };
  return take_ticket(use, &call, out_ticket);
}

/* The first piece of work that failed, as long as the queue remembers.  Nobody who wants to go asks for it. */
static tm_status find_failed(tm_device_use *use, uint64_t first_value, uint64_t last_value, const _Atomic uint32_t *cancelled,
                             uint64_t *out_failed_value, tm_error *error) {
  for (uint64_t value = first_value; value <= last_value && !is_cancelled(cancelled); value++) {
    tm_device_call call = { .device = use->device, .queue = use->queue, .kind = TM_CALL_WAIT, .error = error, .trial = use->trial,
                            .ticket = { .queue = use->queue, .value = value }, .timeout_ns = TM_WAIT_POLL, .cancelled = cancelled };
    const tm_status status = tm_device_call_make(&call);
    if (call.is_hung) use->is_abandoned = true;
    if (call.is_left) return leave_call(use, &call);
    if (call.is_unmade) return TM_OK;
    if (status == TM_OK) continue;
    *out_failed_value = value;
    return status;
  }
  return TM_OK;
}

tm_status tm_device_finish(tm_device_use *use, const tm_ticket *ticket, uint64_t first_value, uint64_t expected_ns,
                           uint64_t *out_failed_value, tm_error *error) {
  *out_failed_value = 0;
  if (ticket->value == 0) return TM_OK;
  tm_device_call call = { .device = use->device, .queue = use->queue, .error = error, .ticket = *ticket, .expected_ns = expected_ns };
  call.trial = use->trial;
  if (use->has_own_operands) call.cancelled = use->cancelled;
  const uint64_t deadline = tm_now_ns() + limit_of(use, &call);
  tm_status outcome = await(use, &call, use->has_own_operands, deadline);
  const bool is_all = ticket->value >= use->pending.value || outcome != TM_OK;
  if (is_all) use->pending = (tm_ticket){ 0, 0, 0 };
  if (is_all) use->pending_ns = 0;
  if (outcome == TM_OK || use->is_abandoned || use->queue_is_left) return outcome;
  if (outcome == TM_PENDING || call.is_unmade) return leave(use, deadline, error);
  const tm_status cause = find_failed(use, tm_max_u64(first_value, 1), ticket->value, call.cancelled, out_failed_value, error);
  if (cause < 0) outcome = cause;
  return use->is_abandoned || use->queue_is_left ? outcome : clear_failed(use, &call, outcome);
}
