/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte_comparison.h - two tensors of one size held against each other byte by byte, by the threads of the pool: for formats whose
 * values no operation reads.
 */
#ifndef TM_JOBS_BYTE_COMPARISON_H
#define TM_JOBS_BYTE_COMPARISON_H

#include "base/pool.h"
#include "execute/scratch.h"
#include "formats/archive.h"

/* What comparisons share: belongs to one thread. */
typedef struct tm_byte_comparer {
  tm_pool         *pool;
  tm_scratch      *scratch;
  tm_scratch_block rooms[2];            /* for bytes of files that are not mapped */
  uint64_t         room_bytes;
} tm_byte_comparer;

typedef struct tm_byte_side {
  const tm_archive *archive;
  uint64_t          tensor;
} tm_byte_side;

/* A comparison on its way, step by step. */
typedef struct tm_byte_comparison {
  tm_byte_side sides[2];
  uint64_t     unit_bytes;              /* what is equal as a whole or not at all */
  uint64_t     next;                    /* bytes */
  uint64_t     end;
  uint64_t     equal_units;
} tm_byte_comparison;

void tm_byte_comparer_init(tm_byte_comparer *comparer, const tm_memory *memory, tm_pool *pool, tm_scratch *scratch);
void tm_byte_comparer_deinit(tm_byte_comparer *comparer);

void tm_byte_comparison_init(tm_byte_comparison *comparison, tm_byte_side a, tm_byte_side b, uint64_t bytes, uint64_t unit_bytes);
static inline bool tm_byte_comparison_is_done(const tm_byte_comparison *comparison) { return comparison->next == comparison->end; }
/* Some megabytes more, on both sides; out_bytes: how many on one.  out_side: where it failed.   TM_ERROR_NO_MEMORY, as tm_archive_read */
tm_status tm_byte_comparison_step(tm_byte_comparer *comparer, tm_byte_comparison *comparison, uint64_t *out_bytes, uint32_t *out_side,
                                  tm_error *error);

#endif
