/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_kernel.h - one kernel, declared once: what it takes, how exactly, at what cost, and the function.  query, prepare
 * and launch read the same row, so what is claimed is what is run.
 */
#ifndef CPU_KERNEL_H
#define CPU_KERNEL_H

#include <stdint.h>

#include "kernel_judge.h"

#define CPU_ISA_AVX2   0x1u     /* AVX2 + FMA + F16C */
#define CPU_ISA_AVX512 0x2u     /* AVX-512 F, BW, DQ and VL, beside the above */

/* In front of every function that uses the instruction set; the rest of the backend is compiled for any machine. */
#define CPU_AVX2   __attribute__((target("avx2,fma,f16c")))
#define CPU_AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")))

#define CPU_WORKSPACE_ALIGNMENT 64u

/* Everything a kernel may know at run time. */
typedef struct cpu_call {
  const tm_operation *operation;        /* operands and attributes, owned by the prepared kernel */
  const tm_host      *host;             /* for parallel_for */
  void *const        *pointers;         /* operand addresses in order; aligned to operand.alignment only, which may be 1 */
  void               *workspace;        /* NULL if the row asks for none; else aligned to CPU_WORKSPACE_ALIGNMENT */
} cpu_call;

/* Named cpu_add_f32__avx2. */
typedef struct cpu_row {
  KERNEL_CLAIM;
  uint32_t isa;                         /* CPU_ISA_* that must all be there */
  /* 0 when this row can run the operation (formats have matched); else TM_REASON_* bits and the operand they are about.
     NULL: every operand must be contiguous, nothing else. */
  uint32_t (*refuses)(const tm_operation *operation, uint32_t *out_operand);
  /* Nanoseconds with `lanes` threads, without the launch; a formula. */
  uint64_t (*cost_ns)(const tm_operation *operation, uint32_t lanes);
  uint64_t (*workspace_bytes)(const tm_operation *operation, uint32_t lanes); /* NULL: none */
  void (*run)(const cpu_call *call);
} cpu_row;

/* All tables of cpu_row, ended by NULL (cpu_rows.c). */
extern const kernel_row_table *const cpu_row_tables[];

/* What calling the backend costs, whatever the size (CPU_LAUNCH_NS + the row's formula). */
#define CPU_LAUNCH_NS 30u
/* What waking the host's threads costs: part of the formula of a row that wakes them. */
#define CPU_WAKE_NS 4000u

/* The usual body of cost_ns: `units` of work at `units_per_us` a lane, and `bytes` of memory traffic at the machine's rate;
   the slower of the two.  Constants are those of a typical server core; the host corrects what it measures. */
uint64_t cpu_cost_ns(double units, double units_per_us, double bytes, uint32_t lanes);

#endif
