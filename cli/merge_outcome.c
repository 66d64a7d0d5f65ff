/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  uint32_t unequal;
  uint32_t loss;
  uint32_t action;
  uint32_t models;
} change_places;

static change_places find_places(const tm_rows *rows) {
  return (change_places){ tm_column_find(rows->columns, rows->column_count, "change_max"),
                          tm_column_find(rows->columns, rows->column_count, "change_rel"),
                          tm_column_find(rows->columns, rows->column_count, "nonfinite"),
                          tm_column_find(rows->columns, rows->column_count, "unequal"),
                          tm_column_find(rows->columns, rows->column_count, "error_rel"),
                          tm_column_find(rows->columns, rows->column_count, "action"),
                          tm_column_find(rows->columns, rows->column_count, "models") };
}

typedef struct change {
  uint64_t row;
  double   relative;    /* infinite: of a tensor that was all zero, or into what is no number */
  double   largest;
} change;

/* Rows of which nobody knows whether they differ, since the checkpoint that they are compared with takes no part. */
typedef struct unmeasured_kind {
  const char *models;           /* the job's; NULL: of further ones */
  bool        is_copied;
  uint64_t    count;
} unmeasured_kind;

#define MOST_UNMEASURED 8

typedef struct change_list {
  change  *items;       /* room for every row */
  uint64_t count;
  unmeasured_kind unmeasured[MOST_UNMEASURED];
  uint32_t unmeasured_kind_count;
  uint64_t unmeasured_count;
  bool     has_loss;    /* only results in blocks have an error of their own */
  bool     has_bits;    /* some differ in what no distance tells of: NaN, infinities, the sign of 0 */
} change_list;

static void add_unmeasured(change_list *list, const tm_cell *action, const tm_cell *models) {
  const bool is_copied = strcmp(action->text, "copy") == 0;
  uint32_t   i = 0;
  list->unmeasured_count++;
  while (i < list->unmeasured_kind_count && (list->unmeasured[i].models == NULL || list->unmeasured[i].is_copied != is_copied ||
                                             strcmp(list->unmeasured[i].models, models->text) != 0)) i++;
  if (i == MOST_UNMEASURED) list->unmeasured[--i].models = NULL;
  else if (i == list->unmeasured_kind_count)
    list->unmeasured[list->unmeasured_kind_count++] = (unmeasured_kind){ models->text, is_copied, 0 };
  list->unmeasured[i].count++;
}

static void add_change(change_list *list, const change_places *places, uint64_t row, const tm_cell *cells) {
  const bool is_broken = cells[places->nonfinite].defined != 0 && cells[places->nonfinite].count != 0;
  list->has_loss = list->has_loss || cells[places->loss].defined != 0;
  if (cells[places->largest].defined == 0 && !is_broken) {
    add_unmeasured(list, &cells[places->action], &cells[places->models]);
    return;
  }
  const double largest = cells[places->largest].defined != 0 ? cells[places->largest].number : 0;
  const bool   are_bits = !is_broken && !(largest > 0);
  if (are_bits && cells[places->unequal].count == 0) return;
  list->has_bits = list->has_bits || are_bits;
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

#define BITS_STYLE 6
#define ERROR_STYLE 7

static void print_rows(tm_rows *rows, const change_list *list, uint64_t *order, const tm_table_look *look,
                       tm_output_stream *stream) {
  tm_column_style styles[] = {
    { "name", NULL, 16, 0, false, TM_SHOWN_ALWAYS },       { "dtype", NULL, 0, 3, false, TM_SHOWN_ALWAYS },
    { "shape", NULL, 0, 4, false, TM_SHOWN_ALWAYS },       { "change_max", NULL, 0, 2, false, TM_SHOWN_ALWAYS },
    { "change_rel", NULL, 0, 0, false, TM_SHOWN_ALWAYS },  { "nonfinite", NULL, 0, 0, true, TM_SHOWN_IF_NONZERO },
    { "unequal", NULL, 0, 5, false, TM_SHOWN_IF_WIDE },    { "error_rel", NULL, 0, 1, false, TM_SHOWN_IF_WIDE } };
  const tm_row_selection selection = { .sort_column = TM_NO_COLUMN, .top = UINT64_MAX, .has_no_flags = true };
  if (list->has_bits) styles[BITS_STYLE].shown = TM_SHOWN_ALWAYS;
  if (list->has_loss) styles[ERROR_STYLE].shown = TM_SHOWN_ALWAYS;
  for (uint64_t i = 0; i < rows->count; i++) order[i] = list->items[i].row;
  rows->order = order;
  tm_row_selection_print(&selection, rows, styles, sizeof styles / sizeof styles[0], *look, stream);
}

static void print_unmeasured(const change_list *list, uint32_t width, tm_output_stream *stream) {
  char        text[1024];
  tm_quantity number;
  if (list->unmeasured_count != 0) tm_output_char(stream, '\n');
  for (uint32_t i = 0; i < list->unmeasured_kind_count; i++) {
    const unmeasured_kind *kind = &list->unmeasured[i];
    const bool             is_one = kind->count == 1;
    const char            *how = kind->models == NULL ? "made of others" : kind->is_copied ? "copied from " : "made of ";
    snprintf(text, sizeof text, "%s tensor%s %s %s%.800s; how much %s from the base or first model is not measured",
             tm_quantity_count(kind->count, &number), is_one ? "" : "s", is_one ? "is" : "are", how,
             kind->models == NULL ? "" : kind->models, is_one ? "it differs" : "they differ");
    tm_printable_wrap(stream, text, 0, width);
  }
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
  if (status == TM_OK && top > 0) print_unmeasured(&list, look->width, stream);
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
