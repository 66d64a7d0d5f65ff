/* SPDX-License-Identifier: Apache-2.0 */
/* graph_budget.h - the cheapest labels of a graph's nodes within what each memory may hold. */
#ifndef TM_SCHEDULE_GRAPH_BUDGET_H
#define TM_SCHEDULE_GRAPH_BUDGET_H

#include "schedule/graph_problem.h"
#include "solver/memory_price.h"
#include "solver/portfolio.h"

/* As tm_assignment_solve_within; TM_ERROR_LIMIT says which node needs how much of whose memory, and what can be done. */
tm_status tm_graph_budget_solve(const tm_graph_problem *problem, bool with_marginals, tm_memory *memory, tm_assignment_within *out,
                                tm_error *error);

/* By how much each plan exceeds the budgets where nodes run in the graph's own order. */
tm_status tm_graph_budget_weigh(const tm_solver_problem *solver, tm_portfolio *portfolio, tm_memory *memory, tm_error *error);

#endif
