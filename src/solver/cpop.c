/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/cpop.h"

#include "base/error.h"

typedef struct path_sum {
  uint64_t cost_ns;
  uint32_t op_count;            /* of the path that the device can run */
  uint32_t cheapest;            /* its label for the operation at hand */
} path_sum;

static uint32_t find_first(const tm_problem_index *index, const tm_ranks *ranks) {
  uint32_t first = TM_SOLVER_NONE;
  for (uint32_t o = 0; o < index->problem->op_count; o++) {
    const bool is_entry = ranks->downward_ns[o] == 0;
    if (is_entry && (first == TM_SOLVER_NONE || ranks->upward_ns[o] > ranks->upward_ns[first])) first = o;
  }
  return first;
}

/* The reader that the operation's upward rank comes from; TM_SOLVER_NONE at the end. */
static uint32_t find_next(const tm_problem_index *index, const tm_ranks *ranks, uint32_t o) {
  uint32_t next = TM_SOLVER_NONE;
  uint64_t longest = 0;
  for (uint32_t i = index->flow.first_output[o]; i < index->flow.first_output[o + 1]; i++) {
    const uint32_t v = index->flow.outputs[i];
    const uint64_t copy_ns = ranks->mean_copy_ns[index->problem->values[v].size_class];
    for (uint32_t use = index->flow.first_reader[v]; use < index->flow.first_reader[v + 1]; use++) {
      const uint32_t reader = index->flow.readers[use];
      const uint64_t way_ns = tm_solver_add(copy_ns, ranks->upward_ns[reader]);
      if (next != TM_SOLVER_NONE && (way_ns < longest || (way_ns == longest && reader >= next))) continue;
      next = reader;
      longest = way_ns;
    }
  }
  return next;
}

/* The device's cheapest label for each operation, where it has one. */
static uint32_t find_label(const tm_problem_index *index, const tm_label_groups *groups, const tm_ranks *ranks, uint32_t o,
                           uint32_t group) {
  const tm_solver_op *op = &index->problem->ops[o];
  uint32_t best = TM_SOLVER_NONE;
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    if (groups->of_label[l] != group || ranks->outlook_ns[l] == TM_SOLVER_NEVER) continue;
    if (best == TM_SOLVER_NONE || tm_label_goes_first(index->problem, l, best)) best = l;
  }
  return best;
}

static void add_up_op(const tm_problem_index *index, const tm_label_groups *groups, const tm_ranks *ranks, uint32_t o,
                      path_sum *sums) {
  const tm_solver_op *op = &index->problem->ops[o];
  const tm_solver_label *labels = index->problem->labels;
  for (uint32_t l = op->first_label; l < op->first_label + op->label_count; l++) {
    if (ranks->outlook_ns[l] == TM_SOLVER_NEVER) continue;
    path_sum *sum = &sums[groups->of_label[l]];
    const bool is_first = sum->cheapest < op->first_label || sum->cheapest - op->first_label >= op->label_count;
    if (is_first) {
      sum->op_count++;
      sum->cost_ns = tm_solver_add(sum->cost_ns, labels[l].cost_ns);
    } else if (labels[l].cost_ns < labels[sum->cheapest].cost_ns) {
      sum->cost_ns -= labels[sum->cheapest].cost_ns - labels[l].cost_ns;
    } else {
      continue;
    }
    sum->cheapest = l;
  }
}

tm_status tm_cpop_prepare(const tm_problem_index *index, const tm_label_groups *groups, const tm_ranks *ranks, tm_arena *arena,
                          uint64_t *out_urgency, uint32_t *out_forced, tm_error *error) {
  path_sum *sums = tm_arena_alloc(arena, groups->count * sizeof *sums);
  if (sums == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to find a critical path");
  for (uint32_t g = 0; g < groups->count; g++) sums[g] = (path_sum){ 0, 0, TM_SOLVER_NONE };
  for (uint32_t o = 0; o < index->problem->op_count; o++) {
    out_urgency[o] = tm_solver_add(ranks->upward_ns[o], ranks->downward_ns[o]);
    out_forced[o] = TM_SOLVER_NONE;
  }
  for (uint32_t o = find_first(index, ranks); o != TM_SOLVER_NONE; o = find_next(index, ranks, o)) {
    add_up_op(index, groups, ranks, o, sums);
  }
  uint32_t best = 0;
  for (uint32_t g = 1; g < groups->count; g++) {
    const bool is_better = sums[g].op_count != sums[best].op_count ? sums[g].op_count > sums[best].op_count
                                                                   : sums[g].cost_ns < sums[best].cost_ns;
    if (is_better) best = g;
  }
  for (uint32_t o = find_first(index, ranks); o != TM_SOLVER_NONE; o = find_next(index, ranks, o)) {
    out_forced[o] = find_label(index, groups, ranks, o, best);
  }
  return TM_OK;
}
