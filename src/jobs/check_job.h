/* SPDX-License-Identifier: Apache-2.0 */
/* check_job.h - what is wrong with checkpoints: their structure, and every value of every selected tensor, in one pass. */
#ifndef TM_JOBS_CHECK_JOB_H
#define TM_JOBS_CHECK_JOB_H

#include "jobs/job.h"
#include "jobs/selection.h"

typedef struct tm_check_request {
  const char *const   *paths;           /* copied */
  uint32_t             path_count;
  uint32_t             worst_numerics;  /* TM_NUMERICS_* */
  tm_archive_options   archive_options; /* incomplete files are opened in any case */
  tm_selection_rules   rules;           /* copied */
  tm_job_complete_fn   complete;
  void                *complete_context;
} tm_check_request;

/* Files are opened on the job's thread.   TM_ERROR_NO_MEMORY */
tm_status tm_check_job_start(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_check_request *request,
                             tm_job **out_job, tm_error *error);

#endif
