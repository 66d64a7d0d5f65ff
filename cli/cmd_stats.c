/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "finite_check.h"
#include "interrupt.h"
#include "job_report.h"
#include "job_watch.h"
#include "name_filter.h"
#include "nearest_name.h"
#include "printable_text.h"
#include "row_selection.h"
#include "session.h"

static const tm_column_style styles[] = {
  { "file", NULL, 12, 6, false, TM_SHOWN_IF_VARIED },   { "name", NULL, 16, 0, false, TM_SHOWN_ALWAYS },
  { "dtype", NULL, 0, 3, false, TM_SHOWN_ALWAYS },      { "shape", NULL, 0, 5, false, TM_SHOWN_ALWAYS },
  { "nan", NULL, 0, 0, true, TM_SHOWN_IF_NONZERO },     { "pos_inf", "+inf", 0, 0, true, TM_SHOWN_IF_NONZERO },
  { "neg_inf", "-inf", 0, 0, true, TM_SHOWN_IF_NONZERO }, { "min", NULL, 0, 1, false, TM_SHOWN_ALWAYS },
  { "max", NULL, 0, 1, false, TM_SHOWN_ALWAYS },        { "mean", NULL, 0, 2, false, TM_SHOWN_ALWAYS },
  { "std", NULL, 0, 4, false, TM_SHOWN_ALWAYS } };
#define STYLE_COUNT (sizeof styles / sizeof styles[0])

typedef struct stats_run {
  tm_invocation   *invocation;
  tm_context      *context;
  tm_checkpoint  **checkpoints;
  uint32_t         checkpoint_count;
  tm_job          *job;
  const tm_column *columns;     /* the job's */
  uint32_t         column_count;
  tm_row_selection selection;
  tm_json_writer   json;
  bool             has_begun;   /* the document */
  uint64_t         printed;     /* rows that were printed while the job ran */
  int              signal_number;
  tm_status        status;      /* how the job ended */
  tm_error         error;
  tm_error         unopened;    /* of the first file that could not be opened; its code is TM_OK if all could */
  tm_finite_check  finite;
  tm_elsewhere_notes elsewhere;
} stats_run;

static bool stats_row(const void *source, uint64_t row, tm_cell *cells) {
  return tm_job_row((const tm_job *)source, row, cells) == TM_OK;
}

static bool is_json(const stats_run *stats) { return stats->invocation->preferences.json; }

/* With one file its name says nothing in every row. */
static uint32_t skipped_columns(const stats_run *stats) {
  const uint32_t file = tm_column_find(stats->columns, stats->column_count, "file");
  return stats->invocation->arguments.operand_count > 1 || file == TM_NO_COLUMN ? 0 : 1u << file;
}

/* ------------------------------------------------------------------------------------------- rows for machines ---- */

/* Not before there is something to say: a job that finds nothing to do leaves no half of a document. */
static void begin_document(stats_run *stats) {
  if (stats->has_begun) return;
  stats->has_begun = true;
  if (is_json(stats)) {
    tm_json_init(&stats->json, stats->invocation->output);
    tm_json_begin_object(&stats->json, NULL, false);
    tm_json_text(&stats->json, "schema", "tensormorph.stats/1");
    tm_json_begin_array(&stats->json, "tensors", false);
  } else if (stats->selection.is_csv) {
    tm_rows_print_csv_heading(stats->columns, stats->column_count, stats->invocation->output);
  }
}

static void print_machine_row(stats_run *stats, const tm_cell *cells) {
  if (is_json(stats))
    tm_row_print_json(stats->columns, stats->column_count, cells, skipped_columns(stats), &stats->json);
  else
    tm_row_print_csv(stats->columns, stats->column_count, cells, stats->invocation->output);
}

/* Machines get rows as they are finished, where nothing has to be known of the later ones. */
static bool prints_meanwhile(const stats_run *stats) {
  return !tm_row_selection_needs_all(&stats->selection) && (is_json(stats) || stats->selection.is_csv);
}

static void print_finished_rows(stats_run *stats) {
  tm_cell cells[TM_MAX_COLUMNS];
  if (!prints_meanwhile(stats)) return;
  const uint64_t finished = tm_job_row_count(stats->job);
  const uint64_t end = finished < stats->selection.top ? finished : stats->selection.top;
  if (stats->printed == end) return;
  begin_document(stats);
  for (; stats->printed < end && stats_row(stats->job, stats->printed, cells); stats->printed++)
    print_machine_row(stats, cells);
  tm_output_flush(stats->invocation->output);
}

static void print_sorted_rows(stats_run *stats, const tm_rows *rows) {
  tm_cell cells[TM_MAX_COLUMNS];
  for (uint64_t i = 0; i < rows->count; i++)
    if (rows->row(rows->source, rows->order != NULL ? rows->order[i] : i, cells)) print_machine_row(stats, cells);
}

/* ----------------------------------------------------------------------------------------------------- waiting ---- */

static void meanwhile(void *context) { print_finished_rows(context); }

static void wait_for_job(stats_run *stats) {
  /* Rows that go to the same terminal meanwhile would tear the line apart. */
  const bool shows_progress =
      !stats->invocation->preferences.quiet && !(prints_meanwhile(stats) && stats->invocation->terminal.is_interactive);
  tm_job_watch watch = { stats->invocation, stats->job, shows_progress, meanwhile, stats, 0 };
  stats->status = tm_job_watch_wait(&watch, &stats->error);
  stats->signal_number = watch.signal_number;
}

/* ------------------------------------------------------------------------------------------------------ checks ---- */

static bool is_device_of(const char *device, const char *backend) {
  const size_t length = strlen(backend);
  return strncmp(device, backend, length) == 0 && (device[length] == ':' || device[length] == '\0');
}

/* --require-backend */
static int check_backend(const stats_run *stats, const char *backend) {
  tm_device_usage usage = { .struct_size = sizeof usage };
  for (uint32_t i = 0; tm_job_device_usage(stats->job, i, &usage) == TM_OK; i++)
    if (usage.operation_count > 0 && !is_device_of(usage.device_name, backend))
      return tm_complain_as(TM_EXIT_FOUND, "--require-backend %s: %llu operation%s ran on %s", backend,
                            (unsigned long long)usage.operation_count, usage.operation_count == 1 ? "" : "s", usage.device_name);
  return TM_EXIT_OK;
}

/* Names a backend that does not exist before any work is done. */
static tm_status check_backend_name(tm_context *context, const char *name, tm_error *error) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  tm_nearest_name        nearest;
  if (name == NULL) return TM_OK;
  tm_nearest_name_init(&nearest, name);
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    if (strcmp(backend.name, name) == 0) return TM_OK;
    tm_nearest_name_offer(&nearest, backend.name);
  }
  return tm_refuse(error, TM_ERROR_ARGUMENT, "--require-backend: unknown backend \"%s\"%s%s%s", name,
                   nearest.best != NULL ? "; did you mean \"" : "; tensormorph backends lists all",
                   nearest.best != NULL ? nearest.best : "", nearest.best != NULL ? "\"?" : "");
}

/* --------------------------------------------------------------------------------------------------- the whole ---- */

/* Names differ in their middle ("layer.3"), which shortening takes first: they get nearly half the width before figures do. */
static void print_rows(const stats_run *stats, const tm_rows *rows, tm_table_look look) {
  tm_column_style wider[STYLE_COUNT];
  memcpy(wider, styles, sizeof wider);
  for (size_t i = 0; i < STYLE_COUNT; i++) {
    const uint32_t share = (uint32_t)(look.width * 3 / 7);
    if (strcmp(wider[i].name, "name") == 0 && share > wider[i].least_width) wider[i].least_width = share;
  }
  tm_row_selection_print(&stats->selection, rows, wider, STYLE_COUNT, look, stats->invocation->output);
}

/* Columns for NaN and infinities are not there when they would be all zero, so that is said. */
static void print_table(stats_run *stats, const tm_rows *rows, const tm_job_report *report) {
  const tm_terminal  *terminal = &stats->invocation->terminal;
  const tm_table_look look = { .width = terminal->width, .color = terminal->color };
  tm_output_stream   *stream = stats->invocation->output;
  if (rows->count > 0) print_rows(stats, rows, look);
  tm_job_report_print(report, !stats->invocation->preferences.quiet, terminal->width, stream);
  if (stats->status == TM_OK && !stats->invocation->preferences.quiet) tm_finite_check_print(&stats->finite, stream);
}

/* A document that lacks a file that was asked for is not complete, however well the others went. */
static tm_job_report report_of(const stats_run *stats) {
  const bool lacks_file = stats->status == TM_OK && stats->unopened.code != TM_OK;
  return (tm_job_report){ stats->job, lacks_file ? stats->unopened.code : stats->status,
                          lacks_file ? &stats->unopened : &stats->error, stats->signal_number != 0, &stats->elsewhere };
}

static void print_result(stats_run *stats, const tm_rows *rows) {
  tm_job_report report = { stats->job, stats->status, &stats->error, stats->signal_number != 0, &stats->elsewhere };
  begin_document(stats);
  if (is_json(stats)) {
    report = report_of(stats);
    if (tm_row_selection_needs_all(&stats->selection)) print_sorted_rows(stats, rows);
    tm_json_end_array(&stats->json);
    tm_job_report_print_json(&report, &stats->json);
    tm_json_end_object(&stats->json);
    tm_json_finish(&stats->json);
  } else if (stats->selection.is_csv) {
    if (tm_row_selection_needs_all(&stats->selection)) print_sorted_rows(stats, rows);
    if (!stats->invocation->preferences.quiet) tm_job_report_complain_notes(&report);
  } else {
    print_table(stats, rows, &report);
  }
  tm_output_flush(stats->invocation->output);
}

/* What the user asked to be told comes last, so that it stands below everything else. */
static int judge(stats_run *stats) {
  const char *backend = tm_arguments_value(&stats->invocation->arguments, "require-backend");
  int         exit_code = TM_EXIT_OK;
  if (stats->signal_number != 0) {
    fputs("tensormorph: interrupted; what was finished is printed\n", stderr);
    return tm_interrupt_exit_code(stats->signal_number);
  }
  /* Nobody reads any more; that was said by ending the job. */
  if (stats->invocation->output->error != 0) return TM_EXIT_TROUBLE;
  if (stats->status != TM_OK) {
    tm_complain(&stats->error);
    return TM_EXIT_TROUBLE;
  }
  if (backend != NULL) exit_code = check_backend(stats, backend);
  if (tm_arguments_has(&stats->invocation->arguments, "fail-on-nonfinite") &&
      tm_finite_check_judge(&stats->finite, stats->job) != TM_EXIT_OK)
    exit_code = TM_EXIT_FOUND;
  return stats->unopened.code != TM_OK ? TM_EXIT_TROUBLE : exit_code;
}

/* A pattern that matches nothing is a mistyped name; a job that got as far as its files has totals. */
static bool matched_nothing(const stats_run *stats) {
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(stats->job, &progress);
  return stats->status == TM_ERROR_NOT_FOUND && progress.items_total == 0;
}

static int run_job(stats_run *stats) {
  wait_for_job(stats);
  tm_interrupt_watch_begin(&stats->invocation->interrupt);
  if (matched_nothing(stats)) {
    tm_complain(&stats->error);
    return TM_EXIT_USAGE;
  }
  tm_rows   rows = { stats->columns, stats->column_count, stats_row, stats->job, tm_job_row_count(stats->job), NULL };
  uint64_t *order = NULL;
  tm_error  error = TM_CLI_ERROR_INIT;
  if (tm_row_selection_apply(&stats->selection, &rows, &order, &error) != TM_OK) return tm_complain(&error);
  tm_finite_check_make(&stats->finite, stats->job);
  tm_elsewhere_notes_make(&stats->elsewhere, stats->context, &stats->invocation->preferences.devices, TM_OP_STATS, stats->job);
  print_result(stats, &rows);
  free(order);
  return judge(stats);
}

static int start_job(stats_run *stats) {
  tm_name_filter filter;
  if (tm_name_filter_init(&filter, &stats->invocation->arguments, &stats->error) != TM_OK)
    return tm_complain(&stats->error);
  const tm_stats_options options = {
    .struct_size = sizeof options,
    .worst_numerics = TM_NUMERICS_DEFAULT,
    .include = filter.include,
    .exclude = filter.exclude,
    .include_count = filter.include_count,
    .exclude_count = filter.exclude_count,
  };
  tm_interrupt_watch_pause(&stats->invocation->interrupt);
  const tm_status status = tm_job_start_stats(stats->context, stats->checkpoints, stats->checkpoint_count, &options,
                                              &stats->job, &stats->error);
  int exit_code = TM_EXIT_OK;
  if (status == TM_OK) stats->columns = tm_job_columns(stats->job, &stats->column_count);
  if (status != TM_OK || tm_row_selection_parse(&stats->invocation->arguments, stats->columns, stats->column_count,
                                                &stats->selection, &stats->error) != TM_OK)
    exit_code = tm_complain(&stats->error);
  else
    exit_code = run_job(stats);
  tm_interrupt_watch_begin(&stats->invocation->interrupt);
  tm_job_destroy(stats->job);
  tm_name_filter_deinit(&filter);
  return exit_code;
}

/* A file that cannot be opened is told at once and costs the others nothing. */
static void open_files(stats_run *stats) {
  const tm_arguments *arguments = &stats->invocation->arguments;
  for (uint32_t i = 0; i < arguments->operand_count; i++) {
    tm_error        error = TM_CLI_ERROR_INIT;
    tm_checkpoint **next = &stats->checkpoints[stats->checkpoint_count];
    if (tm_checkpoint_open(stats->context, arguments->operands[i], 0, next, &error) == TM_OK) {
      stats->checkpoint_count++;
    } else {
      tm_complain(&error);
      if (stats->unopened.code == TM_OK) stats->unopened = error;
    }
  }
}

static int open_and_run(stats_run *stats) {
  stats->checkpoints = calloc(stats->invocation->arguments.operand_count, sizeof *stats->checkpoints);
  if (stats->checkpoints == NULL) return tm_complain_as(TM_EXIT_TROUBLE, "out of memory");
  open_files(stats);
  const int exit_code = stats->checkpoint_count > 0 ? start_job(stats) : TM_EXIT_TROUBLE;
  for (uint32_t i = 0; i < stats->checkpoint_count; i++) tm_checkpoint_close(stats->checkpoints[i]);
  free(stats->checkpoints);
  return exit_code;
}

static int run(tm_invocation *invocation) {
  const bool             reproducible = tm_arguments_has(&invocation->arguments, "reproducible");
  const tm_session_needs needs = { .uses_profile = true,
                                   .flags = reproducible ? TM_CONTEXT_REPRODUCIBLE : 0,
                                   .max_header_bytes = tm_arguments_size(&invocation->arguments, "max-header", 0) };
  stats_run stats = { .invocation = invocation, .error = TM_CLI_ERROR_INIT, .unopened = TM_CLI_ERROR_INIT };
  if (tm_session_open(&invocation->preferences, &needs, &stats.context, &stats.error) != TM_OK)
    return tm_complain(&stats.error);
  int exit_code = TM_EXIT_OK;
  if (check_backend_name(stats.context, tm_arguments_value(&invocation->arguments, "require-backend"), &stats.error) !=
          TM_OK ||
      tm_session_require_device(stats.context, &stats.error) != TM_OK)
    exit_code = tm_complain(&stats.error);
  else
    exit_code = open_and_run(&stats);
  tm_context_destroy(stats.context);
  return exit_code;
}

static const tm_flag flags[] = {
  TM_NAME_FILTER_FLAGS,
  TM_ROW_SELECTION_FLAGS,
  { "reproducible", 0, TM_FLAG_SWITCH, false, NULL,
    "only devices whose results are equal to the reference, bit for bit" },
  { "require-backend", 0, TM_FLAG_TEXT, false, "NAME", "exit with 1 if work ran on any other backend" },
  { "fail-on-nonfinite", 0, TM_FLAG_SWITCH, false, NULL, "exit with 1 if any tensor holds NaN or infinities, or could not be examined for them" },
  { "max-header", 0, TM_FLAG_SIZE, false, "SIZE", "accept headers up to this size (usually 100 MB; 0: the usual)" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_stats = {
  .name = "stats",
  .operands = "FILE...",
  .operand_min = 1,
  .operand_max = UINT32_MAX,
  .summary = "statistics of every tensor, as fast as the files can be read",
  .notes =
      "FILE is a safetensors, GGUF, ONNX or npy file, any file of a model in several, the index of a sharded set, or a "
      "folder with one of them. min, max, abs_max, mean, std and l2 are of the finite values; std is the population's. Columns that say something "
      "only where there are NaN or infinities are shown only then.\n"
      "Files that cannot be opened are told of on the error stream, and the exit code is 3. Where none can, nothing else is printed, "
      "with --json as well; else its document says that it is not complete.\n"
      "Ctrl-C ends the job in order: what is finished is printed, and the exit code is 130. A second one ends it "
      "at once.",
  .flags = flags,
  .run = run,
};
