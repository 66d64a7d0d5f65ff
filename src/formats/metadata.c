/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/metadata.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "formats/bytes.h"

/* ------------------------------------------------------------------------------------------------------- types ---- */

typedef enum number_kind { NOT_A_NUMBER, UNSIGNED, SIGNED, FLOATING, TRUTH } number_kind;

typedef struct type_row {
  const char *name;
  number_kind kind;
  uint32_t    bytes;            /* 0: it varies */
  uint32_t    least_bytes;
} type_row;

static const type_row types[TM_METADATA_TYPES] = {
  [TM_METADATA_U8] = { "u8", UNSIGNED, 1, 1 },
  [TM_METADATA_I8] = { "i8", SIGNED, 1, 1 },
  [TM_METADATA_U16] = { "u16", UNSIGNED, 2, 2 },
  [TM_METADATA_I16] = { "i16", SIGNED, 2, 2 },
  [TM_METADATA_U32] = { "u32", UNSIGNED, 4, 4 },
  [TM_METADATA_I32] = { "i32", SIGNED, 4, 4 },
  [TM_METADATA_F32] = { "f32", FLOATING, 4, 4 },
  [TM_METADATA_BOOL] = { "bool", TRUTH, 1, 1 },
  [TM_METADATA_STRING] = { "string", NOT_A_NUMBER, 0, 8 },
  [TM_METADATA_ARRAY] = { "array", NOT_A_NUMBER, 0, 12 },
  [TM_METADATA_U64] = { "u64", UNSIGNED, 8, 8 },
  [TM_METADATA_I64] = { "i64", SIGNED, 8, 8 },
  [TM_METADATA_F64] = { "f64", FLOATING, 8, 8 },
};

static const type_row unknown_type = { "unknown", NOT_A_NUMBER, 0, 0 };

static const type_row *row_of(uint32_t type) { return type < TM_METADATA_TYPES ? &types[type] : &unknown_type; }

uint32_t tm_metadata_type_bytes(uint32_t type) { return row_of(type)->bytes; }
uint32_t tm_metadata_least_bytes(uint32_t type) { return row_of(type)->least_bytes; }
const char *tm_metadata_type_name(uint32_t type) { return row_of(type)->name; }

/* ------------------------------------------------------------------------------------------------------ values ---- */

static int64_t sign_extend(uint64_t bits, uint32_t bytes) {
  const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
  return (int64_t)((bits ^ sign) - sign);
}

bool tm_metadata_as_u64(const tm_metadata_value *value, uint64_t *out_number) {
  const type_row *row = row_of(value->type);
  if (row->kind != UNSIGNED && row->kind != SIGNED && row->kind != TRUTH) return false;
  const uint64_t bits = tm_load_le(value->data, row->bytes);
  if (row->kind == SIGNED && sign_extend(bits, row->bytes) < 0) return false;
  *out_number = row->kind == TRUTH ? bits != 0 : bits;
  return true;
}

bool tm_metadata_as_i64(const tm_metadata_value *value, int64_t *out_number) {
  const type_row *row = row_of(value->type);
  uint64_t number;
  if (row->kind == SIGNED) {
    *out_number = sign_extend(tm_load_le(value->data, row->bytes), row->bytes);
    return true;
  }
  if (!tm_metadata_as_u64(value, &number) || number > INT64_MAX) return false;
  *out_number = (int64_t)number;
  return true;
}

static double load_float(const void *data, uint32_t bytes) {
  const uint64_t bits = tm_load_le(data, bytes);
  const uint32_t low = (uint32_t)bits;
  float single;
  double number;
  memcpy(&single, &low, sizeof single);
  memcpy(&number, &bits, sizeof number);
  return bytes == sizeof single ? (double)single : number;
}

bool tm_metadata_as_f64(const tm_metadata_value *value, double *out_number) {
  const type_row *row = row_of(value->type);
  uint64_t natural;
  int64_t integer;
  if (row->kind == FLOATING) {
    *out_number = load_float(value->data, row->bytes);
  } else if (tm_metadata_as_u64(value, &natural)) {
    *out_number = (double)natural;
  } else if (tm_metadata_as_i64(value, &integer)) {
    *out_number = (double)integer;
  } else {
    return false;
  }
  return true;
}

bool tm_metadata_as_bool(const tm_metadata_value *value, bool *out_truth) {
  if (value->type != TM_METADATA_BOOL) return false;
  *out_truth = *(const unsigned char *)value->data != 0;
  return true;
}

bool tm_metadata_as_string(const tm_metadata_value *value, tm_string *out_text) {
  if (value->type != TM_METADATA_STRING) return false;
  *out_text = (tm_string){ value->data, value->bytes };
  return true;
}

bool tm_metadata_is_same_value(const tm_metadata_value *a, const tm_metadata_value *b) {
  return a->type == b->type && a->element_type == b->element_type && a->count == b->count && a->bytes == b->bytes &&
         (a->bytes == 0 || memcmp(a->data, b->data, (size_t)a->bytes) == 0);
}

/* ----------------------------------------------------------------------------------------------------- walking ---- */

void tm_metadata_iterate(const tm_metadata_value *array, tm_metadata_iterator *out_iterator) {
  const bool is_array = array->type == TM_METADATA_ARRAY;
  const unsigned char *data = array->data;
  *out_iterator = (tm_metadata_iterator){ .type = array->element_type, .remaining = is_array ? array->count : 0,
                                          .next = data, .end = is_array ? data + array->bytes : data };
}

static bool next_string(tm_metadata_iterator *iterator, tm_metadata_value *element) {
  const uint64_t available = (uint64_t)(iterator->end - iterator->next);
  if (available < 8) return false;
  const uint64_t length = tm_load_u64(iterator->next);
  if (length > available - 8) return false;
  element->data = iterator->next + 8;
  element->bytes = length;
  iterator->next += 8 + length;
  return true;
}

static bool next_array(tm_metadata_iterator *iterator, tm_metadata_value *element, uint32_t depth);

/* The reader has bounded the depth when it read the file; here it is bounded again, because the bytes are the file's. */
static bool next_at_depth(tm_metadata_iterator *iterator, tm_metadata_value *element, uint32_t depth) {
  const uint32_t bytes = tm_metadata_type_bytes(iterator->type);
  if (iterator->remaining == 0) return false;
  iterator->remaining--;
  *element = (tm_metadata_value){ .type = iterator->type, .count = 1 };
  if (iterator->type == TM_METADATA_STRING) return next_string(iterator, element);
  if (iterator->type == TM_METADATA_ARRAY) return next_array(iterator, element, depth);
  if (bytes == 0 || (uint64_t)(iterator->end - iterator->next) < bytes) return false;
  element->data = iterator->next;
  element->bytes = bytes;
  iterator->next += bytes;
  return true;
}

static bool next_array(tm_metadata_iterator *iterator, tm_metadata_value *element, uint32_t depth) {
  if (depth >= TM_METADATA_MAX_DEPTH || iterator->end - iterator->next < 12) return false;
  tm_metadata_iterator inner = { .type = tm_load_u32(iterator->next), .remaining = tm_load_u64(iterator->next + 4),
                                 .next = iterator->next + 12, .end = iterator->end };
  element->element_type = inner.type;
  element->count = inner.remaining;
  element->data = inner.next;
  tm_metadata_value skipped;
  while (inner.remaining > 0)
    if (!next_at_depth(&inner, &skipped, depth + 1)) return false;
  element->bytes = (uint64_t)(inner.next - (const unsigned char *)element->data);
  iterator->next = inner.next;
  return true;
}

bool tm_metadata_next(tm_metadata_iterator *iterator, tm_metadata_value *out_element) {
  return next_at_depth(iterator, out_element, 1);
}

/* ---------------------------------------------------------------------------------------------------- printing ---- */

void tm_metadata_describe_type(const tm_metadata_value *value, char *out_text, uint64_t capacity) {
  if (value->type == TM_METADATA_ARRAY) {
    (void)snprintf(out_text, (size_t)capacity, "array of %s[%" PRIu64 "]", tm_metadata_type_name(value->element_type),
                   value->count);
  } else {
    (void)snprintf(out_text, (size_t)capacity, "%s", tm_metadata_type_name(value->type));
  }
}

#define PIECE_BYTES 64u

typedef struct print_line {
  char    *text;
  uint64_t used;
  uint64_t capacity;
} print_line;

/* The shortest decimal that reads back as the same number; a point whatever the locale says. */
static void print_float(double number, bool is_single, char *out, size_t capacity) {
  for (int digits = is_single ? 6 : 15; digits <= (is_single ? 9 : 17); digits++) {
    (void)snprintf(out, capacity, "%.*g", digits, number);
    const bool is_same = is_single ? strtof(out, NULL) == (float)number : strtod(out, NULL) == number;
    if (is_same) break;
  }
  char *comma = strchr(out, ',');
  if (comma != NULL) *comma = '.';
}

static void print_number(const tm_metadata_value *value, char *out, size_t capacity) {
  bool truth;
  int64_t integer;
  uint64_t natural;
  double number;
  if (tm_metadata_as_bool(value, &truth)) (void)snprintf(out, capacity, "%s", truth ? "true" : "false");
  else if (tm_metadata_as_i64(value, &integer)) (void)snprintf(out, capacity, "%" PRId64, integer);
  else if (tm_metadata_as_u64(value, &natural)) (void)snprintf(out, capacity, "%" PRIu64, natural);
  else if (tm_metadata_as_f64(value, &number)) print_float(number, value->type == TM_METADATA_F32, out, capacity);
  else (void)snprintf(out, capacity, "?");
}

static void append(print_line *line, const char *text) {
  const uint64_t length = tm_min_u64(strlen(text), line->capacity - 1 - line->used);
  memcpy(line->text + line->used, text, (size_t)length);
  line->used += length;
  line->text[line->used] = '\0';
}

/* An element as a piece of a list: bounded, nested arrays as their type. */
static void print_element(const tm_metadata_value *element, char *out) {
  if (element->type == TM_METADATA_STRING) {
    out[0] = '"';
    const uint64_t used = tm_text_escape(element->data, element->bytes, out + 1, PIECE_BYTES - 2);
    memcpy(out + 1 + used, "\"", 2);
  } else if (element->type == TM_METADATA_ARRAY) {
    tm_metadata_describe_type(element, out, PIECE_BYTES);
  } else {
    print_number(element, out, PIECE_BYTES);
  }
}

static void print_array(const tm_metadata_value *array, print_line *line) {
  static const char more[] = ", ...]";
  tm_metadata_iterator iterator;
  tm_metadata_value element;
  char piece[PIECE_BYTES];
  append(line, "[");
  tm_metadata_iterate(array, &iterator);
  for (bool is_first = true; tm_metadata_next(&iterator, &element); is_first = false) {
    print_element(&element, piece);
    if (line->used + strlen(piece) + 2 + sizeof more > line->capacity) {
      append(line, is_first ? "...]" : more);
      return;
    }
    if (!is_first) append(line, ", ");
    append(line, piece);
  }
  append(line, "]");
}

uint64_t tm_metadata_print(const tm_metadata_value *value, char *out_text, uint64_t capacity) {
  print_line line = { .text = out_text, .capacity = capacity };
  char number[PIECE_BYTES];
  out_text[0] = '\0';
  if (value->type == TM_METADATA_STRING) return tm_text_escape(value->data, value->bytes, out_text, capacity);
  if (value->type == TM_METADATA_ARRAY) {
    print_array(value, &line);
  } else {
    print_number(value, number, sizeof number);
    append(&line, number);
  }
  return line.used;
}
