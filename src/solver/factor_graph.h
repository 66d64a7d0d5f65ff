/* SPDX-License-Identifier: Apache-2.0 */
/*
 * factor_graph.h - the additive cost of a placement as a sum of small tables (factors) over variables.  Variables are the
 * operations, whose states are their choices, and presence bits: "this value is in this memory", for values that several
 * operations may read there.  A bit costs the copy that sets it, and an operation that reads where it is not set costs
 * NEVER; so the least sum pays each copy once.  What depends on one variable only is in `unary`, on none in `base_ns`;
 * variables with a single state are in no factor.
 *
 * Values can also be shared out: in place of bits, each operation then pays for a copy divided by how many may read there.
 * All together never pay more than they owe, so the least sum is a lower bound, from far fewer and smaller tables.
 */
#ifndef TM_SOLVER_FACTOR_GRAPH_H
#define TM_SOLVER_FACTOR_GRAPH_H

#include "solver/choices.h"
#include "solver/flow.h"

#define TM_FACTOR_MOST_VARIABLES 4u

typedef enum tm_factor_kind {
  TM_FACTOR_VALUE,              /* all copies of a value, over its producer and all readers */
  TM_FACTOR_COPY,               /* the copy of a value to a memory where one operation only may read it */
  TM_FACTOR_PRESENT,            /* the copy that sets a presence bit */
  TM_FACTOR_NEEDS,              /* an operation that may read there, and a bit */
  TM_FACTOR_SHARE,              /* an operation's part of the copy that it needs */
} tm_factor_kind;

typedef struct tm_factor {
  tm_factor_kind kind;
  uint32_t       value;
  uint32_t       memory;
  uint32_t       reader;        /* operation, or TM_SOLVER_NONE */
  uint32_t       bit;           /* variable, or TM_SOLVER_NONE */
  uint32_t       variable_count;
  uint32_t       variables[TM_FACTOR_MOST_VARIABLES];
} tm_factor;

typedef struct tm_factor_graph {
  const tm_solver_problem *problem;
  const tm_choices        *choices;
  const tm_flow           *flow;
  uint32_t   variable_count;    /* operations first, under their own numbers, then presence bits */
  uint32_t  *bit_ops;           /* [bit]: the operation that makes its value, or else that reads it first */
  uint32_t  *state_counts;      /* [variable] */
  uint64_t  *first_unary;       /* [variable] into unary */
  uint64_t  *unary;             /* [variable's states] */
  tm_factor *factors;
  uint32_t   factor_count;
  uint32_t  *sharers;           /* [value][memory]: how many may read it there; NULL: values are not shared out */
  uint64_t   base_ns;
} tm_factor_graph;

typedef struct tm_factor_rules {
  const bool *is_left_out;      /* [value]: those that are not copied for readers here; NULL: none */
  bool        is_shared_out;
} tm_factor_rules;

/* TM_ERROR_NO_DEVICE where a value cannot reach the memory in which it is wanted.  Lives in the arena. */
tm_status tm_factor_graph_init(tm_factor_graph *graph, const tm_solver_problem *problem, const tm_choices *choices,
                               const tm_flow *flow, tm_factor_rules rules, tm_arena *arena, tm_error *error);

/* What a factor adds when its variables are in these states ([variable]; 0 for those with one state). */
uint64_t tm_factor_cost(const tm_factor_graph *graph, const tm_factor *factor, const uint32_t *states);

#endif
