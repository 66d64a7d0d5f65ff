/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static void *system_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  (void)context;
  uint64_t rounded;
  if (!tm_checked_round_up(bytes, alignment, &rounded) || rounded > PTRDIFF_MAX) return NULL;
  return aligned_alloc((size_t)alignment, (size_t)rounded);
}

static void system_free(void *context, void *memory, uint64_t bytes) {
  (void)context;
  (void)bytes;
  free(memory);
}

void tm_memory_init(tm_memory *memory, uint64_t limit_bytes) {
  memory->alloc = system_alloc;
  memory->free = system_free;
  memory->context = NULL;
  memory->limit_bytes = limit_bytes;
  atomic_init(&memory->used_bytes, 0);
  atomic_init(&memory->peak_bytes, 0);
  atomic_init(&memory->refused_bytes, 0);
  memory->reclaim = NULL;
  memory->reclaim_context = NULL;
}

/* Takes `bytes` out of the budget; a failed reservation takes nothing. */
static bool reserve(tm_memory *memory, uint64_t bytes) {
  uint64_t used = atomic_load_explicit(&memory->used_bytes, memory_order_relaxed);
  uint64_t wanted;
  do {
    if (!tm_checked_add(used, bytes, &wanted)) return false;
    if (memory->limit_bytes != 0 && wanted > memory->limit_bytes) {
      atomic_store_explicit(&memory->refused_bytes, wanted, memory_order_relaxed);
      return false;
    }
  } while (!atomic_compare_exchange_weak_explicit(&memory->used_bytes, &used, wanted, memory_order_relaxed,
                                                  memory_order_relaxed));
  return true;
}

static void raise_peak(tm_memory *memory, uint64_t used) {
  uint64_t peak = atomic_load_explicit(&memory->peak_bytes, memory_order_relaxed);
  while (peak < used && !atomic_compare_exchange_weak_explicit(&memory->peak_bytes, &peak, used, memory_order_relaxed,
                                                               memory_order_relaxed)) {
  }
}

void *tm_memory_try_alloc(tm_memory *memory, uint64_t bytes, uint64_t alignment) {
  if (alignment < _Alignof(max_align_t)) alignment = _Alignof(max_align_t);
  if (!reserve(memory, bytes)) return NULL;
  void *pointer = memory->alloc(memory->context, tm_max_u64(bytes, 1), alignment);
  if (pointer == NULL)
    atomic_fetch_sub_explicit(&memory->used_bytes, bytes, memory_order_relaxed);
  else
    raise_peak(memory, atomic_load_explicit(&memory->used_bytes, memory_order_relaxed));
  return pointer;
}

uint64_t tm_memory_begin_peak(tm_memory *memory) {
  return atomic_exchange(&memory->peak_bytes, atomic_load(&memory->used_bytes));
}

uint64_t tm_memory_end_peak(tm_memory *memory, uint64_t before_bytes) {
  const uint64_t peak = atomic_load(&memory->peak_bytes);
  raise_peak(memory, before_bytes);
  return peak;
}

void tm_memory_reclaim(tm_memory *memory) {
  if (memory->reclaim != NULL) memory->reclaim(memory->reclaim_context);
}

void *tm_memory_alloc(tm_memory *memory, uint64_t bytes, uint64_t alignment) {
  void *pointer = tm_memory_try_alloc(memory, bytes, alignment);
  if (pointer != NULL || memory->reclaim == NULL) return pointer;
  tm_memory_reclaim(memory);
  return tm_memory_try_alloc(memory, bytes, alignment);
}

void *tm_memory_calloc(tm_memory *memory, uint64_t count, uint64_t element_bytes) {
  uint64_t bytes;
  if (!tm_checked_mul(count, element_bytes, &bytes)) return NULL;
  void *pointer = tm_memory_alloc(memory, bytes, 0);
  if (pointer != NULL) memset(pointer, 0, (size_t)bytes);
  return pointer;
}

void *tm_memory_grow(tm_memory *memory, void *old, uint64_t old_count, uint64_t new_count, uint64_t element_bytes) {
  uint64_t bytes;
  if (!tm_checked_mul(new_count, element_bytes, &bytes)) return NULL;
  void *grown = tm_memory_alloc(memory, bytes, 0);
  if (grown == NULL) return NULL;
  if (old != NULL) memcpy(grown, old, (size_t)(old_count * element_bytes));
  tm_memory_free(memory, old, old_count * element_bytes);
  return grown;
}

void tm_memory_free(tm_memory *memory, void *pointer, uint64_t bytes) {
  if (pointer == NULL) return;
  memory->free(memory->context, pointer, tm_max_u64(bytes, 1));
  atomic_fetch_sub_explicit(&memory->used_bytes, bytes, memory_order_relaxed);
}

uint32_t tm_alignment_of(const void *pointer) {
  const uintptr_t address = (uintptr_t)pointer;
  return address == 0 ? TM_BEST_ALIGNMENT : (uint32_t)tm_min_u64(address & (~address + 1), TM_BEST_ALIGNMENT);
}
