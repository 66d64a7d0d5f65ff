/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residency.h - how full each memory gets in the course of a plan.  A value takes room from when it begins to be made or
 * copied to the end of what uses it last there; where it is from the start, and where it is wanted, to the end of all; where it
 * is lent none.  What ends makes room for what begins at the same moment.
 */
#ifndef TM_SOLVER_RESIDENCY_H
#define TM_SOLVER_RESIDENCY_H

#include "solver/event_model.h"

typedef struct tm_residency_change {
  uint64_t time_ns;
  uint64_t bytes;
  uint32_t memory;
  uint32_t kind;                /* at one time in this order: room is given back, taken, given back at once */
} tm_residency_change;

typedef struct tm_residency {
  tm_residency_change *changes;
  uint64_t  change_count;
  uint64_t *peak_bytes;         /* [memory] */
  uint64_t *used_bytes;
  uint64_t *copy_until_ns;      /* [copy]: its last use */
} tm_residency;

tm_status tm_residency_init(tm_residency *residency, const tm_problem_index *index, tm_arena *arena, tm_error *error);

/* Fills peak_bytes from the model's last run.  A memory through which more than UINT64_MAX bytes go in all has that peak. */
void tm_residency_measure(tm_residency *residency, const tm_event_model *model);

#endif
