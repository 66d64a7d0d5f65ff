/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "format_totals.h"
#include "json_writer.h"
#include "name_filter.h"
#include "nearest_name.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_selection.h"
#include "session.h"

/* Suggestions look at so many names at most: beyond, guessing would take longer than the work. */
#define SUGGESTION_LIMIT 10000

typedef struct inspection {
  tm_invocation            *invocation;
  tm_checkpoint            *checkpoint;
  tm_checkpoint_description about;
  tm_row_selection          selection;
  uint64_t                 *chosen;     /* tensors that pass the filter */
  uint64_t                  chosen_count;
  bool                      has_states; /* some of these are not whole */
  tm_format_totals          totals;     /* over these */
} inspection;

/* ------------------------------------------------------------------------------------------------- tensors as rows
 * ---- */

static const tm_column tensor_columns[] = {
  { "name", TM_COLUMN_TEXT, 0, "" },   { "dtype", TM_COLUMN_TEXT, 0, "" },  { "shape", TM_COLUMN_SHAPE, 0, "" },
  { "count", TM_COLUMN_COUNT, 0, "" }, { "bytes", TM_COLUMN_BYTES, 0, "" }, { "offset", TM_COLUMN_COUNT, 0, "" },
  { "file", TM_COLUMN_TEXT, 0, "" },   { "type", TM_COLUMN_TEXT, 0, "" },   { "state", TM_COLUMN_TEXT, 0, "" } };
#define TENSOR_COLUMN_COUNT (sizeof tensor_columns / sizeof tensor_columns[0])

static const tm_column_style tensor_styles[] = {
  { "name", NULL, 16, 0, false, TM_SHOWN_ALWAYS },    { "dtype", NULL, 0, 0, false, TM_SHOWN_ALWAYS },
  { "shape", NULL, 0, 1, false, TM_SHOWN_ALWAYS },    { "bytes", NULL, 0, 0, false, TM_SHOWN_ALWAYS },
  { "offset", NULL, 0, 3, false, TM_SHOWN_ALWAYS },   { "file", NULL, 12, 2, false, TM_SHOWN_IF_VARIED },
  { "state", NULL, 0, 0, false, TM_SHOWN_IF_VARIED } };
#define TENSOR_STYLE_COUNT (sizeof tensor_styles / sizeof tensor_styles[0])
#define PLAIN_STYLE_COUNT  (TENSOR_STYLE_COUNT - 2)     /* of whole tensors of one file: nothing can vary, and nobody has to look */

/* A type without a format here may still have a size: by its name, or by where the file says that its data end. */
static bool has_size(const tm_tensor_description *tensor) {
  return (tensor->flags & TM_TENSOR_UNKNOWN_TYPE) == 0 || tensor->bytes != 0 || tensor->element_count == 0;
}

static const char *state_of(const tm_tensor_description *tensor) {
  if ((tensor->flags & TM_TENSOR_INCOMPLETE) != 0) return "incomplete";
  if ((tensor->flags & TM_TENSOR_UNKNOWN_TYPE) == 0) return "whole";
  return has_size(tensor) ? "not decoded" : "unknown type";
}

static const char *dtype_of(const tm_tensor_description *tensor) {
  return tensor->format != TM_FORMAT_NONE ? tm_format_name(tensor->format) : tensor->type_name;
}

static bool tensor_row(const void *source, uint64_t row, tm_cell *cells) {
  const inspection     *inspect = source;
  tm_tensor_description tensor = { .struct_size = sizeof tensor };
  tm_file_description   file = { .struct_size = sizeof file, .path = "" };
  if (row >= inspect->chosen_count || tm_checkpoint_tensor(inspect->checkpoint, inspect->chosen[row], &tensor) != TM_OK)
    return false;
  if (inspect->about.file_count > 1) tm_checkpoint_file(inspect->checkpoint, tensor.file, &file);
  const char *base = strrchr(file.path, '/');
  cells[0] = tm_cell_text_of(tensor.name, tensor.name_length);
  cells[1] = tm_cell_text(dtype_of(&tensor));
  cells[2] = tm_cell_shape(tensor.dims, tensor.rank);
  cells[3] = tm_cell_count(tensor.element_count);
  cells[4] = has_size(&tensor) ? tm_cell_bytes(tensor.bytes) : tm_cell_undefined(TM_COLUMN_BYTES);
  cells[5] = tm_cell_count(tensor.offset);
  cells[6] = tm_cell_text(base != NULL ? base + 1 : file.path);
  cells[7] = tm_cell_text(tensor.type_name);
  cells[8] = tm_cell_text(state_of(&tensor));
  return true;
}

static const tm_column metadata_columns[] = {
  { "key", TM_COLUMN_TEXT, 0, "" }, { "type", TM_COLUMN_TEXT, 0, "" }, { "value", TM_COLUMN_TEXT, 0, "" } };
static const tm_column_view metadata_views[] = { { 0, 16, 0, false, NULL },
                                                 { 1, 6, 1, false, NULL },
                                                 { 2, 16, 0, false, NULL } };

static bool metadata_row(const void *source, uint64_t row, tm_cell *cells) {
  const inspection       *inspect = source;
  tm_metadata_description metadata = { .struct_size = sizeof metadata };
  if (tm_checkpoint_metadata(inspect->checkpoint, row, &metadata) != TM_OK) return false;
  cells[0] = tm_cell_text_of(metadata.key, metadata.key_length);
  cells[1] = tm_cell_text(metadata.type);
  cells[2] = tm_cell_text_of(metadata.value, metadata.value_length);
  return true;
}

/* ---------------------------------------------------------------------------------------------------- choosing ---- */

static tm_status refuse_idle(const inspection *inspect, const char *pattern, tm_error *error) {
  tm_nearest_name       nearest;
  tm_tensor_description tensor = { .struct_size = sizeof tensor };
  tm_nearest_name_init(&nearest, pattern);
  for (uint64_t i = 0; i < SUGGESTION_LIMIT && tm_checkpoint_tensor(inspect->checkpoint, i, &tensor) == TM_OK; i++)
    tm_nearest_name_offer(&nearest, tensor.name);
  return tm_refuse(error, TM_ERROR_ARGUMENT, "--tensor \"%s\" matches no tensor of %s%s%s%s", pattern,
                   inspect->about.path, nearest.best != NULL ? "; did you mean \"" : "",
                   nearest.best != NULL ? nearest.best : "", nearest.best != NULL ? "\"?" : "");
}

static tm_status choose(inspection *inspect, tm_name_filter *filter, tm_error *error) {
  tm_tensor_description tensor = { .struct_size = sizeof tensor };
  inspect->chosen = calloc((size_t)inspect->about.tensor_count + 1, sizeof *inspect->chosen);
  if (inspect->chosen == NULL) return tm_refuse(error, TM_ERROR_NO_MEMORY, "out of memory for %llu tensors",
                                                (unsigned long long)inspect->about.tensor_count);
  for (uint64_t i = 0; i < inspect->about.tensor_count; i++) {
    if (tm_checkpoint_tensor(inspect->checkpoint, i, &tensor) != TM_OK) break;
    if (!tm_name_filter_passes(filter, tensor.name)) continue;
    inspect->chosen[inspect->chosen_count++] = i;
    inspect->has_states |= tensor.flags != 0;
    tm_format_totals_add(&inspect->totals, dtype_of(&tensor), tensor.element_count, tensor.bytes, has_size(&tensor));
  }
  tm_format_totals_sort(&inspect->totals);
  const char *idle = tm_name_filter_idle(filter);
  return idle == NULL ? TM_OK : refuse_idle(inspect, idle, error);
}

/* ---------------------------------------------------------------------------------------------------- printing ---- */

static bool wants(const inspection *inspect, const char *flag) {
  return tm_arguments_has(&inspect->invocation->arguments, flag);
}

static void print_heading(const inspection *inspect, const char *text) {
  const bool color = inspect->invocation->terminal.color;
  tm_output_format(inspect->invocation->output, "\n%s%s%s\n", color ? "\x1b[1m" : "", text, color ? "\x1b[0m" : "");
}

static void print_summary(const inspection *inspect) {
  const tm_checkpoint_description *about = &inspect->about;
  const tm_terminal *terminal = &inspect->invocation->terminal;
  tm_quantity        size, count, chosen;
  char               path[4096], text[4096 + 256];
  tm_printable_escape(about->path, strlen(about->path), path, sizeof path);
  snprintf(text, sizeof text, "%s: %s, %u file%s, %s, %s tensor%s", path, about->format, about->file_count,
           about->file_count == 1 ? "" : "s", tm_quantity_bytes(about->file_bytes, &size),
           tm_quantity_count(about->tensor_count, &count), about->tensor_count == 1 ? "" : "s");
  const size_t used = strlen(text);
  if (inspect->chosen_count != about->tensor_count)
    snprintf(text + used, sizeof text - used, " (%s chosen)", tm_quantity_count(inspect->chosen_count, &chosen));
  tm_printable_wrap(inspect->invocation->output, text, 0, terminal->width);
}

static void print_notes(const inspection *inspect) {
  const char *note = NULL;
  char        text[1024];
  for (uint64_t i = 0; tm_checkpoint_note(inspect->checkpoint, i, &note) == TM_OK; i++) {
    if (i == 0) print_heading(inspect, "notes");
    tm_printable_escape(note, strlen(note), text, sizeof text);
    tm_output_repeat(inspect->invocation->output, ' ', 2);
    tm_printable_wrap(inspect->invocation->output, text, 2, inspect->invocation->terminal.width);
  }
}

static void print_tables(const inspection *inspect, const tm_rows *rows) {
  tm_output_stream   *stream = inspect->invocation->output;
  const tm_terminal  *terminal = &inspect->invocation->terminal;
  const tm_table_look         look = { .width = wants(inspect, "wide") ? 0 : terminal->width,
                                       .indent = 2,
                                       .color = terminal->color,
                                       .all_in = "--wide and --json show" };
  const tm_rows       metadata = { metadata_columns, 3, metadata_row, inspect, inspect->about.metadata_count, NULL };
  static const tm_column_view total_views[] = { { .column = 0 }, { .column = 1 }, { .column = 2 }, { .column = 3 } };
  print_summary(inspect);
  if (metadata.count > 0) {
    print_heading(inspect, "metadata");
    tm_rows_print_table(&metadata, metadata_views, 3, &look, stream);
  }
  if (!inspect->invocation->preferences.quiet) print_notes(inspect);
  if (wants(inspect, "metadata-only")) return;
  if (rows->count > 0) {
    print_heading(inspect, "tensors");
    const bool is_plain = inspect->about.file_count <= 1 && !inspect->has_states;
    const uint32_t styles = is_plain ? PLAIN_STYLE_COUNT : TENSOR_STYLE_COUNT;
    tm_row_selection_print(&inspect->selection, rows, tensor_styles, styles, look, stream);
  }
  if (inspect->totals.count == 0) return;
  const tm_rows totals = tm_format_totals_rows(&inspect->totals);
  print_heading(inspect, "totals");
  tm_rows_print_table(&totals, total_views, 4, &look, stream);
}

static void print_rows_json(const char *key, const tm_rows *rows, uint32_t skip, tm_json_writer *json) {
  tm_cell cells[TM_MAX_COLUMNS];
  tm_json_begin_array(json, key, false);
  for (uint64_t row = 0; row < rows->count && json->stream->error == 0; row++) {
    if (!rows->row(rows->source, rows->order != NULL ? rows->order[row] : row, cells)) break;
    tm_row_print_json(rows->columns, rows->column_count, cells, skip, json);
  }
  tm_json_end_array(json);
}

static void print_files_json(const inspection *inspect, tm_json_writer *json) {
  tm_file_description file = { .struct_size = sizeof file };
  tm_json_begin_array(json, "files", false);
  for (uint32_t i = 0; tm_checkpoint_file(inspect->checkpoint, i, &file) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "path", file.path);
    tm_json_count(json, "bytes", file.bytes);
    tm_json_bool(json, "mapped", file.mapped != 0);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

static void print_notes_json(const inspection *inspect, tm_json_writer *json) {
  const char *note = NULL;
  tm_json_begin_array(json, "notes", false);
  for (uint64_t i = 0; tm_checkpoint_note(inspect->checkpoint, i, &note) == TM_OK; i++) tm_json_text(json, NULL, note);
  tm_json_end_array(json);
}

static void print_json(const inspection *inspect, const tm_rows *rows) {
  const tm_rows metadata = { metadata_columns, 3, metadata_row, inspect, inspect->about.metadata_count, NULL };
  const tm_rows totals = tm_format_totals_rows(&inspect->totals);
  const uint32_t file_column = 6, no_file = inspect->about.file_count > 1 ? 0 : 1u << file_column;
  tm_json_writer json;
  tm_json_init(&json, inspect->invocation->output);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.inspect/1");
  tm_json_text(&json, "path", inspect->about.path);
  tm_json_text(&json, "format", inspect->about.format);
  tm_json_count(&json, "file_bytes", inspect->about.file_bytes);
  tm_json_count(&json, "tensor_bytes", inspect->about.tensor_bytes);
  tm_json_count(&json, "tensor_count", inspect->about.tensor_count);
  tm_json_count(&json, "incomplete_count", inspect->about.incomplete_count);
  print_files_json(inspect, &json);
  print_notes_json(inspect, &json);
  print_rows_json("metadata", &metadata, 0, &json);
  if (!wants(inspect, "metadata-only")) {
    print_rows_json("tensors", rows, no_file, &json);
    print_rows_json("totals", &totals, 0, &json);
  }
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

static void print_csv(const inspection *inspect, const tm_rows *rows) {
  tm_output_stream *stream = inspect->invocation->output;
  tm_cell           cells[TM_MAX_COLUMNS];
  tm_rows_print_csv_heading(rows->columns, rows->column_count, stream);
  for (uint64_t row = 0; row < rows->count && stream->error == 0; row++)
    if (rows->row(rows->source, rows->order != NULL ? rows->order[row] : row, cells))
      tm_row_print_csv(rows->columns, rows->column_count, cells, stream);
}

static int complain_incomplete(const inspection *inspect) {
  tm_tensor_description tensor = { .struct_size = sizeof tensor };
  tm_file_description   file = { .struct_size = sizeof file };
  uint64_t              first = 0;
  while (tm_checkpoint_tensor(inspect->checkpoint, first, &tensor) == TM_OK &&
         (tensor.flags & TM_TENSOR_INCOMPLETE) == 0)
    first++;
  tm_checkpoint_file(inspect->checkpoint, tensor.file, &file);
  return tm_complain_as(
      TM_EXIT_TROUBLE,
      "%s: truncated: %llu of %llu tensors %s incomplete; the first is %.200s, bytes %llu to %llu of a file of %llu; "
      "fetch the file again",
      file.path, (unsigned long long)inspect->about.incomplete_count, (unsigned long long)inspect->about.tensor_count,
      inspect->about.incomplete_count == 1 ? "is" : "are", tensor.name, (unsigned long long)tensor.offset,
      (unsigned long long)(tensor.offset + tensor.bytes), (unsigned long long)file.bytes);
}

static int print(inspection *inspect, tm_error *error) {
  tm_rows   rows = { tensor_columns, TENSOR_COLUMN_COUNT, tensor_row, inspect, inspect->chosen_count, NULL };
  uint64_t *order = NULL;
  if (tm_row_selection_apply(&inspect->selection, &rows, &order, error) != TM_OK) return tm_complain(error);
  if (inspect->invocation->preferences.json)
    print_json(inspect, &rows);
  else if (inspect->selection.is_csv)
    print_csv(inspect, &rows);
  else
    print_tables(inspect, &rows);
  free(order);
  tm_output_flush(inspect->invocation->output);
  return inspect->about.incomplete_count > 0 ? complain_incomplete(inspect) : TM_EXIT_OK;
}

static int inspect_file(tm_context *context, inspection *inspect, tm_error *error) {
  tm_name_filter filter;
  if (tm_checkpoint_open(context, inspect->invocation->arguments.operands[0], TM_CHECKPOINT_ALLOW_INCOMPLETE,
                         &inspect->checkpoint, error) != TM_OK) {
    tm_complain(error);
    return TM_EXIT_TROUBLE;
  }
  inspect->about.struct_size = sizeof inspect->about;
  tm_checkpoint_describe(inspect->checkpoint, &inspect->about);
  int exit_code = TM_EXIT_OK;
  if (tm_name_filter_init(&filter, &inspect->invocation->arguments, error) != TM_OK ||
      choose(inspect, &filter, error) != TM_OK)
    exit_code = tm_complain(error);
  else
    exit_code = print(inspect, error);
  tm_name_filter_deinit(&filter);
  free(inspect->chosen);
  tm_checkpoint_close(inspect->checkpoint);
  return exit_code;
}

static int run(tm_invocation *invocation) {
  const tm_session_needs needs = { .max_header_bytes = tm_arguments_size(&invocation->arguments, "max-header", 0) };
  tm_context *context = NULL;
  tm_error    error = TM_CLI_ERROR_INIT;
  inspection *inspect = calloc(1, sizeof *inspect);
  if (inspect == NULL) return tm_complain_as(TM_EXIT_TROUBLE, "out of memory");
  inspect->invocation = invocation;
  int exit_code = TM_EXIT_OK;
  if (tm_row_selection_parse(&invocation->arguments, tensor_columns, TENSOR_COLUMN_COUNT, &inspect->selection,
                             &error) != TM_OK ||
      tm_session_open(&invocation->preferences, &needs, &context, &error) != TM_OK)
    exit_code = tm_complain(&error);
  else
    exit_code = inspect_file(context, inspect, &error);
  tm_context_destroy(context);
  free(inspect);
  return exit_code;
}

static const tm_flag flags[] = {
  TM_NAME_FILTER_FLAGS,
  TM_ROW_SELECTION_FLAGS,
  { "metadata-only", 0, TM_FLAG_SWITCH, false, NULL, "print no tensors" },
  { "max-header", 0, TM_FLAG_SIZE, false, "SIZE", "accept headers up to this size (usually 100 MB; 0: the usual)" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_inspect = {
  .name = "inspect",
  .operands = "FILE",
  .operand_min = 1,
  .operand_max = 1,
  .summary = "list what a checkpoint holds: metadata, tensors with format, shape, bytes and place, totals per format",
  .notes =
      "FILE is a safetensors, GGUF, ONNX or npy file, any file of a model in several, the index of a sharded set, or a "
      "folder with one of them. Of a truncated file the whole tensors are listed, the others marked, and the exit code is 3. Of a "
      "file that cannot be opened nothing is printed but the reason, on the error stream, with --json as well; the exit code is 3.",
  .flags = flags,
  .run = run,
};
