/* SPDX-License-Identifier: Apache-2.0 */
/* merge_job.h - carries out the plan of a merge. */
#ifndef TM_JOBS_MERGE_JOB_H
#define TM_JOBS_MERGE_JOB_H

#include "jobs/merge_plan.h"

/* The plan outlives the job.   As tm_job_start_merge */
tm_status tm_merge_job_start(tm_merge_plan *plan, tm_job_complete_fn complete, void *complete_context, tm_job **out_job,
                             tm_error *error);

#endif
