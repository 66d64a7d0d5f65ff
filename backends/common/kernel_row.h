/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_row.h - what the shared kernels can do on a device, one row each: operation, formats, what the device must have,
 * how exactly, which program and kernels.  query, prepare and launch read the same row.
 */
#ifndef KERNEL_ROW_H
#define KERNEL_ROW_H

#include "kernel_judge.h"
#include "kernel_plan.h"
#include "kernel_program.h"

/* What answers depend on.  Constant within an epoch. */
typedef struct kernel_device {
  u32    has_f64;
  u32    has_denormals;         /* f32 arithmetic keeps subnormal numbers */
  u32    has_exact_divide;      /* f32 division and square root are correctly rounded */
  u32    broken_programs;       /* bit kernel_program: the device's compiler refused it */
  u64    largest_buffer_bytes;
  u64    epoch;
  u32    launch_ns;
  u32    setup_ns;              /* of a program: compilation */
  u32    specializes;           /* a program is compiled for each operation and its formats; see kernel_row_is_special */
  u32    reserved;
  double flops_per_ns;          /* f32 */
  double f64_flops_per_ns;
  double bytes_per_ns;
} kernel_device;

#define KERNEL_NEEDS_F64      0x1u
#define KERNEL_NEEDS_DENORMALS 0x2u
#define KERNEL_ROUNDS_IN_F32  0x4u      /* without subnormals it is N1 and flushes */
#define KERNEL_DIVIDES_IN_F32 0x8u      /* without exact division it is N1 with inexact_bound */
#define KERNEL_MAY_OVERFLOW   0x10u     /* a partial sum may overflow, or its rounding may meet an infinity: non-finite
                                           results may differ from the reference's */

typedef struct kernel_row {
  KERNEL_CLAIM;
  kernel_program program;
  u32            needs;
  double         inexact_bound;
  const char    *kernels[KERNEL_MOST_DISPATCHES];
  kernel_plan_fn plan;
} kernel_row;

/* All tables of kernel_row, ended by NULL. */
extern const kernel_row_table *const kernel_row_tables[];

/* Whether the device compiles the row's program for one case alone.  What only moves bytes gains nothing by it. */
static inline int kernel_row_is_special(const kernel_device *device, const kernel_row *row) {
  return device->specializes != 0 && row->program != KERNEL_MOVE;
}

/* The row that runs the operation on the device, and its plan; NULL if none does. */
const kernel_row *kernel_row_find(const kernel_device *device, const tm_operation *operation, kernel_plan *out_plan);

/* Answers one question; writes as much of the answer as the caller knows. */
void kernel_query_answer(const kernel_device *device, const tm_operation *operation, tm_answer *out_answer);

#endif
