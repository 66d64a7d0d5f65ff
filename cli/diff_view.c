/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_view.h"

#include <string.h>

#include "row_selection.h"

#define MOST_AXES 64u

static const char *const words[TM_WORD_COUNT] = { "changed",   "reshaped", "transposed", "unexamined", "removed",
                                                  "added",     "identical", "renamed",   "retyped",    "tied" };

static const char *const names[TM_FIELDS] = { "verdict",     "name",  "other_name", "dtype",     "other_dtype", "shape",
                                              "other_shape", "count", "equal",      "changed",   "nonfinite",   "max_abs",
                                              "rel_l2",      "distance", "norm",    "bytes",     "other_bytes" };

void tm_diff_view_init(tm_diff_view *view, const tm_job *job, double tolerance, bool is_exact) {
  *view = (tm_diff_view){ .job = job, .tolerance = tolerance, .is_exact = is_exact };
  view->columns = tm_job_columns(job, &view->column_count);
  for (uint32_t i = 0; i < TM_FIELDS; i++) view->column[i] = tm_column_find(view->columns, view->column_count, names[i]);
}

tm_cell tm_diff_view_cell(const tm_diff_view *view, const tm_cell *cells, tm_diff_field field) {
  const uint32_t column = view->column[field];
  return column == TM_NO_COLUMN ? tm_cell_undefined(TM_COLUMN_TEXT) : cells[column];
}

tm_cell tm_diff_view_name(const tm_diff_view *view, const tm_cell *cells) {
  const tm_cell name = tm_diff_view_cell(view, cells, TM_FIELD_NAME);
  return name.defined ? name : tm_diff_view_cell(view, cells, TM_FIELD_OTHER_NAME);
}

const char *tm_diff_word_text(tm_diff_word word) { return words[word]; }

/* A word that is not known here passes for none that would mean that weights are the same. */
tm_diff_word tm_diff_view_word(const tm_diff_view *view, const tm_cell *cells) {
  const tm_cell verdict = tm_diff_view_cell(view, cells, TM_FIELD_VERDICT);
  for (uint32_t i = 0; i < TM_WORD_COUNT && verdict.defined; i++)
    if (strcmp(verdict.text, words[i]) == 0) return (tm_diff_word)i;
  return TM_WORD_UNEXAMINED;
}

static bool is_all_equal(const tm_diff_view *view, const tm_cell *cells) {
  const tm_cell count = tm_diff_view_cell(view, cells, TM_FIELD_COUNT), equal = tm_diff_view_cell(view, cells, TM_FIELD_EQUAL);
  return count.defined && equal.defined && count.count == equal.count;
}

/* How far apart NaN and infinities are nobody can say, so where there are any there is no tolerance. */
static bool is_close(const tm_diff_view *view, const tm_cell *cells) {
  const tm_cell max_abs = tm_diff_view_cell(view, cells, TM_FIELD_MAX_ABS);
  const tm_cell nonfinite = tm_diff_view_cell(view, cells, TM_FIELD_NONFINITE);
  return max_abs.defined && max_abs.number <= view->tolerance && nonfinite.defined && nonfinite.count == 0;
}

static bool is_same_text(const tm_cell *a, const tm_cell *b) {
  return a->defined && b->defined && a->count == b->count && (a->count == 0 || memcmp(a->text, b->text, (size_t)a->count) == 0);
}

/* Without axes of 1, which the transpose does not move. */
static uint32_t squeeze(const tm_cell *shape, uint64_t *out_dims, uint32_t capacity) {
  uint32_t rank = 0;
  for (uint64_t i = 0; i < shape->count && rank < capacity; i++)
    if (shape->shape[i] != 1) out_dims[rank++] = shape->shape[i];
  return rank;
}

static bool is_same_shape(const tm_cell *a, const tm_cell *b) {
  uint64_t left[MOST_AXES], right[MOST_AXES];
  if (!a->defined || !b->defined) return false;
  const uint32_t rank = squeeze(a, left, MOST_AXES);
  return rank == squeeze(b, right, MOST_AXES) && memcmp(left, right, rank * sizeof left[0]) == 0;
}

/* Whoever reads it by its name and shape reads other weights: nothing tells of the order of axes, as a reversed shape would. */
static bool is_turned_in_place(const tm_diff_view *view, const tm_cell *cells) {
  const tm_cell name = tm_diff_view_cell(view, cells, TM_FIELD_NAME), other = tm_diff_view_cell(view, cells, TM_FIELD_OTHER_NAME);
  const tm_cell shape = tm_diff_view_cell(view, cells, TM_FIELD_SHAPE);
  const tm_cell other_shape = tm_diff_view_cell(view, cells, TM_FIELD_OTHER_SHAPE);
  return tm_diff_view_word(view, cells) == TM_WORD_TRANSPOSED && is_same_text(&name, &other) && is_same_shape(&shape, &other_shape);
}

tm_diff_meaning tm_diff_view_meaning(const tm_diff_view *view, const tm_cell *cells) {
  switch (tm_diff_view_word(view, cells)) {
    case TM_WORD_IDENTICAL: return TM_MEANS_SAME;
    case TM_WORD_RENAMED:
    case TM_WORD_RETYPED:
    case TM_WORD_TIED: return view->is_exact ? TM_MEANS_DIFFERENT : TM_MEANS_SAME;
    case TM_WORD_TRANSPOSED:
    case TM_WORD_RESHAPED:
      if (view->is_exact || is_turned_in_place(view, cells)) return TM_MEANS_DIFFERENT;
      if (is_all_equal(view, cells)) return TM_MEANS_SAME;
      return is_close(view, cells) ? TM_MEANS_CLOSE : TM_MEANS_DIFFERENT;
    case TM_WORD_CHANGED: return is_close(view, cells) ? TM_MEANS_CLOSE : TM_MEANS_DIFFERENT;
    default: return TM_MEANS_DIFFERENT;
  }
}

bool tm_diff_view_is_seen(const tm_diff_view *view, const tm_cell *cells) {
  return tm_diff_view_word(view, cells) == TM_WORD_CHANGED || tm_diff_view_cell(view, cells, TM_FIELD_EQUAL).defined;
}
