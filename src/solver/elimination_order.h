/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elimination_order.h - in which order variables are minimised out of a factor graph, and over which tables.  A step takes
 * one variable with the factors that hold it (its members) and leaves a message: a factor over the others (its scope).
 * Messages are numbered behind the graph's factors and are members of later steps.  Small tables go first; those that are small
 * enough go along the graph, so that what is needed together lies together.
 *
 * A presence bit of very many readers would be in all tables between the first and the last of them.  It can be taken first
 * instead, in a step for each reader, as if it could be set for one and not for another; so can, under a limit on tables,
 * every variable whose table would be larger.  Each step then has a share of what the variable costs.  That makes the order
 * a relaxation: what comes out is a lower bound.
 */
#ifndef TM_SOLVER_ELIMINATION_ORDER_H
#define TM_SOLVER_ELIMINATION_ORDER_H

#include "solver/factor_graph.h"

#define TM_ELIMINATION_MOST_DIMENSIONS 48u      /* of a table: each has two states or more */

typedef struct tm_elimination_step {
  uint32_t variable;
  uint32_t share;               /* of a variable that is taken in several steps, which this is */
  uint32_t share_count;
  uint32_t scope_count;
  uint64_t first_scope;         /* into scopes: variables in order of elimination */
  uint64_t first_member;        /* into members */
  uint32_t member_count;
  uint32_t shared_factor;       /* that member whose cost the shares divide among them, or TM_SOLVER_NONE */
  uint64_t entries;             /* of the table over the variable and the scope */
  uint64_t message_entries;     /* of the table over the scope */
} tm_elimination_step;

typedef struct tm_elimination_order {
  tm_elimination_step *steps;
  uint64_t *first_scope;        /* [graph's factor] into scopes; a factor has as many as the graph says */
  uint32_t *scopes;
  uint32_t *members;
  uint32_t  step_count;
  uint32_t  width;              /* the most variables that one message is over */
  uint64_t  table_entries;      /* of all steps */
  uint64_t  largest_entries;    /* of one step */
  uint32_t  split_steps;        /* the first steps: those of bits that were taken reader by reader from the start */
  uint32_t  left_count;         /* variables that were left when it was given up */
  uint32_t  most_bit_readers;   /* of a presence bit; 0: too few to matter */
  bool      is_exact;           /* no variable was taken in several steps */
  bool      is_exact_but_bits;  /* none but these */
  bool      is_complete;        /* false: given up, because table_entries exceeds the budget, or plainly would */
} tm_elimination_order;

typedef struct tm_elimination_limits {
  uint64_t most_entries;        /* of all tables */
  uint64_t most_table_entries;  /* of one; 0: no limit */
  uint32_t most_bit_readers;    /* bits of more are taken reader by reader; 0: none are */
} tm_elimination_limits;

/* Lives in the arena. */
tm_status tm_elimination_order_init(tm_elimination_order *order, const tm_factor_graph *graph,
                                    const tm_elimination_limits *limits, tm_arena *arena, tm_error *error);

#endif
