/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_run.h - one run of a candidate's own kernel, measured now and then, and what is learned from it. */
#ifndef TM_EXECUTE_KERNEL_RUN_H
#define TM_EXECUTE_KERNEL_RUN_H

#include "execute/launcher.h"
#include "execute/runner.h"

typedef struct tm_kernel_run {
  uint64_t run_count;           /* runs that this one stands for; 0: nothing is to be learned from it but set-ups */
  bool     is_first;            /* of its candidate */
  bool     is_early;            /* it had more to do than later ones will: only if it was faster than expected is that news */
  uint64_t taken_ns;            /* copies included */
  tm_copy_times copies;
} tm_kernel_run;

/* residents may be NULL (launcher.h).  is_timed: taken_ns is wanted in any case. */
tm_status tm_kernel_run_once(const tm_runner *runner, tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers,
                             const tm_resident *residents, bool is_timed, tm_kernel_run *out_run, tm_error *error);
void tm_kernel_run_learn(const tm_runner *runner, tm_placement *placement, tm_plan_candidate *candidate, const tm_kernel_run *run);

#endif
