/* SPDX-License-Identifier: Apache-2.0 */
/*
 * careful_replay.h - nodes of a plan one by one, each as a run of its own from and to host memory: watched where a device has
 * to prove itself, with the next best where one fails.  Nothing is written in place and states change only at the end, so
 * that whatever fails, what it read is still there.
 */
#ifndef TM_EXECUTE_CAREFUL_REPLAY_H
#define TM_EXECUTE_CAREFUL_REPLAY_H

#include "execute/plan.h"

typedef struct tm_careful_value {
  char    *first;               /* address of its first element; NULL: it is not there */
  void    *owned;               /* memory of this replay's; NULL: somebody else's */
  uint64_t owned_bytes;
  uint32_t readers_left;        /* nodes that are to run */
  uint32_t is_kept;             /* needed after the last node */
} tm_careful_value;

typedef struct tm_careful_replay {
  tm_plan          *plan;
  tm_careful_value *values;     /* [graph value]; views have none of their own */
  uint8_t          *must_run;   /* [node] */
  uint32_t          is_held;    /* a run never came back and may still use what it was given: nothing is freed */
} tm_careful_replay;

/* States are in host memory.  All nodes are to run.   TM_ERROR_NO_MEMORY */
tm_status tm_careful_replay_init(tm_careful_replay *replay, tm_plan *plan, tm_error *error);
void      tm_careful_replay_deinit(tm_careful_replay *replay);

/* Memory for a value, owned by the replay.   TM_ERROR_NO_MEMORY */
tm_status tm_careful_replay_own(tm_careful_replay *replay, uint32_t value, tm_error *error);

/* Runs the nodes that must, then fills outputs and states.
   TM_ERROR_NO_DEVICE (everything that was tried), TM_ERROR_NO_MEMORY, TM_ERROR_INTERNAL (hung, and may still use memory) */
tm_status tm_careful_replay_run(tm_careful_replay *replay, tm_plan_outcome *outcome, tm_error *error);

/* What happened to one node's run happened to the whole. */
void tm_plan_outcome_add(tm_plan_outcome *outcome, const tm_run_outcome *run);

/* Elements between two places in host memory, of the same format and dims. */
void tm_plan_move(const tm_operand *from, const char *from_first, const tm_operand *to, char *to_first);

#endif
