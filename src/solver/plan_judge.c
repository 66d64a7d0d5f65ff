/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/plan_judge.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* Placing an operation by list scheduling takes about this many times as long as letting it happen. */
#define SCHEDULING_STEPS 2u

/* Beyond this a look at every label from every memory would take minutes: no graph is so, only a mistake. */
#define MOST_WORK (UINT64_C(1) << 33)
/* Labels of one operation rarely use more memories, and looks at the same ones are remembered. */
#define MANY_MEMORIES 16u

static uint64_t measure_work(const tm_solver_problem *problem) {
  const uint64_t memories = tm_min_u64(problem->memory_count, MANY_MEMORIES);
  uint64_t work = 0;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    work = tm_solver_add(work, op->label_count * tm_min_u64(1 + op->input_count * memories, UINT32_MAX));
  }
  return work;
}

tm_status tm_plan_judge_init(tm_plan_judge *judge, const tm_solver_problem *problem, tm_arena *arena, tm_error *error) {
  memset(judge, 0, sizeof *judge);
  TM_TRY(tm_problem_index_make(problem, arena, &judge->index, error));
  judge->work = measure_work(problem);
  if (judge->work > MOST_WORK) {
    return tm_fail(error, TM_ERROR_ARGUMENT, "a placement problem has too many labels and inputs to look at");
  }
  TM_TRY(tm_label_groups_make(problem, arena, &judge->groups, error));
  TM_TRY(tm_ranks_make(&judge->index, &judge->groups, arena, &judge->ranks, error));
  TM_TRY(tm_event_model_init(&judge->model, &judge->index, arena, error));
  TM_TRY(tm_list_schedule_init(&judge->schedule, &judge->index, arena, error));
  if (problem->budgets != NULL) TM_TRY(tm_residency_init(&judge->residency, &judge->index, arena, error));
  judge->follow_ns = tm_arena_alloc(arena, problem->op_count * sizeof *judge->follow_ns);
  judge->load_ns = tm_arena_alloc(arena, problem->resource_count * sizeof *judge->load_ns);
  return judge->follow_ns != NULL && judge->load_ns != NULL ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to judge plans");
}

tm_status tm_judged_plan_init(tm_judged_plan *plan, uint32_t op_count, tm_arena *arena, tm_error *error) {
  memset(plan, 0, sizeof *plan);
  plan->labels = tm_arena_calloc(arena, op_count, sizeof *plan->labels);
  plan->order = tm_arena_calloc(arena, op_count, sizeof *plan->order);
  const bool is_complete = plan->labels != NULL && plan->order != NULL;
  return is_complete ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan");
}

void tm_judged_plan_copy_figures(tm_judged_plan *to, const tm_judged_plan *from) {
  uint32_t *labels = to->labels, *order = to->order;
  *to = *from;
  to->labels = labels;
  to->order = order;
}

void tm_judged_plan_copy(tm_judged_plan *to, const tm_judged_plan *from, uint32_t op_count) {
  memcpy(to->labels, from->labels, op_count * sizeof *to->labels);
  memcpy(to->order, from->order, op_count * sizeof *to->order);
  tm_judged_plan_copy_figures(to, from);
}

static uint64_t measure_excess(tm_plan_judge *judge) {
  const tm_solver_problem *problem = judge->index.problem;
  uint64_t excess = 0;
  tm_residency_measure(&judge->residency, &judge->model);
  for (uint32_t m = 0; m < problem->memory_count; m++) {
    const uint64_t peak = judge->residency.peak_bytes[m];
    if (peak <= problem->budgets[m]) continue;
    if (!tm_checked_add(excess, peak - problem->budgets[m], &excess)) return UINT64_MAX;
  }
  return excess;
}

void tm_plan_judge_run(tm_plan_judge *judge, tm_judged_plan *plan) {
  tm_event_model_run(&judge->model, plan->labels, plan->order);
  judge->step_count += judge->index.problem->op_count;
  plan->makespan_ns = judge->model.makespan_ns;
  plan->additive_ns = judge->model.additive_ns;
  plan->copied_bytes = judge->model.copied_bytes;
  plan->switch_count = judge->model.switch_count;
  plan->excess_bytes = judge->index.problem->budgets != NULL ? measure_excess(judge) : 0;
}

/* The work of the busiest resource, which no order of these labels beats. */
static uint64_t find_busiest_ns(tm_plan_judge *judge, const uint32_t *labels) {
  const tm_solver_problem *problem = judge->index.problem;
  uint64_t busiest_ns = 0;
  memset(judge->load_ns, 0, problem->resource_count * sizeof *judge->load_ns);
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_label *label = &problem->labels[labels[o]];
    uint64_t *load_ns = &judge->load_ns[label->resource];
    *load_ns = tm_solver_add(*load_ns, label->cost_ns);
    busiest_ns = tm_max_u64(busiest_ns, *load_ns);
  }
  return busiest_ns;
}

/* Neither does any beat the longest way through the graph, which is only looked for where it may count: `follow_ns` is then filled. */
static bool is_soonest(tm_plan_judge *judge, const tm_judged_plan *plan) {
  const bool can_tell = judge->index.problem->budgets == NULL;
  if (can_tell && plan->makespan_ns <= find_busiest_ns(judge, plan->labels)) return true;
  tm_ranks_follow(&judge->index, plan->labels, judge->follow_ns);
  uint64_t longest_ns = 0;
  for (uint32_t o = 0; o < judge->index.problem->op_count; o++) longest_ns = tm_max_u64(longest_ns, judge->follow_ns[o]);
  return can_tell && plan->makespan_ns <= longest_ns;
}

bool tm_plan_judge_order(tm_plan_judge *judge, tm_judged_plan *plan) {
  const uint32_t op_count = judge->index.problem->op_count;
  if (is_soonest(judge, plan)) {
    judge->step_count += (uint64_t)op_count * (SCHEDULING_STEPS + 1);
    return false;
  }
  const tm_list_rule rule = { judge->follow_ns, judge->ranks.outlook_ns, NULL, plan->labels };
  judge->step_count += (uint64_t)op_count * SCHEDULING_STEPS;
  if (!tm_list_schedule_run(&judge->schedule, &rule)) return false;
  if (memcmp(judge->schedule.labels, plan->labels, op_count * sizeof *plan->labels) != 0) return false;
  memcpy(plan->order, judge->schedule.order, op_count * sizeof *plan->order);
  return true;
}

bool tm_plan_judge_prefers(const tm_plan_judge *judge, const tm_judged_plan *a, const tm_judged_plan *b) {
  const tm_solver_problem *problem = judge->index.problem;
  if (a->excess_bytes != b->excess_bytes) return a->excess_bytes < b->excess_bytes;
  if (a->makespan_ns != b->makespan_ns) return a->makespan_ns < b->makespan_ns;
  if (a->copied_bytes != b->copied_bytes) return a->copied_bytes < b->copied_bytes;
  if (a->switch_count != b->switch_count) return a->switch_count < b->switch_count;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const uint32_t rank_a = problem->labels[a->labels[o]].rank, rank_b = problem->labels[b->labels[o]].rank;
    if (rank_a != rank_b) return rank_a < rank_b;
  }
  return false;
}
