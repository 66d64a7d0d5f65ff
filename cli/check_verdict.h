/* SPDX-License-Identifier: Apache-2.0 */
/* check_verdict.h - the rows of a check for people, and what they come to. */
#ifndef TM_CLI_CHECK_VERDICT_H
#define TM_CLI_CHECK_VERDICT_H

#include "output_stream.h"
#include "tensormorph/tensormorph.h"

typedef struct tm_check_verdict {
  uint64_t finding_count;
  uint64_t note_count;
  uint64_t trouble_count;
  tm_error first_trouble;       /* its code is TM_OK if there is none */
} tm_check_verdict;

/* Looks at all of the job's rows. */
void tm_check_verdict_make(tm_check_verdict *verdict, const tm_job *job);
/* "clean", "findings", "trouble" */
const char *tm_check_verdict_word(const tm_check_verdict *verdict);
int tm_check_verdict_exit_code(const tm_check_verdict *verdict);

/* One line a finding, the first notes, and how many there are; width 0: no limit. */
void tm_check_verdict_print(const tm_check_verdict *verdict, const tm_job *job, uint32_t width, tm_output_stream *stream);
/* Trouble goes to the error stream, as it does everywhere. */
void tm_check_verdict_complain(const tm_job *job);

#endif
