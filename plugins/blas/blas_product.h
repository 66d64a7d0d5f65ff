/* SPDX-License-Identifier: Apache-2.0 */
/* blas_product.h - a matmul as CBLAS takes it: strides become an order, transposes and leading dimensions. */
#ifndef BLAS_PRODUCT_H
#define BLAS_PRODUCT_H

#include "blas_library.h"

#define BLAS_MAX_BATCH_AXES (TM_MAX_RANK - 2)

/* One factor or the result: what CBLAS wants to know of it, and the bytes between its matrices on each batch axis. */
typedef struct blas_matrix {
  int     leading;
  int     lies_by_rows;
  int64_t batch_strides_bytes[BLAS_MAX_BATCH_AXES];
} blas_matrix;

typedef struct blas_product {
  uint32_t    format;                   /* TM_FORMAT_F32 or TM_FORMAT_F64, of all three */
  int         m;
  int         n;
  int         k;
  uint32_t    batch_rank;
  uint64_t    batch_dims[BLAS_MAX_BATCH_AXES];
  uint64_t    batch_count;
  blas_matrix a;
  blas_matrix b;
  blas_matrix y;
} blas_product;

/* 0 and the product; else why not (TM_REASON_*), with what would help in the answer's changes and the operand it is about. */
uint32_t blas_product_make(const tm_operation *operation, blas_product *out_product, tm_answer *answer);

void blas_product_run(const blas_product *product, const blas_library *library, const void *a, const void *b, void *y);

#endif
