/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_memory_cost.h - the time to move bytes between the caches and a core, for cost formulas.  Rates are those of a
 * usual server core: second-level cache of 1 MiB a core, 16 MiB of the third level to itself, and a memory that one
 * core cannot saturate but three can.
 */
#ifndef CPU_MEMORY_COST_H
#define CPU_MEMORY_COST_H

#include <stdint.h>

#define CPU_NEAR_BYTES        1048576.0
#define CPU_NEAR_BYTES_PER_NS 60.0
#define CPU_FAR_BYTES         16777216.0
#define CPU_FAR_BYTES_PER_NS  45.0
#define CPU_MEMORY_BYTES_PER_NS 16.0

/* `lanes` threads, each with its part of `bytes`, which are in the nearest place that holds them all. */
static inline double cpu_move_ns(double bytes, double lanes) {
  if (bytes <= CPU_NEAR_BYTES * lanes) return bytes / (CPU_NEAR_BYTES_PER_NS * lanes);
  const double shared = lanes < 3.0 ? 0.3 + 0.7 * lanes : 2.4;
  const double far = bytes < CPU_FAR_BYTES ? bytes : CPU_FAR_BYTES;
  return (far / CPU_FAR_BYTES_PER_NS + (bytes - far) / CPU_MEMORY_BYTES_PER_NS) / shared;
}

/* Formulas are of f64, and work may be beyond all that a cost can say. */
static inline uint64_t cpu_whole_ns(double ns) { return ns < 9e18 ? (uint64_t)ns : UINT64_C(9000000000000000000); }

#endif
