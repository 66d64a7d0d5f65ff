/* SPDX-License-Identifier: Apache-2.0 */
/* explained_schedule.h - the copies that a chosen plan makes, when everything happens, and what one node elsewhere would change. */
#ifndef TM_SCHEDULE_EXPLAINED_SCHEDULE_H
#define TM_SCHEDULE_EXPLAINED_SCHEDULE_H

#include "schedule/graph_explanation.h"

/* Fills copies, links, times, peaks and the critical path of the explanation's choice, and what each label would cost in the
   place of the chosen one.   TM_ERROR_NO_MEMORY */
tm_status tm_explained_schedule_make(tm_plan_explanation *explanation, tm_error *error);

#endif
