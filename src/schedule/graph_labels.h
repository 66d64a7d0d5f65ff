/* SPDX-License-Identifier: Apache-2.0 */
/* graph_labels.h - the part of graph_problem.h that deals with devices: requests asked once, candidates as priced labels. */
#ifndef TM_SCHEDULE_GRAPH_LABELS_H
#define TM_SCHEDULE_GRAPH_LABELS_H

#include "schedule/graph_problem.h"

/* Fills placements and node_placements. */
tm_status tm_graph_labels_ask(tm_graph_problem *problem, const tm_plan_policy *policy, tm_error *error);
/* Fills places, memories, place_of_device, alignment, and the solver's counts of memories, resources and links. */
tm_status tm_graph_labels_place(tm_graph_problem *problem, tm_error *error);
/* Fills labels, the solver's labels, and what its operations say of them. */
tm_status tm_graph_labels_make(tm_graph_problem *problem, tm_solver_op *ops, const tm_plan_policy *policy, tm_error *error);
/* The problem is whole: lets those share what is paid once that take it, and prices labels accordingly.  Where nothing is paid
   once any more `settled` stays empty. */
void tm_graph_labels_settle(tm_graph_problem *problem, tm_memory *memory, const tm_plan_policy *policy);

#endif
