/* SPDX-License-Identifier: Apache-2.0 */
/* diff_report.h - what diff prints, in each of its forms: rows while the job runs where that is possible, the rest when it has
   ended. */
#ifndef TM_CLI_DIFF_REPORT_H
#define TM_CLI_DIFF_REPORT_H

#include "command.h"
#include "diff_verdict.h"
#include "diff_wishes.h"
#include "elsewhere_notes.h"
#include "job_report.h"
#include "json_writer.h"
#include "row_selection.h"

typedef struct tm_diff_report {
  tm_invocation           *invocation;
  tm_checkpoint *const    *checkpoints; /* two */
  const tm_diff_wishes    *wishes;
  tm_diff_view             view;
  tm_row_selection         selection;   /* of the job's columns, or of those of groups */
  tm_diff_verdict          verdict;     /* known when the report was printed */
  tm_elsewhere_notes       elsewhere;
  tm_json_writer           json;
  bool                     has_begun;   /* the document */
  uint64_t                 printed;     /* rows that were printed while the job ran */
} tm_diff_report;

/* What is given stays the caller's.   TM_ERROR_ARGUMENT (--sort and --columns) */
tm_status tm_diff_report_init(tm_diff_report *report, tm_invocation *invocation, const tm_job *job,
                              tm_checkpoint *const *checkpoints, const tm_diff_wishes *wishes, tm_error *error);
/* Whether rows come while the job runs. */
bool tm_diff_report_prints_meanwhile(const tm_diff_report *report);
/* The rows that are there by now, if they do. */
void tm_diff_report_print_finished(tm_diff_report *report);
/* All that is not printed yet.   TM_ERROR_NO_MEMORY */
tm_status tm_diff_report_print(tm_diff_report *report, const tm_job_report *job_report, tm_error *error);

#endif
