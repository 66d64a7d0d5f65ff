/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health_file.h - broken promises on disk: one file that all processes with the same folder share.  A damaged file counts as
 * none; what cannot be written is said once and otherwise ignored: it would only have been remembered.
 */
#ifndef TM_SCHEDULE_HEALTH_FILE_H
#define TM_SCHEDULE_HEALTH_FILE_H

#include "plugin/trial.h"

typedef struct tm_health_entry {
  const char  *backend;         /* its name */
  const char  *build_id;
  const char  *uuid;
  tm_work_kind kind;
  uint64_t     count;           /* 0: it was suspected once, which is not held against it */
  const char  *reason;          /* the first one that counted; one line */
  bool         is_suspicion;    /* of an added one: it counts only if there is an entry for the same */
} tm_health_entry;

typedef struct tm_health_file {
  tm_memory  *memory;
  tm_log      log;
  const char *folder;
  _Atomic bool is_silent;       /* a failure was said */
} tm_health_file;

/* Whether the entry is to be kept. */
typedef bool (*tm_health_keep_fn)(void *context, const tm_health_entry *entry);

/* Shows every entry to `keep` and drops those that it does not want; then adds `added` (NULL: none), to the count of an entry
   for the same if there is one.  Writes only if that changes anything.  Other processes wait meanwhile. */
void tm_health_file_update(tm_health_file *file, tm_health_keep_fn keep, void *context, const tm_health_entry *added);

#endif
