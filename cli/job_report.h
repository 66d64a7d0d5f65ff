/* SPDX-License-Identifier: Apache-2.0 */
/* job_report.h - what stands below the rows of a job: how much work it was, which devices did it, what fell back. */
#ifndef TM_CLI_JOB_REPORT_H
#define TM_CLI_JOB_REPORT_H

#include <stdbool.h>

#include "elsewhere_notes.h"
#include "json_writer.h"
#include "tensormorph/tensormorph.h"

typedef struct tm_job_report {
  const tm_job   *job;
  tm_status       status;       /* how it ended */
  const tm_error *error;        /* what was wrong, if it did not end well */
  bool            is_cancelled;
  const tm_elsewhere_notes *elsewhere;  /* told along with the job's own notes; NULL: none */
} tm_job_report;

/* Of many notes only some.  width 0: no limit. */
void tm_job_report_print(const tm_job_report *report, bool with_notes, uint32_t width, tm_output_stream *stream);
/* The same notes alone, on the error stream: for outputs that have no place for them. */
void tm_job_report_complain_notes(const tm_job_report *report);
/* Members: complete, error, devices, bytes, seconds, gb_per_s, notes. */
void tm_job_report_print_json(const tm_job_report *report, tm_json_writer *json);

#endif
