/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_explanation.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "plugin/reference.h"
#include "plugin/wake.h"
#include "schedule/explained_question.h"
#include "schedule/explained_schedule.h"
#include "schedule/graph_budget.h"
#include "schedule/graph_overlap.h"
#include "schedule/requirement_change.h"
#include "solver/portfolio.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to explain a graph"); }

/* ---- where each node is ---- */

static uint32_t find_label(const tm_plan_explanation *explanation, uint32_t node, const tm_explained_pin *pin) {
  const tm_solver_op *op = tm_explained_op(explanation, node);
  for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
    const tm_explained_label *label = &explanation->labels[i];
    if (label->candidate->device == pin->device && label->is_direct == pin->is_direct &&
        strcmp(label->candidate->lowering, pin->lowering == NULL ? "" : pin->lowering) == 0)
      return i;
  }
  return TM_SOLVER_NONE;
}

static tm_status find_pins(const tm_plan_explanation *explanation, const tm_explanation_request *request, uint32_t *labels,
                           tm_error *error) {
  for (uint32_t node = 0; node < explanation->node_count; node++) {
    labels[node] = find_label(explanation, node, &request->pins[node]);
    if (labels[node] != TM_SOLVER_NONE) continue;
    char name[TM_GRAPH_LABEL_CAPACITY];
    tm_graph_name_node(request->graph, node, name, sizeof name);
    return tm_fail(error, TM_ERROR_NO_DEVICE,
                   "%s cannot run on %s any more as it was planned; the next run places the graph anew", name,
                   request->pins[node].device->name);
  }
  return TM_OK;
}

/* The plan's own placement in place of the one that would be chosen now. */
static tm_status pin(tm_plan_explanation *explanation, const tm_explanation_request *request, tm_error *error) {
  const uint64_t label_bytes = explanation->node_count * sizeof *explanation->choice.labels,
                 bound_ns = explanation->choice.bound_ns;
  uint32_t *labels = tm_arena_calloc(&explanation->arena, explanation->node_count, sizeof *labels);
  if (labels == NULL) return no_memory(error);
  TM_TRY(find_pins(explanation, request, labels, error));
  explanation->is_current = label_bytes == 0 || (memcmp(labels, explanation->choice.labels, label_bytes) == 0 &&
                                                 memcmp(request->order, explanation->choice.order, label_bytes) == 0);
  if (explanation->is_current) return TM_OK;
  tm_graph_choice choice;
  TM_TRY(tm_graph_choice_pin(&explanation->problem, explanation->memory, labels, request->order, request->state_memory, &choice,
                             error));
  tm_graph_choice_deinit(&explanation->choice);
  explanation->choice = choice;
  explanation->choice.bound_ns = bound_ns;
  if (explanation->policy.one_resource != 0) tm_graph_choice_add_up(&explanation->choice);
  return TM_OK;
}

static tm_status place(tm_plan_explanation *explanation, const tm_explanation_request *request, tm_error *error) {
  TM_TRY(tm_graph_choice_make(&explanation->problem, &explanation->policy, explanation->memory, &explanation->choice, error));
  explanation->is_current = 1;
  TM_TRY(pin(explanation, request, error));
  explanation->bound_ns = explanation->choice.bound_ns;
  explanation->nodes = tm_arena_calloc(&explanation->arena, explanation->node_count, sizeof *explanation->nodes);
  if (explanation->nodes == NULL) return no_memory(error);
  for (uint32_t node = 0; node < explanation->node_count; node++) {
    tm_explained_place *one = &explanation->nodes[node];
    one->question = explanation->problem.node_placements[node];
    one->op = request->graph->nodes[node].row->op;
    one->chosen = explanation->choice.labels[node];
    one->measured_ns = request->pins[node].measured_ns;
    one->measured_count = request->pins[node].measured_count;
  }
  return TM_OK;
}

/* ---- what it would cost elsewhere ---- */

static bool is_reference(const tm_explained_label *label) {
  return strcmp(label->candidate->device->backend->name, TM_REFERENCE_NAME) == 0;
}

/* Whether all nodes keep to the resource, and to the reference where they cannot. */
static bool keeps_to(const tm_plan_explanation *explanation, uint32_t resource) {
  for (uint32_t node = 0; node < explanation->node_count; node++) {
    const tm_solver_op *op = tm_explained_op(explanation, node);
    const uint32_t chosen = explanation->nodes[node].chosen;
    bool can = false;
    if (explanation->problem.solver.labels[chosen].resource == resource) continue;
    for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++)
      can |= explanation->problem.solver.labels[i].resource == resource;
    if (can || !is_reference(&explanation->labels[chosen])) return false;
  }
  return true;
}

/* Of a plan on one resource only labels of that one, and what was chosen, count. */
static tm_status keep_to_one(tm_plan_explanation *explanation, tm_error *error) {
  const tm_solver_problem *solver = &explanation->problem.solver;
  uint32_t resource = 0;
  while (resource < solver->resource_count && !keeps_to(explanation, resource)) resource++;
  tm_solver_label *labels = tm_arena_calloc(&explanation->arena, solver->label_count, sizeof *labels);
  if (labels == NULL) return no_memory(error);
  if (solver->label_count != 0) memcpy(labels, solver->labels, solver->label_count * sizeof *labels);
  for (uint32_t i = 0; i < solver->label_count; i++)
    if (labels[i].resource != resource) labels[i].cost_ns = TM_SOLVER_NEVER;
  for (uint32_t node = 0; node < explanation->node_count; node++)
    labels[explanation->nodes[node].chosen].cost_ns = solver->labels[explanation->nodes[node].chosen].cost_ns;
  explanation->problem.solver.labels = labels;
  return TM_OK;
}

static void take_forced(tm_plan_explanation *explanation, const tm_assignment_within *within) {
  explanation->least_sum_ns = within->assignment.total_ns;
  explanation->forced_is_exact = within->assignment.marginals_are_exact;
  for (uint32_t i = 0; i < explanation->problem.solver.label_count; i++) {
    const uint64_t forced_ns = within->assignment.min_marginals == NULL ? TM_NEVER_NS : within->assignment.min_marginals[i];
    explanation->labels[i].forced_ns = forced_ns < explanation->least_sum_ns ? explanation->least_sum_ns : forced_ns;
  }
  for (uint32_t i = 0; i < within->memory_count; i++) explanation->memory_prices[i] = within->prices[i];
}

/* Of two of one name and device, with and without something done to operands first, the sooner one. */
static void add_rejected(tm_plan_explanation *explanation, const tm_rejected_plan *rejected) {
  if (rejected->total_ns == explanation->total_ns && rejected->sum_ns == explanation->sum_ns) return;   /* it is this one */
  uint32_t at = 0;
  while (at < explanation->rejected_count && (explanation->rejected[at].device != rejected->device ||
                                              strcmp(explanation->rejected[at].name, rejected->name) != 0))
    at++;
  if (at < explanation->rejected_count && explanation->rejected[at].total_ns <= rejected->total_ns) return;
  if (at == explanation->rejected_count) explanation->rejected_count++;
  for (; at > 0 && rejected->total_ns < explanation->rejected[at - 1].total_ns; at--)
    explanation->rejected[at] = explanation->rejected[at - 1];
  explanation->rejected[at] = *rejected;
}

/* Sums that were found on the way count as what is found for each label of theirs. */
static void note_sum(tm_plan_explanation *explanation, const tm_portfolio_plan *plan) {
  if (plan->labels == NULL || plan->excess_bytes != 0 || plan->additive_ns >= explanation->least_sum_ns) return;
  explanation->least_sum_ns = plan->additive_ns;
  for (uint32_t node = 0; node < explanation->node_count; node++)
    explanation->labels[plan->labels[node]].forced_ns = plan->additive_ns;
}

static void add_all_rejected(tm_plan_explanation *explanation, const tm_portfolio *portfolio, const uint64_t *times_ns) {
  for (uint32_t i = 0; i < portfolio->plan_count; i++) {
    const tm_portfolio_plan *plan = &portfolio->plans[i];
    note_sum(explanation, plan);
    const tm_device_slot *device = plan->rank == TM_SOLVER_NONE ? NULL : explanation->problem.places[plan->rank / 2].device;
    add_rejected(explanation, &(tm_rejected_plan){
      .struct_size = sizeof(tm_rejected_plan),
      .device = device == NULL ? TM_ANY_DEVICE : device->index,
      .name = plan->name,
      .device_name = device == NULL ? "" : device->name,
      .total_ns = times_ns[i],
      .sum_ns = plan->additive_ns,
      .copied_bytes = plan->copied_bytes,
      .excess_bytes = plan->excess_bytes,
    });
  }
}

/* Where nothing overlaps nodes run in the graph's order, in which a plan may need more memory than in its own. */
static tm_status time_in_order(const tm_plan_explanation *explanation, tm_portfolio *portfolio, uint64_t *times_ns, tm_error *error) {
  for (uint32_t i = 0; i < portfolio->plan_count; i++) times_ns[i] = portfolio->plans[i].additive_ns;
  return tm_graph_budget_weigh(&explanation->problem.solver, portfolio, explanation->memory, error);
}

static tm_status time_rejected(tm_plan_explanation *explanation, tm_portfolio *portfolio, tm_error *error) {
  uint64_t *times_ns = tm_arena_calloc(&explanation->arena, portfolio->plan_count, sizeof *times_ns);
  explanation->rejected = tm_arena_calloc(&explanation->arena, portfolio->plan_count, sizeof *explanation->rejected);
  if (times_ns == NULL || explanation->rejected == NULL) return no_memory(error);
  if (explanation->choice.overlaps != 0 && explanation->policy.one_resource == 0)
    TM_TRY(tm_graph_overlap_time(&explanation->problem, explanation->memory, portfolio, explanation->total_ns, times_ns, error));
  else
    TM_TRY(time_in_order(explanation, portfolio, times_ns, error));
  add_all_rejected(explanation, portfolio, times_ns);
  return TM_OK;
}

/* As it was looked for when the plan was chosen: from the same cheapest sum on. */
static tm_status list_rejected(tm_plan_explanation *explanation, const uint32_t *cheapest, tm_error *error) {
  const uint32_t *begin = explanation->choice.cheapest != NULL ? explanation->choice.cheapest : cheapest;
  const tm_portfolio_seed seed = { "cheapest-sum", begin };
  const tm_portfolio_options options = { .move_steps = TM_PORTFOLIO_MOVE_STEPS, .with_lists = true };
  tm_portfolio portfolio;
  if (explanation->node_count == 0 || explanation->node_count > TM_PORTFOLIO_MOST_OPS) return TM_OK;
  tm_status status = tm_portfolio_solve(&explanation->problem.solver, &seed, 1, &options, explanation->memory, &portfolio, NULL);
  if (status == TM_ERROR_NO_MEMORY) return no_memory(error);
  if (status != TM_OK) return TM_OK;            /* no other plan was found */
  status = time_rejected(explanation, &portfolio, error);
  tm_portfolio_deinit(&portfolio);
  return status;
}

/* What was chosen against all else: each label forced, then whole plans. */
static tm_status weigh(tm_plan_explanation *explanation, tm_error *error) {
  const bool has_thread = explanation->choice.overlaps != 0 && explanation->policy.one_resource == 0;
  if (has_thread) TM_TRY(tm_graph_overlap_add_thread(&explanation->problem, error));
  const tm_solver_label *all = explanation->problem.solver.labels;
  const uint64_t memory_count = explanation->problem.solver.memory_count;
  tm_assignment_within within;
  explanation->memory_prices = tm_arena_calloc(&explanation->arena, memory_count, sizeof *explanation->memory_prices);
  if (explanation->memory_prices == NULL) return no_memory(error);
  if (explanation->node_count == 0) return tm_explained_schedule_make(explanation, error);
  if (explanation->policy.one_resource != 0) TM_TRY(keep_to_one(explanation, error));
  TM_TRY(tm_graph_budget_solve(&explanation->problem, true, explanation->memory, &within, error));
  take_forced(explanation, &within);
  const tm_solver_label *allowed = explanation->problem.solver.labels;
  explanation->problem.solver.labels = all;
  tm_status status = tm_explained_schedule_make(explanation, error);
  explanation->problem.solver.labels = allowed;
  if (status == TM_OK) status = list_rejected(explanation, within.assignment.labels, error);
  explanation->problem.solver.labels = all;
  tm_assignment_within_deinit(&within);
  return status;
}

/* ---- in words ---- */

static bool is_before(const tm_plan_explanation *explanation, uint32_t chosen, uint32_t a, uint32_t b) {
  const tm_explained_label *one = &explanation->labels[a], *other = &explanation->labels[b];
  if ((a == chosen) != (b == chosen)) return a == chosen;
  if (one->forced_ns != other->forced_ns) return one->forced_ns < other->forced_ns;
  return explanation->problem.solver.labels[a].rank < explanation->problem.solver.labels[b].rank;
}

static void sort_labels(tm_plan_explanation *explanation, uint32_t node) {
  const tm_solver_op *op = tm_explained_op(explanation, node);
  uint32_t *order = explanation->order + op->first_label;
  for (uint32_t i = 0; i < op->label_count; i++) {
    uint32_t at = i;
    for (; at > 0 && is_before(explanation, explanation->nodes[node].chosen, op->first_label + i, order[at - 1]); at--)
      order[at] = order[at - 1];
    order[at] = op->first_label + i;
  }
}

uint64_t tm_explained_run_ns(const tm_explained_label *label) {
  return label->price.run_ns + label->price.lowering_ns + label->price.staging_ns;
}

uint32_t tm_explained_fastest(const tm_plan_explanation *explanation, uint32_t node) {
  const tm_solver_op *op = tm_explained_op(explanation, node);
  uint32_t best = explanation->nodes[node].chosen;
  for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++)
    if (tm_explained_run_ns(&explanation->labels[i]) < tm_explained_run_ns(&explanation->labels[best])) best = i;
  return best;
}

static bool has_weights(const tm_plan_policy *policy) {
  return policy->one_resource != 0 || policy->throughput_permille != 0 || policy->memory_permille != 0;
}

/* Without the limit of memory it would be elsewhere. */
static bool is_for_memory(const tm_plan_explanation *explanation, uint32_t node) {
  for (uint32_t i = 0; i < explanation->change_count; i++) {
    const tm_requirement_change *change = &explanation->changes[i];
    if (change->kind == TM_CHANGE_MEMORY && change->places != NULL) return tm_requirement_change_moves(explanation, change, node);
  }
  return false;
}

static uint32_t why(const tm_plan_explanation *explanation, uint32_t node) {
  const uint32_t chosen = explanation->nodes[node].chosen, fastest = tm_explained_fastest(explanation, node);
  const tm_explained_label *label = &explanation->labels[chosen], *faster = &explanation->labels[fastest];
  if (tm_explained_op(explanation, node)->label_count == 1) return TM_WHY_ONLY;
  const bool is_cheapest = label->forced_ns == explanation->least_sum_ns;
  if (!is_cheapest && explanation->is_current == 0) return TM_WHY_PLANNED;
  if (!is_cheapest && has_weights(&explanation->policy)) return TM_WHY_WEIGHTS;
  if (is_for_memory(explanation, node)) return TM_WHY_MEMORY;
  if (fastest == chosen) return TM_WHY_FASTEST;
  if (!is_cheapest && explanation->choice.overlaps != 0) return TM_WHY_OVERLAP;
  return tm_label_price_sum(&faster->price) > tm_label_price_sum(&label->price) ? TM_WHY_SETUP : TM_WHY_COPIES;
}

static tm_status put_in_order(tm_plan_explanation *explanation, tm_error *error) {
  explanation->order = tm_arena_calloc(&explanation->arena, explanation->problem.solver.label_count, sizeof *explanation->order);
  if (explanation->order == NULL) return no_memory(error);
  for (uint32_t node = 0; node < explanation->node_count; node++) {
    sort_labels(explanation, node);
    explanation->nodes[node].why = why(explanation, node);
  }
  return TM_OK;
}

/* ---- all ---- */

/* What was chosen with less room, or more, is explained with that. */
static void take_budgets(tm_plan_explanation *explanation, const tm_explanation_request *request) {
  tm_solver_problem *solver = &explanation->problem.solver;
  if (request->budgets == NULL || solver->budgets == NULL || request->memory_count != solver->memory_count) return;
  memcpy((uint64_t *)(uintptr_t)solver->budgets, request->budgets, solver->memory_count * sizeof *solver->budgets);
}

static tm_status take_memory(tm_plan_explanation *explanation, const tm_explanation_request *request, tm_error *error) {
  const uint32_t count = explanation->problem.solver.memory_count;
  explanation->peak_bytes = tm_arena_calloc(&explanation->arena, count, sizeof *explanation->peak_bytes);
  if (explanation->peak_bytes == NULL) return no_memory(error);
  for (uint32_t i = 0; i < count && i < request->memory_count; i++) explanation->peak_bytes[i] = request->memory_bytes[i];
  return TM_OK;
}

/* A price for a MiB goes on for as long as there is a MiB to want: nothing saves more than doing without the limit would. */
static void limit_prices(tm_plan_explanation *explanation) {
  uint64_t most_ns = explanation->total_ns;
  for (uint32_t i = 0; i < explanation->change_count; i++) {
    const tm_requirement_change *change = &explanation->changes[i];
    if (change->kind == TM_CHANGE_MEMORY && change->places != NULL)
      most_ns = explanation->total_ns - tm_min_u64(explanation->total_ns, change->total_ns);
  }
  for (uint32_t i = 0; i < explanation->problem.solver.memory_count; i++)
    explanation->memory_prices[i] = tm_min_u64(explanation->memory_prices[i], most_ns);
}

static tm_status make(tm_plan_explanation *explanation, const tm_explanation_request *request, tm_error *error) {
  TM_TRY(tm_graph_problem_init(&explanation->problem, explanation->memory, request->graph, request->table, &explanation->policy,
                               error));
  take_budgets(explanation, request);
  TM_TRY(take_memory(explanation, request, error));
  TM_TRY(tm_explained_questions_make(explanation, error));
  TM_TRY(place(explanation, request, error));
  TM_TRY(weigh(explanation, error));
  TM_TRY(tm_requirement_changes_make(explanation, error));
  limit_prices(explanation);
  return put_in_order(explanation, error);
}

tm_status tm_graph_explanation_make(const tm_explanation_request *request, tm_plan_explanation **out_explanation, tm_error *error) {
  const tm_inventory *inventory = request->table->market.inventory;
  tm_plan_explanation *explanation = tm_memory_calloc(request->memory, 1, sizeof *explanation);
  if (explanation == NULL) return no_memory(error);
  explanation->memory = request->memory;
  explanation->policy = request->policy;
  explanation->node_count = request->graph->node_count;
  tm_arena_init(&explanation->arena, request->memory);
  tm_arena_init(&explanation->problem.arena, request->memory);
  (void)tm_inventory_wake_all(request->table->market.inventory, NULL);        /* every candidate is to say its word */
  tm_status status = TM_OK;
  if (request->policy.denied != NULL) {
    explanation->denied = tm_arena_calloc(&explanation->arena, inventory->device_count, sizeof *explanation->denied);
    if (explanation->denied == NULL) status = no_memory(error);
    else if (inventory->device_count != 0) memcpy(explanation->denied, request->policy.denied, inventory->device_count);
    explanation->policy.denied = explanation->denied;
  }
  if (status == TM_OK) status = make(explanation, request, error);
  if (status == TM_OK) *out_explanation = explanation;
  else tm_plan_explanation_destroy(explanation);
  return status;
}

void tm_plan_explanation_destroy(tm_plan_explanation *explanation) {
  if (explanation == NULL) return;
  tm_memory *memory = explanation->memory;
  if (explanation->choice.labels != NULL) tm_graph_choice_deinit(&explanation->choice);
  tm_graph_problem_deinit(&explanation->problem);
  tm_arena_deinit(&explanation->arena);
  tm_memory_free(memory, explanation, sizeof *explanation);
}
