/* SPDX-License-Identifier: Apache-2.0 */
/* whole_plan.h - all that tm_plan_create does for a graph of layers, on the reference, the built-in cores and two fakes. */
#ifndef BENCH_WHOLE_PLAN_H
#define BENCH_WHOLE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* Processor time of a plan in ms, the least of the rounds, after a first plan that asked the devices.  With `is_asynchronous` the
   fakes work beside each other and the cores, in memories of their own.  False, and said why: it cannot be. */
bool bench_whole_plan(uint32_t node_count, bool is_asynchronous, uint32_t rounds, double *out_ms);

#endif
