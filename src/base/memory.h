/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - the one way to get memory: an allocator of the application's choice, counted and limited.  Everything that
 * a context owns comes from its tm_memory.  Thread-safe if the allocator behind it is.
 */
#ifndef TM_BASE_MEMORY_H
#define TM_BASE_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct tm_memory {
  void *(*alloc)(void *context, uint64_t bytes, uint64_t alignment);  /* NULL when there is none */
  void  (*free)(void *context, void *memory, uint64_t bytes);
  void   *context;
  uint64_t limit_bytes;                 /* 0 = no limit */
  _Atomic uint64_t used_bytes;
  _Atomic uint64_t peak_bytes;
  _Atomic uint64_t refused_bytes;       /* that would have been used, when the limit last stood in the way; 0: never */
  /* Gives back what is only kept for speed, from this same memory; called when there is none left, then it is tried once
     more.  Any thread may be in it, holding locks of its own; it allocates nothing.  NULL: nothing is kept. */
  void  (*reclaim)(void *reclaim_context);
  void   *reclaim_context;
} tm_memory;

/* The C library's allocator with a limit (0 = none). */
void tm_memory_init(tm_memory *memory, uint64_t limit_bytes);

/* `bytes` bytes at a multiple of `alignment` (a power of two; 0 = fit for any type), or NULL.  0 bytes give a valid pointer. */
void *tm_memory_alloc(tm_memory *memory, uint64_t bytes, uint64_t alignment);
/* As tm_memory_alloc, without asking for what is kept: for callers that must not be entered again by the giving back. */
void *tm_memory_try_alloc(tm_memory *memory, uint64_t bytes, uint64_t alignment);
/* Gives back what is only kept for speed. */
void tm_memory_reclaim(tm_memory *memory);
/* As tm_memory_alloc for count elements, zeroed; NULL also when the size overflows. */
void *tm_memory_calloc(tm_memory *memory, uint64_t count, uint64_t element_bytes);
/* Grows an array from old_count to new_count elements, keeping its content.  NULL leaves the old one valid. */
void *tm_memory_grow(tm_memory *memory, void *old, uint64_t old_count, uint64_t new_count, uint64_t element_bytes);
/* `bytes` is what was asked for.  NULL is accepted. */
void tm_memory_free(tm_memory *memory, void *pointer, uint64_t bytes);

/* Between the two the peak is that of what is done meanwhile, by whomever.  The first returns what it was before, the second what
   it became, and the larger one stays.  Where two callers overlap, the later beginning forgets what the other one's peak was: that
   one's is then of the rest only, and may be too low. */
uint64_t tm_memory_begin_peak(tm_memory *memory);
uint64_t tm_memory_end_peak(tm_memory *memory, uint64_t before_bytes);

/* What every tensor gets; larger ones make no difference to a computation. */
#define TM_BEST_ALIGNMENT 64u
/* The alignment that an address happens to have; NULL, the address of no bytes, has the largest. */
uint32_t tm_alignment_of(const void *pointer);

#endif
