/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/archive.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "formats/archive_builder.h"
#include "formats/stored_form.h"

void tm_archive_park(tm_archive *archive) {
  for (uint64_t i = 0; i < archive->file_count; i++) tm_file_park(archive->files[i]);
}

const char *tm_archive_format_name(const tm_archive *archive) { return archive->format_name; }

const char *tm_archive_declarer(const tm_archive *archive, uint64_t file_index) {
  return file_index != 0 && archive->has_data_files ? "the model" : "its header";
}
bool tm_archive_is_nameless(const tm_archive *archive) { return archive->is_nameless; }

uint32_t tm_archive_file_count(const tm_archive *archive) { return (uint32_t)archive->file_count; }

bool tm_archive_file_at(const tm_archive *archive, uint32_t index, tm_archive_file *out_file) {
  if (index >= archive->file_count) return false;
  const tm_file *file = archive->files[index];
  *out_file = (tm_archive_file){ .path = tm_file_path(file), .bytes = tm_file_size(file),
                                 .is_mapped = tm_file_bytes(file) != NULL };
  return true;
}

/* ----------------------------------------------------------------------------------------------------- tensors ---- */

uint64_t tm_archive_tensor_count(const tm_archive *archive) { return archive->tensor_count; }

const tm_archive_tensor *tm_archive_tensor_at(const tm_archive *archive, uint64_t index) {
  return index < archive->tensor_count ? &archive->tensors[index] : NULL;
}

bool tm_archive_find(const tm_archive *archive, const char *name, uint64_t name_length, uint64_t *out_index) {
  uint32_t index;
  const tm_string wanted = { name, name_length };
  if (!tm_name_table_find(&archive->tensor_names, archive->tensors, sizeof *archive->tensors, wanted, &index)) return false;
  *out_index = index;
  return true;
}

uint64_t tm_archive_tensor_bytes(const tm_archive *archive) { return archive->tensor_bytes; }
uint64_t tm_archive_incomplete_count(const tm_archive *archive) { return archive->incomplete_count; }

/* ---------------------------------------------------------------------------------------------------- metadata ---- */

uint64_t tm_archive_metadata_count(const tm_archive *archive) { return archive->metadata_count; }

const tm_metadata *tm_archive_metadata_at(const tm_archive *archive, uint64_t index) {
  return index < archive->metadata_count ? &archive->metadata[index] : NULL;
}

const tm_metadata *tm_archive_metadata_find(const tm_archive *archive, const char *key) {
  uint32_t index;
  const tm_string wanted = { key, strlen(key) };
  if (!tm_name_table_find(&archive->metadata_names, archive->metadata, sizeof *archive->metadata, wanted, &index)) return NULL;
  return &archive->metadata[index];
}

const char *tm_archive_note_at(const tm_archive *archive, uint64_t index) {
  return index < archive->note_count ? archive->notes[index] : NULL;
}

/* ------------------------------------------------------------------------------------------------------- bytes ---- */

tm_status tm_archive_read(const tm_archive *archive, uint64_t index, uint64_t offset, void *out_data, uint64_t bytes,
                          tm_error *error) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, index);
  uint64_t end;
  if (tensor == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "there is no tensor %" PRIu64, index);
  const tm_file *file = archive->files[tensor->file_index];
  if (!tm_checked_add(offset, bytes, &end) || end > tensor->bytes)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\" has %" PRIu64 " bytes; %" PRIu64 " at offset %" PRIu64
                   " were asked for", tm_file_label(file), tm_show_name(tensor->name).text, tensor->bytes, bytes, offset);
  if (bytes == 0) return TM_OK;
  if (tensor->form != NULL ? (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0 : tensor->offset + end > tm_file_size(file))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: tensor \"%s\" is incomplete: it needs the bytes up to offset %" PRIu64
                   ", the file ends at %" PRIu64, tm_file_label(file), tm_show_name(tensor->name).text,
                   tensor->offset + (tensor->form != NULL ? tm_stored_bytes(tensor) : end), tm_file_size(file));
  if (tensor->form != NULL) return tm_stored_form_read(tensor, file, offset, out_data, bytes, error);
  return tm_file_read(file, tensor->offset + offset, out_data, bytes, error);
}

const void *tm_archive_mapped(const tm_archive *archive, uint64_t index) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, index);
  if (tensor == NULL || tensor->bytes == 0 || tensor->form != NULL || (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0) return NULL;
  const char *bytes = tm_file_bytes(archive->files[tensor->file_index]);
  return bytes == NULL ? NULL : bytes + tensor->offset;
}

void tm_archive_forget_pages(const tm_archive *archive, tm_pool *pool) {
  for (uint64_t i = 0; i < archive->file_count; i++) tm_file_forget_pages(archive->files[i], pool);
}

tm_status tm_archive_check_unchanged(const tm_archive *archive, tm_error *error) {
  for (uint64_t i = 0; i < archive->file_count; i++) TM_TRY(tm_file_check_unchanged(archive->files[i], error));
  return TM_OK;
}

tm_status tm_archive_check_tensor(const tm_archive *archive, uint64_t index, tm_error *error) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, index);
  if (tensor == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "there is no tensor %" PRIu64, index);
  return tm_file_check_unchanged(archive->files[tensor->file_index], error);
}
