/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/branching.h"

#include <string.h>

static bool is_beaten(const tm_branching *b, uint64_t bound) {
  return bound == TM_SOLVER_NEVER || (b->best_price.nevers == 0 && bound >= b->best_price.ns);
}

static void keep_plan(tm_branching *b) {
  const tm_factor_graph *graph = b->elimination->graph;
  const uint32_t ops = graph->problem->op_count;
  for (uint32_t op = 0; op < ops; op++) b->candidate[op] = graph->choices->first[op] + b->states[op];
  tm_plan_cost_set(b->plan, b->candidate);
  const tm_plan_price price = tm_plan_cost_total(b->plan);
  if (!tm_plan_price_is_less(price, b->best_price)) return;
  b->best_price = price;
  memcpy(b->best, b->candidate, ops * sizeof *b->best);
}

/* The first bit about which its readers do not agree. */
static uint32_t find_dispute(const tm_branching *b) {
  const tm_elimination_order *order = b->elimination->order;
  for (uint32_t first = 0; first < order->split_steps;) {
    const uint32_t end = first + order->steps[first].share_count;
    if (!tm_elimination_agrees(b->elimination, first, end, b->states)) return order->steps[first].variable;
    first = end;
  }
  return TM_SOLVER_NONE;
}

/* Returns what no plan of this branch costs less than. */
static uint64_t search(tm_branching *b) {
  tm_elimination *e = b->elimination;
  const uint64_t bound = e->total_ns;
  if (is_beaten(b, bound)) return bound;
  tm_elimination_decode(e, b->states);
  keep_plan(b);
  const uint32_t bit = is_beaten(b, bound) ? TM_SOLVER_NONE : find_dispute(b);
  if (bit == TM_SOLVER_NONE || b->nodes_left < 2) return bound;
  b->nodes_left -= 2;
  uint64_t *unary = e->graph->unary + e->graph->first_unary[bit], least = TM_SOLVER_NEVER;
  const uint32_t likely = b->states[bit];
  for (uint32_t turn = 0; turn < 2; turn++) {
    const uint32_t other = turn == 0 ? 1 - likely : likely;
    const uint64_t kept = unary[other];
    unary[other] = TM_SOLVER_NEVER;
    tm_elimination_renew(e);
    const uint64_t found = search(b);
    unary[other] = kept;
    if (found < least) least = found;
  }
  return least > bound ? least : bound;
}

void tm_branching_run(tm_branching *b) {
  const uint32_t nodes = b->nodes_left;
  b->best_price = (tm_plan_price){ UINT64_MAX, UINT64_MAX };
  b->bound_ns = search(b);
  if (b->nodes_left != nodes) tm_elimination_renew(b->elimination);
  if (b->best_price.nevers == 0 && b->best_price.ns < b->bound_ns) b->bound_ns = b->best_price.ns;
}
