/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_digest.h - a plan as one hash over all that a run does: who runs what, what is copied when, and what shares memory.  It
 * does not depend on where anything is listed or lies, nor on what anything is expected to take, or who would stand in: two plans
 * of one digest do the same.
 */
#ifndef TM_EXECUTE_PLAN_DIGEST_H
#define TM_EXECUTE_PLAN_DIGEST_H

#include "execute/plan.h"

/* Operations, layouts and connections; not names, and not the bytes of constants. */
void tm_plan_graph_digest(const tm_graph *graph, uint8_t out_digest[TM_SHA256_BYTES]);

void tm_plan_digest_make(const tm_plan *plan, uint8_t out_digest[TM_SHA256_BYTES]);

#endif
