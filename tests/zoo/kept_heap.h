/* SPDX-License-Identifier: Apache-2.0 */
/* kept_heap.h - an allocator for contexts whose plugins hang. */
#ifndef TM_TESTS_KEPT_HEAP_H
#define TM_TESTS_KEPT_HEAP_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* A hung device keeps its memory for ever, which a leak checker would count against the test.  So all is kept, in a list. */
typedef struct kept_block {
  struct kept_block *next;
} kept_block;

typedef struct keeper {
  _Atomic(kept_block *) blocks;
} keeper;

#define BLOCK_ROOM 64u

static inline void *keep_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  keeper *all = context;
  const uint64_t unit = alignment < BLOCK_ROOM ? BLOCK_ROOM : alignment;
  char *whole = aligned_alloc((size_t)unit, (size_t)((bytes + 2 * unit - 1) / unit * unit));
  if (whole == NULL) return NULL;
  kept_block *block = (kept_block *)(void *)whole;
  block->next = atomic_load(&all->blocks);
  while (!atomic_compare_exchange_weak(&all->blocks, &block->next, block)) {
  }
  return whole + unit;
}

static inline void keep_free(void *context, void *memory, uint64_t bytes) { (void)context, (void)memory, (void)bytes; }

#endif
