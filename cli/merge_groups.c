/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_groups.h"

#include <string.h>

#include "row_selection.h"

#define WORD_COUNT 4u

static const tm_column columns[] = {
  { "tensors", TM_COLUMN_COUNT, 0, "" }, { "bytes", TM_COLUMN_BYTES, 0, "" },  { "action", TM_COLUMN_TEXT, 0, "" },
  { "dtype", TM_COLUMN_TEXT, 0, "" },    { "models", TM_COLUMN_TEXT, 0, "" },  { "weights", TM_COLUMN_TEXT, 0, "" } };
static const char *const words[WORD_COUNT] = { "action", "dtype", "models", "weights" };

static bool same_word(const tm_cell *a, const tm_cell *b) {
  if (a->defined != b->defined || a->defined == 0) return a->defined == b->defined;
  return a->count == b->count && (a->count == 0 || memcmp(a->text, b->text, (size_t)a->count) == 0);
}

static tm_merge_group *find_or_add(tm_merge_groups *groups, const tm_cell *found) {
  for (uint32_t i = 0; i < groups->count; i++) {
    bool same = true;
    for (uint32_t w = 0; w < WORD_COUNT && same; w++) same = same_word(&groups->items[i].words[w], &found[w]);
    if (same) return &groups->items[i];
  }
  if (groups->count < TM_MERGE_GROUPS_MAX) {
    memcpy(groups->items[groups->count].words, found, sizeof groups->items[0].words);
    return &groups->items[groups->count++];
  }
  tm_merge_group *last = &groups->items[TM_MERGE_GROUPS_MAX - 1];
  for (uint32_t w = 0; w < WORD_COUNT; w++) last->words[w] = tm_cell_undefined(TM_COLUMN_TEXT);
  return last;
}

static bool is_written(const tm_cell *action) {
  return action->defined != 0 && (strcmp(action->text, "merge") == 0 || strcmp(action->text, "copy") == 0);
}

void tm_merge_groups_make(tm_merge_groups *groups, const tm_merge_plan *plan) {
  uint32_t         count = 0, places[WORD_COUNT];
  const tm_column *plan_columns = tm_merge_plan_columns(plan, &count);
  const uint32_t   bytes = tm_column_find(plan_columns, count, "bytes");
  tm_cell          cells[TM_MAX_COLUMNS], found[WORD_COUNT];
  memset(groups, 0, sizeof *groups);
  for (uint32_t w = 0; w < WORD_COUNT; w++) places[w] = tm_column_find(plan_columns, count, words[w]);
  for (uint64_t row = 0; tm_merge_plan_row(plan, row, cells) == TM_OK; row++) {
    for (uint32_t w = 0; w < WORD_COUNT; w++) found[w] = cells[places[w]];
    tm_merge_group *group = find_or_add(groups, found);
    group->tensor_count++;
    if (cells[bytes].defined != 0) group->bytes += cells[bytes].count;
    group->is_written = group->is_written || is_written(&found[0]);
  }
}

static bool group_row(const void *source, uint64_t row, tm_cell *cells) {
  const tm_merge_groups *groups = source;
  if (row >= groups->count) return false;
  cells[0] = tm_cell_count(groups->items[row].tensor_count);
  /* Tensors that are left out or refused become no bytes. */
  cells[1] = groups->items[row].is_written ? tm_cell_bytes(groups->items[row].bytes) : tm_cell_undefined(TM_COLUMN_BYTES);
  memcpy(cells + 2, groups->items[row].words, sizeof groups->items[row].words);
  return true;
}

tm_rows tm_merge_groups_rows(const tm_merge_groups *groups) {
  return (tm_rows){ columns, sizeof columns / sizeof columns[0], group_row, groups, groups->count, NULL };
}
