/* SPDX-License-Identifier: Apache-2.0 */
/* check_row.h - one line of a check: what it is about, how bad that is, and a sentence for people. */
#ifndef TM_JOBS_CHECK_ROW_H
#define TM_JOBS_CHECK_ROW_H

#include "formats/archive.h"
#include "jobs/job.h"

#define TM_CHECK_COLUMNS 12u
extern const tm_column tm_check_columns[TM_CHECK_COLUMNS];

/* How much a row matters. */
typedef enum tm_check_level {
  TM_CHECK_NOTE,                /* worth knowing, nothing wrong */
  TM_CHECK_FINDING,             /* something is wrong with the checkpoint */
  TM_CHECK_TROUBLE              /* it could not be examined */
} tm_check_level;

#define TM_CHECK_MESSAGE_BYTES 1024

typedef struct tm_check_row {
  const char     *file;
  tm_check_level  level;
  const char     *kind;         /* "nan", "missing_shard", ...: tensormorph.h lists them */
  tm_string       tensor;       /* its name; data NULL: it is about no tensor */
  const tm_archive_tensor *described;   /* for dtype and shape; may be NULL */
  bool            has_counts;
  uint64_t        count;
  uint64_t        total;
  const uint64_t *first;        /* an index; NULL: there is none */
  uint32_t        first_rank;
  const uint64_t *slices;       /* on the outermost axis; NULL: not told */
  uint64_t        slice_count;
  tm_string       other;        /* another file or tensor; data NULL: none */
  char            message[TM_CHECK_MESSAGE_BYTES];
} tm_check_row;

/* A row about a tensor, without counts. */
void tm_check_row_init(tm_check_row *row, tm_check_level level, const char *kind, const char *file,
                       const tm_archive_tensor *tensor);
/* TM_ERROR_NO_MEMORY */
tm_status tm_check_row_add(tm_job *job, const tm_check_row *row, tm_error *error);

#endif
