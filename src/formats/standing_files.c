/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/standing_files.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"
#include "formats/shard_index.h"

#define EXTENSION ".safetensors"
#define INDEX_ENDING ".index.json"
#define LARGEST_INDEX_BYTES (UINT64_C(1) << 30)

static tm_status fail_memory(const char *name, tm_error *error) {
  return tm_fail(error, TM_ERROR_NO_MEMORY, "%.200s: no memory to look at what is there", name);
}

static size_t stem_length(const char *single) {
  const size_t length = strlen(single);
  return tm_text_has_ending(single, EXTENSION) ? length - (sizeof EXTENSION - 1) : length;
}

const char *tm_standing_index_name(tm_arena *arena, const char *single) {
  static const char ending[] = EXTENSION INDEX_ENDING;
  const size_t length = stem_length(single);
  char *name = tm_arena_alloc(arena, length + sizeof ending);
  if (name == NULL) return NULL;
  memcpy(name, single, length);
  memcpy(name + length, ending, sizeof ending);
  return name;
}

const char *tm_standing_path(tm_arena *arena, const char *folder, const char *name) {
  return tm_path_join(arena, folder, strlen(folder), name);
}

/* The digits at `text`; 0: there are none. */
static size_t digits_at(const char *text) { return strspn(text, "0123456789"); }

/* Whether it is called as a shard of this set is: nothing else is ever taken for a part of it. */
static bool is_shard_name(const char *name, const char *single) {
  const size_t stem = stem_length(single);
  if (strncmp(name, single, stem) != 0 || name[stem] != '-') return false;
  const char *rest = name + stem + 1;
  const size_t number = digits_at(rest);
  if (number == 0 || strncmp(rest + number, "-of-", 4) != 0) return false;
  rest += number + 4;
  const size_t total = digits_at(rest);
  return total != 0 && strcmp(rest + total, EXTENSION) == 0;
}

/* ------------------------------------------------------------------------------------------------------ the index ---- */

/* A file or a link, which can go. */
static bool is_there(const char *path) { return tm_path_has_entry(path) && !tm_path_is_folder(path); }

static tm_status keep_shards(tm_arena *arena, const tm_shard_index *index, tm_standing_files *files, tm_error *error) {
  files->shards = tm_arena_calloc(arena, index->shard_count, sizeof *files->shards);
  if (files->shards == NULL) return fail_memory(files->index, error);
  for (uint64_t i = 0; i < index->shard_count; i++) {
    const tm_string name = index->shards[i].file_name;
    if (!is_shard_name(name.data, files->single)) continue;
    const char *path = tm_standing_path(arena, files->folder, name.data);
    const char *copy = tm_arena_string(arena, name.data, name.length);
    if (path == NULL || copy == NULL) return fail_memory(files->index, error);
    if (is_there(path)) files->shards[files->shard_count++] = copy;
  }
  return TM_OK;
}

static tm_status read_text(tm_arena *arena, const char *path, char **out_text, uint64_t *out_length) {
  tm_file *file = NULL;
  TM_TRY(tm_file_open(arena->memory, path, 0, &file, NULL));
  const uint64_t length = tm_file_size(file);
  char *text = length > LARGEST_INDEX_BYTES ? NULL : tm_memory_alloc(arena->memory, length, 0);
  tm_status status = text == NULL ? TM_ERROR_NO_MEMORY : tm_file_read(file, 0, text, length, NULL);
  tm_file_close(file);
  if (status != TM_OK) tm_memory_free(arena->memory, text, length);
  else *out_text = text, *out_length = length;
  return status;
}

static tm_status read_index(tm_arena *arena, const char *path, tm_standing_files *files, tm_error *error) {
  char *text = NULL;
  uint64_t length = 0;
  tm_shard_index index;
  if (read_text(arena, path, &text, &length) != TM_OK) return TM_OK;
  tm_status status = tm_shard_index_init(&index, arena->memory, path, text, length, NULL);
  tm_memory_free(arena->memory, text, length);
  status = status == TM_OK ? keep_shards(arena, &index, files, error) : TM_OK;
  tm_shard_index_deinit(&index);
  return status;
}

const char **tm_standing_files_list(tm_arena *arena, const tm_standing_files *files, bool is_set, uint64_t *out_count) {
  uint64_t count = files->shard_count;
  const char **names = tm_arena_calloc(arena, count + 1, sizeof *names);
  if (names == NULL) return NULL;
  for (uint64_t i = 0; i < count; i++) names[i] = files->shards[i];
  if (is_set && files->has_single) names[count++] = files->single;
  if (!is_set && files->has_index) names[count++] = files->index;
  *out_count = count;
  return names;
}

tm_status tm_standing_files_find(tm_arena *arena, const char *folder, const char *single, const char *index,
                                 tm_standing_files *out_files, tm_error *error) {
  tm_standing_files files = { .folder = folder, .single = single, .index = index };
  const char *single_path = tm_standing_path(arena, folder, single);
  const char *index_path = index == NULL ? NULL : tm_standing_path(arena, folder, index);
  if (single_path == NULL || (index != NULL && index_path == NULL)) return fail_memory(single, error);
  files.has_single = is_there(single_path);
  files.has_index = index != NULL && is_there(index_path);
  if (files.has_index) TM_TRY(read_index(arena, index_path, &files, error));
  *out_files = files;
  return TM_OK;
}
