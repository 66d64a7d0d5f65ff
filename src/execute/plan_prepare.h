/* SPDX-License-Identifier: Apache-2.0 */
/* plan_prepare.h - kernels of a plan, prepared beside its runs where that takes long. */
#ifndef TM_EXECUTE_PLAN_PREPARE_H
#define TM_EXECUTE_PLAN_PREPARE_H

#include "execute/plan.h"

/* Prepares what is quick now, and starts a thread for the rest, unless the plan waits for that as well. */
void tm_plan_prepare_start(tm_plan *plan);
/* Ends the thread after the kernel that it is at. */
void tm_plan_prepare_stop(tm_plan *plan);

#endif
