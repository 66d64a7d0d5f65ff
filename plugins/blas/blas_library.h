/* SPDX-License-Identifier: Apache-2.0 */
/* blas_library.h - a CBLAS that is found when the program runs: what it is, how many threads it uses, its two products. */
#ifndef BLAS_LIBRARY_H
#define BLAS_LIBRARY_H

#include <tensormorph/plugin.h>

/* CBLAS's own numbers, and its products with 32-bit integers. */
#define BLAS_ROW_MAJOR 101
#define BLAS_COLUMN_MAJOR 102
#define BLAS_AS_IS 111
#define BLAS_TRANSPOSED 112
typedef void (*blas_sgemm_fn)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                              int lda, const float *b, int ldb, float beta, float *y, int ldy);
typedef void (*blas_dgemm_fn)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha, const double *a,
                              int lda, const double *b, int ldb, double beta, double *y, int ldy);

typedef struct blas_library {
  blas_sgemm_fn sgemm;
  blas_dgemm_fn dgemm;
  tm_string     name;                   /* lives as long as the library, like the next one */
  tm_string     version;
  uint32_t      thread_count;           /* that it computes with */
  uint32_t      is_known;               /* one of those that are known to be fast */
} blas_library;

#define BLAS_TEXT_BYTES 900u

/* Opens the file `path`, or, if it is empty, the first of the usual ones that is there.  It stays loaded.  thread_count 0:
   lane_count threads where nobody else in the process had the library before, else what it is set to.  On failure `text`
   tells what was tried.   TM_OK, TM_ERROR_NO_DEVICE */
tm_status blas_library_open(const char *path, uint32_t thread_count, uint32_t lane_count, blas_library *out_library,
                            char text[BLAS_TEXT_BYTES]);

#endif
