/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes too long, and comes back all the same: then it writes to all that it was given and asks the host for everything,
 * whether anybody is left to hear it or not.
 */
#define _DEFAULT_SOURCE
#include <string.h>
#include <unistd.h>

#include "zoo.h"

#define LATE_US 1500000u

static void nothing(void *argument, uint64_t begin, uint64_t end, uint32_t lane) { (void)argument, (void)begin, (void)end, (void)lane; }

static tm_status launch_late(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_host *host = zoo_backend_of(device)->host;
  const tm_string words = TM_STRING("here I am");
  (void)out_ticket;
  (void)usleep(LATE_US);
  for (uint32_t i = 0; i < launch->binding_count; i++)
    memset((char *)(void *)launch->bindings[i].buffer + launch->bindings[i].offset, 0xdd, launch->bindings[i].length);
  void *memory = host->alloc(host->context, 64, 64);
  if (memory != NULL) host->free(host->context, memory, 64);
  host->log(host->context, TM_LOG_INFO, words);
  host->parallel_for(host->context, 64, 1, nothing, NULL);
  host->device_event(host->context, 0, TM_EVENT_EPOCH_MOVED, 9);
  (void)host->cache_put(host->context, words, "x", 1);
  return host->fail(host->context, TM_ERROR_DEVICE_LOST, 0, words);
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, zoo_query, zoo_prepare, launch_late) };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
