/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantized_factor.h - one factor of a product as integers: q = round(x / s) with one scale s = max|x| / 127 for each row of
 * a or column of b ("line": the K elements that are multiplied and summed), and projections of factors onto a few vectors
 * of random signs.
 */
#ifndef TM_EXECUTE_QUANTIZED_FACTOR_H
#define TM_EXECUTE_QUANTIZED_FACTOR_H

#include "base/pool.h"
#include "ops/op_table.h"

#define TM_PROJECTIONS 8u
#define TM_TILE_LINES 16u
#define TM_TILE_TERMS 256u

/* A factor in memory, as lines of K terms, batch after batch; a batch axis along which it repeats counts once. */
typedef struct tm_line_view {
  const tm_operand *operand;            /* its own strides */
  const void       *data;
  uint64_t          dims[TM_MAX_RANK];  /* the operand's, 1 where it repeats */
  uint32_t          k_axis;
  uint32_t          line_axis;
  uint64_t          term_count;
  uint64_t          line_count;         /* of one batch */
  uint64_t          batch_count;
} tm_line_view;

tm_line_view tm_line_view_make(const tm_operand *operand, const uint64_t *dims, bool k_is_last, const void *data);

/* values[line * TM_TILE_TERMS + term] of a tile of one batch; counts at most TM_TILE_LINES and TM_TILE_TERMS. */
void tm_line_view_load(const tm_line_view *view, uint64_t batch, uint64_t line, uint64_t lines, uint64_t term, uint64_t terms,
                       double *out_values);

/* Integers laid out like the factor, dense; one scale a line.  False when a line holds a value that is not finite, or its
   largest is so large or small (beyond 2^100 or its inverse, 0 apart) that scales leave f32's range. */
bool tm_quantized_factor_make(tm_pool *pool, const tm_line_view *view, int8_t *out_integers, float *out_scales);

/* The random sign of a line for projection `index`, +1 or -1; the same in every run. */
double tm_projection_sign(uint64_t line, uint32_t index);
/* Sums over lines: out_sums[(batch * K + term) * TM_PROJECTIONS + index]. */
void tm_projection_of_lines(tm_pool *pool, const tm_line_view *view, double *out_sums);

#endif
