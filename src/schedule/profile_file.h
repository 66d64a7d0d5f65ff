/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_file.h - profiles on disk, shared by all processes with the same folder: a snapshot, and a journal of what was
 * learned since.  Records are appended whole, under a lock; a journal that has grown is merged into the next snapshot, under
 * the same lock.  Damaged lines, and files that are no profile, are passed over with one line in the log; a profile of a later
 * version is left alone.
 */
#ifndef TM_SCHEDULE_PROFILE_FILE_H
#define TM_SCHEDULE_PROFILE_FILE_H

#include "base/log.h"
#include "schedule/profile_merge.h"

#define TM_PROFILE_NOTE_BYTES 1024u

typedef struct tm_profile_file {
  tm_memory    *memory;
  tm_log        log;
  const char   *folder;
  _Atomic bool  is_silent;      /* a failure was said */
  _Atomic bool  has_note;       /* the text below is whole */
  char          note[TM_PROFILE_NOTE_BYTES];
} tm_profile_file;

/* The failure that was said; "" if none was. */
const char *tm_profile_file_note(const tm_profile_file *file);

/* All that is known, snapshot and journal.  Never fails: what cannot be read is not known. */
void tm_profile_file_read(tm_profile_file *file, tm_profile_record_fn take, void *context);

/* Appends lines (without a header).   TM_ERROR_IO, TM_BUSY (somebody has it for too long), TM_UNSUPPORTED (a later version),
   TM_ERROR_NO_MEMORY */
tm_status tm_profile_file_append(tm_profile_file *file, const char *lines, uint64_t bytes, tm_error *error);

/* Whether records about this owner stay. */
typedef bool (*tm_profile_keep_fn)(void *context, const tm_profile_owner *owner);
/* Merges the journal into a new snapshot, without the owners that `keep` (NULL: all stay) does not want. */
tm_status tm_profile_file_compact(tm_profile_file *file, tm_profile_keep_fn keep, void *context, tm_error *error);

/* A profile of its own, for another machine or a simulation. */
tm_status tm_profile_file_export(tm_profile_file *file, const char *path, tm_error *error);
/* Hands over what stands at `path`.   TM_ERROR_NOT_FOUND, TM_ERROR_CORRUPT (no profile), TM_UNSUPPORTED (another version), ... */
tm_status tm_profile_file_load(tm_memory *memory, const char *path, tm_profile_record_fn take, void *context,
                               tm_profile_flaws *out_flaws, tm_error *error);

#endif
