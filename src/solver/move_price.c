/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/move_price.h"

#include "solver/flow.h"

typedef struct move_prices {
  const tm_solver_problem *problem;
  const uint32_t          *labels;
  tm_flow                  flow;
  uint32_t                *readings;    /* [value][memory]: how many operations read it there */
} move_prices;

static uint32_t *readings_of(const move_prices *m, uint32_t value) {
  return m->readings + (uint64_t)value * m->problem->memory_count;
}

static void count_readings(const move_prices *m, uint32_t op, uint32_t change) {
  const tm_solver_op *row = &m->problem->ops[op];
  const uint32_t memory = m->problem->labels[m->labels[op]].input_memory;
  for (uint32_t i = 0; i < row->input_count; i++) readings_of(m, m->problem->inputs[row->first_input + i])[memory] += change;
}

static uint64_t price_inputs(const move_prices *m, uint32_t op, uint32_t memory) {
  const tm_solver_problem *p = m->problem;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
    const uint32_t value = p->inputs[p->ops[op].first_input + i];
    const tm_solver_value *row = &p->values[value];
    if (readings_of(m, value)[memory] != 0 || row->wanted == memory) continue;
    const uint32_t from = row->producer == TM_SOLVER_NONE ? row->home : p->labels[m->labels[row->producer]].output_memory;
    sum = tm_solver_add(sum, tm_solver_copy_ns(p, value, from, memory));
  }
  return sum;
}

static uint64_t price_outputs(const move_prices *m, uint32_t op, uint32_t from) {
  const tm_solver_problem *p = m->problem;
  uint64_t sum = 0;
  for (uint32_t i = m->flow.first_output[op]; i < m->flow.first_output[op + 1]; i++) {
    const uint32_t value = m->flow.outputs[i];
    for (uint32_t to = 0; to < p->memory_count; to++) {
      if (readings_of(m, value)[to] != 0 || p->values[value].wanted == to)
        sum = tm_solver_add(sum, tm_solver_copy_ns(p, value, from, to));
    }
  }
  return sum;
}

static void price_op(const move_prices *m, uint32_t op, uint64_t *out_ns) {
  const tm_solver_op *row = &m->problem->ops[op];
  count_readings(m, op, UINT32_MAX);
  uint64_t inputs_ns = 0, outputs_ns = 0;
  for (uint32_t i = row->first_label; i < row->first_label + row->label_count; i++) {
    const tm_solver_label *label = &m->problem->labels[i], *before = i == row->first_label ? NULL : label - 1;
    if (before == NULL || before->input_memory != label->input_memory) inputs_ns = price_inputs(m, op, label->input_memory);
    if (before == NULL || before->output_memory != label->output_memory) outputs_ns = price_outputs(m, op, label->output_memory);
    out_ns[i] = tm_solver_add(label->cost_ns, tm_solver_add(inputs_ns, outputs_ns));
  }
  count_readings(m, op, 1);
}

tm_status tm_move_prices_find(const tm_solver_problem *p, const uint32_t *labels, tm_memory *memory, uint64_t *out_ns,
                              tm_error *error) {
  tm_arena arena;
  tm_arena_init(&arena, memory);
  move_prices m = { .problem = p, .labels = labels };
  tm_status status = tm_flow_init(&m.flow, p, &arena, error);
  m.readings = tm_arena_calloc(&arena, (uint64_t)p->value_count * p->memory_count, sizeof *m.readings);
  if (status == TM_OK && m.readings == NULL)
    status = tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to price moves of %u operations", p->op_count);
  if (status == TM_OK) {
    for (uint32_t op = 0; op < p->op_count; op++) count_readings(&m, op, 1);
    for (uint32_t op = 0; op < p->op_count; op++) price_op(&m, op, out_ns);
  }
  tm_arena_deinit(&arena);
  return status;
}
