/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_matmul.h"

#include <string.h>

#define PANEL_BYTES (MATMUL_DEPTH * MATMUL_TILE_COLUMNS * 4u)
#define TILE_BYTES  (MATMUL_TILE_ROWS * MATMUL_TILE_COLUMNS * 4u)

/* Multiplications below which waking other threads costs more than it brings, and above which a matrix of a batch is
   shared by all threads rather than given to one. */
#define SERIAL_PRODUCTS 800000.0
#define SHARED_PRODUCTS 64e6

/* Packing a value of a; the bookkeeping of a tile, of one that hangs over the edge, and of a matrix. */
#define PACK_ROW_NS 0.35
#define TILE_NS     12.0
#define EDGE_NS     50.0
#define MATRIX_NS   60.0

/* What one lane, or all of them, work on: one block of a against all of b. */
typedef struct block {
  const cpu_matmul_kernel  *kernel;
  const cpu_matmul_problem *problem;    /* with k counted in packed values */
  const cpu_call           *call;
  const char *a, *b;
  char       *y;
  char       *packed;                   /* the block of a: panels of 6 rows */
  char       *sums;                     /* of the block's rows: y itself, or what follows the packed block */
  int64_t     sum_row_bytes;
  uint64_t    batch;
  uint64_t    columns;                  /* of a tile */
  uint64_t    row, rows;
  uint64_t    k, depth, elements;       /* elements along K in this block, of which depth packed values are made */
  uint64_t    row_groups;               /* into which the sweep over a is cut when b has too few panels for all lanes */
} block;

static uint64_t divide_up(uint64_t value, uint64_t by) { return value / by + (value % by != 0); }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Parts of nearly equal size, each at most `largest` and a multiple of `granule`. */
static uint64_t even_part(uint64_t total, uint64_t largest, uint64_t granule) {
  const uint64_t parts = divide_up(total, largest);
  return parts == 0 ? granule : divide_up(divide_up(total, parts), granule) * granule;
}

static uint64_t depth_of(const cpu_matmul_problem *p) { return even_part(p->k, MATMUL_DEPTH, 32); }
static uint64_t rows_of(const cpu_matmul_problem *p) { return even_part(p->m, MATMUL_ROWS, MATMUL_TILE_ROWS); }
static uint64_t columns_of(const cpu_matmul_kernel *kernel) { return MATMUL_TILE_COLUMNS * 4u / kernel->sum_bytes; }

static cpu_matmul_problem describe(const cpu_matmul_kernel *kernel, const tm_operation *operation) {
  cpu_matmul_problem p = cpu_matmul_describe(operation);
  p.k = divide_up(p.k, kernel->k_unit);
  return p;
}

/* ---- one block ---- */

static void pack_rows(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const block *w = argument;
  const cpu_matmul_problem *p = w->problem;
  const int64_t along_k = (int64_t)(w->k * w->kernel->k_unit) * p->a_k_bytes;
  (void)lane;
  for (uint64_t panel = begin; panel < end; panel++) {
    const uint64_t first = panel * MATMUL_TILE_ROWS;
    const cpu_matrix lines = { w->a + (int64_t)(w->row + first) * p->a_line_bytes + along_k, p->a_line_bytes, p->a_k_bytes };
    w->kernel->a->pack(&lines, least(w->rows - first, MATMUL_TILE_ROWS), w->elements,
                       w->packed + first * w->depth * w->kernel->sum_bytes, MATMUL_TILE_ROWS, MATMUL_TILE_ROWS);
  }
}

static void pack_columns(const block *w, uint64_t column, uint64_t columns, char *panel) {
  const cpu_matmul_problem *p = w->problem;
  const cpu_matmul_format *b = w->kernel->b;
  const uint64_t k = w->k * w->kernel->k_unit;
  const int64_t along_k = b->block_elements == 1 ? (int64_t)k * p->b_k_bytes
                                                 : (int64_t)(k / b->block_elements * b->block_bytes);
  for (uint64_t part = 0; part < w->columns; part += 8) {
    const uint64_t lines = columns > part ? least(columns - part, 8) : 0;
    const cpu_matrix matrix = { w->b + (int64_t)(column + part) * p->b_line_bytes + along_k, p->b_line_bytes, p->b_k_bytes };
    b->pack(&matrix, lines, w->elements, panel + part * w->kernel->sum_bytes, w->columns, 8);
  }
}

/* A tile that hangs over the edge is computed beside the sums, and only what exists of it is kept. */
static void edge_tile(const block *w, const char *a, const char *panel, char *sums, uint64_t rows, uint64_t columns) {
  _Alignas(32) char whole[TILE_BYTES] = { 0 };
  const uint64_t step = w->columns * w->kernel->sum_bytes, bytes = columns * w->kernel->sum_bytes;
  for (uint64_t i = 0; i < rows && w->k > 0; i++) memcpy(whole + i * step, sums + (int64_t)i * w->sum_row_bytes, bytes);
  w->kernel->tile(a, panel, w->depth, whole, (int64_t)step, w->k > 0);
  for (uint64_t i = 0; i < rows; i++) memcpy(sums + (int64_t)i * w->sum_row_bytes, whole + i * step, bytes);
}

/* Sweeps the row panels [begin, end) with one panel of columns. */
static void sweep(const block *w, const char *panel, uint64_t column, uint64_t columns, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; i++) {
    const uint64_t first = i * MATMUL_TILE_ROWS;
    const uint64_t rows = least(w->rows - first, MATMUL_TILE_ROWS);
    const char *a = w->packed + first * w->depth * w->kernel->sum_bytes;
    char *sums = w->sums + (int64_t)first * w->sum_row_bytes + column * w->kernel->sum_bytes;
    if (rows == MATMUL_TILE_ROWS && columns == w->columns)
      w->kernel->tile(a, panel, w->depth, sums, w->sum_row_bytes, w->k > 0);
    else
      edge_tile(w, a, panel, sums, rows, columns);
  }
}

static void multiply(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const block *w = argument;
  _Alignas(64) char panel[PANEL_BYTES];
  const uint64_t row_panels = divide_up(w->rows, MATMUL_TILE_ROWS);
  uint64_t packed = UINT64_MAX;
  (void)lane;
  for (uint64_t i = begin; i < end; i++) {
    const uint64_t column = i / w->row_groups * w->columns;
    const uint64_t columns = least(w->problem->n - column, w->columns);
    const uint64_t group = i % w->row_groups;
    if (packed != column) pack_columns(w, column, columns, panel);
    packed = column;
    sweep(w, panel, column, columns, row_panels * group / w->row_groups, row_panels * (group + 1) / w->row_groups);
  }
}

static void finish_rows(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const block *w = argument;
  (void)lane;
  for (uint64_t i = begin; i < end; i++) {
    const cpu_matmul_row row = { w->call, w->problem, w->batch, w->row + i };
    w->kernel->finish(&row, w->sums + (int64_t)i * w->sum_row_bytes,
                      w->y + (int64_t)(w->row + i) * w->problem->y_row_bytes);
  }
}

/* ---- one matrix ---- */

static void in_parts(const block *w, uint32_t lanes, uint64_t count, uint64_t grain, tm_range_fn function, block *argument) {
  const tm_host *host = w->call->host;
  if (lanes == 1)
    function(argument, 0, count, 0);
  else
    host->parallel_for(host->context, count, grain, function, argument);
}

static void place_sums(block *w) {
  if (w->kernel->y_bytes == w->kernel->sum_bytes) {
    w->sums = w->y + (int64_t)w->row * w->problem->y_row_bytes;
    w->sum_row_bytes = w->problem->y_row_bytes;
  } else {
    w->sums = w->packed + rows_of(w->problem) * depth_of(w->problem) * w->kernel->sum_bytes;
    w->sum_row_bytes = (int64_t)(w->problem->n * w->kernel->sum_bytes);
  }
}

/* `lanes` 1 keeps all of it on this thread. */
static void multiply_matrix(block *w, uint32_t lanes, uint64_t elements) {
  const cpu_matmul_problem *p = w->problem;
  const uint64_t column_panels = divide_up(p->n, w->columns);
  const uint64_t rows = rows_of(p), depth = depth_of(p);
  for (w->row = 0; w->row < p->m; w->row += rows) {
    w->rows = least(p->m - w->row, rows);
    place_sums(w);
    const uint64_t row_panels = divide_up(w->rows, MATMUL_TILE_ROWS);
    const uint64_t wanted = lanes == 1 ? 1 : divide_up(4 * (uint64_t)lanes, column_panels);
    w->row_groups = least(wanted, row_panels);
    for (w->k = 0; w->k < p->k; w->k += depth) {
      w->depth = least(p->k - w->k, depth);
      w->elements = least(elements - w->k * w->kernel->k_unit, w->depth * w->kernel->k_unit);
      in_parts(w, lanes, row_panels, 4, pack_rows, w);
      in_parts(w, lanes, column_panels * w->row_groups, 1, multiply, w);
    }
    for (uint64_t i = 0; i < w->rows && p->k == 0; i++)
      memset(w->sums + (int64_t)i * w->sum_row_bytes, 0, p->n * w->kernel->sum_bytes);
    if (w->kernel->finish != NULL) in_parts(w, lanes, w->rows, 8, finish_rows, w);
  }
}

/* ---- the batch ---- */

static double products_of(const cpu_matmul_problem *p) { return (double)p->m * (double)p->n * (double)p->k; }

static int is_serial(const cpu_matmul_problem *p, uint32_t lanes) {
  return lanes == 1 || products_of(p) * (double)p->batch_count < SERIAL_PRODUCTS;
}

/* Small matrices in number are handed out whole; large ones are shared by all lanes. */
static int hands_out_whole(const cpu_matmul_problem *p, uint32_t lanes) {
  return !is_serial(p, lanes) && p->batch_count >= 2 * (uint64_t)lanes && products_of(p) < SHARED_PRODUCTS;
}

/* Workspace of one matrix. */
static uint64_t matrix_bytes(const cpu_matmul_kernel *kernel, const cpu_matmul_problem *p) {
  const uint64_t packed = rows_of(p) * depth_of(p) * kernel->sum_bytes;
  const uint64_t sums = kernel->y_bytes == kernel->sum_bytes ? 0 : rows_of(p) * p->n * kernel->sum_bytes;
  return divide_up(packed + sums, 64) * 64;
}

static void multiply_batches(const block *shared, uint64_t begin, uint64_t end, uint32_t lanes, char *workspace) {
  const uint64_t elements = cpu_matmul_describe(shared->call->operation).k;
  for (uint64_t batch = begin; batch < end; batch++) {
    block w = *shared;
    int64_t offsets[3];
    cpu_matmul_batch_offsets(w.problem, batch, offsets);
    w.a += offsets[0];
    w.b += offsets[1];
    w.y += offsets[2];
    w.batch = batch;
    w.packed = workspace;
    multiply_matrix(&w, lanes, elements);
  }
}

static void multiply_some_batches(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const block *w = argument;
  multiply_batches(w, begin, end, 1, w->packed + lane * matrix_bytes(w->kernel, w->problem));
}

void cpu_matmul_run(const cpu_matmul_kernel *kernel, const cpu_call *call) {
  const cpu_matmul_problem problem = describe(kernel, call->operation);
  const tm_host *host = call->host;
  const uint32_t lanes = host->lane_count;
  block w = { .kernel = kernel, .problem = &problem, .call = call, .a = call->pointers[0], .b = call->pointers[1],
              .y = call->pointers[call->operation->input_count], .packed = call->workspace, .columns = columns_of(kernel) };
  if (problem.m == 0 || problem.n == 0 || problem.batch_count == 0) return;
  if (hands_out_whole(&problem, lanes))
    host->parallel_for(host->context, problem.batch_count, 1, multiply_some_batches, &w);
  else
    multiply_batches(&w, 0, problem.batch_count, is_serial(&problem, lanes) ? 1 : lanes, w.packed);
}

/* ---- what the rows say ---- */

uint64_t cpu_matmul_workspace(const cpu_matmul_kernel *kernel, const tm_operation *operation, uint32_t lanes) {
  const cpu_matmul_problem p = describe(kernel, operation);
  return (hands_out_whole(&p, lanes) ? lanes : 1) * matrix_bytes(kernel, &p);
}

uint32_t cpu_matmul_refuses(const cpu_matmul_kernel *kernel, const tm_operation *operation, uint32_t *out_operand) {
  const tm_matmul_attributes *attributes = operation->attributes;
  const uint32_t last = operation->input_count;
  if (attributes == NULL) return TM_REASON_ATTRIBUTE;
  for (uint32_t i = 0; i < 3; i++) {
    *out_operand = i < 2 ? i : last;
    if (operation->operands[*out_operand].rank < 2) return TM_REASON_RANK;
  }
  const cpu_matmul_problem p = cpu_matmul_describe(operation);
  *out_operand = 1;
  if (kernel->b->block_elements > 1 && attributes->transpose_b == 0) return TM_REASON_ATTRIBUTE;
  if (kernel->b->block_elements > 1 && p.k > 0 && p.b_k_bytes != kernel->b->block_bytes) return TM_REASON_LAYOUT;
  *out_operand = last;
  return p.n <= 1 || p.y_column_bytes == kernel->y_bytes ? 0 : TM_REASON_LAYOUT;
}

/* Nanoseconds of one matrix on one lane.  Whole tiles are counted also where they hang over; a is packed once, b once for
   each block of rows. */
static double matrix_ns(const cpu_matmul_kernel *kernel, const cpu_matmul_problem *p) {
  const uint64_t columns = columns_of(kernel);
  const double k = (double)p->k, depths = (double)divide_up(p->k + 1, MATMUL_DEPTH);
  const double row_panels = (double)divide_up(p->m, MATMUL_TILE_ROWS), column_panels = (double)divide_up(p->n, columns);
  const double tiles = row_panels * column_panels;
  const double edges = tiles - (double)(p->m / MATMUL_TILE_ROWS) * (double)(p->n / columns);
  const double products = tiles * (double)(MATMUL_TILE_ROWS * columns) * k * kernel->product_ns;
  const double packed_a = row_panels * MATMUL_TILE_ROWS * k * PACK_ROW_NS;
  const double packed_b = column_panels * (double)columns * k * kernel->b->pack_ns * (double)divide_up(p->m, MATMUL_ROWS);
  const double finished = kernel->finish != NULL ? (double)p->m * (10.0 + 0.5 * (double)p->n) : 0.0;
  return MATRIX_NS + products + packed_a + packed_b + (tiles * TILE_NS + edges * EDGE_NS) * depths + finished;
}

uint64_t cpu_matmul_cost_ns(const cpu_matmul_kernel *kernel, const tm_operation *operation, uint32_t lanes) {
  const cpu_matmul_problem p = describe(kernel, operation);
  const double work = matrix_ns(kernel, &p) * (double)p.batch_count;
  if (is_serial(&p, lanes)) return (uint64_t)work;
  const double blocks = (double)divide_up(p.m, MATMUL_ROWS) * (double)divide_up(p.k, MATMUL_DEPTH);
  const double wakes = hands_out_whole(&p, lanes) ? 1.0 : 2.0 * blocks * (double)p.batch_count;
  return (uint64_t)(work / lanes + wakes * CPU_WAKE_NS);
}
