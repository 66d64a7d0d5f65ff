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

/* In front of every function that uses the instruction set; the rest of the backend is compiled for any machine. */
#define CPU_AVX2 __attribute__((target("avx2,fma,f16c")))

#define CPU_ROW_FORMATS 8
#define CPU_WORKSPACE_ALIGNMENT 64u

/* Everything a kernel may know at run time. */
typedef struct cpu_call {
  const tm_operation *operation;        /* operands and attributes, owned by the prepared kernel */
  const tm_host      *host;             /* for parallel_for */
  void *const        *pointers;         /* operand addresses in order; aligned to operand.alignment only, which may be 1 */
  void               *workspace;        /* NULL if the row asks for none; else aligned to CPU_WORKSPACE_ALIGNMENT */
} cpu_call;

/* Rows of one operation are tried in the order of their table, so the faster, narrower one stands first. */
typedef struct cpu_row {
  uint32_t    op;
  uint32_t    formats[CPU_ROW_FORMATS]; /* of the operands, in order; TM_FORMAT_NONE matches any */
  uint32_t    attribute_bytes;          /* size of the attributes struct that the kernel reads; bytes beyond must be zero */
  uint32_t    isa;                      /* CPU_ISA_* that must all be there */
  uint32_t    level;
  uint32_t    numerics;
  uint32_t    numerics_flags;
  uint32_t    growth;
  uint32_t    accumulator;
  uint32_t    castable;                 /* 1: a refusal for formats proposes casts to this row's formats */
  double      numerics_bound;
  uint64_t    alias_mask;               /* as in tm_answer */
  const char *name;                     /* for people and for tests: cpu_add_f32__avx2 */
  /* 0 when this row can run the operation (formats have matched); else TM_REASON_* bits and the operand they are about.
     NULL: every operand must be contiguous, nothing else. */
  uint32_t (*refuses)(const tm_operation *operation, uint32_t *out_operand);
  /* Nanoseconds with `lanes` threads, without the launch; a formula. */
  uint64_t (*cost_ns)(const tm_operation *operation, uint32_t lanes);
  uint64_t (*workspace_bytes)(const tm_operation *operation, uint32_t lanes); /* NULL: none */
  void (*run)(const cpu_call *call);
} cpu_row;

typedef struct cpu_row_table {
  const cpu_row *rows;
  uint32_t       count;
} cpu_row_table;

/* All tables, ended by NULL (cpu_rows.c). */
extern const cpu_row_table *const cpu_row_tables[];

/* What calling the backend costs, whatever the size (CPU_LAUNCH_NS + the row's formula). */
#define CPU_LAUNCH_NS 30u
/* What waking the host's threads costs: part of the formula of a row that wakes them. */
#define CPU_WAKE_NS 4000u

/* The usual body of cost_ns: `units` of work at `units_per_us` a lane, and `bytes` of memory traffic at the machine's rate;
   the slower of the two.  Constants are those of a typical server core; the host corrects what it measures. */
uint64_t cpu_cost_ns(double units, double units_per_us, double bytes, uint32_t lanes);

/* The usual body of `refuses`: TM_REASON_LAYOUT and the first operand that is not contiguous, or 0. */
uint32_t cpu_refuses_strided(const tm_operation *operation, uint32_t *out_operand);

/* Bytes of all operands together, each once. */
double cpu_operand_bytes(const tm_operation *operation);

#endif
