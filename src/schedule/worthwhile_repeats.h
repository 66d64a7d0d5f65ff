/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worthwhile_repeats.h - how often a request must run for a candidate to be the one: what is paid once is spread over the runs, so
 * that one which is faster gets it from so many runs on, and one with less to pay until then.
 */
#ifndef TM_SCHEDULE_WORTHWHILE_REPEATS_H
#define TM_SCHEDULE_WORTHWHILE_REPEATS_H

#include "schedule/candidate.h"

#define TM_MOST_REPEATS UINT32_MAX      /* that can be declared */

/* From so many declared runs to so many; TM_MOST_REPEATS: any number from there on; both 0: none. */
typedef struct tm_repeat_range {
  uint32_t from;
  uint32_t to;
} tm_repeat_range;

/* Of all those that can run. */
tm_repeat_range tm_worthwhile_repeats(const tm_plan_candidate *candidates, uint32_t count, const tm_plan_candidate *one);

#endif
