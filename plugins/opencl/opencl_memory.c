/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl_memory.h"

#include "opencl_error.h"
#include "opencl_queue.h"

tm_status opencl_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  const tm_host *host = device->backend->host;
  const uint64_t largest = device->found->facts.largest_buffer_bytes;
  int32_t error = OPENCL_SUCCESS;
  (void)space;
  if (atomic_load(&device->is_lost) != 0) return TM_ERROR_DEVICE_LOST;
  if (bytes > largest)
    return opencl_fail(host, TM_ERROR_NO_MEMORY, 0, "a buffer of %llu bytes; %s has at most %llu", (unsigned long long)bytes,
                       device->found->name, (unsigned long long)largest);
  tm_buffer *buffer = opencl_alloc(host, sizeof *buffer);
  if (buffer == NULL) return opencl_fail(host, TM_ERROR_NO_MEMORY, 0, "no memory for a buffer's handle");
  buffer->bytes = bytes;
  buffer->handle = device->backend->api.CreateBuffer(device->context, OPENCL_MEM_READ_WRITE, bytes != 0 ? bytes : 1, NULL, &error);
  if (error == OPENCL_SUCCESS && buffer->handle != NULL) {
    *out_buffer = buffer;
    return TM_OK;
  }
  opencl_free(host, buffer, sizeof *buffer);
  return opencl_fail_call(device, "clCreateBuffer", error);
}

void opencl_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  (void)space, (void)bytes, (void)imported;
  if (buffer == NULL) return;
  (void)device->backend->api.ReleaseMemObject(buffer->handle);
  opencl_free(device->backend->host, buffer, sizeof *buffer);
}

static int lies_inside(const tm_buffer *buffer, uint64_t offset, uint64_t bytes) {
  return buffer != NULL && offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}

typedef enum direction { UPLOAD, DOWNLOAD, COPY } direction;

static tm_status check(tm_device *device, const tm_transfer *t, direction way) {
  int is_right = way == UPLOAD || lies_inside(t->source, t->source_offset, t->bytes);
  is_right = is_right && (way == DOWNLOAD || lies_inside(t->destination, t->destination_offset, t->bytes));
  is_right = is_right && (way == COPY || t->host != NULL || t->bytes == 0);
  if (!kernel_rest_is_zero(t, sizeof *t, t->struct_size)) return TM_UNSUPPORTED;
  return is_right ? TM_OK : opencl_fail(device->backend->host, TM_ERROR_ARGUMENT, 0, "a transfer beyond its buffer");
}

static int32_t enqueue(tm_device *device, const tm_transfer *t, direction way, const opencl_waits *waits, opencl_event *out_event) {
  const opencl_api *api = &device->backend->api;
  opencl_command_queue queue = device->queues[t->queue].handle;
  const opencl_event *events = waits->count != 0 ? waits->events : NULL;
  switch (way) {
    case UPLOAD:
      return api->EnqueueWriteBuffer(queue, t->destination->handle, OPENCL_FALSE, t->destination_offset, t->bytes, t->host,
                                     waits->count, events, out_event);
    case DOWNLOAD:
      return api->EnqueueReadBuffer(queue, t->source->handle, OPENCL_FALSE, t->source_offset, t->bytes, t->host, waits->count,
                                    events, out_event);
    default:
      return api->EnqueueCopyBuffer(queue, t->source->handle, t->destination->handle, t->source_offset, t->destination_offset,
                                    t->bytes, waits->count, events, out_event);
  }
}

static tm_status transfer(tm_device *device, const tm_transfer *t, direction way, tm_ticket *out_ticket) {
  opencl_waits waits;
  opencl_event event = NULL;
  tm_status status = check(device, t, way);
  if (status != TM_OK) return status;
  status = opencl_queue_begin(device, t->queue, t->waits, t->wait_count, &waits, out_ticket);
  if (status == TM_ERROR_PREDECESSOR) return TM_OK;
  if (status != TM_OK) return status;
  int32_t error = OPENCL_SUCCESS;
  if (t->bytes != 0) error = enqueue(device, t, way, &waits, &event);
  opencl_waits_release(device, &waits);
  static const char *const calls[] = { [UPLOAD] = "an upload", [DOWNLOAD] = "a download", [COPY] = "a copy" };
  if (error != OPENCL_SUCCESS) return opencl_fail_call(device, calls[way], error);
  if (event != NULL) opencl_queue_commit(device, t->queue, event, out_ticket);
  return TM_OK;
}

tm_status opencl_upload(tm_device *device, const tm_transfer *t, tm_ticket *out_ticket) {
  return transfer(device, t, UPLOAD, out_ticket);
}

tm_status opencl_download(tm_device *device, const tm_transfer *t, tm_ticket *out_ticket) {
  return transfer(device, t, DOWNLOAD, out_ticket);
}

tm_status opencl_copy(tm_device *device, const tm_transfer *t, tm_ticket *out_ticket) {
  return transfer(device, t, COPY, out_ticket);
}
