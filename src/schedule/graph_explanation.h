/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_explanation.h - why each node of a graph is where it is: everything that the placement of a graph rests on, looked
 * at once and kept.  What is asked about what:
 *
 *     questions   distinct requests with what every candidate said of them (explained_question.h)
 *     labels      ways to run a node with the parts of their price, and what a plan with them costs
 *     schedule    the copies that the plan makes, and when everything happens (explained_schedule.h)
 *     changes     what the plan would be with one requirement changed (requirement_change.h)
 *     rejected    whole plans that were looked at, and are not the one
 */
#ifndef TM_SCHEDULE_GRAPH_EXPLANATION_H
#define TM_SCHEDULE_GRAPH_EXPLANATION_H

#include "schedule/graph_choice.h"
#include "schedule/label_price.h"
#include "tensormorph/tensormorph.h"

/* What one candidate said, at the prices of one moment. */
typedef struct tm_explained_candidate {
  const tm_device_slot *device;
  const char    *lowering;              /* "" if there is none */
  const char    *reason;
  uint32_t       verdict;               /* TM_VERDICT_*; SLOWER: it can */
  uint32_t       reserved;
  tm_answer      answer;                /* its text is not to be used */
  double         correction;
  double         spread;
  uint64_t       sample_count;
  uint64_t       setup_ns;
  tm_label_price prices[2];             /* [is_direct] */
} tm_explained_candidate;

typedef struct tm_explained_question {
  tm_explained_candidate *candidates;
  uint32_t candidate_count;
  uint32_t worst_numerics;
  tm_work  work;
} tm_explained_question;

typedef struct tm_explained_label {
  const tm_explained_candidate *candidate;
  tm_label_price price;
  uint64_t copy_in_ns;
  uint64_t copy_out_ns;
  uint64_t total_ns;
  uint64_t memory_ns;
  uint64_t forced_ns;
  uint64_t moved_ns;                    /* TM_NEVER_NS: not known */
  uint64_t wait_ns;
  uint32_t is_direct;
  uint32_t reserved;
} tm_explained_label;

typedef struct tm_explained_place {     /* a node */
  uint32_t question;
  uint32_t op;
  uint32_t chosen;                      /* label */
  uint32_t why;                         /* TM_WHY_* */
  uint32_t is_critical;
  uint32_t reserved;
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t measured_ns;
  uint64_t measured_count;
} tm_explained_place;

typedef struct tm_changed_place {
  const tm_device_slot *device;
  const char           *lowering;
} tm_changed_place;

typedef struct tm_requirement_change {
  uint32_t              kind;           /* TM_CHANGE_* */
  uint32_t              moved_count;
  uint64_t              value;
  uint64_t              total_ns;
  tm_changed_place     *places;         /* [node]; NULL: no plan meets it */
  const tm_device_slot *device;         /* ALLOWED */
} tm_requirement_change;

/* Where a plan that exists runs a node, and what that took. */
typedef struct tm_explained_pin {
  const tm_device_slot *device;
  const char           *lowering;       /* NULL: there is none */
  uint32_t              is_direct;
  uint32_t              reserved;
  uint64_t              measured_ns;
  uint64_t              measured_count;
} tm_explained_pin;

typedef struct tm_explanation_request {
  tm_memory              *memory;
  const tm_graph         *graph;
  tm_placement_table     *table;
  tm_plan_policy          policy;
  const tm_explained_pin *pins;         /* [node] */
  const uint32_t         *order;        /* in which nodes run */
  uint32_t                state_memory;
  uint32_t                memory_count; /* that the plan was chosen for */
  const uint64_t         *budgets;      /* [memory]: bytes that were left to choose for, once all had its place (plan.c); NULL:
                                           there is no limit */
  const uint64_t         *memory_bytes; /* [memory]: that the plan takes there */
} tm_explanation_request;

struct tm_plan_explanation {
  tm_memory        *memory;
  tm_arena          arena;
  tm_plan_policy    policy;
  uint8_t          *denied;
  tm_graph_problem  problem;            /* labels' costs are those of the questions */
  tm_graph_choice   choice;
  uint32_t          node_count;
  uint32_t          is_current;
  tm_explained_question *questions;     /* [placement] */
  tm_explained_label    *labels;        /* [label] */
  uint32_t              *order;         /* [label]: of each node the chosen one, then by what a plan with it costs */
  tm_explained_place    *nodes;
  tm_plan_copy          *copies;        /* values are the graph's */
  tm_plan_link          *links;
  tm_critical_step      *critical;
  tm_rejected_plan      *rejected;
  tm_requirement_change *changes;
  tm_explained_run      *runs;
  uint64_t *peak_bytes;                 /* [memory] */
  uint64_t *memory_prices;
  uint32_t  copy_count, link_count, critical_count, rejected_count, change_count, run_count;
  uint32_t  forced_is_exact;
  uint64_t  total_ns, sum_ns, node_ns, copy_ns, given_copy_ns, bound_ns, least_sum_ns, planned_ns, plan_run_count;
};

/* Wakes everybody.   As tm_graph_explain and tm_plan_explain */
tm_status tm_graph_explanation_make(const tm_explanation_request *request, tm_plan_explanation **out_explanation, tm_error *error);

/* Where the labels of a node begin, and how many there are. */
static inline const tm_solver_op *tm_explained_op(const tm_plan_explanation *explanation, uint32_t node) {
  return &explanation->problem.solver.ops[node];
}

/* What a run takes there by itself: neither what is paid once nor copies. */
uint64_t tm_explained_run_ns(const tm_explained_label *label);
/* The label with which that is least. */
uint32_t tm_explained_fastest(const tm_plan_explanation *explanation, uint32_t node);

#endif
