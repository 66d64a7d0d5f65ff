/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common_search.h - plans where common values are decided apart, and the best of them: uses that a plan makes and nobody has
 * paid for are forbidden one by one, and then paid; what cannot beat the best plan so far is left.
 */
#ifndef TM_SOLVER_COMMON_SEARCH_H
#define TM_SOLVER_COMMON_SEARCH_H

#include "solver/common_values.h"
#include "solver/elimination.h"

#define TM_COMMON_SEARCH_DEPTH 16u

typedef struct tm_common_search {
  tm_common_values *common;
  tm_factor_graph  *graph;      /* without the common values; its `unary` is changed */
  tm_elimination   *elimination;
  tm_plan_cost     *plan;
  const uint64_t   *unary;      /* [choice]: of the graph, without common values */
  uint32_t         *states;     /* scratch: [variable] */
  uint32_t         *candidate;  /* [op]: the choices of the plan taken last */
  uint32_t         *lists;      /* scratch: [TM_COMMON_SEARCH_DEPTH][use] */
  uint32_t         *best;       /* [op]: the best choices found */
  tm_plan_price     best_price; /* nevers UINT64_MAX: none yet */
  uint32_t          nodes_left;
} tm_common_search;

/* The plan that the tables tell and what it costs; kept if it is the best so far. */
tm_plan_price tm_common_search_take(tm_common_search *search);

/* Spends up to nodes_left solves and returns what no plan costs less than.  Leaves the uses free and the graph to be applied. */
uint64_t      tm_common_search_run(tm_common_search *search);

#endif
