/* SPDX-License-Identifier: Apache-2.0 */
/* merge_outcome.h - what a merge wrote, and which tensors changed most by it. */
#ifndef TM_CLI_MERGE_OUTCOME_H
#define TM_CLI_MERGE_OUTCOME_H

#include "job_report.h"
#include "row_printer.h"

/* The `top` largest changes, then the files, then what every job tells.   TM_ERROR_NO_MEMORY */
tm_status tm_merge_outcome_print(const tm_merge_plan *plan, const tm_job_report *report, uint64_t top, tm_table_look look,
                                 tm_output_stream *stream, tm_error *error);

#endif
