/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "diff_report.h"
#include "diff_wishes.h"
#include "interrupt.h"
#include "job_watch.h"
#include "name_filter.h"
#include "same_files.h"
#include "session.h"

typedef struct diff_run {
  tm_invocation *invocation;
  tm_context    *context;
  tm_checkpoint *checkpoints[2];
  tm_job        *job;
  tm_diff_wishes wishes;
  tm_diff_report report;
  uint64_t       seen;          /* rows that a run without output has looked at */
  bool           has_difference;        /* among them */
  bool           is_settled;    /* nothing that is still to come can change the answer */
  int            signal_number;
  tm_error       error;
} diff_run;

/* Nobody reads what is found, only whether there is anything. */
static bool is_silent(const diff_run *diff) {
  return diff->invocation->preferences.quiet && !diff->invocation->preferences.json && !diff->report.selection.is_csv;
}

static void look_for_difference(diff_run *diff) {
  tm_cell        cells[TM_MAX_COLUMNS];
  const uint64_t count = tm_job_row_count(diff->job);
  for (; !diff->is_settled && diff->seen < count && tm_job_row(diff->job, diff->seen, cells) == TM_OK; diff->seen++) {
    const bool differs = tm_diff_view_meaning(&diff->report.view, cells) == TM_MEANS_DIFFERENT;
    diff->has_difference = diff->has_difference || differs;
    diff->is_settled = differs && tm_diff_view_is_seen(&diff->report.view, cells);
  }
  if (diff->is_settled) tm_job_cancel(diff->job);
}

static void meanwhile(void *context) {
  diff_run *diff = context;
  if (is_silent(diff))
    look_for_difference(diff);
  else
    tm_diff_report_print_finished(&diff->report);
}

/* What the user asked to be told comes last, so that it stands below everything else. */
static int judge(const diff_run *diff, tm_status status) {
  if (diff->signal_number != 0) {
    fputs(is_silent(diff) ? "tensormorph: interrupted\n" : "tensormorph: interrupted; what was found is printed\n", stderr);
    return tm_interrupt_exit_code(diff->signal_number);
  }
  if (diff->is_settled) return TM_EXIT_FOUND;
  if (diff->invocation->output->error != 0) return TM_EXIT_TROUBLE;
  if (status != TM_OK) {
    tm_complain(&diff->error);
    return TM_EXIT_TROUBLE;
  }
  return diff->has_difference || diff->report.verdict.different_count != 0 ? TM_EXIT_FOUND : TM_EXIT_OK;
}

/* A pattern that matches nothing is a mistyped name; a job that got as far as its tensors has totals. */
static bool matched_nothing(const diff_run *diff, tm_status status) {
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(diff->job, &progress);
  return status == TM_ERROR_NOT_FOUND && progress.items_total == 0;
}

static int run_job(diff_run *diff) {
  tm_diff_report *report = &diff->report;
  /* Rows that go to the same terminal meanwhile would tear the line apart. */
  const bool prints = tm_diff_report_prints_meanwhile(report) && diff->invocation->terminal.is_interactive;
  tm_job_watch watch = { diff->invocation, diff->job, !diff->invocation->preferences.quiet && !prints, meanwhile, diff, 0 };
  const tm_status status = tm_job_watch_wait(&watch, &diff->error);
  diff->signal_number = watch.signal_number;
  tm_interrupt_watch_begin(&diff->invocation->interrupt);
  if (matched_nothing(diff, status)) {
    tm_complain(&diff->error);
    return TM_EXIT_USAGE;
  }
  const tm_job_report job_report = { diff->job, status, &diff->error, diff->signal_number != 0, &report->elsewhere };
  tm_elsewhere_notes_make(&report->elsewhere, diff->context, &diff->invocation->preferences.devices, TM_OP_COMPARE_TENSORS,
                          diff->job);
  tm_error error = TM_CLI_ERROR_INIT;
  if (!is_silent(diff) && tm_diff_report_print(report, &job_report, &error) != TM_OK) return tm_complain(&error);
  tm_output_flush(diff->invocation->output);
  return judge(diff, status);
}

static int start_job(diff_run *diff) {
  const tm_arguments *arguments = &diff->invocation->arguments;
  tm_name_filter      filter;
  if (tm_name_filter_init(&filter, arguments, &diff->error) != TM_OK) return tm_complain(&diff->error);
  const tm_diff_options options = {
    .struct_size = sizeof options,
    .worst_numerics = TM_NUMERICS_DEFAULT,
    .flags = diff->wishes.names_only ? TM_DIFF_BY_NAME : 0,
    .include = filter.include,
    .exclude = filter.exclude,
    .include_count = filter.include_count,
    .exclude_count = filter.exclude_count,
  };
  tm_interrupt_watch_pause(&diff->invocation->interrupt);
  tm_checkpoint *const *both = diff->checkpoints;
  tm_status status = tm_job_start_diff(diff->context, both[0], both[1], &options, &diff->job, &diff->error);
  if (status == TM_OK)
    status = tm_diff_report_init(&diff->report, diff->invocation, diff->job, both, &diff->wishes, &diff->error);
  const int exit_code = status == TM_OK ? run_job(diff) : tm_complain(&diff->error);
  tm_interrupt_watch_begin(&diff->invocation->interrupt);
  tm_job_destroy(diff->job);
  tm_name_filter_deinit(&filter);
  return exit_code;
}

/* Both are told of before anything is compared.  Of a truncated file what is there can be compared all the same. */
static int open_both(diff_run *diff) {
  int exit_code = TM_EXIT_OK;
  for (uint32_t i = 0; i < 2; i++) {
    tm_error    error = TM_CLI_ERROR_INIT;
    const char *path = diff->invocation->arguments.operands[i];
    if (tm_checkpoint_open(diff->context, path, TM_CHECKPOINT_ALLOW_INCOMPLETE, &diff->checkpoints[i], &error) == TM_OK) continue;
    tm_complain(&error);
    exit_code = TM_EXIT_TROUBLE;
    if (error.code == TM_ERROR_NO_MEMORY) break;        /* what there is, is for both */
  }
  return exit_code;
}

static int run(tm_invocation *invocation) {
  const bool             is_reproducible = tm_arguments_has(&invocation->arguments, "reproducible");
  const tm_session_needs needs = { .uses_profile = true,
                                   .flags = is_reproducible ? TM_CONTEXT_REPRODUCIBLE : 0,
                                   .max_header_bytes = tm_arguments_size(&invocation->arguments, "max-header", 0) };
  diff_run diff = { .invocation = invocation, .error = TM_CLI_ERROR_INIT };
  if (tm_diff_wishes_parse(&diff.wishes, &invocation->arguments, &diff.error) != TM_OK ||
      tm_session_open(&invocation->preferences, &needs, &diff.context, &diff.error) != TM_OK)
    return tm_complain(&diff.error);
  int exit_code = tm_session_require_device(diff.context, &diff.error) != TM_OK ? tm_complain(&diff.error) : open_both(&diff);
  if (exit_code == TM_EXIT_OK) exit_code = start_job(&diff);
  for (uint32_t i = 0; i < 2; i++) tm_checkpoint_close(diff.checkpoints[i]);
  tm_context_destroy(diff.context);
  return exit_code;
}

static const tm_flag flags[] = {
  { "all", 0, TM_FLAG_SWITCH, false, NULL, "list everything, also what is the same; --json and --csv always do" },
  { "by", 0, TM_FLAG_TEXT, false, "KEY", "add tensors up by layer or kind, with a grid of which layers differ" },
  { "exact", 0, TM_FLAG_SWITCH, false, NULL, "another name, format, shape or order of axes is a difference, too" },
  { "tolerance", 0, TM_FLAG_TEXT, false, "X", "tensors whose max_abs is at most X do not differ" },
  { "names-only", 0, TM_FLAG_SWITCH, false, NULL, "compare tensors of one name only, and look for no others by content" },
  TM_NAME_FILTER_FLAGS,
  TM_ROW_SELECTION_FLAGS,
  { "reproducible", 0, TM_FLAG_SWITCH, false, NULL,
    "only devices whose results are equal to the reference, bit for bit" },
  { "max-header", 0, TM_FLAG_SIZE, false, "SIZE", "accept headers up to this size (usually 100 MB; 0: the usual)" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_diff = {
  .name = "diff",
  .operands = "A B",
  .operand_min = 2,
  .operand_max = 2,
  .summary = "whether two checkpoints hold the same weights, and where they differ",
  .notes =
      "A and B are safetensors, GGUF, ONNX or npy files, any file of a model in several, the index of a sharded set, or a folder "
      "with one of them; their formats need not be the same. Tensors of one name are compared. What has no counterpart of its "
      "name is looked for by content: the same bytes under another name, the same values in another format, or the transpose.\n"
      "changed is the share of elements that are not equal, max_abs the largest difference, rel_l2 the distance in relation to "
      "the norm in A. Rows are sorted by rel_l2, the largest first; what has no figures, was removed or was added comes after "
      "them.\n"
      "The exit code is 0 if the weights are the same, by whatever names and in whatever form (with --exact, only if those are "
      "the same, too), 1 if they differ, 2 for a wrong command line, 3 if a file could not be read or changed meanwhile. --quiet "
      "prints nothing but such trouble, and ends at the first elements that differ.\n"
      "Ctrl-C ends the job in order: what was found is printed, and the exit code is 130. A second one ends it at once.",
  .flags = flags,
  .run = run,
};
