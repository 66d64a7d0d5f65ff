/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor_graph.h - the graphs of the scheduling literature: tasks, processors, and edges that cost their weight between
 * different processors.  As a placement problem each processor is a resource with a memory of its own, each edge a value.
 */
#ifndef PROCESSOR_GRAPH_H
#define PROCESSOR_GRAPH_H

#include "problem_builder.h"

#define GRAPH_MOST_TASKS      64u
#define GRAPH_MOST_EDGES      512u
#define GRAPH_MOST_PROCESSORS 4u

typedef struct graph_edge {
  uint32_t from;
  uint32_t to;
  uint64_t weight;
} graph_edge;

typedef struct processor_graph {
  uint32_t task_count;
  uint32_t edge_count;
  uint32_t processor_count;
  uint64_t cost[GRAPH_MOST_TASKS][GRAPH_MOST_PROCESSORS];
  graph_edge edges[GRAPH_MOST_EDGES];   /* from < to */
} processor_graph;

/* Label of task t on processor p: t * processor_count + p. */
static inline void graph_build(const processor_graph *graph, problem_builder *out_builder) {
  builder_init(out_builder, graph->processor_count, graph->processor_count, graph->edge_count + 1, 2048);
  for (uint32_t e = 0; e < graph->edge_count; e++) {
    builder_copies(out_builder, e, graph->edges[e].weight);
    builder_value(out_builder, 0, graph->edges[e].from, TM_SOLVER_NONE, TM_SOLVER_NONE, e);
  }
  for (uint32_t t = 0; t < graph->task_count; t++) {
    builder_op(out_builder);
    for (uint32_t p = 0; p < graph->processor_count; p++) {
      builder_label(out_builder, (tm_solver_label){ graph->cost[t][p], p, p, p, p, 0 });
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
      if (graph->edges[e].to == t) builder_input(out_builder, e);
    }
  }
}

#endif
