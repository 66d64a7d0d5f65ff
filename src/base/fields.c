/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/sha256.h"

#define FIRST_CAPACITY UINT64_C(1024)
#define MOST_DIGITS 20u
#define SUM_FIELD_BYTES (TM_SHA256_BYTES + 4u)  /* "32:", the sum, and the end */

/* ---- writing ---- */

void tm_field_writer_init(tm_field_writer *writer, tm_memory *memory) { *writer = (tm_field_writer){ .memory = memory }; }

void tm_field_writer_deinit(tm_field_writer *writer) {
  tm_memory_free(writer->memory, writer->bytes, writer->capacity);
  *writer = (tm_field_writer){ .memory = writer->memory };
}

static bool make_room(tm_field_writer *writer, uint64_t bytes) {
  uint64_t needed;
  if (writer->failed || !tm_checked_add(writer->length, bytes, &needed)) return false;
  if (needed <= writer->capacity) return true;
  const uint64_t capacity = tm_max_u64(needed, tm_max_u64(FIRST_CAPACITY, writer->capacity * 2));
  char *grown = tm_memory_grow(writer->memory, writer->bytes, writer->capacity, capacity, 1);
  if (grown == NULL) return false;
  writer->bytes = grown;
  writer->capacity = capacity;
  return true;
}

static void append(tm_field_writer *writer, const void *bytes, uint64_t count) {
  if (!make_room(writer, count)) {
    writer->failed = true;
    return;
  }
  if (count != 0) memcpy(writer->bytes + writer->length, bytes, (size_t)count);
  writer->length += count;
}

void tm_field_write(tm_field_writer *writer, const void *text, uint64_t length) {
  char head[MOST_DIGITS + 2];
  const int digits = snprintf(head, sizeof head, "%" PRIu64 ":", length);
  append(writer, head, (uint64_t)digits);
  append(writer, text, length);
  append(writer, "\n", 1);
}

void tm_field_write_text(tm_field_writer *writer, const char *text) { tm_field_write(writer, text, text == NULL ? 0 : strlen(text)); }

void tm_field_write_number(tm_field_writer *writer, uint64_t number) {
  char text[MOST_DIGITS + 1];
  const int length = snprintf(text, sizeof text, "%" PRIu64, number);
  tm_field_write(writer, text, (uint64_t)length);
}

static void sum_up(const char *bytes, uint64_t length, uint8_t out_sum[TM_SHA256_BYTES]) {
  tm_sha256 hash;
  tm_sha256_init(&hash);
  if (length != 0) tm_sha256_add(&hash, bytes, length);
  tm_sha256_finish(&hash, out_sum);
}

void tm_field_write_sum(tm_field_writer *writer) {
  uint8_t sum[TM_SHA256_BYTES];
  sum_up(writer->bytes, writer->length, sum);
  tm_field_write(writer, sum, sizeof sum);
}

/* ---- reading ---- */

bool tm_field_check_sum(const char *bytes, uint64_t length, uint64_t *out_length) {
  uint8_t sum[TM_SHA256_BYTES];
  tm_field_reader reader;
  if (length < SUM_FIELD_BYTES) return false;
  *out_length = length - SUM_FIELD_BYTES;
  tm_field_reader_init(&reader, bytes + *out_length, SUM_FIELD_BYTES);
  const tm_string found = tm_field_read(&reader);
  sum_up(bytes, *out_length, sum);
  return found.length == sizeof sum && memcmp(found.data, sum, sizeof sum) == 0;
}

void tm_field_reader_init(tm_field_reader *reader, const char *bytes, uint64_t length) {
  *reader = (tm_field_reader){ .bytes = bytes, .length = length };
}

bool tm_field_at_end(const tm_field_reader *reader) { return reader->failed || reader->position == reader->length; }

/* Decimal digits at `text`, stopping at the first byte that is none; false when there is none or it does not fit. */
static bool parse(const char *text, uint64_t length, uint64_t *out_used, uint64_t *out_number) {
  uint64_t number = 0, used = 0;
  for (; used < length && text[used] >= '0' && text[used] <= '9'; used++)
    if (!tm_checked_mul(number, 10, &number) || !tm_checked_add(number, (uint64_t)(text[used] - '0'), &number)) return false;
  *out_used = used;
  *out_number = number;
  return used != 0;
}

tm_string tm_field_read(tm_field_reader *reader) {
  const uint64_t left = reader->length - reader->position;
  const char *at = reader->bytes == NULL ? "" : reader->bytes + reader->position;
  uint64_t used, length;
  const bool sound = !reader->failed && parse(at, left, &used, &length) && used < left && at[used] == ':' &&
                     length < left - used - 1 && at[used + 1 + length] == '\n';
  if (!sound) {
    reader->failed = true;
    return (tm_string){ "", 0 };
  }
  reader->position += used + 1 + length + 1;
  return (tm_string){ at + used + 1, length };
}

uint64_t tm_field_read_number(tm_field_reader *reader) {
  const tm_string field = tm_field_read(reader);
  uint64_t used, number;
  if (!reader->failed && parse(field.data, field.length, &used, &number) && used == field.length) return number;
  reader->failed = true;
  return 0;
}

uint32_t tm_field_read_count(tm_field_reader *reader, uint32_t most) {
  const uint64_t number = tm_field_read_number(reader);
  if (number <= most) return (uint32_t)number;
  reader->failed = true;
  return 0;
}

bool tm_field_is(tm_string field, const char *text) {
  return field.length == strlen(text) && (field.length == 0 || memcmp(field.data, text, (size_t)field.length) == 0);
}
