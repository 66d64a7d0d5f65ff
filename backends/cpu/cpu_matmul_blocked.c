/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_matmul.h"
#include "cpu_memory_cost.h"

#include <string.h>

#define PANEL_BYTES (MATMUL_DEPTH * MATMUL_ROW_BYTES)
#define TILE_BYTES  (MATMUL_TILE_ROWS * MATMUL_ROW_BYTES)

/* Nanoseconds of multiplying below which waking other threads costs more than it brings, and the least part of a matrix that one
   thread gets, since each packs for itself. */
#define SERIAL_NS     16000.0
#define LEAST_ROWS    48u
#define LEAST_COLUMNS 64u

/* Packing a value of a; the bookkeeping of a tile, of one that hangs over the edge, and of a matrix. */
#define PACK_ROW_NS 0.25
#define TILE_NS     12.0
#define EDGE_NS     50.0
#define MATRIX_NS   60.0

/*
 * The work is cut into parts of y, rows by columns, that are computed each by one thread from beginning to end: threads
 * meet only once, at the end of the product.  K is cut the same way for all, so bits do not depend on the parts.
 */
typedef struct partition {
  uint64_t rows, columns;               /* of a part */
  uint64_t row_parts, column_parts;     /* of one matrix */
  uint64_t depth;                       /* of a block along K */
} partition;

/* What is the same for all parts. */
typedef struct product {
  const cpu_matmul_kernel *kernel;
  const cpu_call          *call;
  cpu_matmul_problem       problem;     /* with k counted in packed values */
  partition                parts;
  uint64_t                 elements;    /* K */
} product;

/* One part, and the block along K that is at work. */
typedef struct part {
  const product *whole;
  const char    *a, *b;                 /* its first row and column */
  char          *packed;                /* the block of a: panels of a tile's rows */
  char          *sums;                  /* y itself, or what follows the packed block */
  int64_t        sum_row_bytes;
  uint64_t       rows, columns;
  uint64_t       k, depth, elements;    /* elements along K in this block, of which depth packed values are made */
} part;

static uint64_t divide_up(uint64_t value, uint64_t by) { return value / by + (value % by != 0); }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Parts of nearly equal size, each at most `largest` and a multiple of `granule`. */
static uint64_t even_part(uint64_t total, uint64_t largest, uint64_t granule) {
  if (total == 0) return granule;
  return divide_up(divide_up(total, divide_up(total, largest)), granule) * granule;
}

static uint64_t in_place(const cpu_matmul_kernel *kernel) { return kernel->y_bytes == kernel->tile->value_bytes; }

static cpu_matmul_problem describe(const cpu_matmul_kernel *kernel, const tm_operation *operation) {
  cpu_matmul_problem p = cpu_matmul_describe(operation);
  p.k = divide_up(p.k, kernel->k_unit);
  return p;
}

static int is_serial(const cpu_matmul_kernel *kernel, const cpu_matmul_problem *p, uint32_t lanes) {
  const double products = (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count;
  return lanes == 1 || products * kernel->tile->product_ns < SERIAL_NS;
}

/* As many parts as threads, if the batch and the blocks of rows do not give as many; the longer side is cut. */
static partition partition_of(const cpu_matmul_kernel *kernel, const cpu_matmul_problem *p, uint32_t lanes) {
  const cpu_matmul_tile *tile = kernel->tile;
  const uint64_t wanted = is_serial(kernel, p, lanes) ? 1 : lanes;
  uint64_t blocks = divide_up(p->m, MATMUL_ROWS), cuts = 1;
  if (blocks > 1) blocks = divide_up(blocks, wanted) * wanted;
  const uint64_t parts = blocks * p->batch_count;
  if (parts < wanted && parts > 0) cuts = divide_up(wanted, parts);
  if (p->m > p->n) {
    blocks *= least(cuts, divide_up(p->m, LEAST_ROWS * blocks));
    cuts = 1;
  }
  cuts = least(cuts, divide_up(p->n, LEAST_COLUMNS));
  partition result = { .rows = even_part(p->m, divide_up(p->m, blocks > 0 ? blocks : 1), tile->rows),
                       .columns = even_part(p->n, divide_up(p->n, cuts > 0 ? cuts : 1), tile->columns),
                       .depth = even_part(p->k, MATMUL_DEPTH, 32) };
  result.row_parts = divide_up(p->m, result.rows);
  result.column_parts = divide_up(p->n, result.columns);
  return result;
}

/* Workspace of one lane. */
static uint64_t lane_bytes(const cpu_matmul_kernel *kernel, const partition *parts) {
  const uint64_t packed = parts->rows * parts->depth * kernel->tile->value_bytes;
  const uint64_t sums = in_place(kernel) ? 0 : parts->rows * parts->columns * kernel->tile->value_bytes;
  return divide_up(packed + sums, 64) * 64;
}

static void pack_rows(const part *w) {
  const cpu_matmul_problem *p = &w->whole->problem;
  const cpu_matmul_kernel *kernel = w->whole->kernel;
  const cpu_matmul_tile *tile = kernel->tile;
  const char *a = w->a + (int64_t)(w->k * kernel->k_unit) * p->a_k_bytes;
  for (uint64_t row = 0; row < w->rows; row += tile->rows) {
    const cpu_matrix lines = { a + (int64_t)row * p->a_line_bytes, p->a_line_bytes, p->a_k_bytes };
    char *panel = w->packed + row * w->depth * tile->value_bytes;
    kernel->a->pack(&lines, least(w->rows - row, tile->rows), w->elements, panel, tile->rows);
  }
}

static void pack_columns(const part *w, uint64_t column, uint64_t columns, char *panel) {
  const cpu_matmul_problem *p = &w->whole->problem;
  const cpu_matmul_format *b = w->whole->kernel->b;
  const uint64_t k = w->k * w->whole->kernel->k_unit;
  const int64_t along_k = b->block_elements == 1 ? (int64_t)k * p->b_k_bytes
                                                 : (int64_t)(k / b->block_elements * b->block_bytes);
  const cpu_matrix matrix = { w->b + (int64_t)column * p->b_line_bytes + along_k, p->b_line_bytes, p->b_k_bytes };
  b->pack(&matrix, columns, w->elements, panel, w->whole->kernel->tile->columns);
}

/* A part of a tile, computed whole beside the sums; only what exists of it is kept. */
static void run_beside(const cpu_matmul_tile *tile, const cpu_tile_call *place) {
  _Alignas(64) char whole[TILE_BYTES] = { 0 };
  const uint64_t step = tile->columns * tile->value_bytes, bytes = place->columns * tile->value_bytes;
  char *sums = place->y;
  cpu_tile_call call = *place;
  call.y = whole;
  call.y_row_bytes = (int64_t)step;
  for (uint64_t i = 0; i < place->rows && place->accumulate; i++)
    memcpy(whole + i * step, sums + (int64_t)i * place->y_row_bytes, bytes);
  tile->run(&call);
  for (uint64_t i = 0; i < place->rows; i++) memcpy(sums + (int64_t)i * place->y_row_bytes, whole + i * step, bytes);
}

/* All row panels times one panel of columns. */
static void sweep(const part *w, const char *panel, uint64_t column, uint64_t columns) {
  const cpu_matmul_tile *tile = w->whole->kernel->tile;
  cpu_tile_call call = { .b = panel, .depth = w->depth, .y_row_bytes = w->sum_row_bytes, .columns = (uint32_t)columns,
                         .accumulate = w->k > 0 };
  for (uint64_t row = 0; row < w->rows; row += tile->rows) {
    call.rows = (uint32_t)least(w->rows - row, tile->rows);
    call.a = w->packed + row * w->depth * tile->value_bytes;
    call.y = w->sums + (int64_t)row * w->sum_row_bytes + column * tile->value_bytes;
    if (tile->takes_parts || (call.rows == tile->rows && columns == tile->columns))
      tile->run(&call);
    else
      run_beside(tile, &call);
  }
}

static void add_products(part *w) {
  const product *whole = w->whole;
  const uint32_t step = whole->kernel->tile->columns;
  _Alignas(64) char panel[PANEL_BYTES];
  for (w->k = 0; w->k < whole->problem.k; w->k += whole->parts.depth) {
    w->depth = least(whole->problem.k - w->k, whole->parts.depth);
    w->elements = least(whole->elements - w->k * whole->kernel->k_unit, w->depth * whole->kernel->k_unit);
    pack_rows(w);
    for (uint64_t column = 0; column < w->columns; column += step) {
      const uint64_t columns = least(w->columns - column, step);
      pack_columns(w, column, columns, panel);
      sweep(w, panel, column, columns);
    }
  }
  for (uint64_t i = 0; i < w->rows && whole->problem.k == 0; i++)
    memset(w->sums + (int64_t)i * w->sum_row_bytes, 0, w->columns * whole->kernel->tile->value_bytes);
}

/* Part `index` of all: column parts of a block of rows follow each other, then the next block, then the next matrix. */
static void compute_part(const product *whole, uint64_t index, char *workspace) {
  const cpu_matmul_problem *p = &whole->problem;
  const partition *parts = &whole->parts;
  const uint64_t column = index % parts->column_parts * parts->columns;
  const uint64_t row = index / parts->column_parts % parts->row_parts * parts->rows;
  const uint64_t batch = index / parts->column_parts / parts->row_parts;
  int64_t offsets[3];
  cpu_matmul_batch_offsets(p, batch, offsets);
  part w = { .whole = whole, .packed = workspace, .rows = least(p->m - row, parts->rows),
             .columns = least(p->n - column, parts->columns) };
  w.a = (const char *)whole->call->pointers[0] + offsets[0] + (int64_t)row * p->a_line_bytes;
  w.b = (const char *)whole->call->pointers[1] + offsets[1] + (int64_t)column * p->b_line_bytes;
  char *y = (char *)whole->call->pointers[whole->call->operation->input_count] + offsets[2];
  y += (int64_t)row * p->y_row_bytes + (int64_t)(column * whole->kernel->y_bytes);
  w.sums = in_place(whole->kernel) ? y : workspace + parts->rows * parts->depth * whole->kernel->tile->value_bytes;
  w.sum_row_bytes = in_place(whole->kernel) ? p->y_row_bytes : (int64_t)(parts->columns * whole->kernel->tile->value_bytes);
  add_products(&w);
  for (uint64_t i = 0; i < w.rows && whole->kernel->finish != NULL; i++) {
    const cpu_matmul_row place = { whole->call, row + i, column, w.columns };
    whole->kernel->finish(&place, w.sums + (int64_t)i * w.sum_row_bytes, y + (int64_t)i * p->y_row_bytes);
  }
}

static void compute_parts(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const product *whole = argument;
  char *workspace = (char *)whole->call->workspace + lane * lane_bytes(whole->kernel, &whole->parts);
  for (uint64_t i = begin; i < end; i++) compute_part(whole, i, workspace);
}

void cpu_matmul_run(const cpu_matmul_kernel *kernel, const cpu_call *call) {
  const tm_host *host = call->host;
  product whole = { .kernel = kernel, .call = call, .problem = describe(kernel, call->operation),
                    .elements = cpu_matmul_describe(call->operation).k };
  if (whole.problem.m == 0 || whole.problem.n == 0 || whole.problem.batch_count == 0) return;
  whole.parts = partition_of(kernel, &whole.problem, host->lane_count);
  const uint64_t count = whole.parts.row_parts * whole.parts.column_parts * whole.problem.batch_count;
  if (count == 1 || is_serial(kernel, &whole.problem, host->lane_count))
    compute_parts(&whole, 0, count, 0);
  else
    host->parallel_for(host->context, count, 1, compute_parts, &whole);
}

/* ---- what the rows say ---- */

uint64_t cpu_matmul_workspace(const cpu_matmul_kernel *kernel, const tm_operation *operation, uint32_t lanes) {
  const cpu_matmul_problem p = describe(kernel, operation);
  const partition parts = partition_of(kernel, &p, lanes);
  return (is_serial(kernel, &p, lanes) ? 1 : lanes) * lane_bytes(kernel, &parts);
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

/* Rows and columns that are computed: a tile that takes parts takes any rows, though of few the sums wait for each
   other, and half of its columns. */
#define LEAST_TILE_ROWS 4u
static double computed_rows(const cpu_matmul_tile *tile, uint64_t rows) {
  const uint64_t rest = rows % tile->rows;
  if (!tile->takes_parts || rest == 0) return (double)(divide_up(rows, tile->rows) * tile->rows);
  return (double)(rows - rest + (rest < LEAST_TILE_ROWS ? LEAST_TILE_ROWS : rest));
}
static double computed_columns(const cpu_matmul_tile *tile, uint64_t columns) {
  const uint64_t granule = tile->takes_parts ? tile->columns / 2 : tile->columns;
  return (double)(divide_up(columns, granule) * granule);
}

/* Nanoseconds of one matrix, all parts together; a is packed once for each part along the columns, b once for each along
   the rows. */
static double matrix_ns(const cpu_matmul_kernel *kernel, const cpu_matmul_problem *p, const partition *parts) {
  const cpu_matmul_tile *tile = kernel->tile;
  const double k = (double)p->k, depths = (double)divide_up(p->k + 1, MATMUL_DEPTH);
  const double row_panels = (double)divide_up(p->m, tile->rows), column_panels = (double)divide_up(p->n, tile->columns);
  const double tiles = row_panels * column_panels;
  const double whole = tile->takes_parts ? tiles : (double)(p->m / tile->rows) * (double)(p->n / tile->columns);
  const double edges = tiles - whole;
  const double products = computed_rows(tile, p->m) * computed_columns(tile, p->n) * k * tile->product_ns;
  const double packed_a = row_panels * tile->rows * k * PACK_ROW_NS * (double)parts->column_parts;
  const double packed_b = column_panels * tile->columns * k * kernel->b->pack_ns * (double)parts->row_parts;
  const double finished = kernel->finish != NULL ? (double)p->m * (10.0 + 0.5 * (double)p->n) : 0.0;
  return MATRIX_NS + products + packed_a + packed_b + (tiles * TILE_NS + edges * EDGE_NS) * depths + finished;
}

uint64_t cpu_matmul_cost_ns(const cpu_matmul_kernel *kernel, const tm_operation *operation, uint32_t lanes) {
  const cpu_matmul_problem p = describe(kernel, operation);
  const partition parts = partition_of(kernel, &p, lanes);
  const uint64_t count = parts.row_parts * parts.column_parts * p.batch_count;
  const double work = matrix_ns(kernel, &p, &parts) * (double)p.batch_count;
  if (count <= 1 || is_serial(kernel, &p, lanes)) return cpu_whole_ns(work);
  const double turns = (double)divide_up(count, lanes) / (double)count;
  return cpu_whole_ns(work * turns + CPU_WAKE_NS);
}
