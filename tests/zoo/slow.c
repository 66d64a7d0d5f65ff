/* SPDX-License-Identifier: Apache-2.0 */
/* Promises a nanosecond and takes ten milliseconds. */
#include <threads.h>
#include <time.h>

#include "zoo.h"

static tm_status launch_late(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  thrd_sleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
  return zoo_launch(device, launch, out_ticket);
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, zoo_query, zoo_prepare, launch_late) };

TM_DEFINE_PLUGIN("zoo_slow", "1", "zoo", table)
