/* SPDX-License-Identifier: Apache-2.0 */
/* stats_job.h - statistics of every selected tensor, as a stream of TM_OP_STATS over tiles. */
#ifndef TM_JOBS_STATS_JOB_H
#define TM_JOBS_STATS_JOB_H

#include "jobs/job.h"
#include "jobs/selection.h"

typedef struct tm_stats_request {
  const tm_job_source *sources;         /* copied */
  uint32_t             source_count;
  uint32_t             worst_numerics;  /* TM_NUMERICS_* */
  tm_selection_rules   rules;           /* copied */
  tm_job_complete_fn   complete;
  void                *complete_context;
} tm_stats_request;

/* Which tensors it is about is found out on the job's thread.   TM_ERROR_NO_MEMORY */
tm_status tm_stats_job_start(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_stats_request *request,
                             tm_job **out_job, tm_error *error);

#endif
