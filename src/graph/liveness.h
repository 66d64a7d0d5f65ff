/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liveness.h - who needs a value's memory, from when to when, and which values can share it.  A value's memory is that of its
 * root: the base of a view, and the input in whose place an output is written, as far as the operation declares it
 * (tm_op_row.may_alias), the caller allows it (the device's answer says so too, and both lie in one memory) and nobody needs the
 * old bytes any more.  Only roots need memory; views and in-place outputs lie in it.
 */
#ifndef TM_GRAPH_LIVENESS_H
#define TM_GRAPH_LIVENESS_H

#include "graph/graph.h"

typedef struct tm_value_life {
  uint32_t root;                /* the value in whose memory it lies; itself: it needs memory of its own */
  uint32_t in_place_of;         /* RESULT: the input value that it may overwrite (a direct input of its node), or TM_GRAPH_NONE */
  uint32_t made;                /* node that writes it, TM_GRAPH_NONE: there before the run.  Of a root: the first writer */
  uint32_t first_use;           /* first node that reads it, views included; TM_GRAPH_NONE: nobody */
  uint32_t last_use;            /* the last one; TM_GRAPH_NONE: nobody */
  uint32_t use_count;           /* nodes that read it, views included */
  uint32_t outlives;            /* 1: needed after the last node (an output, carried into a state, a state or constant) */
  uint32_t memory_last;         /* of a root: the last node that reads or writes its memory, through whatever shares it;
                                   node_count if something in it outlives the run; TM_GRAPH_NONE: no node ever does */
} tm_value_life;

typedef struct tm_liveness {
  tm_memory     *memory;
  tm_value_life *values;        /* by value */
  uint32_t       value_count;
  uint32_t       node_count;
} tm_liveness;

/* allowed[node]: alias bits as in tm_op_row.may_alias, what the device that runs it allows; NULL: all that is declared.
   Linear in the graph.   TM_ERROR_NO_MEMORY */
tm_status tm_liveness_init(tm_liveness *liveness, const tm_graph *graph, const uint64_t *allowed, tm_error *error);
void tm_liveness_deinit(tm_liveness *liveness);

/* Whether output `output` of `node` may lie exactly where input `input` lies, as far as operation and layouts go. */
bool tm_graph_may_alias(const tm_graph *graph, uint32_t node, uint32_t output, uint32_t input);

#endif
