/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process, once it is let in, in launch number ZOO_CRASHES_AT, counted from 1. */
#include <stdlib.h>

#include "zoo.h"

static tm_status launch_crashing(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  if (!zoo_is_on_trial() && atomic_fetch_add(&zoo_backend_of(device)->calls, 1) + 1 == ZOO_CRASHES_AT) abort();
  return zoo_launch(device, launch, out_ticket);
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, zoo_query, zoo_prepare, launch_crashing) };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
