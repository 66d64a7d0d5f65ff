/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_stage.h - memory of a plan's own in the place of inputs and outputs that an asynchronous device reads or writes from
 * memory of its own.  Should its work never end, all that it may still touch is the library's: it stays for ever, and the run
 * goes on elsewhere.  That costs a copy of them at each run, so large ones are used where they are, and so are all where
 * that would exceed what the plan may take.
 */
#ifndef TM_EXECUTE_PLAN_STAGE_H
#define TM_EXECUTE_PLAN_STAGE_H

#include "execute/plan.h"

/* Which locations have a stage, once actions and memory of a program are known; it is counted with that memory. */
void      tm_plan_stage_choose(tm_plan *plan);
/* TM_ERROR_NO_MEMORY */
tm_status tm_plan_stage_make(tm_plan *plan, tm_plan_location *location, tm_error *error);
void      tm_plan_stage_free(tm_plan *plan, tm_plan_location *location);

/* Where the first element lies; NULL: the location has no stage. */
char     *tm_plan_stage_first(const tm_plan *plan, const tm_plan_location *location);
/* Before and after a run. */
void      tm_plan_stage_inputs(const tm_plan *plan);
void      tm_plan_stage_outputs(const tm_plan *plan);

#endif
