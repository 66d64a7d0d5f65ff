/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_convert.h - the loop behind kernels that turn a dense run of elements of one format into one of another.  A kernel
 * gives a function for parts of any length; threads, and stores past the caches for large outputs, are the same for all.
 */
#ifndef CPU_CONVERT_H
#define CPU_CONVERT_H

#include "cpu_decode.h"

/* How a run is cut: elements of a unit (never divided), and what a unit takes in memory on both sides. */
typedef struct cpu_convert_shape {
  uint32_t unit_elements;
  uint32_t from_bytes;
  uint32_t to_bytes;
} cpu_convert_shape;

/* Converts `units` units.  With CPU_STORE_STREAMED, `to` is aligned to 16 bytes. */
typedef void (*cpu_convert_fn)(const unsigned char *from, unsigned char *to, uint64_t units, cpu_store_kind kind);

void cpu_convert(const cpu_call *call, cpu_convert_fn function, cpu_convert_shape shape);

/* Nanoseconds for a conversion that one core does at `elements_per_us` where memory does not limit it. */
uint64_t cpu_convert_cost_ns(const tm_operation *operation, double elements_per_us, uint32_t lanes);

#endif
