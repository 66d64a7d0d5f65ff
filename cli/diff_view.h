/* SPDX-License-Identifier: Apache-2.0 */
/* diff_view.h - the rows of a comparison by the names of their columns, and which of them are a difference to the user. */
#ifndef TM_CLI_DIFF_VIEW_H
#define TM_CLI_DIFF_VIEW_H

#include <stdbool.h>

#include "row_printer.h"

/* The library's verdicts (jobs.h), in the order in which they are told of. */
typedef enum tm_diff_word {
  TM_WORD_CHANGED,
  TM_WORD_RESHAPED,
  TM_WORD_TRANSPOSED,
  TM_WORD_UNEXAMINED,
  TM_WORD_REMOVED,
  TM_WORD_ADDED,
  TM_WORD_IDENTICAL,
  TM_WORD_RENAMED,
  TM_WORD_RETYPED,
  TM_WORD_TIED,
  TM_WORD_COUNT
} tm_diff_word;

/* What a row means under the options of the command. */
typedef enum tm_diff_meaning {
  TM_MEANS_SAME,                /* the same values, and nothing that the user would call a difference */
  TM_MEANS_CLOSE,               /* other values, within the tolerance */
  TM_MEANS_DIFFERENT
} tm_diff_meaning;

typedef enum tm_diff_field {
  TM_FIELD_VERDICT,
  TM_FIELD_NAME,
  TM_FIELD_OTHER_NAME,
  TM_FIELD_DTYPE,
  TM_FIELD_OTHER_DTYPE,
  TM_FIELD_SHAPE,
  TM_FIELD_OTHER_SHAPE,
  TM_FIELD_COUNT,
  TM_FIELD_EQUAL,
  TM_FIELD_CHANGED,
  TM_FIELD_NONFINITE,
  TM_FIELD_MAX_ABS,
  TM_FIELD_REL_L2,
  TM_FIELD_DISTANCE,
  TM_FIELD_NORM,
  TM_FIELD_BYTES,
  TM_FIELD_OTHER_BYTES,
  TM_FIELDS
} tm_diff_field;

typedef struct tm_diff_view {
  const tm_job    *job;
  const tm_column *columns;     /* the job's */
  uint32_t         column_count;
  uint32_t         column[TM_FIELDS];   /* indices into columns */
  double           tolerance;   /* the largest max_abs that is no difference; negative: there is none */
  bool             is_exact;    /* only what is identical is the same */
} tm_diff_view;

void    tm_diff_view_init(tm_diff_view *view, const tm_job *job, double tolerance, bool is_exact);
tm_cell tm_diff_view_cell(const tm_diff_view *view, const tm_cell *cells, tm_diff_field field);
/* The name in A, or if there is none that in B. */
tm_cell tm_diff_view_name(const tm_diff_view *view, const tm_cell *cells);
tm_diff_word    tm_diff_view_word(const tm_diff_view *view, const tm_cell *cells);
tm_diff_meaning tm_diff_view_meaning(const tm_diff_view *view, const tm_cell *cells);
/* Whether elements of both were compared: not where a file that ends too early may be all that is wrong. */
bool tm_diff_view_is_seen(const tm_diff_view *view, const tm_cell *cells);
/* "changed" */
const char *tm_diff_word_text(tm_diff_word word);

#endif
