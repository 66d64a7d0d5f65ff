/* SPDX-License-Identifier: Apache-2.0 */
/* merge_row.h - the rows of a merge: those of its plan, and those of the job. */
#ifndef TM_JOBS_MERGE_ROW_H
#define TM_JOBS_MERGE_ROW_H

#include "jobs/merge_plan.h"

#define TM_MERGE_PLAN_COLUMNS 9u
extern const tm_column tm_merge_plan_column_list[TM_MERGE_PLAN_COLUMNS];
#define TM_MERGE_JOB_COLUMNS 13u
extern const tm_column tm_merge_job_column_list[TM_MERGE_JOB_COLUMNS];

/* [any thread] Texts are made when first asked for and stay the plan's.   TM_ERROR_NO_MEMORY */
tm_status tm_merge_plan_row_fill(tm_merge_plan *plan, uint64_t item, tm_cell *out_cells);

/* What came of a tensor. */
typedef struct tm_merge_outcome {
  const char     *weights_text;         /* NULL: as the plan has it */
  const uint64_t *change;               /* words of a comparison of the leading tensor with the result; NULL: there was none */
  const uint64_t *loss;                 /* of the computed values with what they became in blocks; NULL: no blocks */
  uint64_t        broken_count;         /* elements that are finite in the leading tensor, and not in the result */
} tm_merge_outcome;
tm_status tm_merge_job_row_fill(tm_merge_plan *plan, uint64_t item, const tm_merge_outcome *outcome, tm_cell *out_cells);

#endif
