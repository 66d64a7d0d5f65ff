/* SPDX-License-Identifier: Apache-2.0 */
/* plan_loop.h - the two loops over a bound plan's actions. */
#ifndef TM_EXECUTE_PLAN_LOOP_H
#define TM_EXECUTE_PLAN_LOOP_H

#include "execute/plan.h"

/* The first replay is measured, and from then on one in so many, which stands for all of them. */
#define TM_PLAN_MEASURE_ONE_IN 64u

/* What went wrong and where; nothing is under way afterwards. */
typedef struct tm_loop_failure {
  uint32_t  action;
  uint32_t  blamed;             /* the action whose work failed, as far as that is known; else the same */
  uint32_t  is_abandoned;       /* work of a device never ended, and may still use what it was given */
  uint32_t  is_held;            /* ... and that is the application's */
  tm_status status;
  tm_error  error;
} tm_loop_failure;

/* TM_OK, or failure->status.  What careful steps made good is added to `outcome`. */
tm_status tm_plan_loop_plain(tm_plan *plan, tm_plan_outcome *outcome, tm_loop_failure *failure);
/* The same, waiting for each step, and learning from what it took. */
tm_status tm_plan_loop_measured(tm_plan *plan, tm_plan_outcome *outcome, tm_loop_failure *failure);

#endif
