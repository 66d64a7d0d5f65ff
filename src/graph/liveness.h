/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liveness.h - who needs a value's memory, from when to when, and which values can share it.
 *
 * A value's memory is that of its root: the base of a view, and the input in whose place an output is written, as far as the
 * operation declares it (tm_op_row.may_alias), the caller allows it (the device's answer says so too, and both lie in one
 * memory) and nobody needs the old bytes any more.  Only roots need memory; views and in-place outputs lie in it.
 *
 *     state kv --- update ---> kv' --- update ---> kv'' = what kv is after the run       one memory, root kv
 *
 * A state is written in place only by such a chain, from the state itself to what it is carried to.  Whoever runs the graph
 * first reads the outputs, then makes carried values states: all of those at once, since one may be another's old content.
 *
 * "First" and "last" are those of the order in which nodes run; a moment is a place in that order.
 */
#ifndef TM_GRAPH_LIVENESS_H
#define TM_GRAPH_LIVENESS_H

#include "graph/graph.h"

typedef struct tm_value_life {
  uint32_t root;                /* the value in whose memory it lies; itself: it needs memory of its own */
  uint32_t in_place_of;         /* RESULT: the input of its node in whose exact place it is written, or TM_GRAPH_NONE */
  uint64_t offset_bytes;        /* of its first element from the root's first element */
  uint32_t made;                /* when it is written; TM_GRAPH_NONE: it is there before the run */
  uint32_t first_use;           /* when it or a view of it is read first; TM_GRAPH_NONE: never */
  uint32_t last_use;            /* ... and last; TM_GRAPH_NONE: never */
  uint32_t use_count;           /* nodes that read it or a view of it */
  uint32_t outlives;            /* 1: it or a view of it is needed after the last node: as an output, as what a state is then */
  uint32_t memory_last;         /* of a root: when its memory is read or written last; node_count if something in it is needed
                                   after the run; TM_GRAPH_NONE: never */
} tm_value_life;

typedef struct tm_liveness {
  tm_memory     *memory;
  tm_value_life *values;        /* by value */
  uint32_t       value_count;
  uint32_t       node_count;
} tm_liveness;

/* order[place]: all nodes, each after those whose results it reads; NULL: as they were added.
   allowed[node]: alias bits as in tm_op_row.may_alias, what the device that runs it allows; NULL: all that is declared.
   Linear in the graph.   TM_ERROR_NO_MEMORY */
tm_status tm_liveness_init(tm_liveness *liveness, const tm_graph *graph, const uint32_t *order, const uint64_t *allowed,
                           tm_error *error);
void tm_liveness_deinit(tm_liveness *liveness);

/* Whether output `output` of `node` may lie exactly where input `input` lies, as far as operation and layouts go. */
bool tm_graph_may_alias(const tm_graph *graph, uint32_t node, uint32_t output, uint32_t input);

#endif
