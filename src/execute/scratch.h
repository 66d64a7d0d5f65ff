/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - memory for workspaces and intermediates, kept warm: fresh pages cost more than many kernels that use them.
 * [any thread]
 */
#ifndef TM_EXECUTE_SCRATCH_H
#define TM_EXECUTE_SCRATCH_H

#include "base/memory.h"
#include "base/thread.h"

#define TM_SCRATCH_KEPT 8
#define TM_SCRATCH_ALIGNMENT 64u

typedef struct tm_scratch_block {
  void    *memory;
  uint64_t bytes;
} tm_scratch_block;

typedef struct tm_scratch {
  tm_memory       *memory;
  tm_mutex         lock;
  tm_scratch_block kept[TM_SCRATCH_KEPT];
} tm_scratch;

tm_status tm_scratch_init(tm_scratch *scratch, tm_memory *memory);
void      tm_scratch_deinit(tm_scratch *scratch);

/* At least `bytes`, aligned to 64, content undefined; {NULL, 0} when there is none.  Give it back with the same block. */
tm_scratch_block tm_scratch_take(tm_scratch *scratch, uint64_t bytes);
void             tm_scratch_give(tm_scratch *scratch, tm_scratch_block block);

/* The same, with room to start at a multiple of `alignment`, a power of two: see tm_scratch_start. */
tm_scratch_block tm_scratch_take_aligned(tm_scratch *scratch, uint64_t bytes, uint64_t alignment);
/* The first address in the block that is a multiple of `alignment`. */
static inline void *tm_scratch_start(const tm_scratch_block *block, uint64_t alignment) {
  const uintptr_t start = (uintptr_t)block->memory;
  return alignment <= TM_SCRATCH_ALIGNMENT ? block->memory : (void *)((start + alignment - 1) & ~((uintptr_t)alignment - 1));
}

/* Frees what is kept. */
void tm_scratch_drop(tm_scratch *scratch);

#endif
