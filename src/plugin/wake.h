/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wake.h - backends that were listed from a record and not loaded: when and how they are.  See
 * docs/decisions/008-lazy-loading.md.  [any thread]
 */
#ifndef TM_PLUGIN_WAKE_H
#define TM_PLUGIN_WAKE_H

#include "plugin/inventory.h"

static inline bool tm_backend_is_asleep(const tm_backend_slot *slot) {
  return atomic_load_explicit(&slot->is_asleep, memory_order_acquire);
}

/* While the inventory is filled: the slot stays as it is until it is woken. */
void tm_backend_put_to_sleep(tm_backend_slot *slot);

/* Loads and initializes it if it sleeps.  false: it is not what was listed, or cannot start; its state then says so. */
bool tm_backend_wake(tm_backend_slot *slot);

/* Wakes everybody; `true` if somebody slept. */
bool tm_inventory_wake_all(tm_inventory *inventory);
/* Wakes those for whom `work_ns` of work are worth it. */
bool tm_inventory_wake_worth(tm_inventory *inventory, uint64_t work_ns);

#endif
