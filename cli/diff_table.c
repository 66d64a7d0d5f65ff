/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_table.h"

#include <stdio.h>
#include <string.h>

#include "printable_text.h"

/* Longest text of both sides together. */
#define PAIR_BYTES 512

/* Texts of the row that was asked for last. */
typedef struct pair_texts {
  char dtype[PAIR_BYTES];
  char shape[PAIR_BYTES];
} pair_texts;

typedef struct diff_table {
  const tm_diff_view *view;
  bool                has_other_names;  /* in a column of their own */
  tm_column           columns[TM_MAX_COLUMNS];
  pair_texts         *texts;
} diff_table;

static size_t side_text(const tm_cell *cell, char *out, size_t capacity) {
  if (cell->type == TM_COLUMN_SHAPE) return tm_cell_shape_text(cell, out, capacity);
  return (size_t)snprintf(out, capacity, "%.*s", (int)(cell->count < 64 ? cell->count : 64), cell->text);
}

static bool is_equal_side(const tm_cell *a, const tm_cell *b) {
  if (a->type != b->type || a->count != b->count) return false;
  if (a->count == 0) return true;
  return a->type == TM_COLUMN_SHAPE ? memcmp(a->shape, b->shape, (size_t)a->count * sizeof a->shape[0]) == 0
                                    : memcmp(a->text, b->text, (size_t)a->count) == 0;
}

/* "a -> b", or one of them where they are equal or the other is not there. */
static tm_cell join_sides(const tm_cell *a, const tm_cell *b, char *out) {
  if (!a->defined && !b->defined) return tm_cell_undefined(TM_COLUMN_TEXT);
  size_t used = side_text(a->defined ? a : b, out, PAIR_BYTES / 2 - 8);
  if (!a->defined || !b->defined || is_equal_side(a, b)) return tm_cell_text_of(out, used);
  used += (size_t)snprintf(out + used, PAIR_BYTES - used, " -> ");
  return tm_cell_text_of(out, used + side_text(b, out + used, PAIR_BYTES / 2 - 8));
}

static void put_cell(const diff_table *table, tm_cell *cells, tm_diff_field field, tm_cell cell) {
  const uint32_t column = table->view->column[field];
  if (column != TM_NO_COLUMN) cells[column] = cell;
}

static bool table_row(const void *source, uint64_t row, tm_cell *cells) {
  const diff_table   *table = source;
  const tm_diff_view *view = table->view;
  tm_cell             own[TM_MAX_COLUMNS];
  if (tm_job_row(view->job, row, own) != TM_OK) return false;
  memcpy(cells, own, view->column_count * sizeof own[0]);
  const tm_cell name = tm_diff_view_cell(view, own, TM_FIELD_NAME), other = tm_diff_view_cell(view, own, TM_FIELD_OTHER_NAME);
  const tm_cell dtype = tm_diff_view_cell(view, own, TM_FIELD_DTYPE);
  const tm_cell shape = tm_diff_view_cell(view, own, TM_FIELD_SHAPE);
  const tm_cell other_dtype = tm_diff_view_cell(view, own, TM_FIELD_OTHER_DTYPE);
  const tm_cell other_shape = tm_diff_view_cell(view, own, TM_FIELD_OTHER_SHAPE);
  const tm_cell changed = tm_diff_view_cell(view, own, TM_FIELD_CHANGED);
  if (!table->has_other_names && !name.defined) put_cell(table, cells, TM_FIELD_NAME, other);
  if (!table->has_other_names || is_equal_side(&name, &other))
    put_cell(table, cells, TM_FIELD_OTHER_NAME, tm_cell_undefined(TM_COLUMN_TEXT));
  put_cell(table, cells, TM_FIELD_DTYPE, join_sides(&dtype, &other_dtype, table->texts->dtype));
  put_cell(table, cells, TM_FIELD_SHAPE, join_sides(&shape, &other_shape, table->texts->shape));
  put_cell(table, cells, TM_FIELD_CHANGED, changed.defined ? tm_cell_share(changed.number) : tm_cell_undefined(TM_CELL_SHARE));
  return true;
}

static const char *paint_row(const void *source, const tm_cell *cells) {
  const diff_table *table = source;
  switch (tm_diff_view_word(table->view, cells)) {
    case TM_WORD_REMOVED: return "\x1b[31m";
    case TM_WORD_ADDED: return "\x1b[32m";
    case TM_WORD_UNEXAMINED: return "\x1b[35m";
    default: return NULL;
  }
}

typedef struct table_traits {
  bool has_other_names;         /* names of B are worth their room only where there is one that differs */
  bool has_other_dtypes;
  bool has_shares;              /* likewise figures: what is on one side only has none */
  bool has_figures;
} table_traits;

static table_traits traits_of(const tm_diff_view *view, const tm_diff_order *order) {
  table_traits traits = { .has_shares = false };
  tm_cell      cells[TM_MAX_COLUMNS];
  for (uint64_t i = 0; i < order->count; i++) {
    if (tm_job_row(view->job, order->rows[i], cells) != TM_OK) continue;
    const tm_cell name = tm_diff_view_cell(view, cells, TM_FIELD_NAME), other = tm_diff_view_cell(view, cells, TM_FIELD_OTHER_NAME);
    const tm_cell dtype = tm_diff_view_cell(view, cells, TM_FIELD_DTYPE);
    const tm_cell other_dtype = tm_diff_view_cell(view, cells, TM_FIELD_OTHER_DTYPE);
    traits.has_shares = traits.has_shares || tm_diff_view_cell(view, cells, TM_FIELD_CHANGED).defined;
    traits.has_figures = traits.has_figures || tm_diff_view_cell(view, cells, TM_FIELD_MAX_ABS).defined;
    if (!name.defined || !other.defined) continue;
    traits.has_other_names = traits.has_other_names || !is_equal_side(&name, &other);
    traits.has_other_dtypes = traits.has_other_dtypes || !is_equal_side(&dtype, &other_dtype);
  }
  return traits;
}

/* Names differ in their middle ("layers.3"), which shortening takes first: they get much of the width before figures do. */
static uint32_t least_name_width(uint32_t width, bool has_other_names) {
  const uint32_t share = has_other_names ? width * 2 / 7 : width / 2;
  return share > 16 ? share : 16;
}

void tm_diff_table_print(const tm_diff_view *view, const tm_diff_order *order, const tm_row_selection *selection,
                         tm_table_look look, tm_output_stream *stream) {
  pair_texts         texts;
  const table_traits traits = traits_of(view, order);
  diff_table         table = { .view = view, .has_other_names = traits.has_other_names, .texts = &texts };
  memcpy(table.columns, view->columns, view->column_count * sizeof table.columns[0]);
  if (view->column[TM_FIELD_SHAPE] != TM_NO_COLUMN) table.columns[view->column[TM_FIELD_SHAPE]].type = TM_COLUMN_TEXT;
  if (view->column[TM_FIELD_CHANGED] != TM_NO_COLUMN) table.columns[view->column[TM_FIELD_CHANGED]].type = TM_CELL_SHARE;
  const tm_rows      rows = { table.columns, view->column_count, table_row, &table, order->count, order->rows };
  const tm_shown     share = traits.has_shares ? TM_SHOWN_ALWAYS : TM_SHOWN_IF_WIDE;
  const tm_shown     figure = traits.has_figures ? TM_SHOWN_ALWAYS : TM_SHOWN_IF_WIDE;
  const uint32_t     name_width = least_name_width(look.width, traits.has_other_names);
  const tm_column_style styles[] = {
    { "verdict", NULL, 0, 0, false, TM_SHOWN_ALWAYS },
    { "name", NULL, name_width, 0, false, TM_SHOWN_ALWAYS },
    { "other_name", "name in B", name_width, 0, false, traits.has_other_names ? TM_SHOWN_ALWAYS : TM_SHOWN_IF_WIDE },
    { "dtype", NULL, 0, traits.has_other_dtypes ? 3 : 6, false, TM_SHOWN_ALWAYS },
    { "shape", NULL, 0, 5, false, TM_SHOWN_ALWAYS },
    { "nonfinite", NULL, 0, 0, true, TM_SHOWN_IF_NONZERO },
    { "changed", NULL, 0, 2, false, share },
    { "max_abs", NULL, 0, 4, false, figure },
    { "rel_l2", NULL, 0, 1, false, figure },
    { "cosine", NULL, 0, 7, false, figure } };
  look.paint = paint_row;
  tm_row_selection_print(selection, &rows, styles, sizeof styles / sizeof styles[0], look, stream);
}
