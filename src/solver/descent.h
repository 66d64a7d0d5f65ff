/* SPDX-License-Identifier: Apache-2.0 */
/* descent.h - good plans where the best one cannot be proven: simple ones, each moved downhill one operation at a time. */
#ifndef TM_SOLVER_DESCENT_H
#define TM_SOLVER_DESCENT_H

#include "solver/plan_cost.h"

/* Leaves in `chosen` ([op]: choice) the best of the plan that is there, each operation where it is cheapest as its inputs
   lie, and everything in one memory as far as that can be.  The plan may still be impossible: out_price says so. */
tm_status tm_descent_run(const tm_solver_problem *problem, const tm_choices *choices, const tm_flow *flow, uint32_t *chosen,
                         tm_arena *arena, tm_plan_price *out_price, tm_error *error);

/* The same from the plan that is there alone. */
tm_status tm_descent_from(const tm_solver_problem *problem, const tm_choices *choices, const tm_flow *flow, uint32_t *chosen,
                          tm_arena *arena, tm_plan_price *out_price, tm_error *error);

#endif
