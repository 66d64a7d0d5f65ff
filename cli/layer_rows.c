/* SPDX-License-Identifier: Apache-2.0 */
#include "layer_rows.h"

#include <stdlib.h>

#include "complain.h"
#include "layer_name.h"

#define LAYER { "layer", TM_COLUMN_COUNT, 0, "number of the layer" }
#define KIND { "kind", TM_COLUMN_TEXT, 0, "the name with a star for each number" }
#define FIGURES(share)                                                                                                            \
  { "tensors", TM_COLUMN_COUNT, 0, "of the group" }, { "same", TM_COLUMN_COUNT, 0, "of them, without a difference" },            \
  { "differing", TM_COLUMN_COUNT, 0, "pairs that differ" }, { "removed", TM_COLUMN_COUNT, 0, "tensors that are in A only" },     \
  { "added", TM_COLUMN_COUNT, 0, "tensors that are in B only" },                                                                 \
  { "changed", share, 0, "share of the elements of pairs that are not equal" },                                                  \
  { "max_abs", TM_COLUMN_NUMBER, 0, "largest difference" }, { "rel_l2", TM_COLUMN_NUMBER, 0, "distance / norm of all pairs" }

static const tm_column layer_columns[] = { LAYER, FIGURES(TM_COLUMN_NUMBER) };
static const tm_column kind_columns[] = { KIND, FIGURES(TM_COLUMN_NUMBER) };
static const tm_column cell_columns[] = { LAYER, KIND, FIGURES(TM_COLUMN_NUMBER) };
static const tm_column layer_table[] = { LAYER, FIGURES(TM_CELL_SHARE) };
static const tm_column kind_table[] = { KIND, FIGURES(TM_CELL_SHARE) };

const tm_column *tm_layer_columns(tm_layer_key key, bool is_table, uint32_t *out_count) {
  *out_count = sizeof layer_columns / sizeof layer_columns[0];
  if (key == TM_BY_LAYER) return is_table ? layer_table : layer_columns;
  if (key == TM_BY_KIND) return is_table ? kind_table : kind_columns;
  *out_count = sizeof cell_columns / sizeof cell_columns[0];
  return cell_columns;
}

static const tm_layer_figures *figures_at(const tm_layer_rows *rows, size_t index) {
  if (rows->key == TM_BY_LAYER) return &rows->groups->layers[index].figures;
  if (rows->key == TM_BY_KIND) return &rows->groups->kinds[index].figures;
  return &rows->groups->cells[index].figures;
}

static size_t group_count(const tm_layer_groups *groups, tm_layer_key key) {
  if (key == TM_BY_LAYER) return groups->layer_count;
  return key == TM_BY_KIND ? groups->kind_count : groups->cell_count;
}

bool tm_layer_figures_differ(const tm_layer_figures *figures) { return figures->same_count != figures->tensor_count; }

tm_status tm_layer_rows_init(tm_layer_rows *rows, const tm_layer_groups *groups, tm_layer_key key, bool is_table, bool with_same,
                             tm_error *error) {
  const size_t count = group_count(groups, key);
  *rows = (tm_layer_rows){ groups, key, is_table, calloc(count > 0 ? count : 1, sizeof *rows->kept), 0 };
  if (rows->kept == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory while grouping rows");
  for (size_t i = 0; i < count; i++)
    if (with_same || tm_layer_figures_differ(figures_at(rows, i))) rows->kept[rows->count++] = i;
  return TM_OK;
}

void tm_layer_rows_deinit(tm_layer_rows *rows) {
  free(rows->kept);
  rows->kept = NULL;
}

static tm_cell layer_cell(const tm_layer_groups *groups, size_t layer) {
  const uint64_t number = groups->layers[layer].number;
  return number == TM_NO_LAYER ? tm_cell_undefined(TM_COLUMN_COUNT) : tm_cell_count(number);
}

static tm_cell kind_cell(const tm_layer_groups *groups, size_t kind) {
  return tm_cell_text_of(groups->kinds[kind].text, groups->kinds[kind].length);
}

static bool group_row(const void *source, uint64_t row, tm_cell *cells) {
  const tm_layer_rows *rows = source;
  if (row >= rows->count) return false;
  const size_t            index = rows->kept[row];
  const tm_layer_figures *figures = figures_at(rows, index);
  if (rows->key == TM_BY_LAYER) *cells++ = layer_cell(rows->groups, index);
  if (rows->key == TM_BY_TENSOR) *cells++ = layer_cell(rows->groups, rows->groups->cells[index].layer);
  if (rows->key == TM_BY_TENSOR) *cells++ = kind_cell(rows->groups, rows->groups->cells[index].kind);
  if (rows->key == TM_BY_KIND) *cells++ = kind_cell(rows->groups, index);
  const tm_cell changed = tm_layer_figures_changed(figures);
  *cells++ = tm_cell_count(figures->tensor_count);
  *cells++ = tm_cell_count(figures->same_count);
  *cells++ = tm_cell_count(figures->differing_count);
  *cells++ = tm_cell_count(figures->removed_count);
  *cells++ = tm_cell_count(figures->added_count);
  *cells++ = changed.defined && rows->is_table ? tm_cell_share(changed.number) : changed;
  *cells++ = figures->has_values ? tm_cell_number(figures->max_abs) : tm_cell_undefined(TM_COLUMN_NUMBER);
  *cells = tm_layer_figures_rel_l2(figures);
  return true;
}

tm_rows tm_layer_rows_all(const tm_layer_rows *rows) {
  tm_rows all = { .row = group_row, .source = rows, .count = rows->count };
  all.columns = tm_layer_columns(rows->key, rows->is_table, &all.column_count);
  return all;
}

/* Without any their distance is nothing to look at. */
static bool has_differing_pairs(const tm_layer_rows *rows) {
  size_t i = 0;
  while (i < rows->count && figures_at(rows, rows->kept[i])->differing_count == 0) i++;
  return i < rows->count;
}

void tm_layer_rows_print(const tm_layer_rows *rows, const tm_row_selection *selection, tm_table_look look,
                         tm_output_stream *stream) {
  const uint32_t        share = (uint32_t)(look.width * 3 / 7);
  const bool            has_pairs = has_differing_pairs(rows);
  const tm_column_style styles[] = { { "layer", NULL, 0, 0, false, TM_SHOWN_ALWAYS },
                                     { "kind", NULL, share > 16 ? share : 16, 0, false, TM_SHOWN_ALWAYS },
                                     { "tensors", NULL, 0, 6, false, TM_SHOWN_ALWAYS },
                                     { "same", NULL, 0, 7, false, TM_SHOWN_ALWAYS },
                                     { "differing", NULL, 0, 0, false, TM_SHOWN_IF_NONZERO },
                                     { "removed", NULL, 0, 2, false, TM_SHOWN_IF_NONZERO },
                                     { "added", NULL, 0, 3, false, TM_SHOWN_IF_NONZERO },
                                     { "changed", NULL, 0, 4, false, TM_SHOWN_ALWAYS },
                                     { "max_abs", NULL, 0, 8, false, TM_SHOWN_ALWAYS },
                                     { "rel_l2", NULL, 0, has_pairs ? 1 : 5, false, TM_SHOWN_ALWAYS } };
  tm_rows   all = tm_layer_rows_all(rows);
  uint64_t *order = NULL;
  tm_error  error = TM_CLI_ERROR_INIT;
  if (tm_row_selection_apply(selection, &all, &order, &error) == TM_OK)
    tm_row_selection_print(selection, &all, styles, sizeof styles / sizeof styles[0], look, stream);
  else
    (void)tm_complain(&error);
  free(order);
}
