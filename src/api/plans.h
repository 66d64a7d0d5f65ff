/* SPDX-License-Identifier: Apache-2.0 */
/* plans.h - making plans, from scratch and from files. */
#ifndef TM_API_PLANS_H
#define TM_API_PLANS_H

#include "api/context.h"
#include "execute/plan.h"

/* Checks them and fills in what is usual; `options` may be NULL.   TM_ERROR_ARGUMENT */
tm_status tm_plan_options_read(const tm_plan_options *options, tm_plan_options *out_options, tm_error *error);

/* Makes a plan of options that were read; `choose` as in tm_plan_request.   As tm_plan_create */
tm_status tm_plan_make(tm_graph *graph, const tm_plan_options *options,
                       tm_status (*choose)(void *choose_context, tm_graph_problem *problem, tm_memory *memory,
                                           tm_graph_choice *out_choice, tm_error *error),
                       void *choose_context, tm_plan **out_plan, tm_error *error);

#endif
