/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_pull.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

/* What may come next. */
enum { VALUE, VALUE_OR_END, KEY_OR_END, COMMA_OR_END };

void tm_json_init(tm_json_pull *json, const char *text, uint64_t length) {
  *json = (tm_json_pull){ .text = text, .length = length, .expected = VALUE };
}

static tm_json_kind fail(tm_json_pull *json, uint64_t offset, const char *text) {
  if (json->error_text == NULL) {
    json->error_text = text;
    json->error_offset = offset;
  }
  return TM_JSON_ERROR;
}

static bool refuse(tm_json_pull *json, uint64_t offset, const char *text) {
  (void)fail(json, offset, text);
  return false;
}

static bool peek(const tm_json_pull *json, char *out_byte) {
  if (json->position == json->length) return false;
  *out_byte = json->text[json->position];
  return true;
}

static void skip_space(tm_json_pull *json) {
  char c;
  while (peek(json, &c) && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) json->position++;
}

/* ----------------------------------------------------------------------------------------------------- strings ---- */

static int32_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The 16-bit unit after \u, or -1. */
static int32_t hex_unit(const char *digits, uint64_t available) {
  int32_t unit = 0;
  if (available < 4) return -1;
  for (int i = 0; i < 4; i++) {
    const int32_t digit = hex_digit(digits[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

static bool is_high_surrogate(int32_t unit) { return unit >= 0xd800 && unit <= 0xdbff; }
static bool is_low_surrogate(int32_t unit) { return unit >= 0xdc00 && unit <= 0xdfff; }

/* Reads the escape whose backslash is at `text`; returns its bytes or 0 if it is none.  *out_code is its character. */
static uint64_t read_escape(const char *text, uint64_t available, uint32_t *out_code) {
  static const char letters[] = "\"\\/bfnrt";
  static const char meanings[] = "\"\\/\b\f\n\r\t";
  if (available < 2) return 0;
  if (text[1] != 'u') {
    const char *letter = text[1] == '\0' ? NULL : strchr(letters, text[1]);
    if (letter == NULL) return 0;
    *out_code = (unsigned char)meanings[letter - letters];
    return 2;
  }
  const int32_t unit = hex_unit(text + 2, available - 2);
  if (unit < 0 || is_low_surrogate(unit)) return 0;
  *out_code = (uint32_t)unit;
  if (!is_high_surrogate(unit)) return 6;
  if (available < 12 || text[6] != '\\' || text[7] != 'u') return 0;
  const int32_t low = hex_unit(text + 8, available - 8);
  if (!is_low_surrogate(low)) return 0;
  *out_code = 0x10000u + (((uint32_t)unit & 0x3ffu) << 10) + ((uint32_t)low & 0x3ffu);
  return 12;
}

static bool is_plain_ascii(unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

/* One step inside a string at json->position: false at an error. */
static bool step_string(tm_json_pull *json, tm_json_token *token) {
  const char *at = json->text + json->position;
  const uint64_t available = json->length - json->position;
  if (*at == '\\') {
    uint32_t code;
    const uint64_t taken = read_escape(at, available, &code);
    if (taken == 0) return refuse(json, json->position, "not a valid escape in a string");
    token->has_escapes = true;
    json->position += taken;
    return true;
  }
  const uint32_t taken = (unsigned char)*at < 0x20 ? 0 : tm_utf8_length(at, available);
  if (taken == 0)
    return refuse(json, json->position, (unsigned char)*at < 0x20 ? "a control character in a string" : "not valid UTF-8");
  json->position += taken;
  return true;
}

/* At the opening quote. */
static bool read_string(tm_json_pull *json, tm_json_token *token) {
  const uint64_t begin = ++json->position;
  for (;;) {
    while (json->position < json->length && is_plain_ascii((unsigned char)json->text[json->position])) json->position++;
    if (json->position == json->length) return refuse(json, begin - 1, "a string without its end");
    if (json->text[json->position] == '"') break;
    if (!step_string(json, token)) return false;
  }
  token->text = json->text + begin;
  token->length = json->position - begin;
  json->position++;
  return true;
}

static uint64_t write_utf8(uint32_t code, char *out) {
  unsigned char *bytes = (unsigned char *)out;
  if (code < 0x80) {
    bytes[0] = (unsigned char)code;
    return 1;
  }
  if (code < 0x800) {
    bytes[0] = (unsigned char)(0xc0 | code >> 6);
    bytes[1] = (unsigned char)(0x80 | (code & 0x3f));
    return 2;
  }
  if (code < 0x10000) {
    bytes[0] = (unsigned char)(0xe0 | code >> 12);
    bytes[1] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
    bytes[2] = (unsigned char)(0x80 | (code & 0x3f));
    return 3;
  }
  bytes[0] = (unsigned char)(0xf0 | code >> 18);
  bytes[1] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
  bytes[2] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
  bytes[3] = (unsigned char)(0x80 | (code & 0x3f));
  return 4;
}

uint64_t tm_json_unescape(const tm_json_token *token, char *out_text) {
  uint64_t used = 0;
  for (uint64_t i = 0; i < token->length;) {
    uint32_t code = 0;
    if (token->text[i] != '\\') {
      out_text[used++] = token->text[i++];
      continue;
    }
    i += read_escape(token->text + i, token->length - i, &code);
    used += write_utf8(code, out_text + used);
  }
  return used;
}

bool tm_json_is(const tm_json_token *token, const char *literal) {
  char meaning[64 * 6];         /* every character of the literal may be written as \uXXXX */
  const size_t length = strlen(literal);
  if (!token->has_escapes) return token->length == length && memcmp(token->text, literal, length) == 0;
  if (token->length > sizeof meaning) return false;
  return tm_json_unescape(token, meaning) == length && memcmp(meaning, literal, length) == 0;
}

/* ----------------------------------------------------------------------------------------------------- numbers ---- */

static uint64_t skip_digits(tm_json_pull *json) {
  const uint64_t begin = json->position;
  char c;
  while (peek(json, &c) && c >= '0' && c <= '9') json->position++;
  return json->position - begin;
}

static bool accept(tm_json_pull *json, char wanted) {
  char c;
  if (!peek(json, &c) || c != wanted) return false;
  json->position++;
  return true;
}

/* Digits of an integer to its value; false when it needs more than 64 bits. */
static bool integer_of(const char *digits, uint64_t count, uint64_t *out_value) {
  uint64_t value = 0;
  for (uint64_t i = 0; i < count; i++)
    if (!tm_checked_mul(value, 10, &value) || !tm_checked_add(value, (uint64_t)(digits[i] - '0'), &value)) return false;
  *out_value = value;
  return true;
}

static bool read_fraction(tm_json_pull *json, bool *out_found) {
  *out_found = false;
  if (accept(json, '.')) {
    *out_found = true;
    if (skip_digits(json) == 0) return false;
  }
  if (accept(json, 'e') || accept(json, 'E')) {
    *out_found = true;
    if (!accept(json, '+')) (void)accept(json, '-');
    if (skip_digits(json) == 0) return false;
  }
  return true;
}

static tm_json_kind read_number(tm_json_pull *json, tm_json_token *token) {
  const uint64_t begin = json->position;
  const bool is_negative = accept(json, '-');
  const char *digits = json->text + json->position;
  const uint64_t count = skip_digits(json);
  bool has_fraction;
  if (count == 0 || (count > 1 && digits[0] == '0') || !read_fraction(json, &has_fraction))
    return fail(json, begin, "not a valid number");
  token->text = json->text + begin;
  token->length = json->position - begin;
  token->is_integer = !is_negative && !has_fraction && integer_of(digits, count, &token->integer);
  return TM_JSON_NUMBER;
}

/* ----------------------------------------------------------------------------------------------------- grammar ---- */

static bool in_object(const tm_json_pull *json) { return (json->objects >> (json->depth - 1) & 1) != 0; }

static tm_json_kind open_container(tm_json_pull *json, bool is_object) {
  if (json->depth == TM_JSON_MAX_DEPTH) return fail(json, json->position, "nested too deeply");
  const uint64_t bit = UINT64_C(1) << json->depth++;
  json->objects = is_object ? json->objects | bit : json->objects & ~bit;
  json->expected = is_object ? KEY_OR_END : VALUE_OR_END;
  json->position++;
  return is_object ? TM_JSON_OBJECT_BEGIN : TM_JSON_ARRAY_BEGIN;
}

static tm_json_kind close_container(tm_json_pull *json) {
  const bool is_object = in_object(json);
  json->depth--;
  json->expected = COMMA_OR_END;
  json->position++;
  return is_object ? TM_JSON_OBJECT_END : TM_JSON_ARRAY_END;
}

typedef struct word_row {
  const char  *word;
  tm_json_kind kind;
} word_row;

static tm_json_kind read_word(tm_json_pull *json) {
  static const word_row words[] = { { "true", TM_JSON_TRUE }, { "false", TM_JSON_FALSE }, { "null", TM_JSON_NULL } };
  const uint64_t available = json->length - json->position;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    const size_t length = strlen(words[i].word);
    if (available < length || memcmp(json->text + json->position, words[i].word, length) != 0) continue;
    json->position += length;
    return words[i].kind;
  }
  return fail(json, json->position, "a value was expected");
}

static tm_json_kind read_value(tm_json_pull *json, char first, tm_json_token *token) {
  if (first == '{' || first == '[') return open_container(json, first == '{');
  json->expected = COMMA_OR_END;
  if (first == '"') return read_string(json, token) ? TM_JSON_STRING : TM_JSON_ERROR;
  if (first == '-' || (first >= '0' && first <= '9')) return read_number(json, token);
  return read_word(json);
}

static tm_json_kind read_key(tm_json_pull *json, char first, tm_json_token *token) {
  if (first != '"') return fail(json, json->position, "a key in quotes was expected");
  if (!read_string(json, token)) return TM_JSON_ERROR;
  skip_space(json);
  if (!accept(json, ':')) return fail(json, json->position, "a : was expected after the key");
  json->expected = VALUE;
  return TM_JSON_KEY;
}

/* After a value inside a container: the end of it, or a comma and what follows. */
static tm_json_kind read_after_value(tm_json_pull *json, char first, tm_json_token *token) {
  const bool is_object = in_object(json);
  if (first == (is_object ? '}' : ']')) return close_container(json);
  if (first != ',') return fail(json, json->position, is_object ? ", or } was expected" : ", or ] was expected");
  json->position++;
  skip_space(json);
  token->offset = json->position;
  if (!peek(json, &first)) return fail(json, json->position, "the text ends too early");
  return is_object ? read_key(json, first, token) : read_value(json, first, token);
}

static tm_json_kind read_token(tm_json_pull *json, tm_json_token *token) {
  char first;
  const bool is_over = json->depth == 0 && json->expected == COMMA_OR_END;
  if (!peek(json, &first)) return is_over ? TM_JSON_END : fail(json, json->position, "the text ends too early");
  if (is_over) return fail(json, json->position, "text after the end");
  switch (json->expected) {
    case VALUE_OR_END: return first == ']' ? close_container(json) : read_value(json, first, token);
    case KEY_OR_END: return first == '}' ? close_container(json) : read_key(json, first, token);
    case COMMA_OR_END: return read_after_value(json, first, token);
    default: return read_value(json, first, token);
  }
}

tm_json_kind tm_json_next(tm_json_pull *json, tm_json_token *out_token) {
  *out_token = (tm_json_token){ .kind = TM_JSON_ERROR, .offset = json->error_offset };
  if (json->error_text != NULL) return TM_JSON_ERROR;
  skip_space(json);
  out_token->offset = json->position;
  out_token->kind = read_token(json, out_token);
  return out_token->kind;
}

bool tm_json_skip(tm_json_pull *json, const tm_json_token *first) {
  tm_json_token token = *first;
  const uint32_t depth = json->depth;
  if (token.kind == TM_JSON_ERROR) return false;
  if (token.kind != TM_JSON_OBJECT_BEGIN && token.kind != TM_JSON_ARRAY_BEGIN) return true;
  while (json->depth >= depth)
    if (tm_json_next(json, &token) == TM_JSON_ERROR) return false;
  return true;
}
