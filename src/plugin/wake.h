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

/* `cancelled`: not 0: the caller wants to go, and does so at once, while the waking goes on; NULL: it never does. */

/* Loads and initializes it if it sleeps.  false: it is not what was listed, or cannot start, as its state then says; or the
   caller was cancelled. */
bool tm_backend_wake(tm_backend_slot *slot, const _Atomic uint32_t *cancelled);

/* Wakes everybody, one after the other, as long as the caller does not want to go; `true` if somebody slept and was woken. */
bool tm_inventory_wake_all(tm_inventory *inventory, const _Atomic uint32_t *cancelled);
/* Wakes those for whom `work_ns` of work are worth it. */
bool tm_inventory_wake_worth(tm_inventory *inventory, uint64_t work_ns, const _Atomic uint32_t *cancelled);

/* The inventory goes: what callers left behind gets until then; whose waking is not over is stuck. */
void tm_inventory_end_wakes(tm_inventory *inventory, uint64_t until_ns);

#endif
