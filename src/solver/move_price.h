/* SPDX-License-Identifier: Apache-2.0 */
/* move_price.h - what each label of each operation would cost as everything else in a plan stands. */
#ifndef TM_SOLVER_MOVE_PRICE_H
#define TM_SOLVER_MOVE_PRICE_H

#include "base/error.h"
#include "solver/problem.h"

/* Fills out_ns[label]: its own time and the copies that are made for it or for what it makes, TM_SOLVER_NEVER if it cannot be.
   `labels` ([op]) is a plan for a sound problem; only prices of one operation can be compared. */
tm_status tm_move_prices_find(const tm_solver_problem *problem, const uint32_t *labels, tm_memory *memory, uint64_t *out_ns,
                              tm_error *error);

#endif
