/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_problem.h - a graph on an inventory as the numbers of solver/problem.h.  Each distinct request is asked about once,
 * as a placement (placement.h); an operation's labels are those of its candidates that may and can run.  There are two ways to
 * run one:
 *
 *     direct     the kernel works where the plan has its operands: in host memory, or in the device's own
 *     careful    from and to host memory, as a run of a single operation does: lowerings, and operands that the device could
 *                not be given where they lie
 *
 * Numbers of memories, resources and ranks come from what devices are, never from their place in a list, so that the same
 * machine gives the same problem in whatever order its plugins were loaded.
 */
#ifndef TM_SCHEDULE_GRAPH_PROBLEM_H
#define TM_SCHEDULE_GRAPH_PROBLEM_H

#include "graph/graph.h"
#include "schedule/placement.h"
#include "schedule/setup_shares.h"
#include "solver/assignment.h"
#include "solver/problem.h"

#define TM_HOST_SPACE 0u        /* the number of host memory */

/* What the application wants of a plan. */
typedef struct tm_plan_policy {
  uint32_t       worst_numerics;        /* or TM_NUMERICS_DEFAULT */
  uint32_t       run_to_run;
  uint64_t       repeats;               /* runs over which what is paid once is spread; at least 1 */
  uint64_t       most_bytes;            /* in any one memory at once; 0: no limit */
  const uint8_t *denied;                /* by device: 1 if it must not be used; NULL: all may */
  uint32_t       latency_permille;      /* what counts how much; all 0: latency only */
  uint32_t       throughput_permille;
  uint32_t       memory_permille;
  uint32_t       one_resource;          /* 1: all on one, with the reference for what that cannot do */
} tm_plan_policy;

/* One way to run a node; beside solver.labels. */
typedef struct tm_graph_label {
  uint32_t candidate;           /* of the node's placement */
  uint32_t is_direct;
} tm_graph_label;

/* A device in the order of what it is, and where its launches find their operands. */
typedef struct tm_graph_place {
  tm_device_slot *device;
  uint32_t        memory;
  uint32_t        resource;
} tm_graph_place;

typedef struct tm_graph_problem {
  const tm_graph     *graph;
  tm_placement_table *table;
  tm_arena            arena;            /* all that follows */
  tm_solver_problem   solver;           /* operation i is node i; values are those that are no views */
  const tm_graph_label *labels;         /* [solver.label_count] */
  tm_placement      **placements;       /* one a distinct request */
  uint32_t            placement_count;
  uint32_t            reserved;
  uint32_t           *node_placements;  /* [node] */
  tm_setup_shares     shares;           /* of what nodes pay once together */
  tm_assignment       settled;          /* at the labels' prices, with states in host memory, if is_settled */
  bool                is_settled;
  uint32_t           *value_numbers;    /* [graph value]: the solver's; of a view its base's */
  uint32_t           *graph_values;     /* [solver value] */
  tm_graph_place     *places;           /* by what they are */
  uint32_t            place_count;
  const uint8_t      *denied;           /* the policy's, while that is there */
  uint32_t            alignment;        /* of memory that the host gives to host-memory devices */
  uint32_t           *place_of_device;  /* [device of the inventory] */
  tm_device_slot    **memories;         /* [solver memory]: whose own it is; NULL: host memory */
  uint32_t           *links_in;         /* [solver memory]: of copies from host memory (correction.h); of host memory: none */
  uint32_t           *links_out;
} tm_graph_problem;

/* Asks, prices, and numbers.  The graph is sealed and bound, and outlives the problem, as the table does; the problem is not moved.
   Deinit in any case.
   TM_ERROR_NO_DEVICE (nobody may and can run a node: which one, and every candidate's reason), TM_ERROR_ARGUMENT,
   TM_ERROR_NO_MEMORY */
tm_status tm_graph_problem_init(tm_graph_problem *problem, tm_memory *memory, const tm_graph *graph, tm_placement_table *table,
                                const tm_plan_policy *policy, tm_error *error);
void tm_graph_problem_deinit(tm_graph_problem *problem);

/* Prices of labels are no longer those that were settled upon. */
void tm_graph_problem_unsettle(tm_graph_problem *problem);

/* From now on states live in that memory between runs, those that can; false if none can. */
bool tm_graph_problem_keep_states(tm_graph_problem *problem, uint32_t memory);

/* Moving bytes once between two memories, as learned so far. */
uint64_t tm_graph_problem_copy_ns(const tm_graph_problem *problem, uint32_t from, uint32_t to, uint64_t bytes);

/* "lazy_a:0's memory", "host memory". */
void tm_graph_problem_name_memory(const tm_graph_problem *problem, uint32_t memory, char *text, uint64_t capacity);

static inline tm_plan_candidate *tm_graph_problem_candidate(const tm_graph_problem *problem, uint32_t node, uint32_t label) {
  return &problem->placements[problem->node_placements[node]]->candidates[problem->labels[label].candidate];
}

#define TM_NOT_ALLOWED "not allowed for this plan"

/* By the policy, whatever the device would say. */
static inline bool tm_graph_problem_denies(const tm_graph_problem *problem, const tm_device_slot *device) {
  return problem->denied != NULL && problem->denied[device->index] != 0;
}

/* Why the candidate is not to be had; "" where there is no reason. */
const char *tm_graph_problem_refusal(const tm_graph_problem *problem, const tm_plan_candidate *candidate);

#endif
