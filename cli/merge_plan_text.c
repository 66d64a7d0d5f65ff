/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_plan_text.h"

#include <stdlib.h>

#include "merge_groups.h"
#include "merge_words.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_selection.h"

static bool plan_row(const void *source, uint64_t row, tm_cell *cells) {
  return tm_merge_plan_row((const tm_merge_plan *)source, row, cells) == TM_OK;
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

uint64_t tm_merge_plan_loss_count(const tm_merge_plan *plan) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *path = NULL;
  uint64_t    count = 0;
  for (uint64_t i = 0; tm_merge_plan_file(plan, i, &file) == TM_OK; i++) count += file.replaces;
  for (uint64_t i = 0; tm_merge_plan_removal(plan, i, &path) == TM_OK; i++) count++;
  return count;
}

/* -------------------------------------------------------------------------------------------------- for people ---- */

static void print_head(const tm_merge_request *request, tm_output_stream *stream) {
  tm_output_format(stream, "%s of %u model%s%s into ", tm_merge_word_text(tm_merge_methods, request->method), request->model_count,
                   plural(request->model_count), request->base != NULL ? " and a base" : "");
  tm_printable_print(stream, request->output);
  tm_output_text(stream, "\n\n");
}

static void print_groups(const tm_merge_plan *plan, const tm_table_look *look, tm_output_stream *stream) {
  static const tm_column_view views[] = { { 0, 0, 0, false, NULL }, { 1, 0, 3, false, NULL },  { 2, 0, 0, false, NULL },
                                          { 3, 0, 0, false, NULL }, { 4, 12, 2, false, NULL }, { 5, 12, 0, false, NULL } };
  tm_merge_groups groups;
  tm_merge_groups_make(&groups, plan);
  const tm_rows rows = tm_merge_groups_rows(&groups);
  tm_rows_print_table(&rows, views, sizeof views / sizeof views[0], look, stream);
}

/* The caller frees the row numbers. */
static uint64_t *find_mismatches(const tm_merge_plan *plan, const tm_column *columns, uint32_t column_count, uint64_t *out_count) {
  tm_cell        cells[TM_MAX_COLUMNS];
  const uint64_t row_count = tm_merge_plan_row_count(plan);
  const uint32_t mismatch = tm_column_find(columns, column_count, "mismatch");
  uint64_t      *order = calloc(row_count + 1, sizeof *order);
  *out_count = 0;
  for (uint64_t row = 0; order != NULL && plan_row(plan, row, cells); row++)
    if (cells[mismatch].defined != 0 && cells[mismatch].count != 0) order[(*out_count)++] = row;
  return order;
}

static void print_mismatches(const tm_merge_plan *plan, const tm_table_look *look, tm_output_stream *stream) {
  uint32_t         column_count = 0;
  const tm_column *columns = tm_merge_plan_columns(plan, &column_count);
  tm_rows          rows = { columns, column_count, plan_row, plan, 0, NULL };
  uint64_t        *order = find_mismatches(plan, columns, column_count, &rows.count);
  const tm_column_view views[] = { { tm_column_find(columns, column_count, "name"), 16, 0, false, NULL },
                                   { tm_column_find(columns, column_count, "mismatch"), 0, 1, false, NULL },
                                   { tm_column_find(columns, column_count, "action"), 0, 0, false, NULL },
                                   { tm_column_find(columns, column_count, "message"), 30, 0, false, NULL } };
  rows.order = order;
  if (order == NULL) tm_output_text(stream, "\nno memory for the table of what does not match\n");
  if (rows.count > 0) {
    tm_output_text(stream, "\nwhat does not match:\n");
    tm_rows_print_table(&rows, views, sizeof views / sizeof views[0], look, stream);
  }
  free(order);
}

static void print_sizes(const tm_merge_description *plan, tm_output_stream *stream) {
  tm_quantity a, b, c, d;
  tm_output_format(stream, "\n%s tensor%s: %s merged, %s copied", tm_quantity_count(plan->tensor_count, &a), plural(plan->tensor_count),
                   tm_quantity_count(plan->merged_count, &b), tm_quantity_count(plan->copied_count, &c));
  if (plan->skipped_count > 0) tm_output_format(stream, "; %s left out", tm_quantity_count(plan->skipped_count, &d));
  if (plan->refused_count > 0) tm_output_format(stream, "; %s refused", tm_quantity_count(plan->refused_count, &d));
  tm_output_format(stream, "\nreads %s, writes %s", tm_quantity_bytes(plan->read_bytes, &a), tm_quantity_bytes(plan->written_bytes, &b));
  if (plan->file_count > 1) tm_output_format(stream, " in %u files", plan->file_count);
  if (plan->free_bytes != UINT64_MAX) tm_output_format(stream, " (%s of disk free)", tm_quantity_bytes(plan->free_bytes, &c));
  tm_output_format(stream, ", takes about %s of memory\n", tm_quantity_bytes(plan->memory_bytes, &d));
}

static void print_losses(const tm_merge_plan *plan, tm_output_stream *stream) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *path = NULL;
  for (uint64_t i = 0; tm_merge_plan_file(plan, i, &file) == TM_OK; i++) {
    if (file.replaces == 0) continue;
    tm_output_text(stream, "replaces ");
    tm_printable_print(stream, file.path);
    tm_output_char(stream, '\n');
  }
  for (uint64_t i = 0; tm_merge_plan_removal(plan, i, &path) == TM_OK; i++) {
    tm_output_text(stream, "removes ");
    tm_printable_print(stream, path);
    tm_output_char(stream, '\n');
  }
}

void tm_merge_plan_print(const tm_merge_plan *plan, const tm_merge_request *request, tm_table_look look, tm_output_stream *stream) {
  tm_merge_description description = { .struct_size = sizeof description };
  const char *note = NULL;
  tm_merge_plan_describe(plan, &description);
  print_head(request, stream);
  print_groups(plan, &look, stream);
  print_mismatches(plan, &look, stream);
  print_sizes(&description, stream);
  print_losses(plan, stream);
  for (uint64_t i = 0; tm_merge_plan_note(plan, i, &note) == TM_OK; i++) tm_printable_about(stream, "note", note, look.width);
}

/* ------------------------------------------------------------------------------------------------ for programs ---- */

static void print_counts_json(const tm_merge_description *plan, tm_json_writer *json) {
  tm_json_count(json, "tensors", plan->tensor_count);
  tm_json_count(json, "merged", plan->merged_count);
  tm_json_count(json, "copied", plan->copied_count);
  tm_json_count(json, "skipped", plan->skipped_count);
  tm_json_count(json, "mismatches", plan->mismatch_count);
  tm_json_count(json, "refused", plan->refused_count);
  tm_json_count(json, "read_bytes", plan->read_bytes);
  tm_json_count(json, "written_bytes", plan->written_bytes);
  tm_json_count(json, "file_bytes", plan->file_bytes);
  if (plan->free_bytes == UINT64_MAX)
    tm_json_null(json, "free_bytes");
  else
    tm_json_count(json, "free_bytes", plan->free_bytes);
  tm_json_count(json, "memory_bytes", plan->memory_bytes);
}

static void print_files_json(const tm_merge_plan *plan, tm_json_writer *json) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *path = NULL;
  tm_json_begin_array(json, "files", false);
  for (uint64_t i = 0; tm_merge_plan_file(plan, i, &file) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "path", file.path);
    tm_json_count(json, "bytes", file.bytes);
    tm_json_bool(json, "replaces", file.replaces != 0);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
  tm_json_begin_array(json, "removes", false);
  for (uint64_t i = 0; tm_merge_plan_removal(plan, i, &path) == TM_OK; i++) tm_json_text(json, NULL, path);
  tm_json_end_array(json);
}

static void print_sentences_json(const tm_merge_plan *plan, tm_json_writer *json) {
  const char *text = NULL;
  tm_json_begin_array(json, "problems", false);
  for (uint64_t i = 0; tm_merge_plan_problem(plan, i, &text) == TM_OK; i++) tm_json_text(json, NULL, text);
  tm_json_end_array(json);
  tm_json_begin_array(json, "notes", false);
  for (uint64_t i = 0; tm_merge_plan_note(plan, i, &text) == TM_OK; i++) tm_json_text(json, NULL, text);
  tm_json_end_array(json);
}

void tm_merge_plan_print_json(const tm_merge_plan *plan, tm_json_writer *json) {
  tm_merge_description description = { .struct_size = sizeof description };
  tm_cell          cells[TM_MAX_COLUMNS];
  uint32_t         count = 0;
  const tm_column *columns = tm_merge_plan_columns(plan, &count);
  tm_merge_plan_describe(plan, &description);
  tm_json_begin_object(json, "plan", false);
  print_counts_json(&description, json);
  print_files_json(plan, json);
  print_sentences_json(plan, json);
  tm_json_begin_array(json, "rows", false);
  for (uint64_t row = 0; plan_row(plan, row, cells); row++) tm_row_print_json(columns, count, cells, 0, json);
  tm_json_end_array(json);
  tm_json_end_object(json);
}
