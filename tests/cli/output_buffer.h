/* SPDX-License-Identifier: Apache-2.0 */
/* output_buffer.h - an output stream whose text a test can look at. */
#ifndef TM_TESTS_OUTPUT_BUFFER_H
#define TM_TESTS_OUTPUT_BUFFER_H

#include <string.h>

#include "output_stream.h"

typedef struct output_buffer {
  tm_output_stream stream;
  char             text[65536];
  size_t           used;
} output_buffer;

static int output_buffer_write(void *context, const char *data, size_t bytes) {
  output_buffer *buffer = context;
  if (buffer->used + bytes >= sizeof buffer->text) return 28;
  memcpy(buffer->text + buffer->used, data, bytes);
  buffer->used += bytes;
  buffer->text[buffer->used] = '\0';
  return 0;
}

static void output_buffer_init(output_buffer *buffer) {
  buffer->used = 0;
  buffer->text[0] = '\0';
  tm_output_stream_init(&buffer->stream, output_buffer_write, buffer);
}

static const char *output_buffer_text(output_buffer *buffer) {
  tm_output_flush(&buffer->stream);
  return buffer->text;
}

#endif
