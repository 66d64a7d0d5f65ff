/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_rows.h - rows of one matrix product, y[m,n] = sum over k ascending of a[m,k] * b[n,k], summed in f64 and
 * rounded once.  The axes of both factors may lie in memory as they like; they are read through tiles on the stack.
 */
#ifndef TM_OPS_MATMUL_ROWS_H
#define TM_OPS_MATMUL_ROWS_H

#include "ops/element_stream.h"

/* Scales (f32) and zero points (i32) of a factor: entry (outer / outer_group, k / k_group). */
typedef struct tm_factor_scale {
  const char *scale;                    /* NULL: none */
  const char *zero;                     /* NULL: none */
  uint64_t    outer_group;
  uint64_t    k_group;
  int64_t     scale_steps_bytes[2];     /* between entries: outer, k */
  int64_t     zero_steps_bytes[2];
} tm_factor_scale;

typedef struct tm_factor {
  tm_element_stream along_k;
  const char       *address;
  tm_element_stream along_outer;        /* the rows of a, the columns of b */
  tm_factor_scale   scale;
} tm_factor;

typedef struct tm_matrix_product {
  tm_factor         a;
  tm_factor         b;
  uint64_t          inner_count;        /* K */
  uint64_t          column_count;       /* N */
  tm_element_stream y;                  /* along a row */
  char             *y_address;
  int64_t           y_row_step_bytes;
  bool              is_integer;         /* exact sums that wrap in y's format, instead of f64 */
} tm_matrix_product;

/* Computes rows [begin, end). */
void tm_matmul_rows(const tm_matrix_product *product, uint64_t begin, uint64_t end);

#endif
