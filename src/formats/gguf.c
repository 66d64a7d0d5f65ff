/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GGUF format: magic, u32 version, u64 tensor count, u64 metadata count; per metadata a key (u64 length, text), u32 value
 * type and the value; per tensor its name, u32 number of dims, u64 dims (fastest first), u32 type and u64 offset from the
 * beginning of the data; then the data, aligned to general.alignment (32 if it is not given).  In version 1 counts, lengths
 * and dims have 32 bits.  The version tells the order of bytes, which holds for every number of the file, in tensors too.
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
#include "formats/gguf.h"
#include "formats/reader.h"
#include "formats/stored_form.h"
#include "formats/window.h"
#include "tensor/byte_order.h"
#include "tensor/format.h"

#define MAGIC "GGUF"
#define MAGIC_BYTES 4u
/* Written as a number by machines of the other order. */
#define SWAPPED_MAGIC "FUGG"
#define LONGEST_NAME UINT64_C(65535)
#define DEFAULT_ALIGNMENT UINT64_C(32)
/* The least that one metadata (length, type, value) and one tensor (length, dims, type, offset) take besides the length. */
#define LEAST_METADATA_BYTES UINT64_C(5)
#define LEAST_TENSOR_BYTES UINT64_C(16)

typedef struct gguf_parser {
  tm_archive *archive;
  const char *label;
  tm_window   window;
  char       *name;             /* LONGEST_NAME bytes: the key or tensor name being read */
  uint64_t    tensor_count;
  uint64_t    metadata_count;
  uint64_t    alignment;
  bool        is_big_endian;
  uint32_t    count_bytes;      /* of counts, lengths and dims */
  uint64_t    kept_bytes;       /* of the array being read, as the archive keeps it */
  const tm_stored_form *forms[TM_GGUF_TYPE_COUNT];      /* of big-endian tensors; NULL: none of the type yet */
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
                 "meant, raise it: max_header_bytes", parser->label, limit);
}

static tm_status take(gguf_parser *parser, uint64_t bytes, const char *what, const unsigned char **out_bytes) {
  TM_TRY(need(parser, bytes, what));
  return tm_window_take(&parser->window, bytes, out_bytes, parser->error);
}

static uint64_t load(const gguf_parser *parser, const unsigned char *bytes, uint32_t count) {
  return parser->is_big_endian ? tm_load_be(bytes, count) : tm_load_le(bytes, count);
}

static tm_status take_u32(gguf_parser *parser, const char *what, uint32_t *out_number) {
  const unsigned char *bytes;
  TM_TRY(take(parser, 4, what, &bytes));
  *out_number = (uint32_t)load(parser, bytes, 4);
  return TM_OK;
}

static tm_status take_u64(gguf_parser *parser, const char *what, uint64_t *out_number) {
  const unsigned char *bytes;
  TM_TRY(take(parser, 8, what, &bytes));
  *out_number = load(parser, bytes, 8);
  return TM_OK;
}

static tm_status take_count(gguf_parser *parser, const char *what, uint64_t *out_count) {
  const unsigned char *bytes;
  TM_TRY(take(parser, parser->count_bytes, what, &bytes));
  *out_count = load(parser, bytes, parser->count_bytes);
  return TM_OK;
}

/* A key or a tensor's name, into parser->name. */
static tm_status take_name(gguf_parser *parser, const char *what, tm_string *out_name) {
  const unsigned char *bytes;
  uint64_t length;
  TM_TRY(take_count(parser, what, &length));
  if (length > LONGEST_NAME)
    return fail(parser, "%s at offset %" PRIu64 " claims %" PRIu64 " bytes; %" PRIu64 " are allowed", what,
                tm_window_offset(&parser->window) - parser->count_bytes, length, LONGEST_NAME);
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
  TM_TRY(take_count(parser, "the length of a string", &length));
  TM_TRY(need(parser, length, "a string"));
  tm_window_skip(&parser->window, length);
  parser->kept_bytes += sizeof length + length;
  return TM_OK;
}

static tm_status skip_inner_array(gguf_parser *parser, uint32_t depth) {
  uint32_t type;
  uint64_t count;
  TM_TRY(take_u32(parser, "the type of an array", &type));
  TM_TRY(take_count(parser, "the length of an array", &count));
  parser->kept_bytes += sizeof type + sizeof count;
  return skip_array(parser, type, count, depth);
}

static uint64_t least_bytes(const gguf_parser *parser, uint32_t type) {
  const uint64_t least = tm_metadata_least_bytes(type);
  const bool has_count = type == TM_METADATA_STRING || type == TM_METADATA_ARRAY;
  return has_count ? least - sizeof(uint64_t) + parser->count_bytes : least;
}

/* Passes over the elements; what they are is not looked at before somebody walks the array. */
static tm_status skip_array(gguf_parser *parser, uint32_t type, uint64_t count, uint32_t depth) {
  const uint64_t least = least_bytes(parser, type), offset = tm_window_offset(&parser->window);
  uint64_t bytes;
  if (least == 0) return fail(parser, "the array at offset %" PRIu64 " has elements of unknown type %" PRIu32, offset, type);
  if (depth > TM_METADATA_MAX_DEPTH)
    return fail(parser, "the array at offset %" PRIu64 " is nested deeper than %u", offset, TM_METADATA_MAX_DEPTH);
  if (!tm_checked_mul(count, least, &bytes)) bytes = UINT64_MAX;
  TM_TRY(need(parser, bytes, "an array"));
  if (tm_metadata_type_bytes(type) != 0) {
    tm_window_skip(&parser->window, bytes);
    parser->kept_bytes += bytes;
    return TM_OK;
  }
  for (uint64_t i = 0; i < count; i++)
    TM_TRY(type == TM_METADATA_STRING ? skip_string(parser) : skip_inner_array(parser, depth + 1));
  return TM_OK;
}

/* The room that the first walk over an array found to be needed. */
typedef struct kept_array {
  unsigned char *at;
  unsigned char *end;
  uint32_t       depth;
} kept_array;

/* The file may be another one by now. */
static tm_status check_room(const gguf_parser *parser, const kept_array *kept, uint64_t bytes) {
  if (bytes <= (uint64_t)(kept->end - kept->at)) return TM_OK;
  return tm_fail(parser->error, TM_ERROR_CHANGED, "%s: changed while its header was read", parser->label);
}

static void put(kept_array *kept, uint64_t number, uint32_t bytes) {
  tm_store_le(kept->at, number, bytes);
  kept->at += bytes;
}

static tm_status copy_numbers(gguf_parser *parser, uint32_t width, uint64_t count, kept_array *kept) {
  const unsigned char *bytes;
  for (uint64_t left = count; left > 0;) {
    const uint64_t piece = tm_min_u64(left, TM_WINDOW_BYTES / width);
    TM_TRY(check_room(parser, kept, piece * width));
    TM_TRY(take(parser, piece * width, "an array", &bytes));
    for (uint64_t i = 0; i < piece; i++) put(kept, load(parser, bytes + i * width, width), width);
    left -= piece;
  }
  return TM_OK;
}

static tm_status copy_string(gguf_parser *parser, kept_array *kept) {
  const unsigned char *bytes;
  uint64_t length;
  TM_TRY(take_count(parser, "the length of a string", &length));
  TM_TRY(check_room(parser, kept, sizeof length));
  put(kept, length, sizeof length);
  for (uint64_t left = length; left > 0;) {
    const uint64_t piece = tm_min_u64(left, TM_WINDOW_BYTES);
    TM_TRY(check_room(parser, kept, piece));
    TM_TRY(take(parser, piece, "a string", &bytes));
    memcpy(kept->at, bytes, (size_t)piece);
    kept->at += piece;
    left -= piece;
  }
  return TM_OK;
}

static tm_status copy_elements(gguf_parser *parser, uint32_t type, uint64_t count, kept_array *kept);

static tm_status copy_inner_array(gguf_parser *parser, kept_array *kept) {
  uint32_t type;
  uint64_t count;
  TM_TRY(take_u32(parser, "the type of an array", &type));
  TM_TRY(take_count(parser, "the length of an array", &count));
  TM_TRY(check_room(parser, kept, kept->depth == TM_METADATA_MAX_DEPTH ? UINT64_MAX : sizeof type + sizeof count));
  put(kept, type, sizeof type);
  put(kept, count, sizeof count);
  kept->depth++;
  TM_TRY(copy_elements(parser, type, count, kept));
  kept->depth--;
  return TM_OK;
}

/* Elements that have been passed over before, in the form in which the archive keeps them: little-endian, counts of 64 bits. */
static tm_status copy_elements(gguf_parser *parser, uint32_t type, uint64_t count, kept_array *kept) {
  const uint32_t width = tm_metadata_type_bytes(type);
  if (width != 0) return copy_numbers(parser, width, count, kept);
  for (uint64_t i = 0; i < count; i++)
    TM_TRY(type == TM_METADATA_STRING ? copy_string(parser, kept) : copy_inner_array(parser, kept));
  return TM_OK;
}

static tm_status keep_elements(gguf_parser *parser, uint64_t begin, tm_metadata_value *value) {
  unsigned char *data = tm_arena_alloc(&parser->archive->arena, parser->kept_bytes);
  if (data == NULL) return fail_memory(parser);
  kept_array kept = { data, data + parser->kept_bytes, 1 };
  tm_window_seek(&parser->window, begin);
  TM_TRY(copy_elements(parser, value->element_type, value->count, &kept));
  if (kept.at != kept.end) return check_room(parser, &kept, UINT64_MAX);
  value->data = data;
  value->bytes = parser->kept_bytes;
  return TM_OK;
}

/* Walks the array once to find its end, then reads it in one piece where it is as the archive keeps it. */
static tm_status read_array(gguf_parser *parser, tm_metadata_value *value) {
  TM_TRY(take_u32(parser, "the type of an array", &value->element_type));
  TM_TRY(take_count(parser, "the length of an array", &value->count));
  const uint64_t begin = tm_window_offset(&parser->window);
  parser->kept_bytes = 0;
  TM_TRY(skip_array(parser, value->element_type, value->count, 1));
  if (parser->is_big_endian || parser->count_bytes != sizeof(uint64_t)) return keep_elements(parser, begin, value);
  value->bytes = tm_window_offset(&parser->window) - begin;
  return keep_bytes(parser, begin, value->bytes, &value->data);
}

/* Short ones come out of the window, so that many of them cost no system call each. */
static tm_status read_string(gguf_parser *parser, tm_metadata_value *value) {
  const unsigned char *bytes;
  TM_TRY(take_count(parser, "the length of a string", &value->bytes));
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
  unsigned char *copy = tm_arena_alloc(&parser->archive->arena, value->bytes);
  if (copy == NULL) return fail_memory(parser);
  tm_store_le(copy, load(parser, bytes, (uint32_t)value->bytes), (uint32_t)value->bytes);
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
  const uint32_t width = parser->count_bytes;
  TM_TRY(take(parser, (uint64_t)width * tensor->rank, "the dimensions of a tensor", &bytes));
  for (uint32_t i = 0; i < tensor->rank; i++) dims[tensor->rank - 1 - i] = load(parser, bytes + width * i, width);
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

/* One form a type.  A type whose numbers nobody can find is listed, but is no format to compute with. */
static tm_status set_form(gguf_parser *parser, const tm_format_info *info, tm_archive_tensor *tensor) {
  const tm_stored_form **kept = &parser->forms[info->gguf_type];
  if (*kept == NULL) {
    tm_stored_form *form = tm_arena_calloc(&parser->archive->arena, 1, sizeof *form);
    if (form == NULL) return fail_memory(parser);
    form->unit_bytes = info->block_bytes;
    form->is_big_endian = true;
    if (!tm_byte_order_is_known(info)) form->refusal = "its file is big-endian, and writers disagree about this type's order of bytes";
    *kept = form;
  }
  tensor->form = *kept;
  if (tensor->form->refusal == NULL) return TM_OK;
  tensor->format = TM_FORMAT_NONE;
  tensor->flags |= TM_ARCHIVE_TENSOR_UNKNOWN_TYPE;
  return TM_OK;
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
  return parser->is_big_endian ? set_form(parser, info, tensor) : TM_OK;
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

static tm_status set_version(gguf_parser *parser, uint32_t *out_version) {
  const unsigned char *bytes;
  TM_TRY(take(parser, 4, "the version", &bytes));
  const uint64_t little = tm_load_le(bytes, 4), big = tm_load_be(bytes, 4);
  parser->is_big_endian = little > UINT16_MAX && big <= UINT16_MAX;
  const uint64_t version = parser->is_big_endian ? big : little;
  if (version < 1 || version > 3)
    return fail(parser, "is%s GGUF version %" PRIu64 "; this version reads 1 to 3", parser->is_big_endian ? " big-endian" : "", version);
  parser->count_bytes = version == 1 ? sizeof(uint32_t) : sizeof(uint64_t);
  *out_version = (uint32_t)version;
  return TM_OK;
}

/* A count is believed as far as the bytes left can hold so many. */
static tm_status check_count(const gguf_parser *parser, uint64_t count, uint64_t least_bytes, const char *what) {
  const uint64_t remaining = tm_window_remaining(&parser->window);
  if (count <= remaining / least_bytes) return TM_OK;
  return fail(parser, "the header claims %" PRIu64 " %s, but only %" PRIu64 " bytes follow", count, what, remaining);
}

static bool is_magic(const unsigned char *bytes) {
  return memcmp(bytes, MAGIC, MAGIC_BYTES) == 0 || memcmp(bytes, SWAPPED_MAGIC, MAGIC_BYTES) == 0;
}

static tm_status read_counts(gguf_parser *parser) {
  uint32_t version = 0;
  const unsigned char *magic;
  TM_TRY(take(parser, MAGIC_BYTES, "the magic number", &magic));
  if (!is_magic(magic)) return fail(parser, "is not a GGUF file: it does not begin with " MAGIC);
  TM_TRY(set_version(parser, &version));
  TM_TRY(take_count(parser, "the number of tensors", &parser->tensor_count));
  TM_TRY(take_count(parser, "the number of metadata", &parser->metadata_count));
  TM_TRY(check_count(parser, parser->metadata_count, LEAST_METADATA_BYTES + parser->count_bytes, "metadata"));
  TM_TRY(check_count(parser, parser->tensor_count, LEAST_TENSOR_BYTES + parser->count_bytes, "tensors"));
  (void)snprintf(parser->archive->format_name, sizeof parser->archive->format_name, "gguf v%" PRIu32 "%s", version,
                 parser->is_big_endian ? ", big-endian" : "");
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

/* Of the file just parsed.  A set of one is no set. */
static tm_status read_split(const gguf_parser *parser, tm_gguf_split *split) {
  static const char *const keys[] = { "split.no", "split.count", "split.tensors.count" };
  uint64_t *const numbers[] = { &split->number, &split->count, &split->tensor_count };
  const tm_archive *archive = parser->archive;
  *split = (tm_gguf_split){ 0 };
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    const tm_string key = { keys[i], strlen(keys[i]) };
    uint32_t at;
    if (!tm_name_table_find(&archive->file_keys, archive->metadata, sizeof *archive->metadata, key, &at)) continue;
    if (!tm_metadata_as_u64(&archive->metadata[at].value, numbers[i]))
      return fail(parser, "%s must be a number that is not negative, found %s", keys[i],
                  tm_metadata_type_name(archive->metadata[at].value.type));
  }
  return TM_OK;
}

tm_status tm_gguf_read_file(tm_archive *archive, tm_file *file, tm_gguf_split *out_split, tm_error *error) {
  gguf_parser parser = { .archive = archive, .label = tm_file_label(file), .alignment = DEFAULT_ALIGNMENT,
                         .count_bytes = sizeof(uint64_t), .error = error };
  uint64_t data_begin = 0;
  TM_TRY(tm_archive_begin_file(archive, file, error));
  TM_TRY(tm_window_init(&parser.window, archive->memory, file, error));
  parser.name = tm_memory_alloc(archive->memory, LONGEST_NAME, 0);
  tm_status status = parser.name == NULL ? fail_memory(&parser) : parse(&parser, &data_begin);
  tm_memory_free(archive->memory, parser.name, LONGEST_NAME);
  tm_window_deinit(&parser.window);
  if (status == TM_OK) status = read_split(&parser, out_split);
  if (status == TM_OK) status = tm_archive_finish_file(archive, data_begin, TM_GAPS_ALLOWED, error);
  return status;
}

static tm_status read_gguf(tm_archive *archive, tm_file *file, tm_error *error) {
  tm_gguf_split split = { 0 };
  TM_TRY(tm_gguf_read_file(archive, file, &split, error));
  return split.count > 1 && !archive->options.is_alone ? tm_gguf_open_set(archive, &split, error) : TM_OK;
}

static bool probe_gguf(const tm_head *head) {
  return head->count >= MAGIC_BYTES && is_magic(head->bytes);
}

const tm_reader tm_gguf_reader = {
  .name = "gguf",
  .extension = ".gguf",
  .probe = probe_gguf,
  .read = read_gguf,
};
