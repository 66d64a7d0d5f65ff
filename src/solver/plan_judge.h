/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_judge.h - what comparing plans of one problem needs, made once: its index, its devices, its ranks, the event model, a
 * list scheduler.  Which of two plans is better is decided here and nowhere else.
 */
#ifndef TM_SOLVER_PLAN_JUDGE_H
#define TM_SOLVER_PLAN_JUDGE_H

#include "solver/event_model.h"
#include "solver/list_schedule.h"
#include "solver/ranks.h"
#include "solver/residency.h"

typedef struct tm_judged_plan {
  uint32_t *labels;             /* [op] */
  uint32_t *order;              /* [op] */
  uint64_t  excess_bytes;       /* what memories hold at their peaks beyond their budgets, in sum */
  uint64_t  makespan_ns;
  uint64_t  additive_ns;
  uint64_t  copied_bytes;
  uint32_t  switch_count;
} tm_judged_plan;

typedef struct tm_plan_judge {
  tm_problem_index index;
  tm_label_groups  groups;
  tm_ranks         ranks;
  tm_event_model   model;       /* of the last plan that was judged */
  tm_residency     residency;   /* only where there are budgets */
  tm_list_schedule schedule;
  uint64_t *follow_ns;          /* [op] */
  uint64_t *load_ns;            /* [resource] */
  uint64_t  work;               /* labels times inputs times memories, in sum: what looking at everything once takes */
  uint64_t  step_count;         /* operations placed so far, over all plans, those that it was found needless to place among them: a
                                   measure of what was looked at */
} tm_plan_judge;

/* Checks the problem.  Everything lives in `arena`. */
tm_status tm_plan_judge_init(tm_plan_judge *judge, const tm_solver_problem *problem, tm_arena *arena, tm_error *error);

tm_status tm_judged_plan_init(tm_judged_plan *plan, uint32_t op_count, tm_arena *arena, tm_error *error);
void tm_judged_plan_copy(tm_judged_plan *to, const tm_judged_plan *from, uint32_t op_count);
/* All but what is in arrays. */
void tm_judged_plan_copy_figures(tm_judged_plan *to, const tm_judged_plan *from);

/* Fills the rest of `plan` from its labels and its order, which must be possible. */
void tm_plan_judge_run(tm_plan_judge *judge, tm_judged_plan *plan);

/* Gives `plan`, as it was judged, the order in which a list scheduler would take its labels, those first that much depends on.
   false: they are not possible, or in no order is this plan better. */
bool tm_plan_judge_order(tm_plan_judge *judge, tm_judged_plan *plan);

/* Within budgets, then sooner, then fewer bytes copied, then fewer switches, then lower ranks from the first operation on. */
bool tm_plan_judge_prefers(const tm_plan_judge *judge, const tm_judged_plan *a, const tm_judged_plan *b);

#endif
