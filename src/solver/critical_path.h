/* SPDX-License-Identifier: Apache-2.0 */
/* critical_path.h - why a plan takes as long as it does: a chain of operations and copies without a gap, up to its end. */
#ifndef TM_SOLVER_CRITICAL_PATH_H
#define TM_SOLVER_CRITICAL_PATH_H

#include "solver/event_model.h"
#include "solver/timeline.h"

/* The chain of the model's last run, from its start to its end, in out_steps[0 ... result): room for every operation and
   every copy, op_count + copy_count, is enough.  Among several causes an input goes before the turn of the resource. */
uint32_t tm_critical_path_find(const tm_event_model *model, tm_timeline_step *out_steps);

#endif
