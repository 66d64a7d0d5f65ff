/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery.h - the rest of a replay in which something failed.  What survived is read from where it lies; what did not is
 * computed again, from as far back as need be.  A state whose only copy is gone, or that was changed in place although
 * somebody needs it as it was, ends that: the error names it.
 */
#ifndef TM_EXECUTE_RECOVERY_H
#define TM_EXECUTE_RECOVERY_H

#include "execute/careful_replay.h"

/* `failed`: the action that failed; nothing is under way any more.  Leaves states in host memory and the program unbound.
   As tm_careful_replay_run, and TM_ERROR_DEVICE_LOST (a state is gone) */
tm_status tm_plan_recover(tm_plan *plan, uint32_t failed, tm_plan_outcome *outcome, tm_error *error);

#endif
