/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_pull.h - JSON one token at a time, from a text in memory, building nothing: for headers of 100 MB and more.
 * Strict RFC 8259: well-formed UTF-8, no lone surrogates, no trailing text; nesting is bounded.  Keys that occur twice are
 * for the caller to notice.  A parser belongs to one thread.
 */
#ifndef TM_BASE_JSON_PULL_H
#define TM_BASE_JSON_PULL_H

#include <stdbool.h>
#include <stdint.h>

#define TM_JSON_MAX_DEPTH 64u

typedef enum tm_json_kind {
  TM_JSON_END,                  /* the text is over; comes for ever */
  TM_JSON_ERROR,                /* see error_text and error_offset; comes for ever */
  TM_JSON_OBJECT_BEGIN,
  TM_JSON_OBJECT_END,
  TM_JSON_ARRAY_BEGIN,
  TM_JSON_ARRAY_END,
  TM_JSON_KEY,                  /* its colon is behind it */
  TM_JSON_STRING,
  TM_JSON_NUMBER,
  TM_JSON_TRUE,
  TM_JSON_FALSE,
  TM_JSON_NULL
} tm_json_kind;

typedef struct tm_json_token {
  tm_json_kind kind;
  bool         has_escapes;     /* KEY, STRING: `text` is not yet what it means */
  bool         is_integer;      /* NUMBER: a non-negative integer that fits `integer` */
  uint64_t     offset;          /* in the text */
  const char  *text;            /* KEY, STRING: between the quotes; NUMBER: its digits.  Part of the parsed text */
  uint64_t     length;
  uint64_t     integer;
} tm_json_token;

typedef struct tm_json_pull {
  const char *text;
  uint64_t    length;
  uint64_t    position;
  uint64_t    objects;          /* bit d: the container at depth d is an object */
  uint32_t    depth;
  uint32_t    expected;
  const char *error_text;       /* static; NULL unless there is an error */
  uint64_t    error_offset;
} tm_json_pull;

/* `text` stays the caller's and must outlive the parser and its tokens. */
void tm_json_init(tm_json_pull *json, const char *text, uint64_t length);

/* The next token; *out_token is valid until `text` goes. */
tm_json_kind tm_json_next(tm_json_pull *json, tm_json_token *out_token);

/* Goes past the value whose first token is `first` (a scalar is already past).  false: an error came. */
bool tm_json_skip(tm_json_pull *json, const tm_json_token *first);

/* What a KEY or STRING means; needs up to `length` bytes.  Returns the bytes written, no NUL added (\u0000 may be inside). */
uint64_t tm_json_unescape(const tm_json_token *token, char *out_text);

/* Is the meaning of a KEY or STRING `literal` (at most 64 bytes)? */
bool tm_json_is(const tm_json_token *token, const char *literal);

#endif
