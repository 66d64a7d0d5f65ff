/* SPDX-License-Identifier: Apache-2.0 */
/* merges.c - plans of merges, and starting them: merge.h. */
#include <string.h>

#include "api/checkpoint.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "jobs/merge_job.h"
#include "jobs/merge_row.h"

/* ---------------------------------------------------------------------------------------------------------- planning ---- */

static tm_status list_sources(const tm_merge_options *options, tm_job_source *sources, tm_merge_settings *settings,
                              tm_error *error) {
  if (options->models == NULL && options->model_count != 0) return tm_fail(error, TM_ERROR_ARGUMENT,
                                                                           "models are counted but not given");
  if (options->rules == NULL && options->rule_count != 0) return tm_fail(error, TM_ERROR_ARGUMENT,
                                                                         "rules are counted but not given");
  settings->model_count = options->model_count;
  if (options->model_count > TM_MERGE_MOST_MODELS) return TM_OK;        /* refused with the other settings */
  for (uint32_t i = 0; i < options->model_count; i++) {
    const tm_checkpoint *model = options->models[i];
    if (model == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "model %u is missing", i);
    sources[settings->source_count++] = (tm_job_source){ model->archive, model->path };
  }
  if (options->base != NULL) sources[settings->source_count++] = (tm_job_source){ options->base->archive, options->base->path };
  return TM_OK;
}

tm_status tm_merge_plan_create(tm_context *context, const tm_merge_options *given, const char *path, tm_merge_plan **out_plan,
                               tm_error *error) {
  tm_merge_options options;
  tm_job_source sources[TM_MERGE_MOST_SOURCES];
  if (given == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "no options: they say what to merge");
  if (path == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "no path");
  TM_TRY(tm_copy_in(given, "tm_merge_options", &options, sizeof options, error));
  TM_TRY(tm_expect_reserved(options.reserved, "tm_merge_options", error));
  tm_merge_settings settings = {
    .method = options.method, .sources = sources, .rules = options.rules, .rule_count = options.rule_count, .flags = options.flags,
    .missing = options.missing, .rows = options.rows, .other = options.other, .writer_format = options.writer_format,
    .seed = options.seed, .shard_bytes = options.shard_bytes, .path = path, .cancelled = options.cancelled,
  };
  TM_TRY(list_sources(&options, sources, &settings, error));
  const tm_status status = tm_merge_plan_make(&context->memory, context->inventory, &context->runner, &settings, out_plan, error);
  return tm_memory_name_limit(&context->memory, status, error);
}

/* ----------------------------------------------------------------------------------------------------------- telling ---- */

void tm_merge_plan_describe(const tm_merge_plan *plan, tm_merge_description *out_description) {
  tm_merge_description description = plan->totals;
  description.struct_size = out_description->struct_size;
  tm_copy_out(out_description, &description, sizeof description);
}

const tm_column *tm_merge_plan_columns(const tm_merge_plan *plan, uint32_t *out_count) {
  (void)plan;
  *out_count = TM_MERGE_PLAN_COLUMNS;
  return tm_merge_plan_column_list;
}

uint64_t tm_merge_plan_row_count(const tm_merge_plan *plan) { return plan->item_count; }

tm_status tm_merge_plan_row(const tm_merge_plan *const_plan, uint64_t row, tm_cell *out_cells) {
  tm_merge_plan *plan = (tm_merge_plan *)(uintptr_t)const_plan;
  return row < plan->item_count ? tm_merge_plan_row_fill(plan, row, out_cells) : TM_END;
}

tm_status tm_merge_plan_part(const tm_merge_plan *const_plan, uint64_t row, uint32_t part,
                             tm_merge_part_description *out_description) {
  tm_merge_plan *plan = (tm_merge_plan *)(uintptr_t)const_plan;
  tm_merge_part_description description;
  if (!tm_merge_plan_part_at(plan, row, part, &description)) return TM_END;
  description.struct_size = out_description->struct_size;
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_merge_plan_problem(const tm_merge_plan *plan, uint64_t index, const char **out_problem) {
  if (index >= plan->problem_count) return TM_END;
  *out_problem = plan->problems[index];
  return TM_OK;
}

tm_status tm_merge_plan_note(const tm_merge_plan *plan, uint64_t index, const char **out_note) {
  if (index >= plan->note_count) return TM_END;
  *out_note = plan->notes[index];
  return TM_OK;
}

tm_status tm_merge_plan_file(const tm_merge_plan *plan, uint64_t file, tm_writer_file_description *out_description) {
  tm_write_file found;
  if (plan->writer == NULL || !tm_checkpoint_writer_file_at(plan->writer, file, &found)) return TM_END;
  const tm_writer_file_description description = { out_description->struct_size, found.replaces, found.path, found.bytes };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_merge_plan_removal(const tm_merge_plan *plan, uint64_t index, const char **out_path) {
  const char *path = plan->writer == NULL ? NULL : tm_checkpoint_writer_removal_at(plan->writer, index);
  if (path == NULL) return TM_END;
  *out_path = path;
  return TM_OK;
}

const char *tm_merge_plan_provenance(const tm_merge_plan *plan) { return atomic_load(&plan->provenance); }

/* ---------------------------------------------------------------------------------------------------------- starting ---- */

tm_status tm_job_start_merge(tm_merge_plan *plan, const tm_merge_job_options *given, tm_job **out_job, tm_error *error) {
  tm_merge_job_options options = { .struct_size = sizeof options };
  if (given != NULL) TM_TRY(tm_copy_in(given, "tm_merge_job_options", &options, sizeof options, error));
  TM_TRY(tm_expect_reserved(options.reserved, "tm_merge_job_options", error));
  if (plan->problem_count != 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "the plan cannot be carried out: %.400s", plan->problems[0]);
  if (atomic_exchange(&plan->is_used, true)) return tm_fail(error, TM_ERROR_ARGUMENT, "the plan was carried out before");
  const tm_status begun = tm_merge_job_start(plan, options.complete, options.complete_context, out_job, error);
  const tm_status status = tm_memory_name_limit(plan->memory, begun, error);
  if (status != TM_OK) atomic_store(&plan->is_used, false);     /* nothing was done */
  return status;
}
