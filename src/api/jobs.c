/* SPDX-License-Identifier: Apache-2.0 */
/* Starting jobs over checkpoints. */
#include "api/checkpoint.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "jobs/check_job.h"
#include "jobs/diff_job.h"
#include "jobs/stats_job.h"

#define MOST_CHECKPOINTS 100000u

static tm_status check_patterns(const char *const *patterns, uint32_t count, const char *job, tm_error *error) {
  for (uint32_t i = 0; i < count; i++)
    if (patterns == NULL || patterns[i] == NULL)
      return tm_fail(error, TM_ERROR_ARGUMENT, "%s options: %u patterns counted, but number %u is not given", job, count, i);
  return TM_OK;
}

static tm_status read_options(const tm_stats_options *given, tm_stats_options *out_options, tm_error *error) {
  *out_options = (tm_stats_options){ .struct_size = sizeof *out_options, .worst_numerics = TM_NUMERICS_DEFAULT };
  if (given == NULL) return TM_OK;
  TM_TRY(tm_copy_in(given, "stats options", out_options, sizeof *out_options, error));
  if (out_options->worst_numerics > TM_NUMERICS_N4 && out_options->worst_numerics != TM_NUMERICS_DEFAULT)
    return tm_fail(error, TM_ERROR_ARGUMENT, "stats options: unknown numerics class %u; set it to TM_NUMERICS_DEFAULT",
                   out_options->worst_numerics);
  TM_TRY(check_patterns(out_options->include, out_options->include_count, "stats", error));
  return check_patterns(out_options->exclude, out_options->exclude_count, "stats", error);
}

tm_status tm_job_start_stats(tm_context *context, tm_checkpoint *const *checkpoints, uint32_t checkpoint_count,
                             const tm_stats_options *given, tm_job **out_job, tm_error *error) {
  tm_stats_options options;
  TM_TRY(read_options(given, &options, error));
  if (checkpoints == NULL || checkpoint_count == 0 || checkpoint_count > MOST_CHECKPOINTS)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%u checkpoints, expected 1 to %u", checkpoint_count, MOST_CHECKPOINTS);
  for (uint32_t i = 0; i < checkpoint_count; i++)
    if (checkpoints[i] == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "checkpoint %u is none", i);
  tm_job_source *sources = tm_memory_calloc(&context->memory, checkpoint_count, sizeof *sources);
  if (sources == NULL)
    return tm_memory_name_limit(&context->memory, tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job"), error);
  for (uint32_t i = 0; i < checkpoint_count; i++) sources[i] = (tm_job_source){ checkpoints[i]->archive, checkpoints[i]->path };
  const tm_stats_request request = {
    .sources = sources,
    .source_count = checkpoint_count,
    .worst_numerics = tm_context_accepts(context, tm_op_find(TM_OP_STATS), options.worst_numerics),
    .rules = { options.include, options.exclude, options.include_count, options.exclude_count },
    .complete = options.complete,
    .complete_context = options.complete_context,
  };
  const tm_status status = tm_stats_job_start(&context->memory, context->inventory, &context->runner, &request, out_job, error);
  tm_memory_free(&context->memory, sources, checkpoint_count * sizeof *sources);
  return tm_memory_name_limit(&context->memory, status, error);
}

static tm_status read_check_options(const tm_check_options *given, tm_check_options *out_options, tm_error *error) {
  *out_options = (tm_check_options){ .struct_size = sizeof *out_options };
  if (given == NULL) return TM_OK;
  TM_TRY(tm_copy_in(given, "check options", out_options, sizeof *out_options, error));
  TM_TRY(tm_expect_reserved(out_options->reserved, "check options", error));
  TM_TRY(check_patterns(out_options->include, out_options->include_count, "check", error));
  return check_patterns(out_options->exclude, out_options->exclude_count, "check", error);
}

tm_status tm_job_start_check(tm_context *context, const char *const *paths, uint32_t path_count, const tm_check_options *given,
                             tm_job **out_job, tm_error *error) {
  tm_check_options options;
  TM_TRY(read_check_options(given, &options, error));
  if (paths == NULL || path_count == 0 || path_count > MOST_CHECKPOINTS)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%u paths, expected 1 to %u", path_count, MOST_CHECKPOINTS);
  for (uint32_t i = 0; i < path_count; i++)
    if (paths[i] == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "path %u is none", i);
  const tm_check_request request = {
    .paths = paths,
    .path_count = path_count,
    .worst_numerics = tm_context_accepts(context, tm_op_find(TM_OP_STATS), TM_NUMERICS_DEFAULT),
    .archive_options = tm_checkpoint_archive_options(context, TM_CHECKPOINT_ALLOW_INCOMPLETE),
    .rules = { options.include, options.exclude, options.include_count, options.exclude_count },
    .complete = options.complete,
    .complete_context = options.complete_context,
  };
  const tm_status status = tm_check_job_start(&context->memory, context->inventory, &context->runner, &request, out_job, error);
  return tm_memory_name_limit(&context->memory, status, error);
}

#define KNOWN_DIFF_FLAGS TM_DIFF_BY_NAME

static tm_status read_diff_options(const tm_diff_options *given, tm_diff_options *out_options, tm_error *error) {
  *out_options = (tm_diff_options){ .struct_size = sizeof *out_options, .worst_numerics = TM_NUMERICS_DEFAULT };
  if (given == NULL) return TM_OK;
  TM_TRY(tm_copy_in(given, "diff options", out_options, sizeof *out_options, error));
  TM_TRY(tm_expect_reserved(out_options->reserved, "diff options", error));
  if ((out_options->flags & ~KNOWN_DIFF_FLAGS) != 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "diff options: unknown flags 0x%x", out_options->flags & ~KNOWN_DIFF_FLAGS);
  if (out_options->worst_numerics > TM_NUMERICS_N4 && out_options->worst_numerics != TM_NUMERICS_DEFAULT)
    return tm_fail(error, TM_ERROR_ARGUMENT, "diff options: unknown numerics class %u; set it to TM_NUMERICS_DEFAULT",
                   out_options->worst_numerics);
  TM_TRY(check_patterns(out_options->include, out_options->include_count, "diff", error));
  return check_patterns(out_options->exclude, out_options->exclude_count, "diff", error);
}

tm_status tm_job_start_diff(tm_context *context, tm_checkpoint *a, tm_checkpoint *b, const tm_diff_options *given, tm_job **out_job,
                            tm_error *error) {
  tm_diff_options options;
  TM_TRY(read_diff_options(given, &options, error));
  if (a == NULL || b == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "the %s checkpoint is none", a == NULL ? "first" : "second");
  const tm_diff_request request = {
    .sources = { { a->archive, a->path }, { b->archive, b->path } },
    .worst_numerics = tm_context_accepts(context, tm_op_find(TM_OP_COMPARE_TENSORS), options.worst_numerics),
    .flags = options.flags,
    .rules = { options.include, options.exclude, options.include_count, options.exclude_count },
    .complete = options.complete,
    .complete_context = options.complete_context,
  };
  const tm_status status = tm_diff_job_start(&context->memory, context->inventory, &context->runner, &request, out_job, error);
  return tm_memory_name_limit(&context->memory, status, error);
}
