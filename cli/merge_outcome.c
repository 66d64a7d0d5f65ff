/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "complain.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_selection.h"

static bool job_row(const void *source, uint64_t row, tm_cell *cells) {
  return tm_job_row((const tm_job *)source, row, cells) == TM_OK;
}

/* Where a job's row has what its change is told by. */
typedef struct change_places {
  uint32_t largest;
  uint32_t relative;
  uint32_t nonfinite;
  uint32_t loss;
} change_places;

static change_places find_places(const tm_rows *rows) {
  return (change_places){ tm_column_find(rows->columns, rows->column_count, "change_max"),
                          tm_column_find(rows->columns, rows->column_count, "change_rel"),
                          tm_column_find(rows->columns, rows->column_count, "nonfinite"),
                          tm_column_find(rows->columns, rows->column_count, "error_rel") };
}

typedef struct change {
  uint64_t row;
  double   relative;    /* infinite: of a tensor that was all zero, or into what is no number */
  double   largest;
} change;

typedef struct change_list {
  change  *items;       /* room for every row */
  uint64_t count;
  uint64_t unmeasured_count;    /* rows of which nobody knows whether they differ */
  bool     has_loss;    /* only results in blocks have an error of their own */
} change_list;

static void add_change(change_list *list, const change_places *places, uint64_t row, const tm_cell *cells) {
  const bool is_broken = cells[places->nonfinite].defined != 0 && cells[places->nonfinite].count != 0;
  list->has_loss = list->has_loss || cells[places->loss].defined != 0;
  if (cells[places->largest].defined == 0 && !is_broken) {
    list->unmeasured_count++;
    return;
  }
  const double largest = cells[places->largest].defined != 0 ? cells[places->largest].number : 0;
  if (!is_broken && !(largest > 0)) return;
  const bool is_relative = !is_broken && cells[places->relative].defined != 0;
  list->items[list->count++] = (change){ row, is_relative ? cells[places->relative].number : (double)INFINITY, largest };
}

static tm_status find_changes(const tm_rows *rows, change_list *out_list, tm_error *error) {
  tm_cell             cells[TM_MAX_COLUMNS];
  const change_places places = find_places(rows);
  *out_list = (change_list){ .items = calloc((size_t)rows->count + 1, sizeof(change)) };
  if (out_list->items == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory while sorting rows");
  for (uint64_t row = 0; row < rows->count && job_row(rows->source, row, cells); row++) add_change(out_list, &places, row, cells);
  return TM_OK;
}

static int compare_changes(const void *left, const void *right) {
  const change *a = left, *b = right;
  if (a->relative != b->relative) return a->relative > b->relative ? -1 : 1;
  if (a->largest != b->largest) return a->largest > b->largest ? -1 : 1;
  return a->row < b->row ? -1 : a->row > b->row;
}

#define ERROR_STYLE 6

static void print_rows(tm_rows *rows, const change_list *list, uint64_t *order, const tm_table_look *look,
                       tm_output_stream *stream) {
  tm_column_style styles[] = {
    { "name", NULL, 16, 0, false, TM_SHOWN_ALWAYS },       { "dtype", NULL, 0, 3, false, TM_SHOWN_ALWAYS },
    { "shape", NULL, 0, 4, false, TM_SHOWN_ALWAYS },       { "change_max", NULL, 0, 2, false, TM_SHOWN_ALWAYS },
    { "change_rel", NULL, 0, 0, false, TM_SHOWN_ALWAYS },  { "nonfinite", NULL, 0, 0, true, TM_SHOWN_IF_NONZERO },
    { "error_rel", NULL, 0, 1, false, TM_SHOWN_IF_WIDE } };
  const tm_row_selection selection = { .sort_column = TM_NO_COLUMN, .top = UINT64_MAX, .has_no_flags = true };
  if (list->has_loss) styles[ERROR_STYLE].shown = TM_SHOWN_ALWAYS;
  for (uint64_t i = 0; i < rows->count; i++) order[i] = list->items[i].row;
  rows->order = order;
  tm_row_selection_print(&selection, rows, styles, sizeof styles / sizeof styles[0], *look, stream);
}

static void print_unmeasured(uint64_t count, bool is_all, uint32_t width, tm_output_stream *stream) {
  char        text[160];
  tm_quantity number;
  if (count == 0) return;
  snprintf(text, sizeof text, "%s tensor%s %s made of the base or first model; how much %s from it is not measured",
           is_all ? "no" : tm_quantity_count(count, &number), is_all || count == 1 ? "" : "s",
           is_all ? "is" : count == 1 ? "is not" : "are not", count == 1 ? "it differs" : "they differ");
  tm_output_char(stream, '\n');
  tm_printable_wrap(stream, text, 0, width);
}

static tm_status print_changes(const tm_job *job, uint64_t top, const tm_table_look *look, tm_output_stream *stream,
                               tm_error *error) {
  uint32_t         column_count = 0;
  const tm_column *columns = tm_job_columns(job, &column_count);
  tm_rows          rows = { columns, column_count, job_row, job, tm_job_row_count(job), NULL };
  const uint64_t   row_count = rows.count;
  change_list      list;
  tm_status        status = find_changes(&rows, &list, error);
  if (status != TM_OK) return status;
  qsort(list.items, (size_t)list.count, sizeof *list.items, compare_changes);
  rows.count = list.count < top ? list.count : top;
  uint64_t *order = calloc((size_t)rows.count + 1, sizeof *order);
  if (order == NULL) status = tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory while sorting rows");
  else if (rows.count > 0) {
    tm_output_format(stream, "\nlargest changes%s:\n", rows.count == list.count ? " (all there are)" : "");
    print_rows(&rows, &list, order, look, stream);
  } else if (top > 0 && list.unmeasured_count < row_count) {
    tm_output_format(stream, "\nno %stensor differs from that of the base or first model\n",
                     list.unmeasured_count > 0 ? "other " : "");
  }
  if (status == TM_OK && top > 0) print_unmeasured(list.unmeasured_count, list.unmeasured_count == row_count, look->width, stream);
  free(order);
  free(list.items);
  return status;
}

static void print_files(const tm_merge_plan *plan, tm_output_stream *stream) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  tm_quantity bytes;
  tm_output_char(stream, '\n');
  for (uint64_t i = 0; tm_merge_plan_file(plan, i, &file) == TM_OK; i++) {
    tm_output_text(stream, "wrote ");
    tm_printable_print(stream, file.path);
    tm_output_format(stream, " (%s)\n", tm_quantity_bytes(file.bytes, &bytes));
  }
}

tm_status tm_merge_outcome_print(const tm_merge_plan *plan, const tm_job_report *report, uint64_t top, tm_table_look look,
                                 tm_output_stream *stream, tm_error *error) {
  if (report->status == TM_OK) {
    const tm_status status = print_changes(report->job, top, &look, stream, error);
    if (status != TM_OK) return status;
    print_files(plan, stream);
  }
  tm_job_report_print(report, true, look.width, stream);
  return TM_OK;
}
