/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing safetensors (safetensors.c says what that is): one file, or a set with an index if it is to be sharded and does not fit
 * in one.  Tensors keep their order unless one would then begin at an address that is no multiple of its element's size; then the
 * widest elements come first, in their order.  The header is padded with spaces to a multiple of 8 bytes, so offsets are aligned.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "formats/write_layout.h"

#define LENGTH_BYTES UINT64_C(8)
#define HEADER_GRANULE UINT64_C(8)
#define EXTENSION ".safetensors"
#define METADATA_NAME "__metadata__"
#define USUAL_HEADER_LIMIT UINT64_C(100000000)
#define LARGEST_NUMBER_TEXT 64u

typedef struct set_maker {
  tm_write_layout *layout;
  tm_byte_buffer   metadata;    /* "__metadata__":{...}, or nothing */
  uint64_t         late_begin;  /* of the late text there; 0: it is not there */
  tm_byte_buffer   scratch;
  uint64_t        *order;       /* of the tensors of the file being made */
  uint64_t         order_capacity;
  tm_error        *error;
} set_maker;

/* ------------------------------------------------------------------------------------------------ what it can hold ---- */

static bool is_utf8(tm_string text) {
  for (uint64_t i = 0; i < text.length;) {
    const uint32_t length = tm_utf8_length(text.data + i, text.length - i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

static const char *refuse_tensor(const tm_written_tensor *tensor) {
  const tm_string name = tensor->name;
  if (tensor->info != NULL && tensor->info->safetensors == NULL)
    return "safetensors has no such type; write it as another one, or as GGUF";
  if (tensor->info == NULL && !tensor->is_own_type) return "safetensors has no such type, and this version cannot change it to one";
  if (tensor->info == NULL && tensor->element_count != 0 && tensor->bytes == 0) return "it has elements, but no bytes";
  if (!is_utf8(name)) return "its name is not UTF-8, which safetensors asks for";
  if (name.length == sizeof METADATA_NAME - 1 && memcmp(name.data, METADATA_NAME, name.length) == 0)
    return "safetensors uses this name for the metadata";
  return NULL;
}

/* ------------------------------------------------------------------------------------------------------- metadata ---- */

static bool add_metadata(set_maker *maker, const tm_metadata *entry) {
  tm_byte_buffer *buffer = &maker->metadata;
  char number[LARGEST_NUMBER_TEXT];
  tm_string text;
  if (entry->value.type == TM_METADATA_ARRAY || !is_utf8(entry->key)) return false;
  if (!tm_metadata_as_string(&entry->value, &text)) {
    text.length = tm_metadata_print(&entry->value, number, sizeof number);
    text.data = number;
  } else if (!is_utf8(text)) {
    return false;
  }
  tm_byte_buffer_add_text(buffer, buffer->length == 0 ? "\"" METADATA_NAME "\":{" : ",");
  tm_byte_buffer_add_json(buffer, entry->key);
  tm_byte_buffer_add(buffer, ":", 1);
  const uint64_t begin = buffer->length;
  tm_byte_buffer_add_json(buffer, text);
  if (entry != maker->layout->late) return true;
  maker->late_begin = begin;
  maker->layout->late_bytes = buffer->length - begin;
  maker->layout->late_is_json = true;
  return true;
}

/* Values here are strings, so numbers become text; what cannot is said. */
static tm_status make_metadata(set_maker *maker) {
  tm_write_layout *layout = maker->layout;
  uint64_t lost = 0;
  const tm_metadata *first = NULL;
  for (uint64_t i = 0; i < layout->metadata_count; i++) {
    if (add_metadata(maker, layout->metadata[i])) continue;
    if (lost++ == 0) first = layout->metadata[i];
  }
  if (maker->metadata.length != 0) tm_byte_buffer_add(&maker->metadata, "}", 1);
  if (maker->metadata.failed) return tm_write_layout_fail_memory(layout, maker->error);
  if (first == NULL) return TM_OK;
  char key[96];
  (void)tm_text_escape(first->key.data, first->key.length, key, sizeof key);
  return tm_write_layout_note(layout, maker->error, "%" PRIu64 " of %" PRIu64 " metadata entries cannot be kept: safetensors holds "
                              "text alone, and no lists; the first is \"%s\"", lost, layout->metadata_count, key);
}

/* -------------------------------------------------------------------------------------------------------- entries ---- */

static void add_entry(tm_byte_buffer *buffer, const tm_written_tensor *tensor, uint64_t begin, uint64_t end) {
  const char *dtype = tensor->info != NULL ? tensor->info->safetensors : tensor->type_name;
  tm_byte_buffer_add_json(buffer, tensor->name);
  tm_byte_buffer_add_text(buffer, ":{\"dtype\":");
  tm_byte_buffer_add_json(buffer, (tm_string){ dtype, strlen(dtype) });
  tm_byte_buffer_add_text(buffer, ",\"shape\":[");
  for (uint32_t i = 0; i < tensor->rank; i++) {
    if (i > 0) tm_byte_buffer_add(buffer, ",", 1);
    tm_byte_buffer_add_decimal(buffer, tensor->dims[i]);
  }
  tm_byte_buffer_add_text(buffer, "],\"data_offsets\":[");
  tm_byte_buffer_add_decimal(buffer, begin);
  tm_byte_buffer_add(buffer, ",", 1);
  tm_byte_buffer_add_decimal(buffer, end);
  tm_byte_buffer_add_text(buffer, "]}");
}

/* What a tensor takes in a file at most, its entry in the header included. */
static uint64_t needed_bytes(set_maker *maker, const tm_written_tensor *tensor) {
  maker->scratch.length = 0;
  add_entry(&maker->scratch, tensor, UINT64_MAX, UINT64_MAX);
  return tensor->bytes + maker->scratch.length + 1;
}

/* ---------------------------------------------------------------------------------------------------------- order ---- */

static uint64_t alignment_of(const tm_written_tensor *tensor) {
  if (tensor->info == NULL || tensor->info->block_elements != 1) return 1;
  return tensor->info->block_bytes <= 8 ? tensor->info->block_bytes : 8;
}

static bool is_aligned(const set_maker *maker, uint64_t first, uint64_t count) {
  uint64_t offset = 0;
  for (uint64_t i = first; i < first + count; i++) {
    const tm_written_tensor *tensor = &maker->layout->tensors[i];
    if (offset % alignment_of(tensor) != 0) return false;
    offset += tensor->bytes;
  }
  return true;
}

static tm_status make_order(set_maker *maker, uint64_t first, uint64_t count) {
  if (count > maker->order_capacity) {
    tm_memory_free(maker->layout->memory, maker->order, maker->order_capacity * sizeof *maker->order);
    maker->order = tm_memory_calloc(maker->layout->memory, count, sizeof *maker->order);
    maker->order_capacity = maker->order == NULL ? 0 : count;
    if (maker->order == NULL) return tm_write_layout_fail_memory(maker->layout, maker->error);
  }
  uint64_t used = 0;
  if (is_aligned(maker, first, count)) {
    while (used < count) maker->order[used] = first + used, used++;
    return TM_OK;
  }
  for (uint64_t alignment = 8; alignment != 0; alignment /= 2)
    for (uint64_t i = first; i < first + count; i++)
      if (alignment_of(&maker->layout->tensors[i]) == alignment) maker->order[used++] = i;
  return TM_OK;
}

/* ---------------------------------------------------------------------------------------------------------- files ---- */

static void add_header(set_maker *maker, tm_written_file *file, uint64_t count) {
  tm_byte_buffer *header = &file->header;
  uint64_t offset = 0;
  tm_byte_buffer_add_number(header, 0, LENGTH_BYTES);
  tm_byte_buffer_add(header, "{", 1);
  if (maker->late_begin != 0) file->late_offset = header->length + maker->late_begin;
  tm_byte_buffer_add(header, maker->metadata.bytes, maker->metadata.length);
  for (uint64_t i = 0; i < count; i++) {
    const tm_written_tensor *tensor = &maker->layout->tensors[maker->order[i]];
    if (i > 0 || maker->metadata.length != 0) tm_byte_buffer_add(header, ",", 1);
    add_entry(header, tensor, offset, offset + tensor->bytes);
    offset += tensor->bytes;
  }
  tm_byte_buffer_add(header, "}", 1);
  tm_byte_buffer_pad(header, HEADER_GRANULE, ' ');
}

static tm_status finish_header(set_maker *maker, tm_written_file *file) {
  tm_byte_buffer *header = &file->header;
  if (header->failed) return tm_write_layout_fail_memory(maker->layout, maker->error);
  const uint64_t length = header->length - LENGTH_BYTES;
  for (uint32_t i = 0; i < LENGTH_BYTES; i++) header->bytes[i] = (unsigned char)(length >> (8 * i));
  file->bytes = header->length;
  if (length <= USUAL_HEADER_LIMIT) return TM_OK;
  return tm_write_layout_note(maker->layout, maker->error, "the header of %s has %" PRIu64 " bytes; many readers stop at %" PRIu64,
                              file->name, length, USUAL_HEADER_LIMIT);
}

/* A file with the tensors [first, first + count). */
static tm_status make_file(set_maker *maker, const char *name, uint64_t first, uint64_t count) {
  tm_write_layout *layout = maker->layout;
  const uint32_t index = (uint32_t)layout->file_count;
  tm_written_file *file = tm_write_layout_add_file(layout, name);
  if (file == NULL) return tm_write_layout_fail_memory(layout, maker->error);
  TM_TRY(make_order(maker, first, count));
  add_header(maker, file, count);
  TM_TRY(finish_header(maker, file));
  for (uint64_t i = 0; i < count; i++) {
    tm_written_tensor *tensor = &layout->tensors[maker->order[i]];
    tensor->file = index;
    tensor->offset = file->bytes;
    if (!tm_checked_add(file->bytes, tensor->bytes, &file->bytes) || file->bytes > INT64_MAX)
      return tm_fail(maker->error, TM_ERROR_ARGUMENT, "%s: its tensors need more bytes than a file can have", layout->label);
  }
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------- the index ---- */

static tm_status make_index(set_maker *maker, const char *name) {
  tm_write_layout *layout = maker->layout;
  uint64_t total = 0;
  for (uint64_t i = 0; i < layout->tensor_count; i++) total += layout->tensors[i].bytes;
  tm_written_file *index = tm_write_layout_add_file(layout, name);
  if (index == NULL) return tm_write_layout_fail_memory(layout, maker->error);
  tm_byte_buffer *text = &index->header;
  tm_byte_buffer_add_text(text, "{\n  \"metadata\": {\n    \"total_size\": ");
  tm_byte_buffer_add_decimal(text, total);
  tm_byte_buffer_add_text(text, "\n  },\n  \"weight_map\": {");
  for (uint64_t i = 0; i < layout->tensor_count; i++) {
    const char *file = layout->files[layout->tensors[i].file].name;
    tm_byte_buffer_add_text(text, i == 0 ? "\n    " : ",\n    ");
    tm_byte_buffer_add_json(text, layout->tensors[i].name);
    tm_byte_buffer_add_text(text, ": ");
    tm_byte_buffer_add_json(text, (tm_string){ file, strlen(file) });
  }
  tm_byte_buffer_add_text(text, "\n  }\n}\n");
  if (text->failed) return tm_write_layout_fail_memory(layout, maker->error);
  index->bytes = text->length;
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------------ sets ---- */

static char *join_name(tm_write_layout *layout, const char *stem, const char *rest) {
  const size_t length = strlen(stem), more = strlen(rest) + 1;
  char *name = tm_arena_alloc(&layout->arena, length + more);
  if (name == NULL) return NULL;
  memcpy(name, stem, length);
  memcpy(name + length, rest, more);
  return name;
}

/* The end of the shard that begins with tensor `first`: as many as the limit allows, one at least. */
static uint64_t find_end(set_maker *maker, uint64_t first) {
  const tm_write_layout *layout = maker->layout;
  uint64_t used = LENGTH_BYTES + HEADER_GRANULE + 2 + maker->metadata.length, i = first;
  for (; i < layout->tensor_count; i++) {
    if (!tm_checked_add(used, needed_bytes(maker, &layout->tensors[i]), &used)) break;
    if (used > layout->shard_bytes && i > first) break;
  }
  return tm_max_u64(i, tm_min_u64(first + 1, layout->tensor_count));
}

static uint64_t count_shards(set_maker *maker) {
  uint64_t count = 0;
  for (uint64_t first = 0; first < maker->layout->tensor_count; count++) first = find_end(maker, first);
  return count;
}

static tm_status make_set(set_maker *maker, uint64_t shard_count) {
  tm_write_layout *layout = maker->layout;
  const char *stem = tm_write_layout_stem(layout, EXTENSION);
  uint64_t first = 0;
  if (stem == NULL) return tm_write_layout_fail_memory(layout, maker->error);
  if (!is_utf8((tm_string){ stem, strlen(stem) }))
    return tm_fail(maker->error, TM_ERROR_ARGUMENT, "%s: the name of a set must be UTF-8, since it stands in the index",
                   layout->label);
  for (uint64_t i = 0; i < shard_count; i++) {
    char rest[80];
    const uint64_t end = find_end(maker, first);
    (void)snprintf(rest, sizeof rest, "-%05" PRIu64 "-of-%05" PRIu64 EXTENSION, i + 1, shard_count);
    TM_TRY(make_file(maker, join_name(layout, stem, rest), first, end - first));
    first = end;
  }
  return make_index(maker, join_name(layout, stem, EXTENSION ".index.json"));
}

static tm_status make_files(set_maker *maker) {
  tm_write_layout *layout = maker->layout;
  TM_TRY(make_metadata(maker));
  const uint64_t shard_count = layout->shard_bytes == 0 ? 1 : count_shards(maker);
  if (maker->scratch.failed) return tm_write_layout_fail_memory(layout, maker->error);
  if (shard_count > UINT32_MAX - 1) return tm_fail(maker->error, TM_ERROR_ARGUMENT, "%s: too many shards", layout->label);
  if (shard_count > 1) return make_set(maker, shard_count);
  return make_file(maker, tm_arena_string(&layout->arena, layout->name, strlen(layout->name)), 0, layout->tensor_count);
}

static tm_status arrange_safetensors(tm_write_layout *layout, tm_error *error) {
  set_maker maker = { .layout = layout, .error = error };
  TM_TRY(tm_write_layout_check(layout, refuse_tensor, error));
  tm_byte_buffer_init(&maker.metadata, layout->memory);
  tm_byte_buffer_init(&maker.scratch, layout->memory);
  const tm_status status = make_files(&maker);
  tm_byte_buffer_deinit(&maker.metadata);
  tm_byte_buffer_deinit(&maker.scratch);
  tm_memory_free(layout->memory, maker.order, maker.order_capacity * sizeof *maker.order);
  return status;
}

const tm_write_format tm_safetensors_write_format = {
  .name = "safetensors",
  .extension = EXTENSION,
  .arrange = arrange_safetensors,
};
