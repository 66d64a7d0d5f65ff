/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_plan.h"

#include <stdio.h>
#include <time.h>

#include "api/context.h"
#include "fakes/fake_control.h"

#define FAKES 2u
#define SIDE  64u

static const char *const paths[FAKES] = { BENCH_FAKES "/fake_a.so", BENCH_FAKES "/fake_b.so" };
static const char *const names[FAKES] = { "fake_a", "fake_b" };

/* Seven nodes of what came before, of which the fakes know all but one. */
static bool add_layer(tm_graph *graph, uint32_t weight, uint32_t *value, tm_error *error) {
  static const struct {
    uint32_t op, inputs[2];             /* 0: the weight, 1: the layer's input, then what the layer made */
  } rows[] = { { TM_OP_MATMUL, { 1, 0 } }, { TM_OP_NEG, { 2, 0 } }, { TM_OP_ADD, { 3, 2 } }, { TM_OP_ADD, { 4, 1 } },
               { TM_OP_NEG, { 5, 0 } },    { TM_OP_ADD, { 6, 4 } }, { TM_OP_ADD, { 7, 1 } } };
  uint32_t made[2 + sizeof rows / sizeof *rows] = { weight, *value };
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const uint32_t inputs[2] = { made[rows[i].inputs[0]], made[rows[i].inputs[1]] };
    const uint32_t count = rows[i].op == TM_OP_NEG ? 1 : 2;
    if (tm_graph_node(graph, NULL, rows[i].op, NULL, 0, inputs, count, NULL, 1, &made[2 + i], error) != TM_OK) return false;
  }
  *value = made[1 + sizeof rows / sizeof *rows];
  return true;
}

#define BRANCHES 12u

/* Products of the layer's input, which are added up. */
static bool add_branches(tm_graph *graph, uint32_t weight, uint32_t *value, tm_error *error) {
  uint32_t sum = *value;
  for (uint32_t i = 0; i < BRANCHES; i++) {
    uint32_t product, negative;
    const uint32_t factors[2] = { *value, weight };
    if (tm_graph_node(graph, NULL, TM_OP_MATMUL, NULL, 0, factors, 2, NULL, 1, &product, error) != TM_OK) return false;
    if (tm_graph_node(graph, NULL, TM_OP_NEG, NULL, 0, &product, 1, NULL, 1, &negative, error) != TM_OK) return false;
    const uint32_t terms[2] = { sum, negative };
    if (tm_graph_node(graph, NULL, TM_OP_ADD, NULL, 0, terms, 2, NULL, 1, &sum, error) != TM_OK) return false;
  }
  *value = sum;
  return true;
}

static bool make_graph(tm_context *context, tm_tensor *weight, uint32_t node_count, whole_plan_kind kind, tm_graph **out_graph,
                       tm_error *error) {
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 2, .dims = { SIDE, SIDE } };
  uint32_t value, constant;
  tm_graph_description so_far = { .struct_size = sizeof so_far };
  if (tm_graph_create(context, out_graph, error) != TM_OK || tm_graph_input(*out_graph, "x", &layout, &value, error) != TM_OK ||
      tm_graph_constant(*out_graph, "w", weight, &constant, error) != TM_OK)
    return false;
  while (so_far.node_count < node_count) {
    const bool is_added = kind == WHOLE_PLAN_SIDE_BY_SIDE ? add_branches(*out_graph, constant, &value, error)
                                                          : add_layer(*out_graph, constant, &value, error);
    if (!is_added) return false;
    tm_graph_describe(*out_graph, &so_far);
  }
  return tm_graph_output(*out_graph, "y", value, error) == TM_OK;
}

static bool time_plans(tm_graph *graph, uint32_t rounds, double *out_ms, tm_error *error) {
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N4 };
  *out_ms = 1e30;
  for (uint32_t i = 0; i <= rounds; i++) {
    tm_plan *plan = NULL;
    const clock_t begin = clock();
    if (tm_plan_create(graph, &options, &plan, error) != TM_OK) return false;
    const double taken = (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC;
    if (i != 0 && taken < *out_ms) *out_ms = taken;
    tm_plan_destroy(plan);
  }
  return true;
}

bool bench_whole_plan(uint32_t node_count, whole_plan_kind kind, uint32_t rounds, double *out_ms) {
  const uint64_t dims[] = { SIDE, SIDE };
  _Atomic uint64_t nothing_happens = 0;
  fake_control controls[FAKES];
  tm_named_pointer pointers[FAKES];
  for (uint32_t i = 0; i < FAKES; i++) {
    controls[i] = (fake_control){ .cost_ns = kind == WHOLE_PLAN_SIDE_BY_SIDE ? 600 : 20000, .element_cost_ps = 200 + 100 * i,
                                  .is_asynchronous = kind != WHOLE_PLAN_IN_TURNS, .clock_ns = &nothing_happens,
                                  .uuid = { { (uint8_t)(1 + i) } } };
    if (kind == WHOLE_PLAN_AT_ONCE) controls[i].memory = (tm_identity){ { (uint8_t)(11 + i) } };
    pointers[i] = (tm_named_pointer){ names[i], FAKE_CONTROL_KEY, &controls[i] };
  }
  const char *const devices[] = { "reference", "cpu", names[0], names[1] };
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = 1, .plugin_paths = paths, .plugin_path_count = FAKES,
                                       .pointers = pointers, .pointer_count = FAKES, .devices = devices, .device_count = 4 };
  tm_context *context = NULL;
  tm_tensor *weight = NULL;
  tm_graph *graph = NULL;
  tm_error error = { .struct_size = sizeof error };
  const bool is_done = tm_context_create(&options, &context, &error) == TM_OK &&
                       tm_tensor_create(context, TM_FORMAT_F32, 2, dims, &weight, &error) == TM_OK &&
                       make_graph(context, weight, node_count, kind, &graph, &error) && time_plans(graph, rounds, out_ms, &error);
  if (!is_done) fprintf(stderr, "%s\n", error.text);
  tm_graph_destroy(graph);
  tm_tensor_destroy(weight);
  tm_context_destroy(context);
  return is_done;
}
