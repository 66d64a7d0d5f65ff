/* SPDX-License-Identifier: Apache-2.0 */
/* state_readers.h - who reads what a state was, before an operation overwrites that in place: in another order the state would
   have to be copied, and states are large. */
#ifndef TM_SCHEDULE_STATE_READERS_H
#define TM_SCHEDULE_STATE_READERS_H

#include "graph/graph.h"
#include "solver/issue_order.h"

/* Fills the lists of `rules`, of nodes, from what may be written in place while nodes keep their order: by operations that only
   move elements, as plans let no others overwrite a state.  The lists live in `arena`.
   TM_ERROR_NO_MEMORY */
tm_status tm_state_readers_list(const tm_graph *graph, tm_arena *arena, tm_issue_rules *rules, tm_error *error);

#endif
