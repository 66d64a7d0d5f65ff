/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/makespan_bound.h"

#include "base/checked.h"
#include "base/error.h"
#include "solver/label_groups.h"

/* Prices of resources, and rounds in which those in demand get dearer. */
#define FIRST_PRICE   UINT32_C(4096)
#define HIGHEST_PRICE (UINT32_C(1) << 20)
#define ROUNDS        12u
/* Resources up to which 16 times their number times any load fits. */
#define MOST_COMPARED (UINT64_C(1) << 16)

/* ---- the longest way ---- */

/* When the inputs of a label can be there at the soonest, counted from the start: known for those from the start only. */
static uint64_t start_of(const tm_solver_problem *problem, const tm_solver_op *op, uint32_t memory) {
  uint64_t latest = 0;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t v = problem->inputs[i], home = problem->values[v].home;
    if (home != TM_SOLVER_NONE) latest = tm_max_u64(latest, tm_solver_copy_ns(problem, v, home, memory));
  }
  return latest;
}

static uint64_t longest_way(const tm_solver_problem *problem, const uint64_t *outlook_ns) {
  uint64_t longest = 0;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    uint64_t least = TM_SOLVER_NEVER;
    for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
      if (outlook_ns[l] == TM_SOLVER_NEVER) continue;
      const uint64_t start_ns = start_of(problem, op, problem->labels[l].input_memory);
      least = tm_min_u64(least, tm_solver_add(start_ns, tm_solver_add(problem->labels[l].cost_ns, outlook_ns[l])));
    }
    longest = tm_max_u64(longest, least);
  }
  for (uint32_t v = 0; v < problem->value_count; v++) {
    const tm_solver_value *value = &problem->values[v];
    if (value->home == TM_SOLVER_NONE || value->wanted == TM_SOLVER_NONE) continue;
    longest = tm_max_u64(longest, tm_solver_copy_ns(problem, v, value->home, value->wanted));
  }
  return longest;
}

/* ---- work shared among resources ---- */

/* For any prices of the resources' time, not all zero: the cheapest way to do everything, divided by what one unit of time
   on all of them is worth, is a time that nobody beats.  Costs are shifted right by `shift`, so that nothing overflows and
   the bound stays one. */
static uint64_t priced_work(const tm_solver_problem *problem, const uint64_t *outlook_ns, uint32_t shift,
                            const uint32_t *prices, uint64_t *load) {
  uint64_t total = 0;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    uint64_t least = UINT64_MAX;        /* more than any price times cost: one label can be */
    uint32_t chosen = op->first_label;
    for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
      if (outlook_ns[l] == TM_SOLVER_NEVER) continue;
      const uint64_t priced = (problem->labels[l].cost_ns >> shift) * prices[problem->labels[l].resource];
      if (priced > least || (priced == least && !tm_label_goes_first(problem, l, chosen))) continue;
      least = priced;
      chosen = l;
    }
    load[problem->labels[chosen].resource] += problem->labels[chosen].cost_ns >> shift;
    total += least;
  }
  return total;
}

/* So that the dearest labels of all operations, shifted, stay below 2^43 together. */
static uint32_t find_shift(const tm_solver_problem *problem, const uint64_t *outlook_ns) {
  uint64_t most = 0;
  uint32_t shift = 0;
  for (uint32_t l = 0; l < problem->label_count; l++) {
    if (outlook_ns[l] != TM_SOLVER_NEVER) most = tm_max_u64(most, problem->labels[l].cost_ns);
  }
  while (most >> shift > (UINT64_C(1) << 43) / (problem->op_count + UINT64_C(1))) shift++;
  return shift;
}

/* Those with more than the mean load get dearer, the others cheaper, by a quarter at most and less every round.  Only ratios
   of loads count, so that the unit of time decides nothing. */
static void reprice(uint32_t *prices, uint64_t *load, const uint8_t *is_used, uint32_t count, uint32_t round) {
  uint64_t sum = 0, used = 0;
  for (uint32_t r = 0; r < count; r++) {
    sum += load[r];
    used += is_used[r];
  }
  const bool can_compare = sum != 0 && used <= MOST_COMPARED;
  for (uint32_t r = 0; r < count; r++) {
    const uint64_t step = prices[r] / (4 + round) + 1;
    const uint64_t relative = can_compare ? tm_min_u64(load[r] * 16 * used / sum, 32) : 16;       /* 16: the mean */
    const uint64_t price = prices[r] - step + step * relative / 16;
    prices[r] = is_used[r] ? (uint32_t)tm_min_u64(tm_max_u64(price, 1), HIGHEST_PRICE) : 0;
    load[r] = 0;
  }
}

static uint64_t shared_work(const tm_solver_problem *problem, const uint64_t *outlook_ns, uint32_t *prices, uint64_t *load,
                            uint8_t *is_used) {
  const uint32_t shift = find_shift(problem, outlook_ns);
  for (uint32_t l = 0; l < problem->label_count; l++) {
    if (outlook_ns[l] != TM_SOLVER_NEVER) is_used[problem->labels[l].resource] = 1;
  }
  for (uint32_t r = 0; r < problem->resource_count; r++) prices[r] = is_used[r] ? FIRST_PRICE : 0;
  uint64_t best = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint64_t worth = 0;
    for (uint32_t r = 0; r < problem->resource_count; r++) worth += prices[r];
    const uint64_t total = priced_work(problem, outlook_ns, shift, prices, load);
    if (worth != 0) best = tm_max_u64(best, total / worth + (shift == 0 && total % worth != 0));
    reprice(prices, load, is_used, problem->resource_count, round);
  }
  return best > TM_SOLVER_MOST_NS >> shift ? TM_SOLVER_MOST_NS : best << shift;
}

tm_status tm_makespan_bound_find(const tm_problem_index *index, const uint64_t *outlook_ns, tm_arena *arena, uint64_t *out_ns,
                                 tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  uint32_t *prices = tm_arena_calloc(arena, problem->resource_count, sizeof *prices);
  uint64_t *load = tm_arena_calloc(arena, problem->resource_count, sizeof *load);
  uint8_t *is_used = tm_arena_calloc(arena, problem->resource_count, sizeof *is_used);
  if (prices == NULL || load == NULL || is_used == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a bound");
  const uint64_t way_ns = longest_way(problem, outlook_ns);
  const uint64_t work_ns = shared_work(problem, outlook_ns, prices, load, is_used);
  *out_ns = tm_max_u64(way_ns, work_ns);
  return TM_OK;
}
