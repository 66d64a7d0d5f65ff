/* SPDX-License-Identifier: Apache-2.0 */
/* whole_plan.h - all that tm_plan_create does for a graph of layers, on the reference, the built-in cores and two fakes. */
#ifndef BENCH_WHOLE_PLAN_H
#define BENCH_WHOLE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* Of the graph and the devices. */
typedef enum whole_plan_kind {
  WHOLE_PLAN_IN_TURNS,          /* layers one after the other; the fakes work while their callers wait */
  WHOLE_PLAN_AT_ONCE,           /* the same; they work beside each other and the cores, in memories of their own, which is in vain */
  WHOLE_PLAN_SIDE_BY_SIDE,      /* layers of many branches, which are worth spreading over the fakes and the cores */
} whole_plan_kind;

/* Processor time of a plan in ms, the least of the rounds, after a first plan that asked the devices.  False, and said why: it cannot
   be. */
bool bench_whole_plan(uint32_t node_count, whole_plan_kind kind, uint32_t rounds, double *out_ms);

#endif
