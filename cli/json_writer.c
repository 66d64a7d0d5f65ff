/* SPDX-License-Identifier: Apache-2.0 */
#include "json_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "printable_text.h"

void tm_json_init(tm_json_writer *json, tm_output_stream *stream) {
  memset(json, 0, sizeof *json);
  json->stream = stream;
}

/* A document is also looked at, on a terminal that obeys what it is sent. */
static void write_code(tm_output_stream *stream, uint32_t code) {
  if (code > 0xffff) {
    tm_output_format(stream, "\\u%04x", (unsigned)(0xd7c0 + (code >> 10)));
    code = 0xdc00 + (code & 0x3ff);
  }
  tm_output_format(stream, "\\u%04x", (unsigned)code);
}

static void write_escaped(tm_json_writer *json, const char *text, size_t length) {
  tm_output_stream *stream = json->stream;
  tm_output_char(stream, '"');
  size_t clean = 0;
  for (size_t i = 0; i < length;) {
    const unsigned char c = (unsigned char)text[i];
    const size_t        bytes = tm_printable_character(text + i, length - i);
    uint32_t            code = c;
    const bool          is_hidden = bytes > 1 && tm_printable_is_hidden(text + i, bytes, &code);
    if (bytes > 0 && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f && !is_hidden) {
      i += bytes;
      continue;
    }
    tm_output_bytes(stream, text + clean, i - clean);
    if (is_hidden)
      write_code(stream, code);
    else if (bytes == 0)
      tm_output_text(stream, "\xef\xbf\xbd");
    else if (c == '"' || c == '\\')
      tm_output_format(stream, "\\%c", c);
    else
      tm_output_format(stream, "\\u%04x", c);
    i += bytes == 0 ? 1 : bytes;
    clean = i;
  }
  tm_output_bytes(stream, text + clean, length - clean);
  tm_output_char(stream, '"');
}

/* What stands between the last item and this one. */
static void begin_item(tm_json_writer *json, const char *key) {
  if (json->depth > 0) {
    const uint32_t level = json->depth - 1;
    if (json->has_items[level]) tm_output_char(json->stream, ',');
    if (json->on_one_line[level]) {
      if (json->has_items[level]) tm_output_char(json->stream, ' ');
    } else {
      tm_output_char(json->stream, '\n');
      tm_output_repeat(json->stream, ' ', 2 * (size_t)json->depth);
    }
    json->has_items[level] = true;
  }
  if (key == NULL) return;
  write_escaped(json, key, strlen(key));
  tm_output_text(json->stream, ": ");
}

static void begin_nest(tm_json_writer *json, const char *key, bool on_one_line, char bracket) {
  begin_item(json, key);
  tm_output_char(json->stream, bracket);
  const bool inherited = json->depth > 0 && json->on_one_line[json->depth - 1];
  json->has_items[json->depth] = false;
  json->on_one_line[json->depth] = on_one_line || inherited;
  json->depth++;
}

static void end_nest(tm_json_writer *json, char bracket) {
  json->depth--;
  if (json->has_items[json->depth] && !json->on_one_line[json->depth]) {
    tm_output_char(json->stream, '\n');
    tm_output_repeat(json->stream, ' ', 2 * (size_t)json->depth);
  }
  tm_output_char(json->stream, bracket);
}

void tm_json_begin_object(tm_json_writer *json, const char *key, bool on_one_line) {
  begin_nest(json, key, on_one_line, '{');
}
void tm_json_begin_array(tm_json_writer *json, const char *key, bool on_one_line) {
  begin_nest(json, key, on_one_line, '[');
}
void tm_json_end_object(tm_json_writer *json) { end_nest(json, '}'); }
void tm_json_end_array(tm_json_writer *json) { end_nest(json, ']'); }

void tm_json_string(tm_json_writer *json, const char *key, const char *text, size_t length) {
  begin_item(json, key);
  write_escaped(json, text, length);
}

/* What a terminal obeys stands in strings only, so it may be escaped wherever it is. */
void tm_json_raw(tm_json_writer *json, const char *key, const char *text) {
  const size_t length = strlen(text);
  begin_item(json, key);
  for (size_t i = 0; i < length;) {
    const size_t bytes = tm_printable_character(text + i, length - i);
    uint32_t     code = 0;
    if (bytes > 1 && tm_printable_is_hidden(text + i, bytes, &code))
      write_code(json->stream, code);
    else if (bytes == 0)
      tm_output_text(json->stream, "\xef\xbf\xbd");
    else
      tm_output_bytes(json->stream, text + i, bytes);
    i += bytes == 0 ? 1 : bytes;
  }
}

void tm_json_text(tm_json_writer *json, const char *key, const char *text) {
  if (text == NULL)
    tm_json_null(json, key);
  else
    tm_json_string(json, key, text, strlen(text));
}

void tm_json_count(tm_json_writer *json, const char *key, uint64_t value) {
  begin_item(json, key);
  char  digits[24];
  char *first = digits + sizeof digits;
  do {
    *--first = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  tm_output_bytes(json->stream, first, (size_t)(digits + sizeof digits - first));
}

void tm_json_number(tm_json_writer *json, const char *key, double value) {
  if (!isfinite(value)) {
    tm_json_null(json, key);
    return;
  }
  begin_item(json, key);
  char text[32];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  tm_output_text(json->stream, text);
}

void tm_json_bool(tm_json_writer *json, const char *key, bool value) {
  begin_item(json, key);
  tm_output_text(json->stream, value ? "true" : "false");
}

void tm_json_null(tm_json_writer *json, const char *key) {
  begin_item(json, key);
  tm_output_text(json->stream, "null");
}

void tm_json_finish(tm_json_writer *json) { tm_output_char(json->stream, '\n'); }
