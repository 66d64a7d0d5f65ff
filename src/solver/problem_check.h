/* SPDX-License-Identifier: Apache-2.0 */
/* problem_check.h - a problem that can be trusted: every index in range, every cost a cost, operations in an order. */
#ifndef TM_SOLVER_PROBLEM_CHECK_H
#define TM_SOLVER_PROBLEM_CHECK_H

#include "base/error.h"
#include "solver/problem.h"

#define TM_SOLVER_MOST_MEMORIES     1024u
#define TM_SOLVER_MOST_SIZE_CLASSES (1u << 24)

/* TM_ERROR_ARGUMENT names what breaks which rule of problem.h; nothing else in this layer looks again. */
tm_status tm_problem_check(const tm_solver_problem *problem, tm_memory *memory, tm_error *error);

#endif
