/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax, layer_norm, rms_norm.  A unit is a row along the axis.  All sums run along the row in f64 and each result is
 * rounded once; a row with a value that is not finite spreads NaN by the ordinary rules.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"

#define X 0u
#define SCALE 1u
#define SHIFT 2u

/* One row of x and where its results go. */
typedef struct row {
  const tm_operation *operation;
  void *const        *pointers;
  tm_element_stream   x, y;
  const char         *x_address;
  char               *y_address;
  uint64_t            count;
} row;

static uint64_t load(const row *r, uint64_t at, double *values) {
  const uint64_t n = tm_min_u64(TM_RUN, r->count - at);
  tm_stream_load(&r->x, r->x_address + (int64_t)at * r->x.step_bytes, n, values);
  return n;
}

static void store(const row *r, uint64_t at, uint64_t n, const double *values) {
  tm_stream_store(&r->y, values, n, r->y_address + (int64_t)at * r->y.step_bytes);
}

/* ---- softmax ---- */

/* NaN is passed over here: it comes back through every exponential. */
static double largest_of(const row *r) {
  double values[TM_RUN];
  double largest = -(double)INFINITY;
  for (uint64_t at = 0, n; at < r->count; at += n) {
    n = load(r, at, values);
    for (uint64_t i = 0; i < n; i++) largest = values[i] > largest ? values[i] : largest;
  }
  return largest;
}

static double sum_of_exponentials(const row *r, double largest) {
  double values[TM_RUN];
  double sum = 0;
  for (uint64_t at = 0, n; at < r->count; at += n) {
    n = load(r, at, values);
    for (uint64_t i = 0; i < n; i++) sum += exp(values[i] - largest);
  }
  return sum;
}

static void softmax_row(const row *r) {
  double values[TM_RUN];
  const double largest = largest_of(r);
  const double sum = sum_of_exponentials(r, largest);
  for (uint64_t at = 0, n; at < r->count; at += n) {
    n = load(r, at, values);
    for (uint64_t i = 0; i < n; i++) values[i] = exp(values[i] - largest) / sum;
    store(r, at, n, values);
  }
}

/* ---- norms ---- */

static double mean_of(const row *r) {
  double values[TM_RUN];
  double sum = 0;
  for (uint64_t at = 0, n; at < r->count; at += n) {
    n = load(r, at, values);
    for (uint64_t i = 0; i < n; i++) sum += values[i];
  }
  return sum / (double)r->count;
}

/* Mean of (x - centre)^2. */
static double mean_square_of(const row *r, double centre) {
  double values[TM_RUN];
  double sum = 0;
  for (uint64_t at = 0, n; at < r->count; at += n) {
    n = load(r, at, values);
    for (uint64_t i = 0; i < n; i++) sum += (values[i] - centre) * (values[i] - centre);
  }
  return sum / (double)r->count;
}

static void load_weights(const row *r, uint32_t input, uint64_t at, uint64_t n, double *values) {
  const tm_element_stream stream = tm_stream_along(&r->operation->operands[input], 0);
  const char *address = r->pointers[input];
  tm_stream_load(&stream, address + (int64_t)at * stream.step_bytes, n, values);
}

static void norm_row(const row *r) {
  const tm_norm_attributes *attributes = r->operation->attributes;
  const bool is_layer_norm = r->operation->op == TM_OP_LAYER_NORM;
  const double centre = is_layer_norm ? mean_of(r) : 0;
  const double deviation = sqrt(mean_square_of(r, centre) + attributes->epsilon);
  double values[TM_RUN], scale[TM_RUN];
  double shift[TM_RUN] = { 0 };
  for (uint64_t at = 0, n; at < r->count; at += n) {
    n = load(r, at, values);
    load_weights(r, SCALE, at, n, scale);
    if (is_layer_norm) load_weights(r, SHIFT, at, n, shift);
    for (uint64_t i = 0; i < n; i++) {
      const double normal = (values[i] - centre) / deviation * scale[i];
      values[i] = is_layer_norm ? normal + shift[i] : normal;
    }
    store(r, at, n, values);
  }
}

/* ---- rows of x ---- */

static uint32_t axis_of(const tm_operation *operation) {
  if (operation->op != TM_OP_SOFTMAX) return operation->operands[X].rank - 1;
  const tm_axis_attributes *attributes = operation->attributes;
  return attributes->axis;
}

static tm_operand without_axis(const tm_operand *operand, uint32_t axis) {
  tm_operand rest = *operand;
  for (uint32_t i = axis; i + 1 < rest.rank; i++) {
    rest.dims[i] = rest.dims[i + 1];
    rest.strides_bytes[i] = rest.strides_bytes[i + 1];
  }
  rest.rank--;
  return rest;
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const uint32_t axis = axis_of(operation);
  const tm_operand *x = &operation->operands[X];
  const tm_operand *y = tm_output_of(operation);
  const tm_operand rows[2] = { without_axis(x, axis), without_axis(y, axis) };
  void *const row_pointers[2] = { pointers[X], pointers[operation->input_count] };
  tm_walk walk = tm_walk_begin(&rows[0], rows, row_pointers, 2, begin);
  row r = { .operation = operation, .pointers = pointers, .count = x->dims[axis] };
  r.x = tm_stream_along(x, axis);
  r.y = tm_stream_along(y, axis);
  for (uint64_t unit = begin; unit < end; unit++) {
    r.x_address = walk.addresses[0];
    r.y_address = walk.addresses[1];
    (operation->op == TM_OP_SOFTMAX ? softmax_row : norm_row)(&r);
    tm_walk_advance(&walk, 1);
  }
}

/* ---- shapes ---- */

static tm_status make_output_like_x(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_operand *x = &operation->operands[X];
  TM_TRY(tm_choose_format(operation, x->format, TM_SET_FLOAT, out_outputs, error));
  return tm_make_output(operation, x->rank, x->dims, out_outputs, error);
}

static tm_status softmax_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_axis_attributes *attributes = operation->attributes;
  TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  TM_TRY(tm_require_format(operation, X, TM_SET_FLOAT, error));
  TM_TRY(tm_require_axis(operation, X, attributes->axis, error));
  return make_output_like_x(operation, out_outputs, error);
}

static tm_status norm_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_norm_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[X];
  if (!(attributes->epsilon >= 0) || isinf(attributes->epsilon))
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: epsilon is %g, expected a finite number that is not negative",
                   tm_op_name(operation), attributes->epsilon);
  TM_TRY(tm_require_axis(operation, X, 0, error));
  for (uint32_t i = 0; i < operation->input_count; i++) TM_TRY(tm_require_format(operation, i, TM_SET_FLOAT, error));
  for (uint32_t i = SCALE; i < operation->input_count; i++)
    TM_TRY(tm_require_dims(operation, i, 1, &x->dims[x->rank - 1], error));
  return make_output_like_x(operation, out_outputs, error);
}

static uint64_t units(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[X];
  return x->element_count == 0 ? 0 : x->element_count / x->dims[axis_of(operation)];
}

/* An element of a softmax costs an exponential twice; one of a norm about eight simple operations. */
static void work(const tm_operation *operation, tm_work *out_work) {
  const uint64_t each = operation->op == TM_OP_SOFTMAX ? 34 : 8;
  tm_work_of(operation, tm_saturating_mul(operation->operands[X].element_count, each), out_work);
}

static uint32_t splittable(const tm_operation *operation) {
  return tm_axis_mask(operation->operands[X].rank) & ~(1u << axis_of(operation));
}

#define NORMALIZE_ROW(id, op_name, text, inputs, infer_fn, attributes_type, padding, ...)                      \
  {                                                                                                            \
    .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_NORMALIZE,          \
    .input_min = inputs, .input_max = inputs, .output_count = 1, .attribute_bytes = sizeof(attributes_type),   \
    .default_numerics = TM_NUMERICS_N2, .combine = TM_COMBINE_CONCATENATE, .infer = infer_fn,                  \
    .check = tm_check_outputs, .work = work, .splittable = splittable, .units = units, .reference = reference, \
    .input_names = {__VA_ARGS__}, .pad_value = padding, .may_alias = 0x1,                                      \
  }

const tm_op_row tm_op_rows_normalize[] = {
    NORMALIZE_ROW(SOFTMAX, "softmax",
                  "exp(x) over its sum along an axis; y: x's format or any float", 1, softmax_infer, tm_axis_attributes,
                  -(double)INFINITY, "x"),
    NORMALIZE_ROW(LAYER_NORM, "layer_norm",
                  "(x - mean) / sqrt(variance + epsilon) * scale + shift over the last axis; y: x's format or any float",
                  3, norm_infer, tm_norm_attributes, (double)NAN, "x", "scale", "shift"),
    NORMALIZE_ROW(RMS_NORM, "rms_norm",
                  "x / sqrt(mean of squares + epsilon) * scale over the last axis; y: x's format or any float", 2, norm_infer,
                  tm_norm_attributes, (double)NAN, "x", "scale"),
};
TM_OP_ROWS_COUNT(normalize);
