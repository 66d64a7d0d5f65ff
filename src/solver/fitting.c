/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/fitting.h"

#include "base/checked.h"

#define MOST_SWEEPS 8u
#define WORK        (UINT64_C(1) << 25) /* steps over values and operations in all checks together */

tm_status tm_fitting_init(tm_fitting *f, const tm_solver_problem *p, const tm_flow *flow, tm_occupancy *occupancy, tm_arena *arena,
                          tm_error *error) {
  *f = (tm_fitting){ p, flow, occupancy, tm_arena_calloc(arena, p->op_count, sizeof(uint32_t)), 0 };
  if (f->labels == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan of %u operations", p->op_count);
  f->checks_left = WORK / ((uint64_t)p->value_count + (uint64_t)p->op_count * (1 + p->memory_count) + 1);
  return TM_OK;
}

static bool is_better(const tm_solver_label *a, bool is_a_inside, const tm_solver_label *b, bool is_b_inside) {
  if (is_a_inside != is_b_inside) return is_a_inside;
  return a->cost_ns != b->cost_ns ? a->cost_ns < b->cost_ns : a->rank < b->rank;
}

void tm_fitting_single(tm_fitting *f, uint32_t memory) {
  const tm_solver_problem *p = f->problem;
  for (uint32_t op = 0; op < p->op_count; op++) {
    const tm_solver_op *row = &p->ops[op];
    uint32_t best = row->first_label;
    bool is_best_inside = false;
    for (uint32_t i = row->first_label; i < row->first_label + row->label_count; i++) {
      const tm_solver_label *label = &p->labels[i];
      const bool inside = label->input_memory == memory && label->output_memory == memory && label->cost_ns != TM_SOLVER_NEVER;
      if (i != row->first_label && !is_better(label, inside, &p->labels[best], is_best_inside)) continue;
      best = i;
      is_best_inside = inside;
    }
    f->labels[op] = best;
  }
}

typedef struct weight {
  uint64_t excess_bytes;
  uint64_t total_ns;
} weight;

/* Plans that cannot be are worse than all others. */
static bool is_lighter(weight a, weight b) {
  const bool a_can = a.total_ns != TM_SOLVER_NEVER, b_can = b.total_ns != TM_SOLVER_NEVER;
  if (a_can != b_can) return a_can;
  return a.excess_bytes != b.excess_bytes ? a.excess_bytes < b.excess_bytes : a.total_ns < b.total_ns;
}

static weight weigh(tm_fitting *f) {
  f->checks_left--;
  tm_occupancy_weigh(f->occupancy, f->labels);
  return (weight){ f->occupancy->excess_bytes, f->occupancy->total_ns };
}

static bool improve_op(tm_fitting *f, uint32_t op, weight *at_hand) {
  const tm_solver_op *row = &f->problem->ops[op];
  uint32_t best = f->labels[op];
  bool is_moved = false;
  for (uint32_t i = row->first_label; i < row->first_label + row->label_count && f->checks_left != 0; i++) {
    if (f->problem->labels[i].cost_ns == TM_SOLVER_NEVER || i == best) continue;
    f->labels[op] = i;
    const weight tried = weigh(f);
    if (!is_lighter(tried, *at_hand)) continue;
    *at_hand = tried;
    best = i;
    is_moved = true;
  }
  f->labels[op] = best;
  return is_moved;
}

void tm_fitting_improve(tm_fitting *f) {
  if (f->checks_left == 0) return;
  weight at_hand = weigh(f);
  bool is_moved = true;
  for (uint32_t sweep = 0; sweep < MOST_SWEEPS && is_moved && f->checks_left != 0; sweep++) {
    is_moved = false;
    for (uint32_t op = 0; op < f->problem->op_count && f->checks_left != 0; op++) is_moved |= improve_op(f, op, &at_hand);
  }
}
