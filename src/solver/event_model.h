/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_model.h - the one judge of plans: what happens when, given a label and a place in the order for every operation.
 *
 *   - A resource runs its operations in the given order, each as soon as its turn has come and its inputs are there.
 *   - A value is copied to each memory that needs it once, from where it was made, as soon as it is made.
 *   - A link carries one copy at a time.  Of the copies that wait, the one whose first reader comes first in the order goes
 *     first; those for the end come last.
 *   - A memory whose copies have a resource's queue (tm_solver_problem.copy_queues) gets them in turn with its operations, as
 *     one thread hands them out: what is made there leaves right behind its maker, what is missing comes right before its
 *     first reader, once all is there that the reader needs from elsewhere.
 *
 * Made for judging many plans of one problem: after the first nothing is allocated.  timeline.h is the same for everybody.
 */
#ifndef TM_SOLVER_EVENT_MODEL_H
#define TM_SOLVER_EVENT_MODEL_H

#include "solver/problem_index.h"

/* In order of need: whoever has the lower number goes first. */
typedef struct tm_event_copy {
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t value;
  uint32_t from;
  uint32_t to;
  uint32_t link;                /* TM_SOLVER_NONE: waits for nobody */
  uint32_t before;              /* the copy that the link carried before, or TM_SOLVER_NONE */
  uint32_t next_of_value;
  uint32_t first_waiter;        /* list of edges that wait for it */
  uint32_t heap_near;           /* children among those that wait for the link; `near` has the shorter way to a gap */
  uint32_t heap_far;
  uint32_t heap_distance;
  uint32_t queue;               /* the resource in whose queue it is; TM_SOLVER_NONE: its link carries it */
  uint32_t owner;               /* in a queue: whom it comes right before; TM_SOLVER_NONE: behind its maker, or at the end */
  uint32_t is_gated;            /* it waits until all is there that its owner needs from elsewhere */
} tm_event_copy;

typedef struct tm_event {
  uint64_t time_ns;
  uint64_t number;              /* operation, or op_count + copy */
} tm_event;

typedef struct tm_event_model {
  const tm_problem_index *index;
  const uint32_t *labels;       /* of the run: label of each operation */
  const uint32_t *order;        /* all operations, none before what it reads */

  /* what came out */
  uint64_t  makespan_ns;
  uint64_t  additive_ns;        /* all costs and copies, one after the other */
  uint64_t  copied_bytes;       /* at most UINT64_MAX */
  uint32_t  switch_count;       /* reads of what a label of another rank made */
  uint32_t  copy_count;
  uint64_t *op_start_ns;
  uint64_t *op_end_ns;
  uint32_t *op_before;          /* the operation that had the resource before, or TM_SOLVER_NONE */
  uint32_t *job_before;         /* [operation, or op_count + copy in a queue]: the same of either kind */
  tm_event_copy *copies;

  /* at work */
  uint32_t *job_next;           /* who has the resource next */
  uint32_t *op_missing;         /* inputs that are not there yet */
  uint32_t *edge_op;            /* [edge]: whose it is */
  uint32_t *edge_next;          /* the next one that waits for the same */
  uint32_t *value_first_copy;
  uint32_t *value_first_waiter; /* list of edges that read it where it is made */
  uint32_t *resource_head;
  uint32_t *resource_tail;
  uint64_t *resource_end_ns;    /* without links: of what has been in the queue so far */
  uint32_t  carried_count;      /* copies that links carry */
  uint32_t *link_waiting;       /* root of a heap of copies */
  uint32_t *link_last;
  uint8_t  *link_state;
  uint32_t *links_due;          /* where something happened; due_count of them */
  uint32_t  due_count;
  tm_event *events;             /* a heap */
  uint32_t  event_count;
} tm_event_model;

/* Everything lives in `arena`; `index` must outlive it. */
tm_status tm_event_model_init(tm_event_model *model, const tm_problem_index *index, tm_arena *arena, tm_error *error);

/* Runs a plan; makespan_ns and all else is then in `model`.  The labels must have passed tm_problem_index_check_labels and
   the order must be a possible one; both are only borrowed, until the next run. */
void tm_event_model_run(tm_event_model *model, const uint32_t *labels, const uint32_t *order);

/* The copy of `value` that `memory` waits for, or TM_SOLVER_NONE: it is made there. */
uint32_t tm_event_model_copy(const tm_event_model *model, uint32_t value, uint32_t memory);

#endif
