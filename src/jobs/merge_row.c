/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/byte_buffer.h"
#include "jobs/norm_figure.h"
#include "tensormorph/canonical_sum.h"

enum { NAME, ACTION, DTYPE, SHAPE, BYTES, MODELS, WEIGHTS, MISMATCH, MESSAGE };
enum { CHANGE_MAX = MISMATCH, CHANGE_L2, CHANGE_REL, ERROR_REL, NONFINITE, UNEQUAL };

const tm_column tm_merge_plan_column_list[TM_MERGE_PLAN_COLUMNS] = {
  [NAME] = { "name", TM_COLUMN_TEXT, 0, "the tensor's name" },
  [ACTION] = { "action", TM_COLUMN_TEXT, 0, "merge, copy, skip (it is left out) or refuse (it stands in the way)" },
  [DTYPE] = { "dtype", TM_COLUMN_TEXT, 0, "the result's format" },
  [SHAPE] = { "shape", TM_COLUMN_SHAPE, 0, "the result's extents, outermost first" },
  [BYTES] = { "bytes", TM_COLUMN_BYTES, 0, "the result's size" },
  [MODELS] = { "models", TM_COLUMN_TEXT, 0, "what it is made of" },
  [WEIGHTS] = { "weights", TM_COLUMN_TEXT, 0, "what they count; of slerp t" },
  [MISMATCH] = { "mismatch", TM_COLUMN_TEXT, 0, "missing, rows, shape, type or format; nothing where all fits" },
  [MESSAGE] = { "message", TM_COLUMN_TEXT, 0, "what does not match, and what is done; or a weight too small to count" },
};

const tm_column tm_merge_job_column_list[TM_MERGE_JOB_COLUMNS] = {
  [NAME] = { "name", TM_COLUMN_TEXT, 0, "the tensor's name" },
  [ACTION] = { "action", TM_COLUMN_TEXT, 0, "merge or copy" },
  [DTYPE] = { "dtype", TM_COLUMN_TEXT, 0, "its format" },
  [SHAPE] = { "shape", TM_COLUMN_SHAPE, 0, "its extents, outermost first" },
  [BYTES] = { "bytes", TM_COLUMN_BYTES, 0, "its size" },
  [MODELS] = { "models", TM_COLUMN_TEXT, 0, "what it was made of" },
  [WEIGHTS] = { "weights", TM_COLUMN_TEXT, 0, "what they counted" },
  [CHANGE_MAX] = { "change_max", TM_COLUMN_NUMBER, 0, "largest distance of an element from the leading checkpoint's" },
  [CHANGE_L2] = { "change_l2", TM_COLUMN_NUMBER, 0, "square root of the sum of squares of these distances" },
  [CHANGE_REL] = { "change_rel", TM_COLUMN_NUMBER, 0, "change_l2 divided by the norm of the leading checkpoint's tensor" },
  [ERROR_REL] = { "error_rel", TM_COLUMN_NUMBER, 0, "what blocks lost, divided by the norm of the values before" },
  [NONFINITE] = { "nonfinite", TM_COLUMN_COUNT, 0, "elements that are NaN or infinite, and finite in the leading checkpoint" },
  [UNEQUAL] = { "unequal", TM_COLUMN_COUNT, 0, "elements whose bits are not those of the leading checkpoint's" },
};

static const char *const actions[] = { "merge", "copy", "skip", "refuse" };
static const char *const mismatches[] = { "", "missing", "rows", "shape", "type", "format" };

/* ------------------------------------------------------------------------------------------------------------ texts ---- */

static const char *name_of(const tm_merge_settings *settings, uint32_t source) {
  return source >= settings->model_count ? "base" : settings->names[source];
}

/* Of any length: rows with the same text are taken for rows of the same. */
static const char *keep_text(tm_merge_plan *plan, tm_byte_buffer *buffer) {
  const char *text = buffer->failed ? NULL : tm_arena_string(&plan->arena, (const char *)buffer->bytes, buffer->length);
  tm_byte_buffer_deinit(buffer);
  return text;
}

static const char *make_models_text(tm_merge_plan *plan, const tm_merge_item *item) {
  tm_byte_buffer buffer;
  tm_byte_buffer_init(&buffer, plan->memory);
  for (uint32_t i = 0; i < item->input_count; i++) {
    if (i != 0) tm_byte_buffer_add_text(&buffer, ", ");
    tm_byte_buffer_add_text(&buffer, name_of(&plan->settings, item->inputs[i].source));
  }
  return keep_text(plan, &buffer);
}

static void print_weight(const tm_merge_plan *plan, const tm_merge_input *input, char *out_text, size_t capacity) {
  const bool is_base = input->source >= plan->settings.model_count;
  if (is_base) (void)snprintf(out_text, capacity, "-");
  else if (input->density < 1) (void)snprintf(out_text, capacity, "%.6g at %.6g", input->weight, input->density);
  else (void)snprintf(out_text, capacity, "%.6g", input->weight);
}

static bool is_scaled(const tm_merge_plan *plan, const tm_merge_item *item) {
  return tm_merge_has_base(&plan->settings) && item->action == TM_MERGE_ACTION_COMPUTE && item->scale != 1;
}

static const char *make_weights_text(tm_merge_plan *plan, const tm_merge_item *item) {
  char text[64];
  tm_byte_buffer buffer;
  if (item->action == TM_MERGE_ACTION_COMPUTE && item->method == TM_MERGE_SLERP) {
    (void)snprintf(text, sizeof text, "t %.6g", item->t);
    return tm_arena_string(&plan->arena, text, strlen(text));
  }
  tm_byte_buffer_init(&buffer, plan->memory);
  for (uint32_t i = 0; i < item->input_count; i++) {
    print_weight(plan, &item->inputs[i], text, sizeof text);
    if (i != 0) tm_byte_buffer_add_text(&buffer, ", ");
    tm_byte_buffer_add_text(&buffer, text);
  }
  if (is_scaled(plan, item)) {
    (void)snprintf(text, sizeof text, "; scale %.6g", item->scale);
    tm_byte_buffer_add_text(&buffer, text);
  }
  return keep_text(plan, &buffer);
}

static tm_status make_texts(tm_merge_plan *plan, tm_merge_item *item) {
  tm_mutex_lock(&plan->lock);
  if (item->models_text == NULL) item->models_text = make_models_text(plan, item);
  if (item->weights_text == NULL) item->weights_text = make_weights_text(plan, item);
  const bool are_there = item->models_text != NULL && item->weights_text != NULL;
  tm_mutex_unlock(&plan->lock);
  return are_there ? TM_OK : TM_ERROR_NO_MEMORY;
}

/* ------------------------------------------------------------------------------------------------------------ cells ---- */

static void put_text(tm_cell *cell, const char *text, uint64_t length) {
  *cell = (tm_cell){ .type = TM_COLUMN_TEXT, .defined = 1, .text = text, .count = length };
}

static void put_number(tm_cell *cell, double number) {
  *cell = (tm_cell){ .type = TM_COLUMN_NUMBER, .defined = isfinite(number) != 0, .number = number };
}

static void fill_common(const tm_merge_item *item, tm_cell *cells) {
  put_text(&cells[NAME], item->name.data, item->name.length);
  put_text(&cells[ACTION], actions[item->action], strlen(actions[item->action]));
  put_text(&cells[DTYPE], item->type_name, strlen(item->type_name));
  cells[SHAPE] = (tm_cell){ .type = TM_COLUMN_SHAPE, .defined = 1, .count = item->rank, .shape = item->dims };
  cells[BYTES] = (tm_cell){ .type = TM_COLUMN_BYTES, .defined = 1, .count = item->bytes };
  put_text(&cells[MODELS], item->models_text, strlen(item->models_text));
  put_text(&cells[WEIGHTS], item->weights_text, strlen(item->weights_text));
}

tm_status tm_merge_plan_row_fill(tm_merge_plan *plan, uint64_t index, tm_cell *out_cells) {
  tm_merge_item *item = &plan->items[index];
  TM_TRY(make_texts(plan, item));
  fill_common(item, out_cells);
  const char *message = item->message == NULL ? "" : item->message;
  put_text(&out_cells[MISMATCH], mismatches[item->mismatch], strlen(mismatches[item->mismatch]));
  put_text(&out_cells[MESSAGE], message, strlen(message));
  return TM_OK;
}

static double word_number(const uint64_t *words, uint32_t index) {
  double number;
  memcpy(&number, &words[index], sizeof number);
  return number;
}

/* The distance, and what it is of the norm of what was there before; 0 / 0 is no change. */
static double find_distance(const uint64_t *words, double *out_share) {
  const double largest = word_number(words, TM_COMPARISON_MAX_ABS);
  const double distance = tm_distance_figure(tm_sum_read(words + TM_COMPARISON_SUM_SQUARED), largest);
  const double norm = tm_norm_figure(tm_sum_read(words + TM_COMPARISON_NORM_A), largest);
  *out_share = distance == 0 ? 0 : distance / norm;
  return distance;
}

tm_status tm_merge_job_row_fill(tm_merge_plan *plan, uint64_t index, const tm_merge_outcome *outcome, tm_cell *out_cells) {
  tm_merge_item *item = &plan->items[index];
  TM_TRY(make_texts(plan, item));
  fill_common(item, out_cells);
  for (uint32_t i = CHANGE_MAX; i <= ERROR_REL; i++) out_cells[i] = (tm_cell){ .type = TM_COLUMN_NUMBER };
  out_cells[NONFINITE] = (tm_cell){ .type = TM_COLUMN_COUNT, .defined = outcome->change != NULL, .count = outcome->broken_count };
  out_cells[UNEQUAL] = (tm_cell){ .type = TM_COLUMN_COUNT, .defined = outcome->change != NULL };
  if (outcome->weights_text != NULL) put_text(&out_cells[WEIGHTS], outcome->weights_text, strlen(outcome->weights_text));
  double share = 0;
  if (outcome->change != NULL) {
    out_cells[UNEQUAL].count = outcome->change[TM_COMPARISON_COUNT] - outcome->change[TM_COMPARISON_EQUAL_BITS];
    put_number(&out_cells[CHANGE_MAX], word_number(outcome->change, TM_COMPARISON_MAX_ABS));
    put_number(&out_cells[CHANGE_L2], find_distance(outcome->change, &share));
    put_number(&out_cells[CHANGE_REL], share);
  }
  if (outcome->loss != NULL) {
    (void)find_distance(outcome->loss, &share);
    put_number(&out_cells[ERROR_REL], share);
  }
  return TM_OK;
}
