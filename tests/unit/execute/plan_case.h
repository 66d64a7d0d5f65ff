/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_case.h - random graphs, and what they compute when each node is run by itself on the reference.  Values are matrices
 * of f32, so that any fits any; there are constants, views, states that are carried in every way, and outputs of all kinds.
 */
#ifndef TM_TESTS_PLAN_CASE_H
#define TM_TESTS_PLAN_CASE_H

#include <math.h>
#include <stdbool.h>

#include "unit/plugin/plugin_case.h"

#define PLAN_SIDE 8u
#define PLAN_CELLS (PLAN_SIDE * PLAN_SIDE)
#define PLAN_MOST_VALUES 256u
#define PLAN_INPUTS 2u
#define PLAN_STATES 2u
#define PLAN_OUTPUTS 3u

static const tm_operand plan_matrix = { .format = TM_FORMAT_F32, .rank = 2, .dims = { PLAN_SIDE, PLAN_SIDE } };

static inline uint32_t plan_random(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*seed >> 33);
}

static inline void plan_fill(tm_tensor *tensor, uint64_t seed) {
  float *values = tm_tensor_data(tensor);
  for (uint32_t i = 0; i < PLAN_CELLS; i++) values[i] = (float)((int32_t)(plan_random(&seed) % 2001u) - 1000) / 1000.0f;
}

static inline tm_tensor *plan_tensor(tm_context *context, uint64_t seed) {
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 2, plan_matrix.dims, &tensor, NULL), TM_OK);
  if (seed != 0) plan_fill(tensor, seed);
  return tensor;
}

typedef struct plan_case {
  tm_context *context;
  tm_graph   *graph;
  tm_plan    *plan;
  tm_tensor  *constant;
  tm_tensor  *inputs[PLAN_INPUTS];
  tm_tensor  *outputs[PLAN_OUTPUTS];
  uint32_t    states[PLAN_STATES];
  uint32_t    value_count;
} plan_case;

/* ---- building ---- */

static inline uint32_t plan_add_node(tm_graph *graph, uint32_t op, uint32_t a, uint32_t b) {
  const uint32_t inputs[2] = { a, b };
  const uint32_t count = op == TM_OP_ADD || op == TM_OP_SUB || op == TM_OP_MUL || op == TM_OP_MATMUL ? 2 : 1;
  tm_error error = TM_ERROR_INIT;
  uint32_t value = 0;
  if (tm_graph_node(graph, NULL, op, NULL, 0, inputs, count, NULL, 1, &value, &error) != TM_OK) fail_msg("no node: %s", error.text);
  return value;
}

static inline uint32_t plan_add_transposed(tm_graph *graph, uint32_t of) {
  const tm_operand view = {
    .format = TM_FORMAT_F32, .rank = 2, .dims = { PLAN_SIDE, PLAN_SIDE }, .strides_bytes = { 4, 4 * PLAN_SIDE }
  };
  tm_value_description base = { .struct_size = sizeof base };
  uint32_t value = of;
  assert_int_equal(tm_graph_value_describe(graph, of, &base), TM_OK);
  if (base.kind != TM_VALUE_VIEW) assert_int_equal(tm_graph_view(graph, of, &view, 0, &value, NULL), TM_OK);
  return value;
}

/* As many nodes as asked for, each of values made before. */
static inline void plan_case_build(plan_case *one, tm_context *context, uint64_t seed, uint32_t node_count) {
  static const uint32_t ops[] = { TM_OP_ADD,  TM_OP_SUB,  TM_OP_MUL,    TM_OP_NEG,    TM_OP_ABS,
                                  TM_OP_RELU, TM_OP_TANH, TM_OP_MATMUL, TM_OP_SOFTMAX };
  uint32_t values[PLAN_MOST_VALUES], count = 0;
  char name[8];
  memset(one, 0, sizeof *one);
  one->context = context;
  assert_int_equal(tm_graph_create(context, &one->graph, NULL), TM_OK);
  for (uint32_t i = 0; i < PLAN_INPUTS; i++) {
    snprintf(name, sizeof name, "x%u", i);
    assert_int_equal(tm_graph_input(one->graph, name, &plan_matrix, &values[count++], NULL), TM_OK);
    one->inputs[i] = plan_tensor(context, seed + i + 1);
  }
  one->constant = plan_tensor(context, seed + 77);
  assert_int_equal(tm_graph_constant(one->graph, "w", one->constant, &values[count++], NULL), TM_OK);
  for (uint32_t i = 0; i < PLAN_STATES; i++) {
    snprintf(name, sizeof name, "s%u", i);
    assert_int_equal(tm_graph_state(one->graph, name, &plan_matrix, &one->states[i], NULL), TM_OK);
    values[count++] = one->states[i];
  }
  for (uint32_t i = 0; i < node_count; i++) {
    const uint32_t a = values[plan_random(&seed) % count], b = values[plan_random(&seed) % count];
    values[count++] = plan_add_node(one->graph, ops[plan_random(&seed) % (sizeof ops / sizeof *ops)], a, b);
    if (plan_random(&seed) % 5 == 0) {
      const uint32_t made = values[count - 1];
      values[count++] = plan_add_transposed(one->graph, made);
    }
  }
  for (uint32_t i = 0; i < PLAN_STATES; i++)
    if (plan_random(&seed) % 4 != 0)
      assert_int_equal(tm_graph_carry(one->graph, one->states[i], values[plan_random(&seed) % count], NULL), TM_OK);
  for (uint32_t i = 0; i < PLAN_OUTPUTS; i++) {
    snprintf(name, sizeof name, "y%u", i);
    const uint32_t value = i == 0 ? values[count - 1] : values[plan_random(&seed) % count];
    assert_int_equal(tm_graph_output(one->graph, name, value, NULL), TM_OK);
    one->outputs[i] = plan_tensor(context, 0);
  }
  one->value_count = count;
}

static inline void plan_case_destroy(plan_case *one) {
  tm_plan_destroy(one->plan);
  tm_graph_destroy(one->graph);
  for (uint32_t i = 0; i < PLAN_OUTPUTS; i++) tm_tensor_destroy(one->outputs[i]);
  for (uint32_t i = 0; i < PLAN_INPUTS; i++) tm_tensor_destroy(one->inputs[i]);
  tm_tensor_destroy(one->constant);
}

/* ---- node by node on the reference ---- */

typedef struct plan_oracle {
  tm_tensor *values[PLAN_MOST_VALUES];
  tm_tensor *states[PLAN_STATES];
  uint32_t   count;
} plan_oracle;

static inline void plan_oracle_init(plan_oracle *oracle, const plan_case *one) {
  memset(oracle, 0, sizeof *oracle);
  for (uint32_t i = 0; i < PLAN_STATES; i++) oracle->states[i] = plan_tensor(one->context, 0);
}

static inline void plan_oracle_run_node(plan_oracle *oracle, const plan_case *one, uint32_t node) {
  tm_node_description what = { .struct_size = sizeof what };
  tm_tensor *inputs[2];
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(tm_graph_node_describe(one->graph, node, &what), TM_OK);
  for (uint32_t i = 0; i < what.input_count; i++) inputs[i] = oracle->values[what.inputs[i]];
  oracle->values[what.outputs[0]] = plan_tensor(one->context, 0);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT,
                                   .device_plus_one = device_of(one->context, "reference:0") + 1 };
  if (tm_run(one->context, what.op, what.attributes, what.attribute_bytes, inputs, what.input_count,
             &oracle->values[what.outputs[0]], 1, &options, &error) != TM_OK)
    fail_msg("the reference: %s", error.text);
}

static inline void plan_oracle_clear(plan_oracle *oracle, const plan_case *one) {
  tm_value_description value = { .struct_size = sizeof value };
  for (uint32_t i = oracle->count; i-- > 0;) {
    assert_int_equal(tm_graph_value_describe(one->graph, i, &value), TM_OK);
    if (value.kind == TM_VALUE_VIEW || value.kind == TM_VALUE_RESULT) tm_tensor_destroy(oracle->values[i]);
  }
  oracle->count = 0;
}

static inline void plan_copy(tm_tensor *from, tm_tensor *to) {
  const tm_operand *layout = tm_tensor_operand(from);
  const char *a = tm_tensor_data(from);
  float *b = tm_tensor_data(to);
  for (uint32_t i = 0; i < PLAN_CELLS; i++)
    memcpy(&b[i], a + (i / PLAN_SIDE) * (uint64_t)layout->strides_bytes[0] + (i % PLAN_SIDE) * (uint64_t)layout->strides_bytes[1],
           sizeof *b);
}

/* All values of one run, and the states after it. */
static inline void plan_oracle_run(plan_oracle *oracle, const plan_case *one) {
  tm_value_description value = { .struct_size = sizeof value };
  plan_oracle_clear(oracle, one);
  for (uint32_t i = 0; tm_graph_value_describe(one->graph, i, &value) == TM_OK; i++, oracle->count = i) {
    if (value.kind == TM_VALUE_INPUT) oracle->values[i] = one->inputs[value.index];
    if (value.kind == TM_VALUE_CONSTANT) oracle->values[i] = one->constant;
    if (value.kind == TM_VALUE_STATE) oracle->values[i] = oracle->states[value.index];
    if (value.kind == TM_VALUE_VIEW)
      assert_int_equal(tm_tensor_view(oracle->values[value.base], &value.layout, value.offset_bytes, &oracle->values[i], NULL),
                       TM_OK);
    if (value.kind == TM_VALUE_RESULT) plan_oracle_run_node(oracle, one, value.node);
  }
}

static inline void plan_oracle_carry(plan_oracle *oracle, const plan_case *one) {
  tm_tensor *next[PLAN_STATES];
  for (uint32_t i = 0; i < PLAN_STATES; i++) {
    tm_value_description state = { .struct_size = sizeof state };
    assert_int_equal(tm_graph_value_describe(one->graph, one->states[i], &state), TM_OK);
    next[i] = plan_tensor(one->context, 0);
    plan_copy(oracle->values[state.carry == TM_NO_VALUE ? one->states[i] : state.carry], next[i]);
  }
  plan_oracle_clear(oracle, one);
  for (uint32_t i = 0; i < PLAN_STATES; i++) {
    tm_tensor_destroy(oracle->states[i]);
    oracle->states[i] = next[i];
  }
}

static inline void plan_oracle_deinit(plan_oracle *oracle, const plan_case *one) {
  plan_oracle_clear(oracle, one);
  for (uint32_t i = 0; i < PLAN_STATES; i++) tm_tensor_destroy(oracle->states[i]);
}

/* ---- comparing ---- */

/* `tolerance` 0: bit for bit. */
static inline void plan_expect_equal(tm_tensor *found, tm_tensor *expected, double tolerance, const char *what, uint64_t seed) {
  float dense[PLAN_CELLS];
  const tm_operand *layout = tm_tensor_operand(expected);
  const char *from = tm_tensor_data(expected);
  for (uint32_t i = 0; i < PLAN_CELLS; i++)
    memcpy(&dense[i],
           from + (i / PLAN_SIDE) * (uint64_t)layout->strides_bytes[0] + (i % PLAN_SIDE) * (uint64_t)layout->strides_bytes[1],
           sizeof *dense);
  const float *y = tm_tensor_data(found);
  for (uint32_t i = 0; i < PLAN_CELLS; i++) {
    const double scale = 1 + fabs((double)dense[i]);
    const bool both_odd = isnan(y[i]) && isnan(dense[i]);
    const bool same = memcmp(&y[i], &dense[i], sizeof *y) == 0 || both_odd ||
                      (tolerance != 0 && fabs((double)y[i] - (double)dense[i]) <= tolerance * scale);
    if (!same)
      fail_msg("seed %llu, %s: element %u is %a, expected %a", (unsigned long long)seed, what, i, (double)y[i], (double)dense[i]);
  }
}

/* One run of the plan beside one of the oracle. */
static inline tm_plan_report plan_case_run(plan_case *one, plan_oracle *oracle, double tolerance, uint64_t seed) {
  tm_plan_report report = { .struct_size = sizeof report };
  tm_error error = TM_ERROR_INIT;
  for (uint32_t i = 0; i < PLAN_INPUTS; i++) plan_fill(one->inputs[i], seed * 31 + i + 1);
  if (tm_plan_run(one->plan, one->inputs, PLAN_INPUTS, one->outputs, PLAN_OUTPUTS, &report, &error) != TM_OK)
    fail_msg("seed %llu: the plan: %s", (unsigned long long)seed, error.text);
  plan_oracle_run(oracle, one);
  for (uint32_t i = 0; i < PLAN_OUTPUTS; i++) {
    tm_graph_output_description output = { .struct_size = sizeof output };
    assert_int_equal(tm_graph_output_describe(one->graph, i, &output), TM_OK);
    plan_expect_equal(one->outputs[i], oracle->values[output.value], tolerance, output.name, seed);
  }
  plan_oracle_carry(oracle, one);
  return report;
}

#endif
