/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/check_row.h"

#include <string.h>

#include "tensor/format.h"

enum { FILE_COLUMN, LEVEL, KIND, TENSOR, DTYPE, SHAPE, COUNT, TOTAL, FIRST, SLICES, OTHER, MESSAGE };

const tm_column tm_check_columns[TM_CHECK_COLUMNS] = {
  [FILE_COLUMN] = { "file", TM_COLUMN_TEXT, 0, "the file, as it was named; of a set the shard" },
  [LEVEL] = { "level", TM_COLUMN_TEXT, 0, "\"finding\", \"note\" or \"trouble\"" },
  [KIND] = { "kind", TM_COLUMN_TEXT, 0, "what it is" },
  [TENSOR] = { "tensor", TM_COLUMN_TEXT, 0, "the tensor's name, if it is about one" },
  [DTYPE] = { "dtype", TM_COLUMN_TEXT, 0, "its format" },
  [SHAPE] = { "shape", TM_COLUMN_SHAPE, 0, "its extents, outermost first" },
  [COUNT] = { "count", TM_COLUMN_COUNT, 0, "how many elements, blocks or tensors are meant" },
  [TOTAL] = { "total", TM_COLUMN_COUNT, 0, "of how many" },
  [FIRST] = { "first", TM_COLUMN_SHAPE, 0, "the index of the first; of a block its number in the row comes last" },
  [SLICES] = { "slices", TM_COLUMN_SHAPE, 0,
               "the indices on the outermost axis that are hit, where a tensor has three axes or more" },
  [OTHER] = { "other", TM_COLUMN_TEXT, 0, "another file or tensor that it is about, too" },
  [MESSAGE] = { "message", TM_COLUMN_TEXT, 0, "the same as a sentence" },
};

static const char *const level_names[] = {
  [TM_CHECK_NOTE] = "note",
  [TM_CHECK_FINDING] = "finding",
  [TM_CHECK_TROUBLE] = "trouble",
};

static void put_text(tm_cell *cell, const char *text, uint64_t length) {
  *cell = (tm_cell){ .type = TM_COLUMN_TEXT, .defined = 1, .text = text, .count = length };
}

static void put_list(tm_cell *cell, const uint64_t *numbers, uint64_t count) {
  *cell = (tm_cell){ .type = TM_COLUMN_SHAPE, .defined = 1, .shape = numbers, .count = count };
}

static void describe(const tm_archive_tensor *tensor, tm_cell *cells) {
  const tm_format_info *info = tm_format_find(tensor->format);
  const char *dtype = info == NULL ? tensor->type_name : info->name;
  put_text(&cells[DTYPE], dtype, strlen(dtype));
  put_list(&cells[SHAPE], tensor->dims, tensor->rank);
}

void tm_check_row_init(tm_check_row *row, tm_check_level level, const char *kind, const char *file,
                       const tm_archive_tensor *tensor) {
  *row = (tm_check_row){ .file = file, .level = level, .kind = kind, .described = tensor };
  if (tensor != NULL) row->tensor = tensor->name;
}

/* The file comes first in many an error's text, and has a cell of its own here. */
static const char *message_of(const tm_check_row *row) {
  const size_t length = strlen(row->file);
  const bool begins_with_file = length != 0 && strncmp(row->message, row->file, length) == 0;
  return begins_with_file && strncmp(row->message + length, ": ", 2) == 0 ? row->message + length + 2 : row->message;
}

tm_status tm_check_row_add(tm_job *job, const tm_check_row *row, tm_error *error) {
  tm_cell cells[TM_CHECK_COLUMNS];
  const char *level = level_names[row->level], *message = message_of(row);
  for (uint32_t i = 0; i < TM_CHECK_COLUMNS; i++) cells[i] = (tm_cell){ .type = tm_check_columns[i].type };
  put_text(&cells[FILE_COLUMN], row->file, strlen(row->file));
  put_text(&cells[LEVEL], level, strlen(level));
  put_text(&cells[KIND], row->kind, strlen(row->kind));
  put_text(&cells[MESSAGE], message, strlen(message));
  if (row->tensor.data != NULL) put_text(&cells[TENSOR], row->tensor.data, row->tensor.length);
  if (row->described != NULL) describe(row->described, cells);
  if (row->has_counts) {
    cells[COUNT] = (tm_cell){ .type = TM_COLUMN_COUNT, .defined = 1, .count = row->count };
    cells[TOTAL] = (tm_cell){ .type = TM_COLUMN_COUNT, .defined = 1, .count = row->total };
  }
  if (row->first != NULL) put_list(&cells[FIRST], row->first, row->first_rank);
  if (row->slices != NULL) put_list(&cells[SLICES], row->slices, row->slice_count);
  if (row->other.data != NULL) put_text(&cells[OTHER], row->other.data, row->other.length);
  return tm_job_add_row(job, cells, error);
}
