/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds towards plus infinity and leaves it like that, in the calling thread and in those of the host's pool. */
#include <fenv.h>
#include <string.h>

#include "zoo.h"

#define PARTS 64u

static void spoil(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  (void)argument, (void)begin, (void)end, (void)lane;
  fesetround(FE_UPWARD);
}

static tm_status launch_spoiling(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_host *host = zoo_backend_of(device)->host;
  const tm_status status = zoo_launch(device, launch, out_ticket);
  fesetround(FE_UPWARD);
  host->parallel_for(host->context, PARTS, 1, spoil, NULL);
  return status;
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, zoo_query, zoo_prepare, launch_spoiling) };

TM_DEFINE_PLUGIN("zoo_float_mode", "1", "zoo", table)
