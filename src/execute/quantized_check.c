/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/quantized_check.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

typedef double projection[TM_PROJECTIONS];

static uint64_t row_tiles(const tm_operand *y) { return tm_divide_up(y->dims[y->rank - 2], TM_TILE_LINES); }

static uint64_t batches(const tm_operand *y) {
  uint64_t count = 1;
  for (uint32_t i = 0; i + 2 < y->rank; i++) count *= y->dims[i];
  return count;
}

uint64_t tm_quantized_check_bytes(const tm_operand *y) { return batches(y) * row_tiles(y) * 2 * sizeof(double); }

/* The batch of a factor that a batch of y is made from. */
static uint64_t factor_batch(const tm_operand *y, uint64_t batch, const uint64_t *dims) {
  uint64_t index = 0, step = 1;
  for (uint32_t axis = y->rank - 2; axis-- > 0;) {
    const uint64_t at = batch % y->dims[axis];
    batch /= y->dims[axis];
    if (dims[axis] != 1) index += at * step;
    step *= dims[axis];
  }
  return index;
}

static void add_projected(const double *values, const double *bx, uint64_t count, projection sums) {
  for (uint64_t k = 0; k < count; k++)
    for (uint32_t v = 0; v < TM_PROJECTIONS; v++) sums[v] += values[k] * bx[k * TM_PROJECTIONS + v];
}

/* Rows of A (B x). */
static void project_true(const tm_quantized_product *p, uint64_t batch, uint64_t row, uint64_t rows, projection *out_sums) {
  double values[TM_TILE_LINES * TM_TILE_TERMS];
  const tm_line_view *a = p->a;
  const uint64_t a_batch = factor_batch(p->y, batch, a->dims), b_batch = factor_batch(p->y, batch, p->b->dims);
  const double *bx = &p->b_projection[b_batch * a->term_count * TM_PROJECTIONS];
  memset(out_sums, 0, rows * sizeof *out_sums);
  for (uint64_t term = 0, n; term < a->term_count; term += n) {
    n = tm_min_u64(TM_TILE_TERMS, a->term_count - term);
    tm_line_view_load(a, a_batch, row, rows, term, n, values);
    for (uint64_t i = 0; i < rows; i++) add_projected(&values[i * TM_TILE_TERMS], &bx[term * TM_PROJECTIONS], n, out_sums[i]);
  }
}

/* Rows of Y x; returns the sum of squares of Y. */
static double project_product(const tm_quantized_product *p, uint64_t batch, uint64_t row, uint64_t rows, projection *out_sums) {
  const uint64_t row_count = p->y->dims[p->y->rank - 2], column_count = p->y->dims[p->y->rank - 1];
  const float *a_scales = &p->a_scales[factor_batch(p->y, batch, p->a->dims) * row_count + row];
  const float *b_scales = &p->b_scales[factor_batch(p->y, batch, p->b->dims) * column_count];
  const int32_t *integers = &p->integers[(batch * row_count + row) * column_count];
  double energy = 0;
  memset(out_sums, 0, rows * sizeof *out_sums);
  for (uint64_t j = 0; j < column_count; j++) {
    double signs[TM_PROJECTIONS];
    for (uint32_t v = 0; v < TM_PROJECTIONS; v++) signs[v] = tm_projection_sign(j, v);
    for (uint64_t i = 0; i < rows; i++) {
      const double y = (double)integers[i * column_count + j] * (double)a_scales[i] * (double)b_scales[j];
      energy += y * y;
      for (uint32_t v = 0; v < TM_PROJECTIONS; v++) out_sums[i][v] += y * signs[v];
    }
  }
  return energy;
}

static void check_tiles(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const tm_quantized_product *p = argument;
  const uint64_t tiles = row_tiles(p->y), row_count = p->y->dims[p->y->rank - 2];
  (void)lane;
  for (uint64_t tile = begin; tile < end; tile++) {
    const uint64_t batch = tile / tiles, row = tile % tiles * TM_TILE_LINES, rows = tm_min_u64(TM_TILE_LINES, row_count - row);
    projection expected[TM_TILE_LINES], found[TM_TILE_LINES];
    double error = 0;
    project_true(p, batch, row, rows, expected);
    p->tile_sums[2 * tile + 1] = project_product(p, batch, row, rows, found);
    for (uint64_t i = 0; i < rows; i++)
      for (uint32_t v = 0; v < TM_PROJECTIONS; v++) error += (found[i][v] - expected[i][v]) * (found[i][v] - expected[i][v]);
    p->tile_sums[2 * tile] = error / TM_PROJECTIONS;
  }
}

double tm_quantized_check_error(tm_pool *pool, const tm_quantized_product *product) {
  const uint64_t count = batches(product->y) * row_tiles(product->y);
  tm_quantized_product p = *product;
  tm_pool_run(pool, count, 1, check_tiles, &p);
  double error = 0, energy = 0;
  for (uint64_t i = 0; i < count; i++) {
    error += product->tile_sums[2 * i];
    energy += product->tile_sums[2 * i + 1];
  }
  if (error == 0) return 0;
  return energy == 0 ? (double)INFINITY : error / energy;
}
