/* SPDX-License-Identifier: Apache-2.0 */
/* Starts threads that nobody asked for and leaves them to themselves; they tell the host news of the device all the time. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "zoo.h"

#define THREADS 3
#define PAUSE_US 20000u

typedef struct stray {
  const tm_host *host;
  pthread_t      threads[THREADS];
  _Atomic int    stop;
} stray;

static stray the_stray;         /* one context at a time loads it, like a driver that knows one process */

static void *wander(void *argument) {
  stray *self = argument;
  for (uint64_t epoch = 2; !atomic_load(&self->stop); epoch++) {
    self->host->device_event(self->host->context, 0, TM_EVENT_EPOCH_MOVED, epoch);
    self->host->log(self->host->context, TM_LOG_DEBUG, (tm_string)TM_STRING("still here"));
    (void)usleep(PAUSE_US);
  }
  return NULL;
}

static tm_status init_straying(const tm_host *host, tm_backend **out_backend) {
  the_stray.host = host;
  atomic_store(&the_stray.stop, 0);
  const tm_status status = zoo_init(host, out_backend);
  for (int i = 0; i < THREADS && status == TM_OK; i++)
    if (pthread_create(&the_stray.threads[i], NULL, wander, &the_stray) != 0) return TM_ERROR_NO_MEMORY;
  return status;
}

/* The contract says that it joins them. */
static void shutdown_straying(tm_backend *backend) {
  atomic_store(&the_stray.stop, 1);
  for (int i = 0; i < THREADS; i++) (void)pthread_join(the_stray.threads[i], NULL);
  zoo_shutdown(backend);
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = init_straying, .shutdown = shutdown_straying, .device_info = zoo_device_info,
  .query = zoo_query, .prepare = zoo_prepare, .release = zoo_release, .launch = zoo_launch,
};

TM_DEFINE_PLUGIN("zoo_stray_threads", "1", "zoo", table)
