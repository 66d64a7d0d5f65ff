/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/selection.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

/* A suggestion looks at so many names at most: it is made for a person who is waiting. */
#define MOST_SUGGESTIONS 20000u

void tm_job_sources_note(tm_job *job, const tm_job_source *sources, uint32_t source_count) {
  for (uint32_t s = 0; s < source_count; s++)
    for (uint64_t i = 0; tm_archive_note_at(sources[s].archive, i) != NULL; i++)
      tm_job_add_note(job, tm_archive_note_at(sources[s].archive, i));
}

/* Index of the first pattern that matches, or count. */
static uint32_t first_match(const char *const *patterns, uint32_t count, tm_string name) {
  uint32_t i = 0;
  while (i < count && !tm_glob_match(patterns[i], strlen(patterns[i]), name.data, name.length)) i++;
  return i;
}

bool tm_selection_excludes(const tm_selection_rules *rules, tm_string name) {
  return first_match(rules->exclude, rules->exclude_count, name) != rules->exclude_count;
}

static bool is_selected(const tm_selection_rules *rules, tm_string name) {
  if (rules->include_count != 0 && first_match(rules->include, rules->include_count, name) == rules->include_count) return false;
  return !tm_selection_excludes(rules, name);
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

/* Names that are matched between two looks at whether the job is cancelled: fractions of a millisecond. */
#define NAMES_BETWEEN_LOOKS 1024u

/* Without a job nobody cancels. */
static bool shall_end(const tm_job *job, uint64_t name) {
  return job != NULL && name % NAMES_BETWEEN_LOOKS == 0 && tm_job_is_cancelled(job);
}

/* TM_OK or TM_END, else TM_ERROR_CANCELLED. */
static tm_status match_something(const tm_job *job, const tm_job_source *sources, uint32_t source_count, const char *pattern) {
  const uint64_t length = strlen(pattern);
  for (uint32_t s = 0; s < source_count; s++) {
    const uint64_t count = tm_archive_tensor_count(sources[s].archive);
    for (uint64_t i = 0; i < count; i++) {
      if (shall_end(job, i)) return TM_ERROR_CANCELLED;
      const tm_string name = tm_archive_tensor_at(sources[s].archive, i)->name;
      if (tm_glob_match(pattern, length, name.data, name.length)) return TM_OK;
    }
  }
  return TM_END;
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

static tm_status check_pattern(const tm_job *job, tm_memory *memory, const tm_job_source *sources, uint32_t source_count,
                               const char *pattern, tm_error *error) {
  const tm_status status = match_something(job, sources, source_count, pattern);
  return status == TM_END ? nothing_matches(memory, sources, source_count, pattern, error) : status;
}

tm_status tm_selection_check_pattern(tm_memory *memory, const tm_job_source *sources, uint32_t source_count, const char *pattern,
                                     tm_error *error) {
  return check_pattern(NULL, memory, sources, source_count, pattern, error);
}

static tm_status check_patterns(const tm_job *job, tm_memory *memory, const tm_job_source *sources, uint32_t source_count,
                                const char *const *patterns, uint32_t count, tm_error *error) {
  for (uint32_t i = 0; i < count; i++) TM_TRY(check_pattern(job, memory, sources, source_count, patterns[i], error));
  return TM_OK;
}

static tm_status select_from(const tm_job *job, const tm_archive *archive, uint32_t source, const tm_selection_rules *rules,
                             tm_selection *selection, tm_error *error) {
  const uint64_t count = tm_archive_tensor_count(archive);
  for (uint64_t i = 0; i < count; i++) {
    if (shall_end(job, i)) return TM_ERROR_CANCELLED;
    const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, i);
    if (!is_selected(rules, tensor->name)) continue;
    if (!append(selection, source, i)) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of tensors");
    selection->bytes += tensor->bytes;
  }
  return TM_OK;
}

/* A gate that looks at nothing would let everything pass. */
static tm_status check_rest(const tm_selection *selection, const tm_selection_rules *rules, const tm_job_source *sources,
                            uint32_t source_count, tm_error *error) {
  uint64_t count = 0;
  for (uint32_t s = 0; s < source_count; s++) count += tm_archive_tensor_count(sources[s].archive);
  if (selection->count != 0 || rules->exclude_count == 0 || count == 0) return TM_OK;
  return tm_fail(error, TM_ERROR_NOT_FOUND, "no tensor of %" PRIu64 " is left: '%.200s'%s excludes all that was chosen", count,
                 rules->exclude[0], rules->exclude_count > 1 ? " and so on" : "");
}

tm_status tm_selection_make(const tm_job *job, tm_memory *memory, const tm_job_source *sources, uint32_t source_count,
                            const tm_selection_rules *rules, tm_selection *out_selection, tm_error *error) {
  TM_TRY(check_patterns(job, memory, sources, source_count, rules->include, rules->include_count, error));
  TM_TRY(check_patterns(job, memory, sources, source_count, rules->exclude, rules->exclude_count, error));
  tm_selection selection = { .memory = memory };
  tm_status status = TM_OK;
  for (uint32_t s = 0; s < source_count && status == TM_OK; s++)
    status = select_from(job, sources[s].archive, s, rules, &selection, error);
  if (status == TM_OK) status = check_rest(&selection, rules, sources, source_count, error);
  if (status == TM_OK)
    *out_selection = selection;
  else
    tm_selection_deinit(&selection);
  return status;
}

static const char *const *copy_patterns(const char *const *patterns, uint32_t count, tm_arena *arena) {
  const char **copies = tm_arena_calloc(arena, count, sizeof *copies);
  for (uint32_t i = 0; copies != NULL && i < count; i++) {
    copies[i] = tm_arena_string(arena, patterns[i], strlen(patterns[i]));
    if (copies[i] == NULL) return NULL;
  }
  return copies;
}

tm_status tm_selection_rules_copy(const tm_selection_rules *rules, tm_arena *arena, tm_selection_rules *out_rules, tm_error *error) {
  const char *const *include = copy_patterns(rules->include, rules->include_count, arena);
  const char *const *exclude = include == NULL ? NULL : copy_patterns(rules->exclude, rules->exclude_count, arena);
  if (exclude == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the patterns");
  *out_rules = (tm_selection_rules){ include, exclude, rules->include_count, rules->exclude_count };
  return TM_OK;
}

void tm_selection_deinit(tm_selection *selection) {
  tm_memory_free(selection->memory, selection->items, selection->capacity * sizeof *selection->items);
}
