/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/check_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/growth.h"
#include "formats/checkpoint_recovery.h"
#include "formats/shard_name.h"

/* What a path is opened with. */
typedef struct opening {
  tm_check_files           *files;
  tm_job                   *job;
  const tm_archive_options *options;
  tm_error                 *error;
  bool                      is_interrupted;     /* which was told: what is not there is on its way */
} opening;

static tm_status fail_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of files"); }

static tm_status add_row(const opening *o, const tm_check_row *row) {
  if (row->level != TM_CHECK_NOTE) o->files->fault_count++;
  return tm_check_row_add(o->job, row, o->error);
}

/* ------------------------------------------------------------------------------------------- what is in a file ---- */

static uint64_t declared_end(const tm_archive *archive, uint32_t file) {
  uint64_t end = 0;
  for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) {
    const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, i);
    if (tensor->file_index == file) end = tm_max_u64(end, tensor->offset + tensor->bytes);
  }
  return end;
}

static tm_status report_tensor(const opening *o, const tm_archive_file *file, const char *name, const tm_archive_tensor *tensor) {
  tm_check_row row;
  tm_check_row_init(&row, TM_CHECK_FINDING, "truncated", name, tensor);
  (void)snprintf(row.message, sizeof row.message,
                 "incomplete: it needs the bytes up to offset %" PRIu64 ", the file ends at %" PRIu64,
                 tensor->offset + tensor->bytes, file->bytes);
  return add_row(o, &row);
}

/* One row for the file, then one for each tensor that is not whole. */
static tm_status report_truncation(const opening *o, const tm_archive *archive, uint32_t index, const char *name) {
  uint64_t count = 0, total = 0;
  tm_archive_file file;
  if (!tm_archive_file_at(archive, index, &file)) return TM_OK;
  for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) {
    const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, i);
    if (tensor->file_index != index) continue;
    total++;
    count += (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0;
  }
  if (count == 0) return TM_OK;
  tm_check_row row;
  tm_check_row_init(&row, TM_CHECK_FINDING, "truncated_file", name, NULL);
  row.has_counts = true;
  row.count = count;
  row.total = total;
  (void)snprintf(row.message, sizeof row.message, "the file ends at offset %" PRIu64 ", but %s declares data up to %" PRIu64
                 ": %" PRIu64 " of %" PRIu64 " tensors incomplete, %" PRIu64 " intact; was a download interrupted?",
                 file.bytes, tm_archive_declarer(archive, index), declared_end(archive, index), count, total, total - count);
  TM_TRY(add_row(o, &row));
  for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) {
    const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, i);
    if (tensor->file_index == index && (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0)
      TM_TRY(report_tensor(o, &file, name, tensor));
  }
  return TM_OK;
}

static tm_status report_notes(const opening *o, const tm_archive *archive, const char *name) {
  const char *note;
  for (uint64_t i = 0; (note = tm_archive_note_at(archive, i)) != NULL; i++) {
    tm_check_row row;
    tm_check_row_init(&row, TM_CHECK_NOTE, "odd", name, NULL);
    (void)snprintf(row.message, sizeof row.message, "%s", note);
    TM_TRY(add_row(o, &row));
  }
  return TM_OK;
}

/* A checkpoint, or a shard of the one that is counted next. */
static tm_status add_source(const opening *o, const tm_archive *archive, const char *name) {
  tm_check_files *files = o->files;
  tm_job_source *sources =
      tm_make_room(files->memory, files->sources, files->source_count, &files->source_capacity, sizeof *sources);
  if (sources == NULL) return fail_memory(o->error);
  files->sources = sources;
  uint32_t *sets = tm_make_room(files->memory, files->sets, files->source_count, &files->set_capacity, sizeof *sets);
  if (sets == NULL) return fail_memory(o->error);
  files->sets = sets;
  sets[files->source_count] = files->set_count;
  sources[files->source_count++] = (tm_job_source){ archive, name };
  TM_TRY(report_notes(o, archive, name));
  if (tm_archive_incomplete_count(archive) == 0) return TM_OK;
  tm_archive_file file;
  const bool is_set = tm_archive_file_count(archive) > 1;
  for (uint32_t i = 0; tm_archive_file_at(archive, i, &file); i++)
    TM_TRY(report_truncation(o, archive, i, is_set ? file.path : name));
  return TM_OK;
}

/* ------------------------------------------------------------------------------------- what could not be opened ---- */

/* What a file says of itself that cannot be is a finding.  That it could not be read at all says nothing of it. */
static bool is_finding(tm_status status) { return status == TM_ERROR_CORRUPT; }

static tm_status report_refusal(const opening *o, const char *name, tm_status status, const char *text) {
  tm_check_row row;
  tm_check_row_init(&row, is_finding(status) ? TM_CHECK_FINDING : TM_CHECK_TROUBLE, is_finding(status) ? "structure" : "unreadable",
                    name, NULL);
  (void)snprintf(row.message, sizeof row.message, "%s", text);
  return add_row(o, &row);
}

static tm_status refuse(const opening *o, const char *name, tm_status status, const tm_error *error) {
  if (status == TM_ERROR_NO_MEMORY) return tm_fail(o->error, status, "%s", error->text);
  if (status == TM_ERROR_NOT_FOUND && o->is_interrupted) return TM_OK;
  return report_refusal(o, name, status, error->text);
}

/* ---------------------------------------------------------------------------------------------------------- sets ---- */

typedef struct fault_words {
  const char *kind;
  tm_check_level level;
} fault_words;

static const fault_words words_of[] = {
  [TM_SHARD_MISSING] = { "missing_shard", TM_CHECK_FINDING },
  [TM_SHARD_REFUSED] = { "structure", TM_CHECK_FINDING },
  [TM_SHARD_STRAY] = { "stray_shard", TM_CHECK_FINDING },
  [TM_SHARD_TENSOR_MISSING] = { "missing_tensor", TM_CHECK_FINDING },
  [TM_SHARD_TENSOR_MISPLACED] = { "misplaced_tensor", TM_CHECK_FINDING },
  [TM_SHARD_TENSOR_UNINDEXED] = { "unindexed_tensor", TM_CHECK_FINDING },
  [TM_SHARD_TENSOR_TWICE] = { "duplicate_tensor", TM_CHECK_FINDING },
  [TM_SHARD_TOTAL] = { "odd", TM_CHECK_NOTE },
  [TM_SHARD_TOTAL_ODD] = { "odd", TM_CHECK_NOTE },
};

static void word_fault(const tm_shard_fault *fault, char *text, size_t capacity) {
  switch (fault->kind) {
    case TM_SHARD_MISSING:
      (void)snprintf(text, capacity, "the index names this file, and there is none; %" PRIu64 " tensor%s should be in it",
                     fault->count, fault->count == 1 ? "" : "s");
      break;
    case TM_SHARD_REFUSED: (void)snprintf(text, capacity, "%s", fault->text); break;
    case TM_SHARD_STRAY: (void)snprintf(text, capacity, "lies beside the index, which does not name it"); break;
    case TM_SHARD_TENSOR_MISSING:
      (void)snprintf(text, capacity, "the index says that it is in this file, but no file has it");
      break;
    case TM_SHARD_TENSOR_MISPLACED:
      (void)snprintf(text, capacity, "is in this file, but the index says that it is in %.600s", fault->other);
      break;
    case TM_SHARD_TENSOR_UNINDEXED: (void)snprintf(text, capacity, "is in this file, but not in the index"); break;
    case TM_SHARD_TENSOR_TWICE: (void)snprintf(text, capacity, "is in this file, and in %.600s, too", fault->other); break;
    case TM_SHARD_TOTAL:
      (void)snprintf(text, capacity, "the index says total_size %" PRIu64 ", the tensors in the files have %" PRIu64 " bytes",
                     fault->count, fault->actual);
      break;
    case TM_SHARD_TOTAL_ODD: (void)snprintf(text, capacity, "the index says a total_size that is no whole number"); break;
  }
}

static tm_status take_fault(void *context, const tm_shard_fault *fault, tm_error *error) {
  const opening *o = context;
  (void)error;                  /* the opening's own */
  tm_check_row row;
  if (tm_job_is_cancelled(o->job)) return TM_ERROR_CANCELLED;
  if (fault->kind == TM_SHARD_REFUSED) return report_refusal(o, fault->path, fault->status, fault->text);
  tm_check_row_init(&row, words_of[fault->kind].level, words_of[fault->kind].kind, fault->path, NULL);
  row.tensor = fault->tensor;
  if (fault->other != NULL) row.other = (tm_string){ fault->other, strlen(fault->other) };
  word_fault(fault, row.message, sizeof row.message);
  return add_row(o, &row);
}

static tm_shard_audit *new_audit(tm_check_files *files) {
  tm_shard_audit **audits = tm_make_room(files->memory, files->audits, files->audit_count, &files->audit_capacity, sizeof *audits);
  if (audits == NULL) return NULL;
  files->audits = audits;
  tm_shard_audit *audit = tm_memory_calloc(files->memory, 1, sizeof *audit);
  if (audit == NULL) return NULL;
  audit->memory = files->memory;
  audits[files->audit_count++] = audit;
  return audit;
}

static bool is_part_of(const tm_archive *archive, const char *path) {
  tm_archive_file file;
  if (tm_archive_file_count(archive) < 2) return false;
  for (uint32_t i = 0; tm_archive_file_at(archive, i, &file); i++)
    if (strcmp(file.path, path) == 0) return true;
  return false;
}

/* All shards of a set were named, as a shell does: it is one set nevertheless. */
static bool is_open_already(const tm_check_files *files, const char *path, const char *index_path) {
  for (uint64_t i = 0; i < files->archive_count; i++)
    if (is_part_of(files->archives[i], path)) return true;
  for (uint64_t i = 0; i < files->audit_count; i++) {
    if (index_path == NULL && tm_shard_audit_has(files->audits[i], path)) return true;
    if (index_path != NULL && tm_path_is_same(files->audits[i]->index_path, index_path)) return true;
  }
  return false;
}

static tm_status open_set(const opening *o, const char *index_path) {
  tm_error error = TM_ERROR_INIT;
  tm_shard_audit *audit = new_audit(o->files);
  if (audit == NULL) return fail_memory(o->error);
  opening own = *o;
  own.error = &error;
  const tm_status status =
      tm_shard_audit_init(audit, o->files->memory, &o->files->arena, o->options, index_path, take_fault, &own, &error);
  if (status == TM_ERROR_CANCELLED) return status;
  if (status != TM_OK) TM_TRY(refuse(o, index_path, status, &error));
  for (uint64_t i = 0; i < audit->count; i++) TM_TRY(add_source(o, audit->archives[i], audit->paths[i]));
  o->files->set_count++;
  return TM_OK;
}

/* ----------------------------------------------------------------------------------------------- files and folders ---- */

static tm_status try_open(const opening *o, const tm_archive_options *options, const char *path, tm_error *error) {
  tm_check_files *files = o->files;
  tm_archive *archive = NULL;
  tm_archive **archives =
      tm_make_room(files->memory, files->archives, files->archive_count, &files->archive_capacity, sizeof *archives);
  if (archives == NULL) return fail_memory(error);
  files->archives = archives;
  TM_TRY(tm_archive_open(files->memory, options, path, &archive, error));
  archives[files->archive_count++] = archive;
  return TM_OK;
}

/* Where there are many files most are opened anew for each read. */
#define MOST_OPEN_FILES 64u

/* As a part of the checkpoint that is counted next. */
static tm_status add_part(const opening *o, const char *path) {
  tm_archive *archive = o->files->archives[o->files->archive_count - 1];
  const uint64_t given = o->options->max_open_files, usual = tm_min_u64(MOST_OPEN_FILES, tm_archive_usual_open_files());
  if (o->files->archive_count > (given == 0 ? usual : given)) tm_archive_park(archive);
  return add_source(o, archive, path);
}

static tm_status add_last(const opening *o, const char *path) {
  TM_TRY(add_part(o, path));
  o->files->set_count++;
  return TM_OK;
}

/* The file is there, so what is not is a part of its set. */
static tm_status report_failure(const opening *o, const char *path, tm_status status, const tm_error *error) {
  if (status != TM_ERROR_NOT_FOUND || !tm_path_exists(path)) return refuse(o, path, status, error);
  tm_check_row row;
  tm_check_row_init(&row, TM_CHECK_FINDING, "missing_shard", path, NULL);
  (void)snprintf(row.message, sizeof row.message, "%s", error->text);
  return add_row(o, &row);
}

/* Any part stands for its set, which is told of once. */
static bool is_told(const opening *o, const tm_shard_name *name) {
  const tm_check_files *files = o->files;
  tm_shard_name known;
  for (uint64_t i = 0; i < files->told_set_count; i++)
    if (tm_shard_name_parse(files->told_sets[i], &known) && tm_shard_name_is_of(name, &known)) return true;
  return false;
}

static tm_status remember_told(const opening *o, const tm_shard_name *name) {
  tm_check_files *files = o->files;
  const char **sets = tm_make_room(files->memory, files->told_sets, files->told_set_count, &files->told_set_capacity, sizeof *sets);
  if (sets == NULL) return fail_memory(o->error);
  files->told_sets = sets;
  const char *path = tm_shard_name_path(&files->arena, name, 1);
  if (path == NULL) return fail_memory(o->error);
  sets[files->told_set_count++] = path;
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------- parts without an index ---- */

/* Names of parts that are there, and of one that is not. */
typedef struct part_count {
  uint64_t    there;
  const char *first_missing;    /* NULL: none is */
} part_count;

static tm_status count_parts(const opening *o, const tm_shard_name *name, part_count *out_count) {
  *out_count = (part_count){ 0, NULL };
  for (uint64_t number = 1; number <= name->count; number++) {
    const char *part = tm_shard_name_path(&o->files->arena, name, number);
    if (part == NULL) return fail_memory(o->error);
    if (tm_path_exists(part)) out_count->there++;
    else if (out_count->first_missing == NULL) out_count->first_missing = part;
  }
  return TM_OK;
}

/* Each is a model by itself, but its name says that it is one only with others, and nothing opens them together without an index. */
static tm_status report_unindexed(const opening *o, const char *path) {
  tm_shard_name name;
  part_count parts;
  tm_check_row row;
  if (!tm_shard_name_parse(path, &name) || strcmp(name.extension, ".safetensors") != 0) return TM_OK;
  if (name.count == 1 || is_told(o, &name)) return TM_OK;
  TM_TRY(remember_told(o, &name));
  TM_TRY(count_parts(o, &name, &parts));
  tm_check_row_init(&row, TM_CHECK_FINDING, parts.first_missing == NULL ? "missing_index" : "missing_shard", path, NULL);
  if (parts.first_missing == NULL)
    (void)snprintf(row.message, sizeof row.message, "by its name one of %" PRIu64 " files of a model, which are all there, but "
                   "no index names them: they cannot be opened as one", name.count);
  else
    (void)snprintf(row.message, sizeof row.message, "by its name one of %" PRIu64 " files of a model, of which %" PRIu64
                   " %s missing beside it, such as %.400s; there is no index either", name.count, name.count - parts.there,
                   name.count - parts.there == 1 ? "is" : "are", parts.first_missing);
  return add_row(o, &row);
}

static bool is_gguf_part(const char *path, tm_shard_name *out_name) {
  return tm_shard_name_parse(path, out_name) && strcmp(out_name->extension, ".gguf") == 0;
}

static bool is_known_broken(const opening *o, const char *path) {
  tm_shard_name name;
  return is_gguf_part(path, &name) && is_told(o, &name);
}

static tm_status open_gguf_part(const opening *o, const char *path, uint64_t *refused_count) {
  tm_archive_options options = *o->options;
  tm_error error = TM_ERROR_INIT;
  options.is_alone = true;
  const tm_status status = try_open(o, &options, path, &error);
  if (status == TM_OK) return add_part(o, path);
  (*refused_count)++;
  return refuse(o, path, status, &error);
}

/* Each part by itself.  What is wrong with the set is told for them all where no part was refused for itself. */
static tm_status open_gguf_parts(const opening *o, const char *path, const tm_shard_name *name, tm_status status,
                                 const tm_error *error) {
  uint64_t refused_count = 0;
  TM_TRY(remember_told(o, name));
  if (status == TM_ERROR_NOT_FOUND) TM_TRY(report_failure(o, path, status, error));
  for (uint64_t number = 1; number <= name->count; number++) {
    const char *part = tm_shard_name_path(&o->files->arena, name, number);
    if (part == NULL) return fail_memory(o->error);
    if (tm_job_is_cancelled(o->job)) return TM_ERROR_CANCELLED;
    if (tm_path_exists(part)) TM_TRY(open_gguf_part(o, part, &refused_count));
  }
  o->files->set_count++;
  return refused_count == 0 && status != TM_ERROR_NOT_FOUND ? report_failure(o, path, status, error) : TM_OK;
}

/* What was told of is left out; everything else may be what it should be. */
static tm_status open_rest(const opening *o, const char *path) {
  tm_archive_options options = *o->options;
  tm_error error = TM_ERROR_INIT;
  options.skip_missing = true;
  const tm_status status = try_open(o, &options, path, &error);
  if (status == TM_OK) return add_last(o, path);
  return status == TM_ERROR_NO_MEMORY ? tm_fail(o->error, status, "%s", error.text) : TM_OK;
}

static tm_status open_what_is_there(const opening *o, const char *path, tm_status status, const tm_error *error) {
  tm_shard_name name;
  const bool is_of_a_file = status == TM_ERROR_NOT_FOUND || status == TM_ERROR_CORRUPT || status == TM_ERROR_IO;
  const bool is_there = is_of_a_file && tm_path_exists(path);
  if (is_there && is_gguf_part(path, &name)) return open_gguf_parts(o, path, &name, status, error);
  TM_TRY(report_failure(o, path, status, error));
  return is_there ? open_rest(o, path) : TM_OK;
}

static tm_status open_one(const opening *o, const char *path) {
  tm_error error = TM_ERROR_INIT;
  if (is_known_broken(o, path)) return TM_OK;
  const tm_status status = try_open(o, o->options, path, &error);
  if (status != TM_OK) return open_what_is_there(o, path, status, &error);
  TM_TRY(add_last(o, path));
  return report_unindexed(o, path);
}

/* Whether files of two checkpoints may lie there.  Of shards the first that is named is told of. */
static tm_status report_interruption(opening *o, const char *path) {
  tm_shard_name name;
  tm_check_row row;
  o->is_interrupted = tm_checkpoint_is_interrupted(o->files->memory, path);
  if (!o->is_interrupted) return TM_OK;
  const bool is_shard = tm_shard_name_parse(path, &name);
  if (is_shard && is_told(o, &name)) return TM_OK;
  if (is_shard) TM_TRY(remember_told(o, &name));
  tm_check_row_init(&row, TM_CHECK_FINDING, "interrupted", path, NULL);
  (void)snprintf(row.message, sizeof row.message, "%s", TM_CHECKPOINT_INTERRUPTED);
  return add_row(o, &row);
}

/* A file, or the set that it belongs to. */
static tm_status open_part(opening *o, const char *path) {
  tm_check_files *files = o->files;
  if (is_open_already(files, path, NULL)) return TM_OK;
  const char *index_path;
  TM_TRY(tm_shard_audit_find_index(files->memory, &files->arena, path, &index_path, o->error));
  if (index_path != NULL && is_open_already(files, path, index_path)) return TM_OK;
  TM_TRY(report_interruption(o, index_path == NULL ? path : index_path));
  return index_path == NULL ? open_one(o, path) : open_set(o, index_path);
}

/* A folder that stands for one checkpoint is that one; of one that does not each model is checked by itself. */
static tm_status open_folder(opening *o, const char *path) {
  tm_error error = TM_ERROR_INIT;
  const char **names = NULL;
  uint64_t count = 0, models = 0;
  char *chosen;
  TM_TRY(report_interruption(o, path));
  const bool is_one = tm_archive_find_in_folder(&o->files->arena, path, &chosen, NULL) == TM_OK;
  const tm_status status = try_open(o, o->options, path, &error);
  if (status == TM_OK) TM_TRY(add_last(o, path));
  if (status == TM_OK) return is_one ? report_unindexed(o, chosen) : TM_OK;
  if (status == TM_ERROR_CORRUPT && is_one)
    return is_known_broken(o, chosen) ? TM_OK : open_what_is_there(o, chosen, status, &error);
  if (status != TM_ERROR_NOT_FOUND) return refuse(o, path, status, &error);
  if (tm_folder_list(&o->files->arena, path, &names, &count, o->error) == TM_ERROR_NO_MEMORY) return TM_ERROR_NO_MEMORY;
  for (uint64_t i = 0; i < count; i++) {
    if (tm_name_is_hidden(names[i]) || !tm_archive_is_model_name(names[i])) continue;
    if (tm_job_is_cancelled(o->job)) return TM_ERROR_CANCELLED;
    const char *model = tm_path_join(&o->files->arena, path, strlen(path), names[i]);
    if (model == NULL) return fail_memory(o->error);
    models++;
    opening own = *o;
    TM_TRY(open_part(&own, model));
  }
  return models == 0 ? refuse(o, path, status, &error) : TM_OK;
}

tm_status tm_check_files_open(tm_check_files *files, tm_job *job, const tm_archive_options *options, const char *path,
                              tm_error *error) {
  opening o = { files, job, options, error, false };
  if (tm_job_is_cancelled(job)) return TM_ERROR_CANCELLED;
  if (!tm_path_is_folder(path)) return open_part(&o, path);
  const char *index_path;
  TM_TRY(tm_shard_audit_find_index(files->memory, &files->arena, path, &index_path, error));
  if (index_path == NULL) return open_folder(&o, path);
  if (is_open_already(files, path, index_path)) return TM_OK;
  TM_TRY(report_interruption(&o, index_path));
  return open_set(&o, index_path);
}

void tm_check_files_init(tm_check_files *files, tm_memory *memory) {
  *files = (tm_check_files){ .memory = memory };
  tm_arena_init(&files->arena, memory);
}

void tm_check_files_deinit(tm_check_files *files) {
  for (uint64_t i = 0; i < files->archive_count; i++) tm_archive_close(files->archives[i]);
  for (uint64_t i = 0; i < files->audit_count; i++) {
    tm_shard_audit_deinit(files->audits[i]);
    tm_memory_free(files->memory, files->audits[i], sizeof *files->audits[i]);
  }
  tm_memory_free(files->memory, files->archives, files->archive_capacity * sizeof *files->archives);
  tm_memory_free(files->memory, files->audits, files->audit_capacity * sizeof *files->audits);
  tm_memory_free(files->memory, files->told_sets, files->told_set_capacity * sizeof *files->told_sets);
  tm_memory_free(files->memory, files->sources, files->source_capacity * sizeof *files->sources);
  tm_memory_free(files->memory, files->sets, files->set_capacity * sizeof *files->sets);
  tm_arena_deinit(&files->arena);
}
