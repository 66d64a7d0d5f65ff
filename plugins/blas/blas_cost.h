/* SPDX-License-Identifier: Apache-2.0 */
/* blas_cost.h - the declared time of a product: from threads and a rate a thread, which the host corrects by measuring. */
#ifndef BLAS_COST_H
#define BLAS_COST_H

#include "blas_product.h"

typedef struct blas_rates {
  uint32_t thread_count;
  double   flops_per_ns;                /* f32, of one thread */
} blas_rates;

/* gflops 0: what such a library usually reaches on this processor. */
blas_rates blas_rates_make(const blas_library *library, uint32_t gflops);

void blas_cost_fill(const blas_rates *rates, const blas_product *product, tm_answer *answer);

#endif
