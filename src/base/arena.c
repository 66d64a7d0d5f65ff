/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"

struct tm_arena_block {
  _Alignas(max_align_t) tm_arena_block *older;
  uint64_t size_bytes;          /* of data[] */
  uint64_t used_bytes;
  _Alignas(max_align_t) unsigned char data[];
};

/* Blocks double up to this, so that a million small strings cost few allocations and a small file wastes little. */
#define FIRST_BLOCK_BYTES UINT64_C(4096)
#define LARGEST_BLOCK_BYTES (UINT64_C(1) << 20)

void tm_arena_init(tm_arena *arena, tm_memory *memory) {
  arena->memory = memory;
  arena->newest = NULL;
}

void tm_arena_deinit(tm_arena *arena) {
  while (arena->newest != NULL) {
    tm_arena_block *block = arena->newest;
    arena->newest = block->older;
    tm_memory_free(arena->memory, block, sizeof *block + block->size_bytes);
  }
}

static tm_arena_block *add_block_of(tm_arena *arena, uint64_t size) {
  uint64_t bytes;
  if (!tm_checked_add(size, sizeof(tm_arena_block), &bytes)) return NULL;
  tm_arena_block *block = tm_memory_alloc(arena->memory, bytes, 0);
  if (block == NULL) return NULL;
  block->older = arena->newest;
  block->size_bytes = size;
  block->used_bytes = 0;
  arena->newest = block;
  return block;
}

/* Where memory is short, what is needed and no more. */
static tm_arena_block *add_block(tm_arena *arena, uint64_t least_bytes) {
  const uint64_t doubled = arena->newest == NULL ? FIRST_BLOCK_BYTES : arena->newest->size_bytes * 2;
  const uint64_t size = tm_max_u64(least_bytes, tm_min_u64(doubled, LARGEST_BLOCK_BYTES));
  tm_arena_block *block = add_block_of(arena, size);
  return block == NULL && size > least_bytes ? add_block_of(arena, least_bytes) : block;
}

void *tm_arena_alloc(tm_arena *arena, uint64_t bytes) {
  uint64_t rounded;
  if (!tm_checked_round_up(bytes, _Alignof(max_align_t), &rounded)) return NULL;
  tm_arena_block *block = arena->newest;
  if (block == NULL || block->size_bytes - block->used_bytes < rounded) block = add_block(arena, rounded);
  if (block == NULL) return NULL;
  void *result = block->data + block->used_bytes;
  block->used_bytes += rounded;
  return result;
}

void *tm_arena_calloc(tm_arena *arena, uint64_t count, uint64_t element_bytes) {
  uint64_t bytes;
  if (!tm_checked_mul(count, element_bytes, &bytes)) return NULL;
  void *result = tm_arena_alloc(arena, bytes);
  if (result != NULL) memset(result, 0, (size_t)bytes);
  return result;
}

char *tm_arena_string(tm_arena *arena, const char *text, uint64_t length) {
  uint64_t bytes;
  if (!tm_checked_add(length, 1, &bytes)) return NULL;
  char *copy = tm_arena_alloc(arena, bytes);
  if (copy == NULL) return NULL;
  if (length != 0) memcpy(copy, text, (size_t)length);
  copy[length] = '\0';
  return copy;
}
