/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_audit.h - a sharded safetensors set with whatever is wrong with it: each shard is opened by itself, and the index is held
 * against all of them both ways.  Where a reader stops at the first thing that does not agree, this names every one.
 */
#ifndef TM_FORMATS_SHARD_AUDIT_H
#define TM_FORMATS_SHARD_AUDIT_H

#include "base/arena.h"
#include "formats/archive.h"

typedef enum tm_shard_fault_kind {
  TM_SHARD_MISSING,             /* the index names the file, and there is none; count: its tensors in the index */
  TM_SHARD_REFUSED,             /* it cannot be opened, or an entry of the index cannot be: status and text */
  TM_SHARD_STRAY,               /* a safetensors file beside the index that no index of the folder names */
  TM_SHARD_TENSOR_MISSING,      /* the index says that it is in the file, and no file has it */
  TM_SHARD_TENSOR_MISPLACED,    /* it is in this file; the index says: in `other` */
  TM_SHARD_TENSOR_UNINDEXED,    /* it is in the file, and the index does not know it */
  TM_SHARD_TENSOR_TWICE,        /* it is in the file, and in `other`, too */
  TM_SHARD_TOTAL,               /* the index says `count` bytes for all tensors, and there are `actual` */
  TM_SHARD_TOTAL_ODD            /* what it says for all tensors is no number of bytes */
} tm_shard_fault_kind;

typedef struct tm_shard_fault {
  tm_shard_fault_kind kind;
  tm_status   status;
  const char *path;             /* of the file that it is about; of the index for TOTAL */
  const char *other;
  const char *text;
  tm_string   tensor;
  uint64_t    count;
  uint64_t    actual;
} tm_shard_fault;

/* All texts live until it returns.  Anything but TM_OK ends the audit with it. */
typedef tm_status (*tm_shard_fault_fn)(void *context, const tm_shard_fault *fault, tm_error *error);

/* What an audit leaves: the shards that could be opened, by name. */
typedef struct tm_shard_audit {
  tm_memory   *memory;
  tm_archive **archives;
  char       **paths;           /* as the index's folder and its words make them; in an arena of the caller's */
  const char  *index_path;      /* the caller's */
  uint64_t     count;
  uint64_t     capacity;
} tm_shard_audit;

/* The path of the index that a path stands for: its own, that of the folder's index, or that of the index which names the shard.
   NULL: it is something else, also where it cannot be read: that is found out by opening it.   TM_ERROR_NO_MEMORY */
tm_status tm_shard_audit_find_index(tm_memory *memory, tm_arena *arena, const char *path, const char **out_index_path, tm_error *error);

/* Whatever comes back, the audit must be deinitialised, once the archives are not used any more.
   What cannot be read of the index itself: TM_ERROR_CORRUPT, TM_ERROR_IO, ...; TM_ERROR_NO_MEMORY; what `fault` returned */
tm_status tm_shard_audit_init(tm_shard_audit *audit, tm_memory *memory, tm_arena *arena, const tm_archive_options *options,
                              const char *index_path, tm_shard_fault_fn fault, void *context, tm_error *error);
void      tm_shard_audit_deinit(tm_shard_audit *audit);

/* Whether one of its shards was opened under this very path. */
bool      tm_shard_audit_has(const tm_shard_audit *audit, const char *path);

#endif
