/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/checkpoint_recovery.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/pending_recovery.h"
#include "formats/shard_name.h"

static const char set_ending[] = ".safetensors";

/* Nothing of another name goes for what is written through a link. */
static tm_status list_old(tm_arena *arena, const tm_write_target_path *target, const tm_standing_files *standing, bool is_set,
                          tm_pending_search *search, tm_error *error) {
  if (target->is_link) return TM_OK;
  search->old_names = tm_standing_files_list(arena, standing, is_set, &search->old_count);
  return search->old_names != NULL ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory for the names of its files",
                                                     target->label);
}

static tm_status recover(tm_arena *arena, const tm_write_target_path *target, const tm_standing_files *standing,
                         const char *own_id, tm_pending_leftovers *leftovers, tm_error *error) {
  tm_pending_search single = { .folder = target->is_link ? target->linked_folder : target->folder, .own_id = own_id,
                               .leader = target->is_link ? target->linked_name : target->name };
  tm_pending_search set = { .folder = target->folder, .leader = target->index, .own_id = own_id };
  TM_TRY(list_old(arena, target, standing, false, &single, error));
  TM_TRY(list_old(arena, target, standing, true, &set, error));
  TM_TRY(tm_pending_recover(arena->memory, &single, leftovers, error));
  return target->index == NULL ? TM_OK : tm_pending_recover(arena->memory, &set, leftovers, error);
}

tm_status tm_checkpoint_clean_up(tm_memory *memory, const tm_write_target_path *target, const tm_standing_files *standing,
                                 const char *own_id, uint64_t *out_completed_count, tm_error *error) {
  tm_arena arena;
  tm_pending_leftovers leftovers = { 0 };
  tm_arena_init(&arena, memory);
  const tm_status status = recover(&arena, target, standing, own_id, &leftovers, error);
  tm_arena_deinit(&arena);
  *out_completed_count = leftovers.completed_count;
  return status;
}

static tm_status recover_in(tm_arena *arena, const char *path, tm_pending_leftovers *leftovers, tm_error *error) {
  tm_write_target_path target;
  tm_standing_files standing;
  TM_TRY(tm_write_target_path_find(arena, path, NULL, &target, error));
  TM_TRY(tm_standing_files_find(arena, target.folder, target.name, target.index, &standing, error));
  return recover(arena, &target, &standing, NULL, leftovers, error);
}

tm_status tm_checkpoint_recover(tm_memory *memory, const char *path, uint64_t *out_removed_count, uint64_t *out_completed_count,
                                tm_error *error) {
  tm_arena arena;
  tm_pending_leftovers leftovers = { 0 };
  tm_arena_init(&arena, memory);
  const tm_status status = recover_in(&arena, path, &leftovers, error);
  tm_arena_deinit(&arena);
  if (out_removed_count != NULL) *out_removed_count = leftovers.removed_count;
  if (out_completed_count != NULL) *out_completed_count = leftovers.completed_count;
  return status;
}

/* A shard stands for its set. */
static const char *set_of(tm_arena *arena, const char *path) {
  tm_shard_name name;
  if (!tm_shard_name_parse(path, &name) || strcmp(name.extension, set_ending) != 0) return path;
  const size_t room = name.prefix_length + sizeof set_ending;
  char *set = tm_arena_alloc(arena, room);
  if (set != NULL) (void)snprintf(set, room, "%.*s%s", (int)name.prefix_length, name.prefix, set_ending);
  return set;
}

static bool is_interrupted(tm_arena *arena, const char *given) {
  tm_write_target_path target;
  const char *path = set_of(arena, given);
  if (path == NULL) return false;
  if (tm_path_is_folder(path)) return tm_pending_is_interrupted(path, NULL);
  if (tm_write_target_path_find(arena, path, NULL, &target, NULL) != TM_OK || target.index == NULL) return false;
  return tm_pending_is_interrupted(target.folder, target.index) || tm_pending_is_interrupted(target.folder, target.name);
}

bool tm_checkpoint_is_interrupted(tm_memory *memory, const char *path) {
  tm_arena arena;
  if (path == NULL || path[0] == '\0') return false;
  tm_arena_init(&arena, memory);
  const bool result = is_interrupted(&arena, path);
  tm_arena_deinit(&arena);
  return result;
}
