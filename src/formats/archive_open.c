/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to an archive: which file it means, and which reader reads that. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"
#include "formats/archive_builder.h"
#include "formats/checkpoint_recovery.h"
#include "formats/reader.h"
#include "formats/safetensors_index.h"
#include "formats/shard_name.h"

/* A file that an index beside it names stands for the whole set, as any part of a model in several files does. */
static tm_status find_set(tm_archive *archive, const tm_reader *reader, const tm_file *file, bool *out_is_open, tm_error *error) {
  *out_is_open = false;
  if (reader != &tm_safetensors_reader || archive->options.is_alone || tm_file_is_in_memory(file)) return TM_OK;
  return tm_safetensors_open_set_of(archive, file, out_is_open, error);
}

/* Of a set without an index nothing opens the others with it, and what is missing then is not missing in the model. */
static tm_status note_lone_part(tm_archive *archive, const tm_file *file, tm_error *error) {
  tm_shard_name name;
  char text[400];
  if (archive->options.is_alone || archive->options.leaves_parts_untold || archive->note_count != 0 || tm_file_is_in_memory(file))
    return TM_OK;
  if (!tm_shard_name_parse(tm_file_path(file), &name) || name.count == 1) return TM_OK;
  (void)snprintf(text, sizeof text, "%.240s: by its name part %" PRIu64 " of %" PRIu64 " of a model, but no index names them all: "
                 "it was opened alone", tm_file_label(file), name.number, name.count);
  return tm_archive_add_note(archive, text, error);
}

static tm_status read_file(tm_archive *archive, tm_file *file, tm_error *error) {
  const tm_reader *reader = NULL;
  bool is_open = false;
  tm_status status = tm_reader_find(file, &reader, error);
  if (status == TM_OK && !tm_file_is_in_memory(file)) status = tm_shard_name_check(tm_file_path(file), tm_file_label(file), error);
  if (status == TM_OK) status = find_set(archive, reader, file, &is_open, error);
  if (status != TM_OK || is_open) {
    tm_file_close(file);
    return status;
  }
  archive->is_nameless = reader->is_nameless;
  archive->has_data_files = reader->has_data_files;
  if (reader == &tm_safetensors_reader && (status = note_lone_part(archive, file, error)) != TM_OK) {
    tm_file_close(file);
    return status;
  }
  return reader->read(archive, file, error);
}

static tm_status open_file(tm_archive *archive, const char *path, tm_error *error) {
  tm_file *file = NULL;
  TM_TRY(tm_file_open(archive->memory, path, archive->options.map_files ? TM_FILE_MAP : 0, &file, error));
  return read_file(archive, file, error);
}

/* ------------------------------------------------------------------------------------------------------ folders ---- */

static bool is_meant(const char *name, const char *ending) { return !tm_name_is_hidden(name) && tm_text_has_ending(name, ending); }

/* An index speaks for its shards, so it comes first.  What models are trained and kept in comes before what is exported beside it. */
static const char usual_index[] = "model.safetensors.index.json";
static const char *const model_endings[] = { ".safetensors.index.json", ".safetensors", ".gguf", ".onnx", ".npy" };

#define ENDING_COUNT (sizeof model_endings / sizeof model_endings[0])

/* The endings from the one given on, up to the next given, are asked together; several models of them are ambiguous. */
static const size_t first_endings[] = { 0, 1, 3, 4, ENDING_COUNT };

static bool is_model_name(const char *name) {
  for (size_t i = 0; i < ENDING_COUNT; i++)
    if (is_meant(name, model_endings[i])) return true;
  return false;
}

/* Parts of one model, of which each stands for all; sorted names of one set follow each other. */
static bool is_same_model(const char *name, const char *before) {
  tm_shard_name part, other;
  return before != NULL && tm_text_has_ending(name, ".gguf") && tm_shard_name_parse(name, &part) &&
         tm_shard_name_parse(before, &other) && tm_shard_name_is_of(&part, &other);
}

/* Adds the models with that ending to *count; *found is the last of their names. */
static void count_names(const char *const *names, uint64_t name_count, const char *ending, uint64_t *count, const char **found) {
  const char *before = NULL;
  for (uint64_t i = 0; i < name_count; i++) {
    if (!is_meant(names[i], ending)) continue;
    if (is_same_model(names[i], before)) continue;
    before = names[i];
    *found = names[i];
    (*count)++;
  }
}

/* The file that a folder stands for, or NULL: several are a question that only the caller can answer. */
static const char *choose_name(const char *const *names, uint64_t name_count) {
  const char *found = NULL;
  uint64_t count = 0;
  for (uint64_t i = 0; i < name_count; i++)
    if (strcmp(names[i], usual_index) == 0) return names[i];
  for (size_t group = 0; count == 0 && first_endings[group] < ENDING_COUNT; group++)
    for (size_t i = first_endings[group]; i < first_endings[group + 1]; i++)
      count_names(names, name_count, model_endings[i], &count, &found);
  return count == 1 ? found : NULL;
}

/* How many names with that ending there are (NULL: of any model), and the first few of them. */
static uint64_t show_models(const char *const *names, uint64_t count, const char *ending, char *text, size_t capacity) {
  size_t used = 0;
  uint64_t models = 0;
  const char *before = NULL;
  for (uint64_t i = 0; i < count; i++) {
    const bool counts = ending == NULL ? is_model_name(names[i]) : is_meant(names[i], ending);
    if (!counts || is_same_model(names[i], before)) continue;
    before = names[i];
    if (++models > 3) continue;
    const int written = snprintf(text + used, capacity - used, " %s", tm_show_name((tm_string){ names[i], strlen(names[i]) }).text);
    if (written > 0) used += (size_t)written < capacity - used ? (size_t)written : capacity - used - 1;
  }
  return models;
}

static tm_status fail_folder(const char *label, const char *const *names, uint64_t count, tm_error *error) {
  char text[800] = "";
  const uint64_t indexes = show_models(names, count, model_endings[0], text, sizeof text);
  if (indexes > 1)
    return tm_fail(error, TM_ERROR_NOT_FOUND, "%s: the folder holds the indexes of %" PRIu64 " sets; name one of them:%s%s", label,
                   indexes, text, indexes > 3 ? " ..." : "");
  const uint64_t models = show_models(names, count, NULL, text, sizeof text);
  if (models == 0)
    return tm_fail(error, TM_ERROR_NOT_FOUND, "%s: none of the %" PRIu64 " entries of the folder is a model file "
                   "(*.safetensors, *.gguf, *.onnx, *.npy) or the index of a set", label, count);
  return tm_fail(error, TM_ERROR_NOT_FOUND, "%s: the folder holds %" PRIu64 " model files and no index that says which belong "
                 "together; name one of them:%s%s", label, models, text, models > 3 ? " ..." : "");
}

tm_status tm_archive_find_in_folder(tm_arena *arena, const char *path, char **out_path, tm_error *error) {
  const char **names = NULL;
  uint64_t count = 0;
  const tm_shown_name label = tm_show_name((tm_string){ path, strlen(path) });
  const tm_status status = tm_folder_list(arena, path, &names, &count, error);
  if (status != TM_OK) {
    tm_error_prefix(error, "%s", label.text);
    return status;
  }
  const char *chosen = choose_name(names, count);
  if (chosen == NULL) return fail_folder(label.text, names, count, error);
  if (!tm_text_has_ending(chosen, model_endings[0]) && tm_checkpoint_is_interrupted(arena->memory, path))
    return tm_fail(error, TM_ERROR_NOT_FOUND, "%s: \"%s\" is only a part of it", label.text,
                   tm_show_name((tm_string){ chosen, strlen(chosen) }).text);
  *out_path = tm_path_join(arena, path, strlen(path), chosen);
  return *out_path == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a path") : TM_OK;
}

static tm_status open_path(tm_archive *archive, const char *path, tm_error *error) {
  char *chosen = NULL;
  if (path == NULL || !tm_path_is_folder(path)) return open_file(archive, path, error);
  TM_TRY(tm_archive_find_in_folder(&archive->arena, path, &chosen, error));
  return open_file(archive, chosen, error);
}

/* ------------------------------------------------------------------------------------------------------ opening ---- */

tm_status tm_archive_open(tm_memory *memory, const tm_archive_options *options, const char *path, tm_archive **out_archive,
                          tm_error *error) {
  tm_archive *archive = NULL;
  TM_TRY(tm_archive_create(memory, options, &archive, error));
  const tm_status status = open_path(archive, path, error);
  if (status == TM_OK) *out_archive = archive;
  else tm_archive_close(archive);
  if (status != TM_OK && tm_checkpoint_is_interrupted(memory, path))
    tm_error_prefix(error, TM_CHECKPOINT_INTERRUPTED);
  return status;
}

tm_status tm_archive_open_bytes(tm_memory *memory, const tm_archive_options *options, const char *name, const void *bytes,
                                uint64_t size_bytes, tm_archive **out_archive, tm_error *error) {
  tm_archive *archive = NULL;
  tm_file *file = NULL;
  TM_TRY(tm_archive_create(memory, options, &archive, error));
  tm_status status = tm_file_wrap(memory, name, bytes, size_bytes, &file, error);
  if (status == TM_OK) status = read_file(archive, file, error);
  if (status == TM_OK) *out_archive = archive;
  else tm_archive_close(archive);
  return status;
}
