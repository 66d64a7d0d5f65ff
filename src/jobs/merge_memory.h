/* SPDX-License-Identifier: Apache-2.0 */
/* merge_memory.h - how much memory a merge takes: its tiles, and of each tensor what is planned and told. */
#ifndef TM_JOBS_MERGE_MEMORY_H
#define TM_JOBS_MERGE_MEMORY_H

#include "jobs/merge_plan.h"

/* Fills in memory_bytes of a plan that is otherwise whole; too little for it is a problem of the plan.   peak_bytes: the most that
   was used while it was made */
void tm_merge_plan_add_up_memory(tm_merge_plan *plan, uint64_t peak_bytes);

/* Where the limit is what ends planning: says so, and about how much would do; else adds the limit, if there is one, to what `error`
   says.   used_bytes: before planning.   TM_ERROR_NO_MEMORY */
tm_status tm_merge_plan_fail_memory(const tm_memory *memory, const tm_merge_settings *settings, uint64_t used_bytes, tm_error *error);

#endif
