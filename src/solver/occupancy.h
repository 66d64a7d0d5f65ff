/* SPDX-License-Identifier: Apache-2.0 */
/*
 * occupancy.h - how many bytes a plan has in each memory at each operation, when operations run in their order.
 *
 * A value is in the memory where it was made from then on, and in another from the copy on, until the last time it is read
 * or copied from there.  Copies are made right before the first operation that reads them; the one that is wanted in the
 * end is made at once and stays.  A value with a home is there from the beginning; copies of one that is kept are there from
 * the beginning to the end.  Where a value is lent it does not count.
 */
#ifndef TM_SOLVER_OCCUPANCY_H
#define TM_SOLVER_OCCUPANCY_H

#include <stdbool.h>

#include "solver/flow.h"

#define TM_OCCUPANCY_MOST_EXCESS (UINT64_MAX - 1)       /* so that UINT64_MAX can stand for no plan */

typedef struct tm_occupancy {
  const tm_solver_problem *problem;
  const tm_flow           *flow;
  uint64_t *used_bytes;         /* [memory][op] */
  uint64_t *peak_bytes;         /* [memory] */
  uint32_t *peak_op;            /* [memory]: the first one at the peak */
  uint64_t  excess_bytes;       /* by which peaks exceed budgets, over all memories; TM_OCCUPANCY_MOST_EXCESS: that or more */
  uint64_t  total_ns;           /* what the plan costs, TM_SOLVER_NEVER if it cannot be */
  uint32_t *first_use;          /* [memory], of the value at hand */
  uint32_t *last_use;
  uint32_t *touched;
} tm_occupancy;

/* TM_ERROR_ARGUMENT when the bytes of all values are too many to add.  Lives in the arena. */
tm_status tm_occupancy_init(tm_occupancy *occupancy, const tm_solver_problem *problem, const tm_flow *flow, tm_arena *arena,
                            tm_error *error);
/* Weighs the plan: labels[op]. */
void      tm_occupancy_weigh(tm_occupancy *occupancy, const uint32_t *labels);

static inline uint64_t tm_occupancy_budget(const tm_solver_problem *problem, uint32_t memory) {
  return problem->budgets == NULL ? UINT64_MAX : problem->budgets[memory];
}

#endif
