/* SPDX-License-Identifier: Apache-2.0 */
/* graph_overlap.h - choices of labels and order for devices that work at the same time. */
#ifndef TM_SCHEDULE_GRAPH_OVERLAP_H
#define TM_SCHEDULE_GRAPH_OVERLAP_H

#include "schedule/graph_choice.h"
#include "solver/portfolio.h"

/* Whether anything could run while something else does. */
bool tm_graph_may_overlap(const tm_graph_problem *problem);

/* Gives the problem one more resource, the thread that makes the calls: whoever computes within them, or runs from and to host
   memory, keeps it.  Stays so; for problems that are not changed any more.   TM_ERROR_NO_MEMORY */
tm_status tm_graph_overlap_add_thread(tm_graph_problem *problem, tm_error *error);

/* What is over sooner than `choice`, the cheapest sum, if there is any: labels and an order in which one thread can hand them
   out (solver/issue_order.h).  Nodes keep their order where no other is over sooner.  No plan that was looked at is over sooner as
   tm_graph_overlap_time has it, from the cheapest sum on, which is kept.   TM_ERROR_NO_MEMORY */
tm_status tm_graph_overlap_improve(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error);

/* No placement is over sooner, with states where the problem has them.   TM_ERROR_NO_DEVICE (there is none), TM_ERROR_NO_MEMORY */
tm_status tm_graph_overlap_find_bound(tm_graph_problem *problem, tm_memory *memory, uint64_t *out_bound_ns, tm_error *error);

/* What each plan of a portfolio (with lists, for a problem with the thread) takes: in its own order, and where that is less than
   `than_ns` in the one in which a thread can hand it out; what it needs beyond the budgets then counts as excess, too.   TM_ERROR_NO_MEMORY */
tm_status tm_graph_overlap_time(const tm_graph_problem *problem, tm_memory *memory, tm_portfolio *portfolio, uint64_t than_ns,
                                uint64_t *out_times_ns, tm_error *error);

/* Fills in what a choice takes from its labels and its order. */
tm_status tm_graph_overlap_judge(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *choice, tm_error *error);

#endif
