/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - one run of a plan.
 *
 * Once everything is prepared and proven a run walks the plan's actions: an indirect call a step on devices that compute in host
 * memory, launches that are not waited for on others, and waits only where somebody else needs what they make.  There is
 * no look-up, allocation, lock or text in that.  One run in so many is measured, step by step, and teaches what things cost.
 * Before that, and for what is left when something fails, see careful_replay.h and recovery.h.
 */
#ifndef TM_EXECUTE_REPLAY_H
#define TM_EXECUTE_REPLAY_H

#include "execute/plan.h"

/* plan->inputs and plan->outputs are set, and aligned as problem.alignment says.  One thread at a time.
   As tm_plan_recover, and TM_ERROR_DEVICE_LOST (a state was lost before) */
tm_status tm_plan_replay(tm_plan *plan, tm_plan_outcome *out_outcome, tm_error *error);

#endif
