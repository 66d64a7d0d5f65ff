/* SPDX-License-Identifier: Apache-2.0 */
/* graph_choice.h - which label each node of a graph gets, in which order nodes run, where states live, and who takes a node over
   when its device fails. */
#ifndef TM_SCHEDULE_GRAPH_CHOICE_H
#define TM_SCHEDULE_GRAPH_CHOICE_H

#include "schedule/graph_problem.h"
#include "solver/memory_price.h"

typedef struct tm_graph_choice {
  tm_memory *memory;
  uint32_t  *labels;            /* [node]: of the solver */
  uint32_t  *order;             /* all nodes, each after those whose results it reads */
  uint32_t  *alternates;        /* [node]: the cheapest on another device with all other nodes where they are; TM_SOLVER_NONE: there is none */
  uint32_t  *cheapest;          /* [node]: labels of the cheapest sum, where devices could work at the same time; else NULL */
  uint32_t   node_count;
  uint32_t   state_memory;      /* where states live between runs */
  uint64_t   total_ns;          /* of one run, copies included */
  uint64_t   bound_ns;          /* no choice takes less; 0: not known */
  uint64_t   additive_ns;       /* of the same with nothing at the same time */
  uint32_t   overlaps;          /* 1: total and bound count what runs at the same time once */
  uint32_t   is_exact;          /* 1: nothing is cheaper, as far as times add up */
  tm_memory_shortage shortage;  /* after TM_ERROR_LIMIT, when all else is empty */
} tm_graph_choice;

/* The cheapest sum (solver/assignment.h), or what is over sooner as different devices work at the same time
   (solver/portfolio.h).  Changes where states live in `problem` to what was found best.
   TM_ERROR_NO_MEMORY, TM_ERROR_LIMIT (no choice keeps to the policy's most_bytes) */
tm_status tm_graph_choice_make(tm_graph_problem *problem, const tm_plan_policy *policy, tm_memory *memory,
                               tm_graph_choice *out_choice, tm_error *error);
/* The same for labels that are given, [node], as they were chosen before, and an order; NULL: nodes keep theirs. */
tm_status tm_graph_choice_pin(tm_graph_problem *problem, tm_memory *memory, const uint32_t *labels, const uint32_t *order,
                              uint32_t state_memory, tm_graph_choice *out_choice, tm_error *error);
/* What runs on one resource is told as if nothing were at the same time, as it was chosen: what was pinned then, too. */
void tm_graph_choice_add_up(tm_graph_choice *choice);
void tm_graph_choice_deinit(tm_graph_choice *choice);

#endif
