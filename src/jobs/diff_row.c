/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/diff_row.h"

#include <math.h>
#include <string.h>

#include "jobs/norm_figure.h"
#include "tensor/format.h"
#include "tensormorph/canonical_sum.h"

enum { VERDICT, NAME, OTHER_NAME, PAIRED, DTYPE, OTHER_DTYPE, SHAPE, OTHER_SHAPE, COUNT, EQUAL, CHANGED, NONFINITE, MAX_ABS, MAX_REL,
       REL_L2, COSINE, DISTANCE, NORM, OTHER_NORM, BYTES, OTHER_BYTES };

const tm_column tm_diff_columns[TM_DIFF_COLUMNS] = {
  [VERDICT] = { "verdict", TM_COLUMN_TEXT, 0, "identical, renamed, tied, retyped, transposed, reshaped, changed, added, removed or unexamined" },
  [NAME] = { "name", TM_COLUMN_TEXT, 0, "the tensor's name in the first checkpoint" },
  [OTHER_NAME] = { "other_name", TM_COLUMN_TEXT, 0, "its counterpart's name in the second one" },
  [PAIRED] = { "paired", TM_COLUMN_TEXT, 0, "why they are a pair: name, single (there is no other), content, decoded (content in another "
                                           "format) or transposed" },
  [DTYPE] = { "dtype", TM_COLUMN_TEXT, 0, "format in the first checkpoint" },
  [OTHER_DTYPE] = { "other_dtype", TM_COLUMN_TEXT, 0, "format in the second one" },
  [SHAPE] = { "shape", TM_COLUMN_SHAPE, 0, "extents in the first checkpoint, outermost first" },
  [OTHER_SHAPE] = { "other_shape", TM_COLUMN_SHAPE, 0, "extents in the second one" },
  [COUNT] = { "count", TM_COLUMN_COUNT, 0, "elements; of a reshaped tensor those in the first checkpoint" },
  [EQUAL] = { "equal", TM_COLUMN_COUNT, 0, "elements with equal bits, across formats with equal values" },
  [CHANGED] = { "changed", TM_COLUMN_NUMBER, 0, "share of the elements that are not equal" },
  [NONFINITE] = { "nonfinite", TM_COLUMN_COUNT, 0, "elements that are NaN or infinite on either side; they are in no figure that follows" },
  [MAX_ABS] = { "max_abs", TM_COLUMN_NUMBER, 0, "largest difference" },
  [MAX_REL] = { "max_rel", TM_COLUMN_NUMBER, 0, "largest difference relative to the larger magnitude of the two" },
  [REL_L2] = { "rel_l2", TM_COLUMN_NUMBER, 0, "distance / norm" },
  [COSINE] = { "cosine", TM_COLUMN_NUMBER, 0, "cosine of the angle between the two as vectors" },
  [DISTANCE] = { "distance", TM_COLUMN_NUMBER, 0, "square root of the sum of squared differences" },
  [NORM] = { "norm", TM_COLUMN_NUMBER, 0, "square root of the sum of squares in the first checkpoint" },
  [OTHER_NORM] = { "other_norm", TM_COLUMN_NUMBER, 0, "square root of the sum of squares in the second one" },
  [BYTES] = { "bytes", TM_COLUMN_BYTES, 0, "size in the first checkpoint" },
  [OTHER_BYTES] = { "other_bytes", TM_COLUMN_BYTES, 0, "size in the second one" },
};

static const char *const paired_names[] = {
  [TM_DIFF_UNPAIRED] = NULL,
  [TM_DIFF_PAIRED_BY_NAME] = "name",
  [TM_DIFF_PAIRED_AS_SINGLE] = "single",
  [TM_DIFF_PAIRED_BY_CONTENT] = "content",
  [TM_DIFF_PAIRED_BY_VALUES] = "decoded",
  [TM_DIFF_PAIRED_TRANSPOSED] = "transposed",
  [TM_DIFF_PAIRED_ROUNDED] = "rounded",
};

static void put_number(tm_cell *cell, double number) {
  *cell = (tm_cell){ .type = TM_COLUMN_NUMBER, .defined = isfinite(number) != 0, .number = isfinite(number) ? number : 0 };
}

static void put_count(tm_cell *cell, uint64_t count) {
  cell->defined = 1;
  cell->count = count;
}

static void put_text(tm_cell *cell, const char *text, uint64_t length) {
  *cell = (tm_cell){ .type = TM_COLUMN_TEXT, .defined = 1, .text = text, .count = length };
}

/* ---- the verdict ---- */

bool tm_diff_result_is_equal(const tm_diff_result *result) {
  if (result->road == TM_DIFF_ROAD_VALUES) return result->words[TM_COMPARISON_EQUAL_BITS] == result->words[TM_COMPARISON_COUNT];
  return result->road == TM_DIFF_ROAD_BYTES && result->has_equal_bytes;
}

bool tm_diff_have_same_type(const tm_archive_tensor *a, const tm_archive_tensor *b) {
  return a->format == b->format && (a->format != TM_FORMAT_NONE || strcmp(a->type_name, b->type_name) == 0);
}

static bool have_same_dims(const tm_archive_tensor *a, const tm_archive_tensor *b) {
  return a->rank == b->rank && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

static const char *verdict_on_equal(const tm_diff_result *result) {
  const tm_archive_tensor *a = result->a, *b = result->b;
  if (result->pair->is_tied && !result->pair->is_sole) return "tied";
  if (result->pair->is_transposed) return "transposed";
  if (!have_same_dims(a, b)) return "reshaped";
  if (!tm_diff_have_same_type(a, b) || result->has_other_blocks) return "retyped";
  const bool same_name = a->name.length == b->name.length &&
                         (a->name.length == 0 || memcmp(a->name.data, b->name.data, (size_t)a->name.length) == 0);
  return same_name ? "identical" : "renamed";
}

static const char *verdict_of(const tm_diff_result *result) {
  if (result->a == NULL) return "added";
  if (result->b == NULL) return "removed";
  if (tm_diff_result_is_equal(result)) return verdict_on_equal(result);
  if (result->pair->is_transposed) return "transposed";
  if (!have_same_dims(result->a, result->b)) return "reshaped";
  return result->road == TM_DIFF_ROAD_NONE ? "unexamined" : "changed";
}

/* ---- figures ---- */

static double number_at(const uint64_t *words, uint32_t place) { return tm_sum_from_bits(words[place]); }

/* Of a vector with itself exactly 1. */
static double cosine(double dot, double squares_a, double squares_b) {
  if (!isfinite(dot) || !(tm_norm_figure(squares_a, 0) > 0 && tm_norm_figure(squares_b, 0) > 0)) return NAN;
  const double value = squares_a == squares_b ? dot / squares_a : dot / (sqrt(squares_a) * sqrt(squares_b));
  return isnan(value) ? value : fmin(1, fmax(-1, value));
}

static void put_figures(const uint64_t *words, tm_cell *cells) {
  const double squared = tm_sum_read(words + TM_COMPARISON_SUM_SQUARED), dot = tm_sum_read(words + TM_COMPARISON_DOT);
  const double squares_a = tm_sum_read(words + TM_COMPARISON_NORM_A), squares_b = tm_sum_read(words + TM_COMPARISON_NORM_B);
  put_count(&cells[NONFINITE], words[TM_COMPARISON_NONFINITE]);
  if (words[TM_COMPARISON_NONFINITE] == words[TM_COMPARISON_COUNT]) return;
  put_number(&cells[MAX_ABS], number_at(words, TM_COMPARISON_MAX_ABS));
  put_number(&cells[MAX_REL], number_at(words, TM_COMPARISON_MAX_REL));
  const double largest = number_at(words, TM_COMPARISON_MAX_ABS);
  const double distance = tm_distance_figure(squared, largest), norm = tm_norm_figure(squares_a, largest);
  put_number(&cells[REL_L2], distance == 0 ? 0 : distance / norm);
  put_number(&cells[COSINE], cosine(dot, squares_a, squares_b));
  put_number(&cells[DISTANCE], distance);
  put_number(&cells[NORM], norm);
  put_number(&cells[OTHER_NORM], tm_norm_figure(squares_b, largest));
}

/* Of blocks that cannot be decoded nobody knows how many elements differ, only whether any does. */
static bool knows_elements(const tm_diff_result *result) {
  const tm_format_info *info = tm_format_find(result->a->format);
  return result->has_equal_bytes || (info != NULL && info->block_elements == 1);
}

static void put_equal(uint64_t equal, uint64_t count, tm_cell *cells) {
  put_count(&cells[EQUAL], equal);
  put_number(&cells[CHANGED], count == 0 ? 0 : (double)(count - equal) / (double)count);
}

/* ---- the row ---- */

/* The columns of a and of b follow each other in pairs. */
static void describe(const tm_archive_tensor *tensor, uint32_t side, tm_cell *cells) {
  const tm_format_info *info = tm_format_find(tensor->format);
  const char *dtype = info == NULL ? tensor->type_name : info->name;
  put_text(&cells[NAME + side], tensor->name.data, tensor->name.length);
  put_text(&cells[DTYPE + side], dtype, strlen(dtype));
  cells[SHAPE + side] = (tm_cell){ .type = TM_COLUMN_SHAPE, .defined = 1, .count = tensor->rank, .shape = tensor->dims };
  put_count(&cells[BYTES + side], tensor->bytes);
}

tm_status tm_diff_row_add(tm_job *job, const tm_diff_result *result, tm_error *error) {
  tm_cell cells[TM_DIFF_COLUMNS];
  const char *verdict = verdict_of(result), *paired = paired_names[result->pair->paired];
  const uint64_t count = (result->a != NULL ? result->a : result->b)->element_count;
  for (uint32_t i = 0; i < TM_DIFF_COLUMNS; i++) cells[i] = (tm_cell){ .type = tm_diff_columns[i].type };
  put_text(&cells[VERDICT], verdict, strlen(verdict));
  if (paired != NULL) put_text(&cells[PAIRED], paired, strlen(paired));
  if (result->a != NULL) describe(result->a, 0, cells);
  if (result->b != NULL) describe(result->b, 1, cells);
  put_count(&cells[COUNT], count);
  if (result->road == TM_DIFF_ROAD_BYTES && knows_elements(result)) put_equal(result->equal_count, count, cells);
  if (result->road == TM_DIFF_ROAD_VALUES) {
    put_equal(result->words[TM_COMPARISON_EQUAL_BITS], count, cells);
    put_figures(result->words, cells);
  }
  return tm_job_add_row(job, cells, error);
}
