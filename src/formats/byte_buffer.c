/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/byte_buffer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

#define LEAST_BYTES UINT64_C(256)

void tm_byte_buffer_init(tm_byte_buffer *buffer, tm_memory *memory) { *buffer = (tm_byte_buffer){ .memory = memory }; }

void tm_byte_buffer_deinit(tm_byte_buffer *buffer) {
  if (buffer->memory != NULL) tm_memory_free(buffer->memory, buffer->bytes, buffer->capacity);
  *buffer = (tm_byte_buffer){ .memory = buffer->memory };
}

static bool make_room(tm_byte_buffer *buffer, uint64_t count) {
  uint64_t needed, doubled;
  if (buffer->failed) return false;
  if (!tm_checked_add(buffer->length, count, &needed)) return false;
  if (needed <= buffer->capacity) return true;
  if (!tm_checked_mul(buffer->capacity, 2, &doubled)) return false;
  const uint64_t wanted = tm_max_u64(tm_max_u64(doubled, needed), LEAST_BYTES);
  unsigned char *grown = tm_memory_grow(buffer->memory, buffer->bytes, buffer->capacity, wanted, 1);
  if (grown == NULL) return false;
  buffer->bytes = grown;
  buffer->capacity = wanted;
  return true;
}

void tm_byte_buffer_add(tm_byte_buffer *buffer, const void *bytes, uint64_t count) {
  if (!make_room(buffer, count)) {
    buffer->failed = true;
    return;
  }
  if (count != 0) memcpy(buffer->bytes + buffer->length, bytes, (size_t)count);
  buffer->length += count;
}

void tm_byte_buffer_add_text(tm_byte_buffer *buffer, const char *text) { tm_byte_buffer_add(buffer, text, strlen(text)); }

void tm_byte_buffer_add_number(tm_byte_buffer *buffer, uint64_t number, uint32_t count) {
  unsigned char bytes[8];
  for (uint32_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(number >> (8 * i));
  tm_byte_buffer_add(buffer, bytes, tm_min_u64(count, sizeof bytes));
}

void tm_byte_buffer_add_decimal(tm_byte_buffer *buffer, uint64_t number) {
  char digits[24];
  const int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
  tm_byte_buffer_add(buffer, digits, length < 0 ? 0 : (uint64_t)length);
}

/* One character, or one byte that begins none; returns the bytes that it took. */
static uint64_t add_json_character(tm_byte_buffer *buffer, const char *text, uint64_t available) {
  char escape[8];
  const uint32_t length = tm_utf8_length(text, available);
  const unsigned char first = (unsigned char)text[0];
  if (length == 0) {
    tm_byte_buffer_add_text(buffer, "\xef\xbf\xbd");
    return 1;
  }
  if (first == '"' || first == '\\') {
    tm_byte_buffer_add(buffer, "\\", 1);
  } else if (first < 0x20 || first == 0x7f) {
    (void)snprintf(escape, sizeof escape, "\\u%04x", first);
    tm_byte_buffer_add_text(buffer, escape);
    return 1;
  }
  tm_byte_buffer_add(buffer, text, length);
  return length;
}

void tm_byte_buffer_add_json(tm_byte_buffer *buffer, tm_string text) {
  tm_byte_buffer_add(buffer, "\"", 1);
  for (uint64_t i = 0; i < text.length;) i += add_json_character(buffer, text.data + i, text.length - i);
  tm_byte_buffer_add(buffer, "\"", 1);
}

void tm_byte_buffer_pad(tm_byte_buffer *buffer, uint64_t granule, unsigned char byte) {
  while (!buffer->failed && buffer->length % granule != 0) tm_byte_buffer_add(buffer, &byte, 1);
}
