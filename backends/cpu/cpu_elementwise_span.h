/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_elementwise_span.h - walks an elementwise operation over its operands, so that a kernel only ever sees short
 * dense runs.  Broadcast and outer strides of any kind are dealt with here, once for all operations and formats.
 */
#ifndef CPU_ELEMENTWISE_SPAN_H
#define CPU_ELEMENTWISE_SPAN_H

#include "cpu_kernel.h"

#define CPU_SPAN_INPUTS   3
#define CPU_SPAN_ELEMENTS 512   /* of a run at most: three expanded f64 inputs leave half of a 32 KiB cache free */

/* Computes `count` <= CPU_SPAN_ELEMENTS elements; all runs are dense, at any address that suits the format. */
typedef void (*cpu_span_fn)(const void *attributes, const void *const *inputs, void *output, uint64_t count);

typedef struct cpu_span {
  cpu_span_fn compute;
  uint32_t    input_count;
  uint32_t    element_bytes[CPU_SPAN_INPUTS + 1];       /* of the inputs, then the output at [input_count] */
  uint32_t    picoseconds;                              /* an element, with everything in the first-level cache */
} cpu_span;

/* Along the last axis every operand is dense or (inputs only) repeats one element; outer axes are free. */
uint32_t cpu_span_refuses(const cpu_span *span, const tm_operation *operation, uint32_t *out_operand);

uint64_t cpu_span_cost_ns(const cpu_span *span, const tm_operation *operation, uint32_t lanes);

void cpu_span_run(const cpu_span *span, const cpu_call *call);

/* The three functions that the row of `span_<name>` needs. */
#define CPU_SPAN_ROW_FUNCTIONS(NAME)                                                                                  \
  static uint32_t refuses_##NAME(const tm_operation *operation, uint32_t *out_operand) {                              \
    return cpu_span_refuses(&span_##NAME, operation, out_operand);                                                    \
  }                                                                                                                   \
  static uint64_t cost_##NAME(const tm_operation *operation, uint32_t lanes) {                                        \
    return cpu_span_cost_ns(&span_##NAME, operation, lanes);                                                          \
  }                                                                                                                   \
  static void run_##NAME(const cpu_call *call) { cpu_span_run(&span_##NAME, call); }

#endif
