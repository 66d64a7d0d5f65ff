/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_overlap.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "schedule/state_readers.h"
#include "solver/issue_order.h"
#include "solver/portfolio.h"
#include "solver/residency.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a graph"); }

/* Only what is enqueued and not waited for overlaps with anything. */
bool tm_graph_may_overlap(const tm_graph_problem *problem) {
  bool is_async = false;
  for (uint32_t i = 0; i < problem->place_count; i++)
    is_async |= (problem->places[i].device->info.flags & TM_DEVICE_SYNCHRONOUS) == 0;
  return is_async && problem->solver.resource_count > 1 && problem->solver.op_count > 1 &&
         problem->solver.op_count <= TM_PORTFOLIO_MOST_OPS;
}

/* ---- the thread as a resource ---- */

/* What computes within its calls keeps the thread that makes them, whatever silicon it is of. */
tm_status tm_graph_overlap_add_thread(tm_graph_problem *problem, tm_error *error) {
  const tm_solver_label *all = problem->solver.labels;
  tm_solver_label *labels = tm_arena_calloc(&problem->arena, problem->solver.label_count, sizeof *labels);
  if (labels == NULL) return no_memory(error);
  memcpy(labels, all, problem->solver.label_count * sizeof *labels);
  for (uint32_t op = 0; op < problem->solver.op_count; op++) {
    const tm_solver_op *one = &problem->solver.ops[op];
    for (uint32_t label = one->first_label; label < one->first_label + one->label_count; label++) {
      const bool is_enqueued = problem->labels[label].is_direct &&
                               (tm_graph_problem_candidate(problem, op, label)->device->info.flags & TM_DEVICE_SYNCHRONOUS) == 0;
      if (!is_enqueued) labels[label].resource = problem->solver.resource_count;
    }
  }
  problem->solver.labels = labels;
  problem->solver.resource_count++;
  return TM_OK;
}

static void remove_thread(tm_graph_problem *problem, const tm_solver_label *all) {
  problem->solver.labels = all;
  problem->solver.resource_count--;
}

/* ---- orders ---- */

/* Judges all orders of one problem, with the same memory. */
typedef struct referee {
  const tm_solver_problem *problem;
  tm_memory       *memory;
  tm_arena        *arena;
  tm_problem_index index;
  tm_event_model   model;
  tm_residency     residency;   /* where there are budgets */
  tm_issue_rules   rules;
} referee;

static tm_status referee_init(referee *r, const tm_solver_problem *problem, tm_memory *memory, tm_arena *arena, tm_error *error) {
  *r = (referee){ .problem = problem, .memory = memory, .arena = arena };
  TM_TRY(tm_problem_index_make(problem, arena, &r->index, error));
  TM_TRY(tm_event_model_init(&r->model, &r->index, arena, error));
  return problem->budgets == NULL ? TM_OK : tm_residency_init(&r->residency, &r->index, arena, error);
}

/* Labels with an order, and what they take. */
typedef struct arrangement {
  const uint32_t *labels;
  uint32_t       *order;
  uint32_t       *turns;        /* room for another order */
  uint64_t        total_ns;
  uint64_t        additive_ns;
  bool            fits;
} arrangement;

static bool fits(referee *r) {
  if (r->problem->budgets == NULL) return true;
  tm_residency_measure(&r->residency, &r->model);
  for (uint32_t i = 0; i < r->problem->memory_count; i++)
    if (r->residency.peak_bytes[i] > r->problem->budgets[i]) return false;
  return true;
}

static void judge(referee *r, arrangement *one) {
  tm_event_model_run(&r->model, one->labels, one->order);
  one->total_ns = r->model.makespan_ns;
  one->additive_ns = r->model.additive_ns;
  one->fits = fits(r);
}

static bool is_same_order(const referee *r, const uint32_t *a, const uint32_t *b) {
  return r->problem->op_count == 0 || memcmp(a, b, r->problem->op_count * sizeof *a) == 0;
}

/* In the order in which one thread hands it out; where nodes keep theirs, unless that takes longer or more room. */
static tm_status put_in_turn(referee *r, bool may_stay, arrangement *one, tm_error *error) {
  arrangement turned = *one;
  judge(r, one);
  TM_TRY(tm_issue_order_make(&r->model, &r->rules, r->memory, one->turns, error));
  if (is_same_order(r, one->turns, one->order)) return TM_OK;
  turned.order = one->turns;
  turned.turns = one->order;
  judge(r, &turned);
  const bool is_as_good = turned.total_ns <= one->total_ns && turned.fits >= one->fits;
  if (is_as_good || !may_stay) *one = turned;
  return TM_OK;
}

/* ---- what is over sooner ---- */

#define ARRANGEMENTS 3u

/* The cheapest sum as nodes come; what the portfolio found, likewise and in its own order.  What comes out like another one is not
   looked at. */
static tm_status arrange(referee *r, const uint32_t *cheapest, const tm_portfolio *portfolio, arrangement *all, uint32_t *out_count,
                         tm_error *error) {
  const bool is_cheapest = is_same_order(r, portfolio->labels, cheapest);
  bool is_as_it_comes = r->problem->budgets == NULL;
  for (uint32_t op = 0; op < r->problem->op_count && is_as_it_comes; op++) is_as_it_comes = portfolio->order[op] == op;
  *out_count = 0;
  for (uint32_t i = 0; i < ARRANGEMENTS; i++) {
    if ((i == 1 && is_cheapest) || (i == 2 && is_as_it_comes)) continue;
    arrangement *one = &all[(*out_count)++];
    one->labels = i == 0 ? cheapest : portfolio->labels;
    for (uint32_t op = 0; op < r->problem->op_count; op++) one->order[op] = i == 2 ? portfolio->order[op] : op;
    TM_TRY(put_in_turn(r, i != 2, one, error));
  }
  return TM_OK;
}

/* Of those that take as long the first. */
static arrangement *find_best(arrangement *all, uint32_t count) {
  arrangement *best = &all[0];
  for (uint32_t i = 1; i < count; i++)
    if (all[i].fits && all[i].total_ns < best->total_ns) best = &all[i];
  return best;
}

static tm_status make_room(arrangement *all, uint32_t count, uint64_t op_count, tm_arena *arena, tm_error *error) {
  for (uint32_t i = 0; i < count; i++) {
    all[i].order = tm_arena_alloc(arena, op_count * sizeof *all[i].order);
    all[i].turns = tm_arena_alloc(arena, op_count * sizeof *all[i].turns);
    if (all[i].order == NULL || all[i].turns == NULL) return no_memory(error);
  }
  return TM_OK;
}

static tm_status hand_out(referee *r, const tm_portfolio_plan *plan, arrangement *one, tm_error *error) {
  one->labels = plan->labels;
  if (r->problem->op_count != 0) memcpy(one->order, plan->order, r->problem->op_count * sizeof *one->order);
  return put_in_turn(r, false, one, error);
}

/* What the portfolio has as the best need not be that as one thread hands it out. */
static tm_status try_others(referee *r, const tm_portfolio *portfolio, arrangement *best, arrangement *other, tm_error *error) {
  for (uint32_t i = 0; i < portfolio->plan_count; i++) {
    const tm_portfolio_plan *plan = &portfolio->plans[i];
    if (i == portfolio->best || plan->makespan_ns >= best->total_ns) continue;
    TM_TRY(hand_out(r, plan, other, error));
    if (!other->fits || other->total_ns >= best->total_ns) continue;
    const arrangement better = *other;
    *other = *best;
    *best = better;
  }
  return TM_OK;
}

static void take(const arrangement *best, tm_graph_choice *choice) {
  memcpy(choice->labels, best->labels, choice->node_count * sizeof *choice->labels);
  memcpy(choice->order, best->order, choice->node_count * sizeof *choice->order);
  choice->total_ns = best->total_ns;
  choice->additive_ns = best->additive_ns;
  choice->overlaps = 1;
}

static tm_status improve(const tm_graph_problem *problem, tm_memory *memory, tm_arena *arena, tm_graph_choice *choice,
                         tm_error *error) {
  const tm_portfolio_seed seed = { "additive", choice->cheapest };
  const tm_portfolio_options options = { .move_steps = TM_PORTFOLIO_MOVE_STEPS, .with_lists = true, .only_best = true };
  arrangement all[ARRANGEMENTS + 1] = { { 0 } };
  uint32_t count;
  referee r;
  tm_portfolio portfolio;
  TM_TRY(tm_portfolio_solve(&problem->solver, &seed, 1, &options, memory, &portfolio, error));
  tm_status status = referee_init(&r, &problem->solver, memory, arena, error);
  r.rules.thread_resource = problem->solver.resource_count - 1;
  if (status == TM_OK) status = make_room(all, ARRANGEMENTS + 1, choice->node_count, arena, error);
  if (status == TM_OK) status = tm_state_readers_list(problem->graph, arena, &r.rules, error);
  if (status == TM_OK) status = arrange(&r, choice->cheapest, &portfolio, all, &count, error);
  arrangement *best = status == TM_OK ? find_best(all, count) : NULL;
  if (status == TM_OK) status = try_others(&r, &portfolio, best, &all[ARRANGEMENTS], error);
  if (status == TM_OK) take(best, choice);
  choice->bound_ns = portfolio.bound_ns;
  tm_portfolio_deinit(&portfolio);
  return status;
}

tm_status tm_graph_overlap_improve(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error) {
  const tm_solver_label *all = problem->solver.labels;
  tm_arena arena;
  choice->cheapest = tm_memory_calloc(choice->memory, choice->node_count, sizeof *choice->cheapest);
  if (choice->cheapest == NULL) return no_memory(error);
  memcpy(choice->cheapest, choice->labels, choice->node_count * sizeof *choice->cheapest);
  TM_TRY(tm_graph_overlap_add_thread(problem, error));
  tm_arena_init(&arena, memory);
  const tm_status status = improve(problem, memory, &arena, choice, error);
  tm_arena_deinit(&arena);
  remove_thread(problem, all);
  return status;
}

tm_status tm_graph_overlap_find_bound(tm_graph_problem *problem, tm_memory *memory, uint64_t *out_bound_ns, tm_error *error) {
  const tm_solver_label *all = problem->solver.labels;
  TM_TRY(tm_graph_overlap_add_thread(problem, error));
  const tm_status status = tm_portfolio_find_bound(&problem->solver, memory, out_bound_ns, error);
  remove_thread(problem, all);
  return status;
}

/* Beyond the budgets, of what was judged last. */
static uint64_t excess_bytes(const referee *r) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < r->problem->memory_count; i++)
    if (r->residency.peak_bytes[i] > r->problem->budgets[i])
      bytes = tm_solver_add(bytes, r->residency.peak_bytes[i] - r->problem->budgets[i]);
  return bytes;
}

static tm_status time_plans(const tm_graph_problem *problem, tm_memory *memory, tm_arena *arena, tm_portfolio *portfolio,
                            uint64_t than_ns, uint64_t *out_times_ns, tm_error *error) {
  referee r;
  arrangement one = { 0 };
  TM_TRY(referee_init(&r, &problem->solver, memory, arena, error));
  r.rules.thread_resource = problem->solver.resource_count - 1;
  TM_TRY(make_room(&one, 1, problem->solver.op_count, arena, error));
  TM_TRY(tm_state_readers_list(problem->graph, arena, &r.rules, error));
  for (uint32_t i = 0; i < portfolio->plan_count; i++) {
    out_times_ns[i] = portfolio->plans[i].makespan_ns;
    if (out_times_ns[i] >= than_ns) continue;
    TM_TRY(hand_out(&r, &portfolio->plans[i], &one, error));
    out_times_ns[i] = one.total_ns;
    if (one.fits) continue;
    judge(&r, &one);
    portfolio->plans[i].excess_bytes = tm_max_u64(portfolio->plans[i].excess_bytes, excess_bytes(&r));
  }
  return TM_OK;
}

tm_status tm_graph_overlap_time(const tm_graph_problem *problem, tm_memory *memory, tm_portfolio *portfolio, uint64_t than_ns,
                                uint64_t *out_times_ns, tm_error *error) {
  tm_arena arena;
  tm_arena_init(&arena, memory);
  const tm_status status = time_plans(problem, memory, &arena, portfolio, than_ns, out_times_ns, error);
  tm_arena_deinit(&arena);
  return status;
}

static tm_status judge_given(const tm_graph_problem *problem, tm_memory *memory, tm_arena *arena, arrangement *one, tm_error *error) {
  referee r;
  TM_TRY(referee_init(&r, &problem->solver, memory, arena, error));
  TM_TRY(tm_problem_index_check_labels(&r.index, one->labels, error));
  judge(&r, one);
  return TM_OK;
}

tm_status tm_graph_overlap_judge(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error) {
  const tm_solver_label *all = problem->solver.labels;
  arrangement one = { .labels = choice->labels, .order = choice->order };
  tm_arena arena;
  TM_TRY(tm_graph_overlap_add_thread(problem, error));
  tm_arena_init(&arena, memory);
  const tm_status status = judge_given(problem, memory, &arena, &one, error);
  tm_arena_deinit(&arena);
  remove_thread(problem, all);
  TM_TRY(status);
  choice->overlaps = tm_graph_may_overlap(problem);
  choice->additive_ns = one.additive_ns;
  choice->total_ns = choice->overlaps != 0 ? one.total_ns : one.additive_ns;
  return TM_OK;
}
