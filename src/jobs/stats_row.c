/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stats_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tensormorph/canonical_sum.h"

enum { FILE_COLUMN, NAME, DTYPE, SHAPE, COUNT, NAN_COUNT, POS_INF, NEG_INF, ZERO, SUBNORMAL, MIN, MAX, ABS_MAX, MEAN, STD, L2 };

const tm_column tm_stats_columns[TM_STATS_COLUMNS] = {
  [FILE_COLUMN] = { "file", TM_COLUMN_TEXT, 0, "the checkpoint, as it was named" },
  [NAME] = { "name", TM_COLUMN_TEXT, 0, "the tensor's name" },
  [DTYPE] = { "dtype", TM_COLUMN_TEXT, 0, "its format" },
  [SHAPE] = { "shape", TM_COLUMN_SHAPE, 0, "its extents, outermost first" },
  [COUNT] = { "count", TM_COLUMN_COUNT, 0, "elements" },
  [NAN_COUNT] = { "nan", TM_COLUMN_COUNT, 0, "elements that are not a number" },
  [POS_INF] = { "pos_inf", TM_COLUMN_COUNT, 0, "elements that are +infinity" },
  [NEG_INF] = { "neg_inf", TM_COLUMN_COUNT, 0, "elements that are -infinity" },
  [ZERO] = { "zero", TM_COLUMN_COUNT, 0, "elements that are +0 or -0" },
  [SUBNORMAL] = { "subnormal", TM_COLUMN_COUNT, 0, "elements that are subnormal in the tensor's format" },
  [MIN] = { "min", TM_COLUMN_NUMBER, 0, "smallest finite value" },
  [MAX] = { "max", TM_COLUMN_NUMBER, 0, "largest finite value" },
  [ABS_MAX] = { "abs_max", TM_COLUMN_NUMBER, 0, "largest finite magnitude" },
  [MEAN] = { "mean", TM_COLUMN_NUMBER, 0, "mean of the finite values" },
  [STD] = { "std", TM_COLUMN_NUMBER, 0, "population standard deviation of the finite values" },
  [L2] = { "l2", TM_COLUMN_NUMBER, 0, "square root of the sum of squares of the finite values" },
};

static void put_number(tm_cell *cell, double number) {
  *cell = (tm_cell){ .type = TM_COLUMN_NUMBER, .defined = isfinite(number) != 0, .number = number };
}

static void put_count(tm_cell *cell, uint64_t count) { *cell = (tm_cell){ .type = TM_COLUMN_COUNT, .defined = 1, .count = count }; }

static void put_text(tm_cell *cell, const char *text, uint64_t length) {
  *cell = (tm_cell){ .type = TM_COLUMN_TEXT, .defined = 1, .text = text, .count = length };
}

void tm_stats_row_fill(const uint64_t *words, const tm_moments *m, tm_cell *cells) {
  for (uint32_t i = 0; i <= TM_STATS_SUBNORMAL; i++) put_count(&cells[COUNT + i], words[i]);
  if (m->count == 0) return;
  put_number(&cells[MIN], tm_stats_word_number(words, TM_STATS_MIN));
  put_number(&cells[MAX], tm_stats_word_number(words, TM_STATS_MAX));
  put_number(&cells[ABS_MAX], tm_stats_word_number(words, TM_STATS_ABS_MAX));
  put_number(&cells[MEAN], m->mean);
  put_number(&cells[STD], isnan(m->variance) ? m->variance : sqrt(fmax(m->variance, 0)));
  put_number(&cells[L2], sqrt(tm_sum_read(words + TM_STATS_SUM_SQUARES)));
}

void tm_stats_row_identify(const char *path, const tm_archive_tensor *tensor, tm_cell *cells) {
  const tm_format_info *info = tm_format_find(tensor->format);
  const char *dtype = info == NULL ? tensor->type_name : info->name;
  for (uint32_t i = 0; i < TM_STATS_COLUMNS; i++) cells[i] = (tm_cell){ .type = tm_stats_columns[i].type };
  put_text(&cells[FILE_COLUMN], path, strlen(path));
  put_text(&cells[NAME], tensor->name.data, tensor->name.length);
  put_text(&cells[DTYPE], dtype, strlen(dtype));
  cells[SHAPE] = (tm_cell){ .type = TM_COLUMN_SHAPE, .defined = 1, .count = tensor->rank, .shape = tensor->dims };
  put_count(&cells[COUNT], tensor->element_count);
}

bool tm_stats_row_is_possible(const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  return (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) == 0 && info != NULL && info->has_values;
}

/* One note a type, not one a tensor. */
bool tm_stats_row_has_none(tm_job *job, const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  char note[512];
  char name[256];
  if ((tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0) {
    tm_text_escape(tensor->name.data, tensor->name.length, name, sizeof name);
    snprintf(note, sizeof note, "%s: the file ends before the tensor does", name);
  } else if (!tm_stats_row_is_possible(tensor)) {
    tm_text_escape(tensor->type_name, strlen(tensor->type_name), name, sizeof name);
    snprintf(note, sizeof note, "tensors of type %s have no figures: this version cannot decode it", info == NULL ? name : info->name);
  } else {
    return false;
  }
  tm_job_add_note(job, note);
  return true;
}

void tm_stats_row_note_gaps(tm_job *job, const tm_archive_tensor *tensor, const tm_cell *cells, double finite_count) {
  if (finite_count == 0 || (cells[MEAN].defined && cells[STD].defined && cells[L2].defined)) return;
  char note[512];
  char name[256];
  tm_text_escape(tensor->name.data, tensor->name.length, name, sizeof name);
  snprintf(note, sizeof note, "%s: its sums are beyond the range of f64; figures that rest on them are left out", name);
  tm_job_add_note(job, note);
}
