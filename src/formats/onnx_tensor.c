/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TensorProto: its shape, its type and where its bytes lie: in raw_data, in a field of numbers (one after another or of
 * varying length; in one piece or in many), or in another file.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/growth.h"
#include "formats/onnx.h"
#include "formats/onnx_type.h"
#include "formats/stored_form.h"
#include "tensor/format.h"

/* So many numbers of varying length are passed over at most to find one. */
#define NUMBERS_PER_RUN 1024u
#define MOST_EXTERNAL_TEXT_BYTES 4096u

/* ---------------------------------------------------------------------------------------------------- messages ---- */

tm_status tm_onnx_fail(const tm_onnx *parser, const char *format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(text, sizeof text, format, arguments) < 0) text[0] = '\0';
  va_end(arguments);
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: %s", parser->label, text);
}

tm_status tm_onnx_fail_memory(const tm_onnx *parser) {
  return tm_fail(parser->error, TM_ERROR_NO_MEMORY, "%s: no memory for its structure", parser->label);
}

static tm_status fail_tensor(const tm_onnx *parser, const tm_onnx_tensor *tensor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static tm_status fail_tensor(const tm_onnx *parser, const tm_onnx_tensor *tensor, const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(text, sizeof text, format, arguments) < 0) text[0] = '\0';
  va_end(arguments);
  if (tensor->name.data == NULL) return tm_onnx_fail(parser, "the tensor at offset %" PRIu64 ": %s", tensor->offset, text);
  return tm_onnx_fail(parser, "tensor \"%s\": %s", tm_show_name(tensor->name).text, text);
}

/* ------------------------------------------------------------------------------------------------------- parts ---- */

tm_status tm_onnx_text(tm_onnx *parser, tm_wire_range range, tm_string *out_text) {
  const uint64_t bytes = range.end - range.at;
  const unsigned char *data = NULL;
  char *copy;
  if (range.end > parser->wire.file_bytes) {
    parser->wire.is_cut = true;
    return TM_END;
  }
  if (bytes <= TM_WINDOW_BYTES) {
    TM_TRY(tm_wire_take(&parser->wire, range, &data));
    copy = tm_arena_string(&parser->archive->arena, (const char *)data, bytes);
  } else {
    TM_TRY(tm_wire_count(&parser->wire, bytes));
    copy = tm_arena_alloc(&parser->archive->arena, bytes + 1);
    if (copy != NULL) TM_TRY(tm_file_read(parser->wire.window.file, range.at, copy, bytes, parser->error));
    if (copy != NULL) copy[bytes] = '\0';
  }
  if (copy == NULL) return tm_onnx_fail_memory(parser);
  *out_text = (tm_string){ copy, bytes };
  return TM_OK;
}

tm_status tm_onnx_add_segment(tm_onnx *parser, tm_wire_range content) {
  tm_onnx_segment *segments = tm_make_room(parser->archive->memory, parser->segments, parser->segment_count,
                                           &parser->segment_capacity, sizeof *segments);
  if (segments == NULL) return tm_onnx_fail_memory(parser);
  parser->segments = segments;
  segments[parser->segment_count++] = (tm_onnx_segment){ content };
  return TM_OK;
}

static tm_status add_dim(tm_onnx *parser, tm_onnx_tensor *tensor, uint64_t dim) {
  if (tensor->rank == TM_ARCHIVE_MAX_RANK) return fail_tensor(parser, tensor, "it has more than %u dimensions", TM_ARCHIVE_MAX_RANK);
  if (dim > INT64_MAX) return fail_tensor(parser, tensor, "its dimension %" PRIu32 " is negative", tensor->rank);
  tensor->dims[tensor->rank++] = dim;
  return TM_OK;
}

static tm_status read_dims(tm_onnx *parser, tm_onnx_tensor *tensor, const tm_wire_field *field) {
  tm_wire_range numbers = field->content;
  uint64_t dim;
  tm_status status;
  if (field->type == TM_WIRE_VARINT) return add_dim(parser, tensor, field->value);
  while ((status = tm_wire_next_varint(&parser->wire, &numbers, &dim)) == TM_OK) TM_TRY(add_dim(parser, tensor, dim));
  return status == TM_END && !parser->wire.is_cut ? TM_OK : status;
}

static tm_status read_numbers(tm_onnx *parser, tm_onnx_tensor *tensor, const tm_wire_field *field) {
  if (tensor->typed_field != 0 && tensor->typed_field != field->number)
    return fail_tensor(parser, tensor, "it has numbers in two fields, %" PRIu32 " and %" PRIu32, tensor->typed_field, field->number);
  tensor->typed_field = field->number;
  if (field->content.at == field->content.end) return TM_OK;
  return tm_onnx_add_segment(parser, field->content);
}

/* ------------------------------------------------------------------------------------------- what is elsewhere ---- */

static bool is_text(tm_string text, const char *word) {
  return text.length == strlen(word) && memcmp(text.data, word, (size_t)text.length) == 0;
}

static tm_status read_decimal(tm_onnx *parser, const tm_onnx_tensor *tensor, tm_string key, tm_string text, uint64_t *out_number) {
  uint64_t number = 0;
  bool ok = text.length > 0;
  for (uint64_t i = 0; i < text.length && ok; i++)
    ok = text.data[i] >= '0' && text.data[i] <= '9' && tm_checked_mul(number, 10, &number) &&
         tm_checked_add(number, (uint64_t)(text.data[i] - '0'), &number);
  if (!ok)
    return fail_tensor(parser, tensor, "the %s of its external data is \"%s\"; a number is expected", key.data, tm_show_name(text).text);
  *out_number = number;
  return TM_OK;
}

/* Keys that say nothing about where the bytes lie (a checksum, a base path) are passed over. */
static tm_status take_external(tm_onnx *parser, tm_onnx_tensor *tensor, tm_string key, tm_string value) {
  if (is_text(key, "location")) tensor->location = value.data;
  if (is_text(key, "location") && strlen(value.data) != value.length)
    return fail_tensor(parser, tensor, "the location of its external data holds a zero byte");
  if (is_text(key, "offset")) return read_decimal(parser, tensor, key, value, &tensor->external_offset);
  if (!is_text(key, "length")) return TM_OK;
  tensor->has_external_bytes = true;
  return read_decimal(parser, tensor, key, value, &tensor->external_bytes);
}

static tm_status read_external(tm_onnx *parser, tm_onnx_tensor *tensor, tm_wire_range entry) {
  tm_string key = { "", 0 }, value = { "", 0 };
  tm_wire_field field;
  tm_status status;
  while ((status = tm_wire_next(&parser->wire, &entry, &field)) == TM_OK) {
    if (field.type != TM_WIRE_LENGTH || field.number > 2) continue;
    if (field.content.end - field.content.at > MOST_EXTERNAL_TEXT_BYTES)
      return fail_tensor(parser, tensor, "what it says of its external data is longer than %u bytes", MOST_EXTERNAL_TEXT_BYTES);
    TM_TRY(tm_onnx_text(parser, field.content, field.number == 1 ? &key : &value));
  }
  if (status != TM_END || parser->wire.is_cut) return status;
  return take_external(parser, tensor, key, value);
}

/* ------------------------------------------------------------------------------------------------- the message ---- */

static tm_status read_field(tm_onnx *parser, tm_onnx_tensor *tensor, const tm_wire_field *field) {
  const bool has_length = field->type == TM_WIRE_LENGTH;
  switch (field->number) {
    case 1: return read_dims(parser, tensor, field);
    case 2: tensor->data_type = field->value; return TM_OK;
    case 3: return fail_tensor(parser, tensor, "it is a segment of a larger one, which this version does not put together");
    case 8: if (has_length) tensor->own_name = field->content; return TM_OK;
    case 13: return has_length ? read_external(parser, tensor, field->content) : TM_OK;
    case 14: tensor->is_external = field->value == 1; return TM_OK;
    case TM_ONNX_RAW_DATA:
      if (!has_length) return fail_tensor(parser, tensor, "its raw_data are no bytes");
      tensor->has_raw = true;
      tensor->raw = field->content;
      return TM_OK;
    case TM_ONNX_FLOAT_DATA: case TM_ONNX_INT32_DATA: case TM_ONNX_INT64_DATA: case TM_ONNX_DOUBLE_DATA: case TM_ONNX_UINT64_DATA:
      return read_numbers(parser, tensor, field);
    default: return TM_OK;
  }
}

tm_status tm_onnx_read_tensor(tm_onnx *parser, tm_wire_range message, tm_onnx_tensor *out_tensor) {
  tm_wire_field field;
  tm_status status;
  out_tensor->offset = message.at;
  parser->segment_count = 0;
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK) TM_TRY(read_field(parser, out_tensor, &field));
  return status == TM_END ? TM_OK : status;
}

/* ------------------------------------------------------------------------------------------- numbers in fields ---- */

typedef struct run_list {
  tm_number_run *runs;
  uint64_t       count, capacity;
  uint64_t       numbers;
} run_list;

static tm_status add_run(tm_onnx *parser, run_list *list, tm_wire_range range) {
  tm_number_run *runs = tm_make_room(parser->archive->memory, list->runs, list->count, &list->capacity, sizeof *runs);
  if (runs == NULL) return tm_onnx_fail_memory(parser);
  list->runs = runs;
  runs[list->count++] = (tm_number_run){ list->numbers, range.at, range.end };
  return TM_OK;
}

/* Whether so many bytes hold it, with a sign or without: some write the bits of 16-bit floats as signed numbers, and some the sign of a
   number of 32 bits no further than these. */
static bool fits(uint64_t number, uint32_t bytes) {
  const uint32_t bits = 8 * bytes;
  const uint64_t wide = number >> 32 == 0 ? (uint64_t)(int64_t)(int32_t)(uint32_t)number : number;
  return bits >= 64 || number >> bits == 0 || ~wide >> (bits - 1) == 0;
}

/* Counts what lies in a segment, and keeps in mind where every so many numbers begin. */
static tm_status add_varints(tm_onnx *parser, run_list *list, const tm_onnx_tensor *tensor, const tm_onnx_type *type,
                             tm_wire_range segment) {
  tm_wire_range run = { segment.at, segment.end };
  const uint64_t first = list->numbers;
  uint64_t value;
  tm_status status = TM_OK;
  while (status == TM_OK && run.at < segment.end) {
    if ((list->numbers - first) % NUMBERS_PER_RUN == 0) TM_TRY(add_run(parser, list, run));
    status = tm_wire_next_varint(&parser->wire, &run, &value);
    if (status == TM_OK && !fits(value, type->number_bytes))
      return fail_tensor(parser, tensor, "number %" PRIu64 " of its data is %" PRId64 ", which its type (%s) does not hold", list->numbers,
                         (int64_t)value, type->name);
    if (status == TM_OK) list->numbers++;
  }
  return status;
}

static tm_status add_fixed(tm_onnx *parser, run_list *list, const tm_onnx_tensor *tensor, tm_wire_range segment, uint32_t width) {
  const uint64_t bytes = segment.end - segment.at;
  if (bytes % width != 0)
    return fail_tensor(parser, tensor, "%" PRIu64 " bytes of numbers at offset %" PRIu64 " are no multiple of %" PRIu32, bytes, segment.at,
                       width);
  TM_TRY(add_run(parser, list, segment));
  list->numbers += bytes / width;
  return TM_OK;
}

static bool is_varint_field(uint32_t field) { return field != TM_ONNX_FLOAT_DATA && field != TM_ONNX_DOUBLE_DATA; }

static tm_status list_runs(tm_onnx *parser, const tm_onnx_tensor *tensor, const tm_onnx_type *type, run_list *list) {
  for (uint64_t i = 0; i < parser->segment_count; i++) {
    const tm_wire_range segment = parser->segments[i].content;
    if (is_varint_field(tensor->typed_field)) TM_TRY(add_varints(parser, list, tensor, type, segment));
    else TM_TRY(add_fixed(parser, list, tensor, segment, type->number_bytes));
  }
  return TM_OK;
}

tm_status tm_onnx_count_numbers(tm_onnx *parser, const tm_onnx_tensor *tensor, uint64_t *out_count) {
  run_list list = { 0 };
  const tm_status status = list_runs(parser, tensor, tm_onnx_type_find(tensor->data_type), &list);
  tm_memory_free(parser->archive->memory, list.runs, list.capacity * sizeof *list.runs);
  if (status == TM_OK) *out_count = list.numbers;
  return status;
}

/* Numbers of one width in one piece are the tensor's bytes; anything else is a form. */
static tm_status place_runs(tm_onnx *parser, const tm_onnx_tensor *tensor, const tm_onnx_type *type, const run_list *list,
                            tm_archive_tensor *entry) {
  const bool is_varint = is_varint_field(tensor->typed_field);
  tm_arena *arena = &parser->archive->arena;
  uint64_t bytes;
  if (!tm_checked_mul(list->numbers, type->number_bytes, &bytes) || bytes != entry->bytes)
    return fail_tensor(parser, tensor, "its shape and type (%s) need %" PRIu64 " bytes, its %" PRIu64 " numbers are %" PRIu64,
                       type->name, entry->bytes, list->numbers, list->numbers * type->number_bytes);
  if (list->count == 0) return TM_OK;
  entry->offset = list->runs[0].offset;
  if (!is_varint && list->count == 1) return TM_OK;
  tm_stored_form *form = tm_arena_calloc(arena, 1, sizeof *form);
  tm_number_run *runs = tm_arena_calloc(arena, list->count, sizeof *runs);
  if (form == NULL || runs == NULL) return tm_onnx_fail_memory(parser);
  memcpy(runs, list->runs, (size_t)(list->count * sizeof *runs));
  *form = (tm_stored_form){ .unit_bytes = type->number_bytes, .is_varint = is_varint, .runs = runs, .run_count = list->count,
                            .run_bytes = list->runs[list->count - 1].end - entry->offset };
  entry->form = form;
  return TM_OK;
}

/* The file ends within the numbers: nobody can count them. */
static bool is_cut(const tm_onnx *parser) {
  for (uint64_t i = 0; i < parser->segment_count; i++)
    if (parser->segments[i].content.end > parser->wire.file_bytes) return true;
  return false;
}

static tm_status place_cut(tm_onnx *parser, const tm_onnx_type *type, tm_archive_tensor *entry) {
  tm_stored_form *form = tm_arena_calloc(&parser->archive->arena, 1, sizeof *form);
  tm_number_run *run = tm_arena_calloc(&parser->archive->arena, 1, sizeof *run);
  if (form == NULL || run == NULL) return tm_onnx_fail_memory(parser);
  const tm_wire_range first = parser->segments[0].content, last = parser->segments[parser->segment_count - 1].content;
  *run = (tm_number_run){ 0, first.at, last.end };
  *form = (tm_stored_form){ .unit_bytes = type->number_bytes, .runs = run, .run_count = 1, .run_bytes = last.end - first.at };
  entry->offset = first.at;
  entry->form = form;
  return TM_OK;
}

static tm_status place_numbers(tm_onnx *parser, const tm_onnx_tensor *tensor, const tm_onnx_type *type, tm_archive_tensor *entry) {
  run_list list = { 0 };
  if (tensor->typed_field != type->field)
    return fail_tensor(parser, tensor, "numbers of type %s cannot be in field %" PRIu32, type->name, tensor->typed_field);
  if (is_cut(parser)) return place_cut(parser, type, entry);
  tm_status status = list_runs(parser, tensor, type, &list);
  if (status == TM_OK) status = place_runs(parser, tensor, type, &list, entry);
  tm_memory_free(parser->archive->memory, list.runs, list.capacity * sizeof *list.runs);
  return status;
}

/* ---------------------------------------------------------------------------------------------------- the entry ---- */

static tm_status place_raw(tm_onnx *parser, const tm_onnx_tensor *tensor, const tm_onnx_type *type, tm_archive_tensor *entry) {
  const uint64_t bytes = tensor->raw.end - tensor->raw.at;
  if (bytes != entry->bytes)
    return fail_tensor(parser, tensor, "its shape and type (%s) need %" PRIu64 " bytes, its raw_data hold %" PRIu64, type->name,
                       entry->bytes, bytes);
  entry->offset = tensor->raw.at;
  return TM_OK;
}

static tm_status place_external(tm_onnx *parser, const tm_onnx_tensor *tensor, const tm_onnx_type *type, tm_archive_tensor *entry) {
  uint64_t end;
  if (tensor->location == NULL || tensor->location[0] == '\0')
    return fail_tensor(parser, tensor, "its data are external, but it does not say in which file");
  if (tensor->has_external_bytes && tensor->external_bytes != entry->bytes)
    return fail_tensor(parser, tensor, "its shape and type (%s) need %" PRIu64 " bytes, its external data have %" PRIu64, type->name,
                       entry->bytes, tensor->external_bytes);
  if (!tm_checked_add(tensor->external_offset, tm_max_u64(entry->bytes, 1), &end))
    return fail_tensor(parser, tensor, "its external data end beyond any file");
  entry->offset = tensor->external_offset;
  return TM_OK;
}

/* Its size; a type that cannot be computed with, or whose elements do not fill bytes, is listed by its name. */
static tm_status set_type(tm_onnx *parser, const tm_onnx_tensor *tensor, const tm_onnx_type *type, tm_archive_tensor *entry) {
  uint64_t bits;
  if (!tm_count_elements(tensor->dims, tensor->rank, &entry->element_count))
    return fail_tensor(parser, tensor, "it has more elements than 64 bits can count");
  if (!tm_checked_mul(entry->element_count, type->bits, &bits) || bits > UINT64_MAX - 7)
    return fail_tensor(parser, tensor, "it needs more bytes than 64 bits can count");
  entry->bytes = (bits + 7) / 8;
  entry->type_name = type->name;
  entry->format = bits % 8 == 0 ? type->format : TM_FORMAT_NONE;
  if (entry->format == TM_FORMAT_NONE) entry->flags |= TM_ARCHIVE_TENSOR_UNKNOWN_TYPE;
  return TM_OK;
}

static tm_status add_unknown(tm_onnx *parser, const tm_onnx_tensor *tensor, tm_archive_tensor *entry) {
  char text[40];
  const int length = snprintf(text, sizeof text, "onnx type %" PRIu64, tensor->data_type);
  entry->flags |= TM_ARCHIVE_TENSOR_UNKNOWN_TYPE;
  entry->type_name = tm_arena_string(&parser->archive->arena, text, length < 0 ? 0 : (uint64_t)length);
  if (entry->type_name == NULL) return tm_onnx_fail_memory(parser);
  if (!tm_count_elements(tensor->dims, tensor->rank, &entry->element_count))
    return fail_tensor(parser, tensor, "it has more elements than 64 bits can count");
  if (tensor->has_raw) {
    entry->offset = tensor->raw.at;
    entry->bytes = tensor->raw.end - tensor->raw.at;
  }
  return tm_archive_add_tensor(parser->archive, entry, parser->error);
}

/* Name and dims are copied, because the archive gets the tensor only when its file is opened. */
static tm_status keep_external(tm_onnx *parser, const tm_onnx_tensor *tensor, const tm_archive_tensor *entry) {
  tm_arena *arena = &parser->archive->arena;
  tm_onnx_external *externals = tm_make_room(parser->archive->memory, parser->externals, parser->external_count,
                                             &parser->external_capacity, sizeof *externals);
  if (externals == NULL) return tm_onnx_fail_memory(parser);
  parser->externals = externals;
  tm_onnx_external *external = &externals[parser->external_count];
  *external = (tm_onnx_external){ tensor->location, parser->external_count, *entry };
  uint64_t *dims = tm_arena_calloc(arena, tensor->rank, sizeof *dims);
  external->tensor.name.data = tm_arena_string(arena, tensor->name.data, tensor->name.length);
  if (dims == NULL || external->tensor.name.data == NULL) return tm_onnx_fail_memory(parser);
  memcpy(dims, tensor->dims, tensor->rank * sizeof *dims);
  external->tensor.dims = dims;
  parser->external_count++;
  return TM_OK;
}

static tm_status place(tm_onnx *parser, const tm_onnx_tensor *tensor, const tm_onnx_type *type, tm_archive_tensor *entry) {
  if (type->bits == 0) return TM_OK;
  if (tensor->is_external) return place_external(parser, tensor, type, entry);
  if (tensor->has_raw && tensor->typed_field != 0 && parser->segment_count > 0)
    return fail_tensor(parser, tensor, "it has its data twice, in raw_data and in field %" PRIu32, tensor->typed_field);
  if (tensor->has_raw) return place_raw(parser, tensor, type, entry);
  if (tensor->typed_field != 0) return place_numbers(parser, tensor, type, entry);
  if (entry->bytes == 0) return TM_OK;
  return fail_tensor(parser, tensor, "it has no data, but its shape and type (%s) need %" PRIu64 " bytes", type->name, entry->bytes);
}

/* What stands behind an odd number of elements is nobody's: equal elements have equal bytes. */
static tm_status clear_padding(tm_onnx *parser, const tm_onnx_type *type, tm_archive_tensor *entry) {
  const uint64_t last_bits = entry->element_count % 8 * type->bits % 8;
  if (last_bits == 0) return TM_OK;
  tm_stored_form *form = tm_arena_calloc(&parser->archive->arena, 1, sizeof *form);
  if (form == NULL) return tm_onnx_fail_memory(parser);
  *form = entry->form != NULL ? *entry->form : (tm_stored_form){ .unit_bytes = 1 };
  form->padding_mask = (uint8_t)(0xffu << last_bits);
  entry->form = form;
  return TM_OK;
}

/* The file ends within the message, but not within its data: those have not come, or are not known to be all. */
static bool is_lost(const tm_onnx *parser, const tm_onnx_tensor *tensor) {
  if (!parser->wire.is_cut) return false;
  return !(tensor->has_raw && tensor->raw.end > parser->wire.file_bytes) && !is_cut(parser);
}

tm_status tm_onnx_add_tensor(tm_onnx *parser, const tm_onnx_tensor *tensor) {
  const tm_onnx_type *type = tm_onnx_type_find(tensor->data_type);
  if (is_lost(parser, tensor)) return TM_END;
  tm_archive_tensor entry = { .name = tensor->name, .dims = tensor->dims, .rank = tensor->rank, .offset = tensor->offset };
  if (type == NULL) return add_unknown(parser, tensor, &entry);
  TM_TRY(set_type(parser, tensor, type, &entry));
  TM_TRY(place(parser, tensor, type, &entry));
  TM_TRY(clear_padding(parser, type, &entry));
  if (tensor->is_external && type->bits != 0) return keep_external(parser, tensor, &entry);
  return tm_archive_add_tensor(parser->archive, &entry, parser->error);
}
