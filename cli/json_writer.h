/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_writer.h - one JSON document, written as it comes: nothing is kept but the nesting, so a million rows need no
 * memory.  Commas, indentation and escapes are its business; the caller begins and ends what it opens, in order.
 * Members of an object take a key, elements of an array and the document itself take NULL.
 */
#ifndef TM_CLI_JSON_WRITER_H
#define TM_CLI_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output_stream.h"

#define TM_JSON_MAX_DEPTH 16

typedef struct tm_json_writer {
  tm_output_stream *stream;
  uint32_t depth;
  bool     has_items[TM_JSON_MAX_DEPTH];
  bool     on_one_line[TM_JSON_MAX_DEPTH];
} tm_json_writer;

void tm_json_init(tm_json_writer *json, tm_output_stream *stream);
/* Objects and arrays lie on one line each when `on_one_line`, also all inside them. */
void tm_json_begin_object(tm_json_writer *json, const char *key, bool on_one_line);
void tm_json_begin_array(tm_json_writer *json, const char *key, bool on_one_line);
void tm_json_end_object(tm_json_writer *json);
void tm_json_end_array(tm_json_writer *json);

/* Bytes that are no UTF-8 become U+FFFD: a JSON text cannot hold them. */
void tm_json_string(tm_json_writer *json, const char *key, const char *text, size_t length);
/* A JSON text as it is, on one line. */
void tm_json_raw(tm_json_writer *json, const char *key, const char *text);
/* NULL is null. */
void tm_json_text(tm_json_writer *json, const char *key, const char *text);
void tm_json_count(tm_json_writer *json, const char *key, uint64_t value);
/* 17 significant digits at most, as few as read back to the same value; NaN and infinities are null. */
void tm_json_number(tm_json_writer *json, const char *key, double value);
void tm_json_bool(tm_json_writer *json, const char *key, bool value);
void tm_json_null(tm_json_writer *json, const char *key);
/* Ends the document with a newline. */
void tm_json_finish(tm_json_writer *json);

#endif
