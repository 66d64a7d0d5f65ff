/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "diff_table.h"
#include "layer_grid.h"
#include "layer_rows.h"
#include "printable_text.h"
#include "quantity.h"
#include "same_files.h"

static bool is_json(const tm_diff_report *report) { return report->invocation->preferences.json; }
static bool is_grouped(const tm_diff_report *report) { return report->wishes->by != TM_BY_TENSOR; }

/* The first of a list that is a column of tensors, though groups have none of that name. */
static const tm_column *find_ungrouped(const tm_diff_report *report, const tm_column *columns, uint32_t count, const char *list) {
  char name[64];
  for (; list != NULL && *list != '\0'; list += strspn(list, ",")) {
    const size_t length = strcspn(list, ",");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), list);
    const uint32_t found = tm_column_find(report->view.columns, report->view.column_count, name);
    if (found != TM_NO_COLUMN && tm_column_find(columns, count, name) == TM_NO_COLUMN) return &report->view.columns[found];
    list += length;
  }
  return NULL;
}

/* No likeness to a column that there is: the name is right, but the rows are others. */
static tm_status check_grouped(const tm_diff_report *report, const tm_column *columns, uint32_t count, tm_error *error) {
  const tm_arguments *arguments = &report->invocation->arguments;
  const char         *sort = tm_arguments_value(arguments, "sort");
  const tm_column    *found = find_ungrouped(report, columns, count, tm_arguments_value(arguments, "columns"));
  if (found == NULL && sort != NULL) found = find_ungrouped(report, columns, count, sort[0] == '-' ? sort + 1 : sort);
  if (found == NULL) return TM_OK;
  tm_refuse(error, TM_ERROR_ARGUMENT, "\"%s\" is a column of tensors; with --by there are", found->name);
  for (uint32_t i = 0; i < count; i++) {
    const size_t used = strlen(error->text);
    snprintf(error->text + used, sizeof error->text - used, "%s%s", i == 0 ? " " : ", ", columns[i].name);
  }
  return TM_ERROR_ARGUMENT;
}

tm_status tm_diff_report_init(tm_diff_report *report, tm_invocation *invocation, const tm_job *job,
                              tm_checkpoint *const *checkpoints, const tm_diff_wishes *wishes, tm_error *error) {
  *report = (tm_diff_report){ .invocation = invocation, .checkpoints = checkpoints, .wishes = wishes };
  tm_diff_view_init(&report->view, job, wishes->tolerance, wishes->is_exact);
  uint32_t         count = report->view.column_count;
  const tm_column *columns = is_grouped(report) ? tm_layer_columns(wishes->by, false, &count) : report->view.columns;
  const tm_status  status = is_grouped(report) ? check_grouped(report, columns, count, error) : TM_OK;
  if (status != TM_OK) return status;
  return tm_row_selection_parse(&invocation->arguments, columns, count, &report->selection, error);
}

/* ---------------------------------------------------------------------------------------------------- documents ---- */

static void print_checkpoint_json(tm_json_writer *json, const char *key, const tm_checkpoint *checkpoint) {
  tm_checkpoint_description about = { .struct_size = sizeof about };
  tm_checkpoint_describe(checkpoint, &about);
  tm_json_begin_object(json, key, true);
  tm_json_text(json, "path", about.path);
  tm_json_text(json, "format", about.format);
  tm_json_count(json, "files", about.file_count);
  tm_json_count(json, "tensors", about.tensor_count);
  tm_json_count(json, "tensor_bytes", about.tensor_bytes);
  tm_json_end_object(json);
}

/* Not before there is something to say: a job that finds nothing to do leaves no half of a document. */
static void begin_document(tm_diff_report *report) {
  static const char *const members[] = { [TM_BY_TENSOR] = "tensors", [TM_BY_LAYER] = "layers", [TM_BY_KIND] = "kinds" };
  if (report->has_begun) return;
  report->has_begun = true;
  if (is_json(report)) {
    tm_json_init(&report->json, report->invocation->output);
    tm_json_begin_object(&report->json, NULL, false);
    tm_json_text(&report->json, "schema", "tensormorph.diff/1");
    print_checkpoint_json(&report->json, "a", report->checkpoints[0]);
    print_checkpoint_json(&report->json, "b", report->checkpoints[1]);
    tm_json_bool(&report->json, "same_files", tm_same_files(report->checkpoints[0], report->checkpoints[1]));
    tm_json_begin_array(&report->json, members[report->wishes->by], false);
  } else if (report->selection.is_csv) {
    uint32_t         count = report->view.column_count;
    const tm_column *columns = is_grouped(report) ? tm_layer_columns(report->wishes->by, false, &count) : report->view.columns;
    tm_rows_print_csv_heading(columns, count, report->invocation->output);
  }
}

static void print_machine_row(tm_diff_report *report, const tm_column *columns, uint32_t count, const tm_cell *cells) {
  if (is_json(report))
    tm_row_print_json(columns, count, cells, 0, &report->json);
  else
    tm_row_print_csv(columns, count, cells, report->invocation->output);
}

bool tm_diff_report_prints_meanwhile(const tm_diff_report *report) {
  const tm_row_selection *selection = &report->selection;
  const bool is_sorted = tm_row_selection_needs_all(selection) || selection->top != UINT64_MAX;
  return (is_json(report) || selection->is_csv) && !is_grouped(report) && !is_sorted;
}

void tm_diff_report_print_finished(tm_diff_report *report) {
  const tm_diff_view *view = &report->view;
  tm_cell             cells[TM_MAX_COLUMNS];
  const uint64_t      finished = tm_job_row_count(view->job);
  if (!tm_diff_report_prints_meanwhile(report) || report->printed == finished) return;
  begin_document(report);
  for (; report->printed < finished && tm_job_row(view->job, report->printed, cells) == TM_OK; report->printed++)
    print_machine_row(report, view->columns, view->column_count, cells);
  tm_output_flush(report->invocation->output);
}

static tm_status print_sorted(tm_diff_report *report, tm_error *error) {
  const tm_diff_view *view = &report->view;
  tm_cell             cells[TM_MAX_COLUMNS];
  tm_diff_order       order;
  const tm_status     status = tm_diff_order_make(&order, view, tm_job_row_count(view->job), &report->selection, true, error);
  if (status != TM_OK) return status;
  for (uint64_t i = 0; i < order.count; i++)
    if (tm_job_row(view->job, order.rows[i], cells) == TM_OK) print_machine_row(report, view->columns, view->column_count, cells);
  tm_diff_order_deinit(&order);
  return TM_OK;
}

static tm_status print_groups(tm_diff_report *report, const tm_layer_groups *groups, tm_layer_key key, tm_error *error) {
  tm_layer_rows rows;
  tm_cell       cells[TM_MAX_COLUMNS];
  uint64_t     *order = NULL;
  tm_status     status = tm_layer_rows_init(&rows, groups, key, false, true, error);
  if (status != TM_OK) return status;
  tm_rows all = tm_layer_rows_all(&rows);
  if (key != TM_BY_TENSOR) status = tm_row_selection_apply(&report->selection, &all, &order, error);
  for (uint64_t i = 0; i < all.count && status == TM_OK; i++)
    if (all.row(all.source, order != NULL ? order[i] : i, cells)) print_machine_row(report, all.columns, all.column_count, cells);
  free(order);
  tm_layer_rows_deinit(&rows);
  return status;
}

static tm_status print_grouped(tm_diff_report *report, tm_error *error) {
  tm_layer_groups groups;
  tm_status       status = tm_layer_groups_make(&groups, &report->view, tm_job_row_count(report->view.job), error);
  if (status != TM_OK) return status;
  status = print_groups(report, &groups, report->wishes->by, error);
  if (status == TM_OK && is_json(report)) {
    tm_json_end_array(&report->json);
    tm_json_begin_array(&report->json, "cells", false);
    status = print_groups(report, &groups, TM_BY_TENSOR, error);
  }
  tm_layer_groups_deinit(&groups);
  return status;
}

static tm_status print_machine_rows(tm_diff_report *report, tm_error *error) {
  if (is_grouped(report)) return print_grouped(report, error);
  if (!tm_diff_report_prints_meanwhile(report)) return print_sorted(report, error);
  tm_diff_report_print_finished(report);
  return TM_OK;
}

static const char *verdict_word(const tm_diff_report *report, tm_status status) {
  if (status != TM_OK) return "trouble";
  return report->verdict.different_count != 0 ? "different" : "same";
}

static tm_status print_document(tm_diff_report *report, const tm_job_report *job_report, tm_error *error) {
  begin_document(report);
  const tm_status status = print_machine_rows(report, error);
  if (is_json(report)) {
    tm_json_end_array(&report->json);
    tm_diff_verdict_print_json(&report->verdict, &report->json);
    tm_json_text(&report->json, "verdict", verdict_word(report, job_report->status));
    tm_job_report_print_json(job_report, &report->json);
    tm_json_end_object(&report->json);
    tm_json_finish(&report->json);
  } else if (!report->invocation->preferences.quiet) {
    tm_job_report_complain_notes(job_report);
  }
  return status;
}

/* ------------------------------------------------------------------------------------------------------ for people ---- */

static void print_checkpoint(const tm_diff_report *report, const char *letter, const tm_checkpoint *checkpoint) {
  tm_checkpoint_description about = { .struct_size = sizeof about };
  tm_quantity               count, bytes;
  char                      text[4608];
  tm_checkpoint_describe(checkpoint, &about);
  snprintf(text, sizeof text, "%.4200s, %.160s, %s tensor%s, %s", about.path, about.format, tm_quantity_count(about.tensor_count, &count),
           about.tensor_count == 1 ? "" : "s", tm_quantity_bytes(about.tensor_bytes, &bytes));
  tm_printable_about(report->invocation->output, letter, text, report->invocation->terminal.width);
}

static void print_sameness(const tm_diff_report *report, tm_output_stream *stream) {
  tm_checkpoint_description about = { .struct_size = sizeof about };
  if (!tm_same_files(report->checkpoints[0], report->checkpoints[1])) return;
  tm_checkpoint_describe(report->checkpoints[0], &about);
  tm_output_format(stream, "A and B are the same file%s\n", about.file_count == 1 ? "" : "s");
}

static void print_rest(const tm_diff_report *report, const tm_diff_order *order, tm_output_stream *stream) {
  tm_quantity count;
  const bool  is_asked = report->selection.top != UINT64_MAX;
  if (order->left_out_count > 0)
    tm_output_format(stream, "and %s more%s\n", tm_quantity_count(order->left_out_count, &count),
                     is_asked ? "" : " that are on one side only; --all lists everything");
}

static tm_status print_tensor_table(const tm_diff_report *report, uint64_t row_count, tm_table_look look, tm_error *error) {
  tm_output_stream *stream = report->invocation->output;
  const bool        with_same = report->wishes->with_same;
  tm_diff_order     order;
  const tm_status   status = tm_diff_order_make(&order, &report->view, row_count, &report->selection, with_same, error);
  if (status != TM_OK) return status;
  if (order.count > 0) {
    tm_output_char(stream, '\n');
    tm_diff_table_print(&report->view, &order, &report->selection, look, stream);
    print_rest(report, &order, stream);
  }
  tm_diff_order_deinit(&order);
  return TM_OK;
}

static tm_status print_group_tables(const tm_diff_report *report, uint64_t row_count, tm_table_look look, tm_error *error) {
  tm_output_stream *stream = report->invocation->output;
  const bool        with_same = report->wishes->with_same;
  tm_layer_groups   groups;
  tm_layer_rows     rows;
  tm_status         status = tm_layer_groups_make(&groups, &report->view, row_count, error);
  if (status != TM_OK) return status;
  status = tm_layer_rows_init(&rows, &groups, report->wishes->by, true, with_same, error);
  if (status == TM_OK && rows.count > 0) {
    tm_output_char(stream, '\n');
    if (tm_layer_grid_print(&groups, with_same, look, stream)) tm_output_char(stream, '\n');
    tm_layer_rows_print(&rows, &report->selection, look, stream);
  }
  tm_layer_rows_deinit(&rows);
  tm_layer_groups_deinit(&groups);
  return status;
}

static tm_status print_text(tm_diff_report *report, const tm_job_report *job_report, uint64_t row_count, tm_error *error) {
  const tm_terminal  *terminal = &report->invocation->terminal;
  const tm_table_look look = { .width = terminal->width, .color = terminal->color };
  tm_output_stream   *stream = report->invocation->output;
  print_checkpoint(report, "A", report->checkpoints[0]);
  print_checkpoint(report, "B", report->checkpoints[1]);
  print_sameness(report, stream);
  if (job_report->status == TM_OK || report->verdict.different_count != 0)
    tm_diff_verdict_print(&report->verdict, terminal->color, terminal->width, stream);
  const tm_status status = is_grouped(report) ? print_group_tables(report, row_count, look, error)
                                              : print_tensor_table(report, row_count, look, error);
  tm_job_report_print(job_report, true, terminal->width, stream);
  return status;
}

tm_status tm_diff_report_print(tm_diff_report *report, const tm_job_report *job_report, tm_error *error) {
  const uint64_t row_count = tm_job_row_count(report->view.job);
  tm_diff_verdict_make(&report->verdict, &report->view, row_count);
  if (is_json(report) || report->selection.is_csv) return print_document(report, job_report, error);
  return print_text(report, job_report, row_count, error);
}
