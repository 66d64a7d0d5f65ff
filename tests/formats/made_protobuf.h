/* SPDX-License-Identifier: Apache-2.0 */
/* made_protobuf.h - protobuf messages made in tests, field by field. */
#ifndef TM_TESTS_FORMATS_MADE_PROTOBUF_H
#define TM_TESTS_FORMATS_MADE_PROTOBUF_H

#include "formats/made_gguf.h"

static inline void put_varint(gguf_maker *maker, uint64_t number) {
  for (; number > 127; number >>= 7) put_number(maker, (number & 127) | 128, 1);
  put_number(maker, number, 1);
}

static inline void put_natural(gguf_maker *maker, uint32_t field, uint64_t number) {
  put_varint(maker, (uint64_t)field << 3);
  put_varint(maker, number);
}

static inline void put_blob(gguf_maker *maker, uint32_t field, const void *bytes, uint64_t count) {
  put_varint(maker, (uint64_t)field << 3 | 2);
  put_varint(maker, count);
  put_bytes(maker, bytes, count);
}

static inline void put_word(gguf_maker *maker, uint32_t field, const char *text) { put_blob(maker, field, text, strlen(text)); }

/* Takes the inner message. */
static inline void put_message(gguf_maker *maker, uint32_t field, gguf_maker *inner) {
  put_blob(maker, field, inner->bytes, inner->size);
  free(inner->bytes);
  *inner = (gguf_maker){ NULL, 0, 0 };
}

#endif
