/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/archive_builder.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/growth.h"
#include "base/text.h"
#include "formats/layout.h"
#include "formats/stored_form.h"

/* ----------------------------------------------------------------------------------------------------- archive ---- */

/* Several checkpoints may be open at once, and others need handles too. */
#define SHARE_OF_HANDLES 8u

uint32_t tm_archive_usual_open_files(void) {
  return (uint32_t)tm_min_u64(tm_max_u64(tm_file_handle_limit() / SHARE_OF_HANDLES, 1), UINT32_MAX);
}

static tm_archive_options fill_defaults(const tm_archive_options *options) {
  tm_archive_options filled = options == NULL ? (tm_archive_options){ 0 } : *options;
  if (filled.max_header_bytes == 0) filled.max_header_bytes = TM_ARCHIVE_DEFAULT_HEADER_BYTES;
  if (filled.max_open_files == 0) filled.max_open_files = tm_archive_usual_open_files();
  return filled;
}

tm_status tm_archive_create(tm_memory *memory, const tm_archive_options *options, tm_archive **out_archive, tm_error *error) {
  tm_archive *archive = tm_memory_calloc(memory, 1, sizeof *archive);
  if (archive == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to open a checkpoint");
  archive->memory = memory;
  archive->options = fill_defaults(options);
  tm_arena_init(&archive->arena, memory);
  tm_name_table_init(&archive->tensor_names, memory);
  tm_name_table_init(&archive->metadata_names, memory);
  tm_name_table_init(&archive->file_keys, memory);
  *out_archive = archive;
  return TM_OK;
}

void tm_archive_close(tm_archive *archive) {
  if (archive == NULL) return;
  for (uint64_t i = 0; i < archive->file_count; i++) tm_file_close(archive->files[i]);
  tm_memory_free(archive->memory, archive->files, archive->file_capacity * sizeof *archive->files);
  tm_memory_free(archive->memory, archive->tensors, archive->tensor_capacity * sizeof *archive->tensors);
  tm_memory_free(archive->memory, archive->metadata, archive->metadata_capacity * sizeof *archive->metadata);
  tm_memory_free(archive->memory, archive->notes, archive->note_capacity * sizeof *archive->notes);
  tm_name_table_deinit(&archive->tensor_names);
  tm_name_table_deinit(&archive->metadata_names);
  tm_name_table_deinit(&archive->file_keys);
  tm_arena_deinit(&archive->arena);
  tm_memory_free(archive->memory, archive, sizeof *archive);
}

void tm_archive_forget_files(tm_archive *archive) {
  for (uint64_t i = 0; i < archive->file_count; i++) tm_file_close(archive->files[i]);
  tm_name_table_deinit(&archive->tensor_names);
  tm_name_table_deinit(&archive->metadata_names);
  tm_name_table_deinit(&archive->file_keys);
  archive->file_count = archive->tensor_count = archive->metadata_count = archive->note_count = 0;
  archive->tensor_bytes = archive->incomplete_count = 0;
}

static tm_status fail_memory(const tm_archive *archive, tm_error *error) {
  return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory for its header",
                 archive->file_count == 0 ? "a checkpoint" : tm_file_label(tm_archive_current_file(archive)));
}

/* ------------------------------------------------------------------------------------------------------- files ---- */

tm_status tm_archive_begin_file(tm_archive *archive, tm_file *file, tm_error *error) {
  tm_file **files = tm_make_room(archive->memory, archive->files, archive->file_count, &archive->file_capacity, sizeof *files);
  if (files == NULL) {
    tm_file_close(file);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to open a file");
  }
  archive->files = files;
  files[archive->file_count++] = file;
  archive->first_tensor = archive->tensor_count;
  archive->first_metadata = archive->metadata_count;
  tm_name_table_deinit(&archive->file_keys);
  return TM_OK;
}

const tm_file *tm_archive_current_file(const tm_archive *archive) { return archive->files[archive->file_count - 1]; }

/* ----------------------------------------------------------------------------------------------------- tensors ---- */

bool tm_count_elements(const uint64_t *dims, uint32_t rank, uint64_t *out_count) {
  uint64_t product = 1;
  bool has_zero = false;
  for (uint32_t i = 0; i < rank; i++) {
    has_zero = has_zero || dims[i] == 0;
    if (dims[i] != 0 && !tm_checked_mul(product, dims[i], &product)) return false;
  }
  *out_count = has_zero ? 0 : product;
  return true;
}

tm_shown_name tm_show_name(tm_string name) {
  tm_shown_name shown;
  (void)tm_text_escape(name.data, name.length, shown.text, sizeof shown.text);
  return shown;
}

static tm_status fail_duplicate_tensor(const tm_archive *archive, uint32_t existing, tm_error *error) {
  const tm_archive_tensor *first = &archive->tensors[existing];
  const char *label = tm_file_label(tm_archive_current_file(archive));
  if (first->file_index == archive->file_count - 1)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: tensor \"%s\" occurs twice", label, tm_show_name(first->name).text);
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: tensor \"%s\" is also in %s", label, tm_show_name(first->name).text,
                 tm_file_label(archive->files[first->file_index]));
}

/* Dims and name share one piece of the arena, which keeps a million small tensors compact. */
static bool copy_variable_parts(tm_archive *archive, tm_archive_tensor *tensor) {
  uint64_t bytes;
  const uint64_t dims_bytes = tensor->rank * sizeof *tensor->dims;
  if (!tm_checked_add(tensor->name.length, dims_bytes + 1, &bytes)) return false;
  char *copy = tm_arena_alloc(&archive->arena, bytes);
  if (copy == NULL) return false;
  if (dims_bytes != 0) memcpy(copy, tensor->dims, (size_t)dims_bytes);
  if (tensor->name.length != 0) memcpy(copy + dims_bytes, tensor->name.data, (size_t)tensor->name.length);
  copy[dims_bytes + tensor->name.length] = '\0';
  tensor->dims = (const uint64_t *)(const void *)copy;
  tensor->name.data = copy + dims_bytes;
  return true;
}

tm_status tm_archive_add_tensor(tm_archive *archive, const tm_archive_tensor *tensor, tm_error *error) {
  const uint64_t index = archive->tensor_count;
  uint32_t existing;
  if (index > TM_NAME_TABLE_LARGEST_INDEX) return tm_fail(error, TM_ERROR_LIMIT, "more than 4,294,967,294 tensors");
  tm_archive_tensor *tensors = tm_make_room(archive->memory, archive->tensors, index, &archive->tensor_capacity, sizeof *tensors);
  if (tensors == NULL) return fail_memory(archive, error);
  archive->tensors = tensors;
  tensors[index] = *tensor;
  tensors[index].file_index = (uint32_t)(archive->file_count - 1);
  if (!copy_variable_parts(archive, &tensors[index]) ||
      !tm_name_table_add(&archive->tensor_names, tensors, sizeof *tensors, (uint32_t)index, &existing))
    return fail_memory(archive, error);
  if (existing != index) return fail_duplicate_tensor(archive, existing, error);
  if (!tm_checked_add(archive->tensor_bytes, tensor->bytes, &archive->tensor_bytes))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: its tensors need more bytes than 64 bits can count",
                   tm_file_label(tm_archive_current_file(archive)));
  archive->tensor_count++;
  return TM_OK;
}

/* ---------------------------------------------------------------------------------------------------- metadata ---- */

/* Writers exist that say a thing twice; that is odd.  Saying two things about one key is an error. */
static tm_status judge_repeated_key(tm_archive *archive, const tm_metadata *first, const tm_metadata *second, tm_error *error) {
  char text[160];
  const tm_shown_name key = tm_show_name(second->key);
  if (!tm_metadata_is_same_value(&first->value, &second->value))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: metadata key \"%s\" occurs twice with different values",
                   tm_file_label(tm_archive_current_file(archive)), key.text);
  (void)snprintf(text, sizeof text, "metadata key \"%s\" occurs twice with the same value", key.text);
  return tm_archive_add_note(archive, text, error);
}

tm_status tm_archive_add_metadata(tm_archive *archive, tm_string key, const tm_metadata_value *value, tm_error *error) {
  const uint64_t index = archive->metadata_count;
  uint32_t existing;
  if (index > TM_NAME_TABLE_LARGEST_INDEX) return tm_fail(error, TM_ERROR_LIMIT, "more than 4,294,967,294 metadata keys");
  tm_metadata *metadata =
      tm_make_room(archive->memory, archive->metadata, index, &archive->metadata_capacity, sizeof *metadata);
  if (metadata == NULL) return fail_memory(archive, error);
  archive->metadata = metadata;
  char *copy = tm_arena_string(&archive->arena, key.data, key.length);
  metadata[index] = (tm_metadata){ .key = { copy, key.length }, .value = *value,
                                   .file_index = (uint32_t)(archive->file_count - 1) };
  if (copy == NULL || !tm_name_table_add(&archive->file_keys, metadata, sizeof *metadata, (uint32_t)index, &existing))
    return fail_memory(archive, error);
  if (existing != index) return judge_repeated_key(archive, &metadata[existing], &metadata[index], error);
  archive->metadata_count++;
  return TM_OK;
}

/* Of a further file of a set for which the first one speaks.  That each counts itself is no contradiction. */
static tm_status drop_metadata(tm_archive *archive, tm_error *error) {
  static const char own[] = "split.";
  char text[400];
  const uint64_t count = archive->metadata_count;
  archive->metadata_count = archive->first_metadata;
  tm_name_table_deinit(&archive->file_keys);
  for (uint64_t i = archive->first_metadata; i < count; i++) {
    const tm_metadata *entry = &archive->metadata[i];
    uint32_t first;
    if (strncmp(entry->key.data, own, sizeof own - 1) == 0) continue;
    if (!tm_name_table_find(&archive->metadata_names, archive->metadata, sizeof *archive->metadata, entry->key, &first)) continue;
    if (tm_metadata_is_same_value(&archive->metadata[first].value, &entry->value)) continue;
    (void)snprintf(text, sizeof text, "%s says another \"%s\" than the first file of the set", tm_file_label(tm_archive_current_file(archive)),
                   tm_show_name(entry->key).text);
    TM_TRY(tm_archive_add_note(archive, text, error));
  }
  return TM_OK;
}

/* The shards of a set tend to say the same: what an earlier file has said word for word is not said again. */
static tm_status merge_metadata(tm_archive *archive, tm_error *error) {
  uint64_t kept = archive->first_metadata;
  if (archive->is_first_file_speaking && archive->file_count > 1) return drop_metadata(archive, error);
  for (uint64_t i = archive->first_metadata; i < archive->metadata_count; i++) {
    uint32_t existing;
    archive->metadata[kept] = archive->metadata[i];
    if (!tm_name_table_add(&archive->metadata_names, archive->metadata, sizeof *archive->metadata, (uint32_t)kept, &existing))
      return fail_memory(archive, error);
    if (existing == kept || !tm_metadata_is_same_value(&archive->metadata[existing].value, &archive->metadata[kept].value)) kept++;
  }
  archive->metadata_count = kept;
  tm_name_table_deinit(&archive->file_keys);
  return TM_OK;
}

tm_status tm_archive_add_note(tm_archive *archive, const char *text, tm_error *error) {
  if (archive->note_count == TM_ARCHIVE_MAX_NOTES) return TM_OK;
  const char **notes = tm_make_room(archive->memory, archive->notes, archive->note_count, &archive->note_capacity, sizeof *notes);
  if (notes == NULL) return fail_memory(archive, error);
  archive->notes = notes;
  notes[archive->note_count] = tm_arena_string(&archive->arena, text, strlen(text));
  if (notes[archive->note_count] == NULL) return fail_memory(archive, error);
  archive->note_count++;
  return TM_OK;
}

/* --------------------------------------------------------------------------------------------------- finishing ---- */

static bool is_incomplete(const tm_archive_tensor *tensor, uint64_t file_bytes) {
  const bool holds_nothing = tensor->bytes == 0 && ((tensor->flags & TM_ARCHIVE_TENSOR_UNKNOWN_TYPE) == 0 ||
                                                    tensor->element_count == 0);
  if (holds_nothing) return false;
  return tensor->offset >= file_bytes || tm_stored_bytes(tensor) > file_bytes - tensor->offset;
}

/* "a", "b" and "c": the first three, and ... if there are more. */
static void list_incomplete(const tm_archive *archive, uint64_t count, char *text, size_t capacity) {
  uint64_t shown = 0;
  size_t used = 0;
  for (uint64_t i = archive->first_tensor; i < archive->tensor_count && shown < tm_min_u64(count, 3); i++) {
    if ((archive->tensors[i].flags & TM_ARCHIVE_TENSOR_INCOMPLETE) == 0) continue;
    const int written = snprintf(text + used, capacity - used, "%s\"%s\"", shown == 0 ? "" : ", ",
                                 tm_show_name(archive->tensors[i].name).text);
    if (written < 0 || (size_t)written >= capacity - used) break;
    used += (size_t)written;
    shown++;
  }
  if (count > shown) (void)snprintf(text + used, capacity - used, ", ...");
}

static tm_status fail_incomplete(const tm_archive *archive, uint64_t count, uint64_t declared_end, tm_error *error) {
  const tm_file *file = tm_archive_current_file(archive);
  const uint64_t missing = declared_end - tm_file_size(file);
  char names[400];
  list_incomplete(archive, count, names, sizeof names);
  return tm_fail(error, TM_ERROR_CORRUPT,
                 "%s: the file ends at offset %" PRIu64 ", but %s declares data up to %" PRIu64 " (%" PRIu64
                 " byte%s missing): %" PRIu64 " of %" PRIu64 " tensors %s incomplete (%s). "
                 "Was a download interrupted? Fetch the file again",
                 tm_file_label(file), tm_file_size(file), tm_archive_declarer(archive, archive->file_count - 1), declared_end, missing,
                 missing == 1 ? " is" : "s are", count, archive->tensor_count - archive->first_tensor, count == 1 ? "is" : "are",
                 names);
}

static tm_status flag_incomplete(tm_archive *archive, tm_error *error) {
  const uint64_t file_bytes = tm_file_size(tm_archive_current_file(archive));
  uint64_t count = 0, declared_end = 0;
  for (uint64_t i = archive->first_tensor; i < archive->tensor_count; i++) {
    tm_archive_tensor *tensor = &archive->tensors[i];
    if (!is_incomplete(tensor, file_bytes)) continue;
    tensor->flags |= TM_ARCHIVE_TENSOR_INCOMPLETE;
    declared_end = tm_max_u64(declared_end, tensor->offset + tm_stored_bytes(tensor));
    count++;
  }
  archive->incomplete_count += count;
  if (count == 0 || archive->options.allow_incomplete) return TM_OK;
  return fail_incomplete(archive, count, tm_max_u64(declared_end, file_bytes), error);
}

tm_status tm_archive_finish_file(tm_archive *archive, uint64_t data_begin, tm_gaps gaps, tm_error *error) {
  const tm_file *file = tm_archive_current_file(archive);
  const tm_layout layout = { .label = tm_file_label(file), .data_begin = data_begin, .file_bytes = tm_file_size(file),
                             .has_gaps = gaps != TM_GAPS_REFUSED };
  const tm_archive_tensor *tensors = archive->tensor_count == 0 ? NULL : archive->tensors + archive->first_tensor;
  if (gaps != TM_OVERLAPS_ALLOWED)
    TM_TRY(tm_layout_check(archive->memory, &layout, tensors, archive->tensor_count - archive->first_tensor, error));
  TM_TRY(flag_incomplete(archive, error));
  TM_TRY(merge_metadata(archive, error));
  if (archive->file_count > archive->options.max_open_files) tm_file_park(archive->files[archive->file_count - 1]);
  return TM_OK;
}
