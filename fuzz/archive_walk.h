/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_walk.h - opens bytes as a model file and uses all that comes out: names, metadata down to the last element, the
 * first and last bytes of each tensor.  Also holds the promise that memory is bounded by what the file justifies.
 */
#ifndef TM_FUZZ_ARCHIVE_WALK_H
#define TM_FUZZ_ARCHIVE_WALK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "formats/archive.h"
#include "formats/stored_form.h"

#define REQUIRE(condition) \
  do {                     \
    if (!(condition)) __builtin_trap(); \
  } while (0)

/* The window, the name buffer and the first blocks of arenas do not depend on the file. */
#define FIXED_BYTES (UINT64_C(4) << 20)
#define BYTES_PER_BYTE UINT64_C(64)

static inline void walk_value(const tm_metadata_value *value, uint32_t depth) {
  char text[80];
  tm_metadata_iterator iterator;
  tm_metadata_value element;
  uint64_t walked = 0;
  REQUIRE(depth <= TM_METADATA_MAX_DEPTH + 1);
  REQUIRE(tm_metadata_print(value, text, sizeof text) < sizeof text);
  tm_metadata_describe_type(value, text, sizeof text);
  for (tm_metadata_iterate(value, &iterator); tm_metadata_next(&iterator, &element); walked++) walk_value(&element, depth + 1);
  REQUIRE(value->type != TM_METADATA_ARRAY || walked == value->count);
}

/* In one piece and in odd ones the same. */
static inline void walk_bytes(const tm_archive *archive, uint64_t index, uint64_t bytes) {
  static const uint64_t pieces[] = { 1, 2, 3, 5, 64, 7 };
  char whole[2048], part[64];
  if (bytes > sizeof whole) return;
  REQUIRE(tm_archive_read(archive, index, 0, whole, bytes, NULL) == TM_OK);
  for (uint64_t at = 0, i = 0; at < bytes; i++) {
    const uint64_t left = bytes - at, piece = pieces[i % 6] < left ? pieces[i % 6] : left;
    REQUIRE(tm_archive_read(archive, index, at, part, piece, NULL) == TM_OK && memcmp(part, whole + at, piece) == 0);
    at += piece;
  }
}

static inline void walk_tensor(const tm_archive *archive, uint64_t index) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(archive, index);
  char text[64], byte;
  uint64_t found;
  REQUIRE(tm_archive_find(archive, tensor->name.data, tensor->name.length, &found) && found == index);
  REQUIRE(tensor->name.data[tensor->name.length] == '\0' && strlen(tensor->type_name) < UINT32_MAX);
  REQUIRE(tm_text_escape(tensor->name.data, tensor->name.length, text, sizeof text) < sizeof text);
  const bool is_whole = (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) == 0;
  if (tensor->bytes == 0) return;
  if (tensor->form != NULL && tensor->form->refusal != NULL && is_whole) {
    REQUIRE(tm_archive_read(archive, index, 0, &byte, 1, NULL) == TM_ERROR_ARGUMENT && tm_archive_mapped(archive, index) == NULL);
    return;
  }
  const tm_status first = tm_archive_read(archive, index, 0, &byte, 1, NULL);
  const tm_status last = tm_archive_read(archive, index, tensor->bytes - 1, &byte, 1, NULL);
  REQUIRE(tm_archive_read(archive, index, tensor->bytes, &byte, 1, NULL) == TM_ERROR_ARGUMENT);
  REQUIRE(is_whole ? first == TM_OK && last == TM_OK : last == TM_ERROR_CORRUPT);
  const char *bytes = tm_archive_mapped(archive, index);
  REQUIRE((bytes != NULL) == (is_whole && tensor->form == NULL) && (bytes == NULL || bytes[tensor->bytes - 1] == byte));
  if (is_whole) walk_bytes(archive, index, tensor->bytes);
}

static inline void walk_archive(const char *name, const uint8_t *data, size_t size, bool allow_incomplete) {
  const tm_archive_options options = { .allow_incomplete = allow_incomplete };
  tm_memory memory;
  tm_archive *archive = NULL;
  tm_error error = TM_ERROR_INIT;
  tm_memory_init(&memory, FIXED_BYTES + BYTES_PER_BYTE * size);
  const tm_status status = tm_archive_open_bytes(&memory, &options, name, data, size, &archive, &error);
  REQUIRE((status == TM_OK) == (archive != NULL) && status != TM_ERROR_NO_MEMORY && status != TM_ERROR_INTERNAL);
  REQUIRE(status == TM_OK || (error.code == status && error.text[0] != '\0'));
  if (status == TM_OK) {
    for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) walk_tensor(archive, i);
    for (uint64_t i = 0; i < tm_archive_metadata_count(archive); i++) walk_value(&tm_archive_metadata_at(archive, i)->value, 0);
    REQUIRE(allow_incomplete || tm_archive_incomplete_count(archive) == 0);
  }
  tm_archive_close(archive);
  REQUIRE(memory.used_bytes == 0);
}

#endif
