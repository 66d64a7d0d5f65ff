/* SPDX-License-Identifier: Apache-2.0 */
#include "chain.h"

#include <stdio.h>

#include "base/clock.h"

static bool make_graph(bench_chain *chain, uint64_t elements, tm_error *error) {
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 1, .dims = { elements } };
  uint32_t first, value;
  if (tm_graph_create(chain->context, &chain->graph, error) != TM_OK ||
      tm_graph_input(chain->graph, "x", &layout, &first, error) != TM_OK)
    return false;
  value = first;
  for (uint32_t i = 0; i < chain->node_count; i++) {
    const uint32_t inputs[2] = { value, first };
    if (tm_graph_node(chain->graph, NULL, TM_OP_ADD, NULL, 0, inputs, 2, NULL, 1, &value, error) != TM_OK) return false;
  }
  return tm_graph_output(chain->graph, "y", value, error) == TM_OK;
}

bool bench_chain_open(bench_chain *chain, uint64_t elements, const tm_plan_options *options) {
  tm_error error = { .struct_size = sizeof error };
  const bool is_open = tm_tensor_create(chain->context, TM_FORMAT_F32, 1, &elements, &chain->x, &error) == TM_OK &&
                       tm_tensor_create(chain->context, TM_FORMAT_F32, 1, &elements, &chain->y, &error) == TM_OK &&
                       make_graph(chain, elements, &error);
  const uint64_t begin = tm_now_ns();
  const bool is_planned = is_open && tm_plan_create(chain->graph, options, &chain->plan, &error) == TM_OK;
  chain->planned_ns = tm_now_ns() - begin;
  if (!is_planned) fprintf(stderr, "%s\n", error.text);
  return is_planned;
}

void bench_chain_close(bench_chain *chain) {
  tm_plan_destroy(chain->plan);
  tm_graph_destroy(chain->graph);
  tm_tensor_destroy(chain->y);
  tm_tensor_destroy(chain->x);
}

bool bench_chain_run(const bench_chain *chain) {
  return tm_plan_run(chain->plan, &chain->x, 1, &chain->y, 1, NULL, NULL) == TM_OK;
}
