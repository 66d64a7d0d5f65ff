/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/setup_ledger.h"

#include <string.h>

#include "base/checked.h"

/* A power of two.  Beyond three quarters all is forgotten: what was paid is then priced once more, which harms nobody. */
#define ENTRIES 4096u

tm_status tm_setup_ledger_init(tm_setup_ledger *ledger, tm_memory *memory) {
  memset(ledger, 0, sizeof *ledger);
  ledger->entries = tm_memory_calloc(memory, ENTRIES, sizeof *ledger->entries);
  if (ledger->entries == NULL) return TM_ERROR_NO_MEMORY;
  if (tm_mutex_init(&ledger->lock) != TM_OK) {
    tm_memory_free(memory, ledger->entries, ENTRIES * sizeof *ledger->entries);
    return TM_ERROR_NO_MEMORY;
  }
  atomic_init(&ledger->kept_generation, 1);
  ledger->memory = memory;
  return TM_OK;
}

void tm_setup_ledger_deinit(tm_setup_ledger *ledger) {
  if (ledger->memory == NULL) return;
  tm_memory_free(ledger->memory, ledger->entries, ENTRIES * sizeof *ledger->entries);
  tm_mutex_deinit(&ledger->lock);
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

uint64_t tm_setup_key_of(uint64_t first, uint64_t second, uint64_t third) {
  return mix(mix(mix(UINT64_C(0x8ebc6af09c88c6e3), first), second), third) | 1u;
}

static tm_setup_entry *find(const tm_setup_ledger *ledger, uint64_t key) {
  for (uint64_t i = key >> 1;; i++) {
    tm_setup_entry *entry = &ledger->entries[i & (ENTRIES - 1)];
    if (entry->key == key || entry->key == 0) return entry;
  }
}

static tm_setup_entry *find_or_add(tm_setup_ledger *ledger, uint64_t key) {
  tm_setup_entry *entry = find(ledger, key);
  if (entry->key != 0) return entry;
  if (ledger->count >= ENTRIES / 4 * 3) {
    memset(ledger->entries, 0, ENTRIES * sizeof *ledger->entries);
    ledger->count = 0;
    entry = find(ledger, key);
  }
  ledger->count++;
  entry->key = key;
  return entry;
}

tm_setup_due tm_setup_ledger_due(tm_setup_ledger *ledger, const tm_setup_item *items, uint32_t count) {
  tm_setup_due due = { 0, 0 };
  tm_mutex_lock(&ledger->lock);
  for (uint32_t i = 0; i < count; i++) {
    const tm_setup_entry *entry = find(ledger, items[i].key);
    if (entry->is_paid != 0) continue;
    due.cost_ns += items[i].cost_ns;
    due.earned_ns += tm_min_u64(entry->earned_ns, items[i].cost_ns);
  }
  tm_mutex_unlock(&ledger->lock);
  return due;
}

void tm_setup_ledger_credit(tm_setup_ledger *ledger, const tm_setup_item *items, uint32_t count, uint64_t ns) {
  tm_mutex_lock(&ledger->lock);
  for (uint32_t i = 0; i < count && ns != 0; i++) {
    tm_setup_entry *entry = find_or_add(ledger, items[i].key);
    if (entry->is_paid != 0 || entry->earned_ns >= items[i].cost_ns) continue;
    const uint64_t part = tm_min_u64(ns, items[i].cost_ns - entry->earned_ns);
    entry->earned_ns += part;
    ns -= part;
  }
  tm_mutex_unlock(&ledger->lock);
}

void tm_setup_ledger_pay(tm_setup_ledger *ledger, const tm_setup_item *items, uint32_t count) {
  tm_mutex_lock(&ledger->lock);
  for (uint32_t i = 0; i < count; i++) find_or_add(ledger, items[i].key)->is_paid = 1;
  tm_mutex_unlock(&ledger->lock);
}
