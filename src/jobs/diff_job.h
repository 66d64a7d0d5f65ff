/* SPDX-License-Identifier: Apache-2.0 */
/* diff_job.h - two checkpoints compared: tensor by tensor, by name and by content. */
#ifndef TM_JOBS_DIFF_JOB_H
#define TM_JOBS_DIFF_JOB_H

#include "jobs/job.h"
#include "jobs/selection.h"

typedef struct tm_diff_request {
  tm_job_source        sources[2];      /* a and b */
  uint32_t             worst_numerics;  /* TM_NUMERICS_* */
  uint32_t             flags;           /* TM_DIFF_* */
  tm_selection_rules   rules;           /* copied */
  tm_job_complete_fn   complete;
  void                *complete_context;
} tm_diff_request;

/* Which tensors are compared is found out on the job's thread.   TM_ERROR_NO_MEMORY */
tm_status tm_diff_job_start(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_diff_request *request,
                            tm_job **out_job, tm_error *error);

#endif
