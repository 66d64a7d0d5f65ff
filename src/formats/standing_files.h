/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standing_files.h - what an earlier checkpoint left under the names of one that is to be written: its single file, and its index
 * with the shards that this names.  All of that is what the new one replaces.
 */
#ifndef TM_FORMATS_STANDING_FILES_H
#define TM_FORMATS_STANDING_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "tensormorph/types.h"

typedef struct tm_standing_files {
  const char  *folder;          /* "": the working directory */
  const char  *single;          /* NAME.safetensors */
  const char  *index;           /* NAME.safetensors.index.json; NULL where there is no such thing */
  bool         has_single;
  bool         has_index;
  const char **shards;          /* that are there, and that the index names; none of another name than NAME-1-of-2.safetensors */
  uint64_t     shard_count;
} tm_standing_files;

/* "NAME.safetensors.index.json" for "NAME.safetensors" or "NAME"; NULL without memory. */
const char *tm_standing_index_name(tm_arena *arena, const char *single);

/* The names of what goes when a set (else: a single file) of that name comes, in the order in which they go: an index says which
   its shards are, so it outlives them.  NULL without memory. */
const char **tm_standing_files_list(tm_arena *arena, const tm_standing_files *files, bool is_set, uint64_t *out_count);

/* Looks at what is there; `index` may be NULL.  An index that cannot be read names nothing.  Texts live in `arena`, or are those
   given.   TM_ERROR_NO_MEMORY */
tm_status tm_standing_files_find(tm_arena *arena, const char *folder, const char *single, const char *index,
                                 tm_standing_files *out_files, tm_error *error);

/* "FOLDER/NAME"; NULL without memory. */
const char *tm_standing_path(tm_arena *arena, const char *folder, const char *name);

#endif
