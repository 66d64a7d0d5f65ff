/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the host's memory with every launch and gives none back. */
#include "zoo.h"

#define LEAK_BYTES (UINT64_C(64) << 10)

static tm_status launch_leaking(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_host *host = zoo_backend_of(device)->host;
  if (host->alloc(host->context, LEAK_BYTES, 64) == NULL) return TM_ERROR_NO_MEMORY;
  return zoo_launch(device, launch, out_ticket);
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, zoo_query, zoo_prepare, launch_leaking) };

TM_DEFINE_PLUGIN("zoo_leaker", "1", "zoo", table)
