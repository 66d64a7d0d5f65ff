/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/wake.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "plugin/bring_up.h"
#include "plugin/device_call.h"
#include "plugin/device_listing.h"
#include "plugin/enumeration.h"
#include "plugin/library.h"
#include "plugin/record_store.h"
#include "plugin/table.h"

/* Beyond this an estimate of opening is no reason not to look. */
#define LARGEST_WAKE_NS (UINT64_C(2) * 1000000000)
/* No plugin is loaded for less. */
#define LEAST_WAKE_NS UINT64_C(1000000)

#define LOOK_NS UINT64_C(1000000)

/* ---- what it costs ---- */

/* The cheapest of its devices to open counts: one may be enough. */
static uint64_t price(const tm_backend_slot *slot) {
  uint64_t open_ns = UINT64_MAX;
  for (uint32_t i = 0; i < slot->device_count; i++)
    open_ns = tm_min_u64(open_ns, slot->inventory->devices[slot->first_device + i]->info.open_ns);
  const uint64_t whole = tm_min_u64(open_ns, LARGEST_WAKE_NS) + tm_min_u64(slot->wake_ns, LARGEST_WAKE_NS);
  return tm_min_u64(tm_max_u64(whole, LEAST_WAKE_NS), LARGEST_WAKE_NS);
}

/* The one that costs least to wake; NULL: all are awake. */
static tm_backend_slot *find_cheapest(const tm_inventory *inventory) {
  tm_backend_slot *found = NULL;
  for (uint32_t i = 0; i < inventory->backend_count; i++) {
    tm_backend_slot *slot = inventory->backends[i];
    if (tm_backend_is_asleep(slot) && (found == NULL || price(slot) < price(found))) found = slot;
  }
  return found;
}

/* All waking together must be worth the work: sixteen backends are not woken for what one costs. */
static void update_next_wake(tm_inventory *inventory) {
  const tm_backend_slot *next = find_cheapest(inventory);
  atomic_store(&inventory->next_wake_ns, next == NULL ? UINT64_MAX : atomic_load(&inventory->woken_ns) + price(next));
}

void tm_backend_put_to_sleep(tm_backend_slot *slot) {
  atomic_store(&slot->is_asleep, true);
  atomic_fetch_add(&slot->inventory->asleep_count, 1);
  update_next_wake(slot->inventory);
}

/* ---- is it what was listed? ---- */

/* A list of its own for what the backend says now, so that nothing that others read has to change. */
typedef struct second_look {
  tm_inventory    inventory;
  tm_backend_slot slot;
} second_look;

static tm_status second_look_create(tm_backend_slot *slot, second_look **out_look, tm_error *error) {
  second_look *look = tm_memory_calloc(slot->inventory->memory, 1, sizeof *look);
  if (look == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to look at a backend anew");
  *out_look = look;
  look->inventory.memory = slot->inventory->memory;
  look->inventory.log = slot->inventory->log;
  tm_arena_init(&look->inventory.arena, slot->inventory->memory);
  look->slot.inventory = &look->inventory;
  look->slot.name = slot->name;
  look->slot.path = slot->path;
  atomic_init(&look->slot.reason, "");
  return tm_watch_init(&look->inventory.watch, slot->inventory->memory, slot->inventory->watch.patience_ns);
}

/* A call that never came back still has it. */
static void second_look_destroy(second_look *look) {
  if (look == NULL) return;
  tm_watch_deinit(&look->inventory.watch);
  if (atomic_load(&look->slot.is_stuck)) return;
  for (uint32_t i = 0; i < look->inventory.device_count; i++) tm_device_listing_free(look->inventory.devices[i]);
  tm_memory_free(look->inventory.memory, look->inventory.devices, look->inventory.device_count * sizeof *look->inventory.devices);
  tm_arena_deinit(&look->inventory.arena);
  tm_memory_free(look->inventory.memory, look, sizeof *look);
}

static bool says_the_same(const tm_backend_slot *a, const tm_backend_slot *b) {
  tm_field_writer first, second;
  tm_field_writer_init(&first, a->inventory->memory);
  tm_field_writer_init(&second, a->inventory->memory);
  tm_enumeration_write_identity(a, &first);
  tm_enumeration_write_identity(b, &second);
  const bool same = !first.failed && !second.failed && first.length == second.length &&
                    memcmp(first.bytes, second.bytes, (size_t)first.length) == 0;
  tm_field_writer_deinit(&first);
  tm_field_writer_deinit(&second);
  return same;
}

static void take_epochs(tm_backend_slot *slot, const second_look *look) {
  for (uint32_t i = 0; i < slot->device_count; i++) {
    _Atomic uint64_t *epoch = &slot->inventory->devices[slot->first_device + i]->epoch;
    const uint64_t now = look->inventory.devices[i]->info.epoch;
    uint64_t known = atomic_load(epoch);
    while (known < now && !atomic_compare_exchange_weak(epoch, &known, now)) {
    }
  }
}

/* ---- waking ---- */

/* Whoever asked left it behind, and the context went: nothing of the application's may be used any more. */
static bool is_gone(const tm_inventory *inventory) { return atomic_load(&inventory->is_gone); }

static tm_status find_header(const tm_backend_slot *slot, const tm_plugin_header **out_header, tm_error *error) {
  if (slot->path == NULL) {
    *out_header = slot->entry(TM_ABI_MAJOR, TM_ABI_MINOR);
    return TM_OK;
  }
  tm_file_identity now;
  TM_TRY(tm_library_identify(slot->path, &now, error));
  if (memcmp(&now, &slot->identity, sizeof now) != 0)
    return tm_fail(error, TM_ERROR_CHANGED, "its file is another one than when it was listed");
  return tm_plugin_library_open(slot->path, out_header, error);
}

/* The table is written here and not by the second look: its functions are what the slot is called through later. */
static tm_status start(tm_backend_slot *slot, second_look *look, tm_error *error) {
  static const tm_context_options none = { .struct_size = sizeof none };
  const tm_plugin_header *header = NULL;
  TM_TRY(find_header(slot, &header, error));
  TM_TRY(tm_bring_up_accept(&look->slot, header, error));
  slot->table = look->slot.table;
  TM_TRY(tm_bring_up_init(slot, error));
  if (is_gone(slot->inventory)) return TM_ERROR_CANCELLED;
  look->slot.table = slot->table;
  look->slot.handle = slot->handle;
  const tm_status listed = tm_device_listing_append(&look->slot, &none, error);
  if (atomic_load(&look->slot.is_stuck)) return tm_backend_give_up(slot, look->slot.stuck_reason, error);
  if (listed != TM_OK) return listed;
  if (!says_the_same(slot, &look->slot))
    return tm_fail(error, TM_ERROR_CHANGED, "it is not what it was when it was listed; the next start lists it anew");
  take_epochs(slot, look);
  return TM_OK;
}

static void give_up(tm_backend_slot *slot, tm_status status, const tm_error *error) {
  snprintf(slot->wake_reason, sizeof slot->wake_reason, "%.250s", error->text[0] == '\0' ? tm_status_name(status) : error->text);
  tm_log_write(&slot->inventory->log, TM_LOG_WARNING, "%s is not used: %s", slot->name, slot->wake_reason);
  atomic_store(&slot->reason, slot->wake_reason);
  const uint32_t refused = atomic_load(&slot->is_stuck) ? TM_BACKEND_QUARANTINED : TM_BACKEND_REFUSED;
  atomic_store(&slot->state, status == TM_ERROR_NO_DEVICE ? TM_BACKEND_UNAVAILABLE : refused);
  tm_record_store_drop(slot->inventory, slot->record);
}

static void wake_locked(tm_backend_slot *slot) {
  second_look *look = NULL;
  tm_error error = TM_ERROR_INIT;
  tm_status status = second_look_create(slot, &look, &error);
  if (status == TM_OK) status = start(slot, look, &error);
  if (is_gone(slot->inventory)) return;
  second_look_destroy(look);
  if (status != TM_OK) give_up(slot, status, &error);
  atomic_store_explicit(&slot->is_asleep, false, memory_order_release);
  atomic_fetch_sub(&slot->inventory->asleep_count, 1);
  update_next_wake(slot->inventory);
  atomic_fetch_add(&slot->inventory->generation, 1);
}

/* ---- for somebody who may have to go ---- */

/* One backend, or (NULL) those that the work is worth. */
typedef struct tm_wake_request {
  struct tm_wake_request *next;         /* in the list of those that were left */
  tm_left_call     left;
  tm_inventory    *inventory;
  tm_backend_slot *slot;
  uint64_t         work_ns;
  bool             any;                 /* somebody was woken */
} wake_request;

static bool wake_one(tm_backend_slot *slot) {
  tm_mutex_lock(&slot->inventory->waking);
  const bool sleeps = tm_backend_is_asleep(slot);
  if (sleeps) wake_locked(slot);
  tm_mutex_unlock(&slot->inventory->waking);
  return sleeps;
}

static bool wake_worth(tm_inventory *inventory, uint64_t work_ns) {
  bool any = false;
  while (work_ns >= atomic_load(&inventory->next_wake_ns) && !is_gone(inventory)) {
    tm_mutex_lock(&inventory->waking);
    /* Others may have woken it while this one waited; then the rest is worth less. */
    tm_backend_slot *slot = find_cheapest(inventory);
    if (slot != NULL && work_ns >= atomic_load(&inventory->next_wake_ns)) {
      atomic_fetch_add(&inventory->woken_ns, price(slot));
      wake_locked(slot);
    }
    tm_mutex_unlock(&inventory->waking);
    if (slot == NULL) break;
    any = true;
  }
  return any;
}

static void carry_out(void *argument) {
  wake_request *request = argument;
  if (is_gone(request->inventory)) return;
  request->any = request->slot != NULL ? wake_one(request->slot) : wake_worth(request->inventory, request->work_ns);
}

static void put_left(tm_inventory *inventory, wake_request *request) {
  tm_mutex_lock(&inventory->left_wakes_lock);
  request->next = inventory->left_wakes;
  inventory->left_wakes = request;
  tm_mutex_unlock(&inventory->left_wakes_lock);
}

static void settle_left(tm_inventory *inventory) {
  tm_mutex_lock(&inventory->left_wakes_lock);
  for (wake_request **link = &inventory->left_wakes; *link != NULL;) {
    wake_request *one = *link;
    if (tm_watch_look(&inventory->watch, &one->left) == TM_WORKER_LEFT) {
      link = &one->next;
      continue;
    }
    *link = one->next;
    tm_memory_free(inventory->memory, one, sizeof *one);
  }
  tm_mutex_unlock(&inventory->left_wakes_lock);
}

/* Each call into the backend has its own limit; the whole has none. */
static bool wake(const wake_request *wanted, const _Atomic uint32_t *cancelled) {
  tm_inventory *inventory = wanted->inventory;
  wake_request here = *wanted;
  wake_request *request = cancelled == NULL ? NULL : tm_memory_try_alloc(inventory->memory, sizeof *request, 0);
  if (request == NULL) {
    carry_out(&here);
    return here.any;
  }
  settle_left(inventory);
  *request = *wanted;
  const tm_worker_patience patience = { UINT64_MAX, cancelled };
  if (tm_watch_call(&inventory->watch, carry_out, request, &patience, &request->left) != TM_WORKER_BACK) {
    put_left(inventory, request);
    return true;
  }
  const bool any = request->any;
  tm_memory_free(inventory->memory, request, sizeof *request);
  return any;
}

static bool has_left(tm_inventory *inventory) {
  tm_mutex_lock(&inventory->left_wakes_lock);
  const bool any = inventory->left_wakes != NULL;
  tm_mutex_unlock(&inventory->left_wakes_lock);
  return any;
}

void tm_inventory_end_wakes(tm_inventory *inventory, uint64_t until_ns) {
  for (settle_left(inventory); has_left(inventory) && tm_now_ns() < until_ns; settle_left(inventory)) tm_sleep_ns(LOOK_NS);
  for (wake_request *one = inventory->left_wakes; one != NULL; one = one->next) {
    for (uint32_t i = 0; i < inventory->backend_count; i++) {
      tm_backend_slot *slot = inventory->backends[i];
      if (tm_backend_is_asleep(slot) && (one->slot == NULL || one->slot == slot)) atomic_store(&slot->is_stuck, true);
    }
    tm_worker_forget(&one->left);
    atomic_store(&inventory->is_held, true);
  }
}

/* ---- what others call ---- */

bool tm_backend_wake(tm_backend_slot *slot, const _Atomic uint32_t *cancelled) {
  if (tm_backend_is_asleep(slot)) (void)wake(&(wake_request){ .inventory = slot->inventory, .slot = slot }, cancelled);
  return !tm_backend_is_asleep(slot) && atomic_load(&slot->state) == TM_BACKEND_READY;
}

bool tm_inventory_wake_worth(tm_inventory *inventory, uint64_t work_ns, const _Atomic uint32_t *cancelled) {
  if (work_ns < atomic_load(&inventory->next_wake_ns)) return false;
  return wake(&(wake_request){ .inventory = inventory, .work_ns = work_ns }, cancelled);
}

bool tm_inventory_wake_all(tm_inventory *inventory, const _Atomic uint32_t *cancelled) {
  bool any = false;
  for (uint32_t i = 0; i < inventory->backend_count; i++) {
    if (cancelled != NULL && atomic_load_explicit(cancelled, memory_order_relaxed) != 0) break;
    if (!tm_backend_is_asleep(inventory->backends[i])) continue;
    (void)tm_backend_wake(inventory->backends[i], cancelled);
    any = true;
  }
  return any;
}
