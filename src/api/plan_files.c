/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in files, and beside each other. */
#include <string.h>

#include "api/plans.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "base/file.h"
#include "base/replaced_file.h"
#include "execute/plan_digest.h"
#include "execute/plan_file.h"

tm_status tm_plan_save(const tm_plan *plan, const char *path, tm_error *error) {
  tm_field_writer writer;
  if (!plan->program.was_made) return tm_fail(error, TM_ERROR_NO_DEVICE, "the plan has no placement: its devices failed");
  tm_field_writer_init(&writer, plan->memory);
  tm_plan_file_write(plan, &writer);
  if (!writer.failed) tm_field_write_sum(&writer);
  const tm_status status = writer.failed ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write a plan")
                                         : tm_file_replace(path, writer.bytes, writer.length, error);
  tm_field_writer_deinit(&writer);
  return status;
}

static tm_status check_graph(const tm_graph *graph, const tm_plan_file *file, tm_error *error) {
  uint8_t digest[TM_SHA256_BYTES];
  tm_plan_graph_digest(graph, digest);
  if (memcmp(digest, file->graph_digest, sizeof digest) == 0) return TM_OK;
  if (file->step_count != graph->node_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "the plan is of a graph of %u nodes, and this one has %u", file->step_count,
                   graph->node_count);
  return tm_fail(error, TM_ERROR_ARGUMENT, "the plan is of another graph, though of as many nodes");
}

static tm_status load(tm_graph *graph, tm_plan_file *file, const tm_plan_options *options, tm_plan **out_plan, tm_error *error) {
  tm_plan_options own = *options;
  own.worst_numerics = file->worst_numerics;
  own.run_to_run = file->run_to_run;
  own.one_resource = file->one_resource;
  own.repeats = file->repeats;
  own.max_memory_bytes = file->most_bytes;
  TM_TRY(check_graph(graph, file, error));
  tm_plan *plan;
  TM_TRY(tm_plan_make(graph, &own, tm_plan_file_choose, file, &plan, error));
  uint8_t digest[TM_SHA256_BYTES];
  tm_plan_digest_make(plan, digest);
  if (memcmp(digest, file->plan_digest, sizeof digest) == 0) {
    *out_plan = plan;
    return TM_OK;
  }
  tm_plan_destroy(plan);
  return tm_fail(error, TM_ERROR_NO_DEVICE,
                 "the plan comes out otherwise than it was saved: devices lay out their memory, or write in place, in another way "
                 "than they did");
}

static tm_status parse(tm_graph *graph, const char *bytes, uint64_t length, const tm_plan_options *options, tm_plan **out_plan,
                       tm_error *error) {
  tm_plan_file file;
  uint64_t content_bytes;
  if (!tm_field_check_sum(bytes, length, &content_bytes))
    return tm_fail(error, TM_ERROR_CORRUPT, "no file of a plan, or a damaged one: its %llu bytes do not end with their checksum",
                   (unsigned long long)length);
  TM_TRY(tm_plan_file_read(graph->memory, bytes, content_bytes, &file, error));
  const tm_status status = load(graph, &file, options, out_plan, error);
  tm_plan_file_deinit(&file);
  return status;
}

static tm_status read_whole(tm_memory *memory, const char *path, char **out_bytes, uint64_t *out_length, tm_error *error) {
  tm_file *file;
  TM_TRY(tm_file_open(memory, path, 0, &file, error));
  const uint64_t length = tm_file_size(file);
  char *bytes = NULL;
  tm_status status = TM_OK;
  if (length > TM_PLAN_FILE_MOST_BYTES)
    status = tm_fail(error, TM_ERROR_LIMIT, "%s is larger than a plan's file may be", tm_file_label(file));
  else if ((bytes = tm_memory_alloc(memory, length, 0)) == NULL)
    status = tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan's file");
  else
    status = tm_file_read(file, 0, bytes, length, error);
  tm_file_close(file);
  if (status != TM_OK) {
    tm_memory_free(memory, bytes, length);
    return status;
  }
  *out_bytes = bytes;
  *out_length = length;
  return TM_OK;
}

tm_status tm_plan_load(tm_graph *graph, const char *path, const tm_plan_options *options, tm_plan **out_plan, tm_error *error) {
  tm_plan_options known;
  char *bytes = NULL;
  uint64_t length = 0;
  TM_TRY(tm_plan_options_read(options, &known, error));
  TM_TRY(tm_memory_name_limit(graph->memory, read_whole(graph->memory, path, &bytes, &length, error), error));
  const tm_status status = tm_memory_name_limit(graph->memory, parse(graph, bytes, length, &known, out_plan, error), error);
  tm_memory_free(graph->memory, bytes, length);
  return status;
}

static bool is_same(const tm_plan *a, const tm_plan *b, uint32_t step) {
  const tm_plan_step *x = &a->program.steps[step], *y = &b->program.steps[step];
  if (x->node != y->node) return false;
  const tm_plan_candidate *p = &a->program.problem.placements[x->placement]->candidates[x->candidate];
  const tm_plan_candidate *q = &b->program.problem.placements[y->placement]->candidates[y->candidate];
  if (memcmp(&p->device->info.uuid, &q->device->info.uuid, sizeof p->device->info.uuid) != 0 || x->is_direct != y->is_direct)
    return false;
  return strcmp(p->lowering == NULL ? "" : p->lowering->text, q->lowering == NULL ? "" : q->lowering->text) == 0;
}

tm_status tm_plan_compare(const tm_plan *a, const tm_plan *b, uint32_t *out_step, tm_error *error) {
  if (a->program.step_count != b->program.step_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "plans of %u and %u steps are not of one graph", a->program.step_count,
                   b->program.step_count);
  for (uint32_t i = 0; i < a->program.step_count; i++) {
    if (is_same(a, b, i)) continue;
    *out_step = i;
    return TM_OK;
  }
  return TM_END;
}
