/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_price.h - the cheapest assignment that fits: memories have budgets, and where the best plan exceeds one, bytes
 * get a price there that plans pay until they fit.  The prices prove a bound, and tell what more memory would be worth.
 * When what is where is said in occupancy.h.
 */
#ifndef TM_SOLVER_MEMORY_PRICE_H
#define TM_SOLVER_MEMORY_PRICE_H

#include "solver/assignment.h"

/* Where the plan that came nearest exceeds what is allowed. */
typedef struct tm_memory_shortage {
  uint32_t memory;
  uint32_t op;                  /* during which it needs most there */
  uint64_t needed_bytes;        /* 0: none was found to come near */
  uint64_t allowed_bytes;
} tm_memory_shortage;

typedef struct tm_assignment_within {
  tm_assignment assignment;     /* bound_ns: of plans that fit; min_marginals: lower bounds, unless nothing was in the way */
  uint64_t     *peak_bytes;     /* [memory] */
  uint64_t     *prices;         /* [memory]: about how many ns another MiB would save, 0 where there is enough */
  uint32_t      memory_count;
  uint32_t      solve_count;
  tm_memory_shortage shortage;  /* after TM_ERROR_LIMIT, when nothing else is written */
} tm_assignment_within;

/* As tm_assignment_solve, and TM_ERROR_LIMIT when no plan that fits was found.  The problem's budgets may be NULL. */
tm_status tm_assignment_solve_within(const tm_solver_problem *problem, const tm_assignment_options *options, tm_memory *memory,
                                     tm_assignment_within *out, tm_error *error);
void      tm_assignment_within_deinit(tm_assignment_within *within);

#endif
