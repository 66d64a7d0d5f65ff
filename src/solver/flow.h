/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - a problem's values from their own side: who reads each, and what each operation makes. */
#ifndef TM_SOLVER_FLOW_H
#define TM_SOLVER_FLOW_H

#include "base/arena.h"
#include "base/error.h"
#include "solver/problem.h"

typedef struct tm_flow {
  uint32_t *first_reader;       /* [value_count + 1] into readers */
  uint32_t *readers;            /* operations, ascending for each value */
  uint32_t *first_output;       /* [op_count + 1] into outputs */
  uint32_t *outputs;            /* values, ascending for each operation */
} tm_flow;

/* Of a checked problem; lives in the arena. */
tm_status tm_flow_init(tm_flow *flow, const tm_solver_problem *problem, tm_arena *arena, tm_error *error);

#endif
