/* SPDX-License-Identifier: Apache-2.0 */
/* Everything is computed in f64 and rounded once; what only moves bits keeps them. */
#include "sim_loops.h"

#include <math.h>
#include <string.h>

#include "sim_matmul.h"
#include "sim_number.h"

static const tm_operand *output_of(const sim_task *task) { return &task->operands[task->count - 1]; }

/* ---- moving bits ---- */

static uint64_t element_bytes(const sim_task *task) { return sim_format_find(task->operands[0].format)->bytes; }

static void run_copy(const sim_task *task) {
  memcpy(task->data[1], task->data[0], output_of(task)->element_count * element_bytes(task));
}

static double largest_of(uint32_t format) {
  return format == TM_FORMAT_F16 ? 65504 : format == TM_FORMAT_BF16 ? 0x1.fep127 : 0x1.fffffep127;
}

/* A finite value beyond the largest one becomes that where it saturates, else what rounding makes of it. */
static void run_cast(const sim_task *task) {
  const uint32_t format = output_of(task)->format;
  const double largest = largest_of(format);
  tm_cast_attributes attributes;
  memcpy(&attributes, task->attributes, sizeof attributes);
  if (format == task->operands[0].format) run_copy(task);
  for (uint64_t i = 0; format != task->operands[0].format && i < output_of(task)->element_count; i++) {
    const double x = sim_load(task->operands[0].format, task->data[0], i);
    const int is_cut = attributes.saturate != 0 && isfinite(x) && fabs(x) > largest;
    sim_store(format, task->data[1], i, is_cut ? copysign(largest, x) : x);
  }
}

/* The byte with the sign is the last one.  Only floats come here. */
static void run_sign(const sim_task *task) {
  const uint64_t bytes = element_bytes(task);
  unsigned char *y = task->data[1];
  run_copy(task);
  for (uint64_t at = bytes - 1; at < output_of(task)->element_count * bytes; at += bytes)
    y[at] = task->op == TM_OP_NEG ? y[at] ^ 0x80u : y[at] & 0x7fu;
}

static void run_relu(const sim_task *task) {
  const uint64_t bytes = element_bytes(task);
  run_copy(task);
  for (uint64_t i = 0; i < output_of(task)->element_count; i++)
    if (sim_load(task->operands[0].format, task->data[0], i) < 0) memset((char *)task->data[1] + i * bytes, 0, bytes);
}

static void run_clamp(const sim_task *task) {
  const uint64_t bytes = element_bytes(task);
  const uint32_t format = task->operands[0].format;
  for (uint64_t i = 0; i < output_of(task)->element_count; i++) {
    const double x = sim_load(format, task->data[0], i);
    const uint32_t from = x < sim_load(format, task->data[1], i) ? 1 : x > sim_load(format, task->data[2], i) ? 2 : 0;
    memcpy((char *)task->data[3] + i * bytes, (const char *)task->data[from] + i * bytes, bytes);
  }
}

/* ---- elementwise arithmetic ---- */

static double binary(uint32_t op, double a, double b) {
  switch (op) {
    case TM_OP_ADD: return a + b;
    case TM_OP_SUB: return a - b;
    case TM_OP_MUL: return a * b;
    default: return a / b;
  }
}

static void run_binary(const sim_task *task) {
  const uint32_t format = output_of(task)->format;
  for (uint64_t i = 0; i < output_of(task)->element_count; i++)
    sim_store(format, task->data[2], i, binary(task->op, sim_load(format, task->data[0], i), sim_load(format, task->data[1], i)));
}

/* e^-|x| cannot overflow. */
static double sigmoid_of(double x) {
  const double small = exp(-fabs(x));
  return x >= 0 ? 1 / (1 + small) : small / (1 + small);
}

static double gelu_of(double x, int tanh_form) {
  const double two_root_two_over_pi = 1.59576912160573071176, root_half = 0.70710678118654752440;
  return tanh_form ? x * sigmoid_of(two_root_two_over_pi * (x + 0.044715 * x * x * x)) : 0.5 * x * erfc(-x * root_half);
}

static double unary(const sim_task *task, double x) {
  tm_gelu_attributes gelu;
  memcpy(&gelu, task->attributes, sizeof gelu);
  switch (task->op) {
    case TM_OP_SQRT: return sqrt(x);
    case TM_OP_EXP: return exp(x);
    case TM_OP_LOG: return log(x);
    case TM_OP_TANH: return tanh(x);
    case TM_OP_SIGMOID: return sigmoid_of(x);
    case TM_OP_ERF: return erf(x);
    case TM_OP_GELU: return gelu_of(x, gelu.tanh_form != 0);
    default: return x * sigmoid_of(x);
  }
}

static void run_unary(const sim_task *task) {
  const uint32_t format = output_of(task)->format;
  for (uint64_t i = 0; i < output_of(task)->element_count; i++)
    sim_store(format, task->data[1], i, unary(task, sim_load(format, task->data[0], i)));
}

/* ---- along an axis ---- */

/* A line of a dense operand: every `step`th of `count` elements from `first`. */
typedef struct line {
  uint64_t first;
  uint64_t step;
  uint64_t count;
} line;

static line line_of(const tm_operand *x, uint32_t axis, uint64_t number) {
  line l = { .step = 1, .count = x->dims[axis] };
  for (uint32_t i = axis + 1; i < x->rank; i++) l.step *= x->dims[i];
  l.first = number / l.step * l.step * l.count + number % l.step;
  return l;
}

static double at(const sim_task *task, line l, uint64_t i) {
  return sim_load(task->operands[0].format, task->data[0], l.first + i * l.step);
}

static void softmax_line(const sim_task *task, line l) {
  double largest = -HUGE_VAL, sum = 0;
  for (uint64_t i = 0; i < l.count; i++) largest = fmax(largest, at(task, l, i));
  for (uint64_t i = 0; i < l.count; i++) sum += exp(at(task, l, i) - largest);
  for (uint64_t i = 0; i < l.count; i++)
    sim_store(output_of(task)->format, task->data[1], l.first + i * l.step, exp(at(task, l, i) - largest) / sum);
}

static void rms_line(const sim_task *task, line l) {
  tm_norm_attributes attributes;
  double squares = 0;
  memcpy(&attributes, task->attributes, sizeof attributes);
  for (uint64_t i = 0; i < l.count; i++) squares += at(task, l, i) * at(task, l, i);
  const double root = sqrt(squares / (double)l.count + attributes.epsilon);
  for (uint64_t i = 0; i < l.count; i++)
    sim_store(output_of(task)->format, task->data[2], l.first + i,
              at(task, l, i) / root * sim_load(task->operands[1].format, task->data[1], i));
}

static void run_lines(const sim_task *task) {
  const tm_operand *x = &task->operands[0];
  tm_axis_attributes attributes;
  memcpy(&attributes, task->attributes, sizeof attributes);
  const uint32_t axis = task->op == TM_OP_SOFTMAX ? attributes.axis : x->rank - 1;
  for (uint64_t i = 0; x->element_count != 0 && i < x->element_count / x->dims[axis]; i++) {
    if (task->op == TM_OP_SOFTMAX) softmax_line(task, line_of(x, axis, i));
    else rms_line(task, line_of(x, axis, i));
  }
}

/* Where element `index` of the sums takes its first term from, axis by axis; reduced ones are walked by add_up. */
static uint64_t first_term(const tm_operand *x, uint32_t axes, uint64_t index) {
  uint64_t offset = 0, step = 1;
  for (uint32_t axis = x->rank; axis-- > 0; step *= x->dims[axis]) {
    if ((axes >> axis & 1u) != 0) continue;
    offset += index % x->dims[axis] * step;
    index /= x->dims[axis];
  }
  return offset;
}

static double add_up(const sim_task *task, uint32_t axes, uint32_t axis, uint64_t offset) {
  const tm_operand *x = &task->operands[0];
  double sum = 0;
  while (axis < x->rank && (axes >> axis & 1u) == 0) axis++;
  if (axis == x->rank) return sim_load(x->format, task->data[0], offset);
  const line l = line_of(x, axis, 0);
  for (uint64_t i = 0; i < l.count; i++) sum += add_up(task, axes, axis + 1, offset + i * l.step);
  return sum;
}

static void run_sum(const sim_task *task) {
  tm_reduce_attributes attributes;
  memcpy(&attributes, task->attributes, sizeof attributes);
  for (uint64_t i = 0; i < output_of(task)->element_count; i++) {
    const uint64_t first = first_term(&task->operands[0], attributes.axes, i);
    sim_store(output_of(task)->format, task->data[1], i, add_up(task, attributes.axes, 0, first));
  }
}

/* ---- the table ---- */

#define KEEPS (TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE)
#define EXACT { TM_NUMERICS_N0, KEEPS, 0, 0, 0 }
#define ROUNDED { TM_NUMERICS_N1, KEEPS, 1, 0, 0 }
#define SUMMED { TM_NUMERICS_N2, TM_NUMERICS_RUN_TO_RUN, 0.51, TM_GROWTH_LINEAR, TM_FORMAT_F64 }

static const sim_loop loops[] = {
  { "copy", TM_OP_COPY, 2, 0, 0, 1, EXACT, run_copy, SIM_CLASS_MOVE, 0 },
  { "cast", TM_OP_CAST, 2, sizeof(tm_cast_attributes), 1, 1, EXACT, run_cast, SIM_CLASS_CAST, 1 },
  { "add", TM_OP_ADD, 3, 0, 1, 1, EXACT, run_binary, SIM_CLASS_ELEMENTWISE, 1 },
  { "sub", TM_OP_SUB, 3, 0, 1, 1, EXACT, run_binary, SIM_CLASS_ELEMENTWISE, 1 },
  { "mul", TM_OP_MUL, 3, 0, 1, 1, EXACT, run_binary, SIM_CLASS_ELEMENTWISE, 1 },
  { "div", TM_OP_DIV, 3, 0, 4, 1, EXACT, run_binary, SIM_CLASS_ELEMENTWISE, 1 },
  { "neg", TM_OP_NEG, 2, 0, 1, 1, EXACT, run_sign, SIM_CLASS_ELEMENTWISE, 1 },
  { "abs", TM_OP_ABS, 2, 0, 1, 1, EXACT, run_sign, SIM_CLASS_ELEMENTWISE, 1 },
  { "relu", TM_OP_RELU, 2, 0, 1, 1, EXACT, run_relu, SIM_CLASS_ELEMENTWISE, 1 },
  { "clamp", TM_OP_CLAMP, 4, 0, 2, 1, EXACT, run_clamp, SIM_CLASS_ELEMENTWISE, 1 },
  { "sqrt", TM_OP_SQRT, 2, 0, 4, 1, EXACT, run_unary, SIM_CLASS_ELEMENTWISE, 1 },
  { "exp", TM_OP_EXP, 2, 0, 10, 1, ROUNDED, run_unary, SIM_CLASS_TRANSCENDENTAL, 16 },
  { "log", TM_OP_LOG, 2, 0, 10, 1, ROUNDED, run_unary, SIM_CLASS_TRANSCENDENTAL, 16 },
  { "tanh", TM_OP_TANH, 2, 0, 12, 1, ROUNDED, run_unary, SIM_CLASS_TRANSCENDENTAL, 16 },
  { "sigmoid", TM_OP_SIGMOID, 2, 0, 12, 1, ROUNDED, run_unary, SIM_CLASS_TRANSCENDENTAL, 16 },
  { "erf", TM_OP_ERF, 2, 0, 15, 1, ROUNDED, run_unary, SIM_CLASS_TRANSCENDENTAL, 16 },
  { "gelu", TM_OP_GELU, 2, sizeof(tm_gelu_attributes), 20, 1, ROUNDED, run_unary, SIM_CLASS_TRANSCENDENTAL, 16 },
  { "silu", TM_OP_SILU, 2, 0, 13, 1, ROUNDED, run_unary, SIM_CLASS_TRANSCENDENTAL, 16 },
  { "sum", TM_OP_SUM, 2, sizeof(tm_reduce_attributes), 1, 0, SUMMED, run_sum, SIM_CLASS_REDUCE, 1 },
  { "softmax", TM_OP_SOFTMAX, 2, sizeof(tm_axis_attributes), 24, 1, ROUNDED, run_lines, SIM_CLASS_NORMALIZE, 34 },
  { "rms_norm", TM_OP_RMS_NORM, 3, sizeof(tm_norm_attributes), 5, 0, ROUNDED, run_lines, SIM_CLASS_NORMALIZE, 8 },
  { "matmul", TM_OP_MATMUL, 3, sizeof(tm_matmul_attributes), 0, 0, EXACT, sim_matmul_run, SIM_CLASS_MATMUL, 0 },
  { "convert", TM_OP_CONVERT, 2, 0, 0, 0, EXACT, sim_pack_run, SIM_CLASS_MOVE, 0 },
};
#define LOOPS (sizeof loops / sizeof loops[0])

const sim_loop *sim_loop_at(uint32_t index) { return index < LOOPS ? &loops[index] : NULL; }

const sim_loop *sim_loop_find(uint32_t op) {
  for (size_t i = 0; i < LOOPS; i++)
    if (loops[i].op == op) return &loops[i];
  return NULL;
}

const sim_loop *sim_loop_by_name(const char *name) {
  for (size_t i = 0; i < LOOPS; i++)
    if (strcmp(loops[i].name, name) == 0) return &loops[i];
  return NULL;
}
