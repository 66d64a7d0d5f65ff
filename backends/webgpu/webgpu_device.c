/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an adapter as a device, and closing it. */
#include "webgpu_device.h"

#include <string.h>

#define OPEN_NS UINT64_C(10000000000)
#define CLOSE_NS UINT64_C(5000000000)

void webgpu_device_poll(tm_device *device) {
  device->backend->library.api.InstanceProcessEvents(device->backend->instance);
  if (device->handle != NULL && device->api->DevicePoll != NULL) (void)device->api->DevicePoll(device->handle, 0, NULL);
}

int webgpu_device_poll_until(tm_device *device, _Atomic uint32_t *flag, uint32_t most, uint64_t patience_ns) {
  const tm_host *host = device->backend->host;
  const uint64_t end = host->now_ns(host->context) + patience_ns;
  for (uint32_t i = 0; atomic_load(flag) > most; ++i) {
    webgpu_device_poll(device);
    if (atomic_load(flag) <= most) break;
    if (host->now_ns(host->context) > end) return 0;
    native_pause(i);
  }
  return 1;
}

static void release_layouts(tm_device *device) {
  for (uint32_t i = 0; i < WEBGPU_READ_LAYOUTS * WEBGPU_WRITE_LAYOUTS; ++i) {
    const uint32_t reads = i / WEBGPU_WRITE_LAYOUTS, writes = i % WEBGPU_WRITE_LAYOUTS;
    const wapi_pipeline_layout pipelines = device->pipeline_layouts[reads][writes];
    const wapi_bind_group_layout bindings = device->layouts[reads][writes];
    if (pipelines != NULL) device->api->PipelineLayoutRelease(pipelines);
    if (bindings != NULL) device->api->BindGroupLayoutRelease(bindings);
  }
}

static void release_chunks(tm_device *device) {
  for (uint32_t i = 0; i < WEBGPU_CHUNKS; ++i) {
    webgpu_chunk *chunk = &device->flight->chunks[i];
    if (chunk->handle == NULL) continue;
    device->api->BufferDestroy(chunk->handle);
    device->api->BufferRelease(chunk->handle);
    chunk->handle = NULL;
  }
}

/* A flight that a callback is still owed to is left behind: there is no moment to free it at. */
static void free_device(tm_device *device, uint64_t patience_ns) {
  const tm_host *host = device->backend->host;
  webgpu_flight *flight = device->flight;
  if (flight != NULL) {
    (void)webgpu_device_poll_until(device, &flight->references, 1, patience_ns);
    if (webgpu_flight_drop(flight)) webgpu_flight_free(host, flight);
  }
  host->free(host->context, device, sizeof *device);
}

/* ---- open ---- */

static tm_status request_device(tm_device *device, wapi_adapter adapter) {
  webgpu_flight *flight = device->flight;
  void *generation = (void *)webgpu_trouble_renew(device->trouble);
  wapi_enum features[2];
  size_t count = 0;
  if ((device->adapter->limits.features & WEBGPU_NEEDS_F16) != 0) features[count++] = WAPI_FEATURE_SHADER_F16;
  if ((device->adapter->limits.features & WEBGPU_NEEDS_SUBGROUPS) != 0) features[count++] = WAPI_FEATURE_SUBGROUPS;
  const wapi_device_descriptor descriptor = {
    .feature_count = count, .features = features, .limits = &device->adapter->native,
    .lost = { .mode = WAPI_ALLOW_PROCESS_EVENTS, .function = webgpu_on_lost, .a = device->trouble, .b = generation },
    .uncaptured = { .function = webgpu_on_error, .a = device->trouble, .b = generation },
  };
  const wapi_device_call call = { .mode = WAPI_ALLOW_PROCESS_EVENTS, .function = webgpu_on_device, .a = flight };
  webgpu_flight_hold(flight);
  atomic_store(&flight->is_opening, 1);
  (void)device->api->AdapterRequestDevice(adapter, &descriptor, call);
  if (!webgpu_device_poll_until(device, &flight->is_opening, 0, OPEN_NS))
    return webgpu_fail(device->backend->host, TM_ERROR_DEVICE_LOST, "the adapter does not answer");
  device->handle = flight->opened;
  if (device->handle != NULL) return TM_OK;
  return webgpu_fail(device->backend->host, TM_ERROR_DEVICE_LOST, flight->scope_text);
}

static tm_status open_locked(tm_device *device) {
  tm_backend *backend = device->backend;
  const wapi_adapter adapter = webgpu_adapter_take(device->api, backend->instance, &backend->adapters, device->index);
  if (adapter == NULL) return webgpu_fail(backend->host, TM_ERROR_DEVICE_LOST, "the adapter is gone");
  const tm_status status = request_device(device, adapter);
  device->api->AdapterRelease(adapter);
  if (status == TM_OK) device->native_queue = device->api->DeviceGetQueue(device->handle);
  return status;
}

tm_status webgpu_device_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  const tm_host *host = backend->host;
  tm_device *device = host->alloc(host->context, sizeof *device, 64);
  if (device == NULL) return webgpu_fail(host, TM_ERROR_NO_MEMORY, "no memory for a device");
  memset(device, 0, sizeof *device);
  device->backend = backend;
  device->api = &backend->library.api;
  device->adapter = &backend->adapters.items[index];
  device->index = index;
  device->trouble = &backend->troubles[index];
  device->flight = webgpu_flight_create(host);
  tm_status status = TM_ERROR_NO_MEMORY;
  native_lock_take(&backend->lock);
  if (device->flight != NULL) status = open_locked(device);
  if (status != TM_OK) free_device(device, CLOSE_NS);
  native_lock_give(&backend->lock);
  if (status == TM_OK) *out_device = device;
  return status;
}

/* ---- close ---- */

void webgpu_device_close(tm_device *device) {
  if (device == NULL) return;
  tm_backend *backend = device->backend;
  native_lock_take(&backend->lock);
  (void)webgpu_trouble_renew(device->trouble);
  for (uint32_t i = 0; i < WEBGPU_QUEUES; ++i) webgpu_queue_abandon(device, i);
  webgpu_modules_release(device);
  release_layouts(device);
  release_chunks(device);
  device->api->QueueRelease(device->native_queue);
  device->api->DeviceDestroy(device->handle);
  (void)webgpu_device_poll_until(device, &device->flight->references, 1, CLOSE_NS);
  device->api->DeviceRelease(device->handle);
  device->handle = NULL;
  free_device(device, CLOSE_NS);
  native_lock_give(&backend->lock);
}
