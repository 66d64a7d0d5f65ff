/* SPDX-License-Identifier: Apache-2.0 */
/* makespan_bound.h - a time that no plan of a problem can beat. */
#ifndef TM_SOLVER_MAKESPAN_BOUND_H
#define TM_SOLVER_MAKESPAN_BOUND_H

#include "solver/problem_index.h"

/* The greater of two: the longest way through the graph with the best label and the cheapest copy at each step, and the work
   shared perfectly among the resources.  `outlook_ns`: tm_ranks'. */
tm_status tm_makespan_bound_find(const tm_problem_index *index, const uint64_t *outlook_ns, tm_arena *arena, uint64_t *out_ns,
                                 tm_error *error);

#endif
