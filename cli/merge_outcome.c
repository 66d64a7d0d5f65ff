/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_outcome.h"

#include <stdlib.h>

#include "printable_text.h"
#include "quantity.h"
#include "row_order.h"
#include "row_selection.h"

static bool job_row(const void *source, uint64_t row, tm_cell *cells) {
  return tm_job_row((const tm_job *)source, row, cells) == TM_OK;
}

/* Sorted rows end where nothing was computed, or nothing changed. */
static uint64_t count_changed(const tm_rows *rows, uint32_t column, uint64_t top) {
  tm_cell  cells[TM_MAX_COLUMNS];
  uint64_t count = 0;
  while (count < top && count < rows->count && job_row(rows->source, rows->order[count], cells) && cells[column].defined != 0 &&
         cells[column].number > 0)
    count++;
  return count;
}

/* Only results in blocks have an error of their own. */
static bool has_any(const tm_rows *rows, uint32_t column) {
  tm_cell cells[TM_MAX_COLUMNS];
  for (uint64_t i = 0; i < rows->count && job_row(rows->source, rows->order[i], cells); i++)
    if (cells[column].defined != 0) return true;
  return false;
}

#define ERROR_STYLE 5

static tm_status print_changes(const tm_job *job, uint64_t top, const tm_table_look *look, tm_output_stream *stream,
                               tm_error *error) {
  tm_column_style styles[] = {
    { "name", NULL, 16, 0, false, TM_SHOWN_ALWAYS },       { "dtype", NULL, 0, 3, false, TM_SHOWN_ALWAYS },
    { "shape", NULL, 0, 4, false, TM_SHOWN_ALWAYS },       { "change_max", NULL, 0, 2, false, TM_SHOWN_ALWAYS },
    { "change_rel", NULL, 0, 0, false, TM_SHOWN_ALWAYS },  { "error_rel", NULL, 0, 1, false, TM_SHOWN_IF_WIDE } };
  uint32_t         column_count = 0;
  const tm_column *columns = tm_job_columns(job, &column_count);
  tm_row_selection selection = { .sort_column = tm_column_find(columns, column_count, "change_rel"), .top = UINT64_MAX };
  tm_rows          rows = { columns, column_count, job_row, job, tm_job_row_count(job), NULL };
  uint64_t        *order = NULL;
  const tm_status  status = tm_row_selection_apply(&selection, &rows, &order, error);
  if (status != TM_OK) return status;
  rows.count = count_changed(&rows, selection.sort_column, top);
  if (has_any(&rows, tm_column_find(columns, column_count, "error_rel"))) styles[ERROR_STYLE].shown = TM_SHOWN_ALWAYS;
  if (rows.count > 0) {
    tm_output_format(stream, "\nlargest changes%s:\n", rows.count == top ? "" : " (all there are)");
    tm_row_selection_print(&selection, &rows, styles, sizeof styles / sizeof styles[0], *look, stream);
  } else if (top > 0) {
    tm_output_text(stream, "\nno tensor differs from that of the base or first model\n");
  }
  free(order);
  return TM_OK;
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
