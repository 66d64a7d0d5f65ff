/* SPDX-License-Identifier: Apache-2.0 */
/* rope: rotary position embedding.  A unit is the dim elements of one head of one token; angles and products are f64. */
#include <math.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"

#define X 0u
#define POSITIONS 1u
#define USUAL_THETA 10000.0

/* Two streams of elements, the firsts and the seconds of all pairs, in one head. */
typedef struct pair_streams {
  tm_element_stream elements;   /* of one side: step from pair to pair */
  int64_t           second_bytes; /* from a pair's first element to its second */
} pair_streams;

typedef struct rope {
  const tm_operand *positions;
  const char       *positions_address;
  pair_streams      x, y;
  tm_element_stream x_line, y_line;
  double            theta, scale;
  uint64_t          rotary_count, dim;
} rope;

static uint64_t dim_of(const tm_operand *x) { return x->dims[x->rank - 1]; }

static uint64_t rotary_count_of(const tm_operation *operation) {
  const tm_rope_attributes *attributes = operation->attributes;
  return attributes->rotary_dims != 0 ? attributes->rotary_dims : dim_of(&operation->operands[X]);
}

/* Of 64 bits the low 32 count. */
static double position_at(const rope *r, uint64_t token) {
  const tm_element_stream stream = tm_stream_along(r->positions, 0);
  int64_t position;
  tm_stream_load_integer(&stream, r->positions_address + (int64_t)token * stream.step_bytes, 1, &position);
  const uint32_t low = (uint32_t)(uint64_t)position;
  return low < UINT32_C(0x80000000) ? (double)low : (double)low - 0x1p32;
}

static void rotate(const rope *r, uint64_t first, uint64_t n, double position, double *a, double *b) {
  for (uint64_t i = 0; i < n; i++) {
    const double power = -2.0 * (double)(first + i) / (double)r->rotary_count;
    const double angle = position * r->scale * pow(r->theta, power);
    const double cosine = cos(angle), sine = sin(angle);
    const double turned = a[i] * cosine - b[i] * sine;
    b[i] = a[i] * sine + b[i] * cosine;
    a[i] = turned;
  }
}

static void rotate_pairs(const rope *r, const char *x, char *y, double position) {
  double a[TM_RUN], b[TM_RUN];
  const uint64_t pairs = r->rotary_count / 2;
  for (uint64_t at = 0, n; at < pairs; at += n) {
    n = tm_min_u64(TM_RUN, pairs - at);
    const char *from = x + (int64_t)at * r->x.elements.step_bytes;
    char *to = y + (int64_t)at * r->y.elements.step_bytes;
    tm_stream_load(&r->x.elements, from, n, a);
    tm_stream_load(&r->x.elements, from + r->x.second_bytes, n, b);
    rotate(r, at, n, position, a, b);
    tm_stream_store(&r->y.elements, a, n, to);
    tm_stream_store(&r->y.elements, b, n, to + r->y.second_bytes);
  }
}

static void pass_rest(const rope *r, const char *x, char *y) {
  double values[TM_RUN];
  for (uint64_t at = r->rotary_count, n; at < r->dim; at += n) {
    n = tm_min_u64(TM_RUN, r->dim - at);
    tm_stream_load(&r->x_line, x + (int64_t)at * r->x_line.step_bytes, n, values);
    tm_stream_store(&r->y_line, values, n, y + (int64_t)at * r->y_line.step_bytes);
  }
}

static pair_streams pair_streams_of(const tm_operation *operation, const tm_operand *operand) {
  const tm_rope_attributes *attributes = operation->attributes;
  pair_streams streams = { .elements = tm_stream_along(operand, operand->rank - 1) };
  const int64_t step = streams.elements.step_bytes;
  if (attributes->layout == TM_ROPE_HALVES) {
    streams.second_bytes = (int64_t)(rotary_count_of(operation) / 2) * step;
    return streams;
  }
  streams.second_bytes = step;
  streams.elements.step_bytes = 2 * step;
  return streams;
}

static rope rope_of(const tm_operation *operation, void *const *pointers) {
  const tm_rope_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[X];
  const tm_operand *y = tm_output_of(operation);
  rope r = { .positions = &operation->operands[POSITIONS],
             .positions_address = pointers[POSITIONS],
             .theta = attributes->theta != 0 ? attributes->theta : USUAL_THETA,
             .scale = attributes->scale != 0 ? attributes->scale : 1,
             .rotary_count = rotary_count_of(operation),
             .dim = dim_of(x) };
  r.x = pair_streams_of(operation, x);
  r.y = pair_streams_of(operation, y);
  r.x_line = tm_stream_along(x, x->rank - 1);
  r.y_line = tm_stream_along(y, y->rank - 1);
  return r;
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  tm_operand rows[2] = { operation->operands[X], *tm_output_of(operation) };
  void *const row_pointers[2] = { pointers[X], pointers[operation->input_count] };
  for (uint32_t i = 0; i < 2; i++) rows[i].rank--;
  const uint32_t token_axis = rows[0].rank - 2;
  const rope r = rope_of(operation, pointers);
  tm_walk walk = tm_walk_begin(&rows[0], rows, row_pointers, 2, begin);
  for (uint64_t unit = begin; unit < end; unit++) {
    rotate_pairs(&r, walk.addresses[0], walk.addresses[1], position_at(&r, walk.index[token_axis]));
    pass_rest(&r, walk.addresses[0], walk.addresses[1]);
    tm_walk_advance(&walk, 1);
  }
}

/* ---- shapes ---- */

static tm_status require_rotation(const tm_operation *operation, tm_error *error) {
  const tm_rope_attributes *attributes = operation->attributes;
  if (!isfinite(attributes->theta) || attributes->theta < 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "rope: theta is %g, expected a finite number above 0, or 0 for %g",
                   attributes->theta, USUAL_THETA);
  if (!isfinite(attributes->scale))
    return tm_fail(error, TM_ERROR_ARGUMENT, "rope: scale is %g, expected a finite number, or 0 for 1", attributes->scale);
  return tm_require_switch(operation, "layout", attributes->layout, error);
}

static tm_status require_rotary_dims(const tm_operation *operation, tm_error *error) {
  const uint64_t dim = dim_of(&operation->operands[X]);
  const uint64_t count = rotary_count_of(operation);
  if (count % 2 == 0 && count <= dim) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "rope: %llu elements of each head turn, expected an even number of at most %llu",
                 (unsigned long long)count, (unsigned long long)dim);
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_operand *x = &operation->operands[X];
  TM_TRY(tm_require_format(operation, X, TM_SET_FLOAT, error));
  TM_TRY(tm_require_index_format(operation, POSITIONS, error));
  if (x->rank < 3)
    return tm_fail(error, TM_ERROR_ARGUMENT, "rope: x has rank %u, expected at least 3: tokens, heads, dim", (unsigned)x->rank);
  TM_TRY(tm_require_dims(operation, POSITIONS, 1, &x->dims[x->rank - 3], error));
  TM_TRY(require_rotation(operation, error));
  TM_TRY(require_rotary_dims(operation, error));
  TM_TRY(tm_choose_format(operation, x->format, TM_SET_FLOAT, out_outputs, error));
  return tm_make_output(operation, x->rank, x->dims, out_outputs, error);
}

static uint64_t units(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[X];
  return x->element_count == 0 ? 0 : x->element_count / dim_of(x);
}

/* A pair costs an angle, its sine and cosine, and six simple operations. */
static void work(const tm_operation *operation, tm_work *out_work) {
  tm_work_of(operation, tm_saturating_mul(operation->operands[X].element_count, 16), out_work);
}

static uint32_t splittable(const tm_operation *operation) { return tm_axis_mask(operation->operands[X].rank - 1); }

const tm_op_row tm_op_rows_rope[] = {
    {.op = TM_OP_ROPE,
     .version = 1,
     .name = "rope",
     .summary = "pairs of each head's elements turned by their token's position; y: x's format or any float",
     .op_class = TM_CLASS_TRANSCENDENTAL,
     .input_min = 2,
     .input_max = 2,
     .output_count = 1,
     .attribute_bytes = sizeof(tm_rope_attributes),
     .default_numerics = TM_NUMERICS_N2,
     .combine = TM_COMBINE_CONCATENATE,
     .pad_value = (double)NAN,
     .infer = infer,
     .check = tm_check_outputs,
     .work = work,
     .splittable = splittable,
     .units = units,
     .reference = reference,
     .input_names = {"x", "positions"},
     .may_alias = 0x1},
};
TM_OP_ROWS_COUNT(rope);
