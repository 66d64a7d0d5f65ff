/* SPDX-License-Identifier: Apache-2.0 */
/* made_gguf.h - GGUF files made in tests, field by field, so that every field can be wrong. */
#ifndef TM_TESTS_FORMATS_MADE_GGUF_H
#define TM_TESTS_FORMATS_MADE_GGUF_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct gguf_maker {
  unsigned char *bytes;
  uint64_t       size;
  uint64_t       capacity;
} gguf_maker;

static inline void put_bytes(gguf_maker *maker, const void *bytes, uint64_t count) {
  if (maker->size + count > maker->capacity) {
    maker->capacity = 2 * (maker->size + count) + 64;
    maker->bytes = realloc(maker->bytes, (size_t)maker->capacity);
  }
  if (count != 0) memcpy(maker->bytes + maker->size, bytes, (size_t)count);
  maker->size += count;
}

static inline void put_number(gguf_maker *maker, uint64_t number, uint32_t count) {
  unsigned char bytes[8];
  for (uint32_t i = 0; i < 8; i++) bytes[i] = (unsigned char)(number >> (8 * i));
  put_bytes(maker, bytes, count);
}

static inline void put_u32(gguf_maker *maker, uint64_t number) { put_number(maker, number, 4); }
static inline void put_u64(gguf_maker *maker, uint64_t number) { put_number(maker, number, 8); }

static inline void put_text(gguf_maker *maker, const char *text) {
  put_u64(maker, strlen(text));
  put_bytes(maker, text, strlen(text));
}

static inline gguf_maker gguf_begin(uint32_t version, uint64_t tensors, uint64_t metadata) {
  gguf_maker maker = { NULL, 0, 0 };
  put_bytes(&maker, "GGUF", 4);
  put_u32(&maker, version);
  put_u64(&maker, tensors);
  put_u64(&maker, metadata);
  return maker;
}

static inline void put_key(gguf_maker *maker, const char *key, uint32_t type) {
  put_text(maker, key);
  put_u32(maker, type);
}

static inline void put_tensor(gguf_maker *maker, const char *name, uint32_t rank, const uint64_t *dims, uint32_t type,
                              uint64_t offset) {
  put_text(maker, name);
  put_u32(maker, rank);
  for (uint32_t i = 0; i < rank; i++) put_u64(maker, dims[i]);
  put_u32(maker, type);
  put_u64(maker, offset);
}

/* Pads to the alignment and appends data that counts up from 0. */
static inline void put_data(gguf_maker *maker, uint64_t alignment, uint64_t count) {
  while (maker->size % alignment != 0) put_number(maker, 0, 1);
  for (uint64_t i = 0; i < count; i++) put_number(maker, i, 1);
}

#endif
