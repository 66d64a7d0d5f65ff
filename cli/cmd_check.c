/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "check_verdict.h"
#include "command.h"
#include "complain.h"
#include "interrupt.h"
#include "job_report.h"
#include "job_watch.h"
#include "name_filter.h"
#include "row_printer.h"
#include "session.h"

typedef struct check_run {
  tm_invocation     *invocation;
  tm_context        *context;
  tm_job            *job;
  int                signal_number;
  tm_status          status;    /* how the job ended */
  tm_error           error;
  tm_check_verdict   verdict;
  tm_elsewhere_notes elsewhere;
} check_run;

static void print_json_rows(const check_run *check, tm_json_writer *json) {
  tm_cell          cells[TM_MAX_COLUMNS];
  uint32_t         count = 0;
  const tm_column *columns = tm_job_columns(check->job, &count);
  tm_json_begin_array(json, "rows", false);
  for (uint64_t row = 0; tm_job_row(check->job, row, cells) == TM_OK; row++) tm_row_print_json(columns, count, cells, 0, json);
  tm_json_end_array(json);
}

/* What could not be examined makes the document incomplete, as does a job that ended early. */
static void print_json(const check_run *check) {
  const tm_check_verdict *verdict = &check->verdict;
  const bool has_trouble = check->status == TM_OK && verdict->trouble_count != 0;
  const tm_job_report report = { check->job, has_trouble ? verdict->first_trouble.code : check->status,
                                has_trouble ? &verdict->first_trouble : &check->error, check->signal_number != 0,
                                &check->elsewhere };
  tm_json_writer json;
  tm_json_init(&json, check->invocation->output);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.check/1");
  tm_json_text(&json, "verdict", check->status == TM_OK ? tm_check_verdict_word(verdict) : "trouble");
  print_json_rows(check, &json);
  tm_json_count(&json, "finding_count", verdict->finding_count);
  tm_json_count(&json, "note_count", verdict->note_count);
  tm_json_count(&json, "trouble_count", verdict->trouble_count);
  tm_job_report_print_json(&report, &json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

static void print_text(const check_run *check) {
  const tm_job_report report = { check->job, check->status, &check->error, check->signal_number != 0, &check->elsewhere };
  const uint32_t width = check->invocation->terminal.width;
  tm_check_verdict_complain(check->job);
  if (check->invocation->preferences.quiet) return;
  tm_check_verdict_print(&check->verdict, check->job, width, check->invocation->output);
  tm_job_report_print(&report, true, width, check->invocation->output);
}

static int judge(const check_run *check) {
  if (check->signal_number != 0) {
    fputs("tensormorph: interrupted; what was found is printed\n", stderr);
    return tm_interrupt_exit_code(check->signal_number);
  }
  if (check->invocation->output->error != 0) return TM_EXIT_TROUBLE;
  if (check->status == TM_OK) return tm_check_verdict_exit_code(&check->verdict);
  tm_complain(&check->error);
  return TM_EXIT_TROUBLE;
}

/* A pattern that matches nothing is a mistyped name; a job that got as far as its tensors has totals. */
static bool matched_nothing(const check_run *check) {
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(check->job, &progress);
  return check->status == TM_ERROR_NOT_FOUND && progress.items_total == 0;
}

static int run_job(check_run *check) {
  tm_job_watch watch = {
      .invocation = check->invocation, .job = check->job, .shows_progress = !check->invocation->preferences.quiet };
  check->status = tm_job_watch_wait(&watch, &check->error);
  check->signal_number = watch.signal_number;
  tm_interrupt_watch_begin(&check->invocation->interrupt);
  if (matched_nothing(check)) {
    tm_complain(&check->error);
    return TM_EXIT_USAGE;
  }
  tm_check_verdict_make(&check->verdict, check->job);
  tm_elsewhere_notes_make(&check->elsewhere, check->context, &check->invocation->preferences.devices, TM_OP_STATS, check->job);
  if (check->invocation->preferences.json)
    print_json(check);
  else
    print_text(check);
  tm_output_flush(check->invocation->output);
  return judge(check);
}

static int start_job(check_run *check) {
  const tm_arguments *arguments = &check->invocation->arguments;
  tm_name_filter      filter;
  if (tm_name_filter_init(&filter, arguments, &check->error) != TM_OK) return tm_complain(&check->error);
  const tm_check_options options = {
    .struct_size = sizeof options,
    .include = filter.include,
    .exclude = filter.exclude,
    .include_count = filter.include_count,
    .exclude_count = filter.exclude_count,
  };
  tm_interrupt_watch_pause(&check->invocation->interrupt);
  const tm_status status = tm_job_start_check(check->context, arguments->operands, arguments->operand_count, &options, &check->job,
                                              &check->error);
  const int exit_code = status == TM_OK ? run_job(check) : tm_complain(&check->error);
  tm_interrupt_watch_begin(&check->invocation->interrupt);
  tm_job_destroy(check->job);
  tm_name_filter_deinit(&filter);
  return exit_code;
}

static int run(tm_invocation *invocation) {
  const tm_session_needs needs = { .uses_profile = true,
                                   .max_header_bytes = tm_arguments_size(&invocation->arguments, "max-header", 0) };
  check_run check = { .invocation = invocation, .error = TM_CLI_ERROR_INIT };
  if (tm_session_open(&invocation->preferences, &needs, &check.context, &check.error) != TM_OK) return tm_complain(&check.error);
  const int exit_code =
      tm_session_require_device(check.context, &check.error) != TM_OK ? tm_complain(&check.error) : start_job(&check);
  tm_context_destroy(check.context);
  return exit_code;
}

static const tm_flag flags[] = {
  TM_NAME_FILTER_FLAGS,
  { "max-header", 0, TM_FLAG_SIZE, false, "SIZE", "accept headers up to this size (usually 100 MB; 0: the usual)" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_check = {
  .name = "check",
  .operands = "FILE...",
  .operand_min = 1,
  .operand_max = UINT32_MAX,
  .summary = "what is wrong with files: structure, shards, NaN, infinities",
  .notes =
      "FILE is a safetensors, GGUF, ONNX or npy file, the index of a sharded set, or a folder with one of them or with several models. "
      "Found are: what no reader accepts, and what it is instead; an index and shards that do not agree; truncated "
      "tensors; NaN and infinities, in block formats by their scales, with the first position and, from three axes on, the "
      "slices of the outermost one (the experts) that hold any; tensors of an unknown type. Notes, which are no findings, "
      "tell of tensors that hold equal bytes and of those that are all zero. --tensor and --exclude choose whose values are examined.\n"
      "The exit code is 0 if there is nothing to find, 1 if something was found, 2 for a wrong command line, 3 if a file "
      "is missing, could not be read or changed meanwhile. --quiet prints nothing but such trouble.\n"
      "Ctrl-C ends the job in order: what was found is printed, and the exit code is 130. A second one ends it at once.",
  .flags = flags,
  .run = run,
};
