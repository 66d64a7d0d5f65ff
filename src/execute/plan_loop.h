/* SPDX-License-Identifier: Apache-2.0 */
/* plan_loop.h - the two loops over a bound plan's actions. */
#ifndef TM_EXECUTE_PLAN_LOOP_H
#define TM_EXECUTE_PLAN_LOOP_H

#include "execute/plan.h"

/* What went wrong and where; nothing is under way afterwards. */
typedef struct tm_loop_failure {
  uint32_t  action;
  uint32_t  is_held;            /* work that never ended may still use host memory */
  tm_status status;
  tm_error  error;
} tm_loop_failure;

/* TM_OK, or failure->status. */
tm_status tm_plan_loop_plain(tm_plan *plan, tm_loop_failure *failure);
/* The same, waiting for each step, and learning from what it took. */
tm_status tm_plan_loop_measured(tm_plan *plan, tm_loop_failure *failure);

#endif
