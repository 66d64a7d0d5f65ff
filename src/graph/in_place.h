/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_place.h - which results are certain to be written over what their node reads, whichever order the nodes run in, whenever
 * the device that runs the node allows it: nobody else ever reads the old bytes, nobody wants them after the run, and a
 * state becomes what is written.  liveness.h finds more, but only once order and devices are known; this is known when
 * devices are asked.
 */
#ifndef TM_GRAPH_IN_PLACE_H
#define TM_GRAPH_IN_PLACE_H

#include "graph/graph.h"

/* [node] 1: its only result goes over the only input that it could go over.  From `arena`.   TM_ERROR_NO_MEMORY */
tm_status tm_graph_in_place_find(const tm_graph *graph, tm_arena *arena, uint8_t **out_is_certain, tm_error *error);

#endif
