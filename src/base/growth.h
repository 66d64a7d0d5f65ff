/* SPDX-License-Identifier: Apache-2.0 */
/* growth.h - arrays that double. */
#ifndef TM_BASE_GROWTH_H
#define TM_BASE_GROWTH_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

/* Makes room for one more element after `count`.  Returns the array, moved or not; NULL leaves everything as it was. */
static inline void *tm_make_room(tm_memory *memory, void *array, uint64_t count, uint64_t *capacity, uint64_t element_bytes) {
  if (count < *capacity) return array;
  const uint64_t wanted = *capacity == 0 ? 8 : *capacity * 2;
  void *grown = tm_memory_grow(memory, array, *capacity, wanted, element_bytes);
  if (grown != NULL) *capacity = wanted;
  return grown;
}

#endif
