/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_overlap.h"

#include <string.h>

#include "base/error.h"
#include "schedule/state_readers.h"
#include "solver/issue_order.h"
#include "solver/portfolio.h"
#include "solver/timeline.h"

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

/* Labels with an order, and what they take. */
typedef struct arrangement {
  const uint32_t *labels;
  uint32_t       *order;
  uint32_t       *turns;        /* room for another order */
  uint64_t        total_ns;
  uint64_t        additive_ns;
  bool            fits;
} arrangement;

static bool fits(const tm_graph_problem *problem, const tm_timeline *timeline) {
  for (uint32_t i = 0; problem->solver.budgets != NULL && i < timeline->memory_count; i++)
    if (timeline->peak_bytes[i] > problem->solver.budgets[i]) return false;
  return true;
}

static tm_status judge(const tm_graph_problem *problem, tm_memory *memory, arrangement *one, tm_timeline *out_timeline,
                       tm_error *error) {
  TM_TRY(tm_timeline_simulate(&problem->solver, one->labels, one->order, memory, out_timeline, error));
  one->total_ns = out_timeline->makespan_ns;
  one->additive_ns = out_timeline->additive_ns;
  one->fits = fits(problem, out_timeline);
  return TM_OK;
}

/* In the order in which one thread hands it out; where nodes keep theirs, unless that takes longer or more room. */
static tm_status put_in_turn(const tm_graph_problem *problem, tm_memory *memory, const tm_issue_rules *rules, bool may_stay,
                             arrangement *one, tm_error *error) {
  tm_timeline timeline;
  arrangement turned = *one;
  TM_TRY(judge(problem, memory, one, &timeline, error));
  const tm_status status = tm_issue_order_make(&problem->solver, one->labels, one->order, &timeline, rules, memory, one->turns, error);
  tm_timeline_deinit(&timeline);
  TM_TRY(status);
  turned.order = one->turns;
  turned.turns = one->order;
  TM_TRY(judge(problem, memory, &turned, &timeline, error));
  tm_timeline_deinit(&timeline);
  const bool is_as_good = turned.total_ns <= one->total_ns && turned.fits >= one->fits;
  if (is_as_good || !may_stay) *one = turned;
  return TM_OK;
}

/* ---- what is over sooner ---- */

#define ARRANGEMENTS 3u

/* The cheapest sum as nodes come; what the portfolio found, likewise and in its own order. */
static tm_status arrange(const tm_graph_problem *problem, tm_memory *memory, const tm_issue_rules *rules, const uint32_t *cheapest,
                         const tm_portfolio *portfolio, arrangement *all, tm_error *error) {
  for (uint32_t i = 0; i < ARRANGEMENTS; i++) {
    all[i].labels = i == 0 ? cheapest : portfolio->labels;
    for (uint32_t op = 0; op < problem->solver.op_count; op++) all[i].order[op] = i == 2 ? portfolio->order[op] : op;
    TM_TRY(put_in_turn(problem, memory, rules, i != 2, &all[i], error));
  }
  return TM_OK;
}

/* Of those that take as long the first. */
static const arrangement *find_best(const arrangement *all) {
  const arrangement *best = &all[0];
  for (uint32_t i = 1; i < ARRANGEMENTS; i++)
    if (all[i].fits && all[i].total_ns < best->total_ns) best = &all[i];
  return best;
}

static tm_status make_room(arrangement *all, uint64_t op_count, tm_arena *arena, tm_error *error) {
  for (uint32_t i = 0; i < ARRANGEMENTS; i++) {
    all[i].order = tm_arena_alloc(arena, op_count * sizeof *all[i].order);
    all[i].turns = tm_arena_alloc(arena, op_count * sizeof *all[i].turns);
    if (all[i].order == NULL || all[i].turns == NULL) return no_memory(error);
  }
  return TM_OK;
}

static void take(const arrangement *best, tm_graph_choice *choice) {
  if (best->labels != choice->labels) memcpy(choice->labels, best->labels, choice->node_count * sizeof *choice->labels);
  memcpy(choice->order, best->order, choice->node_count * sizeof *choice->order);
  choice->total_ns = best->total_ns;
  choice->additive_ns = best->additive_ns;
  choice->overlaps = 1;
}

static tm_status improve(const tm_graph_problem *problem, tm_memory *memory, tm_arena *arena, tm_graph_choice *choice,
                         tm_error *error) {
  const tm_portfolio_seed seed = { "additive", choice->labels };
  tm_issue_rules rules = { .thread_resource = problem->solver.resource_count - 1 };
  arrangement all[ARRANGEMENTS] = { { 0 } };
  tm_portfolio portfolio;
  TM_TRY(make_room(all, choice->node_count, arena, error));
  TM_TRY(tm_state_readers_list(problem->graph, arena, &rules, error));
  TM_TRY(tm_portfolio_solve(&problem->solver, &seed, 1, NULL, memory, &portfolio, error));
  const tm_status status = arrange(problem, memory, &rules, choice->labels, &portfolio, all, error);
  if (status == TM_OK) take(find_best(all), choice);
  choice->bound_ns = portfolio.bound_ns;
  tm_portfolio_deinit(&portfolio);
  return status;
}

tm_status tm_graph_overlap_improve(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error) {
  const tm_solver_label *all = problem->solver.labels;
  tm_arena arena;
  TM_TRY(tm_graph_overlap_add_thread(problem, error));
  tm_arena_init(&arena, memory);
  const tm_status status = improve(problem, memory, &arena, choice, error);
  tm_arena_deinit(&arena);
  remove_thread(problem, all);
  return status;
}

tm_status tm_graph_overlap_judge(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error) {
  const tm_solver_label *all = problem->solver.labels;
  arrangement one = { .labels = choice->labels, .order = choice->order };
  tm_timeline timeline;
  TM_TRY(tm_graph_overlap_add_thread(problem, error));
  const tm_status status = judge(problem, memory, &one, &timeline, error);
  remove_thread(problem, all);
  TM_TRY(status);
  tm_timeline_deinit(&timeline);
  choice->overlaps = tm_graph_may_overlap(problem);
  choice->additive_ns = one.additive_ns;
  choice->total_ns = choice->overlaps != 0 ? one.total_ns : one.additive_ns;
  return TM_OK;
}
