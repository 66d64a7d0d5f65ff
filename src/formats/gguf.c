/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GGUF format, versions 2 and 3, little-endian: magic, u32 version, u64 tensor count, u64 metadata count; per metadata
 * a key (u64 length, text), u32 value type and the value; per tensor its name, u32 number of dims, u64 dims (fastest first),
 * u32 type and u64 offset from the beginning of the data; then the data, aligned to general.alignment (32 if it is not given).
 * Nothing that the file says sizes an allocation or a loop before it has been held against the bytes that are left.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "formats/bytes.h"
#include "formats/reader.h"
#include "formats/window.h"
#include "tensor/format.h"

#define MAGIC "GGUF"
#define MAGIC_BYTES 4u
#define LONGEST_NAME UINT64_C(65535)
#define DEFAULT_ALIGNMENT UINT64_C(32)
/* The least that one metadata (length, type, value) and one tensor (length, dims, type, offset) take. */
#define LEAST_METADATA_BYTES UINT64_C(13)
#define LEAST_TENSOR_BYTES UINT64_C(24)

typedef struct gguf_parser {
  tm_archive *archive;
  const char *label;
  tm_window   window;
  char       *name;             /* LONGEST_NAME bytes: the key or tensor name being read */
  uint64_t    tensor_count;
  uint64_t    metadata_count;
  uint64_t    alignment;
  tm_error   *error;
} gguf_parser;

/* ------------------------------------------------------------------------------------------------------- pieces ---- */

static tm_status fail(const gguf_parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));

static tm_status fail(const gguf_parser *parser, const char *format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(text, sizeof text, format, arguments) < 0) text[0] = '\0';
  va_end(arguments);
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: %s", parser->label, text);
}

static tm_status fail_memory(const gguf_parser *parser) {
  return tm_fail(parser->error, TM_ERROR_NO_MEMORY, "%s: no memory for its header", parser->label);
}

/* Are `bytes` more bytes there, and does the limit allow them to be header? */
static tm_status need(const gguf_parser *parser, uint64_t bytes, const char *what) {
  const uint64_t offset = tm_window_offset(&parser->window), remaining = tm_window_remaining(&parser->window);
  const uint64_t limit = parser->archive->options.max_header_bytes;
  if (bytes > remaining)
    return fail(parser, "%s at offset %" PRIu64 " needs %" PRIu64 " bytes, but the file ends at offset %" PRIu64
                ": truncated or damaged", what, offset, bytes, offset + remaining);
  if (bytes <= limit && offset <= limit - bytes) return TM_OK;
  return tm_fail(parser->error, TM_ERROR_LIMIT, "%s: the header is longer than the limit of %" PRIu64 " bytes; if that is "
                 "meant, raise it: --max-header SIZE", parser->label, limit);
}

static tm_status take(gguf_parser *parser, uint64_t bytes, const char *what, const unsigned char **out_bytes) {
  TM_TRY(need(parser, bytes, what));
  return tm_window_take(&parser->window, bytes, out_bytes, parser->error);
}

static tm_status take_u32(gguf_parser *parser, const char *what, uint32_t *out_number) {
  const unsigned char *bytes;
  TM_TRY(take(parser, 4, what, &bytes));
  *out_number = tm_load_u32(bytes);
  return TM_OK;
}

static tm_status take_u64(gguf_parser *parser, const char *what, uint64_t *out_number) {
  const unsigned char *bytes;
  TM_TRY(take(parser, 8, what, &bytes));
  *out_number = tm_load_u64(bytes);
  return TM_OK;
}

/* A key or a tensor's name, into parser->name. */
static tm_status take_name(gguf_parser *parser, const char *what, tm_string *out_name) {
  const unsigned char *bytes;
  uint64_t length;
  TM_TRY(take_u64(parser, what, &length));
  if (length > LONGEST_NAME)
    return fail(parser, "%s at offset %" PRIu64 " claims %" PRIu64 " bytes; %" PRIu64 " are allowed", what,
                tm_window_offset(&parser->window) - 8, length, LONGEST_NAME);
  TM_TRY(take(parser, length, what, &bytes));
  memcpy(parser->name, bytes, (size_t)length);
  *out_name = (tm_string){ parser->name, length };
  return TM_OK;
}

/* Copies the bytes [begin, begin + bytes) of the file into the archive's arena. */
static tm_status keep_bytes(gguf_parser *parser, uint64_t begin, uint64_t bytes, const void **out_data) {
  void *data = tm_arena_alloc(&parser->archive->arena, bytes);
  if (data == NULL) return fail_memory(parser);
  TM_TRY(tm_file_read(parser->window.file, begin, data, bytes, parser->error));
  *out_data = data;
  return TM_OK;
}

/* ----------------------------------------------------------------------------------------------------- metadata ---- */

static tm_status skip_array(gguf_parser *parser, uint32_t type, uint64_t count, uint32_t depth);

static tm_status skip_string(gguf_parser *parser) {
  uint64_t length;
  TM_TRY(take_u64(parser, "the length of a string", &length));
  TM_TRY(need(parser, length, "a string"));
  tm_window_skip(&parser->window, length);
  return TM_OK;
}

static tm_status skip_inner_array(gguf_parser *parser, uint32_t depth) {
  uint32_t type;
  uint64_t count;
  TM_TRY(take_u32(parser, "the type of an array", &type));
  TM_TRY(take_u64(parser, "the length of an array", &count));
  return skip_array(parser, type, count, depth);
}

/* Passes over the elements; what they are is not looked at before somebody walks the array. */
static tm_status skip_array(gguf_parser *parser, uint32_t type, uint64_t count, uint32_t depth) {
  const uint64_t least = tm_metadata_least_bytes(type), offset = tm_window_offset(&parser->window);
  uint64_t bytes;
  if (least == 0) return fail(parser, "the array at offset %" PRIu64 " has elements of unknown type %" PRIu32, offset, type);
  if (depth > TM_METADATA_MAX_DEPTH)
    return fail(parser, "the array at offset %" PRIu64 " is nested deeper than %u", offset, TM_METADATA_MAX_DEPTH);
  if (!tm_checked_mul(count, least, &bytes)) bytes = UINT64_MAX;
  TM_TRY(need(parser, bytes, "an array"));
  if (tm_metadata_type_bytes(type) != 0) {
    tm_window_skip(&parser->window, bytes);
    return TM_OK;
  }
  for (uint64_t i = 0; i < count; i++)
    TM_TRY(type == TM_METADATA_STRING ? skip_string(parser) : skip_inner_array(parser, depth + 1));
  return TM_OK;
}

/* Walks the array once to find its end, then reads it in one piece. */
static tm_status read_array(gguf_parser *parser, tm_metadata_value *value) {
  TM_TRY(take_u32(parser, "the type of an array", &value->element_type));
  TM_TRY(take_u64(parser, "the length of an array", &value->count));
  const uint64_t begin = tm_window_offset(&parser->window);
  TM_TRY(skip_array(parser, value->element_type, value->count, 1));
  value->bytes = tm_window_offset(&parser->window) - begin;
  return keep_bytes(parser, begin, value->bytes, &value->data);
}

/* Short ones come out of the window, so that many of them cost no system call each. */
static tm_status read_string(gguf_parser *parser, tm_metadata_value *value) {
  const unsigned char *bytes;
  TM_TRY(take_u64(parser, "the length of a string", &value->bytes));
  TM_TRY(need(parser, value->bytes, "a string"));
  if (value->bytes <= TM_WINDOW_BYTES) {
    TM_TRY(take(parser, value->bytes, "a string", &bytes));
    value->data = tm_arena_string(&parser->archive->arena, (const char *)bytes, value->bytes);
    return value->data == NULL ? fail_memory(parser) : TM_OK;
  }
  const uint64_t begin = tm_window_offset(&parser->window);
  tm_window_skip(&parser->window, value->bytes);
  return keep_bytes(parser, begin, value->bytes, &value->data);
}

static tm_status read_scalar(gguf_parser *parser, tm_metadata_value *value) {
  const unsigned char *bytes;
  value->bytes = tm_metadata_type_bytes(value->type);
  TM_TRY(take(parser, value->bytes, "a value", &bytes));
  void *copy = tm_arena_alloc(&parser->archive->arena, value->bytes);
  if (copy == NULL) return fail_memory(parser);
  memcpy(copy, bytes, (size_t)value->bytes);
  value->data = copy;
  return TM_OK;
}

static tm_status read_value(gguf_parser *parser, tm_metadata_value *value) {
  if (value->type == TM_METADATA_ARRAY) return read_array(parser, value);
  if (value->type == TM_METADATA_STRING) return read_string(parser, value);
  return read_scalar(parser, value);
}

/* The specification says a multiple of 8; files with smaller powers of two exist. */
static tm_status read_alignment(gguf_parser *parser, const tm_metadata_value *value) {
  uint64_t alignment;
  if (value->type != TM_METADATA_U32 || !tm_metadata_as_u64(value, &alignment))
    return fail(parser, "general.alignment must be a u32, found %s", tm_metadata_type_name(value->type));
  if (alignment == 0 || (alignment % 8 != 0 && (alignment & (alignment - 1)) != 0))
    return fail(parser, "general.alignment is %" PRIu64 "; it must be a multiple of 8 or a power of two", alignment);
  parser->alignment = alignment;
  return TM_OK;
}

static tm_status read_metadata(gguf_parser *parser) {
  static const char alignment_key[] = "general.alignment";
  tm_string key;
  tm_metadata_value value = { .count = 1 };
  TM_TRY(take_name(parser, "a metadata key", &key));
  TM_TRY(take_u32(parser, "the type of a value", &value.type));
  if (value.type >= TM_METADATA_TYPES)
    return fail(parser, "metadata key \"%s\" has a value of unknown type %" PRIu32 " at offset %" PRIu64,
                tm_show_name(key).text, value.type, tm_window_offset(&parser->window) - 4);
  TM_TRY(read_value(parser, &value));
  TM_TRY(tm_archive_add_metadata(parser->archive, key, &value, parser->error));
  const bool is_alignment = key.length == sizeof alignment_key - 1 && memcmp(key.data, alignment_key, (size_t)key.length) == 0;
  return is_alignment ? read_alignment(parser, &value) : TM_OK;
}

/* ------------------------------------------------------------------------------------------------------ tensors ---- */

static tm_status read_dims(gguf_parser *parser, tm_archive_tensor *tensor, uint64_t *dims) {
  const unsigned char *bytes;
  TM_TRY(take_u32(parser, "the number of dimensions of a tensor", &tensor->rank));
  if (tensor->rank > TM_ARCHIVE_MAX_RANK)
    return fail(parser, "tensor \"%s\" claims %" PRIu32 " dimensions; %u are allowed", tm_show_name(tensor->name).text,
                tensor->rank, TM_ARCHIVE_MAX_RANK);
  TM_TRY(take(parser, 8 * (uint64_t)tensor->rank, "the dimensions of a tensor", &bytes));
  for (uint32_t i = 0; i < tensor->rank; i++) dims[tensor->rank - 1 - i] = tm_load_u64(bytes + 8 * i);
  tensor->dims = dims;
  if (tm_count_elements(dims, tensor->rank, &tensor->element_count)) return TM_OK;
  return fail(parser, "tensor \"%s\" has more elements than 64 bits can count", tm_show_name(tensor->name).text);
}

/* A type that is not known is listed by its number; nobody can tell its size. */
static tm_status name_unknown_type(gguf_parser *parser, uint32_t type, tm_archive_tensor *tensor) {
  char text[40];
  const int length = snprintf(text, sizeof text, "gguf type %" PRIu32 "%s", type, tm_gguf_type_is_retired(type) ? " (retired)" : "");
  tensor->flags |= TM_ARCHIVE_TENSOR_UNKNOWN_TYPE;
  tensor->type_name = tm_arena_string(&parser->archive->arena, text, length < 0 ? 0 : (uint64_t)length);
  return tensor->type_name == NULL ? fail_memory(parser) : TM_OK;
}

static tm_status set_type(gguf_parser *parser, uint32_t type, tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_by_gguf(type);
  if (info == NULL) return name_unknown_type(parser, type, tensor);
  const uint64_t fastest = tensor->rank == 0 ? 1 : tensor->dims[tensor->rank - 1];
  if (fastest % info->block_elements != 0)
    return fail(parser, "tensor \"%s\": its fastest dimension is %" PRIu64 ", but %s needs a multiple of %" PRIu32,
                tm_show_name(tensor->name).text, fastest, info->name, info->block_elements);
  if (!tm_format_bytes(info, tensor->element_count, &tensor->bytes))
    return fail(parser, "tensor \"%s\" needs more bytes than 64 bits can count", tm_show_name(tensor->name).text);
  tensor->format = info->format;
  tensor->type_name = info->name;
  return TM_OK;
}

static tm_status read_tensor(gguf_parser *parser) {
  uint64_t dims[TM_ARCHIVE_MAX_RANK];
  tm_archive_tensor tensor = { .format = TM_FORMAT_NONE };
  uint32_t type;
  TM_TRY(take_name(parser, "the name of a tensor", &tensor.name));
  TM_TRY(read_dims(parser, &tensor, dims));
  TM_TRY(take_u32(parser, "the type of a tensor", &type));
  TM_TRY(set_type(parser, type, &tensor));
  TM_TRY(take_u64(parser, "the offset of a tensor", &tensor.offset));
  if (tensor.offset % parser->alignment != 0)
    return fail(parser, "tensor \"%s\" lies at offset %" PRIu64 " of the data, which is no multiple of the alignment %" PRIu64,
                tm_show_name(tensor.name).text, tensor.offset, parser->alignment);
  return tm_archive_add_tensor(parser->archive, &tensor, parser->error);
}

/* Offsets count from the beginning of the data, which is known only after the last tensor. */
static tm_status place_tensors(gguf_parser *parser, uint64_t data_begin) {
  tm_archive *archive = parser->archive;
  for (uint64_t i = archive->first_tensor; i < archive->tensor_count; i++) {
    tm_archive_tensor *tensor = &archive->tensors[i];
    uint64_t end;
    if (!tm_checked_add(tensor->offset, data_begin, &tensor->offset) ||
        !tm_checked_add(tensor->offset, tm_max_u64(tensor->bytes, 1), &end))
      return fail(parser, "tensor \"%s\" ends beyond any file", tm_show_name(tensor->name).text);
  }
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------- header ---- */

static tm_status check_version(const gguf_parser *parser, uint32_t version) {
  if (version == 2 || version == 3) return TM_OK;
  if (version == 1)
    return fail(parser, "is GGUF version 1, which this version does not read; convert it with a tool of its time");
  if (version != 0 && (version & 0xffff) == 0)
    return fail(parser, "is a big-endian GGUF file (its version reads as %" PRIu32 "); this version reads little-endian ones only",
                version);
  return fail(parser, "is GGUF version %" PRIu32 "; this version reads 2 and 3", version);
}

/* A count is believed as far as the bytes left can hold so many. */
static tm_status check_count(const gguf_parser *parser, uint64_t count, uint64_t least_bytes, const char *what) {
  const uint64_t remaining = tm_window_remaining(&parser->window);
  if (count <= remaining / least_bytes) return TM_OK;
  return fail(parser, "the header claims %" PRIu64 " %s, but only %" PRIu64 " bytes follow", count, what, remaining);
}

static tm_status read_counts(gguf_parser *parser) {
  uint32_t version;
  const unsigned char *magic;
  TM_TRY(take(parser, MAGIC_BYTES, "the magic number", &magic));
  if (memcmp(magic, MAGIC, MAGIC_BYTES) != 0) return fail(parser, "is not a GGUF file: it does not begin with " MAGIC);
  TM_TRY(take_u32(parser, "the version", &version));
  TM_TRY(check_version(parser, version));
  TM_TRY(take_u64(parser, "the number of tensors", &parser->tensor_count));
  TM_TRY(take_u64(parser, "the number of metadata", &parser->metadata_count));
  TM_TRY(check_count(parser, parser->metadata_count, LEAST_METADATA_BYTES, "metadata"));
  TM_TRY(check_count(parser, parser->tensor_count, LEAST_TENSOR_BYTES, "tensors"));
  (void)snprintf(parser->archive->format_name, sizeof parser->archive->format_name, "gguf v%" PRIu32, version);
  return TM_OK;
}

static tm_status parse(gguf_parser *parser, uint64_t *out_data_begin) {
  TM_TRY(read_counts(parser));
  for (uint64_t i = 0; i < parser->metadata_count; i++) TM_TRY(read_metadata(parser));
  for (uint64_t i = 0; i < parser->tensor_count; i++) TM_TRY(read_tensor(parser));
  if (!tm_checked_round_up(tm_window_offset(&parser->window), parser->alignment, out_data_begin))
    return fail(parser, "its data begin beyond any file");
  return place_tensors(parser, *out_data_begin);
}

static tm_status read_gguf(tm_archive *archive, tm_file *file, tm_error *error) {
  gguf_parser parser = { .archive = archive, .label = tm_file_label(file), .alignment = DEFAULT_ALIGNMENT, .error = error };
  uint64_t data_begin = 0;
  TM_TRY(tm_archive_begin_file(archive, file, error));
  TM_TRY(tm_window_init(&parser.window, archive->memory, file, error));
  parser.name = tm_memory_alloc(archive->memory, LONGEST_NAME, 0);
  tm_status status = parser.name == NULL ? fail_memory(&parser) : parse(&parser, &data_begin);
  tm_memory_free(archive->memory, parser.name, LONGEST_NAME);
  tm_window_deinit(&parser.window);
  if (status == TM_OK) status = tm_archive_finish_file(archive, data_begin, TM_GAPS_ALLOWED, error);
  return status;
}

static bool probe_gguf(const tm_head *head) {
  return head->count >= MAGIC_BYTES && memcmp(head->bytes, MAGIC, MAGIC_BYTES) == 0;
}

const tm_reader tm_gguf_reader = {
  .name = "gguf",
  .extension = ".gguf",
  .probe = probe_gguf,
  .read = read_gguf,
};
