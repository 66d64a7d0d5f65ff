/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_files.h - the checkpoints of a check, opened with whatever is wrong with them: every reason not to open one, and what an
 * index and its shards do not agree about, becomes a row, and what can be read is there to be examined.
 */
#ifndef TM_JOBS_CHECK_FILES_H
#define TM_JOBS_CHECK_FILES_H

#include "formats/shard_audit.h"
#include "jobs/check_row.h"
#include "jobs/selection.h"

typedef struct tm_check_files {
  tm_memory       *memory;
  tm_arena         arena;               /* paths */
  tm_archive     **archives;            /* opened here; those of the audits are theirs */
  uint64_t         archive_count, archive_capacity;
  tm_shard_audit **audits;
  uint64_t         audit_count, audit_capacity;
  tm_job_source   *sources;             /* all that can be examined, in the order in which they were named */
  uint64_t         source_count, source_capacity;
  uint32_t        *sets;                /* by source: which checkpoint it is a part of; shards of a set have one number */
  uint64_t         set_capacity;
  uint32_t         set_count;
  const char     **told_sets;           /* those told of: the path of each one's first part, in the arena */
  uint64_t         told_set_count, told_set_capacity;
  uint64_t         fault_count;        /* rows that say more than a note does */
} tm_check_files;

void tm_check_files_init(tm_check_files *files, tm_memory *memory);
void tm_check_files_deinit(tm_check_files *files);

/* Opens what a path stands for: a file, a set by its index, or the models of a folder.   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED */
tm_status tm_check_files_open(tm_check_files *files, tm_job *job, const tm_archive_options *options, const char *path,
                              tm_error *error);

#endif
