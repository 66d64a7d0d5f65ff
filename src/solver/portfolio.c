/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/portfolio.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "solver/cpop.h"
#include "solver/critical_moves.h"
#include "solver/makespan_bound.h"
#include "solver/plan_judge.h"
#include "solver/single_device.h"

/* Of tm_plan_judge.work: up to which a list schedule is a matter of milliseconds, and of a second; and what all plans for
   single devices may cost together. */
#define MOST_WORK        (UINT64_C(1) << 22)
#define MOST_LIST_WORK   (UINT64_C(1) << 26)
#define MOST_SINGLE_WORK (UINT64_C(1) << 29)

/* Plans that moves begin with, one after the other. */
#define MOST_STARTS 4u

typedef struct plan_search {
  tm_plan_judge  judge;
  tm_arena      *arena;
  tm_judged_plan best[MOST_STARTS];     /* the best so far, the best first */
  tm_judged_plan trial;
  uint64_t       bound_ns;
  tm_portfolio_plan *plans;
  uint32_t       plan_count;
  uint32_t       start_count;
  uint32_t       best_index;
  bool           is_reduced;
  bool           can_list;
  bool           with_lists;
  bool           only_best;
  bool           is_short;              /* there was no memory for lists */
} plan_search;

static tm_status init(plan_search *search, const tm_solver_problem *problem, uint32_t seed_count, tm_error *error) {
  TM_TRY(tm_plan_judge_init(&search->judge, problem, search->arena, error));
  TM_TRY(tm_judged_plan_init(&search->trial, problem->op_count, search->arena, error));
  for (uint32_t i = 0; i < MOST_STARTS; i++) {
    TM_TRY(tm_judged_plan_init(&search->best[i], problem->op_count, search->arena, error));
  }
  TM_TRY(tm_makespan_bound_find(&search->judge.index, search->judge.ranks.outlook_ns, search->arena, &search->bound_ns, error));
  const uint64_t most_plans = (uint64_t)seed_count + TM_PORTFOLIO_MOST_DEVICES + 8;
  search->plans = tm_arena_alloc(search->arena, most_plans * sizeof *search->plans);
  search->is_reduced = problem->op_count > TM_PORTFOLIO_MOST_OPS || search->judge.work > MOST_WORK;
  search->can_list = search->judge.work <= MOST_LIST_WORK;
  return search->plans != NULL ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to compare plans");
}

/* ---- what each method adds ---- */

/* The trial takes its place among the best, unless another one there looks the same. */
static void keep(plan_search *search) {
  const tm_judged_plan *trial = &search->trial;
  const uint32_t op_count = search->judge.index.problem->op_count;
  uint32_t at = 0;
  while (at < search->start_count && !tm_plan_judge_prefers(&search->judge, trial, &search->best[at])) {
    const tm_judged_plan *kept = &search->best[at++];
    if (kept->makespan_ns == trial->makespan_ns && kept->additive_ns == trial->additive_ns) return;
  }
  if (at == MOST_STARTS) return;
  if (search->start_count < MOST_STARTS) search->start_count++;
  const tm_judged_plan dropped = search->best[search->start_count - 1];
  for (uint32_t i = search->start_count - 1; i > at; i--) search->best[i] = search->best[i - 1];
  search->best[at] = dropped;
  tm_judged_plan_copy(&search->best[at], trial, op_count);
  if (at == 0) search->best_index = search->plan_count;
}

static void take_lists(plan_search *search, tm_portfolio_plan *plan) {
  const uint64_t op_count = search->judge.index.problem->op_count;
  uint32_t *lists = tm_arena_alloc(search->arena, 2 * op_count * sizeof *lists);
  search->is_short = search->is_short || lists == NULL;
  if (lists == NULL) return;
  plan->labels = lists;
  plan->order = lists + op_count;
  memcpy(plan->labels, search->trial.labels, op_count * sizeof *plan->labels);
  memcpy(plan->order, search->trial.order, op_count * sizeof *plan->order);
}

/* Says of the trial that it was looked at. */
static void list(plan_search *search, const char *name, uint32_t rank) {
  const tm_judged_plan *trial = &search->trial;
  tm_portfolio_plan *plan = &search->plans[search->plan_count++];
  *plan = (tm_portfolio_plan){ name, trial->makespan_ns, trial->additive_ns, trial->copied_bytes, trial->excess_bytes,
                               trial->switch_count, rank, NULL, NULL };
  if (search->with_lists) take_lists(search, plan);
}

/* What methods agree on is judged once. */
static void judge_trial(plan_search *search) {
  const size_t bytes = search->judge.index.problem->op_count * sizeof(uint32_t);
  tm_judged_plan *trial = &search->trial;
  for (uint32_t i = 0; i < search->start_count; i++) {
    const tm_judged_plan *known = &search->best[i];
    if (memcmp(known->labels, trial->labels, bytes) != 0 || memcmp(known->order, trial->order, bytes) != 0) continue;
    tm_judged_plan_copy_figures(trial, known);
    return;
  }
  tm_plan_judge_run(&search->judge, trial);
}

/* The trial is judged and joins the others. */
static void enter(plan_search *search, const char *name, uint32_t rank) {
  keep(search);
  list(search, name, rank);
}

static bool is_in_sequence(const tm_judged_plan *plan, uint32_t op_count) {
  for (uint32_t o = 0; o < op_count; o++)
    if (plan->order[o] != o) return false;
  return true;
}

/* The trial has labels only: in the order of the problem, or in one that suits them if that is better. */
static void enter_labels(plan_search *search, const char *name, uint32_t rank) {
  const uint32_t op_count = search->judge.index.problem->op_count;
  tm_judged_plan *trial = &search->trial;
  for (uint32_t o = 0; o < op_count; o++) trial->order[o] = o;
  judge_trial(search);
  const bool may_gain = !search->is_reduced && trial->makespan_ns > search->bound_ns;
  const tm_judged_plan in_sequence = *trial;
  if (may_gain && tm_plan_judge_order(&search->judge, trial) && !is_in_sequence(trial, op_count)) {
    tm_plan_judge_run(&search->judge, trial);
    if (!tm_plan_judge_prefers(&search->judge, trial, &in_sequence)) {
      for (uint32_t o = 0; o < op_count; o++) trial->order[o] = o;
      tm_judged_plan_copy_figures(trial, &in_sequence);
    }
  }
  enter(search, name, rank);
}

static void add_list(plan_search *search, const char *name, const tm_list_rule *rule) {
  const uint32_t op_count = search->judge.index.problem->op_count;
  const tm_list_schedule *schedule = &search->judge.schedule;
  if (!tm_list_schedule_run(&search->judge.schedule, rule)) return;
  memcpy(search->trial.labels, schedule->labels, op_count * sizeof *schedule->labels);
  memcpy(search->trial.order, schedule->order, op_count * sizeof *schedule->order);
  if (tm_problem_index_check_labels(&search->judge.index, search->trial.labels, NULL) != TM_OK) return;
  judge_trial(search);
  enter(search, name, TM_SOLVER_NONE);
}

static tm_status add_seeds(plan_search *search, const tm_portfolio_seed *seeds, uint32_t seed_count, tm_error *error) {
  for (uint32_t i = 0; i < seed_count; i++) {
    if (seeds[i].labels == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "seed %u has no labels", i);
    TM_TRY(tm_problem_index_check_labels(&search->judge.index, seeds[i].labels, error));
    memcpy(search->trial.labels, seeds[i].labels, search->judge.index.problem->op_count * sizeof *seeds[i].labels);
    enter_labels(search, seeds[i].name != NULL ? seeds[i].name : "seed", TM_SOLVER_NONE);
  }
  return TM_OK;
}

static tm_status add_lists(plan_search *search, tm_error *error) {
  const tm_ranks *ranks = &search->judge.ranks;
  const tm_list_rule heft = { ranks->upward_ns, ranks->outlook_ns, NULL, NULL };
  if (search->can_list) add_list(search, "heft", &heft);
  if (search->is_reduced) return TM_OK;
  const uint64_t ops = search->judge.index.problem->op_count;
  uint64_t *urgency = tm_arena_alloc(search->arena, ops * sizeof *urgency);
  uint32_t *forced = tm_arena_alloc(search->arena, ops * sizeof *forced);
  if (urgency == NULL || forced == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to compare plans");
  TM_TRY(tm_cpop_prepare(&search->judge.index, &search->judge.groups, ranks, search->arena, urgency, forced, error));
  const tm_list_rule cpop = { urgency, ranks->outlook_ns, NULL, forced };
  const tm_list_rule peft = { ranks->mean_outlook_ns, ranks->outlook_ns, ranks->outlook_ns, NULL };
  const tm_list_rule both = { ranks->upward_ns, ranks->outlook_ns, ranks->outlook_ns, NULL };
  add_list(search, "cpop", &cpop);
  add_list(search, "peft", &peft);
  add_list(search, "heft-outlook", &both);
  return TM_OK;
}

static tm_status add_single_devices(plan_search *search, tm_error *error) {
  uint32_t chosen[TM_PORTFOLIO_MOST_DEVICES], count;
  const tm_plan_judge *judge = &search->judge;
  const uint64_t *viable = judge->ranks.outlook_ns;
  const uint64_t payable = tm_max_u64(MOST_SINGLE_WORK / tm_max_u64(judge->work, 1), 1);
  const uint32_t most = (uint32_t)tm_min_u64(payable, TM_PORTFOLIO_MOST_DEVICES);
  TM_TRY(tm_single_device_list(&judge->index, &judge->groups, viable, most, search->arena, chosen, &count, error));
  for (uint32_t i = 0; i < count; i++) {
    if (!tm_single_device_choose(&judge->index, &judge->groups, viable, chosen[i], search->trial.labels)) continue;
    if (tm_problem_index_check_labels(&judge->index, search->trial.labels, NULL) != TM_OK) continue;
    enter_labels(search, "single-device", judge->groups.ranks[chosen[i]]);
  }
  return TM_OK;
}

/* Nothing is sooner, and in nothing that decides between equals is anything less; and it takes operations as they come, so nobody
   has to look for another order to hand them out. */
static bool is_unbeatable(const plan_search *search, const tm_judged_plan *plan) {
  const tm_solver_problem *problem = search->judge.index.problem;
  if (!is_in_sequence(plan, problem->op_count)) return false;
  if (plan->makespan_ns != search->bound_ns || (plan->excess_bytes | plan->copied_bytes | plan->switch_count) != 0) return false;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    const uint32_t rank = problem->labels[plan->labels[o]].rank;
    for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++)
      if (problem->labels[l].rank < rank && search->judge.ranks.outlook_ns[l] != TM_SOLVER_NEVER) return false;
  }
  return true;
}

/* From here on search->best is no longer in order, but for the first. */
static tm_status add_moves(plan_search *search, uint64_t move_steps, tm_error *error) {
  tm_plan_judge *judge = &search->judge;
  const uint32_t op_count = judge->index.problem->op_count;
  const uint64_t last_step = move_steps > UINT64_MAX - judge->step_count ? UINT64_MAX : judge->step_count + move_steps;
  const bool may_gain = !search->is_reduced && search->start_count != 0 && !is_unbeatable(search, &search->best[0]);
  bool has_gained = false;
  for (uint32_t i = 0; i < search->start_count && may_gain; i++) {
    bool has_moved;
    TM_TRY(tm_critical_moves_improve(judge, &search->best[i], search->bound_ns, last_step, search->arena, &has_moved, error));
    if (!has_moved || (i != 0 && !tm_plan_judge_prefers(judge, &search->best[i], &search->best[0]))) continue;
    tm_judged_plan_copy(&search->trial, &search->best[i], op_count);
    tm_judged_plan_copy(&search->best[0], &search->trial, op_count);
    has_gained = true;
  }
  if (!has_gained) return TM_OK;
  search->best_index = search->plan_count;
  list(search, "moves", TM_SOLVER_NONE);
  return TM_OK;
}

/* ---- the whole ---- */

static tm_status find(plan_search *search, const tm_solver_problem *problem, const tm_portfolio_seed *seeds, uint32_t seed_count,
                      uint64_t move_steps, tm_error *error) {
  TM_TRY(init(search, problem, seed_count, error));
  TM_TRY(add_seeds(search, seeds, seed_count, error));
  if (search->only_best && seed_count != 0 && is_unbeatable(search, &search->best[0])) return TM_OK;
  TM_TRY(add_lists(search, error));
  TM_TRY(add_single_devices(search, error));
  TM_TRY(add_moves(search, move_steps, error));
  if (search->plan_count != 0) return TM_OK;
  return tm_fail(error, TM_ERROR_NO_DEVICE, "no way was found to run all %u operations together", problem->op_count);
}

static tm_status report_lists(const plan_search *search, tm_portfolio *portfolio, tm_error *error) {
  const uint64_t op_count = portfolio->op_count;
  const uint64_t bytes = portfolio->plan_count * 2 * op_count * sizeof *portfolio->lists;       /* as much as is in the arena already */
  portfolio->lists = search->is_short ? NULL : tm_memory_alloc(portfolio->memory, bytes, 0);
  if (portfolio->lists == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a portfolio");
  for (uint64_t i = 0; i < portfolio->plan_count; i++) {
    tm_portfolio_plan *plan = &portfolio->plans[i];
    memcpy(portfolio->lists + 2 * i * op_count, plan->labels, 2 * op_count * sizeof *plan->labels);     /* the order lies behind */
    plan->labels = portfolio->lists + 2 * i * op_count;
    plan->order = plan->labels + op_count;
  }
  return TM_OK;
}

static tm_status report(const plan_search *search, tm_portfolio *portfolio, tm_error *error) {
  tm_memory *memory = portfolio->memory;
  portfolio->op_count = search->judge.index.problem->op_count;
  portfolio->plan_count = search->plan_count;
  portfolio->labels = tm_memory_calloc(memory, portfolio->op_count, sizeof *portfolio->labels);
  portfolio->order = tm_memory_calloc(memory, portfolio->op_count, sizeof *portfolio->order);
  portfolio->plans = tm_memory_calloc(memory, portfolio->plan_count, sizeof *portfolio->plans);
  if (portfolio->labels == NULL || portfolio->order == NULL || portfolio->plans == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a portfolio");
  }
  memcpy(portfolio->labels, search->best[0].labels, portfolio->op_count * sizeof *portfolio->labels);
  memcpy(portfolio->order, search->best[0].order, portfolio->op_count * sizeof *portfolio->order);
  memcpy(portfolio->plans, search->plans, portfolio->plan_count * sizeof *portfolio->plans);
  if (search->with_lists) TM_TRY(report_lists(search, portfolio, error));
  portfolio->makespan_ns = search->best[0].makespan_ns;
  portfolio->bound_ns = search->bound_ns;
  portfolio->best = search->best_index;
  portfolio->is_reduced = search->is_reduced;
  return TM_OK;
}

tm_status tm_portfolio_solve(const tm_solver_problem *problem, const tm_portfolio_seed *seeds, uint32_t seed_count,
                             const tm_portfolio_options *options, tm_memory *memory, tm_portfolio *out_portfolio,
                             tm_error *error) {
  if (seed_count != 0 && seeds == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "there are no seeds");
  tm_portfolio portfolio = { .memory = memory };
  tm_arena arena;
  plan_search search = { .arena = &arena };
  if (options != NULL) {
    search.with_lists = options->with_lists;
    search.only_best = options->only_best;
  }
  tm_arena_init(&arena, memory);
  const uint64_t move_steps = options != NULL ? options->move_steps : TM_PORTFOLIO_MOVE_STEPS;
  tm_status status = find(&search, problem, seeds, seed_count, move_steps, error);
  if (status == TM_OK) status = report(&search, &portfolio, error);
  tm_arena_deinit(&arena);
  if (status == TM_OK) {
    *out_portfolio = portfolio;
  } else {
    tm_portfolio_deinit(&portfolio);
  }
  return status;
}

tm_status tm_portfolio_find_bound(const tm_solver_problem *problem, tm_memory *memory, uint64_t *out_bound_ns, tm_error *error) {
  tm_plan_judge judge;
  tm_arena arena;
  tm_arena_init(&arena, memory);
  tm_status status = tm_plan_judge_init(&judge, problem, &arena, error);
  if (status == TM_OK) status = tm_makespan_bound_find(&judge.index, judge.ranks.outlook_ns, &arena, out_bound_ns, error);
  tm_arena_deinit(&arena);
  return status;
}

void tm_portfolio_deinit(tm_portfolio *portfolio) {
  if (portfolio->memory == NULL) return;
  tm_memory_free(portfolio->memory, portfolio->labels, portfolio->op_count * sizeof *portfolio->labels);
  tm_memory_free(portfolio->memory, portfolio->order, portfolio->op_count * sizeof *portfolio->order);
  tm_memory_free(portfolio->memory, portfolio->lists, portfolio->plan_count * 2ull * portfolio->op_count * sizeof *portfolio->lists);
  tm_memory_free(portfolio->memory, portfolio->plans, portfolio->plan_count * sizeof *portfolio->plans);
  memset(portfolio, 0, sizeof *portfolio);
}
