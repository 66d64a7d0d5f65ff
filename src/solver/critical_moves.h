/* SPDX-License-Identifier: Apache-2.0 */
/*
 * critical_moves.h - a plan made better where it hurts.  A plan can only end sooner if something on its critical path does, so
 * each operation there is tried with another label, together with its neighbours on the path, and ahead of the one that it
 * waits for; what helps is kept, and the path is found anew.
 */
#ifndef TM_SOLVER_CRITICAL_MOVES_H
#define TM_SOLVER_CRITICAL_MOVES_H

#include "solver/plan_judge.h"

/* Improves `plan`, already judged, until nothing helps, the bound is reached, or judge->step_count is `last_step`.
   *out_has_moved: something helped. */
tm_status tm_critical_moves_improve(tm_plan_judge *judge, tm_judged_plan *plan, uint64_t bound_ns, uint64_t last_step,
                                    tm_arena *arena, bool *out_has_moved, tm_error *error);

#endif
