/* SPDX-License-Identifier: Apache-2.0 */
#include "row_selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "nearest_name.h"
#include "printable_text.h"
#include "row_order.h"

static uint32_t find_column(const tm_column *columns, uint32_t count, const char *name, size_t length) {
  for (uint32_t i = 0; i < count; i++)
    if (strncmp(columns[i].name, name, length) == 0 && columns[i].name[length] == '\0') return i;
  return TM_NO_COLUMN;
}

uint32_t tm_column_find(const tm_column *columns, uint32_t count, const char *name) {
  return find_column(columns, count, name, strlen(name));
}

static tm_status refuse_column(const tm_column *columns, uint32_t count, const char *name, size_t length,
                               tm_error *error) {
  char            wanted[64];
  const size_t    kept = length < sizeof wanted - 1 ? length : sizeof wanted - 1;
  tm_nearest_name nearest;
  memcpy(wanted, name, kept);
  wanted[kept] = '\0';
  tm_nearest_name_init(&nearest, wanted);
  for (uint32_t i = 0; i < count; i++) tm_nearest_name_offer(&nearest, columns[i].name);
  if (nearest.best != NULL)
    return tm_refuse(error, TM_ERROR_ARGUMENT, "unknown column \"%s\"; did you mean \"%s\"?", wanted, nearest.best);
  tm_refuse(error, TM_ERROR_ARGUMENT, "unknown column \"%s\"; there are", wanted);
  for (uint32_t i = 0; i < count; i++) {
    const size_t used = strlen(error->text);
    if (used + strlen(columns[i].name) + 3 > sizeof error->text) break;
    strcat(strcat(error->text, i == 0 ? " " : ", "), columns[i].name);
  }
  return TM_ERROR_ARGUMENT;
}

static tm_status check_list(const tm_column *columns, uint32_t count, const char *list, tm_error *error) {
  while (*list != '\0') {
    const size_t length = strcspn(list, ",");
    if (find_column(columns, count, list, length) == TM_NO_COLUMN)
      return refuse_column(columns, count, list, length, error);
    list += length;
    if (*list == ',') list++;
  }
  return TM_OK;
}

tm_status tm_row_selection_parse(const tm_arguments *arguments, const tm_column *columns, uint32_t column_count,
                                 tm_row_selection *out_selection, tm_error *error) {
  const char *sort = tm_arguments_value(arguments, "sort");
  memset(out_selection, 0, sizeof *out_selection);
  out_selection->sort_column = TM_NO_COLUMN;
  out_selection->top = tm_arguments_count(arguments, "top", UINT64_MAX);
  out_selection->columns = tm_arguments_value(arguments, "columns");
  out_selection->is_wide = tm_arguments_has(arguments, "wide");
  out_selection->is_csv = tm_arguments_has(arguments, "csv");
  if (out_selection->is_csv && tm_arguments_has(arguments, "json"))
    return tm_refuse(error, TM_ERROR_ARGUMENT, "--csv and --json are two forms of the same table; give one of them");
  if (sort != NULL) {
    out_selection->is_reversed = sort[0] == '-';
    if (sort[0] == '-') sort++;
    out_selection->sort_column = find_column(columns, column_count, sort, strlen(sort));
    if (out_selection->sort_column == TM_NO_COLUMN)
      return refuse_column(columns, column_count, sort, strlen(sort), error);
  }
  return out_selection->columns != NULL ? check_list(columns, column_count, out_selection->columns, error) : TM_OK;
}

bool tm_row_selection_needs_all(const tm_row_selection *selection) { return selection->sort_column != TM_NO_COLUMN; }

tm_status tm_row_selection_apply(const tm_row_selection *selection, tm_rows *rows, uint64_t **out_order,
                                 tm_error *error) {
  *out_order = NULL;
  if (selection->sort_column != TM_NO_COLUMN) {
    *out_order = tm_row_order_create(rows, selection->sort_column, selection->is_reversed);
    if (*out_order == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory while sorting rows");
    rows->order = *out_order;
  }
  if (selection->top < rows->count) rows->count = selection->top;
  return TM_OK;
}

static const tm_column_style *find_style(const tm_column_style *styles, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(styles[i].name, name) == 0) return &styles[i];
  return NULL;
}

static tm_column_view make_view(const tm_rows *rows, uint32_t column, const tm_column_style *style) {
  tm_column_view view = { .column = column };
  if (style != NULL) {
    view.least_width = style->least_width;
    view.drop_rank = style->drop_rank;
    view.is_alert = style->is_alert;
    view.heading = style->heading;
  } else if (rows->columns[column].type == TM_COLUMN_TEXT) {
    view.least_width = 12;
  }
  return view;
}

static bool same_text(const tm_cell *a, const tm_cell *b) {
  return a->defined == b->defined && a->count == b->count &&
         (a->count == 0 || memcmp(a->text, b->text, (size_t)a->count) == 0);
}

/* Looks through all rows for what makes a conditional column worth its room; the result is a mask by column. */
static uint32_t find_interesting(const tm_rows *rows) {
  tm_cell  first[TM_MAX_COLUMNS], cells[TM_MAX_COLUMNS];
  uint32_t mask = 0;
  for (uint64_t row = 0; row < rows->count; row++) {
    if (!rows->row(rows->source, rows->order != NULL ? rows->order[row] : row, cells)) break;
    if (row == 0) memcpy(first, cells, sizeof first);
    for (uint32_t i = 0; i < rows->column_count; i++) {
      const bool text = cells[i].type == TM_COLUMN_TEXT;
      if (text ? !same_text(&cells[i], &first[i]) : cells[i].defined && cells[i].count != 0) mask |= 1u << i;
    }
  }
  return mask;
}

static bool is_conditional(tm_shown shown) { return shown == TM_SHOWN_IF_NONZERO || shown == TM_SHOWN_IF_VARIED; }

static bool has_conditional(const tm_column_style *styles, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (is_conditional(styles[i].shown)) return true;
  return false;
}

/* What rows are sorted by is shown, or their order would look like none. */
static uint32_t choose_usual(const tm_rows *rows, const tm_row_selection *selection, const tm_column_style *styles,
                             uint32_t style_count, tm_column_view *views) {
  const uint32_t interesting = has_conditional(styles, style_count) ? find_interesting(rows) : 0;
  uint32_t       count = 0;
  for (uint32_t i = 0; i < rows->column_count; i++) {
    const tm_column_style *style = find_style(styles, style_count, rows->columns[i].name);
    const tm_shown shown = style != NULL ? style->shown : TM_SHOWN_IF_WIDE;
    const bool     conditional = is_conditional(shown);
    const bool     is_sorted_by = i == selection->sort_column;
    if (!is_sorted_by && !selection->is_wide && shown != TM_SHOWN_ALWAYS &&
        !(conditional && (interesting >> i & 1u) != 0)) continue;
    views[count++] = make_view(rows, i, style);
    if (is_sorted_by) views[count - 1].drop_rank = 0;
  }
  return count;
}

static uint32_t choose_listed(const tm_rows *rows, const char *list, const tm_column_style *styles,
                              uint32_t style_count, tm_column_view *views) {
  uint32_t count = 0;
  while (*list != '\0' && count < TM_MAX_COLUMNS) {
    const size_t   length = strcspn(list, ",");
    const uint32_t column = find_column(rows->columns, rows->column_count, list, length);
    if (column != TM_NO_COLUMN)
      views[count++] = make_view(rows, column, find_style(styles, style_count, rows->columns[column].name));
    list += length;
    if (*list == ',') list++;
  }
  return count;
}

void tm_row_selection_print(const tm_row_selection *selection, const tm_rows *rows, const tm_column_style *styles,
                            uint32_t style_count, tm_table_look look, tm_output_stream *stream) {
  tm_column_view views[TM_MAX_COLUMNS];
  uint32_t       count = 0;
  if (selection->columns != NULL)
    count = choose_listed(rows, selection->columns, styles, style_count, views);
  else
    count = choose_usual(rows, selection, styles, style_count, views);
  if (selection->is_wide) look.width = 0;
  /* Columns that were asked for by name are never left out. */
  for (uint32_t i = 0; selection->columns != NULL && i < count; i++) views[i].drop_rank = 0;
  look.all_in = selection->has_no_flags ? "--json shows" : "--wide, --columns, --csv and --json show";
  tm_rows_print_table(rows, views, count, &look, stream);
}
