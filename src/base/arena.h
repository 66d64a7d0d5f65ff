/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - many small allocations that live and die together (a file's names, a plan's steps).  Not thread-safe.
 */
#ifndef TM_BASE_ARENA_H
#define TM_BASE_ARENA_H

#include <stdint.h>

#include "base/memory.h"

typedef struct tm_arena_block tm_arena_block;

typedef struct tm_arena {
  tm_memory      *memory;
  tm_arena_block *newest;
} tm_arena;

void  tm_arena_init(tm_arena *arena, tm_memory *memory);
/* Frees everything at once. */
void  tm_arena_deinit(tm_arena *arena);
/* Uninitialised memory fit for any type, or NULL. */
void *tm_arena_alloc(tm_arena *arena, uint64_t bytes);
/* count elements, zeroed; NULL also when the size overflows. */
void *tm_arena_calloc(tm_arena *arena, uint64_t count, uint64_t element_bytes);
/* A NUL-terminated copy of `length` bytes. */
char *tm_arena_string(tm_arena *arena, const char *text, uint64_t length);

#endif
