/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/quantized_factor.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "ops/element_stream.h"

#define TILE (TM_TILE_LINES * TM_TILE_TERMS)
#define LARGEST_INTEGER 127.0
#define LARGEST_EXPONENT 100

tm_line_view tm_line_view_make(const tm_operand *operand, const uint64_t *dims, bool k_is_last, const void *data) {
  const uint32_t last = operand->rank - 1;
  tm_line_view view = { .operand = operand,
                        .data = data,
                        .k_axis = k_is_last ? last : last - 1,
                        .line_axis = k_is_last ? last - 1 : last,
                        .batch_count = 1 };
  for (uint32_t i = 0; i < operand->rank; i++) {
    view.dims[i] = dims[i];
    if (i + 2 < operand->rank) view.batch_count *= dims[i];
  }
  view.term_count = dims[view.k_axis];
  view.line_count = dims[view.line_axis];
  return view;
}

static const char *batch_address(const tm_line_view *view, uint64_t batch) {
  const char *address = view->data;
  for (uint32_t axis = view->operand->rank - 2; axis-- > 0;) {
    address += (int64_t)(batch % view->dims[axis]) * view->operand->strides_bytes[axis];
    batch /= view->dims[axis];
  }
  return address;
}

static void load_along_terms(const tm_line_view *view, const char *address, uint64_t lines, uint64_t term, uint64_t terms,
                             double *out_values) {
  const tm_element_stream stream = tm_stream_along(view->operand, view->k_axis);
  const int64_t begin = (int64_t)(term / stream.block_elements) * stream.step_bytes;
  for (uint64_t i = 0; i < lines; i++)
    tm_stream_load(&stream, address + begin + (int64_t)i * view->operand->strides_bytes[view->line_axis], terms,
                   &out_values[i * TM_TILE_TERMS]);
}

static void load_along_lines(const tm_line_view *view, const char *address, uint64_t lines, uint64_t term, uint64_t terms,
                             double *out_values) {
  const tm_element_stream stream = tm_stream_along(view->operand, view->line_axis);
  double column[TM_TILE_LINES];
  for (uint64_t k = 0; k < terms; k++) {
    tm_stream_load(&stream, address + (int64_t)(term + k) * view->operand->strides_bytes[view->k_axis], lines, column);
    for (uint64_t i = 0; i < lines; i++) out_values[i * TM_TILE_TERMS + k] = column[i];
  }
}

void tm_line_view_load(const tm_line_view *view, uint64_t batch, uint64_t line, uint64_t lines, uint64_t term, uint64_t terms,
                       double *out_values) {
  const char *address = batch_address(view, batch) + (int64_t)line * view->operand->strides_bytes[view->line_axis];
  (view->k_axis > view->line_axis ? load_along_terms : load_along_lines)(view, address, lines, term, terms, out_values);
}

/* ---- integers ---- */

typedef struct quantizing {
  const tm_line_view *view;
  int8_t             *integers;
  float              *scales;
  _Atomic bool        is_unfit;
} quantizing;

static double largest_of(const double *values, uint64_t count, double largest) {
  for (uint64_t i = 0; i < count; i++) {
    const double magnitude = fabs(values[i]);
    if (!(magnitude <= largest)) largest = magnitude;   /* a NaN stays: nothing compares with it */
    if (isnan(largest)) break;
  }
  return largest;
}

static bool is_fit(double largest) {
  return largest == 0 || (isfinite(largest) && largest <= ldexp(1, LARGEST_EXPONENT) && largest >= ldexp(1, -LARGEST_EXPONENT));
}

static int8_t round_to_integer(double value, float scale) {
  const double q = scale == 0 ? 0 : nearbyint(value / (double)scale);
  return (int8_t)fmax(-LARGEST_INTEGER, fmin(LARGEST_INTEGER, q));
}

/* Finds the scales of the tile's lines; false when one is unfit. */
static bool scale_lines(const quantizing *q, uint64_t batch, uint64_t line, uint64_t lines) {
  double values[TILE], largest[TM_TILE_LINES] = { 0 };
  const tm_line_view *view = q->view;
  for (uint64_t term = 0, n; term < view->term_count; term += n) {
    n = tm_min_u64(TM_TILE_TERMS, view->term_count - term);
    tm_line_view_load(view, batch, line, lines, term, n, values);
    for (uint64_t i = 0; i < lines; i++) largest[i] = largest_of(&values[i * TM_TILE_TERMS], n, largest[i]);
  }
  for (uint64_t i = 0; i < lines; i++) {
    if (!is_fit(largest[i])) return false;
    q->scales[batch * view->line_count + line + i] = (float)(largest[i] / LARGEST_INTEGER);
  }
  return true;
}

static void round_lines(const quantizing *q, uint64_t batch, uint64_t line, uint64_t lines) {
  double values[TILE];
  const tm_line_view *view = q->view;
  const uint64_t line_step = view->k_axis > view->line_axis ? view->term_count : 1;
  const uint64_t term_step = view->k_axis > view->line_axis ? 1 : view->line_count;
  const float *scales = &q->scales[batch * view->line_count + line];
  int8_t *first = &q->integers[batch * view->line_count * view->term_count + line * line_step];
  for (uint64_t term = 0, n; term < view->term_count; term += n) {
    n = tm_min_u64(TM_TILE_TERMS, view->term_count - term);
    tm_line_view_load(view, batch, line, lines, term, n, values);
    for (uint64_t i = 0; i < lines; i++)
      for (uint64_t k = 0; k < n; k++)
        first[i * line_step + (term + k) * term_step] = round_to_integer(values[i * TM_TILE_TERMS + k], scales[i]);
  }
}

static uint64_t tiles_of(const tm_line_view *view) { return tm_divide_up(view->line_count, TM_TILE_LINES); }

static void quantize_tiles(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  quantizing *q = argument;
  const uint64_t tiles = tiles_of(q->view);
  (void)lane;
  for (uint64_t tile = begin; tile < end && !atomic_load(&q->is_unfit); tile++) {
    const uint64_t batch = tile / tiles, line = tile % tiles * TM_TILE_LINES;
    const uint64_t lines = tm_min_u64(TM_TILE_LINES, q->view->line_count - line);
    if (scale_lines(q, batch, line, lines)) round_lines(q, batch, line, lines);
    else atomic_store(&q->is_unfit, true);
  }
}

bool tm_quantized_factor_make(tm_pool *pool, const tm_line_view *view, int8_t *out_integers, float *out_scales) {
  quantizing q = { .view = view, .integers = out_integers, .scales = out_scales };
  atomic_init(&q.is_unfit, false);
  tm_pool_run(pool, view->batch_count * tiles_of(view), 1, quantize_tiles, &q);
  return !atomic_load(&q.is_unfit);
}

/* ---- projections ---- */

double tm_projection_sign(uint64_t line, uint32_t index) {
  uint64_t bits = (line + 1) * UINT64_C(0x9e3779b97f4a7c15);
  bits = (bits ^ bits >> 32) * UINT64_C(0xd6e8feb86659fd93);
  bits = (bits ^ bits >> 32) * UINT64_C(0xd6e8feb86659fd93);
  return (bits >> (40 + index) & 1u) != 0 ? 1.0 : -1.0;
}

typedef struct projecting {
  const tm_line_view *view;
  double             *sums;
} projecting;

static void add_tile(const double *values, uint64_t line, uint64_t lines, uint64_t terms, double *sums) {
  for (uint64_t i = 0; i < lines; i++) {
    double signs[TM_PROJECTIONS];
    for (uint32_t v = 0; v < TM_PROJECTIONS; v++) signs[v] = tm_projection_sign(line + i, v);
    for (uint64_t k = 0; k < terms; k++)
      for (uint32_t v = 0; v < TM_PROJECTIONS; v++) sums[k * TM_PROJECTIONS + v] += values[i * TM_TILE_TERMS + k] * signs[v];
  }
}

static uint64_t chunks_of(const tm_line_view *view) { return tm_divide_up(view->term_count, TM_TILE_TERMS); }

static void project_chunks(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const projecting *p = argument;
  const tm_line_view *view = p->view;
  double values[TILE];
  (void)lane;
  for (uint64_t chunk = begin; chunk < end; chunk++) {
    const uint64_t batch = chunk / chunks_of(view), term = chunk % chunks_of(view) * TM_TILE_TERMS;
    const uint64_t terms = tm_min_u64(TM_TILE_TERMS, view->term_count - term);
    double *sums = &p->sums[(batch * view->term_count + term) * TM_PROJECTIONS];
    memset(sums, 0, terms * TM_PROJECTIONS * sizeof *sums);
    for (uint64_t line = 0, n; line < view->line_count; line += n) {
      n = tm_min_u64(TM_TILE_LINES, view->line_count - line);
      tm_line_view_load(view, batch, line, n, term, terms, values);
      add_tile(values, line, n, terms, sums);
    }
  }
}

void tm_projection_of_lines(tm_pool *pool, const tm_line_view *view, double *out_sums) {
  projecting p = { view, out_sums };
  tm_pool_run(pool, view->batch_count * chunks_of(view), 1, project_chunks, &p);
}
