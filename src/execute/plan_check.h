/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_check.h - the sampled checks of a plan's steps (sampled_check.h), in the replays that are measured: those wait after each step, so
 * that what it read and what it wrote are both there.  Of a step that writes where it read, what it reads is set aside first.
 */
#ifndef TM_EXECUTE_PLAN_CHECK_H
#define TM_EXECUTE_PLAN_CHECK_H

#include "execute/plan.h"

/* One launch. */
typedef struct tm_plan_check {
  tm_plan              *plan;
  const tm_plan_action *action;
  tm_plan_candidate    *candidate;      /* NULL: it is not looked at */
  bool                  is_in_place;
  bool                  is_affordable;  /* in place: what it reads is set aside */
  bool                  lacks_room;     /* for copies of operands */
  tm_scratch_block      blocks[TM_MAX_OPERANDS];
  void                 *pointers[TM_MAX_OPERANDS];
} tm_plan_check;

/* Before the launch at `action`, which is not to be launched unless it is TM_OK.   As tm_device_download */
tm_status tm_plan_check_begin(tm_plan_check *check, tm_plan *plan, const tm_plan_action *action, tm_error *error);
/* It is done, and stands for `run_count` of them.  What lies in a device's own memory is fetched, if that can be afforded and
   the plan may take as much, through the queue that the loop holds.   TM_ERROR_INTERNAL (it is wrong), as tm_device_download */
tm_status tm_plan_check_end(tm_plan_check *check, uint64_t taken_ns, uint64_t run_count, tm_error *error);
/* After either. */
void      tm_plan_check_drop(const tm_plan_check *check);

#endif
