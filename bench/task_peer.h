/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_peer.h - a task runtime of somebody else's beside ours: the same number of tiny tasks, given in and waited for.  Built
 * where pkg-config finds one; elsewhere there is none, and whoever prints says so.
 */
#ifndef BENCH_TASK_PEER_H
#define BENCH_TASK_PEER_H

#include <stdint.h>

typedef struct bench_task_peer {
  char   version[32];
  double independent_ns;        /* a task, of tasks that have nothing to do with each other */
  double chained_ns;            /* a task, where each works on what the one before made */
} bench_task_peer;

/* Medians of `rounds` (BENCH_MAX_ROUNDS at most), each of `count` additions of so many f32, by its scheduler with the least to
   do a task.  0: there is none, and `version` says why. */
int bench_task_peer_measure(uint32_t count, uint32_t elements, uint32_t threads, uint32_t rounds, bench_task_peer *out_peer);

#endif
