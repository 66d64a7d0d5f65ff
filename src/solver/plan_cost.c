/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/plan_cost.h"

#include <string.h>

#include "base/checked.h"

tm_status tm_plan_cost_init(tm_plan_cost *plan, const tm_solver_problem *p, const tm_choices *choices,
                            const tm_flow *flow, tm_arena *arena, tm_error *error) {
  *plan = (tm_plan_cost){ .problem = p, .choices = choices, .flow = flow };
  plan->chosen = tm_arena_calloc(arena, p->op_count, sizeof(uint32_t));
  plan->readings = tm_arena_calloc(arena, (uint64_t)p->value_count * p->memory_count, sizeof(uint32_t));
  plan->copies_ns = tm_arena_alloc(arena, p->value_count * sizeof *plan->copies_ns);
  if (plan->chosen == NULL || plan->readings == NULL || plan->copies_ns == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan of %u operations", p->op_count);
  return TM_OK;
}

static uint32_t *readings_of(const tm_plan_cost *plan, uint32_t value) {
  return plan->readings + (uint64_t)value * plan->problem->memory_count;
}

static const tm_choice *choice_of(const tm_plan_cost *plan, uint32_t op) { return &plan->choices->items[plan->chosen[op]]; }

static const uint64_t *copies_from(const tm_plan_cost *plan, uint32_t value, uint32_t from) {
  const uint64_t memories = plan->problem->memory_count;
  return plan->problem->copy_ns + (plan->problem->values[value].size_class * memories + from) * memories;
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
  for (uint32_t v = 0; v < p->value_count; v++) {
    const tm_solver_value *row = &p->values[v];
    plan->copies_ns[v] =
        copies_from(plan, v, row->producer == TM_SOLVER_NONE ? row->home : choice_of(plan, row->producer)->output_memory);
  }
}

/* No cost but NEVER is more than what sums stay at. */
static inline void pay(tm_plan_price *price, uint64_t cost) {
  const uint64_t sum = price->ns + cost;
  if (cost == TM_SOLVER_NEVER) price->nevers++;
  else price->ns = sum > TM_SOLVER_MOST_NS ? TM_SOLVER_MOST_NS : sum;
}

/* All copies of a value, at the costs from where it is made. */
static inline void pay_copies(const tm_plan_cost *plan, uint32_t value, const uint64_t *copies_ns, tm_plan_price *price) {
  const uint32_t *readings = readings_of(plan, value);
  const uint32_t wanted = plan->problem->values[value].wanted;
  for (uint32_t m = 0; m < plan->problem->memory_count; m++) {
    if (readings[m] != 0 || m == wanted) pay(price, copies_ns[m]);
  }
}

tm_plan_price tm_plan_cost_total(const tm_plan_cost *plan) {
  tm_plan_price price = { 0, 0 };
  for (uint32_t op = 0; op < plan->problem->op_count; op++) pay(&price, choice_of(plan, op)->cost_ns);
  for (uint32_t v = 0; v < plan->problem->value_count; v++) pay_copies(plan, v, plan->copies_ns[v], &price);
  return price;
}

/* What a choice adds to what the others take, or less than that and not less than `limit`; the operation's own readings do not
   count. */
static tm_plan_price price_of(const tm_plan_cost *plan, uint32_t op, const tm_choice *choice, tm_plan_price limit) {
  const tm_solver_problem *p = plan->problem;
  const uint32_t to = choice->input_memory, own = to == choice_of(plan, op)->input_memory;
  const uint32_t *inputs = p->inputs + p->ops[op].first_input;
  tm_plan_price price = { 0, 0 };
  pay(&price, choice->cost_ns);
  if (!tm_plan_price_is_less(price, limit)) return price;
  for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
    const bool is_there = readings_of(plan, inputs[i])[to] > own || p->values[inputs[i]].wanted == to;
    if (!is_there) pay(&price, plan->copies_ns[inputs[i]][to]);
  }
  if (!tm_plan_price_is_less(price, limit)) return price;
  for (uint32_t i = plan->flow->first_output[op]; i < plan->flow->first_output[op + 1]; i++) {
    const uint32_t value = plan->flow->outputs[i];
    pay_copies(plan, value, copies_from(plan, value, choice->output_memory), &price);
  }
  return price;
}

static const tm_plan_price no_limit = { UINT64_MAX, UINT64_MAX };

static void move(tm_plan_cost *plan, uint32_t op, uint32_t choice) {
  count_readings(plan, op, UINT32_MAX);
  plan->chosen[op] = choice;
  count_readings(plan, op, 1);
  for (uint32_t i = plan->flow->first_output[op]; i < plan->flow->first_output[op + 1]; i++) {
    const uint32_t value = plan->flow->outputs[i];
    plan->copies_ns[value] = copies_from(plan, value, plan->choices->items[choice].output_memory);
  }
}

bool tm_plan_cost_improve(tm_plan_cost *plan, uint32_t op) {
  const uint32_t before = plan->chosen[op];
  if (tm_choices_count(plan->choices, op) == 1) return false;
  tm_plan_price least = price_of(plan, op, &plan->choices->items[before], no_limit);
  uint32_t best = before;
  for (uint32_t c = plan->choices->first[op]; c < plan->choices->first[op + 1]; c++) {
    const tm_plan_price price = c == before ? least : price_of(plan, op, &plan->choices->items[c], least);
    if (!tm_plan_price_is_less(price, least)) continue;
    least = price;
    best = c;
  }
  if (best != before) move(plan, op, best);
  return best != before;
}

void tm_plan_cost_list(const tm_plan_cost *plan, uint32_t op, uint64_t *out_ns) {
  for (uint32_t c = plan->choices->first[op]; c < plan->choices->first[op + 1]; c++) {
    const tm_plan_price price = price_of(plan, op, &plan->choices->items[c], no_limit);
    out_ns[c] = price.nevers != 0 ? TM_SOLVER_NEVER : price.ns;
  }
}
