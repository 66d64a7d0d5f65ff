/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/scratch.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"

/* Blocks beyond this are given back to the system: keeping them could hold most of a small machine's memory. */
#define LARGEST_KEPT_BYTES (UINT64_C(32) << 20)

tm_status tm_scratch_init(tm_scratch *scratch, tm_memory *memory) {
  memset(scratch, 0, sizeof *scratch);
  if (tm_mutex_init(&scratch->lock) != TM_OK) return TM_ERROR_NO_MEMORY;
  scratch->memory = memory;
  return TM_OK;
}

void tm_scratch_drop(tm_scratch *scratch) {
  tm_mutex_lock(&scratch->lock);
  for (int i = 0; i < TM_SCRATCH_KEPT; i++) {
    tm_memory_free(scratch->memory, scratch->kept[i].memory, scratch->kept[i].bytes);
    scratch->kept[i] = (tm_scratch_block){ NULL, 0 };
  }
  tm_mutex_unlock(&scratch->lock);
}

void tm_scratch_deinit(tm_scratch *scratch) {
  if (scratch->memory == NULL) return;
  tm_scratch_drop(scratch);
  tm_mutex_deinit(&scratch->lock);
}

/* The smallest kept block that is large enough, but not so large that a big one serves a small need. */
static int best_fit(const tm_scratch *scratch, uint64_t bytes) {
  int best = -1;
  for (int i = 0; i < TM_SCRATCH_KEPT; i++) {
    const tm_scratch_block *block = &scratch->kept[i];
    if (block->memory == NULL || block->bytes < bytes || block->bytes / 4 > bytes + 4096) continue;
    if (best < 0 || block->bytes < scratch->kept[best].bytes) best = i;
  }
  return best;
}

tm_scratch_block tm_scratch_take(tm_scratch *scratch, uint64_t bytes) {
  tm_scratch_block block = { NULL, 0 };
  tm_mutex_lock(&scratch->lock);
  const int found = best_fit(scratch, bytes);
  if (found >= 0) {
    block = scratch->kept[found];
    scratch->kept[found] = (tm_scratch_block){ NULL, 0 };
  }
  tm_mutex_unlock(&scratch->lock);
  if (block.memory != NULL) return block;
  const uint64_t rounded = tm_max_u64(TM_SCRATCH_ALIGNMENT, bytes);
  block.memory = tm_memory_alloc(scratch->memory, rounded, TM_SCRATCH_ALIGNMENT);
  block.bytes = block.memory == NULL ? 0 : rounded;
  return block;
}

tm_scratch_block tm_scratch_take_aligned(tm_scratch *scratch, uint64_t bytes, uint64_t alignment) {
  uint64_t with_slack;
  if (!tm_checked_add(bytes, alignment > TM_SCRATCH_ALIGNMENT ? alignment : 0, &with_slack)) return (tm_scratch_block){ NULL, 0 };
  return tm_scratch_take(scratch, with_slack);
}

void tm_scratch_give(tm_scratch *scratch, tm_scratch_block block) {
  if (block.memory == NULL) return;
  if (block.bytes <= LARGEST_KEPT_BYTES) {
    tm_mutex_lock(&scratch->lock);
    int place = -1;
    for (int i = 0; i < TM_SCRATCH_KEPT; i++)
      if (scratch->kept[i].memory == NULL) place = i;
    if (place >= 0) {
      scratch->kept[place] = block;
      block.memory = NULL;
    }
    tm_mutex_unlock(&scratch->lock);
  }
  if (block.memory != NULL) tm_memory_free(scratch->memory, block.memory, block.bytes);
}
