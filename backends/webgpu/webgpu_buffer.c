/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory. */
#include <string.h>

#include "webgpu_device.h"

#define LEAST_BYTES 16u

/* ---- under the lock ---- */

wapi_buffer webgpu_scratch(tm_device *device, wapi_flags usage, uint64_t bytes, int is_mapped) {
  const wapi_buffer_descriptor descriptor = { .usage = usage, .bytes = bytes, .mapped_at_creation = is_mapped ? 1 : 0 };
  if (bytes > device->adapter->limits.buffer_bytes) return NULL;
  webgpu_scope_begin(device);
  wapi_buffer buffer = device->api->DeviceCreateBuffer(device->handle, &descriptor);
  if (webgpu_scope_end(device, "a buffer", TM_ERROR_NO_MEMORY) == TM_OK) return buffer;
  if (buffer != NULL) device->api->BufferRelease(buffer);
  return NULL;
}

static tm_status create_locked(tm_device *device, tm_buffer *buffer) {
  if (atomic_load(&device->trouble->is_lost)) return webgpu_fail_told(device, TM_ERROR_DEVICE_LOST, "a buffer");
  const wapi_flags usage = WAPI_USAGE_STORAGE | WAPI_USAGE_COPY_SOURCE | WAPI_USAGE_COPY_DESTINATION;
  buffer->handle = webgpu_scratch(device, usage, buffer->bytes, 0);
  if (buffer->handle == NULL) return atomic_load(&device->trouble->is_lost) ? TM_ERROR_DEVICE_LOST : TM_ERROR_NO_MEMORY;
  buffer->number = ++device->buffer_count;
  device->used_bytes += buffer->bytes;
  return TM_OK;
}

/* ---- the contract's functions ---- */

tm_status webgpu_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  const tm_host *host = device->backend->host;
  if (space != 0) return webgpu_fail(host, TM_ERROR_NO_MEMORY, "there is one memory only");
  if (bytes > device->adapter->limits.buffer_bytes - LEAST_BYTES)
    return webgpu_fail(host, TM_ERROR_NO_MEMORY, "the adapter has no buffers of that size");
  tm_buffer *buffer = host->alloc(host->context, sizeof *buffer, _Alignof(tm_buffer));
  if (buffer == NULL) return webgpu_fail(host, TM_ERROR_NO_MEMORY, "no memory for a buffer's description");
  memset(buffer, 0, sizeof *buffer);
  buffer->bytes = bytes < LEAST_BYTES ? LEAST_BYTES : (bytes + 3) / 4 * 4;
  native_lock_take(&device->backend->lock);
  const tm_status status = create_locked(device, buffer);
  native_lock_give(&device->backend->lock);
  if (status == TM_OK) *out_buffer = buffer;
  else host->free(host->context, buffer, sizeof *buffer);
  return status;
}

/* Destroyed and not only released: a kernel's cached bindings may still refer to it. */
void webgpu_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  const tm_host *host = device->backend->host;
  (void)space, (void)bytes, (void)imported;
  if (buffer == NULL) return;
  native_lock_take(&device->backend->lock);
  device->api->BufferDestroy(buffer->handle);
  device->api->BufferRelease(buffer->handle);
  device->used_bytes -= buffer->bytes;
  native_lock_give(&device->backend->lock);
  host->free(host->context, buffer, sizeof *buffer);
}

tm_status webgpu_memory_stats(tm_device *device, uint32_t space, tm_memory_stats *out_stats) {
  if (space != 0) return TM_UNSUPPORTED;
  native_lock_take(&device->backend->lock);
  const tm_memory_stats stats = { .struct_size = out_stats->struct_size, .used_bytes = device->used_bytes };
  native_lock_give(&device->backend->lock);
  memcpy(out_stats, &stats, stats.struct_size < sizeof stats ? stats.struct_size : sizeof stats);
  return TM_OK;
}
