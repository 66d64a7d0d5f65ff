/* SPDX-License-Identifier: Apache-2.0 */
/* plan_digest.h - a plan as one hash over bytes that do not depend on where anything is listed or lies. */
#ifndef TM_EXECUTE_PLAN_DIGEST_H
#define TM_EXECUTE_PLAN_DIGEST_H

#include "execute/plan.h"

/* Operations, layouts and connections; not names, and not the bytes of constants. */
void tm_graph_digest(const tm_graph *graph, uint8_t out_digest[TM_SHA256_BYTES]);

void tm_plan_digest_make(const tm_plan *plan, uint8_t out_digest[TM_SHA256_BYTES]);

#endif
