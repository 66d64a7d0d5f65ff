/* SPDX-License-Identifier: Apache-2.0 */
/* lowered_run.h - carries out the programs of schedule/lowering.h: intermediates lie in scratch memory, steps are requests
   of their own and run wherever they are cheapest. */
#ifndef TM_EXECUTE_LOWERED_RUN_H
#define TM_EXECUTE_LOWERED_RUN_H

#include "execute/kernel_run.h"

/* One run of a lowered candidate. */
typedef struct tm_lowered_run {
  const tm_runner   *runner;
  const tm_request  *whole;             /* with normalized operands */
  tm_plan_candidate *candidate;
  tm_kernel         *kernel;            /* of TM_LOWERING_CHANGED without inner */
  void *const       *pointers;
  const uint64_t    *origins;           /* one an operand */
  tm_run_outcome    *outcome;           /* may be NULL; what happened to a step happened to the whole */
  tm_kernel_run     *measured;          /* filled where a kernel ran */
  tm_error          *error;
} tm_lowered_run;

/* TM_ERROR_PREDECESSOR: a step failed, which is not the candidate's fault; TM_ERROR_NO_MEMORY; of the kernel: as it says */
tm_status tm_lowered_run_changed(const tm_lowered_run *run);
tm_status tm_lowered_run_split(const tm_lowered_run *run);
tm_status tm_lowered_run_quantized(const tm_lowered_run *run);

/* What never came back may still use scratch memory and kept copies: they stay as they are. */
static inline bool tm_lowered_run_is_held(const tm_lowered_run *run) { return atomic_load(&run->candidate->holds_operands); }

/* Runs a step; `origins` may be NULL. */
tm_status tm_lowered_run_step(const tm_lowered_run *run, const tm_request *request, void *const *pointers, const uint64_t *origins);

/* An operand that goes its way (an input of TM_LOWERING_CHANGED that is kept): the copy, made now or earlier, pinned. */
tm_status tm_lowered_run_keep(const tm_lowered_run *run, const tm_operand_way *way, tm_kept **out_kept);

/* Moves an input's elements to `dense`, padding included. */
tm_status tm_lowered_run_move_in(const tm_lowered_run *run, const tm_operand_way *way, void *from, void *dense);

#endif
