/* SPDX-License-Identifier: Apache-2.0 */
#include "output_stream.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

void tm_output_stream_init(tm_output_stream *stream, tm_output_write_fn write, void *context) {
  stream->write = write;
  stream->context = context;
  stream->error = 0;
  stream->used = 0;
}

static int write_file(void *context, const char *data, size_t bytes) {
  errno = 0;
  if (fwrite(data, 1, bytes, context) == bytes) return 0;
  return errno != 0 ? errno : EIO;
}

void tm_output_stream_init_file(tm_output_stream *stream, FILE *file) {
  setvbuf(file, NULL, _IONBF, 0);
  tm_output_stream_init(stream, write_file, file);
}

bool tm_output_flush(tm_output_stream *stream) {
  if (stream->error == 0 && stream->used > 0)
    stream->error = stream->write(stream->context, stream->buffer, stream->used);
  stream->used = 0;
  return stream->error == 0;
}

void tm_output_bytes(tm_output_stream *stream, const char *data, size_t bytes) {
  if (bytes > sizeof stream->buffer - stream->used) tm_output_flush(stream);
  if (stream->error != 0 || bytes == 0) return;
  if (bytes > sizeof stream->buffer) {
    stream->error = stream->write(stream->context, data, bytes);
    return;
  }
  memcpy(stream->buffer + stream->used, data, bytes);
  stream->used += bytes;
}

void tm_output_text(tm_output_stream *stream, const char *text) { tm_output_bytes(stream, text, strlen(text)); }

void tm_output_char(tm_output_stream *stream, char c) {
  if (stream->used == sizeof stream->buffer) tm_output_flush(stream);
  stream->buffer[stream->used++] = c;
}

void tm_output_repeat(tm_output_stream *stream, char c, size_t count) {
  while (count-- > 0) tm_output_char(stream, c);
}

void tm_output_format(tm_output_stream *stream, const char *format, ...) {
  char    text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length > 0) tm_output_bytes(stream, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}
