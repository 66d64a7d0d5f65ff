/* SPDX-License-Identifier: Apache-2.0 */
/* selection.h - which tensors of which checkpoints a job is about, by patterns over their names. */
#ifndef TM_JOBS_SELECTION_H
#define TM_JOBS_SELECTION_H

#include "formats/archive.h"
#include "jobs/job.h"

/* One checkpoint, as a job sees it; belongs to the caller and outlives the job. */
typedef struct tm_job_source {
  const tm_archive *archive;
  const char       *path;       /* as the user gave it */
} tm_job_source;

/* A loop that does little for each tensor looks once in so many whether the job is cancelled. */
#define TM_TENSORS_BETWEEN_LOOKS 256u

typedef struct tm_selection_rules {
  const char *const *include;   /* none: everything */
  const char *const *exclude;
  uint32_t include_count;
  uint32_t exclude_count;
} tm_selection_rules;

typedef struct tm_selected {
  uint32_t source;
  uint32_t reserved;
  uint64_t tensor;
} tm_selected;

typedef struct tm_selection {
  tm_memory   *memory;
  tm_selected *items;
  uint64_t     count;
  uint64_t     capacity;
  uint64_t     bytes;           /* of the selected tensors' data */
} tm_selection;

/* Notes what is odd about their files, such as that a part of a set was opened alone. */
void tm_job_sources_note(tm_job *job, const tm_job_source *sources, uint32_t source_count);

/* Copies of the caller's patterns, in an arena.   TM_ERROR_NO_MEMORY */
tm_status tm_selection_rules_copy(const tm_selection_rules *rules, tm_arena *arena, tm_selection_rules *out_rules, tm_error *error);

/* In file order.  Takes its time with a million tensors, so it belongs on the job's thread and ends when that is cancelled.
   TM_ERROR_NOT_FOUND (a pattern that matches nothing, with a suggestion; nothing is left), TM_ERROR_NO_MEMORY,
   TM_ERROR_CANCELLED */
tm_status tm_selection_make(const tm_job *job, tm_memory *memory, const tm_job_source *sources, uint32_t source_count,
                            const tm_selection_rules *rules, tm_selection *out_selection, tm_error *error);
/* TM_ERROR_NOT_FOUND (it matches nothing, with a suggestion), TM_ERROR_NO_MEMORY */
tm_status tm_selection_check_pattern(tm_memory *memory, const tm_job_source *sources, uint32_t source_count, const char *pattern,
                                     tm_error *error);
/* Whether one of the patterns leaves it out. */
bool tm_selection_excludes(const tm_selection_rules *rules, tm_string name);
void tm_selection_deinit(tm_selection *selection);

#endif
