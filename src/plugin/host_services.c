/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/call_trace.h"
#include "plugin/host_services.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#define LONGEST_MESSAGE 900
#define LONGEST_SOUND_MESSAGE 65536u    /* what claims to be longer is no text, and is not read */

/* Where the call that runs on this thread reports its failure.  A backend reports through tm_host.fail, which cannot carry
   the caller's tm_error, so the thread carries it for as long as the call lasts. */
static _Thread_local tm_error *current_error;

void tm_call_enter(tm_call_frame *frame, tm_error *error) {
  frame->outer = current_error;
  current_error = error;
  tm_float_mode_save(&frame->mode);
}

void tm_call_leave(const tm_call_frame *frame) {
  tm_float_mode_restore(&frame->mode);
  current_error = frame->outer;
}

/* A backend's words may be any bytes; they end up in terminals and JSON. */
static const char *readable(tm_string message, char text[LONGEST_MESSAGE]) {
  const bool is_sound = message.data != NULL && message.length <= LONGEST_SOUND_MESSAGE;
  (void)tm_text_escape(is_sound ? message.data : "", is_sound ? message.length : 0, text, LONGEST_MESSAGE);
  return text;
}

/* A call that comes back after its context is gone may ask for nothing any more. */
static bool is_gone(const tm_backend_slot *slot) { return atomic_load_explicit(&slot->inventory->is_gone, memory_order_relaxed); }

static void host_log(void *context, uint32_t level, tm_string message) {
  const tm_backend_slot *slot = context;
  if (is_gone(slot)) return;
  char text[LONGEST_MESSAGE];
  tm_log_write(&slot->inventory->log, level, "%s: %s", slot->name, readable(message, text));
}

static tm_status host_fail(void *context, tm_status status, int64_t native_code, tm_string message) {
  (void)context;
  char text[LONGEST_MESSAGE];
  return tm_fail_native(current_error, status, native_code, "%s", readable(message, text));
}

/* Giving back what is kept releases kernels; a backend that allocates under a lock of its own would wait for itself. */
static void *host_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  const tm_backend_slot *slot = context;
  return is_gone(slot) ? NULL : tm_memory_try_alloc(slot->inventory->memory, bytes, alignment);
}

static void host_free(void *context, void *memory, uint64_t bytes) {
  const tm_backend_slot *slot = context;
  if (!is_gone(slot)) tm_memory_free(slot->inventory->memory, memory, bytes);
}

/* The pool's threads belong to everybody: a part of a backend's work must not leave its floating-point mode there. */
typedef struct guarded_range {
  tm_range_fn function;
  void       *argument;
} guarded_range;

static void run_guarded(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const guarded_range *range = argument;
  tm_float_mode mode;
  tm_float_mode_save(&mode);
  range->function(range->argument, begin, end, lane);
  tm_float_mode_restore(&mode);
}

static void host_parallel_for(void *context, uint64_t count, uint64_t grain, tm_range_fn function, void *argument) {
  const tm_backend_slot *slot = context;
  guarded_range range = { function, argument };
  if (is_gone(slot))
    run_guarded(&range, 0, count, 0);
  else
    tm_pool_run(atomic_load(&slot->inventory->pool), count, grain, run_guarded, &range);
}

static uint64_t host_now_ns(void *context) {
  (void)context;
  return tm_now_ns();
}

static int same_text(tm_string string, const char *text) {
  return string.length == strlen(text) && memcmp(string.data, text, string.length) == 0;
}

static tm_status host_config_get(void *context, tm_string key, tm_string *out_value) {
  const tm_backend_slot *slot = context;
  for (uint32_t i = 0; i < slot->option_count; i++) {
    if (!same_text(key, slot->options[i].name)) continue;
    *out_value = (tm_string){ slot->options[i].value, strlen(slot->options[i].value) };
    return TM_OK;
  }
  return TM_ERROR_NOT_FOUND;
}

static void *host_config_pointer(void *context, tm_string key) {
  const tm_backend_slot *slot = context;
  for (uint32_t i = 0; i < slot->pointer_count; i++)
    if (same_text(key, slot->pointers[i].name)) return slot->pointers[i].pointer;
  return NULL;
}

static tm_status host_cache_get(void *context, tm_string key, void *out_data, uint64_t *inout_bytes) {
  tm_backend_slot *slot = context;
  if (is_gone(slot)) return TM_ERROR_NOT_FOUND;
  return tm_kernel_cache_get(&slot->inventory->kernel_cache, slot->build_id, key, out_data, inout_bytes);
}

static tm_status host_cache_put(void *context, tm_string key, const void *data, uint64_t bytes) {
  tm_backend_slot *slot = context;
  if (is_gone(slot)) return TM_ERROR_LIMIT;
  return tm_kernel_cache_put(&slot->inventory->kernel_cache, slot->build_id, key, data, bytes);
}

/* May come from any thread at any time, also while the lists are made: then they must not be read, and what is missed shows
   at the first use of the device. */
static void host_device_event(void *context, uint32_t index, uint32_t event, uint64_t epoch) {
  const tm_backend_slot *slot = context;
  if (is_gone(slot) || !atomic_load(&slot->inventory->is_whole) || index >= slot->device_count) return;
  tm_device_slot *device = slot->inventory->devices[slot->first_device + index];
  uint64_t known = atomic_load(&device->epoch);
  while (known < epoch && !atomic_compare_exchange_weak(&device->epoch, &known, epoch)) {
  }
  if (event == TM_EVENT_DEVICE_LOST) tm_inventory_retire(device, TM_DEVICE_LOST);
  /* An event without news must not make everybody ask again. */
  if (known < epoch) atomic_fetch_add(&slot->inventory->generation, 1);
}

static uint64_t host_trace_begin(void *context, tm_string name) {
  const tm_backend_slot *slot = context;
  char text[LONGEST_MESSAGE];
  return is_gone(slot) || slot->untraced == NULL ? 0 : tm_call_trace_begin_span(slot, readable(name, text));
}

static void host_trace_end(void *context, uint64_t span) {
  const tm_backend_slot *slot = context;
  if (!is_gone(slot)) tm_call_trace_end_span(slot, span);
}

void tm_host_services_init(tm_backend_slot *slot) {
  slot->host = (tm_host){
    .struct_size = sizeof slot->host,
    .lane_count = tm_pool_lane_count(atomic_load(&slot->inventory->pool)),
    .context = slot,
    .log = host_log,
    .fail = host_fail,
    .alloc = host_alloc,
    .free = host_free,
    .parallel_for = host_parallel_for,
    .now_ns = host_now_ns,
    .config_get = host_config_get,
    .config_pointer = host_config_pointer,
    .cache_get = host_cache_get,
    .cache_put = host_cache_put,
    .device_event = host_device_event,
    .trace_begin = host_trace_begin,
    .trace_end = host_trace_end,
  };
}
