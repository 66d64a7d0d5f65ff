/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl_backend.h"

#include <string.h>

#include "opencl_discovery.h"
#include "opencl_handlers.h"
#include "opencl_error.h"
#include "opencl_launch.h"
#include "opencl_library.h"
#include "opencl_memory.h"
#include "opencl_program.h"
#include "opencl_queue.h"

#define OPTION(name_, type_, default_, help_)                                                                  \
  { .struct_size = sizeof(tm_option), .type = TM_OPTION_##type_, .name = TM_STRING(name_),                     \
    .default_value = TM_STRING(default_), .help = TM_STRING(help_) }

static const tm_option library_option = OPTION("library", TEXT, "", "Path of the OpenCL loader; empty: the usual names.");
static const tm_option platform_option = OPTION("platform", TEXT, "", "Only platforms with this in their name.");
static const tm_option device_option = OPTION("device", TEXT, "", "Only devices with this in their name.");
static const tm_option allocation_option =
    OPTION("max_allocation_bytes", INTEGER, "0", "Largest buffer, if that is less than the device's own limit; 0: that one.");
static const tm_option special_option =
    OPTION("specialize", SWITCH, "1", "Compile a kernel for each operation and its formats: faster, with more compilations.");
static const tm_option f64_option = OPTION("f64", SWITCH, "1", "Use f64 arithmetic where a device has it.");
static const tm_option cores_option =
    OPTION("own_cores", SWITCH, "0", "A processor's device runs on cores that the host was kept from: both work at the same time.");
static const tm_option *const options[] = { &library_option, &platform_option, &device_option, &allocation_option,
                                            &special_option, &f64_option,      &cores_option };

/* ---- options ---- */

static tm_string text_option(const tm_host *host, const tm_option *option) {
  tm_string value = option->default_value;
  if (host->config_get(host->context, option->name, &value) != TM_OK) value = option->default_value;
  return value;
}

/* The host has checked that it is an integer; TM_ERROR_ARGUMENT if it is negative or beyond 64 bits. */
static tm_status integer_option(const tm_host *host, const tm_option *option, uint64_t *out_number) {
  const tm_string text = text_option(host, option);
  uint64_t number = 0;
  for (uint64_t i = 0; i < text.length; i++) {
    const char digit = text.data[i];
    if (digit < '0' || digit > '9' || number > (UINT64_MAX - 9) / 10)
      return opencl_fail(host, TM_ERROR_ARGUMENT, 0, "option %s: '%.*s' is no number of bytes", option->name.data,
                         (int)text.length, text.data);
    number = 10 * number + (uint64_t)(digit - '0');
  }
  *out_number = number;
  return TM_OK;
}

static uint32_t switch_option(const tm_host *host, const tm_option *option) {
  const tm_string text = text_option(host, option);
  return text.length == 1 && text.data[0] == '1';
}

/* ---- the backend ---- */

static tm_status find_devices(tm_backend *backend) {
  const tm_host *host = backend->host;
  opencl_filter filter = { .platform = text_option(host, &platform_option), .device = text_option(host, &device_option),
                           .ignores_f64 = !switch_option(host, &f64_option), .specializes = switch_option(host, &special_option),
                           .owns_cores = switch_option(host, &cores_option) };
  tm_status status = integer_option(host, &allocation_option, &filter.max_allocation_bytes);
  if (status == TM_OK) status = opencl_library_open(host, text_option(host, &library_option), &backend->api);
  return status == TM_OK ? opencl_discover(backend, &filter) : status;
}

static tm_status opencl_init(const tm_host *host, tm_backend **out_backend) {
  tm_backend *backend = opencl_alloc(host, sizeof *backend);
  if (backend == NULL) return opencl_fail(host, TM_ERROR_NO_MEMORY, 0, "no memory for the backend");
  memset(backend, 0, sizeof *backend);
  backend->host = host;
  opencl_handlers *handlers = opencl_handlers_save();
  const tm_status status = find_devices(backend);
  opencl_handlers_restore(handlers);
  if (status == TM_OK) *out_backend = backend;
  else opencl_free(host, backend, sizeof *backend);
  return status;
}

static void opencl_shutdown(tm_backend *backend) { opencl_free(backend->host, backend, sizeof *backend); }

static tm_status opencl_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  if (index >= backend->device_count) return TM_END;
  opencl_found *found = &backend->devices[index];
  const tm_device_info info = {
    .struct_size = out_info->struct_size,
    .uuid = found->uuid,
    .resource = found->resource,
    .name = { found->name, strlen(found->name) },
    .driver_version = { found->driver, strlen(found->driver) },
    .epoch = opencl_facts(found).epoch,
    .open_ns = 20000000,
    .cost_model_id = 1,
    .queue_count = OPENCL_QUEUES,
    .memory_count = 1,
    .memories = found->spaces,
  };
  memcpy(out_info, &info, sizeof info < info.struct_size ? sizeof info : info.struct_size);
  return TM_OK;
}

/* ---- devices ---- */

static void opencl_close(tm_device *device) {
  const tm_host *host = device->backend->host;
  for (uint32_t i = 0; i < OPENCL_QUEUES; i++) opencl_queue_close(device, &device->queues[i]);
  opencl_programs_release(device);
  if (device->context != NULL) (void)device->backend->api.ReleaseContext(device->context);
  pthread_mutex_destroy(&device->program_lock);
  opencl_free(host, device, sizeof *device);
}

static tm_status open_context(tm_device *device) {
  int32_t error = OPENCL_SUCCESS;
  device->context = device->backend->api.CreateContext(NULL, 1, &device->found->id, NULL, NULL, &error);
  if (error != OPENCL_SUCCESS || device->context == NULL) return opencl_fail_call(device, "clCreateContext", error);
  tm_status status = TM_OK;
  for (uint32_t i = 0; i < OPENCL_QUEUES && status == TM_OK; i++) status = opencl_queue_open(device, &device->queues[i]);
  return status;
}

static tm_status opencl_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  if (index >= backend->device_count) return TM_ERROR_DEVICE_LOST;
  tm_device *device = opencl_alloc(backend->host, sizeof *device);
  if (device == NULL) return opencl_fail(backend->host, TM_ERROR_NO_MEMORY, 0, "no memory for a device");
  memset(device, 0, sizeof *device);
  device->backend = backend;
  device->found = &backend->devices[index];
  pthread_mutex_init(&device->program_lock, NULL);
  const tm_status status = open_context(device);
  if (status == TM_OK) *out_device = device;
  else opencl_close(device);
  return status;
}

static tm_status opencl_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                              tm_answer *const *out_answers) {
  if (index >= backend->device_count) return TM_ERROR_DEVICE_LOST;
  const kernel_device facts = opencl_facts(&backend->devices[index]);
  for (uint32_t i = 0; i < count; i++) kernel_query_answer(&facts, operations[i], out_answers[i]);
  return TM_OK;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table,
  .option_count = sizeof options / sizeof options[0],
  .options = options,
  .init = opencl_init,
  .shutdown = opencl_shutdown,
  .device_info = opencl_device_info,
  .open = opencl_open,
  .close = opencl_close,
  .query = opencl_query,
  .prepare = opencl_prepare,
  .release = opencl_release,
  .buffer_create = opencl_buffer_create,
  .buffer_destroy = opencl_buffer_destroy,
  .upload = opencl_upload,
  .download = opencl_download,
  .copy = opencl_copy,
  .launch = opencl_launch,
  .flush = opencl_flush,
  .wait = opencl_wait,
  .cancel = opencl_cancel,
};

TM_DEFINE_PLUGIN("opencl", "0.1", "Tensormorph", table)
