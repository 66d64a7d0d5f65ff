/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "interrupt.h"
#include "job_report.h"
#include "job_watch.h"
#include "merge_flags.h"
#include "merge_hashes.h"
#include "merge_outcome.h"
#include "merge_plan_text.h"
#include "merge_recipe.h"
#include "merge_row_json.h"
#include "merge_words.h"
#include "recipe_files.h"
#include "session.h"

#define USUAL_TOP 5
#define MOST_MODELS_TEXT "13"
_Static_assert(TM_MERGE_MOST_MODELS == 13, "the help tells how many models there may be");

typedef struct merge_run {
  tm_invocation    *invocation;
  tm_context       *context;
  tm_merge_request  request;
  const tm_merge_rule *rules;
  tm_checkpoint    *models[TM_MERGE_MOST_MODELS];
  tm_checkpoint    *base;
  tm_merge_plan    *plan;
  tm_job           *job;        /* NULL: nothing was begun */
  const char       *changed[TM_MERGE_MOST_HASHES];      /* paths of models that are not what the recipe has the hash of */
  uint32_t          changed_count;
  uint64_t          refusal_count;
  bool              has_told;   /* the document is printed */
  int               signal_number;
  tm_status         status;     /* how the job ended */
  tm_error          error;
  tm_elsewhere_notes elsewhere;
} merge_run;

static bool is_dry(const merge_run *merge) { return tm_arguments_has(&merge->invocation->arguments, "dry-run"); }

static tm_table_look look_of(const merge_run *merge) {
  const tm_terminal *terminal = &merge->invocation->terminal;
  return (tm_table_look){ .width = terminal->width, .indent = 2, .color = terminal->color, .all_in = "--json shows" };
}

/* -------------------------------------------------------------------------------------------------------- json ---- */

static const char *verdict_of(const merge_run *merge) {
  if (merge->refusal_count != 0) return "refused";
  if (merge->job == NULL) return "planned";
  return merge->status == TM_OK ? "merged" : "trouble";
}

static void print_job_json(const merge_run *merge, tm_json_writer *json) {
  const tm_job_report report = { merge->job, merge->status, &merge->error, merge->signal_number != 0, &merge->elsewhere };
  tm_cell          cells[TM_MAX_COLUMNS];
  uint32_t         count = 0;
  const tm_column *columns = tm_job_columns(merge->job, &count);
  tm_json_begin_array(json, "rows", false);
  for (uint64_t row = 0; tm_job_row(merge->job, row, cells) == TM_OK; row++)
    tm_merge_row_print_json(merge->plan, row, columns, count, cells, json);
  tm_json_end_array(json);
  tm_job_report_print_json(&report, json);
}

static void begin_json(const merge_run *merge, const char *verdict, tm_json_writer *json) {
  const uint32_t method = merge->request.method;
  tm_json_init(json, merge->invocation->output);
  tm_json_begin_object(json, NULL, false);
  tm_json_text(json, "schema", "tensormorph.merge/1");
  tm_json_text(json, "verdict", verdict);
  tm_json_text(json, "method", method == 0 ? NULL : tm_merge_word_text(tm_merge_methods, method));
  tm_json_text(json, "output", merge->request.output);
}

/* What there is to say where there is no plan. */
static void print_trouble_json(const merge_run *merge) {
  tm_json_writer json;
  char text[2048];
  begin_json(merge, "trouble", &json);
  tm_json_bool(&json, "complete", false);
  tm_json_text(&json, "error", tm_in_flags(merge->error.text, text, sizeof text));
  tm_json_end_object(&json);
  tm_json_finish(&json);
  tm_output_flush(merge->invocation->output);
}

static void print_json(merge_run *merge) {
  tm_json_writer json;
  merge->has_told = true;
  begin_json(merge, verdict_of(merge), &json);
  tm_json_raw(&json, "recipe", tm_merge_plan_provenance(merge->plan));
  tm_json_begin_array(&json, "changed_models", false);
  for (uint32_t i = 0; i < merge->changed_count; i++) tm_json_text(&json, NULL, merge->changed[i]);
  tm_json_end_array(&json);
  tm_merge_plan_print_json(merge->plan, &json);
  if (merge->job != NULL) print_job_json(merge, &json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
  tm_output_flush(merge->invocation->output);
}

/* ----------------------------------------------------------------------------------------------------- the job ---- */

static int judge(const merge_run *merge) {
  if (merge->signal_number != 0 && merge->status != TM_OK) {
    fputs("tensormorph: interrupted; nothing was written\n", stderr);
    return tm_interrupt_exit_code(merge->signal_number);
  }
  if (merge->signal_number != 0) fputs("tensormorph: the interruption came too late; the merge is complete\n", stderr);
  for (uint32_t i = 0; i < merge->changed_count; i++)
    tm_complain_as(TM_EXIT_FOUND, "%.900s is not what the recipe has the hash of; this merge is not the one that was recorded",
                   merge->changed[i]);
  if (merge->status == TM_OK && merge->invocation->output->error != 0) return TM_EXIT_TROUBLE;
  if (merge->status == TM_OK) return merge->changed_count != 0 ? TM_EXIT_FOUND : TM_EXIT_OK;
  tm_complain(&merge->error);
  return TM_EXIT_TROUBLE;
}

static tm_status print_outcome(merge_run *merge) {
  const tm_job_report report = { merge->job, merge->status, &merge->error, merge->signal_number != 0, &merge->elsewhere };
  const uint64_t      top = tm_arguments_count(&merge->invocation->arguments, "top", USUAL_TOP);
  tm_error            error = TM_CLI_ERROR_INIT;
  tm_status           status = TM_OK;
  if (merge->invocation->preferences.json)
    print_json(merge);
  else if (!merge->invocation->preferences.quiet)
    status = tm_merge_outcome_print(merge->plan, &report, top, look_of(merge), merge->invocation->output, &error);
  tm_output_flush(merge->invocation->output);
  if (status != TM_OK) tm_complain(&error);
  return status;
}

/* The operation that most of the work is. */
static uint32_t operation_of(uint32_t method) {
  if (method == TM_MERGE_DARE) return TM_OP_DARE_SUM;
  return method == TM_MERGE_TIES ? TM_OP_TIES_SUM : TM_OP_WEIGHTED_SUM;
}

/* Said when a signal ends the command after the result has its name. */
static void say_complete(void *unused) {
  (void)unused;
  fputs("tensormorph: the interruption came too late; the merge is complete\n", stderr);
}

static int run_job(merge_run *merge) {
  tm_job_watch watch = {
      .invocation = merge->invocation, .job = merge->job, .shows_progress = !merge->invocation->preferences.quiet };
  merge->status = tm_job_watch_wait(&watch, &merge->error);
  merge->signal_number = watch.signal_number;
  if (merge->status == TM_OK && merge->signal_number == 0) merge->invocation->interrupt.farewell = say_complete;
  tm_interrupt_watch_begin(&merge->invocation->interrupt);
  tm_elsewhere_notes_make(&merge->elsewhere, merge->context, &merge->invocation->preferences.devices,
                          operation_of(merge->request.method), merge->job);
  if (merge->status == TM_OK)
    merge->changed_count = tm_merge_hashes_compare(&merge->request, tm_merge_plan_provenance(merge->plan), merge->changed);
  const tm_status printed = print_outcome(merge);
  const int       exit_code = judge(merge);
  return exit_code == TM_EXIT_OK && printed != TM_OK ? TM_EXIT_TROUBLE : exit_code;
}

static int start_job(merge_run *merge) {
  tm_interrupt_watch_pause(&merge->invocation->interrupt);
  const tm_status status = tm_job_start_merge(merge->plan, NULL, &merge->job, &merge->error);
  const int       exit_code = status == TM_OK ? run_job(merge) : tm_complain(&merge->error);
  tm_interrupt_watch_begin(&merge->invocation->interrupt);
  tm_job_destroy(merge->job);
  return exit_code;
}

/* ---------------------------------------------------------------------------------------------------- the plan ---- */

/* A set has no file of the name that was given. */
static const char *first_loss(const tm_merge_plan *plan) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *path = NULL;
  for (uint64_t i = 0; tm_merge_plan_file(plan, i, &file) == TM_OK; i++)
    if (file.replaces) return file.path;
  return tm_merge_plan_removal(plan, 0, &path) == TM_OK ? path : NULL;
}

/* What the library would do, but the user has not said to.  NULL: nothing of it. */
static const char *find_unsaid_loss(const merge_run *merge) {
  return tm_arguments_has(&merge->invocation->arguments, "force") ? NULL : first_loss(merge->plan);
}

static void complain_refusals(merge_run *merge) {
  const char *problem = NULL;
  for (uint64_t i = 0; tm_merge_plan_problem(merge->plan, i, &problem) == TM_OK; i++) {
    tm_complain_as(TM_EXIT_FOUND, "%.1000s", problem);
    merge->refusal_count++;
  }
  const char *lost = find_unsaid_loss(merge);
  if (lost == NULL) return;
  tm_complain_as(TM_EXIT_FOUND, "%.900s is there; --force replaces it", lost);
  merge->refusal_count++;
}

static const char *find_lost(const merge_run *merge, const tm_recipe_files *files) {
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *path = NULL;
  for (uint64_t i = 0; tm_merge_plan_file(merge->plan, i, &file) == TM_OK; i++)
    if (tm_recipe_files_have(files, file.path)) return file.path;
  for (uint64_t i = 0; tm_merge_plan_removal(merge->plan, i, &path) == TM_OK; i++)
    if (tm_recipe_files_have(files, path)) return path;
  return NULL;
}

/* Whoever merges by a recipe wants it still to be there. */
static tm_status keep_recipe(merge_run *merge) {
  tm_recipe_files files;
  if (merge->request.recipe == NULL) return TM_OK;
  tm_status   status = tm_recipe_files_find(merge->context, merge->request.recipe, &files, &merge->error);
  const char *lost = status == TM_OK ? find_lost(merge, &files) : NULL;
  if (lost != NULL)
    status = tm_refuse(&merge->error, TM_ERROR_ARGUMENT, "%.900s is the recipe; write the result elsewhere", lost);
  tm_recipe_files_free(&files);
  return status;
}

static int follow_plan(merge_run *merge) {
  const tm_preferences *preferences = &merge->invocation->preferences;
  if (!preferences->json && !preferences->quiet) {
    const bool names_all = tm_arguments_has(&merge->invocation->arguments, "wide");
    tm_merge_plan_print(merge->plan, &merge->request, names_all, look_of(merge), merge->invocation->output);
    /* Whoever does not get to see the plan may not want it carried out. */
    if (!tm_output_flush(merge->invocation->output)) return TM_EXIT_TROUBLE;
  }
  complain_refusals(merge);
  if (merge->refusal_count == 0 && !is_dry(merge)) return start_job(merge);
  if (preferences->json) print_json(merge);
  return merge->refusal_count == 0 ? TM_EXIT_OK : TM_EXIT_FOUND;
}

/* A pattern that matches nothing is a mistyped name; anything else that is not there is a file. */
static int complain_plan(const merge_run *merge) {
  const int exit_code = tm_complain(&merge->error);
  return merge->error.code == TM_ERROR_NOT_FOUND && merge->error.native_code == 0 ? TM_EXIT_USAGE : exit_code;
}

static int make_plan(merge_run *merge) {
  const tm_merge_request *request = &merge->request;
  const tm_merge_options  options = {
     .struct_size = sizeof options,
     .method = request->method,
     .models = merge->models,
     .model_count = request->model_count,
     .rules = merge->rules,
     .rule_count = request->usual.count,
     .base = merge->base,
     .seed = request->seed,
     .flags = (request->keeps_sum && request->method == TM_MERGE_LINEAR ? TM_MERGE_KEEP_WEIGHTS : 0) |
              (request->keeps_sum && request->method == TM_MERGE_TIES ? TM_MERGE_TIES_SUM : 0) |
              (request->keeps_scale ? TM_MERGE_NO_RESCALE : 0),
     .missing = request->missing,
     .rows = request->rows,
     .other = request->other,
     .shard_bytes = request->shard_bytes,
  };
  if (tm_merge_plan_create(merge->context, &options, request->output, &merge->plan, &merge->error) != TM_OK)
    return complain_plan(merge);
  const int exit_code = keep_recipe(merge) == TM_OK ? follow_plan(merge) : tm_complain(&merge->error);
  tm_merge_plan_destroy(merge->plan);
  return exit_code;
}

/* ------------------------------------------------------------------------------------------------------- inputs ---- */

/* All that cannot be opened are told of, so that nobody has to try again for each. */
static bool open_inputs(merge_run *merge) {
  bool all = true;
  for (uint32_t i = 0; i <= merge->request.model_count; i++) {
    const bool      is_base = i == merge->request.model_count;
    const char     *path = is_base ? merge->request.base : merge->request.models[i].path;
    tm_checkpoint **place = is_base ? &merge->base : &merge->models[i];
    tm_error        error = TM_CLI_ERROR_INIT;
    if (path == NULL || tm_checkpoint_open(merge->context, path, 0, place, &error) == TM_OK) continue;
    tm_complain(&error);
    if (all) merge->error = error;
    all = false;
    if (error.code == TM_ERROR_NO_MEMORY) break;        /* what there is, is for all */
  }
  return all;
}

static void close_inputs(merge_run *merge) {
  for (uint32_t i = 0; i < merge->request.model_count; i++) tm_checkpoint_close(merge->models[i]);
  tm_checkpoint_close(merge->base);
}

static int open_and_plan(merge_run *merge) {
  if (tm_merge_flags_read(merge->context, &merge->invocation->arguments, &merge->request, &merge->error) != TM_OK ||
      tm_merge_request_check(&merge->request, &merge->error) != TM_OK ||
      tm_merge_request_rules(&merge->request, &merge->rules, &merge->error) != TM_OK)
    return tm_complain(&merge->error);
  const int exit_code = open_inputs(merge) ? make_plan(merge) : TM_EXIT_TROUBLE;
  close_inputs(merge);
  return exit_code;
}

static int run(tm_invocation *invocation) {
  const tm_session_needs needs = { .uses_profile = true,
                                   .flags = TM_CONTEXT_REPRODUCIBLE,
                                   .max_header_bytes = tm_arguments_size(&invocation->arguments, "max-header", 0) };
  merge_run merge = { .invocation = invocation, .error = TM_CLI_ERROR_INIT };
  if (tm_session_open(&invocation->preferences, &needs, &merge.context, &merge.error) != TM_OK) return tm_complain(&merge.error);
  tm_merge_request_init(&merge.request);
  const int exit_code =
      tm_session_require_device(merge.context, &merge.error) != TM_OK ? tm_complain(&merge.error) : open_and_plan(&merge);
  if (exit_code == TM_EXIT_TROUBLE && invocation->preferences.json && !merge.has_told) print_trouble_json(&merge);
  tm_merge_request_deinit(&merge.request);
  tm_context_destroy(merge.context);
  return exit_code;
}

const tm_command tm_command_merge = {
  .name = "merge",
  .operands = "[MODEL...]",
  .operand_max = UINT32_MAX,
  .summary = "one checkpoint of several: linear, slerp, task, ties, dare",
  .notes =
      "MODEL is a safetensors, GGUF, ONNX or npy file, any file of a model in several, the index of a sharded set, or a folder "
      "with one of them; there are at most " MOST_MODELS_TEXT ". Before anything is read in bulk or written the plan is printed: "
      "what is done with which tensors, every mismatch with what is done about it, sizes, memory, disk. What does not match "
      "is refused unless --missing, --rows or --other say otherwise; nothing is left out unsaid.\n"
      "A MODEL goes by its file name or a longer end of its path, with or without extension, or by its number from 1. Without "
      "GLOB an option is for all tensors that no GLOB matches; of several GLOBs that match a tensor the last counts. Options win over the recipe, whose "
      "paths begin at its folder.\n"
      "The result is complete under its name, or nothing of it is there. What is there already is only replaced with --force, and "
      "never an input. Which devices take part changes no byte, and neither does the order of models (but for dare). The metadata "
      "record the whole recipe (tensormorph.merge), with hashes of what was read: --recipe of a merged file merges again.\n"
      "The exit code is 0 if it was merged (or, with --dry-run, could be), 1 if the plan is refused or a model is not what the "
      "recipe has the hash of, 2 for a wrong command line or "
      "recipe, 3 if a file, the disk or a device is in trouble.\n"
      "Ctrl-C ends the job in order, nothing is written then, and the exit code is 130. A second one ends it at once.",
  .flags = tm_merge_flags,
  .run = run,
};
