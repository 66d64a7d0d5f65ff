/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device_call.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "plugin/crash_marks.h"
#include "plugin/device_parked.h"
#include "plugin/grease.h"
#include "plugin/host_services.h"

#define LARGEST_ATTRIBUTES 256u
#define NS_PER_MS UINT64_C(1000000)
/* Such a call is worth another thread, so that its caller may go. */
#define LONG_CALL_NS UINT64_C(20000000)

/* ---- the kinds of call ---- */

static const tm_accelerator_backend_plugin *table_of(const tm_device_call *call) { return &call->device->backend->table; }

static void do_open(tm_device_call *call) {
  call->status = table_of(call)->open(call->device->backend->handle, call->device->index_in_backend, &call->handle);
}

static void do_close(tm_device_call *call) { table_of(call)->close(call->handle); }

static void do_query(tm_device_call *call) {
  tm_grease grease;
  const tm_operation *operation = tm_grease_operation(&grease, call->operation);
  call->status = table_of(call)->query(call->device->backend->handle, call->device->index_in_backend, &operation, 1, &call->out_answer);
}

static void do_prepare(tm_device_call *call) {
  tm_grease grease;
  call->status = table_of(call)->prepare(call->handle, tm_grease_operation(&grease, call->operation), call->answer, &call->kernel);
}

static void do_release(tm_device_call *call) { table_of(call)->release(call->handle, call->kernel); }

static void do_buffer_create(tm_device_call *call) {
  call->status = table_of(call)->buffer_create(call->handle, 0, call->bytes, &call->buffer);
}

static void do_buffer_destroy(tm_device_call *call) {
  table_of(call)->buffer_destroy(call->handle, 0, call->buffer, call->bytes, 0);
}

static void do_upload(tm_device_call *call) {
  tm_grease grease;
  call->status = table_of(call)->upload(call->handle, tm_grease_transfer(&grease, call->transfer), &call->ticket);
}

static void do_download(tm_device_call *call) {
  tm_grease grease;
  call->status = table_of(call)->download(call->handle, tm_grease_transfer(&grease, call->transfer), &call->ticket);
}

static void do_launch(tm_device_call *call) {
  tm_grease grease;
  call->status = table_of(call)->launch(call->handle, tm_grease_launch(&grease, call->launch), &call->ticket);
}

static void do_wait(tm_device_call *call) {
  call->status = table_of(call)->wait(call->handle, &call->ticket, 1, call->timeout_ns);
}

static void do_cancel(tm_device_call *call) { call->status = table_of(call)->cancel(call->handle, call->queue); }

/* `alone`: made without any work at hand, so it is watched until the device has come back from it often enough. */
typedef struct call_row {
  const char *name;
  void      (*make)(tm_device_call *call);
  bool        alone;
  bool        is_host;          /* one at a time for the whole backend */
  bool        has_queue;        /* whoever makes it has that */
} call_row;

static const call_row rows[TM_CALL_KINDS] = {
  [TM_CALL_OPEN] = { "open", do_open, true, true, false },
  [TM_CALL_CLOSE] = { "close", do_close, true, true, false },
  [TM_CALL_QUERY] = { "query", do_query, true, false, false },
  [TM_CALL_PREPARE] = { "prepare", do_prepare, false, false, false },
  [TM_CALL_RELEASE] = { "release", do_release, true, false, false },
  [TM_CALL_BUFFER_CREATE] = { "buffer_create", do_buffer_create, true, false, false },
  [TM_CALL_BUFFER_DESTROY] = { "buffer_destroy", do_buffer_destroy, true, false, false },
  [TM_CALL_UPLOAD] = { "upload", do_upload, false, false, true },
  [TM_CALL_DOWNLOAD] = { "download", do_download, false, false, true },
  [TM_CALL_LAUNCH] = { "launch", do_launch, false, false, true },
  [TM_CALL_WAIT] = { "wait", do_wait, false, false, true },
  [TM_CALL_CANCEL] = { "cancel", do_cancel, true, false, true },
};

/* What surrounds every call, on whichever thread it runs. */
static void framed(tm_device_call *call) {
  tm_call_frame frame;
  tm_call_enter(&frame, call->error);
  rows[call->kind].make(call);
  tm_call_leave(&frame);
}

/* ---- giving up ---- */

/* It hangs in the pool, and keeps all its threads; the others get new ones.  The old pool stays with what hangs. */
static void replace_pool(tm_inventory *inventory, tm_worker *worker) {
  tm_pool *old = atomic_load(&inventory->pool), *fresh = NULL;
  if (!tm_worker_holds_pool(worker, old) || tm_pool_create(inventory->memory, tm_pool_lane_count(old), &fresh, NULL) != TM_OK) return;
  if (!atomic_compare_exchange_strong(&inventory->pool, &old, fresh)) tm_pool_destroy(fresh);
}

tm_status tm_backend_give_up(tm_backend_slot *backend, const char *what, tm_error *error) {
  if (!atomic_exchange(&backend->is_stuck, true)) {
    snprintf(backend->stuck_reason, sizeof backend->stuck_reason, "%s", what);
    atomic_store(&backend->state, TM_BACKEND_QUARANTINED);
    atomic_fetch_add(&backend->inventory->generation, 1);
    if (!atomic_load(&backend->inventory->is_gone))
      tm_log_write(&backend->inventory->log, TM_LOG_WARNING, "%s: %s; it is quarantined and not used any more", backend->name, what);
  }
  return tm_fail(error, TM_ERROR_INTERNAL, "%s", what);
}

tm_status tm_device_give_up(tm_device_slot *device, const char *what, tm_error *error) {
  tm_mutex_lock(&device->lock);
  if (!atomic_load(&device->is_stuck)) {
    snprintf(device->stuck_reason, sizeof device->stuck_reason, "%s", what);
    atomic_store(&device->is_stuck, true);
    atomic_store(&device->backend->is_stuck, true);
  }
  tm_mutex_unlock(&device->lock);
  tm_inventory_retire(device, TM_DEVICE_QUARANTINED);
  return tm_fail(error, TM_ERROR_INTERNAL, "%s", what);
}

/* ---- watched calls ---- */

/* NULL: calls come from any thread.  Questions name a device by its index, and do so always. */
static tm_worker *own_thread(const tm_device_call *call) { return call->kind == TM_CALL_QUERY ? NULL : call->device->thread; }

/* The call with copies of all that it points to. */
typedef struct tm_watched_call {
  struct tm_watched_call *next;         /* in a list of those that were left */
  tm_left_call   left;
  tm_device_call call;
  tm_error       error;
  tm_operation   operation;
  tm_answer      answer;
  tm_transfer    transfer;
  tm_launch      launch;
  tm_operand     operands[TM_MAX_OPERANDS];
  tm_binding     bindings[TM_MAX_OPERANDS + 1];
  uint64_t       attributes[LARGEST_ATTRIBUTES / 8];
} watched_call;

static void copy_operation(watched_call *watched, const tm_operation *operation) {
  const uint32_t count = operation->input_count + operation->output_count;
  watched->operation = *operation;
  memcpy(watched->operands, operation->operands, count * sizeof *watched->operands);
  watched->operation.operands = watched->operands;
  if (operation->attributes != NULL) {
    memcpy(watched->attributes, operation->attributes, operation->attribute_bytes);
    watched->operation.attributes = watched->attributes;
  }
  watched->call.operation = &watched->operation;
}

static void copy_launch(watched_call *watched, const tm_launch *launch) {
  watched->launch = *launch;
  memcpy(watched->bindings, launch->bindings, launch->binding_count * sizeof *watched->bindings);
  watched->launch.bindings = watched->bindings;
  watched->call.launch = &watched->launch;
}

static watched_call *copy_call(const tm_device_call *call) {
  watched_call *watched = tm_memory_try_alloc(call->device->backend->inventory->memory, sizeof *watched, 0);
  if (watched == NULL) return NULL;
  watched->call = *call;
  watched->error = (tm_error)TM_ERROR_INIT;
  watched->call.error = &watched->error;
  if (call->operation != NULL) copy_operation(watched, call->operation);
  if (call->launch != NULL) copy_launch(watched, call->launch);
  if (call->transfer != NULL) {
    watched->transfer = *call->transfer;
    watched->call.transfer = &watched->transfer;
  }
  if (call->answer != NULL) {
    watched->answer = *call->answer;
    watched->call.answer = &watched->answer;
  }
  if (call->out_answer != NULL) {
    watched->answer = *call->out_answer;
    watched->call.out_answer = &watched->answer;
  }
  return watched;
}

static void take_result(tm_device_call *call, const watched_call *watched) {
  call->status = watched->call.status;
  call->handle = watched->call.handle;
  call->kernel = watched->call.kernel;
  call->buffer = watched->call.buffer;
  call->ticket = watched->call.ticket;
  if (call->out_answer != NULL) *call->out_answer = watched->answer;
  if (watched->error.text[0] != '\0')
    (void)tm_fail_native(call->error, watched->error.code, watched->error.native_code, "%s", watched->error.text);
}

static void run_watched(void *argument) {
  watched_call *watched = argument;
  framed(&watched->call);
}

/* A wait is meant to take a while. */
static uint64_t limit_of(const tm_device_call *call) {
  const uint64_t limit = tm_watch_limit_ns(&call->device->backend->inventory->watch, call->expected_ns);
  return call->kind == TM_CALL_WAIT ? limit + call->timeout_ns : limit;
}

static void give_up_call(tm_device_call *call, tm_worker *worker, char what[TM_STUCK_REASON_BYTES]) {
  snprintf(what, TM_STUCK_REASON_BYTES, "%s did not return within %llu ms", rows[call->kind].name,
           (unsigned long long)(limit_of(call) / NS_PER_MS));
  call->is_hung = true;
  call->status = tm_device_give_up(call->device, what, call->error);
  replace_pool(call->device->backend->inventory, worker);
}

static void tell_stuck(const tm_device_call *call, uint32_t op, const char *what) {
  const tm_inventory *inventory = call->device->backend->inventory;
  if (inventory->stuck != NULL) inventory->stuck(inventory->stuck_context, call->device, op, what);
}

static void say_hung(tm_device_call *call, tm_worker *worker) {
  char what[TM_STUCK_REASON_BYTES];
  give_up_call(call, worker, what);
  if (rows[call->kind].alone) tell_stuck(call, call->kind == TM_CALL_QUERY ? call->operation->op : TM_OP_NONE, what);
  if (rows[call->kind].is_host) (void)tm_backend_give_up(call->device->backend, what, NULL);
}

static void link_left(tm_device_slot *device, watched_call *watched) {
  tm_mutex_lock(&device->lock);
  watched->next = device->left_calls;
  device->left_calls = watched;
  tm_mutex_unlock(&device->lock);
}

static void leave(tm_device_call *call, watched_call *watched) {
  tm_device_slot *device = call->device;
  call->is_left = true;
  call->status = tm_fail(call->error, TM_ERROR_CANCELLED, "cancelled during %s on %s", rows[call->kind].name, device->name);
  if (rows[call->kind].is_host) atomic_fetch_add(&device->backend->left_count, 1);
  if (!rows[call->kind].has_queue) atomic_fetch_add(&device->unfinished_count, 1);
  link_left(device, watched);
}

static void leave_unmade(tm_device_call *call) {
  call->is_unmade = true;
  call->status = tm_fail(call->error, TM_ERROR_CANCELLED, "cancelled before %s on %s", rows[call->kind].name, call->device->name);
}

static void make_watched(tm_device_call *call, watched_call *watched) {
  tm_device_slot *device = call->device;
  tm_watch *watch = &device->backend->inventory->watch;
  const tm_worker_patience patience = { limit_of(call), call->cancelled };
  tm_worker *thread = own_thread(call);
  const tm_worker_outcome outcome = thread != NULL ? tm_worker_call(thread, run_watched, watched, &patience, &watched->left)
                                                   : tm_watch_call(watch, run_watched, watched, &patience, &watched->left);
  if (outcome == TM_WORKER_LOST) say_hung(call, watched->left.worker);
  if (outcome == TM_WORKER_LEFT) leave(call, watched);
  if (outcome == TM_WORKER_UNMADE) leave_unmade(call);
  if (outcome == TM_WORKER_LOST || outcome == TM_WORKER_LEFT) return;
  if (outcome == TM_WORKER_BACK) take_result(call, watched);
  tm_memory_free(device->backend->inventory->memory, watched, sizeof *watched);
}

/* ---- what the next start should know if the process ends meanwhile ---- */

static _Atomic uint8_t *counter_of(const tm_device_call *call) {
  tm_device_slot *device = call->device;
  return call->kind == TM_CALL_QUERY ? &device->clean_queries[call->operation->op % TM_QUERY_KINDS] : &device->clean_calls[call->kind];
}

/* It is watched, or made directly for the first time. */
static bool is_on_trial(const tm_device_call *call) {
  if (!tm_trial_is_over(call->trial)) return true;
  return rows[call->kind].alone && atomic_load_explicit(counter_of(call), memory_order_relaxed) <= TM_TRIAL_RUNS;
}

static tm_work_kind kind_of(const tm_device_call *call) {
  const tm_work_kind none = { .op = TM_OP_NONE };
  return call->operation != NULL ? tm_work_kind_of(call->operation) : call->trial != NULL ? call->trial->kind : none;
}

/* Two threads may make one each: then one of them is not used again, which is no harm. */
static struct tm_lasting_mark *lasting_of(const tm_device_call *call) {
  _Atomic(struct tm_lasting_mark *) *place = call->trial != NULL ? &call->trial->lasting : &call->device->lasting;
  struct tm_lasting_mark *lasting = atomic_load_explicit(place, memory_order_acquire);
  if (lasting != NULL) return lasting;
  const tm_work_kind none = { .op = TM_OP_NONE };
  lasting = tm_crash_marks_last(call->device->backend->inventory->crash_marks, call->device,
                                call->trial != NULL ? &call->trial->kind : &none);
  atomic_store_explicit(place, lasting, memory_order_release);
  return lasting;
}

/* The library's own backends are not suspected for good: a process that somebody ends is mostly at work in one of them. */
static void mark(tm_device_call *call) {
  const tm_backend_slot *backend = call->device->backend;
  struct tm_crash_marks *marks = backend->inventory->crash_marks;
  call->mark = TM_NO_MARK;
  call->lasting = NULL;
  if (marks == NULL || !call->device->is_watched) return;
  if (is_on_trial(call)) {
    const tm_work_kind kind = kind_of(call);
    call->mark = tm_crash_marks_set(marks, call->device, rows[call->kind].name, &kind);
  } else if (backend->path != NULL) {
    call->lasting = lasting_of(call);
    tm_lasting_mark_enter(call->lasting);
  }
}

static void unmark(const tm_device_call *call) {
  tm_crash_marks_clear(call->device->backend->inventory->crash_marks, call->mark);
  if (call->lasting != NULL) tm_lasting_mark_leave(call->lasting);
}

/* ---- calls that were left ---- */

static watched_call *find_left(tm_device_slot *device, uint32_t queue) {
  tm_mutex_lock(&device->lock);
  watched_call *found = device->left_calls;
  while (found != NULL && (!rows[found->call.kind].has_queue || found->call.queue != queue)) found = found->next;
  tm_mutex_unlock(&device->lock);
  return found;
}

static void unlink_left(tm_device_slot *device, const watched_call *one) {
  tm_mutex_lock(&device->lock);
  watched_call **link = &device->left_calls;
  while (*link != one) link = &(*link)->next;
  *link = one->next;
  tm_mutex_unlock(&device->lock);
}

/* No run is there to be told, so it is held against the operation in whatever format. */
static void lose_left(const watched_call *one) {
  char what[TM_STUCK_REASON_BYTES];
  const tm_device_call *made = &one->call;      /* its results are not read: they may come yet */
  tm_device_call call = { .device = made->device, .kind = made->kind, .expected_ns = made->expected_ns, .timeout_ns = made->timeout_ns };
  give_up_call(&call, one->left.worker, what);
  tell_stuck(&call, made->trial != NULL ? made->trial->kind.op : TM_OP_NONE, what);
  if (rows[made->kind].is_host) (void)tm_backend_give_up(made->device->backend, what, NULL);
}

static tm_worker_outcome look_at(const watched_call *one) {
  tm_device_slot *device = one->call.device;
  const bool is_own = one->left.worker == device->thread;
  return is_own ? tm_worker_look(&one->left) : tm_watch_look(&device->backend->inventory->watch, &one->left);
}

tm_worker_outcome tm_device_call_settle(tm_device_slot *device, uint32_t queue) {
  watched_call *one = find_left(device, queue);
  if (one == NULL) return TM_WORKER_BACK;
  const tm_worker_outcome outcome = look_at(one);
  if (outcome == TM_WORKER_LEFT) return outcome;
  unlink_left(device, one);
  unmark(&one->call);
  if (outcome == TM_WORKER_LOST) lose_left(one);
  else tm_memory_free(device->backend->inventory->memory, one, sizeof *one);
  return outcome;
}

/* Nobody waited for what it gave: a device that is open stays so, the rest is given back. */
static void take_back(const tm_device_call *made) {
  tm_device_slot *device = made->device;
  if (made->status == TM_ERROR_DEVICE_LOST) tm_inventory_retire(device, TM_DEVICE_LOST);
  if (made->status != TM_OK) return;
  if (made->kind == TM_CALL_OPEN) {
    atomic_store(&device->handle, made->handle);
    atomic_store_explicit(&device->is_open, true, memory_order_release);
  }
  if (made->kind == TM_CALL_PREPARE) tm_device_discard(device, &(tm_parked){ .kernel = made->kernel, .cancelled = &tm_at_once });
  if (made->kind == TM_CALL_BUFFER_CREATE)
    tm_device_discard(device, &(tm_parked){ .buffer = made->buffer, .bytes = made->bytes, .cancelled = &tm_at_once });
}

/* False: it is not back yet. */
static bool settle_loose(watched_call *one) {
  tm_device_slot *device = one->call.device;
  const call_row *row = &rows[one->call.kind];
  const tm_worker_outcome outcome = look_at(one);
  if (outcome == TM_WORKER_LEFT) return false;
  unmark(&one->call);
  if (outcome == TM_WORKER_LOST) lose_left(one);
  atomic_fetch_sub(&device->unfinished_count, 1);
  if (outcome == TM_WORKER_BACK) take_back(&one->call);
  if (row->is_host) atomic_fetch_sub(&device->backend->left_count, 1);
  if (outcome == TM_WORKER_BACK) tm_memory_free(device->backend->inventory->memory, one, sizeof *one);
  return true;
}

/* They belong to whoever took them, so that two threads do not look at one. */
static watched_call *take_loose(tm_device_slot *device) {
  watched_call *list = NULL;
  tm_mutex_lock(&device->lock);
  for (watched_call **link = &device->left_calls; *link != NULL;) {
    watched_call *one = *link;
    if (rows[one->call.kind].has_queue) {
      link = &one->next;
      continue;
    }
    *link = one->next;
    one->next = list;
    list = one;
  }
  tm_mutex_unlock(&device->lock);
  return list;
}

void tm_device_calls_settle(tm_device_slot *device) {
  for (watched_call *list = take_loose(device); list != NULL;) {
    watched_call *one = list;
    list = one->next;
    if (!settle_loose(one)) link_left(device, one);
  }
}

void tm_device_calls_forget(tm_device_slot *device) {
  tm_mutex_lock(&device->lock);
  for (watched_call *one = device->left_calls; one != NULL; one = one->next) {
    unmark(&one->call);
    tm_worker_forget(&one->left);
  }
  tm_mutex_unlock(&device->lock);
}

/* ---- which way ---- */

/* Nothing that it is given is the caller's, who may have to go long before it is back. */
static bool may_outlast_caller(const tm_device_call *call) {
  const bool is_lone = call->kind == TM_CALL_OPEN || call->kind == TM_CALL_PREPARE;
  return is_lone && call->cancelled != NULL && call->expected_ns >= LONG_CALL_NS;
}

static bool must_watch(const tm_device_call *call) {
  if (own_thread(call) != NULL) return true;
  if (!call->device->is_watched) return false;
  if (tm_trial_is_watched(call->trial) || may_outlast_caller(call)) return true;
  return rows[call->kind].alone && atomic_load_explicit(counter_of(call), memory_order_relaxed) < TM_TRIAL_RUNS;
}

static bool can_copy(const tm_device_call *call) {
  return (call->operation == NULL || call->operation->attribute_bytes <= LARGEST_ATTRIBUTES) &&
         (call->launch == NULL || call->launch->binding_count <= TM_MAX_OPERANDS + 1);
}

/* An error of the host's would be mistaken for the backend's, so a device with a thread of its own is told to wait. */
static void make_now(tm_device_call *call) {
  watched_call *watched = must_watch(call) && can_copy(call) ? copy_call(call) : NULL;
  if (watched != NULL)
    make_watched(call, watched);
  else if (own_thread(call) != NULL)
    call->status = tm_fail(call->error, TM_ERROR_NO_MEMORY, "no memory for a call on another thread");
  else
    framed(call);
  if (call->is_hung || call->is_left || call->is_unmade || !rows[call->kind].alone) return;
  _Atomic uint8_t *counter = counter_of(call);
  const uint8_t clean = atomic_load_explicit(counter, memory_order_relaxed);
  if (clean <= TM_TRIAL_RUNS) atomic_store_explicit(counter, (uint8_t)(clean + 1), memory_order_relaxed);
}

tm_status tm_device_call_make(tm_device_call *call) {
  tm_device_slot *device = call->device;
  call->status = TM_OK;
  call->is_left = call->is_unmade = false;
  if (call->kind != TM_CALL_OPEN) call->handle = atomic_load_explicit(&device->handle, memory_order_acquire);
  mark(call);
  make_now(call);
  if (!call->is_left) unmark(call);
  return call->status;
}
