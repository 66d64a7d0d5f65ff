/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead_ends.h - choices that some other choice of the same operation never costs more than, wherever everything around
 * it runs: without them the best total stays, and tables get smaller.
 */
#ifndef TM_SOLVER_DEAD_ENDS_H
#define TM_SOLVER_DEAD_ENDS_H

#include "solver/choices.h"
#include "solver/flow.h"

/* Drops them from `choices` and says how many there were. */
tm_status tm_dead_ends_drop(tm_choices *choices, const tm_solver_problem *problem, const tm_flow *flow, tm_arena *arena,
                            uint64_t *out_dropped, tm_error *error);

#endif
