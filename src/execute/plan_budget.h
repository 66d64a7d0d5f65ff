/* SPDX-License-Identifier: Apache-2.0 */
/* plan_budget.h - a plan's program that keeps to the memory which its policy allows. */
#ifndef TM_EXECUTE_PLAN_BUDGET_H
#define TM_EXECUTE_PLAN_BUDGET_H

#include "execute/plan.h"
#include "schedule/graph_choice.h"

/* Chooses and builds the program of a plan whose problem is there.  What is allowed more never gets less: what TM_ERROR_LIMIT
   names as nearest is a plan that is made where so much is allowed, or more.
   TM_ERROR_LIMIT (no plan that keeps to policy.most_bytes was found), TM_ERROR_NO_MEMORY */
tm_status tm_plan_place_within(tm_plan *plan, const tm_plan_request *request, tm_error *error);

/* One choice within the problem's budgets, built; so that it waits more where it takes more than most_bytes in a memory.
   TM_ERROR_LIMIT (nothing keeps to the budgets: `out_lack` tells), TM_ERROR_NO_MEMORY */
tm_status tm_plan_choose_and_build(tm_plan *plan, const tm_plan_request *request, uint64_t most_bytes,
                                   tm_memory_shortage *out_lack, tm_error *error);
/* What the program takes where it takes the most. */
uint64_t  tm_plan_program_bytes(const tm_plan_program *program, uint32_t *out_memory);

#endif
