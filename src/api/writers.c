/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/checkpoint.h"
#include "base/error.h"
#include "base/growth.h"
#include "base/memory_limit.h"
#include "base/name_table.h"
#include "formats/checkpoint_recovery.h"
#include "formats/checkpoint_writer.h"
#include "tensormorph/tensormorph.h"

_Static_assert(TM_WRITER_SAFETENSORS == TM_WRITE_SAFETENSORS && TM_WRITER_GGUF == TM_WRITE_GGUF, "one numbering");
_Static_assert(TM_VALUE_STRING == TM_METADATA_STRING && TM_VALUE_ARRAY == TM_METADATA_ARRAY && TM_VALUE_F64 == TM_METADATA_F64,
               "one numbering");

struct tm_writer {
  tm_context           *context;
  tm_checkpoint_writer *inner;
  uint32_t              format;
};

/* What the layer below asks for, made of what the application gives. */
typedef struct request_lists {
  tm_memory       *memory;
  tm_write_tensor *tensors;
  tm_metadata     *metadata;
  uint64_t         metadata_count;
  const char     **paths;
  uint64_t         path_count, path_capacity;
} request_lists;

static tm_status fail_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write a checkpoint"); }

/* ------------------------------------------------------------------------------------------------------- requests ---- */

static tm_status list_tensors(const tm_writer_options *options, request_lists *lists, tm_error *error) {
  if (options->tensor_count != 0 && options->tensors == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "tensors are counted but not given");
  lists->tensors = tm_memory_calloc(lists->memory, options->tensor_count, sizeof *lists->tensors);
  if (lists->tensors == NULL) return fail_memory(error);
  for (uint64_t i = 0; i < options->tensor_count; i++) {
    const tm_writer_tensor *given = &options->tensors[i];
    if ((given->name == NULL && given->name_length != 0) || (given->dims == NULL && given->rank != 0))
      return tm_fail(error, TM_ERROR_ARGUMENT, "tensor %llu has no name or no dims", (unsigned long long)i);
    lists->tensors[i] = (tm_write_tensor){ .name = { given->name, given->name_length }, .dims = given->dims, .rank = given->rank,
                                           .format = given->format, .type_name = given->type_name, .bytes = given->bytes };
  }
  return TM_OK;
}

static tm_status list_metadata(const tm_writer_options *options, request_lists *lists, tm_error *error) {
  const uint64_t kept = options->metadata_from == NULL ? 0 : tm_archive_metadata_count(options->metadata_from->archive);
  if (options->metadata_count != 0 && options->metadata == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "metadata are counted but not given");
  if (options->metadata_count > UINT32_MAX) return tm_fail(error, TM_ERROR_ARGUMENT, "too many metadata");
  lists->metadata_count = kept + options->metadata_count;
  lists->metadata = tm_memory_calloc(lists->memory, lists->metadata_count, sizeof *lists->metadata);
  if (lists->metadata == NULL) return fail_memory(error);
  for (uint64_t i = 0; i < kept; i++) lists->metadata[i] = *tm_archive_metadata_at(options->metadata_from->archive, i);
  for (uint64_t i = 0; i < options->metadata_count; i++) {
    const tm_writer_metadata *given = &options->metadata[i];
    lists->metadata[kept + i] = (tm_metadata){
      .key = { given->key, given->key_length },
      .value = { .type = given->type, .element_type = given->element_type, .data = given->data, .bytes = given->bytes,
                 .count = given->type == TM_VALUE_ARRAY ? given->count : 1 },
    };
  }
  return TM_OK;
}

static tm_status add_path(request_lists *lists, const char *path, tm_error *error) {
  const char **paths = tm_make_room(lists->memory, lists->paths, lists->path_count, &lists->path_capacity, sizeof *paths);
  if (paths == NULL) return fail_memory(error);
  lists->paths = paths;
  paths[lists->path_count++] = path;
  return TM_OK;
}

/* The path that was opened is one more: it may be that of an index. */
static tm_status add_input(request_lists *lists, const tm_checkpoint *input, tm_error *error) {
  tm_archive_file file;
  TM_TRY(add_path(lists, input->path, error));
  for (uint32_t i = 0; tm_archive_file_at(input->archive, i, &file); i++) TM_TRY(add_path(lists, file.path, error));
  return TM_OK;
}

static tm_status list_inputs(const tm_writer_options *options, request_lists *lists, tm_error *error) {
  if (options->input_count != 0 && options->inputs == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "inputs are counted but not given");
  if (options->metadata_from != NULL) TM_TRY(add_input(lists, options->metadata_from, error));
  for (uint32_t i = 0; i < options->input_count; i++) {
    if (options->inputs[i] == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "input %u is missing", i);
    TM_TRY(add_input(lists, options->inputs[i], error));
  }
  return TM_OK;
}

/* The names of types that this version does not know, as inputs that are safetensors have them. */
typedef struct type_names {
  tm_name_table table;
  tm_string    *items;
  uint64_t      count, capacity;
} type_names;

static tm_status add_type_names(tm_memory *memory, const tm_archive *archive, type_names *names, tm_error *error) {
  if (strcmp(tm_archive_format_name(archive), "safetensors") != 0) return TM_OK;
  for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) {
    const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, i);
    uint32_t at;
    if ((tensor->flags & TM_ARCHIVE_TENSOR_UNKNOWN_TYPE) == 0) continue;
    const tm_string name = { tensor->type_name, strlen(tensor->type_name) };
    if (tm_name_table_find(&names->table, names->items, sizeof *names->items, name, &at)) continue;
    tm_string *items = tm_make_room(memory, names->items, names->count, &names->capacity, sizeof *items);
    if (items == NULL) return fail_memory(error);
    names->items = items;
    items[names->count] = name;
    if (!tm_name_table_add(&names->table, items, sizeof *items, (uint32_t)names->count, &at)) return fail_memory(error);
    names->count++;
  }
  return TM_OK;
}

/* Other formats have other names: what one of them calls a type means nothing in safetensors. */
static tm_status mark_own_types(const tm_writer_options *options, const request_lists *lists, tm_error *error) {
  type_names names = { .items = NULL };
  tm_status status = TM_OK;
  tm_name_table_init(&names.table, lists->memory);
  if (options->metadata_from != NULL) status = add_type_names(lists->memory, options->metadata_from->archive, &names, error);
  for (uint32_t i = 0; i < options->input_count && status == TM_OK; i++)
    status = add_type_names(lists->memory, options->inputs[i]->archive, &names, error);
  for (uint64_t i = 0; i < options->tensor_count && status == TM_OK; i++) {
    tm_write_tensor *tensor = &lists->tensors[i];
    uint32_t at;
    if (tensor->format != TM_FORMAT_NONE || tensor->type_name == NULL) continue;
    const tm_string name = { tensor->type_name, strlen(tensor->type_name) };
    tensor->is_own_type = tm_name_table_find(&names.table, names.items, sizeof *names.items, name, &at);
  }
  tm_name_table_deinit(&names.table);
  tm_memory_free(lists->memory, names.items, names.capacity * sizeof *names.items);
  return status;
}

static void free_lists(const request_lists *lists, const tm_writer_options *options) {
  tm_memory_free(lists->memory, lists->tensors, options->tensor_count * sizeof *lists->tensors);
  tm_memory_free(lists->memory, lists->metadata, lists->metadata_count * sizeof *lists->metadata);
  tm_memory_free(lists->memory, lists->paths, lists->path_capacity * sizeof *lists->paths);
}

static tm_status create_inner(tm_writer *writer, const char *path, const tm_writer_options *options, tm_error *error) {
  request_lists lists = { .memory = &writer->context->memory };
  tm_status status = list_tensors(options, &lists, error);
  if (status == TM_OK) status = list_metadata(options, &lists, error);
  if (status == TM_OK) status = list_inputs(options, &lists, error);
  if (status == TM_OK) status = mark_own_types(options, &lists, error);
  const tm_write_request request = {
    .format = options->format, .path = path, .shard_bytes = options->shard_bytes, .tensors = lists.tensors,
    .tensor_count = options->tensor_count, .metadata = lists.metadata, .metadata_count = lists.metadata_count,
    .input_paths = lists.paths, .input_count = lists.path_count,
  };
  if (status == TM_OK) status = tm_checkpoint_writer_create(lists.memory, &request, &writer->inner, error);
  free_lists(&lists, options);
  return status;
}

tm_status tm_writer_create(tm_context *context, const char *path, const tm_writer_options *options, tm_writer **out_writer,
                           tm_error *error) {
  tm_writer_options known;
  if (options == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "no options: they say what to write");
  TM_TRY(tm_copy_in(options, "tm_writer_options", &known, sizeof known, error));
  TM_TRY(tm_expect_reserved(known.reserved, "tm_writer_options", error));
  tm_writer *writer = tm_memory_calloc(&context->memory, 1, sizeof *writer);
  if (writer == NULL) return fail_memory(error);
  writer->context = context;
  writer->format = known.format;
  const tm_status status = create_inner(writer, path, &known, error);
  if (status == TM_OK) *out_writer = writer;
  else tm_writer_destroy(writer);
  return tm_memory_name_limit(&context->memory, status, error);
}

void tm_writer_destroy(tm_writer *writer) {
  if (writer == NULL) return;
  tm_checkpoint_writer_destroy(writer->inner);
  tm_memory_free(&writer->context->memory, writer, sizeof *writer);
}

/* -------------------------------------------------------------------------------------------------------- telling ---- */

void tm_writer_describe(const tm_writer *writer, tm_writer_description *out_description) {
  tm_write_summary summary;
  const char *path;
  tm_checkpoint_writer_summarize(writer->inner, &summary);
  tm_writer_description description = {
    .struct_size = out_description->struct_size,
    .format = writer->format,
    .file_count = summary.file_count,
    .tensor_count = summary.tensor_count,
    .tensor_bytes = summary.tensor_bytes,
    .file_bytes = summary.file_bytes,
    .free_bytes = summary.free_bytes,
  };
  while (tm_writer_removal(writer, description.removal_count, &path) == TM_OK) description.removal_count++;
  tm_copy_out(out_description, &description, sizeof description);
}

tm_status tm_writer_file(const tm_writer *writer, uint64_t file, tm_writer_file_description *out_description) {
  tm_write_file found;
  if (!tm_checkpoint_writer_file_at(writer->inner, file, &found)) return TM_END;
  const tm_writer_file_description description = { out_description->struct_size, found.replaces, found.path, found.bytes };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

static tm_status give_text(const char *text, const char **out_text) {
  if (text == NULL) return TM_END;
  *out_text = text;
  return TM_OK;
}

tm_status tm_writer_removal(const tm_writer *writer, uint64_t index, const char **out_path) {
  return give_text(tm_checkpoint_writer_removal_at(writer->inner, index), out_path);
}

tm_status tm_writer_note(const tm_writer *writer, uint64_t index, const char **out_note) {
  return give_text(tm_checkpoint_writer_note_at(writer->inner, index), out_note);
}

tm_status tm_writer_tensor_bytes(const tm_writer *writer, uint64_t tensor, uint64_t *out_bytes) {
  uint64_t file, offset;
  return tm_checkpoint_writer_place(writer->inner, tensor, &file, &offset, out_bytes) ? TM_OK : TM_END;
}

/* --------------------------------------------------------------------------------------------------------- writing ---- */

tm_status tm_writer_begin(tm_writer *writer, tm_error *error) { return tm_checkpoint_writer_begin(writer->inner, error); }

tm_status tm_writer_write(tm_writer *writer, uint64_t tensor, uint64_t offset, const void *data, uint64_t bytes, tm_error *error) {
  if (data == NULL && bytes != 0) return tm_fail(error, TM_ERROR_ARGUMENT, "no bytes to write");
  return tm_checkpoint_writer_write(writer->inner, tensor, offset, data, bytes, error);
}

tm_status tm_writer_finish(tm_writer *writer, tm_error *error) { return tm_checkpoint_writer_finish(writer->inner, error); }
void tm_writer_cancel(tm_writer *writer) { tm_checkpoint_writer_cancel(writer->inner); }

tm_status tm_writer_recover(tm_context *context, const char *path, uint64_t *out_removed_count, uint64_t *out_completed_count,
                            tm_error *error) {
  return tm_checkpoint_recover(&context->memory, path, out_removed_count, out_completed_count, error);
}
