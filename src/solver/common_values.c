/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/common_values.h"

#include <string.h>

#include "base/checked.h"

/* The dearest copy of a value to a memory, TM_SOLVER_NEVER if there is not always a way. */
static uint64_t most_copy_ns(const tm_common_values *common, uint32_t value, uint32_t memory) {
  const tm_solver_value *row = &common->problem->values[value];
  uint64_t most = 0;
  if (memory == row->wanted) return 0;
  if (row->producer == TM_SOLVER_NONE) return tm_solver_copy_ns(common->problem, value, row->home, memory);
  for (uint32_t c = common->choices->first[row->producer]; c < common->choices->first[row->producer + 1]; c++) {
    const uint64_t copy = tm_solver_copy_ns(common->problem, value, common->choices->items[c].output_memory, memory);
    most = tm_max_u64(most, copy);
  }
  return most;
}

static uint32_t reader_count(const tm_common_values *common, uint32_t value) {
  return common->flow->first_reader[value + 1] - common->flow->first_reader[value];
}

/* Adds the uses of a value; `is_touched` ([memory]) is all false before and after.  false: there is not always a way. */
static bool add_uses(tm_common_values *common, uint32_t value, bool *is_touched) {
  const tm_choices *choices = common->choices;
  const uint32_t first = common->use_count;
  bool can = true;
  for (uint32_t i = common->flow->first_reader[value]; i < common->flow->first_reader[value + 1]; i++) {
    const uint32_t op = common->flow->readers[i];
    for (uint32_t c = choices->first[op]; c < choices->first[op + 1]; c++) is_touched[choices->items[c].input_memory] = true;
  }
  for (uint32_t m = 0; m < common->problem->memory_count; m++) {
    const uint64_t most = is_touched[m] ? most_copy_ns(common, value, m) : 0;
    is_touched[m] = false;
    can = can && most != TM_SOLVER_NEVER;
    if (most == 0 || !can) continue;
    common->uses[common->use_count++] = (tm_common_use){ .most_ns = most, .value = value, .memory = m, .state = TM_COMMON_PAID };
  }
  if (!can) common->use_count = first;
  return can;
}

tm_status tm_common_values_init(tm_common_values *common, const tm_solver_problem *p, const tm_choices *choices,
                                const tm_flow *flow, uint32_t most_readers, tm_arena *arena, tm_error *error) {
  *common = (tm_common_values){ .problem = p, .choices = choices, .flow = flow };
  uint64_t count = 0;
  for (uint32_t v = 0; v < p->value_count; v++) count += reader_count(common, v) > most_readers;
  if (count == 0) return TM_OK;
  bool *is_touched = tm_arena_calloc(arena, p->memory_count, sizeof *is_touched);
  common->is_common = tm_arena_calloc(arena, p->value_count, sizeof *common->is_common);
  common->values = tm_arena_calloc(arena, count, sizeof *common->values);
  common->first_use = tm_arena_calloc(arena, count + 1, sizeof *common->first_use);
  common->uses = tm_arena_calloc(arena, count * p->memory_count, sizeof *common->uses);
  if (is_touched == NULL || common->is_common == NULL || common->values == NULL || common->first_use == NULL ||
      common->uses == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the common values of %u operations", p->op_count);
  for (uint32_t v = 0; v < p->value_count; v++) {
    if (reader_count(common, v) <= most_readers || !add_uses(common, v, is_touched)) continue;
    common->is_common[v] = true;
    common->values[common->value_count++] = v;
    common->first_use[common->value_count] = common->use_count;
  }
  return TM_OK;
}

uint32_t tm_common_values_find(const tm_common_values *common, uint32_t number, uint32_t memory) {
  for (uint32_t i = common->first_use[number]; i < common->first_use[number + 1]; i++) {
    if (common->uses[i].memory == memory) return i;
  }
  return TM_SOLVER_NONE;
}

bool tm_common_values_is_made(const tm_common_values *common, const tm_common_use *use) {
  return common->problem->values[use->value].producer != TM_SOLVER_NONE;
}

uint32_t tm_common_values_readings(const tm_common_values *common, const tm_common_use *use, const tm_plan_cost *plan) {
  return plan->readings[(uint64_t)use->value * common->problem->memory_count + use->memory];
}

static void charge_producer(const tm_common_values *common, const tm_common_use *use, tm_factor_graph *graph) {
  const uint32_t producer = common->problem->values[use->value].producer;
  for (uint32_t c = common->choices->first[producer]; c < common->choices->first[producer + 1]; c++) {
    const uint32_t from = common->choices->items[c].output_memory;
    graph->unary[c] = tm_solver_add(graph->unary[c], tm_solver_copy_ns(common->problem, use->value, from, use->memory));
  }
}

static void forbid_readers(const tm_common_values *common, const tm_common_use *use, tm_factor_graph *graph) {
  for (uint32_t i = common->flow->first_reader[use->value]; i < common->flow->first_reader[use->value + 1]; i++) {
    const uint32_t op = common->flow->readers[i];
    for (uint32_t c = common->choices->first[op]; c < common->choices->first[op + 1]; c++) {
      if (common->choices->items[c].input_memory == use->memory) graph->unary[c] = TM_SOLVER_NEVER;
    }
  }
}

void tm_common_values_apply(const tm_common_values *common, const uint64_t *unary, tm_factor_graph *graph) {
  const uint32_t choice_count = common->choices->first[common->problem->op_count];
  if (choice_count != 0) memcpy(graph->unary, unary, choice_count * sizeof *unary);
  for (uint32_t i = 0; i < common->use_count; i++) {
    const tm_common_use *use = &common->uses[i];
    if (use->state == TM_COMMON_FORBIDDEN) forbid_readers(common, use, graph);
    if (use->state == TM_COMMON_PAID && tm_common_values_is_made(common, use)) charge_producer(common, use, graph);
  }
}

bool tm_common_values_follow(tm_common_values *common, const tm_plan_cost *plan) {
  bool is_changed = false;
  for (uint32_t i = 0; i < common->use_count; i++) {
    tm_common_use *use = &common->uses[i];
    const tm_common_state state = tm_common_values_readings(common, use, plan) != 0 ? TM_COMMON_PAID : TM_COMMON_FREE;
    if (state != use->state && tm_common_values_is_made(common, use)) is_changed = true;
    use->state = state;
  }
  return is_changed;
}

tm_common_sums tm_common_values_sums(const tm_common_values *common) {
  tm_common_sums sums = { 0, 0 };
  for (uint32_t i = 0; i < common->use_count; i++) {
    const tm_common_use *use = &common->uses[i];
    if (use->state != TM_COMMON_PAID) continue;
    sums.most_ns = tm_solver_add(sums.most_ns, use->most_ns);
    if (!tm_common_values_is_made(common, use)) sums.constant_ns = tm_solver_add(sums.constant_ns, use->most_ns);
  }
  return sums;
}
