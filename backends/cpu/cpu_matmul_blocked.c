/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_matmul.h"

#include <string.h>

#define PANEL_FLOATS (MATMUL_DEPTH * MATMUL_TILE_COLUMNS)

/* Multiplications below which waking other threads costs more than it brings. */
#define SERIAL_PRODUCTS 200000u

#define PRODUCT_NS  0.022
#define PACK_ROW_NS 0.3

/* What one lane, or all of them, work on: one block of a against all of b. */
typedef struct block {
  const cpu_matmul_format  *a_format, *b_format;
  const cpu_matmul_problem *problem;
  const cpu_call           *call;
  const char *a, *b;
  char       *y;
  float      *packed;                   /* the block of a: panels of 6 rows */
  uint64_t    row, rows;
  uint64_t    k, depth;
  uint64_t    row_groups;               /* into which the sweep over a is cut when b has too few panels for all lanes */
} block;

static uint64_t divide_up(uint64_t value, uint64_t by) { return value / by + (value % by != 0); }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Parts of nearly equal size, each at most `largest` and a multiple of `granule`. */
static uint64_t even_part(uint64_t total, uint64_t largest, uint64_t granule) {
  const uint64_t parts = divide_up(total, largest);
  return parts == 0 ? granule : divide_up(divide_up(total, parts), granule) * granule;
}

static uint64_t depth_of(uint64_t k) { return even_part(k, MATMUL_DEPTH, 32); }
static uint64_t rows_of(uint64_t m) { return even_part(m, MATMUL_ROWS, MATMUL_TILE_ROWS); }

static void pack_rows(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const block *w = argument;
  const cpu_matmul_problem *p = w->problem;
  (void)lane;
  for (uint64_t panel = begin; panel < end; panel++) {
    const uint64_t first = panel * MATMUL_TILE_ROWS;
    const cpu_matrix lines = { w->a + (int64_t)(w->row + first) * p->a_line_bytes + (int64_t)w->k * p->a_k_bytes,
                               p->a_line_bytes, p->a_k_bytes };
    w->a_format->pack(&lines, least(w->rows - first, MATMUL_TILE_ROWS), w->depth, w->packed + first * w->depth,
                      MATMUL_TILE_ROWS, MATMUL_TILE_ROWS);
  }
}

static void pack_columns(const block *w, uint64_t column, uint64_t columns, float *panel) {
  const cpu_matmul_problem *p = w->problem;
  const int64_t along_k = w->b_format->block_elements == 1
                            ? (int64_t)w->k * p->b_k_bytes
                            : (int64_t)(w->k / w->b_format->block_elements * w->b_format->block_bytes);
  for (uint64_t half = 0; half < MATMUL_TILE_COLUMNS; half += 8) {
    const uint64_t lines = columns > half ? least(columns - half, 8) : 0;
    const cpu_matrix matrix = { w->b + (int64_t)(column + half) * p->b_line_bytes + along_k, p->b_line_bytes, p->b_k_bytes };
    w->b_format->pack(&matrix, lines, w->depth, panel + half, MATMUL_TILE_COLUMNS, 8);
  }
}

/* A tile that hangs over the edge of y is computed whole beside it, and only what exists is kept. */
static void edge_tile(const float *a, const float *panel, const block *w, float *y, uint64_t rows, uint64_t columns) {
  float whole[MATMUL_TILE_ROWS * MATMUL_TILE_COLUMNS];
  cpu_matmul_tile(a, panel, w->depth, whole, MATMUL_TILE_COLUMNS * sizeof(float), 0);
  for (uint64_t i = 0; i < rows; i++) {
    char *to = (char *)y + (int64_t)i * w->problem->y_row_bytes;
    for (uint64_t j = 0; j < columns; j++) {
      float sum = 0.0f;
      if (w->k > 0) memcpy(&sum, to + j * sizeof(float), sizeof(float));
      sum = w->k > 0 ? sum + whole[i * MATMUL_TILE_COLUMNS + j] : whole[i * MATMUL_TILE_COLUMNS + j];
      memcpy(to + j * sizeof(float), &sum, sizeof(float));
    }
  }
}

/* Sweeps the row panels [begin, end) with one panel of columns. */
static void sweep(const block *w, const float *panel, uint64_t column, uint64_t columns, uint64_t begin, uint64_t end) {
  const int64_t step = w->problem->y_row_bytes;
  for (uint64_t i = begin; i < end; i++) {
    const uint64_t first = i * MATMUL_TILE_ROWS;
    const uint64_t rows = least(w->rows - first, MATMUL_TILE_ROWS);
    const float *a = w->packed + first * w->depth;
    float *y = (float *)(void *)(w->y + (int64_t)(w->row + first) * step + (int64_t)(column * sizeof(float)));
    if (rows == MATMUL_TILE_ROWS && columns == MATMUL_TILE_COLUMNS)
      cpu_matmul_tile(a, panel, w->depth, y, step, w->k > 0);
    else
      edge_tile(a, panel, w, y, rows, columns);
  }
}

static void multiply(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const block *w = argument;
  _Alignas(64) float panel[PANEL_FLOATS];
  const uint64_t row_panels = divide_up(w->rows, MATMUL_TILE_ROWS);
  uint64_t packed = UINT64_MAX;
  (void)lane;
  for (uint64_t i = begin; i < end; i++) {
    const uint64_t column = i / w->row_groups * MATMUL_TILE_COLUMNS;
    const uint64_t columns = least(w->problem->n - column, MATMUL_TILE_COLUMNS);
    const uint64_t group = i % w->row_groups;
    if (packed != column) pack_columns(w, column, columns, panel);
    packed = column;
    sweep(w, panel, column, columns, row_panels * group / w->row_groups, row_panels * (group + 1) / w->row_groups);
  }
}

/* One matrix of the batch; `lanes` 1 keeps all of it on this thread. */
static void multiply_matrix(block *w, uint32_t lanes) {
  const tm_host *host = w->call->host;
  const uint64_t column_panels = divide_up(w->problem->n, MATMUL_TILE_COLUMNS);
  const uint64_t rows = rows_of(w->problem->m), depth = depth_of(w->problem->k);
  for (w->row = 0; w->row < w->problem->m; w->row += rows) {
    w->rows = least(w->problem->m - w->row, rows);
    const uint64_t row_panels = divide_up(w->rows, MATMUL_TILE_ROWS);
    w->row_groups = column_panels >= 4 * lanes ? 1 : least(divide_up(4 * lanes, column_panels), row_panels);
    if (lanes == 1) w->row_groups = 1;
    for (w->k = 0; w->k < w->problem->k; w->k += depth) {
      w->depth = least(w->problem->k - w->k, depth);
      if (lanes == 1) {
        pack_rows(w, 0, row_panels, 0);
        multiply(w, 0, column_panels, 0);
      } else {
        host->parallel_for(host->context, row_panels, 4, pack_rows, w);
        host->parallel_for(host->context, column_panels * w->row_groups, 1, multiply, w);
      }
    }
  }
}

static void clear_matrix(const cpu_matmul_problem *p, char *y) {
  for (uint64_t i = 0; i < p->m; i++) memset(y + (int64_t)i * p->y_row_bytes, 0, p->n * sizeof(float));
}

/* Small matrices in number are handed out whole; large ones are shared by all lanes. */
static int shares_batches(const cpu_matmul_problem *p, uint32_t lanes) {
  return p->batch_count >= 2 * (uint64_t)lanes && (double)p->m * (double)p->n * (double)p->k < 64e6;
}

static int is_serial(const cpu_matmul_problem *p, uint32_t lanes) {
  return lanes == 1 || (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count < SERIAL_PRODUCTS;
}

static uint64_t packed_floats(const cpu_matmul_problem *p) { return rows_of(p->m) * depth_of(p->k); }

static void multiply_batches(const block *shared, uint64_t begin, uint64_t end, uint32_t lanes, float *packed) {
  for (uint64_t batch = begin; batch < end; batch++) {
    block w = *shared;
    int64_t offsets[3];
    cpu_matmul_batch_offsets(w.problem, batch, offsets);
    w.a += offsets[0];
    w.b += offsets[1];
    w.y += offsets[2];
    w.packed = packed;
    if (w.problem->k == 0)
      clear_matrix(w.problem, w.y);
    else
      multiply_matrix(&w, lanes);
  }
}

static void multiply_some_batches(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const block *w = argument;
  multiply_batches(w, begin, end, 1, w->packed + lane * packed_floats(w->problem));
}

void cpu_matmul_blocked(const cpu_matmul_format *a, const cpu_matmul_format *b, const cpu_call *call) {
  const cpu_matmul_problem problem = cpu_matmul_describe(call->operation);
  const tm_host *host = call->host;
  block w = { .a_format = a, .b_format = b, .problem = &problem, .call = call, .a = call->pointers[0],
              .b = call->pointers[1], .y = call->pointers[2], .packed = call->workspace };
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0) return;
  if (is_serial(&problem, host->lane_count))
    multiply_batches(&w, 0, problem.batch_count, 1, w.packed);
  else if (shares_batches(&problem, host->lane_count))
    host->parallel_for(host->context, problem.batch_count, 1, multiply_some_batches, &w);
  else
    multiply_batches(&w, 0, problem.batch_count, host->lane_count, w.packed);
}

uint64_t cpu_matmul_blocked_workspace(const tm_operation *operation, uint32_t lanes) {
  const cpu_matmul_problem p = cpu_matmul_describe(operation);
  const uint64_t copies = !is_serial(&p, lanes) && shares_batches(&p, lanes) ? lanes : 1;
  return copies * packed_floats(&p) * sizeof(float);
}

uint32_t cpu_matmul_blocked_refuses(const cpu_matmul_format *b, const tm_operation *operation, uint32_t *out_operand) {
  const tm_matmul_attributes *attributes = operation->attributes;
  if (attributes == NULL) return TM_REASON_ATTRIBUTE;
  for (*out_operand = 0; *out_operand < 3; ++*out_operand)
    if (operation->operands[*out_operand].rank < 2) return TM_REASON_RANK;
  const cpu_matmul_problem p = cpu_matmul_describe(operation);
  *out_operand = 1;
  if (b->block_elements > 1 && attributes->transpose_b == 0) return TM_REASON_ATTRIBUTE;
  if (b->block_elements > 1 && p.k > 0 && p.b_k_bytes != b->block_bytes) return TM_REASON_LAYOUT;
  *out_operand = 2;
  return p.n <= 1 || p.y_column_bytes == sizeof(float) ? 0 : TM_REASON_LAYOUT;
}

/*
 * Rates of a core: 45 multiply-adds/ns in whole tiles; panels of b packed at 1 to 0.4 values/ns (by format), once for each
 * block of rows; packing a and what is left over at the edges are in the round-up to whole tiles.
 */
uint64_t cpu_matmul_blocked_cost_ns(const cpu_matmul_format *b, const tm_operation *operation, uint32_t lanes) {
  const cpu_matmul_problem p = cpu_matmul_describe(operation);
  const double m = (double)(divide_up(p.m, MATMUL_TILE_ROWS) * MATMUL_TILE_ROWS);
  const double n = (double)(divide_up(p.n, MATMUL_TILE_COLUMNS) * MATMUL_TILE_COLUMNS);
  const double k = (double)p.k, batches = (double)p.batch_count;
  const double row_blocks = (double)divide_up(p.m, rows_of(p.m));
  const double products = m * n * k * batches * PRODUCT_NS;
  const double packing = (n * row_blocks * b->pack_ns + m * PACK_ROW_NS) * k * batches;
  const double parts = is_serial(&p, lanes) ? 1.0 : (double)lanes;
  return (uint64_t)((products + packing) / parts);
}
