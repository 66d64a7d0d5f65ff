/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing GGUF version 3, little-endian (gguf.c says what that is).  Metadata come out as they went in, type and bytes; tensors
 * keep their order, each at the next multiple of the alignment, and the file's end is one too: there are readers that want that.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "formats/archive_builder.h"
#include "formats/bytes.h"
#include "formats/write_layout.h"

#define EXTENSION ".gguf"
#define VERSION 3u
#define DEFAULT_ALIGNMENT UINT64_C(32)
#define LONGEST_NAME UINT64_C(65535)
/* The usual reader holds names in so many bytes, an end included, and has so many axes. */
#define USUAL_NAME_BYTES UINT64_C(64)
#define MOST_AXES 4u

/* ------------------------------------------------------------------------------------------------ what it can hold ---- */

static const char *refuse_tensor(const tm_written_tensor *tensor) {
  if (tensor->info == NULL || tensor->info->gguf_type == TM_NO_GGUF_TYPE)
    return "GGUF has no such type; write it as another one, or as safetensors";
  if (tensor->rank > MOST_AXES) return "GGUF has at most 4 axes";
  if (tensor->name.length > LONGEST_NAME) return "GGUF has names of at most 65535 bytes";
  const uint64_t fastest = tensor->rank == 0 ? 1 : tensor->dims[tensor->rank - 1];
  return fastest % tensor->info->block_elements == 0 ? NULL : "its last dimension is no multiple of the type's block";
}

static tm_status note_long_names(tm_write_layout *layout, tm_error *error) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < layout->tensor_count; i++) count += layout->tensors[i].name.length >= USUAL_NAME_BYTES;
  if (count == 0) return TM_OK;
  return tm_write_layout_note(layout, error,
                              "%" PRIu64 " tensor%s of %" PRIu64 " bytes or more, which many readers of GGUF refuse", count,
                              count == 1 ? " has a name" : "s have names", USUAL_NAME_BYTES);
}

/* ------------------------------------------------------------------------------------------------------- metadata ---- */

static bool has_key(const tm_metadata *entry, const char *key) {
  return entry->key.length == strlen(key) && memcmp(entry->key.data, key, entry->key.length) == 0;
}

/* They say which part of a split file this is; all is in one now. */
static bool is_about_split(const tm_metadata *entry) {
  static const char *const keys[] = { "split.no", "split.count", "split.tensors.count" };
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
    if (has_key(entry, keys[i])) return true;
  return false;
}

static tm_status drop_split_keys(tm_write_layout *layout, tm_error *error) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < layout->metadata_count; i++)
    if (!is_about_split(layout->metadata[i])) layout->metadata[kept++] = layout->metadata[i];
  const bool has_changed = kept != layout->metadata_count;
  layout->metadata_count = kept;
  if (!has_changed) return TM_OK;
  return tm_write_layout_note(layout, error, "the keys split.* are left out: all is in one file now");
}

static bool parse_u32(tm_string text, uint64_t *out_number) {
  uint64_t number = 0;
  for (uint64_t i = 0; i < text.length; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    number = 10 * number + (uint64_t)(text.data[i] - '0');
    if (number > UINT32_MAX) return false;
  }
  *out_number = number;
  return text.length != 0;
}

/* The text becomes the number that it was before it went through a format which holds text alone: no reader takes it otherwise. */
static tm_status restore_u32(tm_write_layout *layout, const tm_metadata **entry, tm_error *error) {
  tm_string text;
  uint64_t number;
  if (!tm_metadata_as_string(&(*entry)->value, &text) || !parse_u32(text, &number)) return TM_OK;
  tm_metadata *restored = tm_arena_alloc(&layout->arena, sizeof *restored);
  unsigned char *data = tm_arena_alloc(&layout->arena, sizeof(uint32_t));
  if (restored == NULL || data == NULL) return tm_write_layout_fail_memory(layout, error);
  tm_store_le(data, number, sizeof(uint32_t));
  *restored = **entry;
  restored->value = (tm_metadata_value){ .type = TM_METADATA_U32, .count = 1, .data = data, .bytes = sizeof(uint32_t) };
  *entry = restored;
  return TM_OK;
}

static tm_status find_alignment(tm_write_layout *layout, uint64_t *out_alignment, tm_error *error) {
  uint64_t alignment = DEFAULT_ALIGNMENT;
  for (uint64_t i = 0; i < layout->metadata_count; i++) {
    if (!has_key(layout->metadata[i], "general.alignment")) continue;
    TM_TRY(restore_u32(layout, &layout->metadata[i], error));
    const tm_metadata_value *value = &layout->metadata[i]->value;
    const bool is_number = value->type == TM_METADATA_U32 && tm_metadata_as_u64(value, &alignment);
    if (!is_number || alignment == 0 || (alignment % 8 != 0 && (alignment & (alignment - 1)) != 0))
      return tm_fail(error, TM_ERROR_ARGUMENT, "%s: general.alignment must be a u32 or its decimal text, and a multiple of 8 or a "
                     "power of two", layout->label);
  }
  *out_alignment = alignment;
  return TM_OK;
}

static void add_string(tm_byte_buffer *header, const void *text, uint64_t length) {
  tm_byte_buffer_add_number(header, length, 8);
  tm_byte_buffer_add(header, text, length);
}

static tm_status add_metadata(const tm_write_layout *layout, tm_byte_buffer *header, const tm_metadata *entry, tm_error *error) {
  const tm_metadata_value *value = &entry->value;
  if (entry->key.length > LONGEST_NAME)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: the metadata key \"%s\" has %" PRIu64 " bytes; GGUF has at most %" PRIu64,
                   layout->label, tm_show_name(entry->key).text, entry->key.length, LONGEST_NAME);
  add_string(header, entry->key.data, entry->key.length);
  tm_byte_buffer_add_number(header, value->type, 4);
  if (value->type == TM_METADATA_STRING) {
    add_string(header, value->data, value->bytes);
    return TM_OK;
  }
  if (value->type == TM_METADATA_ARRAY) {
    tm_byte_buffer_add_number(header, value->element_type, 4);
    tm_byte_buffer_add_number(header, value->count, 8);
  }
  tm_byte_buffer_add(header, value->data, value->bytes);
  return TM_OK;
}

/* -------------------------------------------------------------------------------------------------------- tensors ---- */

/* Offsets count from the beginning of the data. */
static tm_status place(tm_write_layout *layout, uint64_t alignment, uint64_t *out_data_bytes, tm_error *error) {
  uint64_t end = 0;
  for (uint64_t i = 0; i < layout->tensor_count; i++) {
    tm_written_tensor *tensor = &layout->tensors[i];
    tensor->offset = end;
    if (!tm_checked_add(end, tensor->bytes, &end) || !tm_checked_round_up(end, alignment, &end) || end > INT64_MAX)
      return tm_fail(error, TM_ERROR_ARGUMENT, "%s: its tensors need more bytes than a file can have", layout->label);
  }
  *out_data_bytes = end;
  return TM_OK;
}

static void add_tensor(tm_byte_buffer *header, const tm_written_tensor *tensor) {
  add_string(header, tensor->name.data, tensor->name.length);
  tm_byte_buffer_add_number(header, tensor->rank, 4);
  for (uint32_t i = tensor->rank; i > 0; i--) tm_byte_buffer_add_number(header, tensor->dims[i - 1], 8);
  tm_byte_buffer_add_number(header, (uint64_t)tensor->info->gguf_type, 4);
  tm_byte_buffer_add_number(header, tensor->offset, 8);
}

/* Without the zeros behind it: an alignment may be large. */
static tm_status make_header(tm_write_layout *layout, tm_written_file *file, tm_error *error) {
  tm_byte_buffer *header = &file->header;
  tm_byte_buffer_add_text(header, "GGUF");
  tm_byte_buffer_add_number(header, VERSION, 4);
  tm_byte_buffer_add_number(header, layout->tensor_count, 8);
  tm_byte_buffer_add_number(header, layout->metadata_count, 8);
  for (uint64_t i = 0; i < layout->metadata_count; i++) {
    TM_TRY(add_metadata(layout, header, layout->metadata[i], error));
    if (layout->metadata[i] != layout->late) continue;
    layout->late_bytes = layout->late->value.bytes;
    file->late_offset = header->length - layout->late_bytes;
  }
  for (uint64_t i = 0; i < layout->tensor_count; i++) add_tensor(header, &layout->tensors[i]);
  return header->failed ? tm_write_layout_fail_memory(layout, error) : TM_OK;
}

static tm_status arrange_gguf(tm_write_layout *layout, tm_error *error) {
  uint64_t alignment = DEFAULT_ALIGNMENT, data_begin = 0, data_bytes = 0;
  if (layout->shard_bytes != 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: this version writes GGUF as one file; leave the size of shards out",
                   layout->label);
  TM_TRY(tm_write_layout_check(layout, refuse_tensor, error));
  TM_TRY(note_long_names(layout, error));
  TM_TRY(drop_split_keys(layout, error));
  TM_TRY(find_alignment(layout, &alignment, error));
  TM_TRY(place(layout, alignment, &data_bytes, error));
  tm_written_file *file = tm_write_layout_add_file(layout, tm_arena_string(&layout->arena, layout->name, strlen(layout->name)));
  if (file == NULL) return tm_write_layout_fail_memory(layout, error);
  TM_TRY(make_header(layout, file, error));
  if (!tm_checked_round_up(file->header.length, layout->tensor_count == 0 ? 1 : alignment, &data_begin) ||
      !tm_checked_add(data_begin, data_bytes, &file->bytes) || file->bytes > INT64_MAX)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: its tensors need more bytes than a file can have", layout->label);
  for (uint64_t i = 0; i < layout->tensor_count; i++) layout->tensors[i].offset += data_begin;
  return TM_OK;
}

const tm_write_format tm_gguf_write_format = {
  .name = "gguf",
  .extension = EXTENSION,
  .arrange = arrange_gguf,
};
