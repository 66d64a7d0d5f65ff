/* SPDX-License-Identifier: Apache-2.0 */
/* diff_verdict.h - what all rows of a comparison come to: how many of each kind, and whether these are the same weights. */
#ifndef TM_CLI_DIFF_VERDICT_H
#define TM_CLI_DIFF_VERDICT_H

#include "diff_view.h"

typedef struct tm_diff_verdict {
  uint64_t word_count[TM_WORD_COUNT];
  uint64_t different_word_count[TM_WORD_COUNT]; /* of these, rows that are a difference */
  uint64_t same_word_count[TM_WORD_COUNT];      /* and that are none, without a tolerance */
  uint64_t close_count;
  uint64_t different_count;
} tm_diff_verdict;

/* Looks at rows [0, row_count) of the job. */
void tm_diff_verdict_make(tm_diff_verdict *verdict, const tm_diff_view *view, uint64_t row_count);

/* "same weights: 12 identical, 3 renamed", "different: 1 changed, 2 added; the same: 12 identical"; width 0: no limit. */
void tm_diff_verdict_print(const tm_diff_verdict *verdict, bool color, uint32_t width, tm_output_stream *stream);
/* A member `summary`: an object with each word, `close` and `different`. */
void tm_diff_verdict_print_json(const tm_diff_verdict *verdict, tm_json_writer *json);

#endif
