/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/plan_cost.h"

#include <string.h>

#include "base/checked.h"

tm_status tm_plan_cost_init(tm_plan_cost *plan, const tm_solver_problem *p, const tm_choices *choices,
                            const tm_flow *flow, tm_arena *arena, tm_error *error) {
  *plan = (tm_plan_cost){ .problem = p, .choices = choices, .flow = flow };
  plan->chosen = tm_arena_calloc(arena, p->op_count, sizeof(uint32_t));
  plan->readings = tm_arena_calloc(arena, (uint64_t)p->value_count * p->memory_count, sizeof(uint32_t));
  if (plan->chosen == NULL || plan->readings == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan of %u operations", p->op_count);
  return TM_OK;
}

static uint32_t *readings_of(const tm_plan_cost *plan, uint32_t value) {
  return plan->readings + (uint64_t)value * plan->problem->memory_count;
}

static const tm_choice *choice_of(const tm_plan_cost *plan, uint32_t op) { return &plan->choices->items[plan->chosen[op]]; }

static uint32_t source_of(const tm_plan_cost *plan, uint32_t value) {
  const tm_solver_value *row = &plan->problem->values[value];
  return row->producer == TM_SOLVER_NONE ? row->home : choice_of(plan, row->producer)->output_memory;
}

/* Takes an operation's readings into account, or out of it. */
static void count_readings(tm_plan_cost *plan, uint32_t op, uint32_t change) {
  const tm_solver_op *row = &plan->problem->ops[op];
  const uint32_t memory = choice_of(plan, op)->input_memory;
  for (uint32_t i = 0; i < row->input_count; i++) readings_of(plan, plan->problem->inputs[row->first_input + i])[memory] += change;
}

void tm_plan_cost_set(tm_plan_cost *plan, const uint32_t *chosen) {
  const tm_solver_problem *p = plan->problem;
  if (p->op_count != 0) memcpy(plan->chosen, chosen, p->op_count * sizeof *chosen);
  if (p->value_count != 0) memset(plan->readings, 0, (uint64_t)p->value_count * p->memory_count * sizeof *plan->readings);
  for (uint32_t op = 0; op < p->op_count; op++) count_readings(plan, op, 1);
}

static void pay(tm_plan_price *price, uint64_t cost) {
  if (cost == TM_SOLVER_NEVER) price->nevers++;
  else price->ns = tm_solver_add(price->ns, cost);
}

/* All copies of a value made in `from`. */
static void pay_copies(const tm_plan_cost *plan, uint32_t value, uint32_t from, tm_plan_price *price) {
  const uint32_t *readings = readings_of(plan, value);
  const uint32_t wanted = plan->problem->values[value].wanted;
  for (uint32_t m = 0; m < plan->problem->memory_count; m++) {
    if (readings[m] != 0 || m == wanted) pay(price, tm_solver_copy_ns(plan->problem, value, from, m));
  }
}

tm_plan_price tm_plan_cost_total(const tm_plan_cost *plan) {
  tm_plan_price price = { 0, 0 };
  for (uint32_t op = 0; op < plan->problem->op_count; op++) pay(&price, choice_of(plan, op)->cost_ns);
  for (uint32_t v = 0; v < plan->problem->value_count; v++) pay_copies(plan, v, source_of(plan, v), &price);
  return price;
}

/* What a choice adds while the operation's readings are not counted. */
static tm_plan_price price_of(const tm_plan_cost *plan, uint32_t op, const tm_choice *choice) {
  const tm_solver_problem *p = plan->problem;
  tm_plan_price price = { 0, 0 };
  pay(&price, choice->cost_ns);
  for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
    const uint32_t value = p->inputs[p->ops[op].first_input + i];
    if (readings_of(plan, value)[choice->input_memory] != 0 || p->values[value].wanted == choice->input_memory) continue;
    pay(&price, tm_solver_copy_ns(p, value, source_of(plan, value), choice->input_memory));
  }
  for (uint32_t i = plan->flow->first_output[op]; i < plan->flow->first_output[op + 1]; i++)
    pay_copies(plan, plan->flow->outputs[i], choice->output_memory, &price);
  return price;
}

bool tm_plan_cost_improve(tm_plan_cost *plan, uint32_t op) {
  const uint32_t before = plan->chosen[op];
  count_readings(plan, op, UINT32_MAX);
  tm_plan_price least = price_of(plan, op, &plan->choices->items[before]);
  for (uint32_t c = plan->choices->first[op]; c < plan->choices->first[op + 1]; c++) {
    const tm_plan_price price = c == before ? least : price_of(plan, op, &plan->choices->items[c]);
    if (!tm_plan_price_is_less(price, least)) continue;
    least = price;
    plan->chosen[op] = c;
  }
  count_readings(plan, op, 1);
  return plan->chosen[op] != before;
}

void tm_plan_cost_list(tm_plan_cost *plan, uint32_t op, uint64_t *out_ns) {
  count_readings(plan, op, UINT32_MAX);
  for (uint32_t c = plan->choices->first[op]; c < plan->choices->first[op + 1]; c++) {
    const tm_plan_price price = price_of(plan, op, &plan->choices->items[c]);
    out_ns[c] = price.nevers != 0 ? TM_SOLVER_NEVER : price.ns;
  }
  count_readings(plan, op, 1);
}
