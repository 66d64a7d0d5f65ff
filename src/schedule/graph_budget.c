/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_budget.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "solver/occupancy.h"
#include "solver/portfolio.h"

#define MEMORY_NAME_BYTES 96u

/* Host memory cannot be done without; a device can. */
static tm_status fail_short(const tm_graph_problem *problem, const tm_memory_shortage *lack, tm_error *error) {
  char node[TM_GRAPH_LABEL_CAPACITY], where[MEMORY_NAME_BYTES];
  const tm_device_slot *device = problem->memories[lack->memory];
  tm_graph_name_node(problem->graph, lack->op, node, sizeof node);
  tm_graph_problem_name_memory(problem, lack->memory, where, sizeof where);
  return tm_fail(error, TM_ERROR_LIMIT,
                 "no plan keeps to the memory that is allowed: the nearest one needs %llu bytes of %s for %.200s, and %llu are "
                 "allowed in any one memory; allow more (max_memory_bytes)%s%s",
                 (unsigned long long)lack->needed_bytes, where, node, (unsigned long long)lack->allowed_bytes,
                 device == NULL ? "" : ", or do without ", device == NULL ? "" : device->name);
}

/* What is too large to be added up is mostly one value. */
static void name_largest(const tm_graph_problem *problem, tm_error *error) {
  char name[TM_GRAPH_LABEL_CAPACITY];
  uint32_t largest = 0;
  for (uint32_t i = 1; i < problem->solver.value_count; i++)
    if (problem->solver.values[i].bytes > problem->solver.values[largest].bytes) largest = i;
  if (problem->solver.value_count == 0) return;
  tm_graph_name_value(problem->graph, problem->graph_values[largest], name, sizeof name);
  tm_error_prefix(error, "a graph with %s", name);
}

/* ---- other ways to a plan ---- */

/* What runs one after the other takes, and needs, in the graph's own order. */
static void take_if_cheaper(const tm_occupancy *occupancy, const uint32_t *labels, tm_assignment_within *within) {
  tm_assignment *assignment = &within->assignment;
  if (occupancy->excess_bytes != 0 || occupancy->total_ns >= assignment->total_ns) return;
  memcpy(assignment->labels, labels, occupancy->problem->op_count * sizeof *labels);
  memcpy(within->peak_bytes, occupancy->peak_bytes, within->memory_count * sizeof *within->peak_bytes);
  assignment->total_ns = occupancy->total_ns;
  assignment->is_exact = assignment->bound_ns == assignment->total_ns;
}

/* What each plan of a portfolio needs beyond the budgets; a cheaper one that needs nothing becomes `within`, if that is given. */
static tm_status weigh_plans(const tm_solver_problem *solver, tm_portfolio *portfolio, tm_memory *memory, tm_assignment_within *within,
                             tm_error *error) {
  tm_arena arena;
  tm_flow flow;
  tm_occupancy occupancy;
  tm_arena_init(&arena, memory);
  tm_status status = tm_flow_init(&flow, solver, &arena, error);
  if (status == TM_OK) status = tm_occupancy_init(&occupancy, solver, &flow, &arena, error);
  for (uint32_t i = 0; i < portfolio->plan_count && status == TM_OK; i++) {
    tm_portfolio_plan *plan = &portfolio->plans[i];
    if (plan->labels == NULL) continue;
    tm_occupancy_weigh(&occupancy, plan->labels);
    plan->excess_bytes = occupancy.excess_bytes;
    if (within != NULL) take_if_cheaper(&occupancy, plan->labels, within);
  }
  tm_arena_deinit(&arena);
  return status;
}

tm_status tm_graph_budget_weigh(const tm_solver_problem *solver, tm_portfolio *portfolio, tm_memory *memory, tm_error *error) {
  return weigh_plans(solver, portfolio, memory, NULL, error);
}

/* Where prices of memory leave a gap, one of the plans that are good where things overlap may fit and cost less. */
static tm_status look_at_others(const tm_solver_problem *solver, tm_memory *memory, tm_assignment_within *within, tm_error *error) {
  const tm_portfolio_seed seed = { "cheapest-sum", within->assignment.labels };
  const tm_portfolio_options options = { .move_steps = TM_PORTFOLIO_MOVE_STEPS, .with_lists = true };
  tm_portfolio portfolio;
  if (solver->budgets == NULL || within->assignment.is_exact || solver->op_count > TM_PORTFOLIO_MOST_OPS) return TM_OK;
  tm_status status = tm_portfolio_solve(solver, &seed, 1, &options, memory, &portfolio, error);
  if (status != TM_OK) return status == TM_ERROR_NO_MEMORY ? status : TM_OK;    /* there is the one that was found */
  status = weigh_plans(solver, &portfolio, memory, within, error);
  tm_portfolio_deinit(&portfolio);
  return status;
}

tm_status tm_graph_budget_solve(const tm_graph_problem *problem, bool with_marginals, tm_memory *memory, tm_assignment_within *out,
                                tm_error *error) {
  const tm_assignment_options options = { .without_marginals = !with_marginals };
  tm_status status = tm_assignment_solve_within(&problem->solver, &options, memory, out, error);
  if (status == TM_OK) {
    status = look_at_others(&problem->solver, memory, out, error);
    if (status != TM_OK) tm_assignment_within_deinit(out);
    return status;
  }
  if (status == TM_ERROR_ARGUMENT) name_largest(problem, error);
  return status == TM_ERROR_LIMIT && out->shortage.needed_bytes != 0 ? fail_short(problem, &out->shortage, error) : status;
}
