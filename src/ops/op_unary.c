/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise operations with one operand.  Floats: computed in f64 with the C library's functions and rounded once.
 * neg, abs and relu keep a NaN's payload; any other result that is NaN has no defined sign and payload.
 */
#include <math.h>
#include <stddef.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"

static double sigmoid_of(double x) {
  if (x >= 0) return 1 / (1 + exp(-x));
  const double e = exp(x);              /* exp(-x) would overflow long before the result underflows */
  return e / (1 + e);
}

static double silu_of(double x) {
  if (x >= 0) return x / (1 + exp(-x));
  const double e = exp(x);
  return x * e / (1 + e);
}

/* x * Phi(x); erfc keeps the digits of the lower tail that 1 + erf would cancel. */
static double gelu_of(double x) {
  const double root_half = 0.70710678118654752440;
  return 0.5 * x * erfc(-x * root_half);
}

/* 0.5 * (1 + tanh(u)) is sigmoid(2u), without the cancellation. */
static double gelu_tanh_of(double x) {
  const double root_two_over_pi = 0.79788456080286535588;
  return x * sigmoid_of(2 * root_two_over_pi * (x + 0.044715 * x * x * x));
}

/* copysign and negation act on the sign bit alone, also of a NaN. */
#define FLOAT_KERNEL(name, expression)                                       \
  static void name##_floats(uint64_t count, const double *in, double *out_y) { \
    for (uint64_t i = 0; i < count; i++) {                                   \
      const double x = in[i];                                                \
      out_y[i] = (expression);                                               \
    }                                                                        \
  }

FLOAT_KERNEL(neg, copysign(x, signbit(x) ? 1.0 : -1.0))
FLOAT_KERNEL(abs, copysign(x, 1.0))
FLOAT_KERNEL(relu, x < 0 ? 0.0 : x)
FLOAT_KERNEL(sqrt, sqrt(x))
FLOAT_KERNEL(exp, exp(x))
FLOAT_KERNEL(log, log(x))
FLOAT_KERNEL(tanh, tanh(x))
FLOAT_KERNEL(sigmoid, sigmoid_of(x))
FLOAT_KERNEL(erf, erf(x))
FLOAT_KERNEL(gelu, gelu_of(x))
FLOAT_KERNEL(gelu_tanh, gelu_tanh_of(x))
FLOAT_KERNEL(silu, silu_of(x))

#define INTEGER_KERNEL(name, expression)                                          \
  static void name##_integers(uint64_t count, const int64_t *in, int64_t *out_y) { \
    for (uint64_t i = 0; i < count; i++) {                                        \
      const int64_t x = in[i];                                                    \
      out_y[i] = (expression);                                                    \
    }                                                                             \
  }

INTEGER_KERNEL(neg, (int64_t)(UINT64_C(0) - (uint64_t)x))
INTEGER_KERNEL(abs, x < 0 ? (int64_t)(UINT64_C(0) - (uint64_t)x) : x)
INTEGER_KERNEL(relu, x < 0 ? 0 : x)

typedef struct unary_kernel {
  uint32_t op;
  void (*floats)(uint64_t count, const double *in, double *out_y);
  void (*integers)(uint64_t count, const int64_t *in, int64_t *out_y);  /* NULL: floats only; signed formats only */
} unary_kernel;

static const unary_kernel kernels[] = {
  { TM_OP_NEG, neg_floats, neg_integers },
  { TM_OP_ABS, abs_floats, abs_integers },
  { TM_OP_RELU, relu_floats, relu_integers },
  { TM_OP_SQRT, sqrt_floats, NULL },
  { TM_OP_EXP, exp_floats, NULL },
  { TM_OP_LOG, log_floats, NULL },
  { TM_OP_TANH, tanh_floats, NULL },
  { TM_OP_SIGMOID, sigmoid_floats, NULL },
  { TM_OP_ERF, erf_floats, NULL },
  { TM_OP_GELU, gelu_floats, NULL },
  { TM_OP_SILU, silu_floats, NULL },
};

static const unary_kernel gelu_tanh_kernel = { TM_OP_GELU, gelu_tanh_floats, NULL };

static const unary_kernel *kernel_of(const tm_operation *operation) {
  const tm_gelu_attributes *attributes = operation->attributes;
  if (operation->op == TM_OP_GELU && attributes->tanh_form) return &gelu_tanh_kernel;
  const unary_kernel *kernel = kernels;
  while (kernel->op != operation->op) kernel++;
  return kernel;
}

static void run_floats(const unary_kernel *kernel, tm_walk *walk, uint64_t count) {
  double x[TM_RUN], y[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load(&walk->streams[0], walk->addresses[0], n, x);
    kernel->floats(n, x, y);
    tm_stream_store(&walk->streams[1], y, n, walk->addresses[1]);
    tm_walk_advance(walk, n);
  }
}

static void run_integers(const unary_kernel *kernel, tm_walk *walk, uint64_t count) {
  int64_t x[TM_RUN], y[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load_integer(&walk->streams[0], walk->addresses[0], n, x);
    kernel->integers(n, x, y);
    tm_stream_store_integer(&walk->streams[1], y, n, walk->addresses[1]);
    tm_walk_advance(walk, n);
  }
}

/* Unsigned numbers are never below zero: abs and relu keep their bits, and u64 must not be taken for a negative one. */
static bool keeps_bits(const tm_operation *operation) {
  return tm_format_find(operation->operands[0].format)->kind == TM_KIND_UNSIGNED && operation->op != TM_OP_NEG;
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const unary_kernel *kernel = kernel_of(operation);
  tm_walk walk = tm_walk_begin(tm_output_of(operation), operation->operands, pointers, 2, begin);
  if (tm_format_set(operation->operands[0].format) == TM_SET_FLOAT) run_floats(kernel, &walk, end - begin);
  else if (keeps_bits(operation)) tm_walk_copy(&walk, end - begin);
  else run_integers(kernel, &walk, end - begin);
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  if (operation->op == TM_OP_GELU) {
    const tm_gelu_attributes *attributes = operation->attributes;
    TM_TRY(tm_require_switch(operation, "tanh_form", attributes->tanh_form, error));
    TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  }
  const tm_operand *x = &operation->operands[0];
  TM_TRY(tm_require_format(operation, 0, kernel_of(operation)->integers != NULL ? TM_SET_NUMBER : TM_SET_FLOAT, error));
  TM_TRY(tm_choose_input_format(operation, 0, out_outputs, error));
  return tm_make_output(operation, x->rank, x->dims, out_outputs, error);
}

#define UNARY_ROW(id, op_name, text, class, numerics, bytes)                                                        \
  {                                                                                                                 \
    .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_##class, .input_min = 1, \
    .input_max = 1, .output_count = 1, .attribute_bytes = bytes, .default_numerics = TM_NUMERICS_##numerics,        \
    .combine = TM_COMBINE_CONCATENATE, .infer = infer, .check = tm_check_outputs, .work = tm_work_elementwise,      \
    .splittable = tm_splittable_elementwise, .units = tm_units_elementwise, .reference = reference,                 \
    .input_names = {"x"}, .merged_operands = 0x3, .may_alias = 0x1,                                                 \
  }

const tm_op_row tm_op_rows_unary[] = {
  UNARY_ROW(NEG, "neg", "-x; integers wrap", ELEMENTWISE, N0, 0),
  UNARY_ROW(ABS, "abs", "|x|; integers wrap", ELEMENTWISE, N0, 0),
  UNARY_ROW(SQRT, "sqrt", "square root, correctly rounded", ELEMENTWISE, N0, 0),
  UNARY_ROW(EXP, "exp", "e to the x", TRANSCENDENTAL, N1, 0),
  UNARY_ROW(LOG, "log", "natural logarithm", TRANSCENDENTAL, N1, 0),
  UNARY_ROW(TANH, "tanh", "hyperbolic tangent", TRANSCENDENTAL, N1, 0),
  UNARY_ROW(SIGMOID, "sigmoid", "1 / (1 + exp(-x))", TRANSCENDENTAL, N1, 0),
  UNARY_ROW(ERF, "erf", "error function", TRANSCENDENTAL, N1, 0),
  UNARY_ROW(GELU, "gelu", "x * Phi(x), or its tanh form", TRANSCENDENTAL, N1, sizeof(tm_gelu_attributes)),
  UNARY_ROW(SILU, "silu", "x * sigmoid(x)", TRANSCENDENTAL, N1, 0),
  UNARY_ROW(RELU, "relu", "x < 0 ? 0 : x", ELEMENTWISE, N0, 0),
};
TM_OP_ROWS_COUNT(unary);
