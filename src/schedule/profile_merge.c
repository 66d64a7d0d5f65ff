/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/profile_merge.h"

#include <string.h>

tm_status tm_profile_merge_init(tm_profile_merge *merge, tm_memory *memory) {
  memset(merge, 0, sizeof *merge);
  if (tm_correction_init(&merge->entries, memory) != TM_OK) return TM_ERROR_NO_MEMORY;
  merge->owners = tm_memory_calloc(memory, TM_MOST_PROFILE_OWNERS, sizeof *merge->owners);
  if (merge->owners != NULL) return TM_OK;
  tm_correction_deinit(&merge->entries);
  return TM_ERROR_NO_MEMORY;
}

void tm_profile_merge_deinit(tm_profile_merge *merge) {
  tm_memory_free(merge->entries.memory, merge->owners, TM_MOST_PROFILE_OWNERS * sizeof *merge->owners);
  tm_correction_deinit(&merge->entries);
}

static tm_profile_owner *owner_of(tm_profile_merge *merge, uint64_t fingerprint) {
  for (uint32_t i = 0; i < merge->owner_count; i++)
    if (merge->owners[i].fingerprint == fingerprint) return &merge->owners[i];
  if (merge->owner_count == TM_MOST_PROFILE_OWNERS) return NULL;
  tm_profile_owner *owner = &merge->owners[merge->owner_count++];
  owner->fingerprint = fingerprint;
  return owner;
}

void tm_profile_merge_take(void *context, const tm_profile_record *record) {
  tm_profile_merge *merge = context;
  if (record->kind == TM_PROFILE_HEADER) merge->generation = record->generation;
  tm_profile_owner *owner = record->kind == TM_PROFILE_HEADER ? NULL : owner_of(merge, record->fingerprint);
  if (owner == NULL) return;
  if (record->kind == TM_PROFILE_ENTRY) {
    tm_correction_entry entry = record->entry;
    entry.owner = (uint32_t)(owner - merge->owners);
    tm_correction_merge(&merge->entries, &entry, entry.node.is_reset, 0);
    return;
  }
  owner->is_named = true;
  owner->is_link = record->kind == TM_PROFILE_LINK;
  owner->device = record->device;
  owner->link = record->link;
}

/* ---- what is new ---- */

static const tm_correction_entry *find_known(const tm_profile_merge *known, uint64_t fingerprint, const tm_correction_entry *entry) {
  for (uint32_t i = 0; i < known->entries.count; i++) {
    const tm_correction_entry *one = &known->entries.entries[i];
    if (one->kind == entry->kind && one->key == entry->key && known->owners[one->owner].fingerprint == fingerprint) return one;
  }
  return NULL;
}

void tm_profile_merge_keep_news(tm_profile_merge *merge, const tm_profile_merge *known) {
  for (uint32_t i = 0; i < merge->entries.count; i++) {
    tm_correction_entry *entry = &merge->entries.entries[i];
    const tm_correction_entry *one = find_known(known, merge->owners[entry->owner].fingerprint, entry);
    entry->node.is_reset = one != NULL;
    if (one != NULL && one->node.live.samples >= entry->node.live.samples) entry->node.live = (tm_correction_state){ 0 };
  }
}

void tm_profile_merge_visit(tm_profile_merge *merge, tm_profile_record_fn visit, void *context) {
  for (uint32_t i = 0; i < merge->owner_count; i++) {
    const tm_profile_owner *owner = &merge->owners[i];
    const tm_profile_record record = { .kind = owner->is_link ? TM_PROFILE_LINK : TM_PROFILE_DEVICE, .fingerprint = owner->fingerprint,
                                       .device = owner->device, .link = owner->link };
    if (owner->is_named) visit(context, &record);
  }
  tm_correction_entry entry;
  for (uint32_t i = 0; tm_correction_at(&merge->entries, i, &entry); i++) {
    if (!merge->owners[entry.owner].is_named || entry.node.live.weight == 0) continue;
    tm_profile_record record = { .kind = TM_PROFILE_ENTRY, .fingerprint = merge->owners[entry.owner].fingerprint, .entry = entry };
    record.entry.node.fresh = entry.node.live;
    visit(context, &record);
  }
}

/* ---- as text ---- */

static bool is_kept(const tm_profile_owner *owner) { return owner->is_named && !owner->is_dropped; }

static uint64_t print_owner(const tm_profile_owner *owner, char *text) {
  const tm_profile_record record = { .kind = owner->is_link ? TM_PROFILE_LINK : TM_PROFILE_DEVICE, .fingerprint = owner->fingerprint,
                                     .device = owner->device, .link = owner->link };
  return tm_profile_record_print(&record, text);
}

static uint64_t print_entry(const tm_profile_owner *owner, const tm_correction_entry *entry, char *text) {
  tm_profile_record record = { .kind = TM_PROFILE_ENTRY, .fingerprint = owner->fingerprint, .entry = *entry };
  record.entry.node.fresh = entry->node.live;
  record.entry.node.is_reset = false;
  return tm_profile_record_print(&record, text);
}

tm_status tm_profile_merge_print(tm_profile_merge *merge, uint64_t generation, char **out_text, uint64_t *out_bytes, uint64_t *out_room) {
  const uint64_t lines = 1 + (uint64_t)merge->owner_count + merge->entries.count;
  char *text = tm_memory_alloc(merge->entries.memory, lines * TM_PROFILE_LINE_BYTES, 0);
  if (text == NULL) return TM_ERROR_NO_MEMORY;
  const tm_profile_record header = { .kind = TM_PROFILE_HEADER, .version = TM_PROFILE_VERSION, .generation = generation };
  uint64_t used = tm_profile_record_print(&header, text);
  for (uint32_t i = 0; i < merge->owner_count; i++)
    if (is_kept(&merge->owners[i])) used += print_owner(&merge->owners[i], text + used);
  tm_correction_entry entry;
  for (uint32_t i = 0; tm_correction_at(&merge->entries, i, &entry); i++)
    if (is_kept(&merge->owners[entry.owner])) used += print_entry(&merge->owners[entry.owner], &entry, text + used);
  *out_text = text;
  *out_bytes = used;
  *out_room = lines * TM_PROFILE_LINE_BYTES;
  return TM_OK;
}
