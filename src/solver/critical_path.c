/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/critical_path.h"

static const tm_timeline_step nothing = { false, TM_SOLVER_NONE };

/* What ends last; of several the first. */
static tm_timeline_step find_last(const tm_event_model *model) {
  const uint32_t op_count = model->index->problem->op_count;
  for (uint32_t o = 0; o < op_count; o++) {
    if (model->op_end_ns[o] == model->makespan_ns) return (tm_timeline_step){ false, o };
  }
  for (uint32_t c = 0; c < model->copy_count; c++) {
    if (model->copies[c].end_ns == model->makespan_ns) return (tm_timeline_step){ true, c };
  }
  return nothing;
}

/* Who had the queue right before. */
static tm_timeline_step cause_in_queue(const tm_event_model *model, uint32_t job, uint64_t start_ns) {
  const uint32_t op_count = model->index->problem->op_count, before = model->job_before[job];
  if (before == TM_SOLVER_NONE) return nothing;
  const bool is_copy = before >= op_count;
  const uint64_t end_ns = is_copy ? model->copies[before - op_count].end_ns : model->op_end_ns[before];
  return end_ns == start_ns ? (tm_timeline_step){ is_copy, is_copy ? before - op_count : before } : nothing;
}

/* What an operation needs from elsewhere and was there no sooner than that.  What comes in its own queue it finds in turn. */
static tm_timeline_step cause_among_inputs(const tm_event_model *model, uint32_t o, uint64_t start_ns) {
  const tm_solver_problem *problem = model->index->problem;
  const tm_solver_op *op = &problem->ops[o];
  const tm_solver_label *label = &problem->labels[model->labels[o]];
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t value = problem->inputs[i], producer = problem->values[value].producer;
    const uint32_t copy = tm_event_model_copy(model, value, label->input_memory);
    if (copy != TM_SOLVER_NONE && model->copies[copy].queue != label->resource && model->copies[copy].end_ns == start_ns)
      return (tm_timeline_step){ true, copy };
    if (producer != TM_SOLVER_NONE && model->op_end_ns[producer] == start_ns && producer != o)
      return (tm_timeline_step){ false, producer };
  }
  return nothing;
}

static tm_timeline_step cause_of_op(const tm_event_model *model, uint32_t o) {
  const tm_solver_problem *problem = model->index->problem;
  const tm_solver_op *op = &problem->ops[o];
  const uint64_t start_ns = model->op_start_ns[o];
  const uint32_t memory = problem->labels[model->labels[o]].input_memory;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t value = problem->inputs[i], producer = problem->values[value].producer;
    const uint32_t copy = tm_problem_source(problem, model->labels, value) == memory
                              ? TM_SOLVER_NONE : tm_event_model_copy(model, value, memory);
    if (copy != TM_SOLVER_NONE) {
      if (model->copies[copy].end_ns == start_ns) return (tm_timeline_step){ true, copy };
    } else if (producer != TM_SOLVER_NONE && model->op_end_ns[producer] == start_ns) {
      return (tm_timeline_step){ false, producer };
    }
  }
  return cause_in_queue(model, o, start_ns);
}

static tm_timeline_step cause_of_copy(const tm_event_model *model, uint32_t c) {
  const tm_event_copy *copy = &model->copies[c];
  const uint32_t producer = model->index->problem->values[copy->value].producer;
  if (producer != TM_SOLVER_NONE && model->op_end_ns[producer] == copy->start_ns) return (tm_timeline_step){ false, producer };
  if (copy->queue != TM_SOLVER_NONE) {
    const tm_timeline_step before = cause_in_queue(model, model->index->problem->op_count + c, copy->start_ns);
    const bool may_wait = before.number == TM_SOLVER_NONE && copy->is_gated != 0;
    return may_wait ? cause_among_inputs(model, copy->owner, copy->start_ns) : before;
  }
  const bool is_due_to_link = copy->before != TM_SOLVER_NONE && model->copies[copy->before].end_ns == copy->start_ns;
  return is_due_to_link ? (tm_timeline_step){ true, copy->before } : nothing;
}

uint32_t tm_critical_path_find(const tm_event_model *model, tm_timeline_step *out_steps) {
  uint32_t count = 0;
  tm_timeline_step step = find_last(model);
  while (step.number != TM_SOLVER_NONE) {
    out_steps[count++] = step;
    step = step.is_copy ? cause_of_copy(model, step.number) : cause_of_op(model, step.number);
  }
  for (uint32_t i = 0; i < count / 2; i++) {
    const tm_timeline_step other = out_steps[count - 1 - i];
    out_steps[count - 1 - i] = out_steps[i];
    out_steps[i] = other;
  }
  return count;
}
