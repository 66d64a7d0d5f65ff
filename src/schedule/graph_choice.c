/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_choice.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "plugin/reference.h"
#include "schedule/graph_budget.h"
#include "schedule/graph_overlap.h"
#include "solver/move_price.h"
#include "solver/timeline.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a graph"); }

static tm_status begin(tm_graph_choice *choice, tm_memory *memory, uint32_t node_count, tm_error *error) {
  *choice = (tm_graph_choice){ .memory = memory, .node_count = node_count };
  choice->labels = tm_memory_calloc(memory, node_count, sizeof *choice->labels);
  choice->alternates = tm_memory_calloc(memory, node_count, sizeof *choice->alternates);
  choice->order = tm_memory_calloc(memory, node_count, sizeof *choice->order);
  if (choice->labels == NULL || choice->alternates == NULL || choice->order == NULL) return no_memory(error);
  for (uint32_t i = 0; i < node_count; i++) choice->order[i] = i;
  return TM_OK;
}

/* ---- alternates ---- */

/* The alternate takes over where the device of one node fails and everything else stays where it is. */
static tm_status find_alternates(const tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error) {
  const tm_solver_problem *solver = &problem->solver;
  uint64_t *prices = tm_memory_calloc(memory, solver->label_count, sizeof *prices);
  tm_status status =
      prices == NULL ? no_memory(error) : tm_move_prices_find(solver, choice->labels, memory, prices, error);
  for (uint32_t op = 0; op < choice->node_count && status == TM_OK; op++) {
    const tm_solver_op *one = &solver->ops[op];
    const tm_device_slot *taken = tm_graph_problem_candidate(problem, op, choice->labels[op])->device;
    uint32_t best = TM_SOLVER_NONE;
    for (uint32_t label = one->first_label; label < one->first_label + one->label_count; label++) {
      if (prices[label] == TM_SOLVER_NEVER || tm_graph_problem_candidate(problem, op, label)->device == taken) continue;
      const bool is_lower = best != TM_SOLVER_NONE && solver->labels[label].rank < solver->labels[best].rank;
      if (best == TM_SOLVER_NONE || prices[label] < prices[best] || (prices[label] == prices[best] && is_lower)) best = label;
    }
    choice->alternates[op] = best;
  }
  tm_memory_free(memory, prices, solver->label_count * sizeof *prices);
  return status;
}

/* ---- the cheapest sum ---- */

static void take_assignment(const tm_assignment *assignment, uint32_t home, tm_graph_choice *choice) {
  choice->total_ns = choice->additive_ns = assignment->total_ns;
  choice->bound_ns = assignment->bound_ns;
  choice->is_exact = assignment->is_exact;
  choice->overlaps = 0;
  choice->state_memory = home;
  if (choice->node_count != 0) memcpy(choice->labels, assignment->labels, choice->node_count * sizeof *choice->labels);
}

/* What bounds one home of states bounds no other. */
static void take_if_cheaper(const tm_assignment *assignment, uint32_t home, tm_graph_choice *choice) {
  const bool is_first = choice->total_ns == TM_SOLVER_NEVER;
  const uint64_t bound_ns = is_first ? assignment->bound_ns : tm_min_u64(choice->bound_ns, assignment->bound_ns);
  if (is_first || assignment->total_ns < choice->total_ns) take_assignment(assignment, home, choice);
  choice->bound_ns = bound_ns;
  choice->is_exact = bound_ns == choice->total_ns;
}

static tm_status solve_freely(const tm_graph_problem *problem, tm_memory *memory, uint32_t home, tm_graph_choice *choice,
                              tm_error *error) {
  const tm_assignment_options options = { .without_marginals = true };
  tm_assignment found;
  TM_TRY(tm_assignment_solve(&problem->solver, &options, memory, &found, error));
  take_if_cheaper(&found, home, choice);
  tm_assignment_deinit(&found);
  return TM_OK;
}

/* `is_as_priced`: labels are all there and at the problem's own prices. */
static tm_status solve_at(const tm_graph_problem *problem, tm_memory *memory, uint32_t home, bool is_as_priced,
                          tm_graph_choice *choice, tm_error *error) {
  tm_assignment_within within;
  if (problem->solver.budgets == NULL) {
    if (!problem->is_settled || home != TM_HOST_SPACE || !is_as_priced) return solve_freely(problem, memory, home, choice, error);
    take_if_cheaper(&problem->settled, home, choice);
    return TM_OK;
  }
  const tm_status status = tm_graph_budget_solve(problem, false, memory, &within, error);
  if (status == TM_ERROR_LIMIT && choice->shortage.needed_bytes == 0) choice->shortage = within.shortage;
  TM_TRY(status);
  take_if_cheaper(&within.assignment, home, choice);
  tm_assignment_within_deinit(&within);
  return TM_OK;
}

/* The first error counts when no home of states has a solution. */
static tm_status solve(tm_graph_problem *problem, tm_memory *memory, bool is_as_priced, tm_graph_choice *choice, tm_error *error) {
  const uint32_t home_count = problem->graph->states.count == 0 ? 1 : problem->solver.memory_count;
  tm_status first = TM_OK;
  choice->total_ns = TM_SOLVER_NEVER;
  for (uint32_t home = 0; home < home_count; home++) {
    if (!tm_graph_problem_keep_states(problem, home) && home != TM_HOST_SPACE) continue;
    const tm_status status = solve_at(problem, memory, home, is_as_priced, choice, first == TM_OK ? error : NULL);
    if (first == TM_OK) first = status;
  }
  if (choice->total_ns == TM_SOLVER_NEVER) return first;
  (void)tm_graph_problem_keep_states(problem, choice->state_memory);
  return TM_OK;
}

/* ---- on one resource ---- */

static bool is_last_resort(const tm_graph_problem *problem, uint32_t op, uint32_t label) {
  return strcmp(tm_graph_problem_candidate(problem, op, label)->device->backend->name, TM_REFERENCE_NAME) == 0;
}

/* Costs as they are, but for labels that stay on the resource where that can be, and go to the last resort where not. */
static void restrict_to(const tm_graph_problem *problem, uint32_t resource, const tm_solver_label *all, tm_solver_label *labels) {
  for (uint32_t op = 0; op < problem->solver.op_count; op++) {
    const tm_solver_op *one = &problem->solver.ops[op];
    bool can = false;
    for (uint32_t label = one->first_label; label < one->first_label + one->label_count; label++)
      can |= all[label].resource == resource;
    for (uint32_t label = one->first_label; label < one->first_label + one->label_count; label++) {
      const bool stays = can ? all[label].resource == resource : is_last_resort(problem, op, label);
      labels[label].cost_ns = stays ? all[label].cost_ns : TM_SOLVER_NEVER;
    }
  }
}

/* ---- what is wanted ---- */

static bool has_weights(const tm_plan_policy *policy) {
  return (policy->latency_permille | policy->throughput_permille | policy->memory_permille) != 0;
}

static uint64_t times(uint64_t amount, uint32_t permille) { return amount / 1000 * permille + amount % 1000 * permille / 1000; }

/* What the policy wants little of: time until the end, time of the busiest resource, and memory, a KiB at its peak like a ns. */
static tm_status weigh(const tm_graph_problem *problem, const tm_plan_policy *policy, tm_memory *memory,
                       const tm_graph_choice *choice, uint64_t *out_score, tm_error *error) {
  tm_timeline timeline;
  *out_score = choice->total_ns;
  if (!has_weights(policy)) return TM_OK;
  TM_TRY(tm_timeline_simulate(&problem->solver, choice->labels, choice->order, memory, &timeline, error));
  uint64_t busiest_ns = 0, peak_bytes = 0;
  for (uint32_t i = 0; i < timeline.resource_count; i++) busiest_ns = tm_max_u64(busiest_ns, timeline.busy_ns[i]);
  for (uint32_t i = 0; i < timeline.memory_count; i++) peak_bytes = tm_solver_add(peak_bytes, timeline.peak_bytes[i]);
  *out_score = tm_solver_add(times(timeline.makespan_ns, policy->latency_permille), times(busiest_ns, policy->throughput_permille));
  *out_score = tm_solver_add(*out_score, times(peak_bytes / 1024, policy->memory_permille));
  tm_timeline_deinit(&timeline);
  return TM_OK;
}

/* What of a choice is in arrays. */
static void copy_lists(const tm_graph_choice *from, tm_graph_choice *to) {
  memcpy(to->labels, from->labels, from->node_count * sizeof *to->labels);
  memcpy(to->order, from->order, from->node_count * sizeof *to->order);
}

static void keep_order(tm_graph_choice *choice) {
  for (uint32_t i = 0; i < choice->node_count; i++) choice->order[i] = i;
}

/* One resource after the other, where that is demanded or what the policy weighs comes out less than for `choice`.  No placement
   takes less than what bounds them all: where one resource is demanded the least of the resources', else that of `choice`. */
static tm_status solve_on_one(tm_graph_problem *problem, const tm_plan_policy *policy, tm_memory *memory, tm_graph_choice *choice,
                              tm_error *error) {
  const tm_solver_label *all = problem->solver.labels;
  tm_solver_label *labels = tm_arena_calloc(&problem->arena, problem->solver.label_count, sizeof *labels);
  tm_graph_choice best = *choice, own = *choice;
  best.labels = tm_arena_calloc(&problem->arena, problem->solver.op_count, sizeof *best.labels);
  best.order = tm_arena_calloc(&problem->arena, problem->solver.op_count, sizeof *best.order);
  if (labels == NULL || best.labels == NULL || best.order == NULL) return no_memory(error);
  memcpy(labels, all, problem->solver.label_count * sizeof *labels);
  uint64_t least = TM_SOLVER_NEVER, score, bound_ns = policy->one_resource == 0 ? choice->bound_ns : UINT64_MAX;
  if (policy->one_resource == 0) TM_TRY(weigh(problem, policy, memory, choice, &least, error));
  copy_lists(choice, &best);
  keep_order(choice);
  tm_status first = TM_OK;
  for (uint32_t resource = 0; resource < problem->solver.resource_count; resource++) {
    restrict_to(problem, resource, all, labels);
    problem->solver.labels = labels;
    tm_status status = solve(problem, memory, false, choice, first == TM_OK ? error : NULL);
    problem->solver.labels = all;
    if (status == TM_OK) status = weigh(problem, policy, memory, choice, &score, first == TM_OK ? error : NULL);
    if (first == TM_OK) first = status;
    if (status == TM_OK && policy->one_resource != 0) bound_ns = tm_min_u64(bound_ns, choice->bound_ns);
    if (status != TM_OK || score >= least) continue;
    least = score;
    own = *choice;
    copy_lists(choice, &best);
  }
  if (least == TM_SOLVER_NEVER) return first;
  *choice = own;
  choice->bound_ns = bound_ns;
  copy_lists(&best, choice);
  (void)tm_graph_problem_keep_states(problem, choice->state_memory);
  return TM_OK;
}

/* ---- all ---- */

/* What devices do at the same time bounds one home of states only; the others may have less. */
static tm_status bound_other_homes(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error) {
  tm_status status = TM_OK;
  if (problem->graph->states.count == 0) return TM_OK;
  for (uint32_t home = 0; home < problem->solver.memory_count && status == TM_OK; home++) {
    uint64_t bound_ns = choice->bound_ns;
    if (home == choice->state_memory || (!tm_graph_problem_keep_states(problem, home) && home != TM_HOST_SPACE)) continue;
    status = tm_graph_overlap_find_bound(problem, memory, &bound_ns, error);
    choice->bound_ns = tm_min_u64(choice->bound_ns, bound_ns);
    if (status == TM_ERROR_NO_DEVICE) status = TM_OK;   /* not with states there */
  }
  (void)tm_graph_problem_keep_states(problem, choice->state_memory);
  return status;
}

static tm_status improve(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error) {
  if (!tm_graph_may_overlap(problem)) return TM_OK;
  TM_TRY(tm_graph_overlap_improve(problem, memory, choice, error));
  return bound_other_homes(problem, memory, choice, error);
}

/* Told as it would be if it were given (tm_graph_choice_pin): one resource may be a device that works beside the thread. */
static tm_status solve_weighted(tm_graph_problem *problem, const tm_plan_policy *policy, tm_memory *memory, tm_graph_choice *choice,
                                tm_error *error) {
  TM_TRY(solve_on_one(problem, policy, memory, choice, error));
  return tm_graph_may_overlap(problem) && choice->overlaps == 0 ? tm_graph_overlap_judge(problem, memory, choice, error) : TM_OK;
}

static tm_status choose(tm_graph_problem *problem, const tm_plan_policy *policy, tm_memory *memory, tm_graph_choice *choice,
                        tm_error *error) {
  TM_TRY(begin(choice, memory, problem->graph->node_count, error));
  if (choice->node_count == 0) return TM_OK;
  if (policy->one_resource != 0) return solve_on_one(problem, policy, memory, choice, error);
  TM_TRY(solve(problem, memory, true, choice, error));
  TM_TRY(improve(problem, memory, choice, error));
  return has_weights(policy) ? solve_weighted(problem, policy, memory, choice, error) : TM_OK;
}

tm_status tm_graph_choice_make(tm_graph_problem *problem, const tm_plan_policy *policy, tm_memory *memory,
                               tm_graph_choice *out_choice, tm_error *error) {
  tm_status status = choose(problem, policy, memory, out_choice, error);
  if (status == TM_OK && out_choice->node_count != 0) status = find_alternates(problem, memory, out_choice, error);
  if (status == TM_OK) return TM_OK;
  const tm_memory_shortage shortage = out_choice->shortage;
  tm_graph_choice_deinit(out_choice);
  out_choice->shortage = shortage;
  return status;
}

tm_status tm_graph_choice_pin(tm_graph_problem *problem, tm_memory *memory, const uint32_t *labels, const uint32_t *order,
                              uint32_t state_memory, tm_graph_choice *out_choice, tm_error *error) {
  tm_status status = begin(out_choice, memory, problem->graph->node_count, error);
  if (status == TM_OK) {
    (void)tm_graph_problem_keep_states(problem, state_memory);
    out_choice->state_memory = state_memory;
    if (out_choice->node_count != 0) memcpy(out_choice->labels, labels, out_choice->node_count * sizeof *labels);
    if (out_choice->node_count != 0 && order != NULL) memcpy(out_choice->order, order, out_choice->node_count * sizeof *order);
    status = find_alternates(problem, memory, out_choice, error);
    if (status == TM_OK && out_choice->node_count != 0) status = tm_graph_overlap_judge(problem, memory, out_choice, error);
  }
  if (status != TM_OK) tm_graph_choice_deinit(out_choice);
  return status;
}

void tm_graph_choice_add_up(tm_graph_choice *choice) {
  choice->total_ns = choice->additive_ns;
  choice->overlaps = 0;
}

void tm_graph_choice_deinit(tm_graph_choice *choice) {
  tm_memory_free(choice->memory, choice->labels, choice->node_count * sizeof *choice->labels);
  tm_memory_free(choice->memory, choice->alternates, choice->node_count * sizeof *choice->alternates);
  tm_memory_free(choice->memory, choice->order, choice->node_count * sizeof *choice->order);
  tm_memory_free(choice->memory, choice->cheapest, choice->node_count * sizeof *choice->cheapest);
  memset(choice, 0, sizeof *choice);
}
