/* SPDX-License-Identifier: Apache-2.0 */
/* fitting.h - plans moved one operation at a time until they fit into the budgets of memories, and then to cost less. */
#ifndef TM_SOLVER_FITTING_H
#define TM_SOLVER_FITTING_H

#include "solver/occupancy.h"

typedef struct tm_fitting {
  const tm_solver_problem *problem;
  const tm_flow           *flow;
  tm_occupancy            *occupancy;
  uint32_t                *labels;      /* [op]: the plan */
  uint64_t                 checks_left; /* plans that may still be weighed */
} tm_fitting;

/* Lives in the arena. */
tm_status tm_fitting_init(tm_fitting *fitting, const tm_solver_problem *problem, const tm_flow *flow, tm_occupancy *occupancy,
                          tm_arena *arena, tm_error *error);
/* Everything inside of one memory as far as that can be, each operation as cheap as it gets there. */
void      tm_fitting_single(tm_fitting *fitting, uint32_t memory);
/* Takes the plan downhill: first the bytes over budget, then the time. */
void      tm_fitting_improve(tm_fitting *fitting);

#endif
