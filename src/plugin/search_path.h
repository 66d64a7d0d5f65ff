/* SPDX-License-Identifier: Apache-2.0 */
/* search_path.h - the folders in which plugins are looked for, besides files that are named. */
#ifndef TM_PLUGIN_SEARCH_PATH_H
#define TM_PLUGIN_SEARCH_PATH_H

#include "base/arena.h"
#include "base/log.h"
#include "tensormorph/types.h"

#define TM_SEARCH_PATH_VARIABLE "TENSORMORPH_PLUGIN_PATH"

/* In the order in which they count: those of the variable, the one that belongs to the place where this library lies, the
   one that it was built for.  One folder under two names is in it once; it need not exist. */
typedef struct tm_search_path {
  const char **folders;         /* in `arena`, as the array is */
  uint32_t     count;
} tm_search_path;

/* TM_ERROR_NO_MEMORY */
tm_status tm_search_path_make(tm_arena *arena, const tm_log *log, tm_search_path *out_path, tm_error *error);

#endif
