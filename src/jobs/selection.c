/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/selection.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

/* A suggestion looks at so many names at most: it is made for a person who is waiting. */
#define MOST_SUGGESTIONS 20000u

/* Index of the first pattern that matches, or count. */
static uint32_t first_match(const char *const *patterns, uint32_t count, tm_string name) {
  uint32_t i = 0;
  while (i < count && !tm_glob_match(patterns[i], strlen(patterns[i]), name.data, name.length)) i++;
  return i;
}

static bool is_selected(const tm_selection_rules *rules, tm_string name) {
  if (rules->include_count != 0 && first_match(rules->include, rules->include_count, name) == rules->include_count) return false;
  return first_match(rules->exclude, rules->exclude_count, name) == rules->exclude_count;
}

static bool append(tm_selection *selection, uint32_t source, uint64_t tensor) {
  if (selection->count == selection->capacity) {
    const uint64_t capacity = selection->capacity == 0 ? 1024 : selection->capacity * 2;
    tm_selected *grown = tm_memory_grow(selection->memory, selection->items, selection->capacity, capacity, sizeof *grown);
    if (grown == NULL) return false;
    selection->items = grown;
    selection->capacity = capacity;
  }
  selection->items[selection->count++] = (tm_selected){ source, 0, tensor };
  return true;
}

static bool matches_something(const tm_job_source *sources, uint32_t source_count, const char *pattern) {
  for (uint32_t s = 0; s < source_count; s++) {
    const uint64_t count = tm_archive_tensor_count(sources[s].archive);
    for (uint64_t i = 0; i < count; i++) {
      const tm_string name = tm_archive_tensor_at(sources[s].archive, i)->name;
      if (tm_glob_match(pattern, strlen(pattern), name.data, name.length)) return true;
    }
  }
  return false;
}

static tm_status nothing_matches(tm_memory *memory, const tm_job_source *sources, uint32_t source_count, const char *pattern,
                                 tm_error *error) {
  const char **names = tm_memory_calloc(memory, MOST_SUGGESTIONS, sizeof *names);
  uint64_t found = 0;
  for (uint32_t s = 0; names != NULL && s < source_count; s++) {
    const uint64_t count = tm_archive_tensor_count(sources[s].archive);
    for (uint64_t i = 0; i < count && found < MOST_SUGGESTIONS; i++)
      names[found++] = tm_archive_tensor_at(sources[s].archive, i)->name.data;
  }
  const char *close = names == NULL ? NULL : tm_suggest(pattern, names, found);
  char printable[256];
  if (close != NULL) tm_text_escape(close, strlen(close), printable, sizeof printable);
  tm_memory_free(memory, names, MOST_SUGGESTIONS * sizeof *names);
  if (close != NULL)
    return tm_fail(error, TM_ERROR_NOT_FOUND, "no tensor matches '%.200s'; did you mean '%s'?", pattern, printable);
  return tm_fail(error, TM_ERROR_NOT_FOUND, "no tensor matches '%.200s'; patterns use * ? [..] and match whole names", pattern);
}

static tm_status check_patterns(tm_memory *memory, const tm_job_source *sources, uint32_t source_count, const char *const *patterns,
                                uint32_t count, tm_error *error) {
  for (uint32_t i = 0; i < count; i++)
    if (!matches_something(sources, source_count, patterns[i]))
      return nothing_matches(memory, sources, source_count, patterns[i], error);
  return TM_OK;
}

tm_status tm_selection_make(tm_memory *memory, const tm_job_source *sources, uint32_t source_count,
                            const tm_selection_rules *rules, tm_selection *out_selection, tm_error *error) {
  TM_TRY(check_patterns(memory, sources, source_count, rules->include, rules->include_count, error));
  TM_TRY(check_patterns(memory, sources, source_count, rules->exclude, rules->exclude_count, error));
  tm_selection selection = { .memory = memory };
  for (uint32_t s = 0; s < source_count; s++) {
    const uint64_t count = tm_archive_tensor_count(sources[s].archive);
    for (uint64_t i = 0; i < count; i++) {
      const tm_archive_tensor *tensor = tm_archive_tensor_at(sources[s].archive, i);
      if (!is_selected(rules, tensor->name)) continue;
      if (!append(&selection, s, i)) {
        tm_selection_deinit(&selection);
        return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of tensors");
      }
      selection.bytes += tensor->bytes;
    }
  }
  *out_selection = selection;
  return TM_OK;
}

void tm_selection_deinit(tm_selection *selection) {
  tm_memory_free(selection->memory, selection->items, selection->capacity * sizeof *selection->items);
}
