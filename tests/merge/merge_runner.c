/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_runner METHOD OUT [KEY VALUE]...: plans a merge, prints the plan, carries it out and prints the rows, tab-separated.  Keys:
 *   model, base PATH      set WHAT:MODEL:NUMBER or WHAT:MODEL:NUMBER:PATTERN (model - for every one; WHAT: w d t s, f with a
 *   format's number)
 *   seed, flags, missing, rows, other, shard, writer NUMBER         only, without DEVICE
 *   memory, threads, map NUMBER                                     stop 1: only the plan
 *   setting BACKEND:NAME:VALUE
 * Exit status: 0, 1 the plan has problems, 3 anything failed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensormorph/tensormorph.h"

#define MOST 64u

typedef struct wanted {
  tm_merge_options   options;
  tm_context_options context;
  const char        *paths[MOST], *base;
  uint32_t           path_count;
  tm_merge_rule      rules[MOST];
  const char        *only[MOST], *without[MOST];
  tm_setting         settings[MOST];
  uint32_t           stops;
} wanted;

static void add_rule(wanted *w, char *text) {
  tm_merge_rule *rule = &w->rules[w->options.rule_count++];
  const char *what = strtok(text, ":"), *model = strtok(NULL, ":"), *number = strtok(NULL, ":");
  const char kinds[] = "wdtsf";
  rule->pattern = strtok(NULL, "");
  rule->what = (uint32_t)(strchr(kinds, what[0]) - kinds) + 1;
  const int is_of_model = rule->what == TM_MERGE_SET_WEIGHT || rule->what == TM_MERGE_SET_DENSITY;
  rule->model = model[0] != '-' ? (uint32_t)atoi(model) : is_of_model ? TM_MERGE_EVERY_MODEL : 0;
  if (rule->what == TM_MERGE_SET_FORMAT) rule->format = (uint32_t)strtoul(number, NULL, 0);
  else rule->value = strtod(number, NULL);
}

static void add_setting(wanted *w, char *text) {
  tm_setting *setting = &w->settings[w->context.setting_count++];
  setting->backend = strtok(text, ":");
  setting->name = strtok(NULL, ":");
  setting->value = strtok(NULL, "");
}

static int set_number(wanted *w, const char *key, uint64_t number) {
  const uint32_t small = (uint32_t)number;
  if (strcmp(key, "seed") == 0) w->options.seed = number;
  else if (strcmp(key, "flags") == 0) w->options.flags = small;
  else if (strcmp(key, "missing") == 0) w->options.missing = small;
  else if (strcmp(key, "rows") == 0) w->options.rows = small;
  else if (strcmp(key, "other") == 0) w->options.other = small;
  else if (strcmp(key, "shard") == 0) w->options.shard_bytes = number;
  else if (strcmp(key, "writer") == 0) w->options.writer_format = small;
  else if (strcmp(key, "memory") == 0) w->context.max_memory_bytes = number;
  else if (strcmp(key, "threads") == 0) w->context.thread_count = small;
  else if (strcmp(key, "map") == 0) w->context.flags |= number != 0 ? TM_CONTEXT_MAP_FILES : 0;
  else if (strcmp(key, "stop") == 0) w->stops = small;
  else return 0;
  return 1;
}

static int read_arguments(int argc, char **argv, wanted *w) {
  static const char *const methods[] = { "linear", "slerp", "task", "ties", "dare" };
  *w = (wanted){ .options = { .struct_size = sizeof w->options }, .context = { .struct_size = sizeof w->context } };
  for (uint32_t i = 0; i < 5; i++)
    if (strcmp(argv[1], methods[i]) == 0) w->options.method = i + 1;
  for (int i = 3; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "model") == 0) w->paths[w->path_count++] = argv[i + 1];
    else if (strcmp(argv[i], "base") == 0) w->base = argv[i + 1];
    else if (strcmp(argv[i], "set") == 0) add_rule(w, argv[i + 1]);
    else if (strcmp(argv[i], "setting") == 0) add_setting(w, argv[i + 1]);
    else if (strcmp(argv[i], "only") == 0) w->only[w->context.device_count++] = argv[i + 1];
    else if (strcmp(argv[i], "without") == 0) w->without[w->context.excluded_device_count++] = argv[i + 1];
    else if (!set_number(w, argv[i], strtoull(argv[i + 1], NULL, 0))) return 0;
  }
  w->context.settings = w->settings;
  w->context.devices = w->only;
  w->context.excluded_devices = w->without;
  w->options.rules = w->rules;
  return 1;
}

static int complain(const tm_error *error, tm_status status) {
  printf("error\t%s\t%s\n", tm_status_text(status), error->text);
  return 3;
}

static void print_cells(const char *kind, const tm_cell *cells, const tm_column *columns, uint32_t count) {
  printf("%s", kind);
  for (uint32_t i = 0; i < count; i++) {
    printf("\t%s=", columns[i].name);
    if (columns[i].type == TM_COLUMN_TEXT) printf("%.*s", (int)cells[i].count, cells[i].text);
    else if (columns[i].type == TM_COLUMN_NUMBER && cells[i].defined) printf("%.17g", cells[i].number);
    else if (columns[i].type == TM_COLUMN_BYTES) printf("%" PRIu64, cells[i].count);
    for (uint64_t axis = 0; columns[i].type == TM_COLUMN_SHAPE && axis < cells[i].count; axis++)
      printf("%s%" PRIu64, axis == 0 ? "" : ",", cells[i].shape[axis]);
  }
  printf("\n");
}

static uint32_t print_plan(const tm_merge_plan *plan) {
  tm_merge_description d = { .struct_size = sizeof d };
  tm_cell cells[32];
  const char *text;
  uint32_t count;
  tm_merge_plan_describe(plan, &d);
  printf("plan\ttensors=%" PRIu64 "\tmerged=%" PRIu64 "\tcopied=%" PRIu64 "\tskipped=%" PRIu64 "\tmismatches=%" PRIu64
         "\trefused=%" PRIu64 "\tread=%" PRIu64 "\twritten=%" PRIu64 "\tfiles=%" PRIu32 "\tmemory=%" PRIu64 "\n", d.tensor_count,
         d.merged_count, d.copied_count, d.skipped_count, d.mismatch_count, d.refused_count, d.read_bytes, d.written_bytes, d.file_count, d.memory_bytes);
  const tm_column *columns = tm_merge_plan_columns(plan, &count);
  for (uint64_t row = 0; tm_merge_plan_row(plan, row, cells) == TM_OK; row++) print_cells("planned", cells, columns, count);
  for (uint64_t i = 0; tm_merge_plan_problem(plan, i, &text) == TM_OK; i++) printf("problem\t%s\n", text);
  for (uint64_t i = 0; tm_merge_plan_note(plan, i, &text) == TM_OK; i++) printf("note\t%s\n", text);
  return (uint32_t)d.problem_count;
}

static int carry_out(tm_context *context, tm_merge_plan *plan) {
  tm_error error = { .struct_size = sizeof error };
  tm_job *job = NULL;
  tm_status status = tm_job_start_merge(plan, NULL, &job, &error);
  if (status != TM_OK) return complain(&error, status);
  printf("started\n");
  fflush(stdout);
  status = tm_job_wait(job, UINT64_MAX, &error);
  uint32_t count;
  const tm_column *columns = tm_job_columns(job, &count);
  tm_cell cells[32];
  for (uint64_t row = 0; tm_job_row(job, row, cells) == TM_OK; row++) print_cells("row", cells, columns, count);
  tm_device_usage usage = { .struct_size = sizeof usage };
  for (uint32_t i = 0; tm_job_device_usage(job, i, &usage) == TM_OK; i++) printf("device\t%s\t%" PRIu64 "\n", usage.device_name,
                                                                                 usage.bytes);
  const char *text;
  for (uint32_t i = 0; tm_job_note(job, i, &text) == TM_OK; i++) printf("jobnote\t%s\n", text);
  tm_progress progress = { .struct_size = sizeof progress };
  tm_job_progress(job, &progress);
  tm_memory_usage memory = { .struct_size = sizeof memory };
  tm_context_memory_usage(context, &memory);
  printf("end\tdone=%" PRIu64 "\ttotal=%" PRIu64 "\titems=%" PRIu64 "\tpeak=%" PRIu64 "\n", progress.bytes_done,
         progress.bytes_total,
         progress.items_done, memory.peak_bytes);
  tm_job_destroy(job);
  return status == TM_OK ? 0 : complain(&error, status);
}

static int merge(tm_context *context, wanted *w, const char *out) {
  tm_error error = { .struct_size = sizeof error };
  tm_checkpoint *models[MOST] = { NULL }, *base = NULL;
  tm_merge_plan *plan = NULL;
  tm_status status = TM_OK;
  int code = 0;
  for (uint32_t i = 0; i < w->path_count && status == TM_OK; i++)
    status = tm_checkpoint_open(context, w->paths[i], 0, &models[i], &error);
  if (status == TM_OK && w->base != NULL) status = tm_checkpoint_open(context, w->base, 0, &base, &error);
  w->options.models = models;
  w->options.model_count = w->path_count;
  w->options.base = base;
  if (status == TM_OK) status = tm_merge_plan_create(context, &w->options, out, &plan, &error);
  if (status != TM_OK) code = complain(&error, status);
  else if (print_plan(plan) != 0) code = 1;
  else if (!w->stops) code = carry_out(context, plan);
  tm_merge_plan_destroy(plan);
  for (uint32_t i = 0; i < w->path_count; i++) tm_checkpoint_close(models[i]);
  tm_checkpoint_close(base);
  return code;
}

int main(int argc, char **argv) {
  wanted w;
  tm_context *context = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (argc < 3 || !read_arguments(argc, argv, &w)) return 2;
  const tm_status status = tm_context_create(&w.context, &context, &error);
  if (status != TM_OK) return complain(&error, status);
  const int code = merge(context, &w, argv[2]);
  tm_context_destroy(context);
  return code;
}
