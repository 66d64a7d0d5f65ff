/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_stream.h - buffered output that remembers its first failure, so that writers need not look at every call and a
 * reader that went away (a closed pipe) ends the work early.
 */
#ifndef TM_CLI_OUTPUT_STREAM_H
#define TM_CLI_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TM_OUTPUT_STREAM_BYTES 65536

/* Writes all bytes; 0, or the errno that prevented it. */
typedef int (*tm_output_write_fn)(void *context, const char *data, size_t bytes);

typedef struct tm_output_stream {
  tm_output_write_fn write;
  void  *context;
  int    error;                 /* the first errno; nothing is written after it */
  size_t used;
  char   buffer[TM_OUTPUT_STREAM_BYTES];
} tm_output_stream;

void tm_output_stream_init(tm_output_stream *stream, tm_output_write_fn write, void *context);
/* To a C stream, which is left unbuffered. */
void tm_output_stream_init_file(tm_output_stream *stream, FILE *file);

void tm_output_bytes(tm_output_stream *stream, const char *data, size_t bytes);
void tm_output_text(tm_output_stream *stream, const char *text);
void tm_output_char(tm_output_stream *stream, char c);
void tm_output_repeat(tm_output_stream *stream, char c, size_t count);
/* One call prints at most 1023 bytes. */
void tm_output_format(tm_output_stream *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sends what is buffered.  false when anything failed so far. */
bool tm_output_flush(tm_output_stream *stream);

#endif
