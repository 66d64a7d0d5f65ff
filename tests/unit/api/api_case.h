/* SPDX-License-Identifier: Apache-2.0 */
/* api_case.h - an allocator that counts, that can fail at a chosen allocation, and a checkpoint in a file of its own. */
#ifndef TM_TESTS_API_CASE_H
#define TM_TESTS_API_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/scratch.h"
#include "tensormorph/tensormorph.h"

typedef struct counting_heap {
  _Atomic uint64_t live_bytes;
  _Atomic uint64_t live_count;
  _Atomic uint64_t calls;
  uint64_t         fail_at;     /* the call, counted from 1, that gets nothing; 0: none */
  uint64_t         fail_from;   /* this call and all after it get nothing; 0: none */
  uint64_t         cancel_at;   /* the call that sets `cancelled`; 0: none */
  uint32_t         cancelled;
} counting_heap;

static inline void *counting_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  counting_heap *heap = context;
  const uint64_t call = atomic_fetch_add(&heap->calls, 1) + 1;
  if (call == heap->cancel_at) __atomic_store_n(&heap->cancelled, 1, __ATOMIC_RELAXED);
  if (call == heap->fail_at || (heap->fail_from != 0 && call >= heap->fail_from)) return NULL;
  if (alignment < 16 || (alignment & (alignment - 1)) != 0) return NULL;
  void *memory = aligned_alloc((size_t)alignment, (size_t)((bytes + alignment - 1) / alignment * alignment));
  if (memory == NULL) return NULL;
  atomic_fetch_add(&heap->live_bytes, bytes);
  atomic_fetch_add(&heap->live_count, 1);
  return memory;
}

static inline void counting_free(void *context, void *memory, uint64_t bytes) {
  counting_heap *heap = context;
  atomic_fetch_sub(&heap->live_bytes, bytes);
  atomic_fetch_sub(&heap->live_count, 1);
  free(memory);
}

static inline void heap_is_empty(const counting_heap *heap) {
  assert_int_equal(atomic_load(&heap->live_count), 0);
  assert_int_equal(atomic_load(&heap->live_bytes), 0);
}

static inline tm_context_options options_with(counting_heap *heap) {
  return (tm_context_options){
    .struct_size = sizeof(tm_context_options),
    .thread_count = 2,
    .alloc = counting_alloc,
    .free = counting_free,
    .allocator_context = heap,
  };
}

/* Writes a safetensors file: `header` as given, then `data_bytes` bytes that count up. */
static inline const char *write_checkpoint(scratch *files, const char *name, const char *header, uint64_t data_bytes, uint64_t file_bytes) {
  const uint64_t length = strlen(header);
  const uint64_t count = 8 + length + data_bytes;
  unsigned char *bytes = malloc((size_t)count);
  assert_non_null(bytes);
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(length >> (8 * i));
  memcpy(bytes + 8, header, (size_t)length);
  for (uint64_t i = 0; i < data_bytes; i++) bytes[8 + length + i] = (unsigned char)i;
  const char *path = scratch_write_sparse(files, name, bytes, count, file_bytes > count ? file_bytes : count);
  free(bytes);
  assert_non_null(path);
  return path;
}

#define TWO_TENSORS                                                                       \
  "{\"__metadata__\":{\"made_by\":\"a test\"},"                                           \
  "\"w\":{\"dtype\":\"U8\",\"shape\":[4,8],\"data_offsets\":[0,32]},"                     \
  "\"v.weight\":{\"dtype\":\"I32\",\"shape\":[4],\"data_offsets\":[32,48]}}"
#define TWO_TENSORS_BYTES 48u

#endif
