/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/call_trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "ops/op_table.h"
#include "plugin/table.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define TRACE_VARIABLE "TENSORMORPH_TRACE"
#define TRACE_CALLS "calls"
#define LONGEST_WORDS 400

/* What stands behind a handle: the backend's own, and whose it is. */
typedef struct traced_backend {
  tm_backend_slot *slot;
  tm_backend      *inner;
} traced_backend;

typedef struct traced_device {
  tm_backend_slot *slot;
  tm_device       *inner;
} traced_device;

static traced_backend *backend_of(tm_backend *handle) { return (traced_backend *)(void *)handle; }
static traced_device *device_of(tm_device *handle) { return (traced_device *)(void *)handle; }
static const tm_accelerator_backend_plugin *table_of(const tm_backend_slot *slot) { return slot->untraced; }

/* ---- one line ---- */

/* From before a call to after it. */
typedef struct traced_call {
  const tm_backend_slot *slot;
  const char *function;
  uint64_t    begin_ns;
  char        words[LONGEST_WORDS];
} traced_call;

static void begin(traced_call *call, const tm_backend_slot *slot, const char *function, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void begin(traced_call *call, const tm_backend_slot *slot, const char *function, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(call->words, sizeof call->words, format, arguments);
  va_end(arguments);
  call->slot = slot;
  call->function = function;
  call->begin_ns = tm_now_ns();
}

static void log_line(const traced_call *call, const char *end, uint64_t ns) {
  tm_log_write(&call->slot->inventory->log, TM_LOG_DEBUG, "call %llu.%09llu thread %llu %s.%s%s%s -> %s in %llu ns",
               (unsigned long long)(call->begin_ns / 1000000000), (unsigned long long)(call->begin_ns % 1000000000),
               (unsigned long long)tm_thread_id(), call->slot->name, call->function, call->words[0] != '\0' ? " " : "", call->words,
               end, (unsigned long long)ns);
}

static tm_status end(const traced_call *call, tm_status status) {
  const uint64_t ns = tm_now_ns() - call->begin_ns;
  log_line(call, tm_status_name(status), ns);
  return status;
}

static tm_status end_with_ticket(const traced_call *call, tm_status status, const tm_ticket *ticket) {
  const uint64_t ns = tm_now_ns() - call->begin_ns;
  char words[80];
  snprintf(words, sizeof words, "%s, ticket %u:%llu", tm_status_name(status), ticket->queue, (unsigned long long)ticket->value);
  log_line(call, words, ns);
  return status;
}

static void end_void(const traced_call *call) { log_line(call, "done", tm_now_ns() - call->begin_ns); }

/* "matmul f32[2,3] f32[3,4] f32[2,4]" */
static void describe(const tm_operation *operation, char *text, size_t capacity) {
  const tm_op_row *row = tm_op_find(operation->op);
  size_t length = (size_t)snprintf(text, capacity, "%s", row != NULL ? row->name : "an unknown operation");
  for (uint32_t i = 0; i < operation->input_count + operation->output_count && length < capacity; i++) {
    const tm_operand *operand = &operation->operands[i];
    const tm_format_info *info = tm_format_find(operand->format);
    char dims[120];
    tm_format_dims(operand, dims, sizeof dims);
    length += (size_t)snprintf(text + length, capacity - length, " %s%s", info != NULL ? info->name : "private", dims);
  }
}

/* ---- the backend ---- */

static tm_status traced_init(const tm_host *host, tm_backend **out_backend) {
  tm_backend_slot *slot = host->context;
  tm_memory *memory = slot->inventory->memory;
  traced_call call;
  traced_backend *backend = tm_memory_calloc(memory, 1, sizeof *backend);
  if (backend == NULL) return TM_ERROR_NO_MEMORY;
  backend->slot = slot;
  begin(&call, slot, "init", "lanes %u", host->lane_count);
  const tm_status status = end(&call, table_of(slot)->init(host, &backend->inner));
  if (status == TM_OK) *out_backend = (tm_backend *)(void *)backend;
  else tm_memory_free(memory, backend, sizeof *backend);
  return status;
}

static void traced_shutdown(tm_backend *handle) {
  traced_backend *backend = backend_of(handle);
  tm_backend_slot *slot = backend->slot;
  traced_call call;
  begin(&call, slot, "shutdown", "%s", "");
  table_of(slot)->shutdown(backend->inner);
  end_void(&call);
  tm_memory_free(slot->inventory->memory, backend, sizeof *backend);
}

static tm_status traced_device_info(tm_backend *handle, uint32_t index, tm_device_info *out_info) {
  const traced_backend *backend = backend_of(handle);
  traced_call call;
  begin(&call, backend->slot, "device_info", "%u", index);
  return end(&call, table_of(backend->slot)->device_info(backend->inner, index, out_info));
}

static tm_status traced_open(tm_backend *handle, uint32_t index, tm_device **out_device) {
  const traced_backend *backend = backend_of(handle);
  tm_memory *memory = backend->slot->inventory->memory;
  traced_call call;
  traced_device *device = tm_memory_calloc(memory, 1, sizeof *device);
  if (device == NULL) return TM_ERROR_NO_MEMORY;
  device->slot = backend->slot;
  begin(&call, backend->slot, "open", "%u", index);
  const tm_status status = end(&call, table_of(backend->slot)->open(backend->inner, index, &device->inner));
  if (status == TM_OK) *out_device = (tm_device *)(void *)device;
  else tm_memory_free(memory, device, sizeof *device);
  return status;
}

static void traced_close(tm_device *handle) {
  traced_device *device = device_of(handle);
  tm_backend_slot *slot = device->slot;
  traced_call call;
  begin(&call, slot, "close", "%s", "");
  table_of(slot)->close(device->inner);
  end_void(&call);
  tm_memory_free(slot->inventory->memory, device, sizeof *device);
}

static tm_status traced_query(tm_backend *handle, uint32_t index, const tm_operation *const *operations, uint32_t count,
                              tm_answer *const *out_answers) {
  const traced_backend *backend = backend_of(handle);
  traced_call call;
  char first[LONGEST_WORDS - 60] = "";
  if (count > 0) describe(operations[0], first, sizeof first);
  begin(&call, backend->slot, "query", "device %u, %u of %s, accepting N%u", index, count, first,
        count > 0 ? operations[0]->worst_numerics : 0);
  const tm_status status = table_of(backend->slot)->query(backend->inner, index, operations, count, out_answers);
  const uint64_t ns = tm_now_ns() - call.begin_ns;
  char words[120];
  snprintf(words, sizeof words, "%s, level %u N%u %llu ns reasons 0x%x", tm_status_name(status),
           count > 0 ? out_answers[0]->level : 0, count > 0 ? out_answers[0]->numerics : 0,
           count > 0 ? (unsigned long long)out_answers[0]->cost_ns : 0, count > 0 ? out_answers[0]->reasons : 0);
  log_line(&call, words, ns);
  return status;
}

static const void *traced_get_extension(tm_backend *handle, tm_string name, uint32_t revision) {
  const traced_backend *backend = backend_of(handle);
  traced_call call;
  begin(&call, backend->slot, "get_extension", "%.*s revision %u", name.length > 100 ? 100 : (int)name.length, name.data, revision);
  const void *extension = table_of(backend->slot)->get_extension(backend->inner, name, revision);
  log_line(&call, extension != NULL ? "a table" : "none", tm_now_ns() - call.begin_ns);
  return extension;
}

/* ---- kernels ---- */

static tm_status traced_prepare(tm_device *handle, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const traced_device *device = device_of(handle);
  traced_call call;
  char words[LONGEST_WORDS];
  describe(operation, words, sizeof words);
  begin(&call, device->slot, "prepare", "%s", words);
  return end(&call, table_of(device->slot)->prepare(device->inner, operation, answer, out_kernel));
}

static void traced_release(tm_device *handle, tm_kernel *kernel) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, "release", "kernel %p", (void *)kernel);
  table_of(device->slot)->release(device->inner, kernel);
  end_void(&call);
}

static tm_status traced_launch(tm_device *handle, const tm_launch *launch, tm_ticket *out_ticket) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, "launch", "queue %u, kernel %p, %u bindings, %u waits", launch->queue, (void *)launch->kernel,
        launch->binding_count, launch->wait_count);
  return end_with_ticket(&call, table_of(device->slot)->launch(device->inner, launch, out_ticket), out_ticket);
}

/* ---- memory ---- */

static tm_status traced_buffer_create(tm_device *handle, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, "buffer_create", "space %u, %llu bytes", space, (unsigned long long)bytes);
  return end(&call, table_of(device->slot)->buffer_create(device->inner, space, bytes, out_buffer));
}

static tm_status traced_buffer_import(tm_device *handle, uint32_t space, void *memory, uint64_t bytes, uint32_t read_only,
                                      tm_buffer **out_buffer) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, "buffer_import", "space %u, %llu bytes%s", space, (unsigned long long)bytes,
        read_only ? ", read-only" : "");
  return end(&call, table_of(device->slot)->buffer_import(device->inner, space, memory, bytes, read_only, out_buffer));
}

static void traced_buffer_destroy(tm_device *handle, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, "buffer_destroy", "space %u, %llu bytes%s", space, (unsigned long long)bytes,
        imported ? ", imported" : "");
  table_of(device->slot)->buffer_destroy(device->inner, space, buffer, bytes, imported);
  end_void(&call);
}

typedef tm_status (*transfer_fn)(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);

static tm_status transfer(tm_device *handle, const char *name, transfer_fn function, const tm_transfer *given,
                          tm_ticket *out_ticket) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, name, "queue %u, %llu bytes, from %llu to %llu, %u waits", given->queue,
        (unsigned long long)given->bytes, (unsigned long long)given->source_offset, (unsigned long long)given->destination_offset,
        given->wait_count);
  return end_with_ticket(&call, function(device->inner, given, out_ticket), out_ticket);
}

static tm_status traced_upload(tm_device *handle, const tm_transfer *given, tm_ticket *out_ticket) {
  return transfer(handle, "upload", table_of(device_of(handle)->slot)->upload, given, out_ticket);
}

static tm_status traced_download(tm_device *handle, const tm_transfer *given, tm_ticket *out_ticket) {
  return transfer(handle, "download", table_of(device_of(handle)->slot)->download, given, out_ticket);
}

static tm_status traced_copy(tm_device *handle, const tm_transfer *given, tm_ticket *out_ticket) {
  return transfer(handle, "copy", table_of(device_of(handle)->slot)->copy, given, out_ticket);
}

static tm_status traced_memory_stats(tm_device *handle, uint32_t space, tm_memory_stats *out_stats) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, "memory_stats", "space %u", space);
  return end(&call, table_of(device->slot)->memory_stats(device->inner, space, out_stats));
}

/* ---- queues ---- */

static tm_status traced_flush(tm_device *handle, uint32_t queue) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, "flush", "queue %u", queue);
  return end(&call, table_of(device->slot)->flush(device->inner, queue));
}

static tm_status traced_wait(tm_device *handle, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  const traced_device *device = device_of(handle);
  traced_call call;
  const tm_ticket first = count > 0 ? tickets[0] : (tm_ticket){ 0, 0, 0 };
  if (timeout_ns == TM_WAIT_FOREVER)
    begin(&call, device->slot, "wait", "%u tickets, first %u:%llu, for ever", count, first.queue, (unsigned long long)first.value);
  else
    begin(&call, device->slot, "wait", "%u tickets, first %u:%llu, %llu ns", count, first.queue, (unsigned long long)first.value,
          (unsigned long long)timeout_ns);
  return end(&call, table_of(device->slot)->wait(device->inner, tickets, count, timeout_ns));
}

static tm_status traced_cancel(tm_device *handle, uint32_t queue) {
  const traced_device *device = device_of(handle);
  traced_call call;
  begin(&call, device->slot, "cancel", "queue %u", queue);
  return end(&call, table_of(device->slot)->cancel(device->inner, queue));
}

/* ---- installing ---- */

bool tm_call_trace_is_wanted(void) {
  const char *wanted = tm_is_privileged() ? NULL : getenv(TRACE_VARIABLE);
  return wanted != NULL && strcmp(wanted, TRACE_CALLS) == 0;
}

/* A span is the time at which it began: that tells two of one thread apart, and how long it took. */
static void log_span(const tm_backend_slot *slot, uint64_t span, const char *what, const char *words) {
  tm_log_write(&slot->inventory->log, TM_LOG_DEBUG, "span %llu.%09llu thread %llu %s %s%s", (unsigned long long)(span / 1000000000),
               (unsigned long long)(span % 1000000000), (unsigned long long)tm_thread_id(), slot->name, what, words);
}

uint64_t tm_call_trace_begin_span(const tm_backend_slot *slot, const char *name) {
  if (slot->untraced == NULL) return 0;
  const uint64_t span = tm_now_ns();
  log_span(slot, span, "begins ", name);
  return span;
}

void tm_call_trace_end_span(const tm_backend_slot *slot, uint64_t span) {
  const uint64_t now = tm_now_ns();
  char words[40];
  if (slot->untraced == NULL || span == 0 || span > now) return;
  snprintf(words, sizeof words, "%llu ns", (unsigned long long)(now - span));
  log_span(slot, span, "ended after ", words);
}

tm_status tm_call_trace_install(tm_backend_slot *slot, tm_error *error) {
  tm_accelerator_backend_plugin *inner = tm_arena_calloc(&slot->inventory->arena, 1, sizeof *inner);
  if (inner == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a trace of calls");
  *inner = slot->table;
  slot->untraced = inner;
  slot->table = (tm_accelerator_backend_plugin){
      .struct_size = sizeof slot->table,
      .option_count = inner->option_count,
      .options = inner->options,
      .init = traced_init,
      .shutdown = traced_shutdown,
      .device_info = traced_device_info,
      .open = traced_open,
      .close = traced_close,
      .query = traced_query,
      .prepare = traced_prepare,
      .release = traced_release,
      .buffer_create = traced_buffer_create,
      .buffer_import = traced_buffer_import,
      .buffer_destroy = traced_buffer_destroy,
      .upload = traced_upload,
      .download = traced_download,
      .copy = traced_copy,
      .launch = traced_launch,
      .flush = traced_flush,
      .wait = traced_wait,
      .cancel = traced_cancel,
      .memory_stats = traced_memory_stats,
      .get_extension = traced_get_extension,
  };
  /* Whether there is one decides who makes buffers. */
  if (!tm_plugin_table_has_buffers(inner)) slot->table.buffer_create = inner->buffer_create;
  return TM_OK;
}
