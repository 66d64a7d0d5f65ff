/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GGUF model in several files, opened from any of them: NAME-00001-of-00003.gguf and so on beside it.  Each says which part
 * it is (from 0), of how many, and how many tensors all have together; the metadata are those of the first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "formats/gguf.h"
#include "formats/reader.h"
#include "formats/shard_name.h"

typedef struct gguf_set {
  tm_archive          *archive;
  const tm_shard_name *name;
  const tm_gguf_split *split;   /* as the file says that was asked for */
  const char          *label;   /* of that file */
  tm_error            *error;
} gguf_set;

static tm_shown_name show(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  return tm_show_name((tm_string){ name, strlen(name) });
}

static tm_status check_presence(const gguf_set *set) {
  uint64_t missing = 0, shown = 0;
  char names[400] = "";
  size_t used = 0;
  for (uint64_t number = 1; number <= set->name->count; number++) {
    const char *path = tm_shard_name_path(&set->archive->arena, set->name, number);
    if (path == NULL) return tm_fail(set->error, TM_ERROR_NO_MEMORY, "%s: no memory for the set", set->label);
    if (tm_path_exists(path)) continue;
    if (missing++ >= 3) continue;
    const int written = snprintf(names + used, sizeof names - used, "%s\"%s\"", shown++ == 0 ? "" : ", ", show(path).text);
    if (written > 0) used += (size_t)written;
  }
  if (missing == 0) return TM_OK;
  return tm_fail(set->error, TM_ERROR_NOT_FOUND, "%s: is part %" PRIu64 " of a model in %" PRIu64 " files, of which %" PRIu64
                 " %s missing beside it: %s%s", set->label, set->split->number + 1, set->split->count, missing,
                 missing == 1 ? "is" : "are", names,
                 missing > shown ? ", ..." : "");
}

/* Parts are counted from 0. */
static tm_status check_number(const char *label, const tm_gguf_split *split, tm_error *error) {
  if (split->number < split->count) return TM_OK;
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: its split.no %" PRIu64 " is not below its split.count %" PRIu64, label, split->number,
                 split->count);
}

/* Does the part that was just read say of itself what its name and the other parts say? */
static tm_status check_part(const gguf_set *set, const char *label, const tm_gguf_split *part, uint64_t number) {
  if (part->count != set->split->count)
    return tm_fail(set->error, TM_ERROR_CORRUPT, "%s: says split.count %" PRIu64 ", but %s says %" PRIu64 ": files of different "
                   "models are mixed", label, part->count, set->label, set->split->count);
  TM_TRY(check_number(label, part, set->error));
  if (part->number != number - 1)
    return tm_fail(set->error, TM_ERROR_CORRUPT, "%s: its name says part %" PRIu64 ", but its split.no %" PRIu64 " says part %" PRIu64
                   ": a part has the wrong name or is there twice", label, number, part->number, part->number + 1);
  if (part->tensor_count != set->split->tensor_count)
    return tm_fail(set->error, TM_ERROR_CORRUPT, "%s: says split.tensors.count %" PRIu64 ", but %s says %" PRIu64 ": files of "
                   "different models are mixed", label, part->tensor_count, set->label, set->split->tensor_count);
  return TM_OK;
}

static tm_status read_part(const gguf_set *set, uint64_t number) {
  tm_archive *archive = set->archive;
  tm_file *file = NULL;
  tm_gguf_split part = { 0 };
  const tm_reader *reader = NULL;
  const char *path = tm_shard_name_path(&archive->arena, set->name, number);
  if (path == NULL) return tm_fail(set->error, TM_ERROR_NO_MEMORY, "%s: no memory for the set", set->label);
  TM_TRY(tm_file_open(archive->memory, path, archive->options.map_files ? TM_FILE_MAP : 0, &file, set->error));
  tm_status status = tm_reader_find(file, &reader, set->error);
  if (status == TM_OK && reader != &tm_gguf_reader)
    status = tm_fail(set->error, TM_ERROR_CORRUPT, "%s: is a file of the format %s, but a part of a GGUF model is expected there",
                     tm_file_label(file), reader->name);
  if (status != TM_OK) {
    tm_file_close(file);
    return status;
  }
  const char *label = tm_file_label(file);      /* the archive keeps the file */
  TM_TRY(tm_gguf_read_file(archive, file, &part, set->error));
  return check_part(set, label, &part, number);
}

static tm_status check_total(const gguf_set *set) {
  const uint64_t said = set->split->tensor_count, found = set->archive->tensor_count;
  if (said == 0 || said == found) return TM_OK;
  return tm_fail(set->error, TM_ERROR_CORRUPT, "%s: its set should have %" PRIu64 " tensors (split.tensors.count), but its %" PRIu64
                 " files hold %" PRIu64, set->label, said, set->split->count, found);
}

static tm_status open_parts(const gguf_set *set) {
  TM_TRY(check_presence(set));
  tm_archive_forget_files(set->archive);
  set->archive->is_first_file_speaking = true;
  for (uint64_t number = 1; number <= set->name->count; number++) TM_TRY(read_part(set, number));
  return check_total(set);
}

tm_status tm_gguf_open_set(tm_archive *archive, const tm_gguf_split *split, tm_error *error) {
  const tm_file *file = tm_archive_current_file(archive);
  tm_shard_name name;
  if (tm_file_is_in_memory(file)) return tm_archive_add_note(archive, "one part of a model in several files, opened from memory", error);
  const char *path = tm_arena_string(&archive->arena, tm_file_path(file), strlen(tm_file_path(file)));
  const char *label = tm_arena_string(&archive->arena, tm_file_label(file), strlen(tm_file_label(file)));
  if (path == NULL || label == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a path");
  const gguf_set set = { archive, &name, split, label, error };
  TM_TRY(check_number(label, split, error));
  if (!tm_shard_name_parse(path, &name))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: is part %" PRIu64 " of a model in %" PRIu64 " files, but has no name like "
                   "NAME-00001-of-%05" PRIu64 ".gguf, by which the others could be found", label, split->number + 1, split->count,
                   split->count);
  if (name.count != split->count)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: its name says one of %" PRIu64 " files, but its split.count is %" PRIu64, label,
                   name.count, split->count);
  return open_parts(&set);
}
