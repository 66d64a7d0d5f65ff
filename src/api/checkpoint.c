/* SPDX-License-Identifier: Apache-2.0 */
#include "api/checkpoint.h"

#include <string.h>

#include "api/tensor.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define LONGEST_PRINTED 1024

/* ---- opening ---- */

static bool init_texts(tm_checkpoint *checkpoint) {
  tm_memory *memory = &checkpoint->context->memory;
  const uint64_t count = tm_archive_metadata_count(checkpoint->archive);
  tm_arena_init(&checkpoint->texts, memory);
  checkpoint->printed_types = tm_memory_calloc(memory, count, sizeof *checkpoint->printed_types);
  checkpoint->printed_values = tm_memory_calloc(memory, count, sizeof *checkpoint->printed_values);
  return checkpoint->printed_types != NULL && checkpoint->printed_values != NULL;
}

tm_archive_options tm_checkpoint_archive_options(const tm_context *context, uint32_t flags) {
  return (tm_archive_options){
    .max_header_bytes = context->max_header_bytes,
    .max_open_files = context->max_open_files,
    .map_files = (context->flags & TM_CONTEXT_MAP_FILES) != 0,
    .allow_incomplete = (flags & TM_CHECKPOINT_ALLOW_INCOMPLETE) != 0,
    .is_alone = (flags & TM_CHECKPOINT_ALONE) != 0,
  };
}

static tm_status fill(tm_checkpoint *checkpoint, const char *path, uint32_t flags, tm_error *error) {
  const tm_archive_options options = tm_checkpoint_archive_options(checkpoint->context, flags);
  TM_TRY(tm_archive_open(&checkpoint->context->memory, &options, path, &checkpoint->archive, error));
  checkpoint->path_bytes = strlen(path) + 1;
  checkpoint->path = tm_memory_alloc(&checkpoint->context->memory, checkpoint->path_bytes, 0);
  if (checkpoint->path == NULL || !init_texts(checkpoint)) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a checkpoint");
  memcpy(checkpoint->path, path, checkpoint->path_bytes);
  tm_archive_file file;
  for (uint32_t i = 0; tm_archive_file_at(checkpoint->archive, i, &file); i++) checkpoint->file_bytes += file.bytes;
  return TM_OK;
}

tm_status tm_checkpoint_open(tm_context *context, const char *path, uint32_t flags, tm_checkpoint **out_checkpoint, tm_error *error) {
  if (path == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "no path");
  if ((flags & ~(TM_CHECKPOINT_ALLOW_INCOMPLETE | TM_CHECKPOINT_ALONE)) != 0) return tm_fail(error, TM_ERROR_ARGUMENT, "unknown flags 0x%x", flags);
  tm_checkpoint *checkpoint = tm_memory_calloc(&context->memory, 1, sizeof *checkpoint);
  if (checkpoint == NULL || tm_mutex_init(&checkpoint->lock) != TM_OK) {
    tm_memory_free(&context->memory, checkpoint, sizeof *checkpoint);
    return tm_memory_name_limit(&context->memory, tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a checkpoint"), error);
  }
  checkpoint->context = context;
  const tm_status status = fill(checkpoint, path, flags, error);
  if (status == TM_OK)
    *out_checkpoint = checkpoint;
  else
    tm_checkpoint_close(checkpoint);
  return tm_memory_name_limit(&context->memory, status, error);
}

void tm_checkpoint_close(tm_checkpoint *checkpoint) {
  if (checkpoint == NULL) return;
  tm_memory *memory = &checkpoint->context->memory;
  if (checkpoint->archive != NULL) {
    const uint64_t count = tm_archive_metadata_count(checkpoint->archive);
    tm_memory_free(memory, checkpoint->printed_types, count * sizeof *checkpoint->printed_types);
    tm_memory_free(memory, checkpoint->printed_values, count * sizeof *checkpoint->printed_values);
    tm_archive_forget_pages(checkpoint->archive, checkpoint->context->pool);
    tm_archive_close(checkpoint->archive);
    tm_kept_drop(&checkpoint->context->kept, NULL);     /* what was made of its weights; others' are made again */
  }
  if (checkpoint->texts.memory != NULL) tm_arena_deinit(&checkpoint->texts);
  tm_mutex_deinit(&checkpoint->lock);
  tm_memory_free(memory, checkpoint->path, checkpoint->path_bytes);
  tm_memory_free(memory, checkpoint, sizeof *checkpoint);
}

/* ---- what is in it ---- */

void tm_checkpoint_describe(const tm_checkpoint *checkpoint, tm_checkpoint_description *out_description) {
  const tm_archive *archive = checkpoint->archive;
  const tm_checkpoint_description description = {
    .struct_size = out_description->struct_size,
    .file_count = tm_archive_file_count(archive),
    .path = checkpoint->path,
    .format = tm_archive_format_name(archive),
    .tensor_count = tm_archive_tensor_count(archive),
    .metadata_count = tm_archive_metadata_count(archive),
    .tensor_bytes = tm_archive_tensor_bytes(archive),
    .file_bytes = checkpoint->file_bytes,
    .incomplete_count = tm_archive_incomplete_count(archive),
  };
  tm_copy_out(out_description, &description, sizeof description);
}

tm_status tm_checkpoint_file(const tm_checkpoint *checkpoint, uint32_t file, tm_file_description *out_description) {
  tm_archive_file found;
  if (!tm_archive_file_at(checkpoint->archive, file, &found)) return TM_END;
  const tm_file_description description = { out_description->struct_size, found.is_mapped, found.path, found.bytes };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_checkpoint_tensor(const tm_checkpoint *checkpoint, uint64_t index, tm_tensor_description *out_description) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(checkpoint->archive, index);
  if (tensor == NULL) return TM_END;
  const bool incomplete = (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0;
  const bool unknown = (tensor->flags & TM_ARCHIVE_TENSOR_UNKNOWN_TYPE) != 0;
  const tm_tensor_description description = {
    .struct_size = out_description->struct_size,
    .flags = (incomplete ? TM_TENSOR_INCOMPLETE : 0) | (unknown ? TM_TENSOR_UNKNOWN_TYPE : 0),
    .name = tensor->name.data,
    .name_length = tensor->name.length,
    .format = tensor->format,
    .rank = tensor->rank,
    .type_name = tensor->type_name,
    .dims = tensor->dims,
    .element_count = tensor->element_count,
    .bytes = tensor->bytes,
    .offset = tensor->offset,
    .file = tensor->file_index,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_checkpoint_find(const tm_checkpoint *checkpoint, const char *name, uint64_t *out_index) {
  return tm_archive_find(checkpoint->archive, name, strlen(name), out_index) ? TM_OK : TM_ERROR_NOT_FOUND;
}

/* Under the lock: prints a value once and keeps the text. */
static bool print_metadata(tm_checkpoint *checkpoint, uint64_t index, const tm_metadata_value *value) {
  if (checkpoint->printed_values[index] != NULL) return true;
  char text[LONGEST_PRINTED];
  tm_metadata_describe_type(value, text, sizeof text);
  checkpoint->printed_types[index] = tm_arena_string(&checkpoint->texts, text, strlen(text));
  const uint64_t length = tm_metadata_print(value, text, sizeof text);
  checkpoint->printed_values[index] = tm_arena_string(&checkpoint->texts, text, length);
  return checkpoint->printed_types[index] != NULL && checkpoint->printed_values[index] != NULL;
}

tm_status tm_checkpoint_metadata(tm_checkpoint *checkpoint, uint64_t index, tm_metadata_description *out_description) {
  const tm_metadata *entry = tm_archive_metadata_at(checkpoint->archive, index);
  if (entry == NULL) return TM_END;
  tm_mutex_lock(&checkpoint->lock);
  const bool printed = print_metadata(checkpoint, index, &entry->value);
  tm_mutex_unlock(&checkpoint->lock);
  if (!printed) return TM_ERROR_NO_MEMORY;
  tm_metadata_description description = {
    .struct_size = out_description->struct_size,
    .key = entry->key.data,
    .key_length = entry->key.length,
    .type = checkpoint->printed_types[index],
    .value = checkpoint->printed_values[index],
    .value_length = strlen(checkpoint->printed_values[index]),
  };
  tm_string text;
  if (tm_metadata_as_string(&entry->value, &text)) {
    description.value = text.data;
    description.value_length = text.length;
  }
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_checkpoint_note(const tm_checkpoint *checkpoint, uint64_t index, const char **out_note) {
  const char *note = tm_archive_note_at(checkpoint->archive, index);
  if (note == NULL) return TM_END;
  *out_note = note;
  return TM_OK;
}

/* ---- bytes ---- */

tm_status tm_checkpoint_read(tm_checkpoint *checkpoint, uint64_t index, uint64_t offset, void *out_data, uint64_t bytes, tm_error *error) {
  return tm_archive_read(checkpoint->archive, index, offset, out_data, bytes, error);
}

static tm_status load_copy(tm_checkpoint *checkpoint, uint64_t index, const tm_operand *operand, tm_tensor **out_tensor, tm_error *error) {
  tm_tensor *tensor = NULL;
  TM_TRY(tm_tensor_make(checkpoint->context, operand, &tensor, error));
  tensor->read_only = true;
  const tm_status status = tm_archive_read(checkpoint->archive, index, 0, tensor->data, operand->byte_count, error);
  if (status == TM_OK)
    *out_tensor = tensor;
  else
    tm_tensor_destroy(tensor);
  return status;
}

tm_status tm_checkpoint_load(tm_checkpoint *checkpoint, uint64_t index, tm_tensor **out_tensor, tm_error *error) {
  const tm_archive_tensor *found = tm_archive_tensor_at(checkpoint->archive, index);
  if (found == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "there is no tensor %llu", (unsigned long long)index);
  if (found->rank > TM_MAX_RANK)
    return tm_fail(error, TM_ERROR_ARGUMENT, "the tensor has rank %u, more than %d", found->rank, TM_MAX_RANK);
  if ((found->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "the file ends before the tensor does");
  if (tm_format_find(found->format) == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "the tensor's type (%.100s) is unknown to this version", found->type_name);
  tm_operand operand;
  TM_TRY(tm_operand_contiguous(found->format, found->rank, found->dims, &operand, error));
  operand.flags |= TM_OPERAND_CONSTANT;
  const void *mapped = tm_archive_mapped(checkpoint->archive, index);
  if (mapped == NULL) return load_copy(checkpoint, index, &operand, out_tensor, error);
  TM_TRY(tm_tensor_borrow(checkpoint->context, &operand, mapped, out_tensor, error));
  (*out_tensor)->checkpoint = checkpoint;
  return TM_OK;
}

tm_status tm_checkpoint_verify(tm_checkpoint *checkpoint, tm_error *error) {
  return tm_archive_check_unchanged(checkpoint->archive, error);
}
