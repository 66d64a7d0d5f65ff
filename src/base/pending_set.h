/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending_set.h - files of one folder that are written beside their names and come into their place when all are complete: whole,
 * or not at all.  Their room on the disk is taken when they are made, so that a disk that is too full is noticed then.
 *
 *   create    NAME.<digits>.part for each; the last one leads, and is locked as long as its writer lives
 *   write     any offsets, any threads
 *   commit    all are brought to the disk; one alone is renamed, and so replaces what was there at once.  Of several, and of one
 *             for which files of other names go, the leader first becomes NAME.<digits>.whole, which decides: before it, what was
 *             there is untouched; after it, the new set is what counts.  Then the old files go, the new ones come, the leader last.
 *   destroy   before that point all parts are removed
 *
 * A process that is killed leaves parts without a living owner, or a leader that is whole: pending_recovery.h.
 */
#ifndef TM_BASE_PENDING_SET_H
#define TM_BASE_PENDING_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_pending_file {
  const char *name;             /* in the folder */
  uint64_t    bytes;
  bool        is_new;           /* nothing is there, and what comes there meanwhile is not replaced */
} tm_pending_file;

/* Not changed and not kept by the functions below. */
typedef struct tm_pending_plan {
  const char            *folder;        /* "": the working directory */
  const tm_pending_file *files;         /* the last one leads */
  uint64_t               file_count;    /* at least 1 */
  const char *const     *old_names;     /* other files that go when these are complete, in this order */
  uint64_t               old_count;
} tm_pending_plan;

typedef struct tm_pending_set tm_pending_set;

/* Whether create would be let do this, as far as that can be seen without doing anything.   TM_ERROR_NOT_FOUND (no such folder),
   TM_ERROR_IO (a folder that may not be written to, a name too long, something else than a file in the place of one, a file that
   may not be removed ...) */
tm_status tm_pending_set_check(const tm_pending_plan *plan, tm_error *error);

/* Each file keeps mode and owner of the one that it replaces.   TM_ERROR_NOT_FOUND (no such folder), TM_ERROR_IO (with the errno:
   no room, a file too large for the system's limits, something else than a file in the place of one ...), TM_ERROR_NO_MEMORY */
tm_status tm_pending_set_create(tm_memory *memory, const tm_pending_plan *plan, tm_pending_set **out_set, tm_error *error);

/* The digits that are in the names of its files. */
const char *tm_pending_set_id(const tm_pending_set *set);

/* Any thread, different bytes.   TM_ERROR_IO */
tm_status tm_pending_set_write(tm_pending_set *set, uint64_t file, uint64_t offset, const void *data, uint64_t bytes,
                               tm_error *error);

/* Brings one file to the disk, piece by piece, so that it ends soon after *is_cancelled has become true.
   TM_ERROR_IO (what was written may be lost), TM_ERROR_CANCELLED */
tm_status tm_pending_set_sync(tm_pending_set *set, uint64_t file, const atomic_bool *is_cancelled, tm_error *error);

/* After all files were synced.  `old_names` as in the plan, or as they are now.  When it fails after the point that decides,
   *out_is_decided is true and tm_pending_recover can do the rest.   TM_ERROR_IO (EEXIST: where a file is new something else is
   now), TM_ERROR_NO_MEMORY */
tm_status tm_pending_set_commit(tm_pending_set *set, const char *const *old_names, uint64_t old_count, bool *out_is_decided,
                                tm_error *error);
void tm_pending_set_destroy(tm_pending_set *set);

#endif
