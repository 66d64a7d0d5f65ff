/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/shard_audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/growth.h"
#include "base/text.h"
#include "formats/reader.h"
#include "formats/shard_index.h"
#include "formats/shard_name.h"

#define USUAL_INDEX "model.safetensors.index.json"
#define INDEX_ENDING ".safetensors.index.json"
#define SHARD_ENDING ".safetensors"
/* Unless the options say otherwise, or the process may have few: shards beyond are opened anew for each read. */
#define MOST_OPEN_FILES 64u

typedef enum place { NOWHERE, IN_PLACE, ELSEWHERE } place;

/* A tensor of the index: where it was found. */
typedef struct sighting {
  place       place;
  const char *path;
} sighting;

typedef struct auditor {
  tm_shard_audit           *audit;
  tm_arena                 *arena;
  const tm_archive_options *options;
  const char               *index_path;
  uint64_t                  folder_length;
  tm_shard_index            index;
  uint64_t                 *tensor_counts;      /* by shard: of its tensors in the index */
  bool                     *is_open;            /* by shard */
  sighting                 *sightings;          /* by entry of the index */
  uint64_t                  tensor_bytes;
  tm_shard_fault_fn         fault;
  void                     *context;
  tm_error                 *error;
} auditor;

static tm_status fail_memory(const auditor *a) {
  return tm_fail(a->error, TM_ERROR_NO_MEMORY, "%s: no memory for the set", a->index_path);
}

static char *path_of(const auditor *a, const char *name) { return tm_path_join(a->arena, a->index_path, a->folder_length, name); }

/* ------------------------------------------------------------------------------------------------- which index ---- */

/* Nothing but a lack of memory keeps from the answer: what cannot be read is no index. */
static tm_status pass_no_memory(tm_status status) { return status == TM_ERROR_NO_MEMORY ? status : TM_OK; }

static tm_status join_path(tm_arena *arena, const char *folder, const char *name, const char **out_path, tm_error *error) {
  *out_path = tm_path_join(arena, folder, strlen(folder), name);
  return *out_path == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a path") : TM_OK;
}

static tm_status find_in_folder(tm_arena *arena, const char *folder, const char **out_path, tm_error *error) {
  const char **names = NULL, *found = NULL;
  uint64_t count = 0, indexes = 0;
  const tm_status status = tm_folder_list(arena, folder, &names, &count, error);
  if (status != TM_OK) return pass_no_memory(status);
  for (uint64_t i = 0; i < count; i++) {
    if (strcmp(names[i], USUAL_INDEX) == 0) return join_path(arena, folder, names[i], out_path, error);
    if (tm_name_is_hidden(names[i]) || !tm_text_has_ending(names[i], INDEX_ENDING)) continue;
    found = names[i];
    indexes++;
  }
  return indexes == 1 ? join_path(arena, folder, found, out_path, error) : TM_OK;
}

static tm_status is_index_file(tm_memory *memory, const char *path, bool *out_is_index, tm_error *error) {
  tm_file *file = NULL;
  const tm_reader *reader = NULL;
  *out_is_index = false;
  tm_status status = tm_file_open(memory, path, 0, &file, error);
  if (status == TM_OK) status = tm_reader_find(file, &reader, error);
  *out_is_index = status == TM_OK && reader == &tm_safetensors_index_reader;
  tm_file_close(file);
  return pass_no_memory(status);
}

/* ----------------------------------------------------------------------------------------------------- the index ---- */

static void clear_index(tm_shard_index *index, tm_memory *memory) {
  *index = (tm_shard_index){ .memory = memory };
  tm_arena_init(&index->arena, memory);
  tm_name_table_init(&index->entry_names, memory);
  tm_name_table_init(&index->shard_names, memory);
  tm_name_table_init(&index->flaw_names, memory);
}

/* Into an empty index. */
static tm_status read_text(const auditor *a, const tm_file *file, tm_shard_index *index) {
  const uint64_t given = a->options->max_header_bytes, limit = given == 0 ? TM_ARCHIVE_DEFAULT_HEADER_BYTES : given;
  const uint64_t size = tm_file_size(file);
  if (size > limit)
    return tm_fail(a->error, TM_ERROR_LIMIT, "%s: the index has %" PRIu64 " bytes, more than the limit of %" PRIu64 "; if that is "
                   "meant, raise it: max_header_bytes %" PRIu64, tm_file_label(file), size, limit, size);
  char *text = tm_memory_alloc(a->audit->memory, size, 0);
  if (text == NULL) return fail_memory(a);
  tm_status status = tm_file_read(file, 0, text, size, a->error);
  if (status == TM_OK) status = tm_shard_index_init_flawed(index, a->audit->memory, tm_file_label(file), text, size, a->error);
  tm_memory_free(a->audit->memory, text, size);
  return status;
}

static tm_status read_index(const auditor *a, const char *path, tm_shard_index *index) {
  tm_file *file = NULL;
  TM_TRY(tm_file_open(a->audit->memory, path, 0, &file, a->error));
  tm_status status = tm_reader_refuse_stranger(file, a->error);
  if (status == TM_OK) status = read_text(a, file, index);
  tm_file_close(file);
  return status;
}

/* What cannot be read names nothing. */
static tm_status names_shard(const auditor *a, const char *index_name, tm_string shard, bool *out_is_named) {
  tm_shard_index index;
  uint32_t found;
  const char *path = path_of(a, index_name);
  *out_is_named = false;
  if (path == NULL) return fail_memory(a);
  clear_index(&index, a->audit->memory);
  const tm_status status = read_index(a, path, &index);
  if (status == TM_OK)
    *out_is_named = tm_name_table_find(&index.shard_names, index.shards, sizeof *index.shards, shard, &found);
  tm_shard_index_deinit(&index);
  return pass_no_memory(status);
}

static tm_status count_entries(auditor *a) {
  a->tensor_counts = tm_arena_calloc(a->arena, a->index.shard_count, sizeof *a->tensor_counts);
  a->is_open = tm_arena_calloc(a->arena, a->index.shard_count, sizeof *a->is_open);
  a->sightings = tm_arena_calloc(a->arena, a->index.entry_count, sizeof *a->sightings);
  if (a->tensor_counts == NULL || a->is_open == NULL || a->sightings == NULL) return fail_memory(a);
  for (uint64_t i = 0; i < a->index.entry_count; i++) a->tensor_counts[a->index.entries[i].shard]++;
  return TM_OK;
}

/* The index of the shard's folder that names it; in the auditor's arena. */
static tm_status find_beside(const auditor *a, const char *shard, const char **out_path) {
  const char **names = NULL;
  uint64_t count = 0;
  const char *base = shard + a->folder_length + (a->folder_length != 0 && shard[a->folder_length] == '/');
  const char *folder = a->folder_length == 0 ? "." : tm_arena_string(a->arena, shard, a->folder_length);
  if (folder == NULL) return fail_memory(a);
  const tm_status status = tm_folder_list(a->arena, folder, &names, &count, a->error);
  if (status != TM_OK) return pass_no_memory(status);
  for (uint64_t i = 0; i < count && *out_path == NULL; i++) {
    bool is_named = false;
    if (tm_name_is_hidden(names[i]) || !tm_text_has_ending(names[i], INDEX_ENDING)) continue;
    TM_TRY(names_shard(a, names[i], (tm_string){ base, strlen(base) }, &is_named));
    if (is_named) *out_path = path_of(a, names[i]);
    if (is_named && *out_path == NULL) return fail_memory(a);
  }
  return TM_OK;
}

/* The names of a folder are not kept: there may be as many files as names. */
static tm_status find_of_shard(tm_memory *memory, tm_arena *arena, const char *shard, const char **out_path, tm_error *error) {
  tm_arena own;
  const char *found = NULL;
  const tm_archive_options options = { 0 };
  tm_shard_audit audit = { .memory = memory };
  const auditor a = { .audit = &audit, .arena = &own, .options = &options, .index_path = shard, .error = error,
                      .folder_length = tm_path_folder_length(shard) };
  if (!tm_text_has_ending(shard, SHARD_ENDING)) return TM_OK;
  tm_arena_init(&own, memory);
  tm_status status = find_beside(&a, shard, &found);
  if (found != NULL) *out_path = tm_arena_string(arena, found, strlen(found));
  if (found != NULL && *out_path == NULL) status = fail_memory(&a);
  tm_arena_deinit(&own);
  return status;
}

tm_status tm_shard_audit_find_index(tm_memory *memory, tm_arena *arena, const char *path, const char **out_index_path, tm_error *error) {
  bool is_index = false;
  *out_index_path = NULL;
  if (tm_path_is_folder(path)) return find_in_folder(arena, path, out_index_path, error);
  TM_TRY(is_index_file(memory, path, &is_index, error));
  if (!is_index) return find_of_shard(memory, arena, path, out_index_path, error);
  *out_index_path = path;
  return TM_OK;
}

/* ---------------------------------------------------------------------------------------------------- one shard ---- */

/* One file and no more, whatever set its name may belong to. */
static tm_status open_alone(const auditor *a, const char *path, tm_archive **out_archive, tm_error *error) {
  tm_archive *archive = NULL;
  tm_file *file = NULL;
  const tm_reader *reader = NULL;
  TM_TRY(tm_archive_create(a->audit->memory, a->options, &archive, error));
  tm_status status = tm_file_open(a->audit->memory, path, a->options->map_files ? TM_FILE_MAP : 0, &file, error);
  if (status == TM_OK) status = tm_reader_find(file, &reader, error);
  if (status == TM_OK && reader != &tm_safetensors_reader)
    status = tm_fail(error, TM_ERROR_CORRUPT,
                     "%s: is a file of the format %s, but the index names it as a part of a safetensors set", path, reader->name);
  if (status == TM_OK) status = tm_shard_name_check(path, path, error);
  if (status == TM_OK) status = reader->read(archive, file, error);
  else tm_file_close(file);
  const uint64_t given = a->options->max_open_files, usual = tm_min_u64(MOST_OPEN_FILES, tm_archive_usual_open_files());
  if (status == TM_OK && a->audit->count >= (given == 0 ? usual : given)) tm_archive_park(archive);
  if (status == TM_OK) *out_archive = archive;
  else tm_archive_close(archive);
  return status;
}

/* Of these was said what is wrong with their entries: the index does know them. */
static bool is_flawed(const auditor *a, tm_string tensor) {
  uint32_t at;
  return tm_name_table_find(&a->index.flaw_names, a->index.flaws, sizeof *a->index.flaws, tensor, &at);
}

/* Where a tensor of a shard belongs. */
static tm_status place_tensor(auditor *a, uint32_t shard, const char *path, const tm_archive_tensor *tensor) {
  uint32_t at;
  tm_shard_fault fault = { .kind = TM_SHARD_TENSOR_UNINDEXED, .path = path, .tensor = tensor->name };
  if (!tm_name_table_find(&a->index.entry_names, a->index.entries, sizeof *a->index.entries, tensor->name, &at))
    return is_flawed(a, tensor->name) ? TM_OK : a->fault(a->context, &fault, a->error);
  const tm_shard_entry *entry = &a->index.entries[at];
  sighting *seen = &a->sightings[at];
  const char *before = seen->path;
  const bool is_in_place = entry->shard == shard;
  if (is_in_place || before == NULL) *seen = (sighting){ is_in_place ? IN_PLACE : ELSEWHERE, path };
  fault.kind = before != NULL ? TM_SHARD_TENSOR_TWICE : TM_SHARD_TENSOR_MISPLACED;
  fault.other = before != NULL ? before : path_of(a, a->index.shards[entry->shard].file_name.data);
  if (fault.other == NULL) return fail_memory(a);
  return is_in_place && before == NULL ? TM_OK : a->fault(a->context, &fault, a->error);
}

static tm_status keep_shard(auditor *a, uint32_t shard, char *path, tm_archive *archive) {
  tm_shard_audit *audit = a->audit;
  const uint64_t at = audit->count++;
  audit->archives[at] = archive;
  audit->paths[at] = path;
  a->is_open[shard] = true;
  a->tensor_bytes += tm_archive_tensor_bytes(archive);
  for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++)
    TM_TRY(place_tensor(a, shard, path, tm_archive_tensor_at(archive, i)));
  return TM_OK;
}

static tm_status audit_shard(auditor *a, uint32_t shard) {
  tm_archive *archive = NULL;
  tm_error error = TM_ERROR_INIT;
  char *path = path_of(a, a->index.shards[shard].file_name.data);
  if (path == NULL) return fail_memory(a);
  tm_shard_fault fault = { .kind = TM_SHARD_MISSING, .path = path, .count = a->tensor_counts[shard] };
  const tm_status status = open_alone(a, path, &archive, &error);
  if (status == TM_OK) return keep_shard(a, shard, path, archive);
  if (status == TM_ERROR_NO_MEMORY) return tm_fail(a->error, status, "%s", error.text);
  if (status != TM_ERROR_NOT_FOUND) fault.kind = TM_SHARD_REFUSED;
  fault.status = status;
  fault.text = error.text;
  return a->fault(a->context, &fault, a->error);
}

/* ------------------------------------------------------------------------------------------------------ the set ---- */

static tm_status report_flaws(const auditor *a) {
  for (uint64_t i = 0; i < a->index.flaw_count; i++) {
    const tm_shard_fault fault = { .kind = TM_SHARD_REFUSED, .status = TM_ERROR_CORRUPT, .path = a->index_path,
                                   .text = a->index.flaws[i].text };
    TM_TRY(a->fault(a->context, &fault, a->error));
  }
  return TM_OK;
}

/* What the index says and no shard has.  Of a shard that is not there, or is no model, that was said as a whole. */
static tm_status report_missing_tensors(const auditor *a) {
  for (uint64_t i = 0; i < a->index.entry_count; i++) {
    const tm_shard_entry *entry = &a->index.entries[i];
    if (a->sightings[i].place != NOWHERE || !a->is_open[entry->shard]) continue;
    const tm_shard_fault fault = { .kind = TM_SHARD_TENSOR_MISSING, .tensor = entry->name,
                                   .path = path_of(a, a->index.shards[entry->shard].file_name.data) };
    if (fault.path == NULL) return fail_memory(a);
    TM_TRY(a->fault(a->context, &fault, a->error));
  }
  return TM_OK;
}

/* One folder may hold several sets; a file that any of them names belongs somewhere. */
static tm_status is_named_elsewhere(const auditor *a, const char *const *names, uint64_t count, tm_string file, bool *out_is_named) {
  for (uint64_t i = 0; i < count && !*out_is_named; i++) {
    if (tm_name_is_hidden(names[i]) || !tm_text_has_ending(names[i], ".index.json")) continue;
    const char *path = path_of(a, names[i]);
    if (path == NULL) return fail_memory(a);
    if (!tm_path_is_same(path, a->index_path)) TM_TRY(names_shard(a, names[i], file, out_is_named));
  }
  return TM_OK;
}

/* "./a" and "a" are one file. */
static tm_status is_shard(const auditor *a, tm_string name, bool *out_is_shard) {
  uint32_t found;
  *out_is_shard = tm_name_table_find(&a->index.shard_names, a->index.shards, sizeof *a->index.shards, name, &found);
  const char *path = path_of(a, name.data);
  if (path == NULL) return fail_memory(a);
  for (uint64_t i = 0; !*out_is_shard && i < a->index.shard_count; i++) {
    const char *shard = a->index.shards[i].file_name.data;
    if (strchr(shard, '/') == NULL) continue;
    const char *other = path_of(a, shard);
    if (other == NULL) return fail_memory(a);
    *out_is_shard = tm_path_is_same(path, other);
  }
  return TM_OK;
}

static tm_status report_strays(const auditor *a) {
  const char **names = NULL;
  uint64_t count = 0;
  char *folder =
      a->folder_length == 0 ? tm_arena_string(a->arena, ".", 1) : tm_arena_string(a->arena, a->index_path, a->folder_length);
  if (folder == NULL) return fail_memory(a);
  const tm_status status = tm_folder_list(a->arena, folder, &names, &count, a->error);
  if (status != TM_OK) return pass_no_memory(status);
  for (uint64_t i = 0; i < count; i++) {
    const tm_string name = { names[i], strlen(names[i]) };
    bool is_known = false;
    if (tm_name_is_hidden(name.data) || !tm_text_has_ending(name.data, SHARD_ENDING)) continue;
    TM_TRY(is_shard(a, name, &is_known));
    if (!is_known) TM_TRY(is_named_elsewhere(a, names, count, name, &is_known));
    if (is_known) continue;
    const tm_shard_fault fault = { .kind = TM_SHARD_STRAY, .path = path_of(a, name.data) };
    if (fault.path == NULL) return fail_memory(a);
    TM_TRY(a->fault(a->context, &fault, a->error));
  }
  return TM_OK;
}

static tm_status report_odd_total(const auditor *a) {
  const tm_shard_fault fault = { .kind = TM_SHARD_TOTAL_ODD, .path = a->index_path };
  return a->index.has_odd_total ? a->fault(a->context, &fault, a->error) : TM_OK;
}

/* Only where all shards are there: else it cannot be right. */
static tm_status report_total(const auditor *a) {
  const tm_shard_fault fault = {
      .kind = TM_SHARD_TOTAL, .path = a->index_path, .count = a->index.total_bytes, .actual = a->tensor_bytes };
  if (!a->index.has_total_bytes || a->audit->count != a->index.shard_count || fault.count == fault.actual) return TM_OK;
  return a->fault(a->context, &fault, a->error);
}

typedef struct named_shard {
  const char *name;
  uint32_t    shard;
} named_shard;

static int compare_names(const void *a, const void *b) {
  return strcmp(((const named_shard *)a)->name, ((const named_shard *)b)->name);
}

static tm_status audit_shards(auditor *a) {
  const uint64_t count = a->index.shard_count;
  tm_shard_audit *audit = a->audit;
  named_shard *order = tm_arena_calloc(a->arena, count, sizeof *order);
  audit->archives = tm_memory_calloc(audit->memory, count, sizeof *audit->archives);
  audit->paths = tm_arena_calloc(a->arena, count, sizeof *audit->paths);
  if (order == NULL || audit->archives == NULL || audit->paths == NULL) return fail_memory(a);
  audit->capacity = count;
  for (uint64_t i = 0; i < count; i++) order[i] = (named_shard){ a->index.shards[i].file_name.data, (uint32_t)i };
  if (count > 1) qsort(order, (size_t)count, sizeof *order, compare_names);
  for (uint64_t i = 0; i < count; i++) TM_TRY(audit_shard(a, order[i].shard));
  return TM_OK;
}

static tm_status run_audit(auditor *a) {
  TM_TRY(read_index(a, a->index_path, &a->index));
  TM_TRY(count_entries(a));
  TM_TRY(report_flaws(a));
  TM_TRY(audit_shards(a));
  TM_TRY(report_missing_tensors(a));
  TM_TRY(report_strays(a));
  TM_TRY(report_odd_total(a));
  return report_total(a);
}

tm_status tm_shard_audit_init(tm_shard_audit *audit, tm_memory *memory, tm_arena *arena, const tm_archive_options *options,
                              const char *index_path, tm_shard_fault_fn fault, void *context, tm_error *error) {
  *audit = (tm_shard_audit){ .memory = memory, .index_path = index_path };
  auditor a = { .audit = audit, .arena = arena, .options = options, .index_path = index_path, .fault = fault, .context = context,
                .folder_length = tm_path_folder_length(index_path), .error = error };
  clear_index(&a.index, memory);
  const tm_status status = run_audit(&a);
  tm_shard_index_deinit(&a.index);
  return status;
}

bool tm_shard_audit_has(const tm_shard_audit *audit, const char *path) {
  for (uint64_t i = 0; i < audit->count; i++)
    if (strcmp(audit->paths[i], path) == 0) return true;
  return false;
}

void tm_shard_audit_deinit(tm_shard_audit *audit) {
  for (uint64_t i = 0; i < audit->count; i++) tm_archive_close(audit->archives[i]);
  tm_memory_free(audit->memory, audit->archives, audit->capacity * sizeof *audit->archives);
}
