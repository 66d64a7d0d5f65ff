/* SPDX-License-Identifier: Apache-2.0 */
/* finite_check.h - what the rows of statistics say about NaN and infinities, and about how many tensors they say nothing. */
#ifndef TM_CLI_FINITE_CHECK_H
#define TM_CLI_FINITE_CHECK_H

#include "row_printer.h"

typedef struct tm_finite_check {
  uint64_t tensor_count;
  uint64_t found;               /* tensors with NaN or infinities */
  uint64_t first;               /* row of the first of them */
  uint64_t unexamined;          /* tensors whose elements nobody could look at */
  char     types[128];          /* of those, each once: "q4_k, c64"; "..." ends a list that is too long */
} tm_finite_check;

/* Looks at all of the job's rows. */
void tm_finite_check_make(tm_finite_check *check, const tm_job *job);
/* One line: that there are none, or how many tensors nobody could vouch for; nothing where the table shows what was found. */
void tm_finite_check_print(const tm_finite_check *check, tm_output_stream *stream);
/* --fail-on-nonfinite: TM_EXIT_OK only if every tensor was examined and all of it is finite; else the reasons are told. */
int tm_finite_check_judge(const tm_finite_check *check, const tm_job *job);

#endif
