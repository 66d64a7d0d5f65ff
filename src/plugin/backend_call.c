/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/backend_call.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "plugin/crash_marks.h"
#include "plugin/device_call.h"
#include "plugin/host_services.h"
#include "plugin/reference.h"

#define NS_PER_MS UINT64_C(1000000)

typedef struct backend_call {
  tm_backend_slot *slot;
  const char      *name;
  void           (*make)(struct backend_call *call);
  uint32_t         index;
  tm_status        status;
  tm_backend      *handle;
  tm_device_info   info;
  tm_error         error;
} backend_call;

static void do_init(backend_call *call) { call->status = call->slot->table.init(&call->slot->host, &call->handle); }

static void do_device_info(backend_call *call) {
  call->status = call->slot->table.device_info(call->slot->handle, call->index, &call->info);
}

static void do_shutdown(backend_call *call) { call->slot->table.shutdown(call->slot->handle); }

static void framed(void *argument) {
  backend_call *call = argument;
  tm_call_frame frame;
  tm_call_enter(&frame, &call->error);
  call->make(call);
  tm_call_leave(&frame);
}

bool tm_backend_is_watched(const tm_backend_slot *slot) {
  return !slot->inventory->is_trial && strcmp(slot->name, TM_REFERENCE_NAME) != 0;
}

/* False: the call is still out there. */
static bool make(backend_call *call) {
  const tm_worker_patience patience = { tm_watch_limit_ns(&call->slot->inventory->watch, 0), NULL };
  tm_left_call left;
  if (tm_backend_is_watched(call->slot))
    return tm_watch_call(&call->slot->inventory->watch, framed, call, &patience, &left) == TM_WORKER_BACK;
  framed(call);
  return true;
}

static tm_status say_hung(tm_backend_slot *slot, const char *name, tm_error *error) {
  char what[TM_STUCK_REASON_BYTES];
  const uint64_t limit = tm_watch_limit_ns(&slot->inventory->watch, 0);
  snprintf(what, sizeof what, "%s did not return within %llu ms", name, (unsigned long long)(limit / NS_PER_MS));
  return tm_backend_give_up(slot, what, error);
}

/* *out_call is freed by the caller if the status is not that of a call that never came back (NULL then). */
static tm_status call_out(const backend_call *given, backend_call **out_call, tm_error *error) {
  tm_memory *memory = given->slot->inventory->memory;
  backend_call *call = tm_memory_alloc(memory, sizeof *call, 0);
  *out_call = NULL;
  if (call == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a call");
  *call = *given;
  call->error = (tm_error)TM_ERROR_INIT;
  if (!make(call)) return say_hung(given->slot, given->name, error);
  if (call->error.text[0] != '\0') (void)tm_fail_native(error, call->error.code, call->error.native_code, "%s", call->error.text);
  *out_call = call;
  return call->status;
}

static void free_call(tm_backend_slot *slot, backend_call *call) { tm_memory_free(slot->inventory->memory, call, sizeof *call); }

tm_status tm_backend_init(tm_backend_slot *slot, tm_error *error) {
  const backend_call given = { .slot = slot, .name = "init", .make = do_init };
  backend_call *call;
  const tm_status status = call_out(&given, &call, error);
  if (call != NULL) slot->handle = call->handle;
  free_call(slot, call);
  return status;
}

tm_status tm_backend_device_info(tm_backend_slot *slot, uint32_t index, tm_device_info *out_info, tm_error *error) {
  const backend_call given = { .slot = slot, .name = "device_info", .make = do_device_info, .index = index, .info = *out_info };
  backend_call *call;
  const tm_status status = call_out(&given, &call, error);
  if (call != NULL) *out_info = call->info;
  free_call(slot, call);
  return status;
}

/* One that hangs or crashes in it would do so at the end of every process. */
void tm_backend_shutdown(tm_backend_slot *slot) {
  if (!slot->initialized || atomic_load(&slot->is_stuck) || atomic_load(&slot->is_kept_up)) return;
  tm_inventory *inventory = slot->inventory;
  const tm_work_kind kind = { .op = TM_WORK_SHUTDOWN };
  tm_device_slot *device = slot->device_count != 0 && tm_backend_is_watched(slot) ? inventory->devices[slot->first_device] : NULL;
  const uint32_t mark = device == NULL ? TM_NO_MARK : tm_crash_marks_set(inventory->crash_marks, device, "shutdown", &kind);
  const backend_call given = { .slot = slot, .name = "shutdown", .make = do_shutdown };
  backend_call *call;
  (void)call_out(&given, &call, NULL);
  if (call == NULL && !atomic_load(&slot->is_stuck)) {
    backend_call here = given;
    framed(&here);
  }
  tm_crash_marks_clear(inventory->crash_marks, mark);
  if (atomic_load(&slot->is_stuck) && device != NULL && inventory->stuck != NULL)
    inventory->stuck(inventory->stuck_context, device, TM_WORK_SHUTDOWN, slot->stuck_reason);
  free_call(slot, call);
}
