/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - when everything runs, for a given choice of labels and a given order: the rules are event_model.h's.  An
 * order is a permutation of the operations in which each comes after those whose values it reads.
 */
#ifndef TM_SOLVER_TIMELINE_H
#define TM_SOLVER_TIMELINE_H

#include <stdbool.h>

#include "solver/problem.h"
#include "tensormorph/types.h"

typedef struct tm_timeline_copy {
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t value;
  uint32_t from;
  uint32_t to;
  uint32_t link;                /* TM_SOLVER_NONE: it waited for nobody */
} tm_timeline_copy;

typedef struct tm_timeline_step {
  bool     is_copy;
  uint32_t number;              /* operation, or index of `copies` */
} tm_timeline_step;

typedef struct tm_timeline {
  tm_memory *memory;
  uint64_t   makespan_ns;
  uint64_t   additive_ns;       /* the same plan with nothing at the same time; never less than makespan_ns */
  uint64_t   copied_bytes;
  uint64_t  *op_start_ns;       /* [op] */
  uint64_t  *op_end_ns;
  uint64_t  *busy_ns;           /* [resource] */
  uint64_t  *link_bytes;        /* [link] */
  uint64_t  *peak_bytes;        /* [memory]: values from when their room is needed to their last use there, and workspaces */
  tm_timeline_copy *copies;     /* in order of need */
  tm_timeline_step *critical;   /* what nothing may delay: each begins when the one before it ends, the last at makespan_ns */
  uint32_t   switch_count;      /* reads of what a label of another rank made */
  uint32_t   copy_count;
  uint32_t   critical_count;
  uint32_t   op_count;
  uint32_t   resource_count;
  uint32_t   link_count;
  uint32_t   memory_count;
} tm_timeline;

/* `labels`: for each operation a label of its own, its index in problem->labels.  TM_ERROR_ARGUMENT for a problem, labels or
   an order that cannot be.  The timeline keeps nothing of its arguments but `memory`. */
tm_status tm_timeline_simulate(const tm_solver_problem *problem, const uint32_t *labels, const uint32_t *order,
                               tm_memory *memory, tm_timeline *out_timeline, tm_error *error);

/* Accepts one that is all zero. */
void tm_timeline_deinit(tm_timeline *timeline);

#endif
