/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_program.h - which parts make a program, and with which constants it is compiled.  A family that computes with real
 * numbers is two programs, one an f32 and one an f64.
 */
#ifndef KERNEL_PROGRAM_H
#define KERNEL_PROGRAM_H

#include "kernel_types.h"

#define KERNEL_PROGRAM_PARTS 8
#define KERNEL_OPTIONS_LENGTH 384

typedef enum kernel_program {
  KERNEL_ELEMENTWISE, KERNEL_ELEMENTWISE_F64, KERNEL_TRANSCENDENTAL, KERNEL_TRANSCENDENTAL_F64, KERNEL_MOVE, KERNEL_CAST,
  KERNEL_REDUCE, KERNEL_REDUCE_F64, KERNEL_STATS, KERNEL_NORMALIZE, KERNEL_NORMALIZE_F64, KERNEL_MATMUL, KERNEL_MATMUL_F64,
  KERNEL_MATMUL_INTEGER, KERNEL_TOKENS, KERNEL_TOKENS_F64, KERNEL_MERGE, KERNEL_PROGRAM_COUNT
} kernel_program;

typedef struct kernel_program_info {
  const char *name;
  u32         real_is_f64;
  u32         product_is_integer;
  const char *parts[KERNEL_PROGRAM_PARTS];      /* names of texts; NULL after the last */
} kernel_program_info;

extern const kernel_program_info kernel_programs[KERNEL_PROGRAM_COUNT];

/* The one case that a program is made for: an operation, its formats, and the kernels that it needs, `count` of them. */
typedef struct kernel_special {
  const kernel_parameters *parameters;
  const char *const       *kernels;
  u32                      count;
} kernel_special;

/* The compiler's -D options.  `special` may be NULL. */
void kernel_options_print(kernel_program program, u32 has_f64, const kernel_special *special, char *out_text);

#endif
