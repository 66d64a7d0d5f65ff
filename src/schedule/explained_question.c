/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/explained_question.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/log2_fixed.h"
#include "plugin/device.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to explain a graph"); }

static const char *keep(tm_arena *arena, const char *text) {
  return text[0] == '\0' ? "" : tm_arena_string(arena, text, strlen(text));
}

/* What is not allowed is told first: what it would say otherwise changes nothing. */
static const char *passed_over(const tm_plan_explanation *explanation, const tm_plan_candidate *candidate, uint32_t *out_verdict) {
  *out_verdict = TM_VERDICT_EXCLUDED;
  if (tm_graph_problem_denies(&explanation->problem, candidate->device)) return TM_NOT_ALLOWED;
  if (!tm_candidate_can_run(candidate)) {
    *out_verdict = candidate->verdict;
    return candidate->reason;
  }
  *out_verdict = TM_VERDICT_QUARANTINED;
  if (!tm_device_is_usable(candidate->device)) return "not usable any more";
  if (atomic_load(&candidate->is_starved)) return "it lacked memory more than once, so others come first for a while";
  *out_verdict = candidate->verdict;
  return candidate->reason;
}

static bool take_candidate(tm_plan_explanation *explanation, const tm_plan_candidate *from, tm_explained_candidate *to) {
  const bool can = tm_candidate_can_run(from);
  uint32_t verdict;
  const char *reason = passed_over(explanation, from, &verdict);
  *to = (tm_explained_candidate){
    .device = from->device,
    .lowering = from->lowering == NULL ? "" : keep(&explanation->arena, from->lowering->text),
    .reason = keep(&explanation->arena, reason),
    .verdict = verdict,
    .answer = from->answer,
    .correction = can ? exp2((double)from->estimate.factor / (double)TM_LOG2_ONE) : 1,
    .spread = can && from->estimate.samples != 0 ? exp2((double)from->estimate.spread / (double)TM_LOG2_ONE) : 1,
    .sample_count = can ? from->estimate.samples : 0,
    .setup_ns = can ? from->due.cost_ns - from->due.earned_ns : 0,
  };
  const tm_graph_problem *problem = &explanation->problem;
  const uint64_t repeats = explanation->policy.repeats;
  const uint64_t shared_ns = can ? tm_setup_shares_ns(&problem->shares, &problem->table->market, from, repeats) : 0;
  for (uint32_t is_direct = 0; can && is_direct < 2; is_direct++)
    to->prices[is_direct] = tm_label_price_of(from, is_direct != 0, repeats, shared_ns);
  return to->lowering != NULL && to->reason != NULL;
}

static tm_status take_question(tm_plan_explanation *explanation, tm_placement *placement, tm_explained_question *question,
                               tm_error *error) {
  question->candidate_count = placement->candidate_count;
  question->worst_numerics = placement->request.worst_numerics;
  question->candidates = tm_arena_calloc(&explanation->arena, placement->candidate_count, sizeof *question->candidates);
  if (question->candidates == NULL) return no_memory(error);
  const tm_operation operation = tm_request_operation(&placement->request);
  tm_op_find(placement->request.op)->work(&operation, &question->work);
  bool has_room = true;
  tm_mutex_lock(&placement->lock);
  tm_candidates_reprice(&explanation->problem.table->market, placement->candidates, placement->candidate_count);
  for (uint32_t i = 0; i < placement->candidate_count; i++)
    has_room &= take_candidate(explanation, &placement->candidates[i], &question->candidates[i]);
  tm_mutex_unlock(&placement->lock);
  return has_room ? TM_OK : no_memory(error);
}

static void take_labels(tm_plan_explanation *explanation, uint32_t node) {
  const tm_graph_problem *problem = &explanation->problem;
  const tm_solver_op *op = tm_explained_op(explanation, node);
  tm_solver_label *solver_labels = (tm_solver_label *)(uintptr_t)problem->solver.labels;        /* made in the problem's arena */
  for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
    const tm_graph_label *how = &problem->labels[i];
    tm_explained_label *label = &explanation->labels[i];
    label->candidate = &explanation->questions[problem->node_placements[node]].candidates[how->candidate];
    label->is_direct = how->is_direct;
    label->price = label->candidate->prices[how->is_direct];
    solver_labels[i].cost_ns = tm_label_price_sum(&label->price);
  }
}

tm_status tm_explained_questions_make(tm_plan_explanation *explanation, tm_error *error) {
  const tm_graph_problem *problem = &explanation->problem;
  tm_graph_problem_unsettle(&explanation->problem);
  explanation->questions = tm_arena_calloc(&explanation->arena, problem->placement_count, sizeof *explanation->questions);
  explanation->labels = tm_arena_calloc(&explanation->arena, problem->solver.label_count, sizeof *explanation->labels);
  if (explanation->questions == NULL || explanation->labels == NULL) return no_memory(error);
  for (uint32_t i = 0; i < problem->placement_count; i++)
    TM_TRY(take_question(explanation, problem->placements[i], &explanation->questions[i], error));
  for (uint32_t i = 0; i < explanation->node_count; i++) take_labels(explanation, i);
  return TM_OK;
}
