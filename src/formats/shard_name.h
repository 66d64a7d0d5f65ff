/* SPDX-License-Identifier: Apache-2.0 */
/* shard_name.h - the names of a set's files: NAME-00002-of-00005.gguf, counted from 1. */
#ifndef TM_FORMATS_SHARD_NAME_H
#define TM_FORMATS_SHARD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "tensormorph/types.h"

typedef struct tm_shard_name {
  const char *prefix;           /* of the path that was taken apart */
  uint64_t    prefix_length;
  uint64_t    number;           /* from 1 */
  uint64_t    count;
  const char *extension;        /* ".gguf" */
} tm_shard_name;

/* false: the path is not such a name. */
bool tm_shard_name_parse(const char *path, tm_shard_name *out_name);

/* The same whatever the numbers are: what no set has is no name for a whole checkpoint either. */
bool tm_shard_name_take_apart(const char *path, tm_shard_name *out_name);

/* `label` is the path for people.   TM_ERROR_CORRUPT: such a name, but of a part beyond all */
tm_status tm_shard_name_check(const char *path, const char *label, tm_error *error);

/* Whether both are names of one set. */
bool tm_shard_name_is_of(const tm_shard_name *a, const tm_shard_name *b);

/* The path of another file of the set; NULL without memory. */
char *tm_shard_name_path(tm_arena *arena, const tm_shard_name *name, uint64_t number);

#endif
