/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_kernel.h - one kernel, declared once: what it takes, how exactly, at what cost, and the function.  query, prepare
 * and launch read the same row, so what is claimed is what is run.
 */
#ifndef CPU_KERNEL_H
#define CPU_KERNEL_H

#include <stdint.h>

#include "tensormorph/plugin.h"

#define CPU_ISA_AVX2 0x1u       /* AVX2 + FMA + F16C */

/* Everything a kernel may know at run time. */
typedef struct cpu_call {
  const tm_operation *operation;        /* operands and attributes, owned by the prepared kernel */
  const tm_host      *host;             /* for parallel_for */
  void *const        *pointers;         /* operand addresses in order */
  void               *workspace;        /* NULL if the row asks for none */
} cpu_call;

typedef struct cpu_row {
  uint32_t    op;
  uint32_t    formats[4];               /* of the leading operands, in order; TM_FORMAT_NONE ends the list or matches any */
  uint32_t    isa;                      /* CPU_ISA_* that must all be there */
  uint32_t    level;
  uint32_t    numerics;
  uint32_t    numerics_flags;
  double      numerics_bound;
  uint32_t    growth;
  uint32_t    accumulator;
  const char *name;                     /* for people and for tests: cpu_add_f32__avx2 */
  /* 0 when this row can run the operation (formats have matched); else TM_REASON_* bits.  NULL: needs TM_OPERATION_ALL_CONTIGUOUS only. */
  uint32_t (*refuses)(const tm_operation *operation, uint32_t *out_operand);
  /* Nanoseconds with `lanes` threads; a formula. */
  uint64_t (*cost_ns)(const tm_operation *operation, uint32_t lanes);
  uint64_t (*workspace_bytes)(const tm_operation *operation, uint32_t lanes); /* NULL: none */
  void (*run)(const cpu_call *call);
} cpu_row;

typedef struct cpu_row_table {
  const cpu_row *rows;
  uint32_t       count;
} cpu_row_table;

#endif
