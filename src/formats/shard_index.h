/* SPDX-License-Identifier: Apache-2.0 */
/* shard_index.h - the index of a sharded set (*.safetensors.index.json): which tensor lies in which file. */
#ifndef TM_FORMATS_SHARD_INDEX_H
#define TM_FORMATS_SHARD_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/name_table.h"

typedef struct tm_shard_entry {
  tm_string name;               /* of the tensor; first: name_table.h */
  uint32_t  shard;
  uint32_t  reserved;
} tm_shard_entry;

typedef struct tm_shard {
  tm_string file_name;          /* first: name_table.h; NUL-terminated; relative, never leads out of the index's folder */
} tm_shard;

/* An entry that names no file of the set. */
typedef struct tm_shard_flaw {
  tm_string   name;             /* of the tensor; first: name_table.h */
  const char *text;             /* what is wrong with it */
} tm_shard_flaw;

typedef struct tm_shard_index {
  tm_memory      *memory;
  tm_arena        arena;
  tm_shard_entry *entries;
  uint64_t        entry_count, entry_capacity;
  tm_name_table   entry_names;
  tm_shard       *shards;       /* in the order of their first mention */
  uint64_t        shard_count, shard_capacity;
  tm_name_table   shard_names;
  tm_shard_flaw  *flaws;
  uint64_t        flaw_count, flaw_capacity;
  tm_name_table   flaw_names;
  uint64_t        total_bytes;  /* what the index says all tensors have together */
  bool            has_total_bytes;
  bool            has_odd_total;        /* it says a total that is no whole number of bytes */
} tm_shard_index;

/* Reads the index from its text, which may be changed and need not outlive the call.  `label` is for messages.  Whatever
   comes back, the index must be deinitialised.   TM_ERROR_CORRUPT, TM_ERROR_NO_MEMORY */
tm_status tm_shard_index_init(tm_shard_index *index, tm_memory *memory, const char *label, char *text, uint64_t length,
                              tm_error *error);

/* Likewise, but an entry that cannot be is kept as a flaw, and the others count; of a tensor that occurs twice the first. */
tm_status tm_shard_index_init_flawed(tm_shard_index *index, tm_memory *memory, const char *label, char *text, uint64_t length,
                                     tm_error *error);
void      tm_shard_index_deinit(tm_shard_index *index);

#endif
