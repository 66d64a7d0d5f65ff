/* SPDX-License-Identifier: Apache-2.0 */
/* Wants every call with its device from the thread that opened it (TM_DEVICE_OPENING_THREAD), and checks it. */
#include <pthread.h>

#include "zoo.h"

struct tm_device {
  tm_backend *backend;
  pthread_t   opener;
};

static struct tm_device the_device;

static tm_status describe(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = zoo_device_info(backend, index, out_info);
  out_info->flags |= TM_DEVICE_OPENING_THREAD;
  return status;
}

static tm_status check(const tm_device *device) {
  const tm_host *host = device->backend->host;
  if (pthread_equal(device->opener, pthread_self())) return TM_OK;
  return host->fail(host->context, TM_ERROR_INTERNAL, 0, (tm_string)TM_STRING("called from a stranger's thread"));
}

static tm_status open_here(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  the_device = (struct tm_device){ backend, pthread_self() };
  *out_device = &the_device;
  return TM_OK;
}

static void close_here(tm_device *device) {
  const tm_host *host = device->backend->host;
  if (check(device) != TM_OK) host->log(host->context, TM_LOG_ERROR, (tm_string)TM_STRING("closed by a stranger"));
}

static tm_status prepare_here(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const tm_status status = check(device);
  return status != TM_OK ? status : zoo_prepare((tm_device *)(void *)device->backend, operation, answer, out_kernel);
}

static void release_here(tm_device *device, tm_kernel *kernel) {
  const tm_host *host = device->backend->host;
  if (check(device) != TM_OK) host->log(host->context, TM_LOG_ERROR, (tm_string)TM_STRING("released by a stranger"));
  zoo_release((tm_device *)(void *)device->backend, kernel);
}

static tm_status launch_here(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_status status = check(device);
  return status != TM_OK ? status : zoo_launch(device, launch, out_ticket);
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = describe, .open = open_here,
  .close = close_here, .query = zoo_query, .prepare = prepare_here, .release = release_here, .launch = launch_here,
};

TM_DEFINE_PLUGIN("zoo_own_thread", "1", "zoo", table)
