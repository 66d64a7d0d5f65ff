/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_order.h"

#include <stdlib.h>

#include "complain.h"
#include "row_order.h"

typedef enum change_rank {
  RANK_BOUNDLESS,               /* it differs, from zeros or with values that are not finite */
  RANK_BY_SIZE,
  RANK_WITHOUT_FIGURES,
  RANK_REMOVED,
  RANK_ADDED,
  RANK_MOVED,                   /* the same, but for its name or form */
  RANK_IDENTICAL
} change_rank;

typedef struct change_key {
  uint64_t    row;
  double      size;
  change_rank rank;
} change_key;

static bool job_row(const void *source, uint64_t row, tm_cell *cells) {
  return tm_job_row((const tm_job *)source, row, cells) == TM_OK;
}

/* Of what has no counterpart the larger is the graver loss. */
static double bytes_of(const tm_diff_view *view, const tm_cell *cells) {
  const tm_cell bytes = tm_diff_view_cell(view, cells, TM_FIELD_BYTES);
  const tm_cell other = tm_diff_view_cell(view, cells, TM_FIELD_OTHER_BYTES);
  return (double)(bytes.defined ? bytes.count : other.count);
}

static change_key key_of(const tm_diff_view *view, uint64_t row, const tm_cell *cells) {
  const tm_cell rel_l2 = tm_diff_view_cell(view, cells, TM_FIELD_REL_L2);
  const tm_cell max_abs = tm_diff_view_cell(view, cells, TM_FIELD_MAX_ABS);
  const tm_cell nonfinite = tm_diff_view_cell(view, cells, TM_FIELD_NONFINITE);
  switch (tm_diff_view_word(view, cells)) {
    case TM_WORD_REMOVED: return (change_key){ row, bytes_of(view, cells), RANK_REMOVED };
    case TM_WORD_ADDED: return (change_key){ row, bytes_of(view, cells), RANK_ADDED };
    case TM_WORD_IDENTICAL: return (change_key){ row, 0, RANK_IDENTICAL };
    default: break;
  }
  if (tm_diff_view_meaning(view, cells) == TM_MEANS_SAME) return (change_key){ row, 0, RANK_MOVED };
  const change_rank unmeasured = nonfinite.count != 0 ? RANK_BOUNDLESS : RANK_WITHOUT_FIGURES;
  if (!max_abs.defined) return (change_key){ row, bytes_of(view, cells), unmeasured };
  if (nonfinite.count != 0 || (!rel_l2.defined && max_abs.number > 0)) return (change_key){ row, max_abs.number, RANK_BOUNDLESS };
  return (change_key){ row, rel_l2.number, RANK_BY_SIZE };
}

static int compare_keys(const void *left, const void *right) {
  const change_key *a = left, *b = right;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  if (a->size > b->size || a->size < b->size) return a->size > b->size ? -1 : 1;
  return a->row < b->row ? -1 : a->row > b->row;
}

static tm_status sort_by_change(const tm_diff_view *view, uint64_t row_count, uint64_t *rows) {
  tm_cell     cells[TM_MAX_COLUMNS];
  change_key *keys = calloc(row_count > 0 ? (size_t)row_count : 1, sizeof *keys);
  if (keys == NULL) return TM_ERROR_NO_MEMORY;
  for (uint64_t row = 0; row < row_count; row++)
    if (tm_job_row(view->job, row, cells) == TM_OK) keys[row] = key_of(view, row, cells);
  qsort(keys, (size_t)row_count, sizeof *keys, compare_keys);
  for (uint64_t i = 0; i < row_count; i++) rows[i] = keys[i].row;
  free(keys);
  return TM_OK;
}

/* Every row in its place. */
static uint64_t *sort_rows(const tm_diff_view *view, uint64_t row_count, const tm_row_selection *selection) {
  if (selection->sort_column != TM_NO_COLUMN) {
    const tm_rows rows = { view->columns, view->column_count, job_row, view->job, row_count, NULL };
    return tm_row_order_create(&rows, selection->sort_column, selection->is_reversed);
  }
  uint64_t *rows = calloc(row_count > 0 ? (size_t)row_count : 1, sizeof *rows);
  if (rows != NULL && sort_by_change(view, row_count, rows) != TM_OK) {
    free(rows);
    rows = NULL;
  }
  return rows;
}

/* ----------------------------------------------------------------------------------------------------- choosing ---- */

typedef struct row_choice {
  const tm_diff_view *view;
  bool     with_same;
  bool     with_moved;
  bool     is_brief;
  uint64_t unpaired_count[TM_WORD_COUNT];       /* of removed and added, so far */
} row_choice;

/* The same, but under another name or in another form. */
static bool is_moved(const tm_diff_view *view, const tm_cell *cells) {
  return tm_diff_view_word(view, cells) != TM_WORD_IDENTICAL && tm_diff_view_meaning(view, cells) == TM_MEANS_SAME;
}

static bool has_few_moved(const tm_diff_view *view, uint64_t row_count) {
  tm_cell  cells[TM_MAX_COLUMNS];
  uint64_t count = 0;
  for (uint64_t row = 0; row < row_count && count <= TM_DIFF_MOST_MOVED; row++)
    if (tm_job_row(view->job, row, cells) == TM_OK) count += is_moved(view, cells);
  return count <= TM_DIFF_MOST_MOVED;
}

static bool is_wanted(const row_choice *choice, const tm_cell *cells) {
  if (choice->with_same || tm_diff_view_meaning(choice->view, cells) == TM_MEANS_DIFFERENT) return true;
  return choice->with_moved && is_moved(choice->view, cells);
}

static bool is_one_too_many(row_choice *choice, const tm_cell *cells) {
  const tm_diff_word word = tm_diff_view_word(choice->view, cells);
  if (!choice->is_brief || (word != TM_WORD_REMOVED && word != TM_WORD_ADDED)) return false;
  return choice->unpaired_count[word]++ >= TM_DIFF_MOST_UNPAIRED;
}

tm_status tm_diff_order_make(tm_diff_order *order, const tm_diff_view *view, uint64_t row_count, const tm_row_selection *selection,
                             bool with_same, tm_error *error) {
  tm_cell    cells[TM_MAX_COLUMNS];
  row_choice choice = { .view = view, .with_same = with_same, .with_moved = has_few_moved(view, row_count) };
  choice.is_brief = !with_same && selection->sort_column == TM_NO_COLUMN && selection->top == UINT64_MAX;
  *order = (tm_diff_order){ .rows = sort_rows(view, row_count, selection) };
  if (order->rows == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory while sorting rows");
  for (uint64_t i = 0; i < row_count; i++) {
    const uint64_t row = order->rows[i];
    if (tm_job_row(view->job, row, cells) != TM_OK || !is_wanted(&choice, cells)) continue;
    if (order->count == selection->top || is_one_too_many(&choice, cells))
      order->left_out_count++;
    else
      order->rows[order->count++] = row;
  }
  return TM_OK;
}

void tm_diff_order_deinit(tm_diff_order *order) {
  free(order->rows);
  *order = (tm_diff_order){ .rows = NULL };
}
