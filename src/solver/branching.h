/* SPDX-License-Identifier: Apache-2.0 */
/*
 * branching.h - the optimum where some presence bits were taken reader by reader (elimination_order.h): where readers do
 * not agree whether such a bit is set, both cases are tried, and what cannot beat the best plan so far is left.
 */
#ifndef TM_SOLVER_BRANCHING_H
#define TM_SOLVER_BRANCHING_H

#include "solver/elimination.h"
#include "solver/plan_cost.h"

typedef struct tm_branching {
  tm_elimination *elimination;
  tm_plan_cost   *plan;
  uint32_t       *states;       /* scratch: [variable] */
  uint32_t       *candidate;    /* scratch: [op] */
  uint32_t       *best;         /* [op]: the best choices found */
  tm_plan_price   best_price;   /* nevers UINT64_MAX: none yet */
  uint64_t        bound_ns;     /* no plan costs less */
  uint32_t        nodes_left;
} tm_branching;

/* After tm_elimination_init.  Spends up to nodes_left solves and leaves the graph as it was, and the messages with it. */
void tm_branching_run(tm_branching *branching);

#endif
