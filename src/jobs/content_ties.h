/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_ties.h - tensors of one checkpoint that hold the same bytes under several names.  Only those of equal format and size
 * can, and of these only the ones whose samples agree have to be hashed as a whole: mostly none.
 */
#ifndef TM_JOBS_CONTENT_TIES_H
#define TM_JOBS_CONTENT_TIES_H

#include "base/content_hash.h"
#include "jobs/selection.h"

typedef struct tm_tie_entry {
  uint32_t        set;                  /* the checkpoint: equal numbers are one */
  uint32_t        format;
  uint64_t        bytes;
  uint64_t        sample;
  tm_content_hash hash;
  uint64_t        item;                 /* index in the selection */
  uint64_t        first;                /* the first item of equal content, once they are grouped */
  bool            is_known;             /* its hash is there */
} tm_tie_entry;

typedef struct tm_content_ties {
  tm_memory    *memory;
  tm_tie_entry *entries;                /* of tensors that have to be hashed, in the order of the selection */
  uint64_t      count;
  uint64_t      capacity;
} tm_content_ties;

/* Which of the selected tensors have to be hashed; sets: by source, which checkpoint it is a part of.
   TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED */
tm_status tm_content_ties_make(tm_content_ties *ties, const tm_job *job, tm_memory *memory, const tm_job_source *sources,
                               const uint32_t *sets, const tm_selection *selection, tm_error *error);
void      tm_content_ties_deinit(tm_content_ties *ties);

/* The entry of a selected tensor, or NULL: it cannot be tied. */
tm_tie_entry *tm_content_ties_find(const tm_content_ties *ties, uint64_t item);

/* Finds entries of equal content, once all hashes are there. */
void tm_content_ties_group(tm_content_ties *ties);

#endif
