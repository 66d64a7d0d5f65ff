/* SPDX-License-Identifier: Apache-2.0 */
#include "base/name_table.h"

#include <stddef.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define FIRST_SLOTS UINT64_C(16)

void tm_name_table_init(tm_name_table *table, tm_memory *memory) { *table = (tm_name_table){ .memory = memory }; }

void tm_name_table_deinit(tm_name_table *table) {
  tm_memory_free(table->memory, table->slots, table->slot_count * sizeof *table->slots);
  tm_name_table_init(table, table->memory);
}

static const tm_string *name_at(const void *items, uint64_t stride, uint32_t index) {
  return (const tm_string *)(const void *)((const char *)items + stride * index);
}

/* The table's address makes the hash differ from run to run, so that a file cannot aim at one chain. */
static uint32_t hash_of(const tm_name_table *table, tm_string name) {
  return (uint32_t)XXH3_64bits_withSeed(name.data, (size_t)name.length, (XXH64_hash_t)(uintptr_t)table);
}

static bool same_name(const tm_string *a, tm_string b) {
  return a->length == b.length && (b.length == 0 || memcmp(a->data, b.data, (size_t)b.length) == 0);
}

/* The slot that holds `name`, or the free one where it belongs.  There is always a free slot. */
static tm_name_slot *find_slot(const tm_name_table *table, const void *items, uint64_t stride, tm_string name, uint32_t hash) {
  const uint64_t mask = table->slot_count - 1;
  for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
    tm_name_slot *slot = &table->slots[i];
    if (slot->index_plus_one == 0) return slot;
    if (slot->hash == hash && same_name(name_at(items, stride, slot->index_plus_one - 1), name)) return slot;
  }
}

static bool grow(tm_name_table *table) {
  const uint64_t count = table->slot_count == 0 ? FIRST_SLOTS : table->slot_count * 2;
  tm_name_slot *slots = tm_memory_calloc(table->memory, count, sizeof *slots);
  if (slots == NULL) return false;
  for (uint64_t old = 0; old < table->slot_count; old++) {
    if (table->slots[old].index_plus_one == 0) continue;
    uint64_t i = table->slots[old].hash & (count - 1);
    while (slots[i].index_plus_one != 0) i = (i + 1) & (count - 1);
    slots[i] = table->slots[old];
  }
  tm_memory_free(table->memory, table->slots, table->slot_count * sizeof *slots);
  table->slots = slots;
  table->slot_count = count;
  return true;
}

bool tm_name_table_add(tm_name_table *table, const void *items, uint64_t stride, uint32_t index, uint32_t *out_existing) {
  if ((table->used_count + 1) * 3 > table->slot_count * 2 && !grow(table)) return false;
  const tm_string name = *name_at(items, stride, index);
  const uint32_t hash = hash_of(table, name);
  tm_name_slot *slot = find_slot(table, items, stride, name, hash);
  if (slot->index_plus_one == 0) {
    *slot = (tm_name_slot){ .hash = hash, .index_plus_one = index + 1 };
    table->used_count++;
  }
  *out_existing = slot->index_plus_one - 1;
  return true;
}

bool tm_name_table_find(const tm_name_table *table, const void *items, uint64_t stride, tm_string name, uint32_t *out_index) {
  if (table->slot_count == 0) return false;
  const tm_name_slot *slot = find_slot(table, items, stride, name, hash_of(table, name));
  if (slot->index_plus_one == 0) return false;
  *out_index = slot->index_plus_one - 1;
  return true;
}
