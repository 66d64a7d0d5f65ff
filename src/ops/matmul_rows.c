/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile is at most ROWS of a and 4096 values of b: 64 columns by 64 steps of k, or 16 by 256 where b has blocks.  The
 * tile of b is decoded once for ROWS rows.  Tiling never changes a result: every y[m,n] adds its terms in order of k.
 */
#include "ops/matmul_rows.h"

#include <string.h>

#include "base/checked.h"

#define ROWS 16u
#define MOST_STEPS 256u
#define MOST_COLUMNS 64u
#define TILE_VALUES 4096u

typedef struct tile {
  double   a[ROWS][MOST_STEPS];
  double   b[TILE_VALUES];              /* [k][column] */
  double   sums[ROWS][MOST_COLUMNS];
  int64_t  integer_sums[ROWS][MOST_COLUMNS];
  uint64_t row, rows;                   /* first and count, likewise below */
  uint64_t column, columns;
  uint64_t step, steps;
} tile;

/* Entries change only every k_group elements, so each is read once per stretch. */
static void apply_scale(const tm_factor_scale *scale, uint64_t outer, uint64_t k, uint64_t count, double *values) {
  const int64_t row = (int64_t)(outer / scale->outer_group);
  for (uint64_t i = 0; i < count;) {
    const int64_t entry = (int64_t)((k + i) / scale->k_group);
    const uint64_t end = tm_min_u64(count, ((uint64_t)entry + 1) * scale->k_group - k);
    float factor;
    int32_t zero = 0;
    memcpy(&factor, scale->scale + row * scale->scale_steps_bytes[0] + entry * scale->scale_steps_bytes[1],
           sizeof factor);
    if (scale->zero != NULL)
      memcpy(&zero, scale->zero + row * scale->zero_steps_bytes[0] + entry * scale->zero_steps_bytes[1], sizeof zero);
    for (; i < end; i++) values[i] = (values[i] - (double)zero) * (double)factor;
  }
}

static void load_factor(const tm_factor *factor, uint64_t outer, uint64_t k, uint64_t count, double *out_values) {
  const int64_t block = (int64_t)(k / factor->along_k.block_elements);
  const char *address =
      factor->address + (int64_t)outer * factor->along_outer.step_bytes + block * factor->along_k.step_bytes;
  tm_stream_load(&factor->along_k, address, count, out_values);
  if (factor->scale.scale != NULL) apply_scale(&factor->scale, outer, k, count, out_values);
}

/* Where b's columns lie side by side, reading across them uses whole cache lines, and they are in the tile's order. */
static bool reads_across(const tm_factor *b) {
  return b->scale.scale == NULL && b->along_outer.step_bytes == (int64_t)b->along_outer.block_bytes &&
         b->along_outer.block_elements == 1;
}

static void load_across(const tm_factor *b, tile *t) {
  for (uint64_t k = 0; k < t->steps; k++) {
    const char *address = b->address + (int64_t)(t->step + k) * b->along_k.step_bytes +
                          (int64_t)t->column * b->along_outer.step_bytes;
    tm_stream_load(&b->along_outer, address, t->columns, t->b + k * t->columns);
  }
}

static void load_tile(const tm_matrix_product *product, tile *t) {
  double values[MOST_STEPS];
  for (uint64_t row = 0; row < t->rows; row++) load_factor(&product->a, t->row + row, t->step, t->steps, t->a[row]);
  if (reads_across(&product->b)) {
    load_across(&product->b, t);
    return;
  }
  for (uint64_t column = 0; column < t->columns; column++) {
    load_factor(&product->b, t->column + column, t->step, t->steps, values);
    for (uint64_t k = 0; k < t->steps; k++) t->b[k * t->columns + column] = values[k];
  }
}

/* Four steps of k a pass keep the sum in a register in between; the order of additions stays that of k. */
static void multiply_tile(tile *t) {
  const uint64_t columns = t->columns;
  for (uint64_t row = 0; row < t->rows; row++) {
    const double *a = t->a[row];
    double *sums = t->sums[row];
    uint64_t k = 0;
    for (; k + 4 <= t->steps; k += 4) {
      const double *b = t->b + k * columns;
      for (uint64_t n = 0; n < columns; n++) {
        double sum = sums[n] + a[k] * b[n];
        sum += a[k + 1] * b[columns + n];
        sum += a[k + 2] * b[2 * columns + n];
        sums[n] = sum + a[k + 3] * b[3 * columns + n];
      }
    }
    for (; k < t->steps; k++)
      for (uint64_t n = 0; n < columns; n++) sums[n] += a[k] * t->b[k * columns + n];
  }
}

/* Products of bytes over one tile are exact in f64; the sum over all tiles wraps like the integer it stands for. */
static void flush_integers(tile *t) {
  for (uint64_t row = 0; row < t->rows; row++)
    for (uint64_t n = 0; n < t->columns; n++)
      t->integer_sums[row][n] = (int64_t)((uint64_t)t->integer_sums[row][n] + (uint64_t)(int64_t)t->sums[row][n]);
  memset(t->sums, 0, sizeof t->sums);
}

static void store_tile(const tm_matrix_product *product, const tile *t) {
  for (uint64_t row = 0; row < t->rows; row++) {
    char *address = product->y_address + (int64_t)(t->row + row) * product->y_row_step_bytes +
                    (int64_t)t->column * product->y.step_bytes;
    if (product->is_integer) tm_stream_store_integer(&product->y, t->integer_sums[row], t->columns, address);
    else tm_stream_store(&product->y, t->sums[row], t->columns, address);
  }
}

static void compute_tile(const tm_matrix_product *product, tile *t, uint64_t most_steps) {
  memset(t->sums, 0, sizeof t->sums);
  memset(t->integer_sums, 0, sizeof t->integer_sums);
  for (t->step = 0; t->step < product->inner_count; t->step += t->steps) {
    t->steps = tm_min_u64(most_steps, product->inner_count - t->step);
    load_tile(product, t);
    multiply_tile(t);
    if (product->is_integer) flush_integers(t);
  }
  store_tile(product, t);
}

void tm_matmul_rows(const tm_matrix_product *product, uint64_t begin, uint64_t end) {
  const bool has_blocks = product->a.along_k.block_elements > 1 || product->b.along_k.block_elements > 1;
  const uint64_t most_steps = has_blocks ? MOST_STEPS : TILE_VALUES / MOST_COLUMNS;
  const uint64_t most_columns = TILE_VALUES / most_steps;
  tile t;
  for (t.row = begin; t.row < end; t.row += t.rows) {
    t.rows = tm_min_u64(ROWS, end - t.row);
    for (t.column = 0; t.column < product->column_count; t.column += t.columns) {
      t.columns = tm_min_u64(most_columns, product->column_count - t.column);
      compute_tile(product, &t, most_steps);
    }
  }
}
