/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h - a sequence of texts and numbers as bytes: each "<length>:<bytes>\n", numbers in decimal.  Any bytes can stand in
 * a text, a reader never looks beyond a length, and a person can read the whole.  For files and pipes of our own.
 */
#ifndef TM_BASE_FIELDS_H
#define TM_BASE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_field_writer {
  tm_memory *memory;
  char      *bytes;             /* NULL: nothing yet */
  uint64_t   length;
  uint64_t   capacity;
  bool       failed;            /* there was no memory: `bytes` is incomplete */
} tm_field_writer;

void tm_field_writer_init(tm_field_writer *writer, tm_memory *memory);
void tm_field_writer_deinit(tm_field_writer *writer);
void tm_field_write(tm_field_writer *writer, const void *text, uint64_t length);
void tm_field_write_text(tm_field_writer *writer, const char *text);    /* NUL-terminated; NULL counts as "" */
void tm_field_write_number(tm_field_writer *writer, uint64_t number);

/* The SHA-256 of all that was written so far, as the last field. */
void tm_field_write_sum(tm_field_writer *writer);

/* Once something is wrong, everything that follows is empty or 0 and `failed` stays. */
typedef struct tm_field_reader {
  const char *bytes;
  uint64_t    length;
  uint64_t    position;
  bool        failed;
} tm_field_reader;

/* Whether the bytes end with the sum of all before it; *out_length is without that. */
bool      tm_field_check_sum(const char *bytes, uint64_t length, uint64_t *out_length);

void      tm_field_reader_init(tm_field_reader *reader, const char *bytes, uint64_t length);
bool      tm_field_at_end(const tm_field_reader *reader);
tm_string tm_field_read(tm_field_reader *reader);               /* part of the bytes */
uint64_t  tm_field_read_number(tm_field_reader *reader);
/* A number of at most `most`, else the reader fails. */
uint32_t  tm_field_read_count(tm_field_reader *reader, uint32_t most);
bool      tm_field_is(tm_string field, const char *text);

#endif
