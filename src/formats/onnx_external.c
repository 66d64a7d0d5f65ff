/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of an ONNX model whose bytes are in files beside it.  A model can name any path, so a file counts only if it lies,
 * with all links followed, in the folder of the model: of the path that was opened, or of the file that this leads to.  (Caches
 * keep both as links to files in one other folder.)
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "formats/onnx.h"
#include "formats/reader.h"
#include "formats/stranger.h"

typedef struct external_files {
  tm_onnx    *parser;
  const char *model;            /* its path */
  uint64_t    skipped_count;
  tm_error   *error;
} external_files;

static int compare_locations(const void *a, const void *b) {
  const tm_onnx_external *first = a, *second = b;
  const int order = strcmp(first->location, second->location);
  if (order != 0) return order;
  return first->order < second->order ? -1 : first->order > second->order;
}

static tm_status fail_place(const external_files *files, const tm_onnx_external *external, const char *why) {
  const tm_shown_name name = tm_show_name(external->tensor.name);
  return tm_fail(files->error, TM_ERROR_CORRUPT, "%s: the data of tensor \"%s\" are said to be in \"%s\", which %s", files->parser->label,
                 name.text, tm_show_name((tm_string){ external->location, strlen(external->location) }).text, why);
}

static tm_status open_one(const external_files *files, const tm_onnx_external *external, tm_file **out_file) {
  tm_archive *archive = files->parser->archive;
  const char *path = tm_path_join(&archive->arena, files->model, tm_path_folder_length(files->model), external->location);
  if (path == NULL) return tm_onnx_fail_memory(files->parser);
  if (!tm_path_goes_inwards(external->location))
    return fail_place(files, external, "leads out of the model's folder; it is not opened");
  if (!tm_path_exists(path))
    return tm_fail(files->error, TM_ERROR_NOT_FOUND, "%s: the data of tensor \"%s\" are in \"%s\", which is missing beside the model",
                   files->parser->label, tm_show_name(external->tensor.name).text,
                   tm_show_name((tm_string){ external->location, strlen(external->location) }).text);
  if (tm_path_is_folder(path)) return fail_place(files, external, "is a folder");
  if (!tm_path_is_beside(path, files->model))
    return fail_place(files, external, "leads out of the model's folder through a link; it is not opened");
  return tm_file_open(archive->memory, path, archive->options.map_files ? TM_FILE_MAP : 0, out_file, files->error);
}

/* What was not fetched is no weights; anything else may be. */
static tm_status check_fetched(const external_files *files, const tm_file *file) {
  static const char pointer[] = "version https://git-lfs";
  tm_head head = { .path = tm_file_path(file), .file_bytes = tm_file_size(file), .count = sizeof pointer - 1 };
  if (head.file_bytes < head.count) return TM_OK;
  TM_TRY(tm_file_read(file, 0, head.bytes, head.count, files->error));
  return memcmp(head.bytes, pointer, sizeof pointer - 1) == 0 ? tm_stranger_refuse(&head, tm_file_label(file), files->error) : TM_OK;
}

static tm_status open_fetched(const external_files *files, const tm_onnx_external *external, tm_file **out_file) {
  tm_file *file = NULL;
  TM_TRY(open_one(files, external, &file));
  const tm_status status = check_fetched(files, file);
  if (status == TM_OK) *out_file = file;
  else tm_file_close(file);
  return status;
}

/* The first one was told of when the model was opened without leaving anything out. */
static tm_status skip_file(external_files *files, tm_status status, const tm_error *why) {
  if (status == TM_ERROR_NO_MEMORY) return tm_fail(files->error, status, "%s", why->text);
  return files->skipped_count++ == 0 ? TM_OK : tm_archive_add_note(files->parser->archive, why->text, files->error);
}

/* The tensors from `begin` to `end` lie in one file. */
static tm_status add_file(external_files *files, uint64_t begin, uint64_t end) {
  tm_archive *archive = files->parser->archive;
  const tm_onnx_external *externals = files->parser->externals;
  tm_file *file = NULL;
  tm_error why = TM_ERROR_INIT;
  external_files own = *files;
  own.error = archive->options.skip_missing ? &why : files->error;
  const tm_status status = open_fetched(&own, &externals[begin], &file);
  if (status != TM_OK) return archive->options.skip_missing ? skip_file(files, status, &why) : status;
  TM_TRY(tm_archive_begin_file(archive, file, files->error));
  for (uint64_t i = begin; i < end; i++) TM_TRY(tm_archive_add_tensor(archive, &externals[i].tensor, files->error));
  return tm_archive_finish_file(archive, 0, TM_OVERLAPS_ALLOWED, files->error);
}

tm_status tm_onnx_open_externals(tm_onnx *parser, const tm_file *model) {
  external_files files = { parser, tm_file_path(model), 0, parser->error };
  tm_onnx_external *externals = parser->externals;
  const uint64_t count = parser->external_count;
  if (count == 0) return TM_OK;
  if (tm_file_is_in_memory(model))
    return tm_fail(parser->error, TM_ERROR_ARGUMENT, "%s: the data of tensor \"%s\" are in another file, which cannot be found from memory",
                   parser->label, tm_show_name(externals[0].tensor.name).text);
  qsort(externals, (size_t)count, sizeof *externals, compare_locations);
  for (uint64_t begin = 0, end; begin < count; begin = end) {
    for (end = begin + 1; end < count && strcmp(externals[begin].location, externals[end].location) == 0;) end++;
    TM_TRY(add_file(&files, begin, end));
  }
  return TM_OK;
}
