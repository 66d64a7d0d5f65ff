/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/inventory.h"

#include <string.h>

#include "base/error.h"
#include "plugin/backend_call.h"
#include "plugin/device.h"
#include "plugin/device_listing.h"
#include "plugin/host_services.h"
#include "plugin/loading.h"
#include "plugin/record_store.h"
#include "plugin/wake.h"

tm_backend_slot *tm_inventory_add_backend(tm_inventory *inventory, const char *name, const char *origin) {
  tm_backend_slot *slot = tm_arena_calloc(&inventory->arena, 1, sizeof *slot);
  tm_backend_slot **grown = slot == NULL ? NULL
                                         : tm_memory_grow(inventory->memory, inventory->backends, inventory->backend_count,
                                                          inventory->backend_count + 1, sizeof *grown);
  if (grown == NULL || tm_mutex_init(&slot->opening) != TM_OK) return NULL;
  slot->inventory = inventory;
  slot->index = inventory->backend_count;
  slot->name = tm_arena_string(&inventory->arena, name, strlen(name));
  slot->origin = tm_arena_string(&inventory->arena, origin, strlen(origin));
  slot->version = slot->vendor = slot->build_id = slot->note = "";
  atomic_init(&slot->reason, "");
  inventory->backends = grown;
  inventory->backends[inventory->backend_count++] = slot;
  return slot->name == NULL || slot->origin == NULL ? NULL : slot;
}

void tm_inventory_set_state(tm_backend_slot *slot, uint32_t state, const char *reason) {
  atomic_store(&slot->state, state);
  const char *kept = tm_arena_string(&slot->inventory->arena, reason, strlen(reason));
  atomic_store(&slot->reason, kept == NULL ? "" : kept);
}

static tm_status prepare(tm_inventory *inventory, tm_error *error) {
  tm_status status = tm_kernel_cache_init(&inventory->kernel_cache, inventory->memory);
  if (status != TM_OK) return tm_fail(error, status, "no memory for the kernel cache");
  status = tm_mutex_init(&inventory->waking);
  if (status == TM_OK) {
    status = tm_mutex_init(&inventory->left_wakes_lock);
    if (status == TM_OK) return TM_OK;
    tm_mutex_deinit(&inventory->waking);
  }
  tm_kernel_cache_deinit(&inventory->kernel_cache);
  return tm_fail(error, status, "no memory for the list of backends");
}

tm_status tm_inventory_create(tm_memory *memory, tm_pool *pool, tm_log log, const tm_inventory_request *request,
                              tm_inventory **out_inventory, tm_error *error) {
  tm_inventory *inventory = tm_memory_calloc(memory, 1, sizeof *inventory);
  if (inventory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends");
  inventory->memory = memory;
  atomic_init(&inventory->pool, pool);
  inventory->log = log;
  tm_arena_init(&inventory->arena, memory);
  atomic_init(&inventory->generation, 1);
  atomic_init(&inventory->is_whole, false);
  atomic_init(&inventory->next_wake_ns, UINT64_MAX);
  inventory->crash_marks = request->crash_marks;
  inventory->is_trial = request->is_trial;
  tm_status status = prepare(inventory, error);
  if (status != TM_OK) {
    tm_memory_free(memory, inventory, sizeof *inventory);
    return status;
  }
  *out_inventory = inventory;
  if (tm_watch_init(&inventory->watch, memory, request->options->patience_ns) != TM_OK)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the watch over calls");
  inventory->records = tm_record_store_open(inventory, request->is_trial ? NULL : request->options->state_folder);
  status = tm_loading_run(inventory, request, error);
  if (status == TM_OK) atomic_store(&inventory->is_whole, true);
  return status;
}

/* What somebody who was cancelled left behind gets so long, all of it together, to end. */
#define PARTING_NS UINT64_C(200000000)

void tm_inventory_stop(tm_inventory *inventory) {
  const uint64_t until_ns = tm_now_ns() + PARTING_NS;
  tm_inventory_end_wakes(inventory, until_ns);
  for (uint32_t i = 0; i < inventory->device_count; i++) tm_device_close(inventory->devices[i], until_ns);
  for (uint32_t i = inventory->backend_count; i-- > 0;) {
    tm_backend_shutdown(inventory->backends[i]);
    inventory->backends[i]->initialized = false;
  }
}

static bool is_stuck(const tm_inventory *inventory) {
  for (uint32_t i = 0; i < inventory->backend_count; i++)
    if (atomic_load(&inventory->backends[i]->is_stuck)) return true;
  return false;
}

/* A backend that was not shut down may have threads that still call the host. */
static bool is_kept_up(const tm_inventory *inventory) {
  for (uint32_t i = 0; i < inventory->backend_count; i++)
    if (inventory->backends[i]->initialized && atomic_load(&inventory->backends[i]->is_kept_up)) return true;
  return false;
}

bool tm_inventory_destroy(tm_inventory *inventory) {
  if (inventory == NULL) return true;
  const bool has_listeners = is_kept_up(inventory);
  tm_inventory_stop(inventory);
  tm_watch_deinit(&inventory->watch);
  if (is_stuck(inventory) || atomic_load(&inventory->is_held)) {
    atomic_store(&inventory->is_gone, true);
    return false;
  }
  for (uint32_t i = 0; i < inventory->backend_count; i++) tm_mutex_deinit(&inventory->backends[i]->opening);
  for (uint32_t i = 0; i < inventory->device_count; i++) tm_device_listing_free(inventory->devices[i]);
  tm_kernel_cache_deinit(&inventory->kernel_cache);
  tm_mutex_deinit(&inventory->left_wakes_lock);
  tm_mutex_deinit(&inventory->waking);
  tm_memory *memory = inventory->memory;
  if (has_listeners) {
    atomic_store(&inventory->is_gone, true);
    return true;
  }
  tm_memory_free(memory, inventory->devices, inventory->device_count * sizeof *inventory->devices);
  tm_memory_free(memory, inventory->backends, inventory->backend_count * sizeof *inventory->backends);
  tm_arena_deinit(&inventory->arena);
  tm_memory_free(memory, inventory, sizeof *inventory);
  return true;
}

void tm_inventory_retire(tm_device_slot *device, uint32_t state) {
  uint32_t ready = TM_DEVICE_READY;
  if (!atomic_compare_exchange_strong(&device->state, &ready, state)) return;
  atomic_fetch_add(&device->backend->inventory->generation, 1);
  tm_log_write(&device->backend->inventory->log, TM_LOG_WARNING, "%s is %s and not used any more", device->name,
               state == TM_DEVICE_LOST ? "lost" : "quarantined");
}
