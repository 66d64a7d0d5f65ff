/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/flow.h"

/* Counts at [i + 2] become starts at [i + 1], which filling moves to the ends, that is the starts of the next. */
static void counts_to_starts(uint32_t *counts, uint32_t rows) {
  for (uint32_t i = 2; i < rows + 2; i++) counts[i] += counts[i - 1];
}

static void fill(tm_flow *flow, const tm_solver_problem *p) {
  for (uint32_t op = 0; op < p->op_count; op++) {
    const uint32_t *inputs = p->inputs + p->ops[op].first_input;
    for (uint32_t i = 0; i < p->ops[op].input_count; i++) flow->first_reader[inputs[i] + 2]++;
  }
  for (uint32_t v = 0; v < p->value_count; v++) {
    if (p->values[v].producer != TM_SOLVER_NONE) flow->first_output[p->values[v].producer + 2]++;
  }
  counts_to_starts(flow->first_reader, p->value_count);
  counts_to_starts(flow->first_output, p->op_count);
  for (uint32_t op = 0; op < p->op_count; op++) {
    const uint32_t *inputs = p->inputs + p->ops[op].first_input;
    for (uint32_t i = 0; i < p->ops[op].input_count; i++) flow->readers[flow->first_reader[inputs[i] + 1]++] = op;
  }
  for (uint32_t v = 0; v < p->value_count; v++) {
    if (p->values[v].producer != TM_SOLVER_NONE) flow->outputs[flow->first_output[p->values[v].producer + 1]++] = v;
  }
}

tm_status tm_flow_init(tm_flow *flow, const tm_solver_problem *p, tm_arena *arena, tm_error *error) {
  uint64_t edges = 0;
  for (uint32_t op = 0; op < p->op_count; op++) edges += p->ops[op].input_count;
  if (edges >= TM_SOLVER_NONE) return tm_fail(error, TM_ERROR_ARGUMENT, "operations read too many values");
  flow->first_reader = tm_arena_calloc(arena, (uint64_t)p->value_count + 2, sizeof(uint32_t));
  flow->first_output = tm_arena_calloc(arena, (uint64_t)p->op_count + 2, sizeof(uint32_t));
  flow->readers = tm_arena_alloc(arena, edges * sizeof(uint32_t));
  flow->outputs = tm_arena_alloc(arena, p->value_count * sizeof(uint32_t));
  if (flow->first_reader == NULL || flow->first_output == NULL || flow->readers == NULL || flow->outputs == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the flow of %u operations", p->op_count);
  fill(flow, p);
  return TM_OK;
}
