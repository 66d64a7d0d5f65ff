/* SPDX-License-Identifier: Apache-2.0 */
/* plan_cost.h - what one plan costs when times add up, and what it would cost with one operation elsewhere. */
#ifndef TM_SOLVER_PLAN_COST_H
#define TM_SOLVER_PLAN_COST_H

#include "solver/choices.h"
#include "solver/flow.h"

/* Ordered by how much of it cannot be, then by time. */
typedef struct tm_plan_price {
  uint64_t nevers;
  uint64_t ns;
} tm_plan_price;

typedef struct tm_plan_cost {
  const tm_solver_problem *problem;
  const tm_choices        *choices;
  const tm_flow           *flow;
  uint32_t *chosen;             /* [op]: the choice, a number in choices->items */
  uint32_t *readings;           /* [value][memory]: how many operations read it there */
  const uint64_t **copies_ns;   /* [value]: what its copies cost from where it is made, by memory */
} tm_plan_cost;

tm_status tm_plan_cost_init(tm_plan_cost *plan, const tm_solver_problem *problem, const tm_choices *choices,
                            const tm_flow *flow, tm_arena *arena, tm_error *error);
/* Takes over a whole plan. */
void          tm_plan_cost_set(tm_plan_cost *plan, const uint32_t *chosen);
tm_plan_price tm_plan_cost_total(const tm_plan_cost *plan);
/* Moves one operation to the choice that is best for it as everything else stands: among equals where it is, or the
   first.  Says whether it moved. */
bool          tm_plan_cost_improve(tm_plan_cost *plan, uint32_t op);

/* What each choice of an operation costs, in out_ns[choice], as everything else stands: more or less by the same amount. */
void          tm_plan_cost_list(const tm_plan_cost *plan, uint32_t op, uint64_t *out_ns);

static inline bool tm_plan_price_is_less(tm_plan_price a, tm_plan_price b) {
  return a.nevers != b.nevers ? a.nevers < b.nevers : a.ns < b.ns;
}

#endif
