/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampled_check.h - do devices compute what they promised?  After a run some parts of its result, 64 at most, are computed again by
 * the reference and compared within the class that the device claimed (ops/output_parts.h).
 *
 * It costs what it may, counted in the reference's price: for each kind of work of a device (plugin/trial.h) a small grant, which is
 * there for its first runs, and one hundredth of the time that it worked.  Which parts is a matter of counters, never of time: the first, the
 * last, and one of each stretch between, another one each time until each had its turn.  The library's own code on the host's cores is
 * never checked.  [any thread]
 */
#ifndef TM_EXECUTE_SAMPLED_CHECK_H
#define TM_EXECUTE_SAMPLED_CHECK_H

#include "execute/runner.h"

#define TM_CHECK_MOST_PARTS 64u
#define TM_CHECK_GRANT_NS UINT64_C(100000)
#define TM_CHECK_ONE_IN 100u            /* of the time that a device works */

/* A run that ended well, as far as its device knows. */
typedef struct tm_checked_run {
  tm_plan_candidate  *candidate;
  const tm_operation *operation;        /* normalized; the candidate's own, or what its lowering is of */
  void *const        *pointers;         /* all of it, in host memory */
  uint64_t            taken_ns;
  uint64_t            run_count;        /* runs that it stands for; at least 1 */
} tm_checked_run;

/* Whether there would be anything to be gained from accounting for a run of the candidate at all. */
static inline bool tm_sampled_check_is_for(const tm_plan_candidate *candidate) {
  return candidate->trial != NULL && candidate->device->is_checked;
}

/* Accounts for the run and looks at its result, if that can be afforded.
   TM_ERROR_INTERNAL: it is wrong, and `error` says where, and how many runs before it may be as well: whoever is wrong now and then is
   found right between */
tm_status tm_sampled_check(const tm_runner *runner, const tm_checked_run *run, tm_error *error);

/* The same in three steps, for those who have to fetch first what is to be looked at: what the run took is accounted for; whether a look
   can be afforded on top of fetching, which is set aside then; the look. */
void      tm_sampled_check_account(const tm_checked_run *run);
bool      tm_sampled_check_can_afford(const tm_checked_run *run, uint64_t fetch_ns);
tm_status tm_sampled_check_look(const tm_runner *runner, const tm_checked_run *run, tm_error *error);

/* The same request on less, so that the first look at a kind of work can be afforded although each output needs all inputs; false: there
   is no need, or no way. */
bool tm_sampled_check_cut(const tm_plan_candidate *candidate, const tm_request *request, tm_request *out_tile);

#endif
