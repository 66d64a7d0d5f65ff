/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_plan_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "merge_groups.h"
#include "merge_row_json.h"
#include "merge_words.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_selection.h"

static bool plan_row(const void *source, uint64_t row, tm_cell *cells) {
  return tm_merge_plan_row((const tm_merge_plan *)source, row, cells) == TM_OK;
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

uint64_t tm_merge_plan_loss_count(const tm_merge_plan *plan) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *path = NULL;
  uint64_t    count = 0;
  for (uint64_t i = 0; tm_merge_plan_file(plan, i, &file) == TM_OK; i++) count += file.replaces;
  for (uint64_t i = 0; tm_merge_plan_removal(plan, i, &path) == TM_OK; i++) count++;
  return count;
}

/* -------------------------------------------------------------------------------------------------- for people ---- */

static void print_head(const tm_merge_request *request, tm_output_stream *stream) {
  tm_output_format(stream, "%s of %u model%s%s into ", tm_merge_word_text(tm_merge_methods, request->method), request->model_count,
                   plural(request->model_count), request->base != NULL ? " and a base" : "");
  tm_printable_print(stream, request->output);
  if (request->method == TM_MERGE_DARE)
    tm_output_format(stream, "; seed %" PRIu64 "%s", request->seed, request->keeps_scale ? ", not rescaled" : "");
  tm_output_text(stream, request->keeps_sum ? "; not normalized\n\n" : "\n\n");
}

static void print_groups(const tm_merge_plan *plan, const tm_table_look *look, tm_output_stream *stream) {
  static const tm_column_view views[] = { { 0, 0, 0, false, NULL }, { 1, 0, 3, false, NULL },  { 2, 0, 0, false, NULL },
                                          { 3, 0, 0, false, NULL }, { 4, 12, 2, false, NULL }, { 5, 12, 0, false, NULL } };
  tm_merge_groups groups;
  tm_merge_groups_make(&groups, plan);
  const tm_rows rows = tm_merge_groups_rows(&groups);
  tm_rows_print_table(&rows, views, sizeof views / sizeof views[0], look, stream);
}

/* Where a plan's row has what. */
typedef struct plan_places {
  uint32_t name;
  uint32_t action;
  uint32_t mismatch;
  uint32_t message;
} plan_places;

static plan_places find_places(const tm_merge_plan *plan) {
  uint32_t         count = 0;
  const tm_column *columns = tm_merge_plan_columns(plan, &count);
  return (plan_places){ tm_column_find(columns, count, "name"), tm_column_find(columns, count, "action"),
                        tm_column_find(columns, count, "mismatch"), tm_column_find(columns, count, "message") };
}

#define MISMATCH_FORMAT "  %-6s  %-8s  "
#define MISMATCH_INDENT 20
/* Where lines are this short a sentence gets lines of its own. */
#define NARROW_WIDTH  72
#define NARROW_INDENT 4

/* What is done is a sentence, and the reason why the table is there: it is broken into lines, and never cut. */
static void print_mismatch(const plan_places *places, const tm_cell *cells, uint32_t width, tm_output_stream *stream) {
  char text[2048], name[1024];
  tm_printable_escape(cells[places->name].text, (size_t)cells[places->name].count, name, sizeof name);
  snprintf(text, sizeof text, "%s: %s", name[0] != '\0' ? name : "''",
           cells[places->message].defined != 0 ? cells[places->message].text : "");
  const bool is_narrow = width != 0 && width < NARROW_WIDTH;
  tm_output_format(stream, MISMATCH_FORMAT, cells[places->action].text, cells[places->mismatch].text);
  if (is_narrow) tm_output_format(stream, "\n%*s", NARROW_INDENT, "");
  tm_printable_wrap(stream, text, is_narrow ? NARROW_INDENT : MISMATCH_INDENT, width);
}

static bool has_text(const tm_cell *cell) { return cell->defined != 0 && cell->count != 0; }

/* What is said of many tensors in the same words is said of the first of them, and how many more there are. */
#define MOST_SAID 32

typedef struct said_text {
  const char *text;             /* the plan's */
  uint64_t    more;
} said_text;

typedef struct said_texts {
  said_text items[MOST_SAID];
  uint32_t  count;
} said_texts;

static bool was_said(said_texts *said, const tm_cell *message) {
  for (uint32_t i = 0; i < said->count; i++)
    if (strcmp(said->items[i].text, message->text) == 0) {
      said->items[i].more++;
      return true;
    }
  if (said->count < MOST_SAID) said->items[said->count++] = (said_text){ message->text, 0 };
  return false;
}

static void print_more(const said_texts *said, uint32_t width, tm_output_stream *stream) {
  char        text[2048];
  tm_quantity count;
  for (uint32_t i = 0; i < said->count; i++) {
    if (said->items[i].more == 0) continue;
    snprintf(text, sizeof text, "and %s more (--wide names them): %s", tm_quantity_count(said->items[i].more, &count), said->items[i].text);
    tm_output_format(stream, "  ");
    tm_printable_wrap(stream, text, 2, width);
  }
}

/* Of the rows that have something to say those with a mismatch, or those without. */
static void print_rows_told(const tm_merge_plan *plan, bool mismatches, bool names_all, uint32_t width, tm_output_stream *stream) {
  tm_cell           cells[TM_MAX_COLUMNS];
  bool              has_begun = false;
  said_texts        said = { .count = 0 };
  const plan_places places = find_places(plan);
  for (uint64_t row = 0; stream->error == 0 && plan_row(plan, row, cells); row++) {
    const bool is_mismatch = has_text(&cells[places.mismatch]);
    if (is_mismatch != mismatches || (!is_mismatch && !has_text(&cells[places.message]))) continue;
    if (!has_begun)
      tm_output_format(stream, "\n%s:\n" MISMATCH_FORMAT "tensor\n",
                       mismatches ? "what does not match" : "what else is told of tensors", "action", mismatches ? "mismatch" : "");
    has_begun = true;
    if (names_all || !has_text(&cells[places.message]) || !was_said(&said, &cells[places.message])) print_mismatch(&places, cells, width, stream);
  }
  print_more(&said, width, stream);
}

static void print_counts(const tm_merge_description *plan, tm_output_stream *stream) {
  tm_quantity a, b, c, d;
  tm_output_format(stream, "\n%s tensor%s: %s merged, %s copied", tm_quantity_count(plan->tensor_count, &a),
                   plural(plan->tensor_count), tm_quantity_count(plan->merged_count, &b),
                   tm_quantity_count(plan->copied_count, &c));
  if (plan->skipped_count > 0) tm_output_format(stream, "; %s left out", tm_quantity_count(plan->skipped_count, &d));
  if (plan->refused_count > 0) tm_output_format(stream, "; %s refused", tm_quantity_count(plan->refused_count, &d));
  tm_output_char(stream, '\n');
}

static void print_sizes(const tm_merge_description *plan, uint32_t width, tm_output_stream *stream) {
  char        text[256], files[32] = "", room[64] = "";
  tm_quantity a, b, c, d;
  if (plan->file_count > 1) snprintf(files, sizeof files, " in %u files", plan->file_count);
  if (plan->free_bytes != UINT64_MAX) snprintf(room, sizeof room, " (%s of disk free)", tm_quantity_bytes(plan->free_bytes, &c));
  snprintf(text, sizeof text, "reads %s, writes %s%s%s, takes about %s of memory", tm_quantity_bytes(plan->read_bytes, &a),
           tm_quantity_bytes(plan->written_bytes, &b), files, room, tm_quantity_bytes(plan->memory_bytes, &d));
  tm_printable_wrap(stream, text, 0, width);
}

static void print_losses(const tm_merge_plan *plan, tm_output_stream *stream) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *path = NULL;
  for (uint64_t i = 0; tm_merge_plan_file(plan, i, &file) == TM_OK; i++) {
    if (file.replaces == 0) continue;
    tm_output_text(stream, "replaces ");
    tm_printable_print(stream, file.path);
    tm_output_char(stream, '\n');
  }
  for (uint64_t i = 0; tm_merge_plan_removal(plan, i, &path) == TM_OK; i++) {
    tm_output_text(stream, "removes ");
    tm_printable_print(stream, path);
    tm_output_char(stream, '\n');
  }
}

void tm_merge_plan_print(const tm_merge_plan *plan, const tm_merge_request *request, bool names_all, tm_table_look look,
                         tm_output_stream *stream) {
  tm_merge_description description = { .struct_size = sizeof description };
  const char *note = NULL;
  tm_merge_plan_describe(plan, &description);
  print_head(request, stream);
  print_groups(plan, &look, stream);
  print_rows_told(plan, true, names_all, look.width, stream);
  print_rows_told(plan, false, names_all, look.width, stream);
  print_counts(&description, stream);
  print_sizes(&description, look.width, stream);
  print_losses(plan, stream);
  for (uint64_t i = 0; tm_merge_plan_note(plan, i, &note) == TM_OK; i++) tm_printable_about(stream, "note", note, look.width);
}

/* ------------------------------------------------------------------------------------------------ for programs ---- */

static void print_counts_json(const tm_merge_description *plan, tm_json_writer *json) {
  tm_json_count(json, "tensors", plan->tensor_count);
  tm_json_count(json, "merged", plan->merged_count);
  tm_json_count(json, "copied", plan->copied_count);
  tm_json_count(json, "skipped", plan->skipped_count);
  tm_json_count(json, "mismatches", plan->mismatch_count);
  tm_json_count(json, "refused", plan->refused_count);
  tm_json_count(json, "read_bytes", plan->read_bytes);
  tm_json_count(json, "written_bytes", plan->written_bytes);
  tm_json_count(json, "file_bytes", plan->file_bytes);
  if (plan->free_bytes == UINT64_MAX)
    tm_json_null(json, "free_bytes");
  else
    tm_json_count(json, "free_bytes", plan->free_bytes);
  tm_json_count(json, "memory_bytes", plan->memory_bytes);
}

static void print_files_json(const tm_merge_plan *plan, tm_json_writer *json) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *path = NULL;
  tm_json_begin_array(json, "files", false);
  for (uint64_t i = 0; tm_merge_plan_file(plan, i, &file) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "path", file.path);
    tm_json_count(json, "bytes", file.bytes);
    tm_json_bool(json, "replaces", file.replaces != 0);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
  tm_json_begin_array(json, "removes", false);
  for (uint64_t i = 0; tm_merge_plan_removal(plan, i, &path) == TM_OK; i++) tm_json_text(json, NULL, path);
  tm_json_end_array(json);
}

static void print_sentences_json(const tm_merge_plan *plan, tm_json_writer *json) {
  const char *text = NULL;
  tm_json_begin_array(json, "problems", false);
  for (uint64_t i = 0; tm_merge_plan_problem(plan, i, &text) == TM_OK; i++) tm_json_text(json, NULL, text);
  tm_json_end_array(json);
  tm_json_begin_array(json, "notes", false);
  for (uint64_t i = 0; tm_merge_plan_note(plan, i, &text) == TM_OK; i++) tm_json_text(json, NULL, text);
  tm_json_end_array(json);
}

void tm_merge_plan_print_json(const tm_merge_plan *plan, tm_json_writer *json) {
  tm_merge_description description = { .struct_size = sizeof description };
  tm_cell          cells[TM_MAX_COLUMNS];
  uint32_t         count = 0;
  const tm_column *columns = tm_merge_plan_columns(plan, &count);
  tm_merge_plan_describe(plan, &description);
  tm_json_begin_object(json, "plan", false);
  print_counts_json(&description, json);
  print_files_json(plan, json);
  print_sentences_json(plan, json);
  tm_json_begin_array(json, "rows", false);
  for (uint64_t row = 0; plan_row(plan, row, cells); row++) tm_merge_row_print_json(plan, row, columns, count, cells, json);
  tm_json_end_array(json);
  tm_json_end_object(json);
}
