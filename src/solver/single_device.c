/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/single_device.h"

#include "base/error.h"

typedef struct device_sum {
  uint64_t cost_ns;             /* of what it can do, with its cheapest labels */
  uint64_t cheapest_ns;         /* of the operation `seen` */
  uint32_t op_count;            /* that it can do */
  uint32_t seen;
} device_sum;

static void add_up_op(const tm_problem_index *index, const tm_label_groups *groups, const uint64_t *viable, uint32_t o,
                      device_sum *sums) {
  const tm_solver_op *op = &index->problem->ops[o];
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    if (viable[l] == TM_SOLVER_NEVER) continue;
    device_sum *sum = &sums[groups->of_label[l]];
    const uint64_t cost_ns = index->problem->labels[l].cost_ns;
    if (sum->seen != o) {
      sum->seen = o;
      sum->op_count++;
      sum->cost_ns = tm_solver_add(sum->cost_ns, cost_ns);
    } else if (cost_ns < sum->cheapest_ns) {
      sum->cost_ns -= sum->cheapest_ns - cost_ns;
    } else {
      continue;
    }
    sum->cheapest_ns = cost_ns;
  }
}

static bool is_better(const device_sum *a, const device_sum *b) {
  return a->op_count != b->op_count ? a->op_count > b->op_count : a->cost_ns < b->cost_ns;
}

tm_status tm_single_device_list(const tm_problem_index *index, const tm_label_groups *groups, const uint64_t *viable,
                                uint32_t most, tm_arena *arena, uint32_t *out_chosen, uint32_t *out_count, tm_error *error) {
  device_sum *sums = tm_arena_alloc(arena, groups->count * sizeof *sums);
  if (sums == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to look at single devices");
  for (uint32_t g = 0; g < groups->count; g++) sums[g] = (device_sum){ 0, 0, 0, TM_SOLVER_NONE };
  for (uint32_t o = 0; o < index->problem->op_count; o++) add_up_op(index, groups, viable, o, sums);
  uint32_t count = 0;
  while (count < most) {
    uint32_t best = TM_SOLVER_NONE;
    for (uint32_t g = 0; g < groups->count; g++) {
      if (sums[g].op_count != 0 && (best == TM_SOLVER_NONE || is_better(&sums[g], &sums[best]))) best = g;
    }
    if (best == TM_SOLVER_NONE) break;
    out_chosen[count++] = best;
    sums[best].op_count = 0;
  }
  *out_count = count;
  return TM_OK;
}

static uint64_t price(const tm_solver_problem *problem, const uint32_t *labels, uint32_t o, uint32_t l) {
  const tm_solver_op *op = &problem->ops[o];
  uint64_t sum_ns = problem->labels[l].cost_ns;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t v = problem->inputs[i], from = tm_problem_source(problem, labels, v);
    sum_ns = tm_solver_add(sum_ns, tm_solver_copy_ns(problem, v, from, problem->labels[l].input_memory));
  }
  return sum_ns;
}

typedef struct device_labels {
  const tm_problem_index *index;
  const tm_label_groups  *groups;
  const uint64_t         *viable;
  uint32_t                group;
  bool                    is_own;       /* the group's own, or what is not its own */
} device_labels;

/* The first from `l` on, or the end. */
static uint32_t next_label(const device_labels *of, uint32_t l, uint32_t end) {
  while (l < end && ((of->groups->of_label[l] == of->group) != of->is_own || of->viable[l] == TM_SOLVER_NEVER)) l++;
  return l;
}

/* TM_SOLVER_NONE: there is none that can be.  A sole one has to be compared with none. */
static uint32_t find_cheapest(const device_labels *of, const uint32_t *labels, uint32_t o) {
  const tm_solver_problem *problem = of->index->problem;
  const uint32_t end = problem->ops[o].first_label + problem->ops[o].label_count;
  const uint32_t first = next_label(of, problem->ops[o].first_label, end);
  uint32_t best = TM_SOLVER_NONE;
  uint64_t best_ns = TM_SOLVER_NEVER;
  if (first < end && of->index->has_all_ways != 0 && next_label(of, first + 1, end) == end) return first;
  for (uint32_t l = first; l < end; l = next_label(of, l + 1, end)) {
    const uint64_t price_ns = price(problem, labels, o, l);
    if (price_ns == TM_SOLVER_NEVER || price_ns > best_ns) continue;
    if (price_ns == best_ns && !tm_label_goes_first(problem, l, best)) continue;
    best = l;
    best_ns = price_ns;
  }
  return best;
}

bool tm_single_device_choose(const tm_problem_index *index, const tm_label_groups *groups, const uint64_t *viable,
                             uint32_t group, uint32_t *out_labels) {
  const device_labels own = { index, groups, viable, group, true }, others = { index, groups, viable, group, false };
  for (uint32_t o = 0; o < index->problem->op_count; o++) {
    uint32_t best = find_cheapest(&own, out_labels, o);
    if (best == TM_SOLVER_NONE) best = find_cheapest(&others, out_labels, o);
    if (best == TM_SOLVER_NONE) return false;
    out_labels[o] = best;
  }
  return true;
}
