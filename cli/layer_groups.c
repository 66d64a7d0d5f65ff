/* SPDX-License-Identifier: Apache-2.0 */
#include "layer_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "layer_name.h"

/* ------------------------------------------------------------------------------------------------------ figures ---- */

static void count_meaning(tm_layer_figures *figures, const tm_diff_view *view, const tm_cell *cells) {
  figures->tensor_count++;
  switch (tm_diff_view_word(view, cells)) {
    case TM_WORD_REMOVED: figures->removed_count++; return;
    case TM_WORD_ADDED: figures->added_count++; return;
    default: break;
  }
  const bool differs = tm_diff_view_meaning(view, cells) == TM_MEANS_DIFFERENT;
  figures->same_count += !differs;
  figures->differing_count += differs;
  figures->unmeasured_count += differs && !tm_diff_view_cell(view, cells, TM_FIELD_MAX_ABS).defined;
}

static void add_row(tm_layer_figures *figures, const tm_diff_view *view, const tm_cell *cells) {
  const tm_cell count = tm_diff_view_cell(view, cells, TM_FIELD_COUNT), equal = tm_diff_view_cell(view, cells, TM_FIELD_EQUAL);
  const tm_cell max_abs = tm_diff_view_cell(view, cells, TM_FIELD_MAX_ABS);
  const tm_cell distance = tm_diff_view_cell(view, cells, TM_FIELD_DISTANCE), norm = tm_diff_view_cell(view, cells, TM_FIELD_NORM);
  count_meaning(figures, view, cells);
  if (count.defined && equal.defined) {
    figures->element_count += count.count;
    figures->changed_element_count += count.count - equal.count;
  }
  if (!max_abs.defined || !distance.defined || !norm.defined) return;
  figures->has_values = true;
  figures->distance_squared += distance.number * distance.number;
  figures->norm_squared += norm.number * norm.number;
  if (max_abs.number > figures->max_abs) figures->max_abs = max_abs.number;
}

void tm_layer_figures_add(tm_layer_figures *sum, const tm_layer_figures *part) {
  sum->tensor_count += part->tensor_count;
  sum->same_count += part->same_count;
  sum->differing_count += part->differing_count;
  sum->unmeasured_count += part->unmeasured_count;
  sum->removed_count += part->removed_count;
  sum->added_count += part->added_count;
  sum->element_count += part->element_count;
  sum->changed_element_count += part->changed_element_count;
  sum->distance_squared += part->distance_squared;
  sum->norm_squared += part->norm_squared;
  sum->has_values = sum->has_values || part->has_values;
  if (part->max_abs > sum->max_abs) sum->max_abs = part->max_abs;
}

tm_cell tm_layer_figures_rel_l2(const tm_layer_figures *figures) {
  const double relative = sqrt(figures->distance_squared) / sqrt(figures->norm_squared);
  if (!figures->has_values || !isfinite(relative)) return tm_cell_undefined(TM_COLUMN_NUMBER);
  return tm_cell_number(relative);
}

tm_cell tm_layer_figures_changed(const tm_layer_figures *figures) {
  if (figures->element_count == 0) return tm_cell_undefined(TM_COLUMN_NUMBER);
  return tm_cell_number((double)figures->changed_element_count / (double)figures->element_count);
}

/* ------------------------------------------------------------------------------------------------------- groups ---- */

/* A row by what its name says. */
typedef struct named_row {
  const char *kind;
  size_t      kind_length;
  size_t      prefix_length;
  uint64_t    layer;
  uint64_t    row;
} named_row;

static int compare_kinds(const named_row *a, const named_row *b) {
  const size_t shorter = a->kind_length < b->kind_length ? a->kind_length : b->kind_length;
  const int    order = shorter > 0 ? memcmp(a->kind, b->kind, shorter) : 0;
  return order != 0 ? order : (a->kind_length > b->kind_length) - (a->kind_length < b->kind_length);
}

static int compare_rows(const void *left, const void *right) {
  const named_row *a = left, *b = right;
  const int order = compare_kinds(a, b);
  if (order != 0) return order;
  if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
  return (a->row > b->row) - (a->row < b->row);
}

static size_t name_bytes(const tm_diff_view *view, uint64_t row_count) {
  tm_cell cells[TM_MAX_COLUMNS];
  size_t  bytes = 0;
  for (uint64_t row = 0; row < row_count && tm_job_row(view->job, row, cells) == TM_OK; row++)
    bytes += (size_t)tm_diff_view_name(view, cells).count;
  return bytes;
}

static void name_rows(const tm_diff_view *view, named_row *rows, uint64_t row_count, char *texts) {
  tm_cell cells[TM_MAX_COLUMNS];
  for (uint64_t row = 0; row < row_count && tm_job_row(view->job, row, cells) == TM_OK; row++) {
    const tm_cell       name = tm_diff_view_name(view, cells);
    const tm_layer_name split = tm_layer_name_split(name.defined ? name.text : "", name.defined ? (size_t)name.count : 0, texts);
    rows[row] = (named_row){ texts, split.kind_length, split.prefix_length, split.layer, row };
    texts += split.kind_length;
  }
  qsort(rows, (size_t)row_count, sizeof *rows, compare_rows);
}

static bool begins_kind(const named_row *rows, uint64_t i) { return i == 0 || compare_kinds(&rows[i], &rows[i - 1]) != 0; }

static bool begins_cell(const named_row *rows, uint64_t i) { return begins_kind(rows, i) || rows[i].layer != rows[i - 1].layer; }

static tm_status allocate(tm_layer_groups *groups, const named_row *rows, uint64_t row_count) {
  size_t kinds = 1, cells = 1;
  for (uint64_t i = 0; i < row_count; i++) {
    kinds += begins_kind(rows, i);
    cells += begins_cell(rows, i);
  }
  groups->kinds = calloc(kinds, sizeof *groups->kinds);
  groups->layers = calloc(cells, sizeof *groups->layers);
  groups->cells = calloc(cells, sizeof *groups->cells);
  return groups->kinds == NULL || groups->layers == NULL || groups->cells == NULL ? TM_ERROR_NO_MEMORY : TM_OK;
}

/* Rows of one kind, and those of one kind and layer, lie together now.  The layer's number stands for its index until those are
   known. */
static void collect_cells(tm_layer_groups *groups, const tm_diff_view *view, const named_row *rows, uint64_t row_count) {
  tm_cell cells[TM_MAX_COLUMNS];
  for (uint64_t i = 0; i < row_count; i++) {
    const named_row *row = &rows[i];
    if (begins_kind(rows, i))
      groups->kinds[groups->kind_count++] = (tm_layer_kind){ row->kind, row->kind_length, row->prefix_length, row->row, { 0 } };
    if (begins_cell(rows, i)) {
      groups->layers[groups->cell_count].number = row->layer;
      groups->cells[groups->cell_count++] = (tm_layer_cell){ .kind = groups->kind_count - 1, .layer = (size_t)row->layer };
    }
    tm_layer_kind *kind = &groups->kinds[groups->kind_count - 1];
    if (row->row < kind->first_row) kind->first_row = row->row;
    if (tm_job_row(view->job, row->row, cells) == TM_OK) add_row(&groups->cells[groups->cell_count - 1].figures, view, cells);
  }
}

static int compare_layers(const void *left, const void *right) {
  const tm_layer *a = left, *b = right;
  return (a->number > b->number) - (a->number < b->number);
}

static void unite_layers(tm_layer_groups *groups) {
  qsort(groups->layers, groups->cell_count, sizeof groups->layers[0], compare_layers);
  for (size_t i = 0; i < groups->cell_count; i++)
    if (i == 0 || groups->layers[i].number != groups->layers[groups->layer_count - 1].number)
      groups->layers[groups->layer_count++].number = groups->layers[i].number;
  for (size_t i = 0; i < groups->cell_count; i++) {
    const tm_layer  wanted = { .number = groups->cells[i].layer };
    const tm_layer *found = bsearch(&wanted, groups->layers, groups->layer_count, sizeof wanted, compare_layers);
    groups->cells[i].layer = (size_t)(found - groups->layers);
  }
}

static int compare_first_rows(const void *left, const void *right) {
  const tm_layer_kind *a = left, *b = right;
  return (a->first_row > b->first_row) - (a->first_row < b->first_row);
}

static int compare_cells(const void *left, const void *right) {
  const tm_layer_cell *a = left, *b = right;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  return (a->layer > b->layer) - (a->layer < b->layer);
}

/* From the order of their texts to that of the files. */
static void reorder_kinds(tm_layer_groups *groups) {
  for (size_t i = 0; i < groups->cell_count; i++) groups->cells[i].kind = (size_t)groups->kinds[groups->cells[i].kind].first_row;
  qsort(groups->kinds, groups->kind_count, sizeof groups->kinds[0], compare_first_rows);
  for (size_t i = 0; i < groups->cell_count; i++) {
    const tm_layer_kind  wanted = { .first_row = groups->cells[i].kind };
    const tm_layer_kind *found = bsearch(&wanted, groups->kinds, groups->kind_count, sizeof wanted, compare_first_rows);
    groups->cells[i].kind = (size_t)(found - groups->kinds);
  }
  qsort(groups->cells, groups->cell_count, sizeof groups->cells[0], compare_cells);
}

static void add_up(tm_layer_groups *groups) {
  for (size_t i = 0; i < groups->cell_count; i++) {
    const tm_layer_cell *cell = &groups->cells[i];
    tm_layer_figures_add(&groups->kinds[cell->kind].figures, &cell->figures);
    tm_layer_figures_add(&groups->layers[cell->layer].figures, &cell->figures);
  }
}

tm_status tm_layer_groups_make(tm_layer_groups *groups, const tm_diff_view *view, uint64_t row_count, tm_error *error) {
  named_row *rows = calloc(row_count > 0 ? (size_t)row_count : 1, sizeof *rows);
  *groups = (tm_layer_groups){ .texts = malloc(name_bytes(view, row_count) + 1) };
  bool has_memory = rows != NULL && groups->texts != NULL;
  if (has_memory) {
    name_rows(view, rows, row_count, groups->texts);
    has_memory = allocate(groups, rows, row_count) == TM_OK;
  }
  if (has_memory) {
    collect_cells(groups, view, rows, row_count);
    unite_layers(groups);
    reorder_kinds(groups);
    add_up(groups);
  } else {
    tm_layer_groups_deinit(groups);
  }
  free(rows);
  return has_memory ? TM_OK : tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory while grouping rows");
}

void tm_layer_groups_deinit(tm_layer_groups *groups) {
  free(groups->kinds);
  free(groups->layers);
  free(groups->cells);
  free(groups->texts);
  *groups = (tm_layer_groups){ .kinds = NULL };
}
