/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Never says that its work is done, on an asynchronous device with memory of its own: gives up waiting for ever
 * (IMPATIENT), or gives no ticket to wait for (TICKETLESS).
 */
#include "zoo.h"

#define IMPATIENT 0
#define TICKETLESS 1

static const tm_memory_space own_memory = {
  .struct_size = sizeof own_memory,
  .flags = TM_MEMORY_HOST_POINTER,
  .identity = { { 'u', 'n', 'f', 'i', 'n', 'i', 's', 'h', 'e', 'd' } },
  .name = TM_STRING("memory of its own"),
  .alignment = 1,
  .offset_granule = 1,
  .store_granule = 1,
};
static const tm_memory_space *const memories[] = { &own_memory };

static tm_status describe(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = zoo_device_info(backend, index, out_info);
  out_info->flags = 0;
  if (TM_HAS_MEMBER(out_info, tm_device_info, memories)) out_info->memories = memories;
  return status;
}

static tm_status launch_unfinished(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  (void)device;
  out_ticket->queue = launch->queue;
  out_ticket->value = ZOO_MOOD == TICKETLESS ? 0 : 1;
  return TM_OK;
}

static tm_status wait_impatiently(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  (void)device, (void)tickets, (void)count, (void)timeout_ns;
  return TM_PENDING;
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(describe, zoo_query, zoo_prepare, launch_unfinished),
                                                     .wait = wait_impatiently };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
