/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/content_group.h"

#include "base/checked.h"
#include "base/error.h"

tm_status tm_content_groups_init(tm_content_groups *groups, tm_memory *memory, uint64_t capacity, const _Atomic uint32_t *cancelled,
                                 tm_error *error) {
  *groups = (tm_content_groups){ .memory = memory, .capacity = capacity, .cancelled = cancelled };
  uint64_t entries_bytes = 0, order_bytes = 0;
  const bool is_possible = tm_checked_mul(capacity, sizeof *groups->entries, &entries_bytes) &&
                           tm_checked_mul(capacity, 2 * sizeof *groups->order, &order_bytes);
  /* Not cleared: of a million that would take longer than whoever cancels waits. */
  if (is_possible) groups->entries = tm_memory_alloc(memory, entries_bytes, 0);
  if (is_possible) groups->order = tm_memory_alloc(memory, order_bytes, 0);
  if (groups->entries == NULL || groups->order == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of tensors");
  return TM_OK;
}

void tm_content_groups_deinit(tm_content_groups *groups) {
  tm_memory_free(groups->memory, groups->entries, groups->capacity * sizeof *groups->entries);
  tm_memory_free(groups->memory, groups->order, groups->capacity * 2 * sizeof *groups->order);
}

static tm_status sort(tm_content_groups *groups) {
  for (uint64_t i = 0; i < groups->count; i++) groups->order[i] = (tm_keyed_item){ groups->entries[i].key, i };
  tm_keyed_order_sort(groups->order, groups->order + groups->capacity, groups->count, groups->cancelled);
  return atomic_load(groups->cancelled) != 0 ? TM_ERROR_CANCELLED : TM_OK;
}

bool tm_content_groups_next(const tm_content_groups *groups, tm_content_group *group) {
  if (group->end == groups->count) return false;
  group->begin = group->end;
  while (group->end < groups->count && groups->order[group->end].key == groups->order[group->begin].key) group->end++;
  return true;
}

tm_content_entry *tm_content_groups_entry(const tm_content_groups *groups, uint64_t place) { return &groups->entries[groups->order[place].item]; }

static void mark_group(const tm_content_groups *groups, const tm_content_group *group) {
  bool is_there[2] = { false, false }, is_wanted[2] = { false, false };
  for (uint64_t i = group->begin; i < group->end; i++) {
    const tm_content_entry *entry = tm_content_groups_entry(groups, i);
    is_there[entry->side] = true;
    is_wanted[entry->side] = is_wanted[entry->side] || entry->is_wanted;
  }
  const bool is_useful = is_there[0] && is_there[1] && (is_wanted[0] || is_wanted[1]);
  for (uint64_t i = group->begin; i < group->end; i++) {
    tm_content_entry *entry = tm_content_groups_entry(groups, i);
    entry->is_kept = is_useful && (entry->is_left || is_wanted[1 - entry->side]);
  }
}

tm_status tm_content_groups_drop(tm_content_groups *groups) {
  tm_content_group group = { 0, 0 };
  uint64_t kept = 0;
  TM_TRY(sort(groups));
  while (tm_content_groups_next(groups, &group)) mark_group(groups, &group);
  for (uint64_t i = 0; i < groups->count; i++)
    if (groups->entries[i].is_kept) groups->entries[kept++] = groups->entries[i];
  groups->count = kept;
  return sort(groups);
}
