/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - a graph of tiny additions, each of what the one before made, and a plan of it. */
#ifndef BENCH_CHAIN_H
#define BENCH_CHAIN_H

#include <stdbool.h>

#include "execute/plan.h"

typedef struct bench_chain {
  tm_context *context;          /* the caller's */
  uint32_t    node_count;       /* so many are wanted */
  tm_graph   *graph;
  tm_plan    *plan;
  tm_tensor  *x;
  tm_tensor  *y;
  uint64_t    planned_ns;       /* that planning took */
} bench_chain;

/* Where context and node_count are given.  False, and said why: it cannot be. */
bool bench_chain_open(bench_chain *chain, uint64_t elements, const tm_plan_options *options);
void bench_chain_close(bench_chain *chain);

bool bench_chain_run(const bench_chain *chain);

#endif
