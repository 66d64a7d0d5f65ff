/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/health_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/claimed_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/kept_file.h"

#define FILE_NAME "health"
#define LOCK_NAME "health.lock"
#define HEADER "tensormorph-health 2\n"
#define HEADER_LENGTH (sizeof HEADER - 1)
#define LARGEST_FILE_BYTES (UINT64_C(4) << 20)
#define MOST_ENTRIES 4096u
#define LONGEST_LINE 1024u
#define LINE_FIELDS 7
#define LOCK_PATIENCE_NS (UINT64_C(2) * 1000000000)
#define LOCK_PAUSE_NS UINT64_C(2000000)

/* All that is known while the file is looked at. */
typedef struct content {
  tm_arena         arena;
  tm_health_entry *entries;
  uint32_t         count;
  uint32_t         room;
  bool             is_changed;
} content;

static void complain(tm_health_file *file, const char *what) {
  if (!atomic_exchange(&file->is_silent, true))
    tm_log_write(&file->log, TM_LOG_WARNING, "broken promises are not remembered for the next start: %s", what);
}

static char *path_of(const tm_health_file *file, tm_arena *arena, const char *name) {
  const uint64_t room = strlen(file->folder) + strlen(name) + 2;
  char *path = tm_arena_alloc(arena, room);
  if (path != NULL) snprintf(path, room, "%s/%s", file->folder, name);
  return path;
}

/* ---- reading ---- */

static bool parse_line(char *line, tm_health_entry *out_entry) {
  char *fields[LINE_FIELDS];
  for (int i = 0; i < LINE_FIELDS; i++) {
    fields[i] = line;
    line += strcspn(line, "\t");
    if ((*line == '\t') != (i + 1 < LINE_FIELDS)) return false;
    if (*line != '\0') *line++ = '\0';
  }
  *out_entry = (tm_health_entry){ .backend = fields[0], .build_id = fields[1], .uuid = fields[2],
                                  .count = strtoull(fields[5], NULL, 10), .reason = fields[6] };
  return tm_work_kind_parse(fields[3], fields[4], &out_entry->kind);
}

/* Room for what the file may hold and one more. */
static bool make_room(const char *text, content *all) {
  uint64_t lines = 1;
  for (const char *c = text; *c != '\0'; c++) lines += *c == '\n';
  all->room = (uint32_t)tm_min_u64(lines, MOST_ENTRIES);
  all->entries = tm_arena_calloc(&all->arena, all->room, sizeof *all->entries);
  return all->entries != NULL;
}

/* `text` is whole and ends in NUL; entries point into it. */
static bool parse(char *text, content *all) {
  if (strncmp(text, HEADER, HEADER_LENGTH) != 0) return false;
  for (char *line = text + HEADER_LENGTH; *line != '\0';) {
    char *end = line + strcspn(line, "\n");
    char *next = *end == '\n' ? end + 1 : end;
    *end = '\0';
    if (all->count == all->room || !parse_line(line, &all->entries[all->count])) return false;
    all->count++;
    line = next;
  }
  return true;
}

/* False without memory for it. */
static bool read_content(tm_health_file *file, const char *path, content *all) {
  char *data = NULL;
  uint64_t bytes = 0;
  tm_error error = TM_ERROR_INIT;
  const tm_status status = tm_kept_file_read(file->memory, path, LARGEST_FILE_BYTES, &data, &bytes, &error);
  char *text = tm_arena_string(&all->arena, status == TM_OK ? data : "", status == TM_OK ? bytes : 0);
  tm_memory_free(file->memory, data, bytes);
  if (text == NULL || !make_room(text, all)) return false;
  if (status == TM_ERROR_NOT_FOUND || (status == TM_OK && parse(text, all))) return true;
  all->count = 0;
  all->is_changed = true;
  if (status == TM_OK) (void)tm_fail(&error, TM_ERROR_CORRUPT, "%s: its content is damaged", path);
  tm_log_write(&file->log, TM_LOG_WARNING, "what was remembered of broken promises is ignored: %s", error.text);
  return true;
}

/* ---- writing ---- */

static uint64_t print_entry(const tm_health_entry *entry, char *text, uint64_t capacity) {
  char kind[TM_WORK_KIND_BYTES];
  tm_work_kind_print(&entry->kind, kind);
  const int length = snprintf(text, capacity, "%s\t%s\t%s\t%s\t%llu\t%s\n", entry->backend, entry->build_id, entry->uuid, kind,
                              (unsigned long long)entry->count, entry->reason);
  return length < 0 || (uint64_t)length >= capacity ? 0 : (uint64_t)length;
}

static tm_status write_content(const char *path, content *all, tm_error *error) {
  const uint64_t room = HEADER_LENGTH + (uint64_t)all->count * LONGEST_LINE + 1;
  char *text = tm_arena_alloc(&all->arena, room);
  if (text == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write it");
  memcpy(text, HEADER, HEADER_LENGTH);
  uint64_t used = HEADER_LENGTH;
  for (uint32_t i = 0; i < all->count; i++) used += print_entry(&all->entries[i], text + used, LONGEST_LINE);
  return tm_kept_file_replace(path, text, used, error);
}

/* ---- changing ---- */

static bool is_same(const tm_health_entry *a, const tm_health_entry *b) {
  return strcmp(a->backend, b->backend) == 0 && strcmp(a->build_id, b->build_id) == 0 && strcmp(a->uuid, b->uuid) == 0 &&
         tm_work_kind_equal(&a->kind, &b->kind);
}

static void keep_wanted(content *all, tm_health_keep_fn keep, void *context) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < all->count; i++)
    if (keep(context, &all->entries[i])) all->entries[kept++] = all->entries[i];
  all->is_changed |= kept != all->count;
  all->count = kept;
}

/* False without room for it. */
static bool add(content *all, const tm_health_entry *added) {
  for (uint32_t i = 0; i < all->count; i++) {
    if (!is_same(&all->entries[i], added)) continue;
    if (all->entries[i].count == 0) all->entries[i].reason = added->reason;
    all->entries[i].count += added->count;
    all->is_changed = true;
    return true;
  }
  if (all->count == all->room) return false;
  all->entries[all->count] = *added;
  if (added->is_suspicion) all->entries[all->count].count = 0;
  all->count++;
  all->is_changed = true;
  return true;
}

static bool lock(tm_health_file *file, const char *path, tm_claimed_file *out_lock) {
  tm_error error = TM_ERROR_INIT;
  const uint64_t give_up = tm_now_ns() + LOCK_PATIENCE_NS;
  tm_status status = tm_kept_folder_make(file->folder, &error);
  if (status == TM_OK) status = tm_claimed_file_open(path, true, out_lock, &error);
  while (status == TM_BUSY && tm_now_ns() < give_up) {
    tm_sleep_ns(LOCK_PAUSE_NS);
    status = tm_claimed_file_open(path, true, out_lock, &error);
  }
  if (status == TM_BUSY) (void)tm_fail(&error, status, "%s: somebody has it for too long", path);
  if (status != TM_OK) complain(file, error.text);
  return status == TM_OK;
}

static void update_locked(tm_health_file *file, const char *path, tm_health_keep_fn keep, void *context, const tm_health_entry *added,
                          content *all) {
  tm_error error = TM_ERROR_INIT;
  if (!read_content(file, path, all)) {
    complain(file, "no memory");
    return;
  }
  keep_wanted(all, keep, context);
  if (added != NULL && !add(all, added)) complain(file, "so many are remembered that there is no room for more");
  if (all->is_changed && write_content(path, all, &error) != TM_OK) complain(file, error.text);
}

void tm_health_file_update(tm_health_file *file, tm_health_keep_fn keep, void *context, const tm_health_entry *added) {
  content all = { .count = 0 };
  tm_claimed_file held = { -1 };
  tm_arena_init(&all.arena, file->memory);
  const char *path = path_of(file, &all.arena, FILE_NAME), *lock_path = path_of(file, &all.arena, LOCK_NAME);
  if (path == NULL || lock_path == NULL)
    complain(file, "no memory");
  else if ((added != NULL || tm_path_exists(path)) && lock(file, lock_path, &held))
    update_locked(file, path, keep, context, added, &all);
  tm_claimed_file_close(&held);
  tm_arena_deinit(&all.arena);
}
