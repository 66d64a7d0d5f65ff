/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elimination.h - a factor graph minimised along an order: upwards, each step's message is the least over its variable;
 * downwards, each step learns what everything outside of it costs, which gives the least total for every state of every
 * variable.  Exact if the order is; lower bounds otherwise.
 */
#ifndef TM_SOLVER_ELIMINATION_H
#define TM_SOLVER_ELIMINATION_H

#include <stdbool.h>

#include "solver/cost_table.h"

/* A factor or a message: its table and what it is over. */
typedef struct tm_elimination_row {
  uint64_t       *table;
  const uint32_t *variables;
  uint64_t        entries;
  uint32_t        variable_count;
  uint32_t        padding;
} tm_elimination_row;

typedef struct tm_elimination {
  const tm_factor_graph      *graph;
  const tm_elimination_order *order;
  tm_elimination_row *rows;     /* [factors, then messages] */
  uint64_t   never;             /* TM_TABLE_NEVER or TM_TABLE_NEVER_SMALL */
  uint64_t  *table;             /* of the step at hand */
  uint64_t  *shared;            /* a share of a factor */
  uint64_t  *unary;             /* the graph's, as the messages have it */
  bool      *is_new;            /* [step]: its message is not what it was before the last time upwards */
  bool       has_messages;      /* as they are upwards */
  uint64_t   total_ns;          /* the least sum, TM_SOLVER_NEVER if there is none */
  uint32_t   impossible;        /* then the variable where this showed */
} tm_elimination;

/* Upwards.  Lives in the arena. */
tm_status tm_elimination_init(tm_elimination *elimination, const tm_factor_graph *graph, const tm_elimination_order *order,
                              tm_arena *arena, tm_error *error);
/* Upwards again, after the graph's `unary` changed: what nothing new comes to stays as it is. */
void      tm_elimination_renew(tm_elimination *elimination);
/* Whether each of a variable's steps, [first_step, end_step), would by itself be in the same state. */
bool      tm_elimination_agrees(const tm_elimination *elimination, uint32_t first_step, uint32_t end_step, uint32_t *states);
/* The best states [variable] that the tables tell; among equals the first state. */
void      tm_elimination_decode(const tm_elimination *elimination, uint32_t *states);
/* Downwards: the least total for each state, laid out like the graph's `unary`.  Uses up the messages: comes last. */
tm_status tm_elimination_marginals(tm_elimination *elimination, uint64_t *marginals, tm_arena *arena, tm_error *error);

#endif
