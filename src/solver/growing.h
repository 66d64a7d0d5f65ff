/* SPDX-License-Identifier: Apache-2.0 */
/* growing.h - arrays in an arena that double: what they outgrow stays until the arena goes. */
#ifndef TM_SOLVER_GROWING_H
#define TM_SOLVER_GROWING_H

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"

typedef struct tm_growing {
  void    *items;
  uint64_t count;
  uint64_t capacity;
} tm_growing;

/* Room for `more` elements behind those that are there, NULL if there is no memory; the caller raises `count`. */
static inline void *tm_growing_room(tm_growing *array, tm_arena *arena, uint64_t more, uint64_t element_bytes) {
  if (array->items == NULL || array->capacity - array->count < more) {
    const uint64_t capacity = tm_max_u64(array->capacity * 2, array->count + more);
    uint64_t bytes;
    void *grown = tm_checked_mul(capacity, element_bytes, &bytes) ? tm_arena_alloc(arena, bytes) : NULL;
    if (grown == NULL) return NULL;
    if (array->count != 0) memcpy(grown, array->items, (size_t)(array->count * element_bytes));
    array->items = grown;
    array->capacity = capacity;
  }
  return (char *)array->items + array->count * element_bytes;
}

#endif
