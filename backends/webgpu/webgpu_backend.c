/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's functions for the adapters of an implementation of WebGPU. */
#include <stdlib.h>
#include <string.h>

#include "native_drivers.h"
#include "webgpu_device.h"
#include "webgpu_query.h"

#define COST_MODEL_ID 1u
#define OPEN_NS UINT64_C(30000000)

static const tm_option library_option = {
  .struct_size = sizeof library_option,
  .type = TM_OPTION_TEXT,
  .name = TM_STRING("library"),
  .default_value = TM_STRING(""),
  .help = TM_STRING("File of the implementation of WebGPU; empty: the usual names and the active Python environment."),
};
static const tm_option adapter_option = {
  .struct_size = sizeof adapter_option,
  .type = TM_OPTION_TEXT,
  .name = TM_STRING("adapter"),
  .default_value = TM_STRING(""),
  .help = TM_STRING("Part of the name of the adapters to use, in any case; empty: all of them."),
};
static const tm_option binding_option = {
  .struct_size = sizeof binding_option,
  .type = TM_OPTION_INTEGER,
  .name = TM_STRING("max_binding_bytes"),
  .default_value = TM_STRING("0"),
  .help = TM_STRING("Bytes that one operand may span, if less than the adapter allows; 0: what it allows; at least 65536."),
};
static const tm_option *const options[] = { &library_option, &adapter_option, &binding_option };

static tm_string option_value(const tm_host *host, const tm_option *option) {
  tm_string value = option->default_value;
  return host->config_get(host->context, option->name, &value) == TM_OK ? value : option->default_value;
}

/* The host has checked that it is an integer. */
static tm_status binding_limit(const tm_host *host, uint64_t *out_bytes) {
  const tm_string value = option_value(host, &binding_option);
  char text[24] = "";
  if (value.length >= sizeof text) return webgpu_fail(host, TM_ERROR_ARGUMENT, "option max_binding_bytes: too long a number");
  if (value.length != 0) memcpy(text, value.data, value.length);
  const long long bytes = strtoll(text, NULL, 10);
  if (bytes != 0 && bytes < 65536)
    return webgpu_fail(host, TM_ERROR_ARGUMENT, "option max_binding_bytes: expected 0 or at least 65536");
  *out_bytes = (uint64_t)bytes;
  return TM_OK;
}

/* ---- init ---- */

static tm_status list_adapters(tm_backend *backend, const webgpu_selection *selection) {
  const tm_host *host = backend->host;
  const webgpu_api *api = &backend->library.api;
  native_drivers *drivers = native_drivers_begin(host);
  backend->instance = api->CreateInstance(NULL);
  if (backend->instance != NULL) webgpu_adapters_list(host, api, backend->instance, selection, &backend->adapters);
  native_drivers_keep(host, drivers);
  if (backend->instance != NULL) return TM_OK;
  return webgpu_fail(host, TM_ERROR_NO_DEVICE, "the implementation of WebGPU gives no instance");
}

static tm_status find_adapters(tm_backend *backend) {
  const tm_host *host = backend->host;
  webgpu_selection selection = { .name = option_value(host, &adapter_option) };
  tm_status status = binding_limit(host, &selection.max_binding_bytes);
  if (status == TM_OK) status = webgpu_library_find(host, option_value(host, &library_option), &backend->library);
  if (status == TM_OK) status = list_adapters(backend, &selection);
  if (status != TM_OK) return status;
  if (backend->adapters.count != 0) return TM_OK;
  const char *why = selection.name.length == 0 ? "the implementation of WebGPU finds no adapter here"
                                               : "no adapter has the name that the option adapter asks for";
  status = webgpu_fail(host, TM_ERROR_NO_DEVICE, why);
  backend->library.api.InstanceRelease(backend->instance);
  return status;
}

static void deinit_locks(tm_backend *backend, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) native_lock_deinit(&backend->troubles[i].lock);
  native_lock_deinit(&backend->lock);
}

static tm_status init_locks(tm_backend *backend) {
  if (native_lock_init(&backend->lock) != 0) return TM_ERROR_NO_MEMORY;
  for (uint32_t i = 0; i < WEBGPU_MOST_ADAPTERS; ++i) {
    if (native_lock_init(&backend->troubles[i].lock) == 0) continue;
    deinit_locks(backend, i);
    return TM_ERROR_NO_MEMORY;
  }
  return TM_OK;
}

static tm_status backend_init(const tm_host *host, tm_backend **out_backend) {
  tm_backend *backend = host->alloc(host->context, sizeof *backend, 64);
  if (backend == NULL) return webgpu_fail(host, TM_ERROR_NO_MEMORY, "no memory for the backend's state");
  memset(backend, 0, sizeof *backend);
  backend->host = host;
  tm_status status = init_locks(backend);
  if (status == TM_OK) {
    status = find_adapters(backend);
    if (status != TM_OK) deinit_locks(backend, WEBGPU_MOST_ADAPTERS);
  }
  if (status == TM_OK) *out_backend = backend;
  else host->free(host->context, backend, sizeof *backend);
  return status;
}

static void backend_shutdown(tm_backend *backend) {
  if (backend == NULL) return;
  const tm_host *host = backend->host;
  webgpu_adapters_release(&backend->library.api, &backend->adapters);
  backend->library.api.InstanceRelease(backend->instance);
  deinit_locks(backend, WEBGPU_MOST_ADAPTERS);
  host->free(host->context, backend, sizeof *backend);
}

/* ---- description ---- */

static tm_status backend_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  if (index >= backend->adapters.count) return TM_END;
  const webgpu_adapter *adapter = &backend->adapters.items[index];
  static const tm_identity host_cores = TM_HOST_CORES;
  const tm_device_info info = {
    .struct_size = out_info->struct_size,
    .uuid = adapter->uuid,
    .resource = adapter->adapter_type == WAPI_ADAPTER_CPU ? host_cores : adapter->uuid,
    .name = { adapter->name, strlen(adapter->name) },
    .driver_version = { adapter->driver, strlen(adapter->driver) },
    .epoch = webgpu_offer_make(&adapter->limits, &backend->standings[index]).epoch,
    .open_ns = OPEN_NS,
    .cost_model_id = COST_MODEL_ID,
    .queue_count = WEBGPU_QUEUES,
    .memory_count = 1,
    .memories = adapter->memories,
  };
  memcpy(out_info, &info, sizeof info < info.struct_size ? sizeof info : info.struct_size);
  return TM_OK;
}

static tm_status backend_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                               tm_answer *const *out_answers) {
  if (index >= backend->adapters.count) return TM_ERROR_DEVICE_LOST;
  const webgpu_offer offer = webgpu_offer_make(&backend->adapters.items[index].limits, &backend->standings[index]);
  for (uint32_t i = 0; i < count; ++i) webgpu_query_answer(&offer, operations[i], out_answers[i]);
  return TM_OK;
}

static tm_status backend_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  if (index >= backend->adapters.count) return webgpu_fail(backend->host, TM_ERROR_DEVICE_LOST, "there is no such adapter");
  return webgpu_device_open(backend, index, out_device);
}

static const tm_accelerator_backend_plugin backend_table = {
  .struct_size = sizeof backend_table,
  .option_count = sizeof options / sizeof options[0],
  .options = options,
  .init = backend_init,
  .shutdown = backend_shutdown,
  .device_info = backend_device_info,
  .open = backend_open,
  .close = webgpu_device_close,
  .query = backend_query,
  .prepare = webgpu_prepare,
  .release = webgpu_release,
  .buffer_create = webgpu_buffer_create,
  .buffer_destroy = webgpu_buffer_destroy,
  .upload = webgpu_upload,
  .download = webgpu_download,
  .copy = webgpu_copy,
  .launch = webgpu_launch,
  .flush = webgpu_flush,
  .wait = webgpu_wait,
  .cancel = webgpu_cancel,
  .memory_stats = webgpu_memory_stats,
};

TM_DEFINE_PLUGIN("webgpu", TM_PLUGIN_BUILD_ID, "Tensormorph", backend_table)
