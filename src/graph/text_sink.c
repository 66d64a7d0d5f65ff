/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/text_sink.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

void tm_sink_bytes(tm_text_sink *sink, const char *bytes, uint64_t length) {
  if (sink->length < sink->capacity) memcpy(sink->text + sink->length, bytes, tm_min_u64(length, sink->capacity - sink->length));
  sink->length += length;
}

void tm_sink_format(tm_text_sink *sink, const char *format, ...) {
  char piece[256];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  if (length > 0) tm_sink_bytes(sink, piece, tm_min_u64((uint64_t)length, sizeof piece - 1));
}

void tm_sink_quoted(tm_text_sink *sink, tm_string text) {
  tm_sink_bytes(sink, "\"", 1);
  for (uint64_t i = 0; i < text.length; i++) {
    if (text.data[i] == '"' || text.data[i] == '\\') tm_sink_bytes(sink, "\\", 1);
    tm_sink_bytes(sink, &text.data[i], 1);
  }
  tm_sink_bytes(sink, "\"", 1);
}

void tm_sink_hex(tm_text_sink *sink, const void *bytes, uint64_t count) {
  static const char digits[] = "0123456789abcdef";
  const uint8_t *byte = bytes;
  for (uint64_t i = 0; i < count; i++) {
    const char pair[2] = { digits[byte[i] >> 4], digits[byte[i] & 15u] };
    tm_sink_bytes(sink, pair, sizeof pair);
  }
}

void tm_sink_dims(tm_text_sink *sink, const tm_operand *operand) {
  tm_sink_bytes(sink, "[", 1);
  for (uint32_t i = 0; i < operand->rank; i++) tm_sink_format(sink, i == 0 ? "%" PRIu64 : ",%" PRIu64, operand->dims[i]);
  tm_sink_bytes(sink, "]", 1);
}

void tm_sink_strides(tm_text_sink *sink, const tm_operand *operand) {
  tm_sink_bytes(sink, "[", 1);
  for (uint32_t i = 0; i < operand->rank; i++) tm_sink_format(sink, i == 0 ? "%" PRId64 : ",%" PRId64, operand->strides_bytes[i]);
  tm_sink_bytes(sink, "]", 1);
}

void tm_sink_finish(tm_text_sink *sink) {
  if (sink->capacity != 0) sink->text[tm_min_u64(sink->length, sink->capacity - 1)] = '\0';
}
