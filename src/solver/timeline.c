/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/timeline.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "solver/critical_path.h"
#include "solver/event_model.h"
#include "solver/residency.h"

void tm_timeline_deinit(tm_timeline *timeline) {
  tm_memory *memory = timeline->memory;
  if (memory == NULL) return;
  tm_memory_free(memory, timeline->op_start_ns, timeline->op_count * sizeof *timeline->op_start_ns);
  tm_memory_free(memory, timeline->op_end_ns, timeline->op_count * sizeof *timeline->op_end_ns);
  tm_memory_free(memory, timeline->busy_ns, timeline->resource_count * sizeof *timeline->busy_ns);
  tm_memory_free(memory, timeline->link_bytes, timeline->link_count * sizeof *timeline->link_bytes);
  tm_memory_free(memory, timeline->peak_bytes, timeline->memory_count * sizeof *timeline->peak_bytes);
  tm_memory_free(memory, timeline->copies, timeline->copy_count * sizeof *timeline->copies);
  tm_memory_free(memory, timeline->critical, timeline->critical_count * sizeof *timeline->critical);
  memset(timeline, 0, sizeof *timeline);
}

static tm_status check_order(const tm_problem_index *index, const uint32_t *order, tm_arena *arena, tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  uint8_t *is_done = tm_arena_calloc(arena, problem->op_count, sizeof *is_done);
  if (is_done == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to check an order");
  for (uint32_t place = 0; place < problem->op_count; place++) {
    const uint32_t o = order[place];
    if (o >= problem->op_count || is_done[o]) {
      return tm_fail(error, TM_ERROR_ARGUMENT, "what is at place %u of an order does not belong there", place);
    }
    const tm_solver_op *op = &problem->ops[o];
    for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
      const uint32_t producer = problem->values[problem->inputs[i]].producer;
      if (producer != TM_SOLVER_NONE && !is_done[producer]) {
        return tm_fail(error, TM_ERROR_ARGUMENT, "operation %u comes before %u, whose value it reads", o, producer);
      }
    }
    is_done[o] = 1;
  }
  return TM_OK;
}

/* Everything a timeline owns, of the sizes that deinit frees. */
static tm_status allocate(tm_timeline *timeline, const tm_event_model *model, uint32_t critical_count, tm_error *error) {
  const tm_solver_problem *problem = model->index->problem;
  tm_memory *memory = timeline->memory;
  timeline->op_count = problem->op_count;
  timeline->resource_count = problem->resource_count;
  timeline->link_count = problem->link_count;
  timeline->memory_count = problem->memory_count;
  timeline->copy_count = model->copy_count;
  timeline->critical_count = critical_count;
  timeline->op_start_ns = tm_memory_calloc(memory, timeline->op_count, sizeof *timeline->op_start_ns);
  timeline->op_end_ns = tm_memory_calloc(memory, timeline->op_count, sizeof *timeline->op_end_ns);
  timeline->busy_ns = tm_memory_calloc(memory, timeline->resource_count, sizeof *timeline->busy_ns);
  timeline->link_bytes = tm_memory_calloc(memory, timeline->link_count, sizeof *timeline->link_bytes);
  timeline->peak_bytes = tm_memory_calloc(memory, timeline->memory_count, sizeof *timeline->peak_bytes);
  timeline->copies = tm_memory_calloc(memory, timeline->copy_count, sizeof *timeline->copies);
  timeline->critical = tm_memory_calloc(memory, timeline->critical_count, sizeof *timeline->critical);
  if (timeline->op_start_ns == NULL || timeline->op_end_ns == NULL || timeline->busy_ns == NULL ||
      timeline->link_bytes == NULL || timeline->peak_bytes == NULL || timeline->copies == NULL || timeline->critical == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a timeline");
  }
  return TM_OK;
}

static void fill_ops(tm_timeline *timeline, const tm_event_model *model) {
  const tm_solver_problem *problem = model->index->problem;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_label *label = &problem->labels[model->labels[o]];
    timeline->op_start_ns[o] = model->op_start_ns[o];
    timeline->op_end_ns[o] = model->op_end_ns[o];
    timeline->busy_ns[label->resource] = tm_solver_add(timeline->busy_ns[label->resource], label->cost_ns);
  }
}

static void fill_copies(tm_timeline *timeline, const tm_event_model *model) {
  for (uint32_t c = 0; c < model->copy_count; c++) {
    const tm_event_copy *copy = &model->copies[c];
    timeline->copies[c] = (tm_timeline_copy){ copy->start_ns, copy->end_ns, copy->value, copy->from, copy->to, copy->link };
    if (copy->link == TM_SOLVER_NONE) continue;
    uint64_t *bytes = &timeline->link_bytes[copy->link];
    if (!tm_checked_add(*bytes, model->index->problem->values[copy->value].bytes, bytes)) *bytes = UINT64_MAX;
  }
}

static tm_status report(tm_timeline *timeline, const tm_event_model *model, tm_arena *arena, tm_error *error) {
  const tm_solver_problem *problem = model->index->problem;
  tm_residency residency;
  TM_TRY(tm_residency_init(&residency, model->index, arena, error));
  const uint64_t most_steps = (uint64_t)problem->op_count + model->copy_count;
  tm_timeline_step *steps = tm_arena_alloc(arena, most_steps * sizeof *steps);
  if (steps == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a timeline");
  TM_TRY(allocate(timeline, model, tm_critical_path_find(model, steps), error));
  tm_residency_measure(&residency, model);
  timeline->makespan_ns = model->makespan_ns;
  timeline->additive_ns = model->additive_ns;
  timeline->copied_bytes = model->copied_bytes;
  timeline->switch_count = model->switch_count;
  fill_ops(timeline, model);
  fill_copies(timeline, model);
  if (timeline->critical_count != 0) memcpy(timeline->critical, steps, timeline->critical_count * sizeof *steps);
  if (timeline->memory_count != 0) {
    memcpy(timeline->peak_bytes, residency.peak_bytes, timeline->memory_count * sizeof *timeline->peak_bytes);
  }
  return TM_OK;
}

static tm_status simulate(const tm_solver_problem *problem, const uint32_t *labels, const uint32_t *order, tm_arena *arena,
                          tm_timeline *timeline, tm_error *error) {
  tm_problem_index index;
  tm_event_model model;
  TM_TRY(tm_problem_index_make(problem, arena, &index, error));
  TM_TRY(tm_problem_index_check_labels(&index, labels, error));
  TM_TRY(check_order(&index, order, arena, error));
  TM_TRY(tm_event_model_init(&model, &index, arena, error));
  tm_event_model_run(&model, labels, order);
  return report(timeline, &model, arena, error);
}

tm_status tm_timeline_simulate(const tm_solver_problem *problem, const uint32_t *labels, const uint32_t *order,
                               tm_memory *memory, tm_timeline *out_timeline, tm_error *error) {
  if (problem->op_count != 0 && (labels == NULL || order == NULL)) {
    return tm_fail(error, TM_ERROR_ARGUMENT, "a timeline needs labels and an order");
  }
  tm_timeline timeline = { .memory = memory };
  tm_arena arena;
  tm_arena_init(&arena, memory);
  const tm_status status = simulate(problem, labels, order, &arena, &timeline, error);
  tm_arena_deinit(&arena);
  if (status == TM_OK) {
    *out_timeline = timeline;
  } else {
    tm_timeline_deinit(&timeline);
  }
  return status;
}
