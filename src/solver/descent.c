/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/descent.h"

#include <string.h>

#define MOST_SWEEPS 32u
#define MOST_SINGLE_MEMORIES 16u
#define MOST_MOVES (UINT64_C(1) << 21)  /* that are looked at, over all plans; each plan gets one sweep */

typedef struct descent {
  tm_plan_cost  plan;
  uint32_t     *best;
  uint32_t     *candidate;
  bool         *is_due;         /* [op]: something that counts for it changed since it was looked at */
  tm_plan_price best_price;
  uint64_t      moves_left;
} descent;

/* An operation that moved lets those move that share a copy with it, or may do so now. */
static void mark_neighbours(descent *d, uint32_t op, const tm_choice *before, const tm_choice *after) {
  const tm_solver_problem *p = d->plan.problem;
  const tm_flow *flow = d->plan.flow;
  const bool reads_elsewhere = before->input_memory != after->input_memory;
  for (uint32_t i = 0; i < p->ops[op].input_count && reads_elsewhere; i++) {
    const uint32_t value = p->inputs[p->ops[op].first_input + i], producer = p->values[value].producer;
    const uint32_t *readings = d->plan.readings + (uint64_t)value * p->memory_count;
    if (producer != TM_SOLVER_NONE) d->is_due[producer] = true;
    if (readings[before->input_memory] > 1 && readings[after->input_memory] > 2) continue;
    for (uint32_t k = flow->first_reader[value]; k < flow->first_reader[value + 1]; k++) d->is_due[flow->readers[k]] = true;
  }
  for (uint32_t i = flow->first_output[op]; i < flow->first_output[op + 1]; i++) {
    const uint32_t value = flow->outputs[i];
    for (uint32_t k = flow->first_reader[value]; k < flow->first_reader[value + 1]; k++) d->is_due[flow->readers[k]] = true;
  }
}

static bool move(descent *d, uint32_t op) {
  const tm_choice *before = &d->plan.choices->items[d->plan.chosen[op]];
  d->is_due[op] = false;
  d->moves_left -= d->moves_left != 0;
  if (!tm_plan_cost_improve(&d->plan, op)) return false;
  mark_neighbours(d, op, before, &d->plan.choices->items[d->plan.chosen[op]]);
  d->is_due[op] = false;
  return true;
}

/* Takes the candidate downhill and keeps it if it is better than what was seen. */
static void consider(descent *d) {
  const tm_solver_problem *p = d->plan.problem;
  tm_plan_cost_set(&d->plan, d->candidate);
  bool is_moved = true;
  for (uint32_t op = 0; op < p->op_count; op++) d->is_due[op] = true;
  for (uint32_t sweep = 0; sweep < MOST_SWEEPS && is_moved && (sweep == 0 || d->moves_left != 0); sweep++) {
    is_moved = false;
    for (uint32_t i = 0; i < p->op_count; i++) {
      const uint32_t op = sweep % 2 == 0 ? i : p->op_count - 1 - i;
      if (d->is_due[op]) is_moved |= move(d, op);
    }
  }
  const tm_plan_price price = tm_plan_cost_total(&d->plan);
  if (!tm_plan_price_is_less(price, d->best_price)) return;
  d->best_price = price;
  if (p->op_count != 0) memcpy(d->best, d->plan.chosen, p->op_count * sizeof *d->best);
}

/* The choice with this operation's own cost and the copies of its inputs, as its predecessors were placed. */
static uint32_t greedy_choice(const descent *d, uint32_t op) {
  const tm_solver_problem *p = d->plan.problem;
  const tm_choices *choices = d->plan.choices;
  tm_plan_price least = { UINT64_MAX, 0 };
  uint32_t best = choices->first[op];
  for (uint32_t c = choices->first[op]; c < choices->first[op + 1]; c++) {
    tm_plan_price price = { 0, choices->items[c].cost_ns };
    for (uint32_t i = 0; i < p->ops[op].input_count; i++) {
      const uint32_t value = p->inputs[p->ops[op].first_input + i], producer = p->values[value].producer;
      const uint32_t from =
          producer == TM_SOLVER_NONE ? p->values[value].home : choices->items[d->candidate[producer]].output_memory;
      const uint64_t copy = tm_solver_copy_ns(p, value, from, choices->items[c].input_memory);
      if (copy == TM_SOLVER_NEVER) price.nevers++;
      else price.ns = tm_solver_add(price.ns, copy);
    }
    if (!tm_plan_price_is_less(price, least)) continue;
    least = price;
    best = c;
  }
  return best;
}

/* The cheapest choice inside of one memory; the cheapest of all where there is none. */
static uint32_t single_choice(const tm_choices *choices, uint32_t op, uint32_t memory) {
  uint32_t best = choices->first[op];
  bool is_inside = false;
  for (uint32_t c = choices->first[op]; c < choices->first[op + 1]; c++) {
    const tm_choice *choice = &choices->items[c];
    const bool inside = choice->input_memory == memory && choice->output_memory == memory;
    const bool is_better = inside != is_inside ? inside : choice->cost_ns < choices->items[best].cost_ns;
    if (is_better) best = c;
    is_inside = is_inside || inside;
  }
  return best;
}

static tm_status begin(descent *d, const tm_solver_problem *p, const tm_choices *choices, const tm_flow *flow, uint32_t *chosen,
                       tm_arena *arena, tm_error *error) {
  *d = (descent){ .best = chosen, .best_price = { UINT64_MAX, UINT64_MAX }, .moves_left = MOST_MOVES };
  TM_TRY(tm_plan_cost_init(&d->plan, p, choices, flow, arena, error));
  d->candidate = tm_arena_alloc(arena, p->op_count * sizeof(uint32_t));
  d->is_due = tm_arena_calloc(arena, p->op_count, sizeof *d->is_due);
  if (d->candidate == NULL || d->is_due == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan of %u operations", p->op_count);
  if (p->op_count != 0) memcpy(d->candidate, chosen, p->op_count * sizeof *chosen);
  consider(d);
  return TM_OK;
}

tm_status tm_descent_from(const tm_solver_problem *p, const tm_choices *choices, const tm_flow *flow, uint32_t *chosen,
                          tm_arena *arena, tm_plan_price *out_price, tm_error *error) {
  descent d;
  TM_TRY(begin(&d, p, choices, flow, chosen, arena, error));
  *out_price = d.best_price;
  return TM_OK;
}

tm_status tm_descent_run(const tm_solver_problem *p, const tm_choices *choices, const tm_flow *flow, uint32_t *chosen,
                         tm_arena *arena, tm_plan_price *out_price, tm_error *error) {
  descent d;
  TM_TRY(begin(&d, p, choices, flow, chosen, arena, error));
  for (uint32_t op = 0; op < p->op_count; op++) d.candidate[op] = greedy_choice(&d, op);
  consider(&d);
  for (uint32_t m = 0; m < p->memory_count && m < MOST_SINGLE_MEMORIES; m++) {
    for (uint32_t op = 0; op < p->op_count; op++) d.candidate[op] = single_choice(choices, op, m);
    consider(&d);
  }
  *out_price = d.best_price;
  return TM_OK;
}
