/* SPDX-License-Identifier: Apache-2.0 */
/* pending_recovery.h - what a killed writer of a set (pending_set.h) left: parts to remove, or a set to put in its place. */
#ifndef TM_BASE_PENDING_RECOVERY_H
#define TM_BASE_PENDING_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_pending_leftovers {
  uint64_t removed_count;       /* parts of dead writers */
  uint64_t completed_count;     /* sets that were complete and are now in their place */
} tm_pending_leftovers;

typedef struct tm_pending_search {
  const char        *folder;    /* "": the working directory */
  const char        *leader;    /* of the sets that are meant */
  const char        *own_id;    /* of a set that is the caller's own; or NULL */
  const char *const *old_names; /* other files that a complete one replaces, in the order in which they go */
  uint64_t           old_count;
} tm_pending_search;

/* Cleans up after writers that live no more.  Counts are written in any case, added to what they were.
   TM_BUSY: a living one writes files of that name, or none can tell whether it lives; the text names the file that says so.
   TM_ERROR_NOT_FOUND (no such folder), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_pending_recover(tm_memory *memory, const tm_pending_search *search, tm_pending_leftovers *out_leftovers,
                             tm_error *error);

/* Whether there is a complete set that is not all in its place; `leader` NULL: any. */
bool tm_pending_is_interrupted(const char *folder, const char *leader);

#endif
