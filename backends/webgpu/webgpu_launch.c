/* SPDX-License-Identifier: Apache-2.0 */
/* Preparing kernels and launching them. */
#include <stdio.h>
#include <string.h>

#include "webgpu_device.h"
#include "webgpu_query.h"

#define PARAMETER_STRIDE 512u           /* bytes a pass; a multiple of any adapter's offset alignment */
#define MOST_BINDINGS (TM_MAX_OPERANDS + 1u)

/* Where one operand lay at the last launch. */
typedef struct place {
  uint64_t buffer;                      /* its number */
  uint64_t offset;
} place;

struct tm_kernel {
  uint32_t binding_count;               /* operands, and the workspace if there is one */
  uint32_t input_count;
  uint32_t pass_count;
  uint32_t has_groups;
  const char *entries[WEBGPU_PASSES];
  wapi_compute_pipeline pipelines[WEBGPU_PASSES];
  uint32_t workgroups[WEBGPU_PASSES][3];
  uint64_t below[MOST_BINDINGS];        /* bytes before the binding's offset at which it begins, whole granules */
  uint64_t spans[MOST_BINDINGS];        /* bytes bound */
  wapi_buffer     parameters;
  place           places[MOST_BINDINGS];        /* of `groups` */
  wapi_bind_group groups[WEBGPU_PASSES];        /* bindings seldom change from launch to launch */
};

/* ---- prepare ---- */

static tm_status make_parameters(tm_device *device, const webgpu_plan *plan, tm_kernel *kernel) {
  const uint64_t bytes = (uint64_t)plan->pass_count * PARAMETER_STRIDE;
  if (plan->pass_count == 0) return TM_OK;
  kernel->parameters = webgpu_scratch(device, WAPI_USAGE_UNIFORM, bytes, 1);
  char *memory = kernel->parameters == NULL ? NULL : device->api->BufferGetMappedRange(kernel->parameters, 0, (size_t)bytes);
  if (memory == NULL) return webgpu_fail(device->backend->host, TM_ERROR_NO_MEMORY, "no device memory for a kernel's parameters");
  memset(memory, 0, (size_t)bytes);
  for (uint32_t i = 0; i < plan->pass_count; ++i) {
    memcpy(memory + i * PARAMETER_STRIDE, plan->passes[i].parameters, sizeof plan->passes[i].parameters);
  }
  device->api->BufferUnmap(kernel->parameters);
  return TM_OK;
}

/* The compiler's words go to the log too.  From now on the device answers otherwise: its epoch moves. */
static void refuse_row(tm_device *device, const webgpu_row *row) {
  const tm_host *host = device->backend->host;
  char text[WEBGPU_ERROR_TEXT + 256];
  const int length = snprintf(text, sizeof text, "%s: the compiler refuses the kernel %s: %s", device->adapter->name, row->name,
                              device->flight->scope_text);
  const uint64_t kept = length < 0 ? 0 : (size_t)length < sizeof text ? (uint64_t)length : sizeof text - 1;
  host->log(host->context, TM_LOG_WARNING, (tm_string){ text, kept });
  const uint64_t epoch = webgpu_standing_refuse(&device->backend->standings[device->index], row);
  host->device_event(host->context, device->index, TM_EVENT_EPOCH_MOVED, epoch);
}

static tm_status make_pipelines(tm_device *device, const webgpu_row *row, const webgpu_plan *plan, tm_kernel *kernel) {
  const webgpu_module_key key = {
    .shaders = row->shaders, .prologue = plan->prologue, .prologue_length = plan->prologue_length, .needs = row->needs,
    .reads = kernel->input_count, .writes = kernel->binding_count - kernel->input_count,
  };
  tm_status status = TM_OK;
  for (uint32_t i = 0; i < plan->pass_count && status == TM_OK; ++i) {
    status = webgpu_pipeline_get(device, &key, row->name, plan->passes[i].entry, TM_STALE, &kernel->pipelines[i]);
    memcpy(kernel->workgroups[i], plan->passes[i].workgroups, sizeof kernel->workgroups[i]);
  }
  kernel->pass_count = plan->pass_count;
  if (status == TM_STALE) refuse_row(device, row);
  return status;
}

static void measure_bindings(const webgpu_limits *limits, const tm_operation *operation, uint64_t workspace_bytes,
                             tm_kernel *kernel) {
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; ++i) {
    kernel->below[i] = webgpu_first_byte(limits, &operation->operands[i]);
    kernel->spans[i] = webgpu_binding_bytes(limits, &operation->operands[i]);
  }
  kernel->spans[count] = workspace_bytes;
  kernel->input_count = operation->input_count;
  kernel->binding_count = count + (workspace_bytes != 0);
}

static void kernel_free(tm_device *device, tm_kernel *kernel) {
  const tm_host *host = device->backend->host;
  for (uint32_t i = 0; i < WEBGPU_PASSES; ++i) {
    if (kernel->groups[i] != NULL) device->api->BindGroupRelease(kernel->groups[i]);
  }
  if (kernel->parameters != NULL) device->api->BufferRelease(kernel->parameters);
  host->free(host->context, kernel, sizeof *kernel);
}

/* Another thread may have met the compiler's refusal in the meantime. */
static int is_stale(const tm_device *device, const webgpu_offer *offer) {
  return webgpu_offer_make(offer->limits, offer->standing).epoch != offer->epoch && !atomic_load(&device->trouble->is_lost);
}

static tm_status prepare_locked(tm_device *device, const webgpu_row *row, const tm_operation *operation, tm_kernel *kernel) {
  const webgpu_limits *limits = &device->adapter->limits;
  webgpu_plan plan;
  memset(&plan, 0, sizeof plan);
  if (atomic_load(&device->trouble->is_lost)) return webgpu_fail_told(device, TM_ERROR_DEVICE_LOST, "prepare");
  row->plan(row, limits, operation, &plan);
  tm_status status = make_pipelines(device, row, &plan, kernel);
  if (status == TM_OK) status = make_parameters(device, &plan, kernel);
  return status;
}

static tm_status refuse_prepare(const tm_host *host, const webgpu_offer *offer, const tm_operation *operation) {
  tm_answer refusal = { .struct_size = sizeof refusal };
  webgpu_query_answer(offer, operation, &refusal);
  return webgpu_fail(host, kernel_refusal_status(&refusal), "prepare of an operation that query refuses");
}

tm_status webgpu_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const tm_host *host = device->backend->host;
  const webgpu_offer offer = webgpu_offer_make(&device->adapter->limits, &device->backend->standings[device->index]);
  if (answer != NULL && TM_HAS_MEMBER(answer, tm_answer, epoch) && answer->epoch != 0 && answer->epoch != offer.epoch)
    return TM_STALE;
  const webgpu_row *row = webgpu_row_find(&offer, operation);
  if (row == NULL) return refuse_prepare(host, &offer, operation);
  tm_kernel *kernel = host->alloc(host->context, sizeof *kernel, _Alignof(tm_kernel));
  if (kernel == NULL) return webgpu_fail(host, TM_ERROR_NO_MEMORY, "no memory for a prepared kernel");
  memset(kernel, 0, sizeof *kernel);
  measure_bindings(offer.limits, operation, webgpu_workspace_bytes(&offer, row, operation), kernel);
  native_lock_take(&device->backend->lock);
  const tm_status status = is_stale(device, &offer) ? TM_STALE : prepare_locked(device, row, operation, kernel);
  if (status != TM_OK) kernel_free(device, kernel);
  native_lock_give(&device->backend->lock);
  if (status == TM_OK) *out_kernel = kernel;
  return status;
}

void webgpu_release(tm_device *device, tm_kernel *kernel) {
  if (kernel == NULL) return;
  native_lock_take(&device->backend->lock);
  kernel_free(device, kernel);
  native_lock_give(&device->backend->lock);
}

/* ---- launch ---- */

static int is_bound_well(const tm_device *device, const tm_kernel *kernel, const tm_binding *binding, uint32_t i) {
  if (binding->offset % device->adapter->limits.offset_alignment != 0 || binding->offset < kernel->below[i]) return 0;
  const uint64_t begin = binding->offset - kernel->below[i];
  return begin <= binding->buffer->bytes && kernel->spans[i] <= binding->buffer->bytes - begin;
}

static tm_status check_bindings(tm_device *device, const tm_launch *launch) {
  const tm_kernel *kernel = launch->kernel;
  const tm_host *host = device->backend->host;
  if (launch->binding_count != kernel->binding_count) {
    return webgpu_fail(host, TM_ERROR_ARGUMENT, "launch: one binding an operand, and the workspace if one was declared");
  }
  for (uint32_t i = 0; i < kernel->binding_count && kernel->pass_count != 0; ++i) {
    if (!is_bound_well(device, kernel, &launch->bindings[i], i)) {
      return webgpu_fail(host, TM_ERROR_ARGUMENT, "launch: a binding off the offset granule or beyond its buffer");
    }
  }
  return TM_OK;
}

/* The interface does not bind one buffer for reading and for writing at once, not even parts of it that lie apart: such an
   input is read from a copy. */
static int is_written_too(const tm_launch *launch, uint32_t input) {
  for (uint32_t i = launch->kernel->input_count; i < launch->binding_count; ++i) {
    if (launch->bindings[i].buffer == launch->bindings[input].buffer) return 1;
  }
  return 0;
}

static void fill_entry(const tm_launch *launch, uint32_t i, wapi_bind_group_entry *entry) {
  *entry = (wapi_bind_group_entry){
    .binding = i + 1, .buffer = launch->bindings[i].buffer->handle, .offset = launch->bindings[i].offset - launch->kernel->below[i],
    .bytes = launch->kernel->spans[i],
  };
}

/* *out_copies: entries that are buffers of this launch alone, by bits. */
static tm_status make_entries(tm_device *device, const tm_launch *launch, wapi_bind_group_entry *entries, uint32_t *out_copies) {
  *out_copies = 0;
  for (uint32_t i = 0; i < launch->binding_count; ++i) {
    fill_entry(launch, i, &entries[i + 1]);
    if (i >= launch->kernel->input_count || !is_written_too(launch, i)) continue;
    wapi_buffer copy = webgpu_scratch(device, WAPI_USAGE_STORAGE | WAPI_USAGE_COPY_DESTINATION, launch->kernel->spans[i], 0);
    if (copy == NULL) return TM_ERROR_NO_MEMORY;
    wapi_bind_group_entry *entry = &entries[i + 1];
    wapi_command_encoder encoder = webgpu_queue_encoder(device, launch->queue);
    device->api->CommandEncoderCopyBufferToBuffer(encoder, entry->buffer, entry->offset, copy, 0, entry->bytes);
    entry->buffer = copy;
    entry->offset = 0;
    *out_copies |= 1u << (i + 1);
  }
  return TM_OK;
}

static void release_copies(tm_device *device, const wapi_bind_group_entry *entries, uint32_t copies) {
  for (uint32_t i = 0; i <= MOST_BINDINGS; ++i) {
    if ((copies >> i & 1u) != 0) device->api->BufferRelease(entries[i].buffer);
  }
}

static int are_groups_current(const tm_launch *launch) {
  const tm_kernel *kernel = launch->kernel;
  if (!kernel->has_groups) return 0;
  for (uint32_t i = 0; i < kernel->binding_count; ++i) {
    const tm_binding *binding = &launch->bindings[i];
    if (kernel->places[i].buffer != binding->buffer->number || kernel->places[i].offset != binding->offset) return 0;
  }
  return 1;
}

static void make_groups(tm_device *device, tm_kernel *kernel, wapi_bind_group_entry *entries) {
  for (uint32_t pass = 0; pass < kernel->pass_count; ++pass) {
    entries[0] = (wapi_bind_group_entry){
      .buffer = kernel->parameters, .offset = (uint64_t)pass * PARAMETER_STRIDE, .bytes = WEBGPU_PARAMETER_WORDS * sizeof(uint32_t),
    };
    const wapi_bind_group_descriptor descriptor = {
      .layout = webgpu_layout_get(device, kernel->input_count, kernel->binding_count - kernel->input_count),
      .entry_count = kernel->binding_count + 1, .entries = entries,
    };
    if (kernel->groups[pass] != NULL) device->api->BindGroupRelease(kernel->groups[pass]);
    kernel->groups[pass] = device->api->DeviceCreateBindGroup(device->handle, &descriptor);
  }
}

/* Groups with a copy in them are for this launch only. */
static tm_status bind_anew(tm_device *device, const tm_launch *launch) {
  tm_kernel *kernel = launch->kernel;
  wapi_bind_group_entry entries[MOST_BINDINGS + 1];
  uint32_t copies = 0;
  const tm_status status = make_entries(device, launch, entries, &copies);
  kernel->has_groups = 0;
  if (status == TM_OK) make_groups(device, kernel, entries);
  release_copies(device, entries, copies);
  if (status != TM_OK) return status;
  for (uint32_t i = 0; i < kernel->binding_count; ++i) {
    kernel->places[i] = (place){ launch->bindings[i].buffer->number, launch->bindings[i].offset };
  }
  kernel->has_groups = copies == 0;
  return TM_OK;
}

static tm_status encode_launch(tm_device *device, const tm_launch *launch) {
  tm_kernel *kernel = launch->kernel;
  if (!are_groups_current(launch)) {
    const tm_status status = bind_anew(device, launch);
    if (status != TM_OK) return status;
  }
  wapi_compute_pass pass = webgpu_queue_pass(device, launch->queue);
  for (uint32_t i = 0; i < kernel->pass_count; ++i) {
    device->api->ComputePassEncoderSetPipeline(pass, kernel->pipelines[i]);
    device->api->ComputePassEncoderSetBindGroup(pass, 0, kernel->groups[i], 0, NULL);
    const uint32_t *groups = kernel->workgroups[i];
    device->api->ComputePassEncoderDispatchWorkgroups(pass, groups[0], groups[1], groups[2]);
  }
  return TM_OK;
}

tm_status webgpu_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  int encoded = 0;
  if (launch->struct_size < sizeof *launch)
    return webgpu_fail(device->backend->host, TM_ERROR_ARGUMENT, "launch: struct_size is too small");
  if (!kernel_rest_is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  tm_status status = check_bindings(device, launch);
  if (status != TM_OK) return status;
  native_lock_take(&device->backend->lock);
  status = webgpu_queue_begin(device, launch->queue, launch->waits, launch->wait_count, &encoded);
  const uint32_t errors = webgpu_error_count(device->trouble);
  if (launch->kernel->pass_count == 0) encoded = 0;
  if (status == TM_OK && encoded) status = encode_launch(device, launch);
  if (status == TM_OK) webgpu_queue_end(device, launch->queue, encoded, errors, out_ticket);
  native_lock_give(&device->backend->lock);
  return status;
}
