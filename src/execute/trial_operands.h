/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial_operands.h - operands in memory of the library's own, for a run that may never come back: what it reads and writes
 * then is nobody's but its own, and the caller may go on with what it has.
 */
#ifndef TM_EXECUTE_TRIAL_OPERANDS_H
#define TM_EXECUTE_TRIAL_OPERANDS_H

#include "schedule/candidate.h"

typedef struct tm_trial_operands {
  tm_memory *memory;
  uint32_t   count;
  void      *pointers[TM_MAX_OPERANDS]; /* of the first elements, as for the caller's */
  void      *blocks[TM_MAX_OPERANDS];
  uint64_t   block_bytes[TM_MAX_OPERANDS];
} tm_trial_operands;

/* Copies the inputs, and outputs with gaps, which are between what belongs to others.  False: there is no memory to spare, or
   they are so large that it is better to go without. */
bool tm_trial_operands_init(tm_trial_operands *operands, tm_memory *memory, const tm_plan_candidate *candidate, void *const *pointers);
/* Copies the outputs' elements to where the caller wants them, and nothing beside. */
void tm_trial_operands_collect(const tm_trial_operands *operands, const tm_plan_candidate *candidate, void *const *pointers);
/* Not after a run that may still use them: then they stay. */
void tm_trial_operands_deinit(tm_trial_operands *operands);
/* After a run that was left behind: they stay until the device is done with it. */
void tm_trial_operands_leave(tm_trial_operands *operands, tm_device_slot *device);

#endif
