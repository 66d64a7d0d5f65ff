/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elimination.h - a factor graph minimised along an order: upwards, each step's message is the least over its variable;
 * downwards, each step learns what everything outside of it costs, which gives the least total for every state of every
 * variable.  Exact if the order is; lower bounds otherwise.
 */
#ifndef TM_SOLVER_ELIMINATION_H
#define TM_SOLVER_ELIMINATION_H

#include "solver/cost_table.h"

typedef struct tm_elimination {
  const tm_factor_graph      *graph;
  const tm_elimination_order *order;
  uint64_t **tables;            /* [factors, then messages] */
  uint64_t  *table;             /* of the step at hand */
  uint64_t  *shared;            /* a share of a factor */
  uint64_t   total_ns;          /* the least sum, TM_SOLVER_NEVER if there is none */
  uint32_t   impossible;        /* then the variable where this showed */
} tm_elimination;

/* Upwards.  Lives in the arena. */
tm_status tm_elimination_init(tm_elimination *elimination, const tm_factor_graph *graph, const tm_elimination_order *order,
                              tm_arena *arena, tm_error *error);
/* The best states [variable] that the tables tell; among equals the first state. */
void      tm_elimination_decode(const tm_elimination *elimination, uint32_t *states);
/* Downwards: the least total for each state, laid out like the graph's `unary`.  Uses up the messages: comes last. */
tm_status tm_elimination_marginals(tm_elimination *elimination, uint64_t *marginals, tm_arena *arena, tm_error *error);

#endif
