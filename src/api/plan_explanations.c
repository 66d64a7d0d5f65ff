/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations of graphs and plans as the application asks for them and reads them; they are made in src/schedule. */
#include <string.h>

#include "api/plans.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "plugin/wake.h"
#include "schedule/graph_explanation.h"
#include "schedule/requirement_change.h"

_Static_assert(TM_NEVER_NS == TM_SOLVER_NEVER, "the same inside and outside");

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to explain a graph"); }

/* ---- making ---- */

static void take_pins(const tm_plan *plan, tm_explained_pin *pins, uint32_t *order) {
  const tm_plan_program *program = &plan->program;
  for (uint32_t i = 0; i < program->step_count; i++) {
    const tm_plan_step *step = &program->steps[i];
    const tm_plan_candidate *candidate = &program->problem.placements[step->placement]->candidates[step->candidate];
    order[i] = step->node;
    pins[step->node] = (tm_explained_pin){
      .device = candidate->device,
      .lowering = candidate->lowering == NULL ? NULL : candidate->lowering->text,
      .is_direct = step->is_direct,
      .measured_ns = step->measured_ns,
      .measured_count = step->measured_count,
    };
  }
}

static tm_status explain_placed(const tm_plan *plan, tm_plan_explanation **out_explanation, tm_error *error) {
  tm_memory *memory = plan->memory;
  const uint32_t node_count = plan->graph->node_count;
  tm_explained_pin *pins = tm_memory_calloc(memory, node_count, sizeof *pins);
  uint32_t *order = tm_memory_calloc(memory, node_count, sizeof *order);
  tm_status status = pins == NULL || order == NULL ? no_memory(error) : TM_OK;
  if (status == TM_OK) take_pins(plan, pins, order);
  const tm_explanation_request request = {.memory = memory,
                                          .graph = plan->graph,
                                          .table = plan->runner.table,
                                          .policy = plan->policy,
                                          .pins = pins,
                                          .order = order,
                                          .state_memory = plan->program.state_memory,
                                          .memory_count = plan->program.problem.solver.memory_count,
                                          .budgets = plan->program.problem.solver.budgets,
                                          .memory_bytes = plan->program.memory_bytes};
  if (status == TM_OK) status = tm_graph_explanation_make(&request, out_explanation, error);
  tm_memory_free(memory, pins, node_count * sizeof *pins);
  tm_memory_free(memory, order, node_count * sizeof *order);
  return status;
}

/* The plan that there would be, so that both say the same of what it takes, and whether there is one. */
static tm_status explain_draft(tm_graph *graph, const tm_plan_policy *policy, tm_plan_explanation **out_explanation,
                               tm_error *error) {
  tm_context *context = graph->owner;
  const tm_plan_request request = { .memory = &context->memory, .graph = graph, .runner = context->runner, .policy = *policy };
  tm_plan *draft = tm_memory_calloc(&context->memory, 1, sizeof *draft);
  if (draft == NULL) return no_memory(error);
  (void)tm_inventory_wake_all(context->inventory, NULL);        /* every candidate is to say its word */
  tm_status status = tm_plan_draft(draft, &request, error);
  if (status == TM_OK) {
    status = explain_placed(draft, out_explanation, error);
    tm_plan_draft_deinit(draft);
  }
  tm_memory_free(&context->memory, draft, sizeof *draft);
  return status;
}

tm_status tm_graph_explain(tm_graph *graph, const tm_plan_options *options, tm_plan_explanation **out_explanation,
                           tm_error *error) {
  tm_context *context = graph->owner;
  tm_plan_options known;
  TM_TRY(tm_plan_options_read(options, &known, error));
  const uint32_t device_count = context->inventory->device_count;
  uint8_t *denied = tm_memory_calloc(&context->memory, device_count, 1);
  if (denied == NULL) return tm_memory_name_limit(&context->memory, no_memory(error), error);
  tm_status status = tm_plan_options_deny(context, &known, denied, error);
  const tm_plan_policy policy = tm_plan_options_policy(context, &known, denied);
  if (status == TM_OK) status = explain_draft(graph, &policy, out_explanation, error);
  tm_memory_free(&context->memory, denied, device_count);
  return tm_memory_name_limit(&context->memory, status, error);
}

static tm_status take_runs(const tm_plan *plan, tm_plan_explanation *explanation, tm_error *error) {
  const uint64_t count = tm_min_u64(plan->counters.runs, TM_PLAN_RECENT_RUNS);
  explanation->planned_ns = plan->program.total_ns;
  explanation->plan_run_count = plan->counters.runs;
  explanation->runs = tm_arena_calloc(&explanation->arena, count, sizeof *explanation->runs);
  if (explanation->runs == NULL) return no_memory(error);
  for (uint64_t i = 0; i < count; i++) {
    const tm_plan_recent *recent = &plan->recent[(plan->counters.runs - 1 - i) % TM_PLAN_RECENT_RUNS];
    if (recent->measured_ns == 0) continue;
    explanation->runs[explanation->run_count++] = (tm_explained_run){
        .struct_size = sizeof(tm_explained_run), .replayed = recent->was_plain, .measured_ns = recent->measured_ns};
  }
  return TM_OK;
}

tm_status tm_plan_explain(const tm_plan *plan, tm_plan_explanation **out_explanation, tm_error *error) {
  if (!plan->program.was_made || plan->must_replace != 0)
    return tm_fail(error, TM_ERROR_NO_DEVICE, "the plan is no good any more; the next run places the graph anew");
  tm_plan_explanation *explanation = NULL;
  TM_TRY(tm_memory_name_limit(plan->memory, explain_placed(plan, &explanation, error), error));
  const tm_status status = tm_memory_name_limit(plan->memory, take_runs(plan, explanation, error), error);
  if (status == TM_OK) *out_explanation = explanation;
  else tm_plan_explanation_destroy(explanation);
  return status;
}

/* ---- the plan ---- */

static uint64_t least_measured_ns(const tm_plan_explanation *explanation) {
  uint64_t least_ns = 0;
  for (uint32_t i = 0; i < explanation->run_count; i++)
    if (least_ns == 0 || explanation->runs[i].measured_ns < least_ns) least_ns = explanation->runs[i].measured_ns;
  return least_ns;
}

/* Things could be done at the same time, and are. */
static bool overlaps(const tm_plan_explanation *explanation) {
  return explanation->choice.overlaps != 0 && explanation->total_ns != explanation->sum_ns;
}

void tm_plan_explanation_summarize(const tm_plan_explanation *explanation, tm_plan_summary *out_summary) {
  const tm_plan_summary summary = {
    .struct_size = sizeof summary,
    .node_count = explanation->node_count,
    .overlaps = overlaps(explanation),
    .is_exact = explanation->choice.is_exact,
    .is_current = explanation->is_current,
    .worst_numerics = explanation->policy.worst_numerics,
    .repeats = explanation->policy.repeats,
    .max_memory_bytes = explanation->policy.most_bytes,
    .total_ns = explanation->total_ns,
    .sum_ns = explanation->sum_ns,
    .node_ns = explanation->node_ns,
    .copy_ns = explanation->copy_ns,
    .given_copy_ns = explanation->given_copy_ns,
    .bound_ns = explanation->bound_ns,
    .least_sum_ns = explanation->least_sum_ns,
    .planned_ns = explanation->planned_ns != 0 ? explanation->planned_ns : explanation->total_ns,
    .run_count = explanation->plan_run_count,
    .measured_ns = least_measured_ns(explanation),
    .state_memory = explanation->choice.state_memory,
    .change_count = explanation->change_count,
  };
  tm_copy_out(out_summary, &summary, sizeof summary);
}

/* ---- nodes ---- */

/* A label's place among its node's candidates. */
static uint32_t place_of(const tm_plan_explanation *explanation, uint32_t node, uint32_t label) {
  const tm_solver_op *op = tm_explained_op(explanation, node);
  uint32_t place = 0;
  while (explanation->order[op->first_label + place] != label) place++;
  return place;
}

static uint32_t find_runner_up(const tm_plan_explanation *explanation, uint32_t node) {
  const tm_solver_op *op = tm_explained_op(explanation, node);
  const tm_device_slot *chosen = explanation->labels[explanation->nodes[node].chosen].candidate->device;
  for (uint32_t i = 1; i < op->label_count; i++)
    if (explanation->labels[explanation->order[op->first_label + i]].candidate->device != chosen) return i;
  return TM_NO_CANDIDATE;
}

static uint64_t regret_of(const tm_plan_explanation *explanation, uint32_t label) {
  const uint64_t forced_ns = explanation->labels[label].forced_ns;
  return forced_ns == TM_NEVER_NS ? TM_NEVER_NS : forced_ns - explanation->least_sum_ns;
}

tm_status tm_plan_explanation_node(const tm_plan_explanation *explanation, uint32_t node, tm_node_explanation *out_node) {
  if (node >= explanation->node_count) return TM_END;
  const tm_explained_place *place = &explanation->nodes[node];
  const tm_explained_question *question = &explanation->questions[place->question];
  const tm_explained_label *label = &explanation->labels[place->chosen];
  const uint32_t runner_up = find_runner_up(explanation, node);
  const tm_node_explanation one = {
      .struct_size = sizeof one,
      .op = place->op,
      .device = label->candidate->device->index,
      .why = place->why,
      .device_name = label->candidate->device->name,
      .lowering = label->candidate->lowering,
      .worst_numerics = question->worst_numerics,
      .candidate_count = question->candidate_count,
      .runner_up = runner_up,
      .fastest = place_of(explanation, node, tm_explained_fastest(explanation, node)),
      .flops = question->work.flops,
      .read_bytes = question->work.read_bytes,
      .written_bytes = question->work.written_bytes,
      .predicted_ns = tm_label_price_sum(&label->price),
      .regret_ns = runner_up == TM_NO_CANDIDATE
                       ? TM_NEVER_NS
                       : regret_of(explanation, explanation->order[tm_explained_op(explanation, node)->first_label + runner_up]),
      .start_ns = place->start_ns,
      .end_ns = place->end_ns,
      .wait_ns = label->wait_ns,
      .is_critical = place->is_critical,
      .change = tm_requirement_change_find(explanation, node, NULL, NULL),
      .measured_ns = place->measured_ns,
      .measured_count = place->measured_count,
  };
  tm_copy_out(out_node, &one, sizeof one);
  return TM_OK;
}

static void describe_answer(const tm_explained_candidate *candidate, tm_node_candidate *out) {
  *out = (tm_node_candidate){
    .struct_size = sizeof *out,
    .device = candidate->device->index,
    .device_name = candidate->device->name,
    .lowering = candidate->lowering,
    .verdict = candidate->verdict,
    .level = candidate->answer.level,
    .numerics = candidate->answer.numerics,
    .numerics_flags = candidate->answer.numerics_flags,
    .numerics_bound = candidate->answer.numerics_bound,
    .growth = candidate->answer.growth,
    .accumulator = candidate->answer.accumulator,
    .declared_ns = candidate->answer.cost_ns,
    .correction = candidate->correction,
    .correction_spread = candidate->spread,
    .sample_count = candidate->sample_count,
    .workspace_bytes = candidate->answer.workspace_bytes,
    .reason = candidate->reason,
    .wait_ns = TM_NEVER_NS,
    .moved_ns = TM_NEVER_NS,
    .forced_ns = TM_NEVER_NS,
    .regret_ns = TM_NEVER_NS,
    .change = TM_NO_CHANGE,
  };
}

static void describe_label(const tm_plan_explanation *explanation, uint32_t node, uint32_t index, tm_node_candidate *out) {
  const tm_explained_label *label = &explanation->labels[index];
  describe_answer(label->candidate, out);
  if (explanation->nodes[node].chosen == index) out->verdict = TM_VERDICT_CHOSEN;
  out->run_ns = label->price.run_ns;
  out->lowering_ns = label->price.lowering_ns;
  out->staging_ns = label->price.staging_ns;
  out->setup_ns = label->candidate->setup_ns;
  out->setup_share_ns = label->price.setup_ns;
  out->cost_ns = tm_label_price_sum(&label->price);
  out->copy_in_ns = label->copy_in_ns;
  out->copy_out_ns = label->copy_out_ns;
  out->total_ns = label->total_ns;
  out->memory_ns = label->memory_ns;
  out->wait_ns = label->wait_ns;
  out->moved_ns = label->moved_ns;
  out->forced_ns = label->forced_ns;
  out->regret_ns = regret_of(explanation, index);
  out->in_place = label->is_direct;
  out->is_bound = explanation->forced_is_exact == 0;
  if (explanation->nodes[node].chosen != index)
    out->change = tm_requirement_change_find(explanation, node, label->candidate->device, label->candidate->lowering);
}

static bool has_label(const tm_plan_explanation *explanation, uint32_t node, const tm_explained_candidate *candidate) {
  const tm_solver_op *op = tm_explained_op(explanation, node);
  for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++)
    if (explanation->labels[i].candidate == candidate) return true;
  return false;
}

/* One that cannot run it as things are, the device perhaps in another way. */
static tm_status describe_other(const tm_plan_explanation *explanation, uint32_t node, uint32_t index, tm_node_candidate *out) {
  const tm_explained_question *question = &explanation->questions[explanation->nodes[node].question];
  for (uint32_t i = 0; i < question->candidate_count; i++) {
    const tm_explained_candidate *candidate = &question->candidates[i];
    if (has_label(explanation, node, candidate) || index-- != 0) continue;
    describe_answer(candidate, out);
    out->change = tm_requirement_change_find(explanation, node, candidate->device, NULL);
    return TM_OK;
  }
  return TM_END;
}

tm_status tm_plan_explanation_candidate(const tm_plan_explanation *explanation, uint32_t node, uint32_t index,
                                        tm_node_candidate *out_candidate) {
  if (node >= explanation->node_count) return TM_END;
  const tm_solver_op *op = tm_explained_op(explanation, node);
  tm_node_candidate candidate;
  if (index < op->label_count) describe_label(explanation, node, explanation->order[op->first_label + index], &candidate);
  else TM_TRY(describe_other(explanation, node, index - op->label_count, &candidate));
  tm_copy_out(out_candidate, &candidate, sizeof candidate);
  return TM_OK;
}

/* ---- changes ---- */

tm_status tm_plan_explanation_change(const tm_plan_explanation *explanation, uint32_t change, tm_plan_change *out_change) {
  if (change >= explanation->change_count) return TM_END;
  const tm_requirement_change *from = &explanation->changes[change];
  const tm_plan_change one = {
    .struct_size = sizeof one,
    .kind = from->kind,
    .value = from->value,
    .device_name = from->device == NULL ? "" : from->device->name,
    .is_possible = from->places != NULL,
    .moved_count = from->moved_count,
    .total_ns = from->places == NULL ? TM_NEVER_NS : from->total_ns,
  };
  tm_copy_out(out_change, &one, sizeof one);
  return TM_OK;
}

tm_status tm_plan_explanation_changed_node(const tm_plan_explanation *explanation, uint32_t change, uint32_t node,
                                           tm_changed_node *out_node) {
  if (change >= explanation->change_count || node >= explanation->node_count || explanation->changes[change].places == NULL)
    return TM_END;
  const tm_changed_place *place = &explanation->changes[change].places[node];
  const tm_changed_node one = {
    .struct_size = sizeof one,
    .device = place->device->index,
    .device_name = place->device->name,
    .lowering = place->lowering,
    .moves = tm_requirement_change_moves(explanation, &explanation->changes[change], node),
    .is_farther = tm_requirement_change_is_farther(explanation, change, node),
  };
  tm_copy_out(out_node, &one, sizeof one);
  return TM_OK;
}

/* ---- lists ---- */

static tm_status give(const void *items, uint32_t count, uint32_t index, uint32_t item_bytes, void *out_item) {
  if (index >= count) return TM_END;
  tm_copy_out(out_item, (const char *)items + (uint64_t)index * item_bytes, item_bytes);
  return TM_OK;
}

tm_status tm_plan_explanation_copy(const tm_plan_explanation *explanation, uint32_t copy, tm_plan_copy *out_copy) {
  return give(explanation->copies, explanation->copy_count, copy, sizeof *out_copy, out_copy);
}

tm_status tm_plan_explanation_link(const tm_plan_explanation *explanation, uint32_t link, tm_plan_link *out_link) {
  return give(explanation->links, explanation->link_count, link, sizeof *out_link, out_link);
}

tm_status tm_plan_explanation_critical(const tm_plan_explanation *explanation, uint32_t step, tm_critical_step *out_step) {
  return give(explanation->critical, overlaps(explanation) ? explanation->critical_count : 0, step, sizeof *out_step, out_step);
}

tm_status tm_plan_explanation_rejected(const tm_plan_explanation *explanation, uint32_t index, tm_rejected_plan *out_plan) {
  return give(explanation->rejected, explanation->rejected_count, index, sizeof *out_plan, out_plan);
}

tm_status tm_plan_explanation_run(const tm_plan_explanation *explanation, uint32_t run, tm_explained_run *out_run) {
  return give(explanation->runs, explanation->run_count, run, sizeof *out_run, out_run);
}

tm_status tm_plan_explanation_memory(const tm_plan_explanation *explanation, uint32_t memory, tm_explained_memory *out_memory) {
  const tm_graph_problem *problem = &explanation->problem;
  if (memory >= problem->solver.memory_count) return TM_END;
  const tm_device_slot *device = problem->memories[memory];
  const tm_explained_memory one = {
    .struct_size = sizeof one,
    .device = device == NULL ? TM_ANY_DEVICE : device->index,
    .name = device == NULL ? "host" : device->name,
    .peak_bytes = explanation->peak_bytes[memory],
    .max_bytes = explanation->policy.most_bytes,
    .ns_per_mib = explanation->memory_prices[memory],
  };
  tm_copy_out(out_memory, &one, sizeof one);
  return TM_OK;
}
