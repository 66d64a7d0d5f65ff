/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The safetensors format: u64 length of the header, the header as a JSON object, then the data.  The object has one entry
 * a tensor, { "dtype", "shape", "data_offsets": [begin, end] } with offsets from the beginning of the data, and may have
 * "__metadata__", an object of strings.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "formats/bytes.h"
#include "base/json_pull.h"
#include "formats/reader.h"
#include "tensor/format.h"

#define LENGTH_BYTES UINT64_C(8)

typedef struct header_parser {
  tm_archive   *archive;
  const char   *label;
  char         *header;         /* ours to change */
  uint64_t      header_bytes;
  tm_json_pull  json;
  tm_error     *error;
} header_parser;

/* The entry of one tensor while it is read. */
typedef struct tensor_entry {
  tm_string  name;
  tm_string  dtype;
  uint64_t   dims[TM_ARCHIVE_MAX_RANK];
  uint64_t   rank;
  uint64_t   offsets[2];
  uint64_t   offset_count;
  uint32_t   seen;              /* bits of the fields that have come */
} tensor_entry;

/* ---------------------------------------------------------------------------------------------------- messages ---- */

static tm_status fail_json(const header_parser *parser) {
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: the header is not valid JSON at offset %" PRIu64 ": %s", parser->label,
                 LENGTH_BYTES + parser->json.error_offset, parser->json.error_text);
}

/* `what` was expected where `token` stands. */
static tm_status fail_token(header_parser *parser, const tm_json_token *token, const char *what) {
  if (token->kind == TM_JSON_ERROR) return fail_json(parser);
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: the header at offset %" PRIu64 ": expected %s", parser->label,
                 LENGTH_BYTES + token->offset, what);
}

static tm_status fail_entry(const header_parser *parser, const tensor_entry *entry, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static tm_status fail_entry(const header_parser *parser, const tensor_entry *entry, const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(text, sizeof text, format, arguments) < 0) text[0] = '\0';
  va_end(arguments);
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: tensor \"%s\": %s", parser->label, tm_show_name(entry->name).text, text);
}

static tm_status fail_entry_token(header_parser *parser, const tensor_entry *entry, const tm_json_token *token, const char *what) {
  if (token->kind == TM_JSON_ERROR) return fail_json(parser);
  return fail_entry(parser, entry, "the header at offset %" PRIu64 ": expected %s", LENGTH_BYTES + token->offset, what);
}

static tm_status fail_memory(const header_parser *parser) {
  return tm_fail(parser->error, TM_ERROR_NO_MEMORY, "%s: no memory for its header of %" PRIu64 " bytes, which takes about three "
                 "times as much while it is read", parser->label, parser->header_bytes);
}

/* --------------------------------------------------------------------------------------------------- JSON parts ---- */

/* The meaning of a key or string.  Escapes are undone in place: what they mean is never longer. */
static tm_string meaning_of(header_parser *parser, const tm_json_token *token) {
  if (!token->has_escapes) return (tm_string){ token->text, token->length };
  char *text = parser->header + (token->text - parser->header);
  return (tm_string){ text, tm_json_unescape(token, text) };
}

/* An array of at most `capacity` non-negative integers, which are called `what`. */
static tm_status read_integers(header_parser *parser, const tensor_entry *entry, const tm_json_token *first, const char *what,
                               uint64_t *numbers, uint64_t capacity, uint64_t *out_count) {
  tm_json_token token = *first;
  uint64_t count = 0;
  if (first->kind != TM_JSON_ARRAY_BEGIN) return fail_entry_token(parser, entry, first, "a list of integers");
  while (tm_json_next(&parser->json, &token) != TM_JSON_ARRAY_END) {
    if (token.kind != TM_JSON_NUMBER || !token.is_integer)
      return fail_entry_token(parser, entry, &token, "a non-negative integer of at most 64 bits");
    if (count == capacity)
      return fail_entry(parser, entry, "the header at offset %" PRIu64 ": it has more than %" PRIu64 " %s", LENGTH_BYTES + token.offset,
                        capacity, what);
    numbers[count++] = token.integer;
  }
  *out_count = count;
  return TM_OK;
}

static tm_status read_dtype(header_parser *parser, tensor_entry *entry, const tm_json_token *first) {
  if (first->kind != TM_JSON_STRING) return fail_entry_token(parser, entry, first, "the name of a dtype");
  entry->dtype = meaning_of(parser, first);
  return TM_OK;
}

static tm_status read_shape(header_parser *parser, tensor_entry *entry, const tm_json_token *first) {
  return read_integers(parser, entry, first, "dimensions", entry->dims, TM_ARCHIVE_MAX_RANK, &entry->rank);
}

static tm_status read_offsets(header_parser *parser, tensor_entry *entry, const tm_json_token *first) {
  TM_TRY(read_integers(parser, entry, first, "data_offsets", entry->offsets, 2, &entry->offset_count));
  return entry->offset_count == 2 ? TM_OK : fail_entry_token(parser, entry, first, "two data_offsets, begin and end");
}

typedef struct field_row {
  const char *name;
  tm_status (*read)(header_parser *parser, tensor_entry *entry, const tm_json_token *first);
} field_row;

static const field_row fields[] = { { "dtype", read_dtype }, { "shape", read_shape }, { "data_offsets", read_offsets } };

#define FIELD_COUNT (sizeof fields / sizeof fields[0])

/* Fields that this version does not know are passed over. */
static tm_status read_field(header_parser *parser, tensor_entry *entry, const tm_json_token *key) {
  tm_json_token first;
  (void)tm_json_next(&parser->json, &first);
  for (size_t i = 0; i < FIELD_COUNT; i++) {
    if (!tm_json_is(key, fields[i].name)) continue;
    if ((entry->seen >> i & 1) != 0) return fail_entry_token(parser, entry, key, "each field once");
    entry->seen |= 1u << i;
    return fields[i].read(parser, entry, &first);
  }
  return tm_json_skip(&parser->json, &first) ? TM_OK : fail_json(parser);
}

/* ------------------------------------------------------------------------------------------------------ tensors ---- */

/* Bytes of a tensor of a known dtype; its offsets must say the same. */
static tm_status check_bytes(const header_parser *parser, const tensor_entry *entry, const tm_format_info *info,
                             const tm_archive_tensor *tensor) {
  uint64_t needed;
  if (tensor->element_count % info->block_elements != 0)
    return fail_entry(parser, entry, "%" PRIu64 " elements of %s do not fill whole bytes; the number must be a multiple of "
                      "%" PRIu32, tensor->element_count, info->safetensors, info->block_elements);
  if (!tm_format_bytes(info, tensor->element_count, &needed))
    return fail_entry(parser, entry, "it needs more bytes than 64 bits can count");
  if (needed != tensor->bytes)
    return fail_entry(parser, entry, "its shape and dtype (%s) need %" PRIu64 " bytes, its data_offsets hold %" PRIu64,
                      info->safetensors, needed, tensor->bytes);
  return TM_OK;
}

static tm_status place_tensor(const header_parser *parser, const tensor_entry *entry, tm_archive_tensor *tensor) {
  const uint64_t begin = entry->offsets[0], end = entry->offsets[1];
  uint64_t file_end;
  if (!tm_count_elements(entry->dims, (uint32_t)entry->rank, &tensor->element_count))
    return fail_entry(parser, entry, "it has more elements than 64 bits can count");
  if (begin > end)
    return fail_entry(parser, entry, "its data_offsets end at %" PRIu64 ", before they begin at %" PRIu64, end, begin);
  if (!tm_checked_add(end, LENGTH_BYTES + parser->header_bytes, &file_end))
    return fail_entry(parser, entry, "its data_offsets end at %" PRIu64 ", beyond any file", end);
  tensor->offset = LENGTH_BYTES + parser->header_bytes + begin;
  tensor->bytes = end - begin;
  return TM_OK;
}

static tm_status check_unknown(const header_parser *parser, const tensor_entry *entry, const tm_archive_tensor *tensor) {
  if (tensor->bytes != 0 || tensor->element_count == 0) return TM_OK;
  return fail_entry(parser, entry, "its shape has %" PRIu64 " elements (%s), its data_offsets hold 0 bytes", tensor->element_count,
                    tm_show_name(entry->dtype).text);
}

/* An unknown dtype is listed by its name; its size is what the offsets say. */
static tm_status add_tensor(header_parser *parser, const tensor_entry *entry) {
  tm_archive_tensor tensor = { .name = entry->name, .dims = entry->dims, .rank = (uint32_t)entry->rank };
  const tm_format_info *info = tm_format_by_safetensors(entry->dtype.data, entry->dtype.length);
  TM_TRY(place_tensor(parser, entry, &tensor));
  if (info != NULL) {
    TM_TRY(check_bytes(parser, entry, info, &tensor));
    tensor.format = info->format;
    tensor.type_name = info->safetensors;
  } else {
    TM_TRY(check_unknown(parser, entry, &tensor));
    tensor.flags = TM_ARCHIVE_TENSOR_UNKNOWN_TYPE;
    tensor.type_name = tm_arena_string(&parser->archive->arena, entry->dtype.data, entry->dtype.length);
    if (tensor.type_name == NULL) return fail_memory(parser);
  }
  return tm_archive_add_tensor(parser->archive, &tensor, parser->error);
}

static tm_status read_tensor(header_parser *parser, const tm_json_token *key) {
  tm_json_token token;
  tensor_entry entry;
  entry.name = meaning_of(parser, key);
  entry.seen = 0;
  if (tm_json_next(&parser->json, &token) != TM_JSON_OBJECT_BEGIN)
    return fail_entry_token(parser, &entry, &token, "an object with dtype, shape and data_offsets");
  while (tm_json_next(&parser->json, &token) == TM_JSON_KEY) TM_TRY(read_field(parser, &entry, &token));
  if (token.kind != TM_JSON_OBJECT_END) return fail_json(parser);
  for (size_t i = 0; i < FIELD_COUNT; i++)
    if ((entry.seen >> i & 1) == 0)
      return fail_entry(parser, &entry, "it has no %s", fields[i].name);
  return add_tensor(parser, &entry);
}

/* ----------------------------------------------------------------------------------------------------- metadata ---- */

static tm_status read_metadata(header_parser *parser) {
  tm_json_token key, token;
  const tm_json_kind kind = tm_json_next(&parser->json, &token);
  if (kind == TM_JSON_NULL) return TM_OK;       /* what some writers put where there are none, and usual readers take */
  if (kind != TM_JSON_OBJECT_BEGIN) return fail_token(parser, &token, "an object of strings as __metadata__");
  while (tm_json_next(&parser->json, &key) == TM_JSON_KEY) {
    if (tm_json_next(&parser->json, &token) != TM_JSON_STRING)
      return fail_token(parser, &token, "a string (each value in __metadata__ is one)");
    const tm_string text = meaning_of(parser, &token);
    const tm_metadata_value value = { .type = TM_METADATA_STRING, .count = 1, .bytes = text.length,
                                      .data = tm_arena_string(&parser->archive->arena, text.data, text.length) };
    if (value.data == NULL) return fail_memory(parser);
    TM_TRY(tm_archive_add_metadata(parser->archive, meaning_of(parser, &key), &value, parser->error));
  }
  return key.kind == TM_JSON_OBJECT_END ? TM_OK : fail_json(parser);
}

/* ------------------------------------------------------------------------------------------------------- header ---- */

static tm_status parse_header(header_parser *parser) {
  tm_json_token token;
  bool has_metadata = false;
  if (parser->header[0] != '{' || tm_json_next(&parser->json, &token) != TM_JSON_OBJECT_BEGIN)
    return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: is not a safetensors file: its header at offset 8 does not begin "
                   "with {", parser->label);
  while (tm_json_next(&parser->json, &token) == TM_JSON_KEY) {
    if (!tm_json_is(&token, "__metadata__")) {
      TM_TRY(read_tensor(parser, &token));
      continue;
    }
    if (has_metadata) return fail_token(parser, &token, "__metadata__ once");
    has_metadata = true;
    TM_TRY(read_metadata(parser));
  }
  if (token.kind != TM_JSON_OBJECT_END || tm_json_next(&parser->json, &token) != TM_JSON_END)
    return fail_json(parser);
  return TM_OK;
}

/* The length is believed only as far as the file and the limit justify it. */
static tm_status read_length(const tm_archive *archive, const tm_file *file, uint64_t *out_length, tm_error *error) {
  unsigned char bytes[LENGTH_BYTES];
  const uint64_t size = tm_file_size(file), limit = archive->options.max_header_bytes;
  if (size < LENGTH_BYTES)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: has %" PRIu64 " bytes; a safetensors file begins with an 8-byte length of its "
                   "header", tm_file_label(file), size);
  TM_TRY(tm_file_read(file, 0, bytes, LENGTH_BYTES, error));
  const uint64_t length = tm_load_u64(bytes);
  if (length == 0) return tm_fail(error, TM_ERROR_CORRUPT, "%s: the header at offset 8 has length 0", tm_file_label(file));
  if (length > size - LENGTH_BYTES)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: the header at offset 8 should have %" PRIu64 " bytes, but the file ends at "
                   "offset %" PRIu64 ": truncated, or no safetensors file", tm_file_label(file), length, size);
  if (length > limit)
    return tm_fail(error, TM_ERROR_LIMIT, "%s: the header has %" PRIu64 " bytes, more than the limit of %" PRIu64 "; if that is "
                   "meant, raise it: max_header_bytes %" PRIu64, tm_file_label(file), length, limit, length);
  *out_length = length;
  return TM_OK;
}

static tm_status read_header(tm_archive *archive, const tm_file *file, uint64_t length, tm_error *error) {
  header_parser parser = { .archive = archive, .label = tm_file_label(file), .header_bytes = length, .error = error };
  parser.header = tm_memory_alloc(archive->memory, length, 0);
  if (parser.header == NULL) return fail_memory(&parser);
  tm_status status = tm_file_read(file, LENGTH_BYTES, parser.header, length, error);
  tm_json_init(&parser.json, parser.header, length);
  if (status == TM_OK) status = parse_header(&parser);
  tm_memory_free(archive->memory, parser.header, length);
  return status == TM_ERROR_NO_MEMORY ? fail_memory(&parser) : status;
}

static tm_status read_safetensors(tm_archive *archive, tm_file *file, tm_error *error) {
  uint64_t length = 0;
  TM_TRY(tm_archive_begin_file(archive, file, error));
  TM_TRY(read_length(archive, file, &length, error));
  (void)snprintf(archive->format_name, sizeof archive->format_name, "safetensors");
  TM_TRY(read_header(archive, file, length, error));
  return tm_archive_finish_file(archive, LENGTH_BYTES + length, TM_GAPS_REFUSED, error);
}

/* There is no magic: a length below 2^40 and an opening brace.  JSON text cannot look so, its sixth byte is not zero. */
static bool probe_safetensors(const tm_head *head) {
  return head->count > LENGTH_BYTES && head->bytes[5] == 0 && head->bytes[6] == 0 && head->bytes[7] == 0 &&
         head->bytes[LENGTH_BYTES] == '{';
}

const tm_reader tm_safetensors_reader = {
  .name = "safetensors",
  .extension = ".safetensors",
  .probe = probe_safetensors,
  .read = read_safetensors,
};
