/* SPDX-License-Identifier: Apache-2.0 */
/* Tells of changes of its devices from a thread of its own, from the first moment to the last. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "../sanitized.h"
#include "zoo.h"

#define DEVICES TM_WHOLE_OR_PART(200u, 70u)
#define AT_ONCE 64u             /* events; then others get to run, and what so many devices answered counts for a moment */

/* In front of what zoo.h knows, so that its functions take it. */
typedef struct eager_backend {
  struct tm_backend zoo;
  pthread_t         thread;
  _Atomic int       stopping;
} eager_backend;

static void *tell(void *argument) {
  eager_backend *eager = argument;
  const tm_host *host = eager->zoo.host;
  const struct timespec moment = { 0, 1000000 };
  for (uint32_t i = 0; atomic_load(&eager->stopping) == 0; i++) {
    host->device_event(host->context, i % DEVICES, TM_EVENT_EPOCH_MOVED, 1);
    if (i % AT_ONCE == AT_ONCE - 1) (void)nanosleep(&moment, NULL);
  }
  return NULL;
}

static tm_status init_eager(const tm_host *host, tm_backend **out_backend) {
  eager_backend *eager = calloc(1, sizeof *eager);
  if (eager == NULL) return TM_ERROR_NO_MEMORY;
  eager->zoo.host = host;
  if (pthread_create(&eager->thread, NULL, tell, eager) != 0) {
    free(eager);
    return TM_ERROR_NO_MEMORY;
  }
  *out_backend = &eager->zoo;
  return TM_OK;
}

static void shutdown_eager(tm_backend *backend) {
  eager_backend *eager = (eager_backend *)(void *)backend;
  atomic_store(&eager->stopping, 1);
  pthread_join(eager->thread, NULL);
  free(eager);
}

static tm_status many_devices(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  return index < DEVICES ? zoo_device_info(backend, 0, out_info) : TM_END;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = init_eager, .shutdown = shutdown_eager, .device_info = many_devices, .query = zoo_query,
  .prepare = zoo_prepare, .release = zoo_release, .launch = zoo_launch,
};

TM_DEFINE_PLUGIN("zoo_eager", "1", "zoo", table)
