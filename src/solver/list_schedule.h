/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_schedule.h - plans made in one sweep: of the operations whose inputs are made, the most urgent one is put where it
 * ends soonest, into a gap if there is one.  HEFT, CPOP and PEFT are this with different urgencies and preferences, and so is
 * finding a good order for labels that are already chosen.  Times are estimates; event_model.h judges what comes out.
 */
#ifndef TM_SOLVER_LIST_SCHEDULE_H
#define TM_SOLVER_LIST_SCHEDULE_H

#include "solver/gap_list.h"
#include "solver/label_groups.h"

typedef struct tm_list_rule {
  const uint64_t *urgency;      /* [op]: the highest goes first, among equals the lower number */
  const uint64_t *viable;       /* [label]: TM_SOLVER_NEVER: not to be chosen */
  const uint64_t *outlook_ns;   /* [label]: added to where it ends when labels are compared; NULL: nothing is */
  const uint32_t *forced;       /* [op]: the label to take, or TM_SOLVER_NONE; NULL: all are free */
} tm_list_rule;

typedef struct tm_list_value {
  uint64_t made_ns;
  uint32_t memory;              /* where it is made */
  uint32_t first_arrival;       /* of its copies, or TM_SOLVER_NONE */
} tm_list_value;

typedef struct tm_list_arrival {
  uint64_t time_ns;
  uint32_t memory;
  uint32_t next;
} tm_list_arrival;

typedef struct tm_list_schedule {
  const tm_problem_index *index;
  uint32_t *labels;             /* what came out: label of each operation */
  uint32_t *order;              /* all operations by their start */

  tm_gap_list resources;
  tm_gap_list links;
  uint64_t *start_ns;           /* [op] */
  uint64_t *end_ns;             /* [op] */
  tm_list_value   *values;      /* [value] */
  tm_list_arrival *arrivals;    /* of copies, a list a value */
  uint32_t  arrival_count;
  uint32_t *missing;            /* [op]: inputs that are not made yet */
  uint32_t *ready;              /* a heap of operations, then room to sort them */
  uint32_t  ready_count;
  uint64_t *pending_end_ns;     /* [link]: copies of the trial that goes on */
  uint64_t *pending_trial;      /* [link]: the trial that pending_end_ns is of */
  uint64_t  trial_count;
} tm_list_schedule;

tm_status tm_list_schedule_init(tm_list_schedule *schedule, const tm_problem_index *index, tm_arena *arena, tm_error *error);

/* false: it came to an operation that cannot be run from where its inputs are. */
bool tm_list_schedule_run(tm_list_schedule *schedule, const tm_list_rule *rule);

#endif
