/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_selection.h - which rows and columns of a result the user wants to see, and how: --sort, --top, --columns,
 * --wide.
 */
#ifndef TM_CLI_ROW_SELECTION_H
#define TM_CLI_ROW_SELECTION_H

#include "arguments.h"
#include "row_printer.h"

/* The rows of those options, for a command's list. */
#define TM_ROW_SELECTION_FLAGS                                                                                         \
  { "sort", 0, TM_FLAG_TEXT, false, "COLUMN",                                                                          \
    "sort rows: numbers from large to small, texts from a to z; -COLUMN the other way" },                              \
  { "top", 0, TM_FLAG_COUNT, false, "N", "print only the first N rows, after sorting" },                               \
  { "columns", 0, TM_FLAG_TEXT, false, "LIST", "columns of the table, separated by commas" },                          \
  { "wide", 0, TM_FLAG_SWITCH, false, NULL, "all columns, as wide as they need to be" },                               \
  { "csv", 0, TM_FLAG_SWITCH, false, NULL, "print comma-separated values, all columns" }

/* When a column is part of the table that a person gets without asking. */
typedef enum tm_shown {
  TM_SHOWN_ALWAYS,
  TM_SHOWN_IF_NONZERO,          /* some row has a count other than 0 */
  TM_SHOWN_IF_VARIED,           /* not all rows have the same text */
  TM_SHOWN_IF_WIDE
} tm_shown;

/* How a command wants a column of this name to look.  Columns without a row are shown if wide. */
typedef struct tm_column_style {
  const char *name;
  const char *heading;          /* NULL: the name */
  uint32_t    least_width;
  uint32_t    drop_rank;
  bool        is_alert;
  tm_shown    shown;
} tm_column_style;

typedef struct tm_row_selection {
  uint32_t    sort_column;      /* TM_NO_COLUMN: as they come */
  bool        is_reversed;
  bool        is_wide;
  bool        is_csv;
  bool        has_no_flags;     /* the command has none of TM_ROW_SELECTION_FLAGS: what has no room is in --json only */
  uint64_t    top;
  const char *columns;          /* NULL: the usual ones */
} tm_row_selection;

#define TM_NO_COLUMN UINT32_MAX
/* TM_NO_COLUMN if there is none of that name. */
uint32_t tm_column_find(const tm_column *columns, uint32_t count, const char *name);

/* TM_ERROR_ARGUMENT (unknown column, with a suggestion) */
tm_status tm_row_selection_parse(const tm_arguments *arguments, const tm_column *columns, uint32_t column_count,
                                 tm_row_selection *out_selection, tm_error *error);
/* Whether rows must all be there before the first can be printed. */
bool tm_row_selection_needs_all(const tm_row_selection *selection);
/* Sorts and cuts.  The caller frees *out_order when it is done with rows; it may be NULL.   TM_ERROR_NO_MEMORY */
tm_status tm_row_selection_apply(const tm_row_selection *selection, tm_rows *rows, uint64_t **out_order,
                                 tm_error *error);
/* Chooses the columns of a table and prints it; says which columns had no room. */
void tm_row_selection_print(const tm_row_selection *selection, const tm_rows *rows, const tm_column_style *styles,
                            uint32_t style_count, tm_table_look look, tm_output_stream *stream);

#endif
