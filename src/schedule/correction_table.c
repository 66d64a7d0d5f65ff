/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/correction_table.h"

#include <string.h>

#include "base/checked.h"
#include "base/log2_fixed.h"
#include "tensormorph/tensormorph.h"

#define FIRST_ENTRIES 128u      /* a power of two, like all capacities */
#define MOST_ENTRIES 32768u
#define MOST_LINKS 256u
#define TELL_ALWAYS 4u          /* as long as so little was seen, each measurement is worth telling */
/* 4 %: what is chosen and what is explained must not drift apart further. */
#define WORTH_TELLING (TM_LOG2_ONE / 16)

static bool allocate(tm_memory *memory, uint32_t capacity, tm_correction_entry **out_entries, uint32_t **out_slots) {
  *out_entries = tm_memory_try_alloc(memory, capacity * sizeof **out_entries, 0);
  *out_slots = tm_memory_try_alloc(memory, 2 * capacity * sizeof **out_slots, 0);
  if (*out_entries != NULL && *out_slots != NULL) {
    memset(*out_slots, 0, 2 * capacity * sizeof **out_slots);
    return true;
  }
  tm_memory_free(memory, *out_entries, capacity * sizeof **out_entries);
  tm_memory_free(memory, *out_slots, 2 * capacity * sizeof **out_slots);
  return false;
}

bool tm_correction_table_init(tm_correction *correction, tm_memory *memory) {
  correction->capacity = FIRST_ENTRIES;
  return allocate(memory, FIRST_ENTRIES, &correction->entries, &correction->slots);
}

void tm_correction_table_deinit(tm_correction *correction, tm_memory *memory) {
  tm_memory_free(memory, correction->entries, correction->capacity * sizeof *correction->entries);
  tm_memory_free(memory, correction->slots, 2 * correction->capacity * sizeof *correction->slots);
  if (correction->links != NULL) tm_memory_free(memory, correction->links, MOST_LINKS * sizeof *correction->links);
}

static uint64_t hash_of(const tm_correction_entry_key *key) {
  uint64_t hash = (key->key ^ (uint64_t)key->kind << 56 ^ (uint64_t)key->owner << 24) * UINT64_C(0x9e3779b97f4a7c15);
  hash ^= hash >> 32;
  return hash * UINT64_C(0xff51afd7ed558ccd) >> 16;
}

/* The slot that has the key, or the free one where it would go. */
static uint32_t *slot_of(const tm_correction *correction, uint32_t *slots, uint32_t capacity, const tm_correction_entry_key *key) {
  for (uint64_t i = hash_of(key);; i++) {
    uint32_t *slot = &slots[i & (2 * (uint64_t)capacity - 1)];
    if (*slot == 0) return slot;
    const tm_correction_entry *entry = &correction->entries[*slot - 1];
    if (entry->key == key->key && entry->kind == key->kind && entry->owner == key->owner) return slot;
  }
}

tm_correction_entry *tm_correction_entry_find(tm_correction *correction, const tm_correction_entry_key *key) {
  const uint32_t slot = *slot_of(correction, correction->slots, correction->capacity, key);
  return slot == 0 ? NULL : &correction->entries[slot - 1];
}

static void fill_slots(const tm_correction *correction, uint32_t *slots, uint32_t capacity) {
  for (uint32_t i = 0; i < correction->count; i++) {
    const tm_correction_entry *entry = &correction->entries[i];
    *slot_of(correction, slots, capacity, &(tm_correction_entry_key){ entry->kind, entry->owner, entry->key }) = i + 1;
  }
}

static bool grow(tm_correction *correction) {
  tm_correction_entry *entries;
  uint32_t *slots;
  const uint32_t capacity = correction->capacity * 2;
  if (capacity > MOST_ENTRIES || !allocate(correction->memory, capacity, &entries, &slots)) return false;
  memcpy(entries, correction->entries, correction->count * sizeof *entries);
  tm_memory_free(correction->memory, correction->entries, correction->capacity * sizeof *entries);
  tm_memory_free(correction->memory, correction->slots, 2 * correction->capacity * sizeof *slots);
  correction->entries = entries;
  correction->slots = slots;
  correction->capacity = capacity;
  fill_slots(correction, slots, capacity);
  return true;
}

tm_correction_entry *tm_correction_entry_add(tm_correction *correction, const tm_correction_entry_key *key) {
  tm_correction_entry *entry = tm_correction_entry_find(correction, key);
  if (entry != NULL) return entry;
  if (correction->count == correction->capacity && !grow(correction)) return NULL;
  *slot_of(correction, correction->slots, correction->capacity, key) = correction->count + 1;
  entry = &correction->entries[correction->count++];
  memset(entry, 0, sizeof *entry);
  entry->kind = key->kind;
  entry->owner = key->owner;
  entry->key = key->key;
  entry->next_changed = TM_NO_ENTRY;
  entry->work_factor = entry->told_work_factor = TM_NO_WORK_FACTOR;
  return entry;
}

/* ---- the snapshot ---- */

static int64_t distance(int64_t a, int64_t b) { return a > b ? a - b : b - a; }

bool tm_correction_entry_changed(tm_correction *correction, tm_correction_entry *entry, int64_t estimate) {
  correction->fresh_samples++;
  if (!entry->is_changed) {
    entry->is_changed = true;
    entry->next_changed = correction->first_changed;
    correction->first_changed = (uint32_t)(entry - correction->entries);
  }
  const bool is_news = distance(estimate, entry->told_mean) > WORTH_TELLING || entry->node.told.samples < TELL_ALWAYS;
  if (is_news) entry->told_mean = estimate;
  return is_news;
}

static void promote(tm_correction *correction) {
  for (uint32_t i = correction->first_changed; i != TM_NO_ENTRY;) {
    tm_correction_entry *entry = &correction->entries[i];
    i = entry->next_changed;
    entry->node.told = entry->node.live;
    entry->told_work_factor = entry->work_factor;
    entry->is_changed = false;
    entry->next_changed = TM_NO_ENTRY;
  }
  correction->first_changed = TM_NO_ENTRY;
  atomic_fetch_add(&correction->generation, 1);
}

void tm_correction_tell(tm_correction *correction, bool is_worth_it) {
  if (is_worth_it && !atomic_load(&correction->is_frozen)) promote(correction);
}

void tm_correction_promote(tm_correction *correction) {
  tm_mutex_lock(&correction->lock);
  promote(correction);
  tm_mutex_unlock(&correction->lock);
}

/* ---- what is kept on disk ---- */

uint32_t tm_correction_count(tm_correction *correction) {
  tm_mutex_lock(&correction->lock);
  const uint32_t count = correction->count;
  tm_mutex_unlock(&correction->lock);
  return count;
}

bool tm_correction_at(tm_correction *correction, uint32_t index, tm_correction_entry *out_entry) {
  tm_mutex_lock(&correction->lock);
  const bool is_there = index < correction->count;
  if (is_there) *out_entry = correction->entries[index];
  tm_mutex_unlock(&correction->lock);
  return is_there;
}

void tm_correction_merge(tm_correction *correction, const tm_correction_entry *known, bool is_reset, uint32_t doubt) {
  const tm_correction_entry_key key = { known->kind, known->owner, known->key };
  tm_mutex_lock(&correction->lock);
  tm_correction_entry *entry = tm_correction_entry_add(correction, &key);
  if (entry != NULL) {
    tm_correction_node_merge(&entry->node, &known->node.fresh, is_reset, doubt);
    if (entry->work.op == TM_OP_NONE) entry->work = known->work;
    entry->size_log2 = known->size_log2;
    const uint64_t fresh = correction->fresh_samples;
    (void)tm_correction_entry_changed(correction, entry, entry->node.live.mean);
    correction->fresh_samples = fresh;
  }
  tm_mutex_unlock(&correction->lock);
}

bool tm_correction_take_fresh(tm_correction *correction, uint32_t index, tm_correction_entry *out_entry) {
  bool has_fresh = false;
  tm_mutex_lock(&correction->lock);
  if (index < correction->count) {
    tm_correction_entry *entry = &correction->entries[index];
    *out_entry = *entry;
    has_fresh = entry->node.fresh.weight != 0;
    entry->node.fresh = (tm_correction_state){ 0 };
    entry->node.is_reset = false;
  }
  correction->fresh_samples = 0;
  tm_mutex_unlock(&correction->lock);
  return has_fresh;
}

void tm_correction_give_back(tm_correction *correction, const tm_correction_entry *taken) {
  const tm_correction_entry_key key = { taken->kind, taken->owner, taken->key };
  tm_mutex_lock(&correction->lock);
  tm_correction_entry *entry = tm_correction_entry_find(correction, &key);
  if (entry != NULL && !entry->node.is_reset) {
    tm_correction_node older = { .live = taken->node.fresh };
    tm_correction_node_merge(&older, &entry->node.fresh, false, 0);
    entry->node.fresh = older.live;
    entry->node.is_reset = taken->node.is_reset;
    correction->fresh_samples += tm_max_u64(taken->node.fresh.samples, 1);
  }
  tm_mutex_unlock(&correction->lock);
}

static bool is_of_device(const tm_correction_entry *entry, uint32_t device) {
  const bool is_copy = entry->kind >= TM_CORRECTION_LATENCY && entry->kind <= TM_CORRECTION_COPY;
  return device == TM_ANY_DEVICE || (entry->owner == device && !is_copy);
}

uint32_t tm_correction_forget(tm_correction *correction, uint32_t device) {
  uint32_t kept = 0;
  tm_mutex_lock(&correction->lock);
  const uint32_t before = correction->count;
  promote(correction);
  for (uint32_t i = 0; i < before; i++)
    if (!is_of_device(&correction->entries[i], device)) correction->entries[kept++] = correction->entries[i];
  correction->count = kept;
  memset(correction->slots, 0, 2 * correction->capacity * sizeof *correction->slots);
  fill_slots(correction, correction->slots, correction->capacity);
  tm_mutex_unlock(&correction->lock);
  return before - kept;
}

/* ---- links ---- */

uint32_t tm_correction_link_of(tm_correction *correction, const tm_identity *from, const tm_identity *to) {
  tm_mutex_lock(&correction->lock);
  if (correction->links == NULL)
    correction->links = tm_memory_try_alloc(correction->memory, MOST_LINKS * sizeof *correction->links, 0);
  uint32_t link = 0;
  for (; link < correction->link_count; link++)
    if (memcmp(&correction->links[link].from, from, sizeof *from) == 0 && memcmp(&correction->links[link].to, to, sizeof *to) == 0) break;
  if (correction->links == NULL || link == MOST_LINKS) link = TM_NO_LINK;
  else if (link == correction->link_count) correction->links[correction->link_count++] = (tm_correction_link){ *from, *to };
  tm_mutex_unlock(&correction->lock);
  return link;
}

bool tm_correction_link_at(tm_correction *correction, uint32_t link, tm_correction_link *out_link) {
  tm_mutex_lock(&correction->lock);
  const bool is_there = link < correction->link_count;
  if (is_there) *out_link = correction->links[link];
  tm_mutex_unlock(&correction->lock);
  return is_there;
}
