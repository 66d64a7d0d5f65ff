/* SPDX-License-Identifier: Apache-2.0 */
/* diff_row.h - one line of a comparison of checkpoints: its columns, the verdict, and the figures. */
#ifndef TM_JOBS_DIFF_ROW_H
#define TM_JOBS_DIFF_ROW_H

#include "formats/archive.h"
#include "jobs/diff_pair.h"
#include "jobs/job.h"

#define TM_DIFF_COLUMNS 21u
extern const tm_column tm_diff_columns[TM_DIFF_COLUMNS];

/* How two tensors were compared. */
typedef enum tm_diff_road {
  TM_DIFF_ROAD_NONE,            /* not at all */
  TM_DIFF_ROAD_VALUES,          /* TM_OP_COMPARE_TENSORS */
  TM_DIFF_ROAD_BYTES            /* their stored bytes */
} tm_diff_road;

typedef struct tm_diff_result {
  const tm_diff_pair      *pair;
  const tm_archive_tensor *a;   /* NULL: added */
  const tm_archive_tensor *b;   /* NULL: removed */
  tm_diff_road             road;
  const uint64_t          *words;       /* TM_COMPARISON_WORDS; of VALUES */
  uint64_t                 equal_count; /* of BYTES: elements of equal blocks, of which some have several */
  bool                     has_equal_bytes;     /* of BYTES */
  bool                     has_other_blocks;    /* of VALUES, of one block format: some bytes differ, whatever they decode to */
} tm_diff_result;

/* One format, or, where this version knows none, one name of it. */
bool tm_diff_have_same_type(const tm_archive_tensor *a, const tm_archive_tensor *b);

/* Whether all elements are there on both sides and equal. */
bool tm_diff_result_is_equal(const tm_diff_result *result);
/* TM_ERROR_NO_MEMORY */
tm_status tm_diff_row_add(tm_job *job, const tm_diff_result *result, tm_error *error);

#endif
