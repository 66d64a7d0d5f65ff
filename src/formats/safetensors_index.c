/* SPDX-License-Identifier: Apache-2.0 */
/* A sharded safetensors set: opens every file that the index names and holds index and files against each other. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"
#include "formats/reader.h"
#include "formats/safetensors_index.h"
#include "formats/shard_index.h"
#include "formats/shard_name.h"

/* The set while it is opened. */
typedef struct shard_set {
  tm_archive     *archive;
  tm_shard_index *index;
  const char     *label;
  const char     *folder;
  uint64_t        folder_length;
  uint32_t       *order;        /* shards by name: the order of the archive's files */
  uint32_t       *file_of;      /* shard -> file of the archive */
  tm_error       *error;
} shard_set;

static tm_status fail_memory(const shard_set *set) {
  return tm_fail(set->error, TM_ERROR_NO_MEMORY, "%s: no memory for the set", set->label);
}

/* ------------------------------------------------------------------------------------------------ opening shards ---- */

static tm_status check_presence(const shard_set *set) {
  uint64_t missing = 0;
  const char *first = NULL;
  for (uint64_t i = 0; i < set->index->shard_count; i++) {
    const char *name = set->index->shards[set->order[i]].file_name.data;
    const char *path = tm_path_join(&set->archive->arena, set->folder, set->folder_length, name);
    if (path == NULL) return fail_memory(set);
    if (tm_path_exists(path)) continue;
    if (missing++ == 0) first = name;
  }
  if (missing == 0) return TM_OK;
  return tm_fail(set->error, TM_ERROR_NOT_FOUND, "%s: %" PRIu64 " of its %" PRIu64 " files %s missing, the first is \"%s\"",
                 set->label, missing, set->index->shard_count, missing == 1 ? "is" : "are", tm_show_name((tm_string){ first, strlen(first) }).text);
}

static tm_status open_shard(const shard_set *set, uint32_t shard) {
  tm_archive *archive = set->archive;
  tm_file *file = NULL;
  const tm_reader *reader = NULL;
  const char *path = tm_path_join(&archive->arena, set->folder, set->folder_length, set->index->shards[shard].file_name.data);
  if (path == NULL) return fail_memory(set);
  TM_TRY(tm_file_open(archive->memory, path, archive->options.map_files ? TM_FILE_MAP : 0, &file, set->error));
  tm_status status = tm_reader_find(file, &reader, set->error);
  if (status == TM_OK && reader != &tm_safetensors_reader)
    status = tm_fail(set->error, TM_ERROR_CORRUPT, "%s: is a file of the format %s, but %s names it as a part of a safetensors "
                     "set", tm_file_label(file), reader->name, set->label);
  if (status == TM_OK) status = tm_shard_name_check(path, tm_file_label(file), set->error);
  if (status != TM_OK) {
    tm_file_close(file);
    return status;
  }
  set->file_of[shard] = (uint32_t)archive->file_count;
  return reader->read(archive, file, set->error);
}

/* ------------------------------------------------------------------------------------------- index against files ---- */

static tm_status check_entries(const shard_set *set) {
  const tm_archive *archive = set->archive;
  for (uint64_t i = 0; i < set->index->entry_count; i++) {
    const tm_shard_entry *entry = &set->index->entries[i];
    const char *expected = tm_file_label(archive->files[set->file_of[entry->shard]]);
    uint64_t at;
    if (!tm_archive_find(archive, entry->name.data, entry->name.length, &at))
      return tm_fail(set->error, TM_ERROR_CORRUPT, "%s: tensor \"%s\" should be in %s, but is not", set->label,
                     tm_show_name(entry->name).text, expected);
    if (archive->tensors[at].file_index != set->file_of[entry->shard])
      return tm_fail(set->error, TM_ERROR_CORRUPT, "%s: tensor \"%s\" should be in %s, but is in %s", set->label,
                     tm_show_name(entry->name).text, expected, tm_file_label(archive->files[archive->tensors[at].file_index]));
  }
  return TM_OK;
}

/* Every entry has been found, so equal counts mean that nothing else is there. */
static tm_status check_tensors(const shard_set *set) {
  const tm_archive *archive = set->archive;
  const tm_shard_index *index = set->index;
  if (archive->tensor_count == index->entry_count) return TM_OK;
  for (uint64_t i = 0; i < archive->tensor_count; i++) {
    const tm_archive_tensor *tensor = &archive->tensors[i];
    uint32_t entry;
    if (tm_name_table_find(&index->entry_names, index->entries, sizeof *index->entries, tensor->name, &entry)) continue;
    return tm_fail(set->error, TM_ERROR_CORRUPT, "%s: tensor \"%s\" of %s is not in the index (%" PRIu64 " tensors in the "
                   "files, %" PRIu64 " in the index)", set->label, tm_show_name(tensor->name).text,
                   tm_file_label(archive->files[tensor->file_index]), archive->tensor_count, index->entry_count);
  }
  return TM_OK;
}

/* Tools count tied weights and padding differently, so a wrong total is odd but no reason to refuse the set. */
static tm_status compare_total(const shard_set *set) {
  char text[200];
  const tm_shard_index *index = set->index;
  if (index->has_odd_total) return tm_archive_add_note(set->archive, "the index says a total_size that is no whole number", set->error);
  if (!index->has_total_bytes || index->total_bytes == set->archive->tensor_bytes) return TM_OK;
  (void)snprintf(text, sizeof text, "the index says total_size %" PRIu64 ", the tensors in the files have %" PRIu64 " bytes",
                 index->total_bytes, set->archive->tensor_bytes);
  return tm_archive_add_note(set->archive, text, set->error);
}

/* ------------------------------------------------------------------------------------------------------ the set ---- */

typedef struct named_shard {
  const char *name;
  uint32_t    shard;
} named_shard;

static int compare_shards(const void *a, const void *b) {
  return strcmp(((const named_shard *)a)->name, ((const named_shard *)b)->name);
}

static tm_status sort_shards(shard_set *set) {
  tm_arena *arena = &set->index->arena;
  const uint64_t count = set->index->shard_count;
  named_shard *named = tm_arena_calloc(arena, count, sizeof *named);
  set->order = tm_arena_calloc(arena, count, sizeof *set->order);
  set->file_of = tm_arena_calloc(arena, count, sizeof *set->file_of);
  if (named == NULL || set->order == NULL || set->file_of == NULL) return fail_memory(set);
  for (uint64_t i = 0; i < count; i++) named[i] = (named_shard){ set->index->shards[i].file_name.data, (uint32_t)i };
  if (count > 1) qsort(named, (size_t)count, sizeof *named, compare_shards);
  for (uint64_t i = 0; i < count; i++) set->order[i] = named[i].shard;
  return TM_OK;
}

static tm_status open_set(shard_set *set) {
  (void)snprintf(set->archive->format_name, sizeof set->archive->format_name, "safetensors");
  TM_TRY(sort_shards(set));
  TM_TRY(check_presence(set));
  for (uint64_t i = 0; i < set->index->shard_count; i++) TM_TRY(open_shard(set, set->order[i]));
  TM_TRY(check_entries(set));
  TM_TRY(check_tensors(set));
  return compare_total(set);
}

static tm_status read_text(tm_archive *archive, const tm_file *file, char **out_text, tm_error *error) {
  const uint64_t size = tm_file_size(file), limit = archive->options.max_header_bytes;
  if (size > limit)
    return tm_fail(error, TM_ERROR_LIMIT, "%s: the index has %" PRIu64 " bytes, more than the limit of %" PRIu64 "; if that is "
                   "meant, raise it: max_header_bytes %" PRIu64, tm_file_label(file), size, limit, size);
  char *text = tm_memory_alloc(archive->memory, size, 0);
  if (text == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory for the index", tm_file_label(file));
  const tm_status status = tm_file_read(file, 0, text, size, error);
  if (status == TM_OK) *out_text = text;
  else tm_memory_free(archive->memory, text, size);
  return status;
}

/* `part` is a file that the index has to name; NULL: any will do.  *out_names_part says whether it does; if not, nothing is opened. */
static tm_status read_from_file(tm_archive *archive, const tm_file *file, const char *part, bool *out_names_part, tm_error *error) {
  tm_shard_index index;
  char *text = NULL;
  uint32_t shard;
  shard_set set = { .archive = archive, .index = &index, .label = tm_file_label(file), .folder = tm_file_path(file),
                    .folder_length = tm_path_folder_length(tm_file_path(file)), .error = error };
  if (tm_file_is_in_memory(file))
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: is the index of a set; its files cannot be found from memory", set.label);
  TM_TRY(tm_reader_refuse_stranger(file, error));
  TM_TRY(read_text(archive, file, &text, error));
  tm_status status = tm_shard_index_init(&index, archive->memory, set.label, text, tm_file_size(file), error);
  tm_memory_free(archive->memory, text, tm_file_size(file));
  const tm_string wanted = { part, part == NULL ? 0 : strlen(part) };
  *out_names_part = status == TM_OK &&
                    (part == NULL || tm_name_table_find(&index.shard_names, index.shards, sizeof *index.shards, wanted, &shard));
  if (*out_names_part) status = open_set(&set);
  tm_shard_index_deinit(&index);
  return status;
}

static tm_status read_index(tm_archive *archive, tm_file *file, tm_error *error) {
  bool is_named;
  const tm_status status = read_from_file(archive, file, NULL, &is_named, error);
  tm_file_close(file);
  return status;
}

/* ------------------------------------------------------------------------------------------------ from a part of it ---- */

/* Why the set was not opened; an index that cannot be read may be anybody's, so it counts only with a word. */
static tm_status note_failure(tm_archive *archive, bool is_named, const tm_error *why, tm_error *error) {
  char text[1200];
  tm_archive_forget_files(archive);
  (void)snprintf(text, sizeof text, is_named ? "this file is a part of a set, but was opened alone: %s"
                                             : "whether this file is a part of a set is not known: %s", why->text);
  return tm_archive_add_note(archive, text, error);
}

static tm_status try_index(tm_archive *archive, const char *path, const char *part, bool *out_is_open, tm_error *error) {
  tm_error why = TM_ERROR_INIT;
  tm_file *index = NULL;
  bool is_named = false;
  tm_status status = tm_file_open(archive->memory, path, 0, &index, &why);
  if (status == TM_OK) status = read_from_file(archive, index, part, &is_named, &why);
  tm_file_close(index);
  *out_is_open = status == TM_OK && is_named;
  if (status == TM_OK) return TM_OK;
  if (status == TM_ERROR_NO_MEMORY) return tm_fail(error, status, "%s", why.text);
  return note_failure(archive, is_named, &why, error);
}

tm_status tm_safetensors_open_set_of(tm_archive *archive, const tm_file *file, bool *out_is_open, tm_error *error) {
  const char *path = tm_file_path(file), *slash = strrchr(path, '/');
  const char *part = slash == NULL ? path : slash + 1;
  const uint64_t folder_length = tm_path_folder_length(path);
  char *folder = folder_length == 0 ? tm_arena_string(&archive->arena, ".", 1) : tm_arena_string(&archive->arena, path, folder_length);
  const char **names = NULL;
  uint64_t count = 0;
  *out_is_open = false;
  if (folder == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a path");
  const tm_status status = tm_folder_list(&archive->arena, folder, &names, &count, NULL);
  if (status != TM_OK) return status == TM_ERROR_NO_MEMORY ? tm_fail(error, status, "no memory for the names in a folder") : TM_OK;
  for (uint64_t i = 0; i < count && !*out_is_open; i++) {
    if (tm_name_is_hidden(names[i]) || !tm_text_has_ending(names[i], ".safetensors.index.json")) continue;
    const char *index = tm_path_join(&archive->arena, path, folder_length, names[i]);
    if (index == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a path");
    TM_TRY(try_index(archive, index, part, out_is_open, error));
  }
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------ probing ---- */

static bool holds(const tm_head *head, const char *word) {
  const size_t length = strlen(word);
  for (size_t i = 0; i + length <= head->count; i++)
    if (memcmp(head->bytes + i, word, length) == 0) return true;
  return false;
}

/* weight_map may come after much metadata, so the usual name is proof enough too. */
static bool probe_index(const tm_head *head) {
  uint32_t first = 0;
  while (first < head->count && (head->bytes[first] == ' ' || (head->bytes[first] >= '\t' && head->bytes[first] <= '\r'))) first++;
  if (first == head->count || head->bytes[first] != '{') return false;
  return holds(head, "\"weight_map\"") || tm_text_has_ending(head->path, ".index.json");
}

const tm_reader tm_safetensors_index_reader = {
  .name = "safetensors index",
  .probe = probe_index,
  .read = read_index,
};
