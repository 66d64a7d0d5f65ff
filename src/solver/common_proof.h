/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common_proof.h - the optimum with common values decided apart.  The graph is solved as if a set of uses were always made,
 * that which the plan found makes; the plan then costs what the tables say.  That no other plan costs less is shown
 *
 *     by regrets  who does not make some of these uses saves their copies at most, and loses at least what the reader loses
 *                 that most depends on it: more than that, for one use after the other
 *     by tolls    or each use's copy is paid by its readers, each a part by what it would lose elsewhere.  Whatever the
 *                 parts, no plan pays more than it owes, so the tables give a bound; with good parts it is the plan's cost
 *     by search   (common_search.h) where a use is a decision after all.
 */
#ifndef TM_SOLVER_COMMON_PROOF_H
#define TM_SOLVER_COMMON_PROOF_H

#include "solver/common_search.h"

typedef struct tm_common_proof {
  tm_common_values           *common;
  tm_factor_graph            *graph;    /* without the common values; its `unary` is changed */
  const tm_elimination_order *order;    /* of that graph, exact */
  uint32_t       most_nodes;            /* solves in a search */
  bool           wants_marginals;       /* false: they are not needed in the end */
  bool           marginals_are_exact;
  tm_elimination elimination;
  tm_plan_cost   plan;
  uint64_t      *marginals;     /* [of the graph's unary]: lower bounds of the least total for each choice, where that is proven */
  uint32_t      *chosen;        /* [op]: the best plan found */
  tm_plan_price  price;         /* its; nevers UINT64_MAX: there is none */
  uint64_t       bound_ns;      /* no plan costs less */
} tm_common_proof;

/* Where common, graph, order, most_nodes and wants_marginals are given; the rest is filled in, and lives in the arena. */
tm_status tm_common_proof_run(tm_common_proof *proof, tm_arena *arena, tm_error *error);

/* Whether a plan is so close to its bound that where tables over all of the graph do not fit it will do. */
#define TM_COMMON_PROOF_PARTS 1000u
static inline bool tm_common_proof_is_close(tm_plan_price price, uint64_t bound_ns) {
  return price.nevers == 0 && price.ns - bound_ns <= price.ns / TM_COMMON_PROOF_PARTS;
}

#endif
