/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NumPy's .npy: magic, version (major, minor), length of the header (u16 in version 1, else u32), the header, the data.  The
 * header is a Python dictionary of exactly three entries: descr (a type, "<f4"), fortran_order and shape.  An array in Fortran
 * order has the shape that it has in NumPy and is read in C order: whoever compares, merges or counts wants the same elements
 * at the same places, whichever way they were saved.  An array has no name; it gets its file's.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "formats/bytes.h"
#include "formats/reader.h"
#include "formats/stored_form.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6u
#define VERSION_BYTES 2u
#define MOST_HEADER_BYTES UINT64_C(65536)
#define MOST_DESCR_BYTES 32u

typedef struct npy_parser {
  tm_archive *archive;
  const char *label;
  uint64_t    header_begin;
  const char *begin, *at, *end; /* of the header's text */
  char        descr[MOST_DESCR_BYTES + 1];
  bool        is_fortran;
  uint64_t    dims[TM_ARCHIVE_MAX_RANK];
  uint32_t    rank;
  uint32_t    seen;             /* bits of the entries that have come */
  tm_error   *error;
} npy_parser;

static tm_status fail(const npy_parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));

static tm_status fail(const npy_parser *parser, const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(text, sizeof text, format, arguments) < 0) text[0] = '\0';
  va_end(arguments);
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: %s", parser->label, text);
}

static tm_status fail_here(const npy_parser *parser, const char *expected) {
  return fail(parser, "the header at offset %" PRIu64 ": expected %s", parser->header_begin + (uint64_t)(parser->at - parser->begin), expected);
}

/* ------------------------------------------------------------------------------------------------ Python values ---- */

static void skip_blanks(npy_parser *parser) {
  while (parser->at < parser->end && strchr(" \t\r\n", *parser->at) != NULL && *parser->at != '\0') parser->at++;
}

/* Passes over a character, if it is the next one. */
static bool accept(npy_parser *parser, char c) {
  skip_blanks(parser);
  if (parser->at == parser->end || *parser->at != c) return false;
  parser->at++;
  return true;
}

static bool accept_word(npy_parser *parser, const char *word) {
  const size_t length = strlen(word);
  skip_blanks(parser);
  if ((size_t)(parser->end - parser->at) < length || memcmp(parser->at, word, length) != 0) return false;
  parser->at += length;
  return true;
}

/* Names and types need no escapes. */
static tm_status read_quoted(npy_parser *parser, const char *what, tm_string *out_text) {
  skip_blanks(parser);
  if (parser->at == parser->end || (*parser->at != '\'' && *parser->at != '"')) return fail_here(parser, what);
  const char *begin = parser->at + 1;
  const char *end = memchr(begin, *parser->at, (size_t)(parser->end - begin));
  if (end == NULL || memchr(begin, '\\', (size_t)(end - begin)) != NULL) return fail_here(parser, what);
  parser->at = end + 1;
  *out_text = (tm_string){ begin, (uint64_t)(end - begin) };
  return TM_OK;
}

static tm_status read_natural(npy_parser *parser, uint64_t *out_number) {
  uint64_t number = 0;
  skip_blanks(parser);
  if (parser->at == parser->end || *parser->at < '0' || *parser->at > '9') return fail_here(parser, "an extent of the shape");
  for (; parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9'; parser->at++)
    if (!tm_checked_mul(number, 10, &number) || !tm_checked_add(number, (uint64_t)(*parser->at - '0'), &number))
      return fail_here(parser, "an extent of at most 64 bits");
  (void)accept(parser, 'L');            /* as Python 2 wrote large ones */
  *out_number = number;
  return TM_OK;
}

/* ----------------------------------------------------------------------------------------------------- entries ---- */

static tm_status read_descr(npy_parser *parser) {
  tm_string descr;
  if (accept(parser, '['))
    return fail(parser, "is a structured array (records of several fields), which is no tensor; save each field as an array of its own");
  TM_TRY(read_quoted(parser, "the type of the array in quotes", &descr));
  if (descr.length == 0 || descr.length > MOST_DESCR_BYTES)
    return fail(parser, "has the type \"%s\", which is not known", tm_show_name(descr).text);
  memcpy(parser->descr, descr.data, (size_t)descr.length);
  parser->descr[descr.length] = '\0';
  return TM_OK;
}

static tm_status read_order(npy_parser *parser) {
  if (accept_word(parser, "False")) return TM_OK;
  if (!accept_word(parser, "True")) return fail_here(parser, "True or False");
  parser->is_fortran = true;
  return TM_OK;
}

static tm_status read_shape(npy_parser *parser) {
  if (!accept(parser, '(')) return fail_here(parser, "the shape in parentheses");
  while (!accept(parser, ')')) {
    if (parser->rank == TM_ARCHIVE_MAX_RANK) return fail(parser, "has more than %u dimensions", TM_ARCHIVE_MAX_RANK);
    TM_TRY(read_natural(parser, &parser->dims[parser->rank]));
    parser->rank++;
    if (accept(parser, ',')) continue;
    if (!accept(parser, ')')) return fail_here(parser, ", or )");
    break;
  }
  return TM_OK;
}

typedef struct entry_row {
  const char *name;
  tm_status (*read)(npy_parser *parser);
} entry_row;

static const entry_row entries[] = { { "descr", read_descr }, { "fortran_order", read_order }, { "shape", read_shape } };

#define ENTRY_COUNT (sizeof entries / sizeof entries[0])

static tm_status read_entry(npy_parser *parser) {
  tm_string key;
  TM_TRY(read_quoted(parser, "the name of an entry", &key));
  if (!accept(parser, ':')) return fail_here(parser, ":");
  for (size_t i = 0; i < ENTRY_COUNT; i++) {
    if (strlen(entries[i].name) != key.length || memcmp(entries[i].name, key.data, (size_t)key.length) != 0) continue;
    if ((parser->seen >> i & 1) != 0) return fail(parser, "its header has \"%s\" twice", entries[i].name);
    parser->seen |= 1u << i;
    return entries[i].read(parser);
  }
  return fail(parser, "its header has the unknown entry \"%s\"", tm_show_name(key).text);
}

static tm_status read_dictionary(npy_parser *parser) {
  if (!accept(parser, '{')) return fail_here(parser, "{");
  while (!accept(parser, '}')) {
    TM_TRY(read_entry(parser));
    if (accept(parser, ',')) continue;
    if (!accept(parser, '}')) return fail_here(parser, ", or }");
    break;
  }
  for (size_t i = 0; i < ENTRY_COUNT; i++)
    if ((parser->seen >> i & 1) == 0) return fail(parser, "its header has no \"%s\"", entries[i].name);
  skip_blanks(parser);
  return parser->at == parser->end ? TM_OK : fail_here(parser, "nothing more");
}

/* ------------------------------------------------------------------------------------------------------- types ---- */

typedef struct type_row {
  char     kind;
  uint32_t bytes;
  uint32_t format;
} type_row;

static const type_row types[] = {
  { 'b', 1, TM_FORMAT_BOOL }, { 'i', 1, TM_FORMAT_I8 },  { 'i', 2, TM_FORMAT_I16 }, { 'i', 4, TM_FORMAT_I32 },
  { 'i', 8, TM_FORMAT_I64 },  { 'u', 1, TM_FORMAT_U8 },  { 'u', 2, TM_FORMAT_U16 }, { 'u', 4, TM_FORMAT_U32 },
  { 'u', 8, TM_FORMAT_U64 },  { 'f', 2, TM_FORMAT_F16 }, { 'f', 4, TM_FORMAT_F32 }, { 'f', 8, TM_FORMAT_F64 },
  { 'c', 8, TM_FORMAT_C64 },
};

static uint32_t find_format(char kind, uint64_t bytes) {
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (types[i].kind == kind && types[i].bytes == bytes) return types[i].format;
  return TM_FORMAT_NONE;
}

/* "<f4", "|b1", "<U7" (7 characters of 4 bytes), "<M8[ns]": byte order, kind, bytes of an element. */
static tm_status read_type(const npy_parser *parser, char *out_kind, uint64_t *out_bytes) {
  const char *descr = parser->descr;
  uint64_t bytes = 0;
  if (strchr("<>|=", descr[0]) != NULL) descr++;
  const char kind = *descr;
  if (kind == 'O')
    return fail(parser, "holds Python objects, not numbers; they are not read, because reading them runs code from the file");
  if (kind == '\0' || strchr("biufcmMSUVa", kind) == NULL) return fail(parser, "has the type \"%s\", which is not known", parser->descr);
  for (descr++; *descr >= '0' && *descr <= '9' && bytes < UINT32_MAX; descr++) bytes = 10 * bytes + (uint64_t)(*descr - '0');
  if (*descr != '\0' && *descr != '[') return fail(parser, "has the type \"%s\", which is not known", parser->descr);
  *out_kind = kind;
  *out_bytes = kind == 'U' ? 4 * bytes : bytes;
  return TM_OK;
}

/* A type that cannot be computed with is listed by the name that NumPy gives it. */
static tm_status set_type(const npy_parser *parser, tm_archive_tensor *tensor, uint64_t *out_element_bytes) {
  char kind = 0;
  TM_TRY(read_type(parser, &kind, out_element_bytes));
  if (!tm_count_elements(parser->dims, parser->rank, &tensor->element_count))
    return fail(parser, "has more elements than 64 bits can count");
  if (!tm_checked_mul(tensor->element_count, *out_element_bytes, &tensor->bytes))
    return fail(parser, "needs more bytes than 64 bits can count");
  tensor->format = find_format(kind, *out_element_bytes);
  tensor->type_name = tm_arena_string(&parser->archive->arena, parser->descr, strlen(parser->descr));
  if (tensor->format == TM_FORMAT_NONE) tensor->flags |= TM_ARCHIVE_TENSOR_UNKNOWN_TYPE;
  return tensor->type_name == NULL ? tm_fail(parser->error, TM_ERROR_NO_MEMORY, "%s: no memory for its header", parser->label) : TM_OK;
}

static tm_status set_form(const npy_parser *parser, uint64_t element_bytes, tm_archive_tensor *tensor) {
  const bool is_big_endian = parser->descr[0] == '>' && element_bytes > 1;
  const bool is_turned = parser->is_fortran && parser->rank > 1;
  if (!is_big_endian && !is_turned) return TM_OK;
  tm_stored_form *form = tm_arena_calloc(&parser->archive->arena, 1, sizeof *form);
  if (form == NULL) return tm_fail(parser->error, TM_ERROR_NO_MEMORY, "%s: no memory for its header", parser->label);
  form->unit_bytes = element_bytes <= TM_STORED_UNIT_BYTES ? (uint32_t)element_bytes : 1;
  form->is_big_endian = is_big_endian;
  form->is_first_axis_fastest = is_turned;
  if (is_big_endian && tensor->format == TM_FORMAT_NONE) form->refusal = "it is big-endian, and of a type that this version does not know";
  if (is_turned && (element_bytes == 0 || element_bytes > TM_STORED_UNIT_BYTES)) form->refusal = "it is in Fortran order, and its elements are too large";
  tensor->form = form;
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------ reading ---- */

/* The name of the file without folder and ".npy". */
static tm_string name_of(const tm_file *file) {
  const char *path = tm_file_path(file), *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  const size_t length = strlen(name);
  return (tm_string){ name, tm_text_has_ending(name, ".npy") ? length - 4 : length };
}

static tm_status add_array(npy_parser *parser, const tm_file *file, uint64_t data_begin) {
  tm_archive_tensor tensor = { .name = name_of(file), .dims = parser->dims, .rank = parser->rank, .offset = data_begin };
  uint64_t element_bytes = 0, end;
  char text[100];
  TM_TRY(set_type(parser, &tensor, &element_bytes));
  TM_TRY(set_form(parser, element_bytes, &tensor));
  if (!tm_checked_add(data_begin, tensor.bytes, &end)) return fail(parser, "ends beyond any file");
  TM_TRY(tm_archive_add_tensor(parser->archive, &tensor, parser->error));
  if (end >= tm_file_size(file)) return TM_OK;
  (void)snprintf(text, sizeof text, "%" PRIu64 " bytes after the array are not read", tm_file_size(file) - end);
  return tm_archive_add_note(parser->archive, text, parser->error);
}

static tm_status read_version(npy_parser *parser, const tm_file *file, uint32_t *out_major, uint64_t *out_header_bytes) {
  unsigned char head[MAGIC_BYTES + VERSION_BYTES + 4] = { 0 };
  const uint64_t size = tm_file_size(file);
  TM_TRY(tm_file_read(file, 0, head, tm_min_u64(size, sizeof head), parser->error));
  if (size < MAGIC_BYTES || memcmp(head, MAGIC, MAGIC_BYTES) != 0) return fail(parser, "is not a NumPy array: it does not begin with \\x93NUMPY");
  const uint32_t major = head[MAGIC_BYTES];
  if (size >= MAGIC_BYTES + VERSION_BYTES && (major < 1 || major > 3))
    return fail(parser, "is a NumPy array of version %" PRIu32 ".%u; this version reads 1 to 3", major, head[MAGIC_BYTES + 1]);
  const uint32_t length_bytes = major == 1 ? 2 : 4;
  parser->header_begin = MAGIC_BYTES + VERSION_BYTES + length_bytes;
  if (size < parser->header_begin) return fail(parser, "the file ends at offset %" PRIu64 ", inside its header: truncated", size);
  *out_major = major;
  *out_header_bytes = tm_load_le(head + MAGIC_BYTES + VERSION_BYTES, length_bytes);
  if (*out_header_bytes > size - parser->header_begin)
    return fail(parser, "the header at offset %" PRIu64 " should have %" PRIu64 " bytes, but the file ends at offset %" PRIu64 ": truncated",
                parser->header_begin, *out_header_bytes, size);
  if (*out_header_bytes > MOST_HEADER_BYTES)
    return fail(parser, "its header claims %" PRIu64 " bytes; %" PRIu64 " are allowed", *out_header_bytes, MOST_HEADER_BYTES);
  return TM_OK;
}

static tm_status parse(npy_parser *parser, const tm_file *file, char *text, uint64_t header_bytes) {
  TM_TRY(tm_file_read(file, parser->header_begin, text, header_bytes, parser->error));
  parser->begin = parser->at = text;
  parser->end = text + header_bytes;
  TM_TRY(read_dictionary(parser));
  TM_TRY(add_array(parser, file, parser->header_begin + header_bytes));
  return tm_archive_finish_file(parser->archive, parser->header_begin + header_bytes, TM_GAPS_ALLOWED, parser->error);
}

static tm_status read_npy(tm_archive *archive, tm_file *file, tm_error *error) {
  npy_parser parser = { .archive = archive, .label = tm_file_label(file), .error = error };
  uint32_t major = 0;
  uint64_t header_bytes = 0;
  TM_TRY(tm_archive_begin_file(archive, file, error));
  TM_TRY(read_version(&parser, file, &major, &header_bytes));
  (void)snprintf(archive->format_name, sizeof archive->format_name, "npy v%" PRIu32, major);
  char *text = tm_memory_alloc(archive->memory, header_bytes, 0);
  if (text == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory for its header", parser.label);
  const tm_status status = parse(&parser, file, text, header_bytes);
  tm_memory_free(archive->memory, text, header_bytes);
  return status;
}

static bool probe_npy(const tm_head *head) {
  return head->count >= MAGIC_BYTES && memcmp(head->bytes, MAGIC, MAGIC_BYTES) == 0;
}

const tm_reader tm_npy_reader = {
  .name = "npy",
  .extension = ".npy",
  .is_nameless = true,
  .probe = probe_npy,
  .read = read_npy,
};
