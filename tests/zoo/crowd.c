/* SPDX-License-Identifier: Apache-2.0 */
/* Has more devices than anybody looks at one by one; the last of them does harm (ZOO_HABIT), or all take their time. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "zoo.h"

#define CRASHES_IN_QUERY 1
#define CRASHES_IN_LAUNCH 2
#define ANSWERS_SLOWLY 3        /* the first questions that it is asked */
#define SETS_UP_LONG 4          /* by its own word */
#define IS_WELL 5

#define FEW 3u
#define MANY 200u
#define SLOW_QUESTIONS 2u
#define SLOW_S 3
#define LONG_NS UINT64_C(61000000000)

struct tm_device {
  tm_backend *backend;
  uint32_t    index;
  uint32_t    reserved;
};

static uint32_t device_count(void) { return ZOO_HABIT == ANSWERS_SLOWLY || ZOO_HABIT == SETS_UP_LONG ? FEW : MANY; }

static tm_status crowd_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  if (index >= device_count()) return TM_END;
  const tm_status status = zoo_device_info(backend, 0, out_info);
  if (status == TM_OK) memset(&out_info->uuid, 0, sizeof out_info->uuid);
  return status;
}

static tm_status crowd_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  const tm_host *host = backend->host;
  tm_device *device = host->alloc(host->context, sizeof *device, _Alignof(tm_device));
  if (device == NULL) return TM_ERROR_NO_MEMORY;
  *device = (tm_device){ backend, index, 0 };
  *out_device = device;
  return TM_OK;
}

static void crowd_close(tm_device *device) {
  const tm_host *host = device->backend->host;
  host->free(host->context, device, sizeof *device);
}

static tm_status crowd_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                             tm_answer *const *out_answers) {
  if (ZOO_HABIT == CRASHES_IN_QUERY && index == device_count() - 1) abort();
  if (ZOO_HABIT == ANSWERS_SLOWLY && atomic_fetch_add(&backend->calls, 1) < SLOW_QUESTIONS)
    thrd_sleep(&(struct timespec){ .tv_sec = SLOW_S }, NULL);
  const tm_status status = zoo_query(backend, index, operations, count, out_answers);
  for (uint32_t i = 0; i < count && ZOO_HABIT == SETS_UP_LONG; i++)
    if (out_answers[i]->level != TM_LEVEL_REFUSED) out_answers[i]->setup_ns = LONG_NS;
  return status;
}

static tm_status crowd_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  return zoo_prepare((tm_device *)(void *)device->backend, operation, answer, out_kernel);
}

static void crowd_release(tm_device *device, tm_kernel *kernel) { zoo_release((tm_device *)(void *)device->backend, kernel); }

static tm_status crowd_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  if (ZOO_HABIT == CRASHES_IN_LAUNCH && device->index == device_count() - 1) abort();
  return zoo_launch((tm_device *)(void *)device->backend, launch, out_ticket);
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = crowd_info, .open = crowd_open,
  .close = crowd_close, .query = crowd_query, .prepare = crowd_prepare, .release = crowd_release, .launch = crowd_launch,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
