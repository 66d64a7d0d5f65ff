/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/dead_ends.h"

#include "base/checked.h"

#define MOST_SWEEPS 8u
#define MOST_CHOICES 64u                /* of an operation that is looked at: all pairs are compared */

typedef struct dead_ends {
  const tm_solver_problem *problem;
  const tm_choices        *choices;
  const tm_flow           *flow;
  bool                    *is_dropped;  /* [choice] */
  bool                    *is_due;      /* [op]: to be looked at */
} dead_ends;

/* The most that having `to` instead of `instead` can cost more; negative never counts: it is not certain to be gained.
   NEVER when it may make a difference between can and cannot. */
static uint64_t excess(uint64_t to, uint64_t instead) {
  if (to == TM_SOLVER_NEVER) return instead == TM_SOLVER_NEVER ? 0 : TM_SOLVER_NEVER;
  return instead == TM_SOLVER_NEVER || to <= instead ? 0 : to - instead;
}

/* Reading in one memory instead of another: of a value with other readers, the copy that is saved may be needed anyway.  What
   exceeds `most` is not looked at further. */
static uint64_t input_excess(const dead_ends *d, uint32_t value, uint32_t to, uint32_t instead, uint64_t most) {
  const tm_solver_value *row = &d->problem->values[value];
  const uint64_t memories = d->problem->memory_count;
  if (to == row->wanted) return 0;
  const bool is_shared = d->flow->first_reader[value + 1] - d->flow->first_reader[value] > 1 || row->wanted == instead;
  if (row->producer == TM_SOLVER_NONE) {
    const uint64_t copy = tm_solver_copy_ns(d->problem, value, row->home, to);
    return excess(copy, is_shared ? 0 : tm_solver_copy_ns(d->problem, value, row->home, instead));
  }
  const uint64_t *copies_ns = d->problem->copy_ns + row->size_class * memories * memories;
  uint64_t worst = 0;
  for (uint32_t c = d->choices->first[row->producer]; c < d->choices->first[row->producer + 1] && worst <= most; c++) {
    if (d->is_dropped[c]) continue;
    const uint64_t *from = copies_ns + d->choices->items[c].output_memory * memories;
    worst = tm_max_u64(worst, excess(from[to], is_shared ? 0 : from[instead]));
  }
  return worst;
}

/* Making a value in one memory instead of another, wherever it may be read. */
static uint64_t output_excess(const dead_ends *d, uint32_t value, uint32_t from, uint32_t instead, bool *is_read) {
  const tm_solver_value *row = &d->problem->values[value];
  uint64_t total = 0;
  for (uint32_t m = 0; m < d->problem->memory_count; m++) is_read[m] = m == row->wanted;
  for (uint32_t i = d->flow->first_reader[value]; i < d->flow->first_reader[value + 1]; i++) {
    const uint32_t op = d->flow->readers[i];
    for (uint32_t c = d->choices->first[op]; c < d->choices->first[op + 1]; c++) {
      if (!d->is_dropped[c]) is_read[d->choices->items[c].input_memory] = true;
    }
  }
  for (uint32_t m = 0; m < d->problem->memory_count; m++) {
    if (!is_read[m]) continue;
    total = tm_solver_add(
        total, excess(tm_solver_copy_ns(d->problem, value, from, m), tm_solver_copy_ns(d->problem, value, instead, m)));
  }
  return total;
}

/* Whether `choice` never costs more than `other`, and comes first where they are equal. */
static bool replaces(const dead_ends *d, uint32_t op, uint32_t choice, uint32_t other, bool *is_read) {
  const tm_choice *a = &d->choices->items[choice], *b = &d->choices->items[other];
  if (a->cost_ns > b->cost_ns) return false;
  const uint64_t saved = b->cost_ns - a->cost_ns;
  uint64_t worst = 0;
  if (a->input_memory != b->input_memory) {
    for (uint32_t i = 0; i < d->problem->ops[op].input_count && worst <= saved; i++) {
      const uint32_t value = d->problem->inputs[d->problem->ops[op].first_input + i];
      worst = tm_solver_add(worst, input_excess(d, value, a->input_memory, b->input_memory, saved));
    }
  }
  if (a->output_memory != b->output_memory) {
    for (uint32_t i = d->flow->first_output[op]; i < d->flow->first_output[op + 1] && worst <= saved; i++)
      worst = tm_solver_add(worst, output_excess(d, d->flow->outputs[i], a->output_memory, b->output_memory, is_read));
  }
  return worst < saved || (worst == saved && choice < other);
}

static uint64_t sweep_op(const dead_ends *d, uint32_t op, bool *is_read) {
  const uint32_t first = d->choices->first[op], end = d->choices->first[op + 1];
  uint64_t dropped = 0;
  if (end - first > MOST_CHOICES) return 0;
  for (uint32_t other = first; other < end; other++) {
    for (uint32_t choice = first; choice < end && !d->is_dropped[other]; choice++) {
      if (choice == other || d->is_dropped[choice] || !replaces(d, op, choice, other, is_read)) continue;
      d->is_dropped[other] = true;
      dropped++;
    }
  }
  return dropped;
}

/* Whoever shares a value with the operation may have dead ends now that it has fewer choices. */
static void mark_neighbours(const dead_ends *d, uint32_t op) {
  const tm_flow *flow = d->flow;
  const tm_solver_op *row = &d->problem->ops[op];
  d->is_due[op] = true;
  for (uint32_t i = 0; i < row->input_count; i++) {
    const uint32_t producer = d->problem->values[d->problem->inputs[row->first_input + i]].producer;
    if (producer != TM_SOLVER_NONE) d->is_due[producer] = true;
  }
  for (uint32_t i = flow->first_output[op]; i < flow->first_output[op + 1]; i++) {
    const uint32_t value = flow->outputs[i];
    for (uint32_t k = flow->first_reader[value]; k < flow->first_reader[value + 1]; k++) d->is_due[flow->readers[k]] = true;
  }
}

/* Looks at those that are due and says how many choices went. */
static uint64_t sweep(const dead_ends *d, bool *is_read) {
  uint64_t dropped = 0;
  for (uint32_t op = 0; op < d->problem->op_count; op++) {
    if (!d->is_due[op]) continue;
    d->is_due[op] = false;
    const uint64_t count = sweep_op(d, op, is_read);
    if (count != 0) mark_neighbours(d, op);
    dropped += count;
  }
  return dropped;
}

tm_status tm_dead_ends_drop(tm_choices *choices, const tm_solver_problem *p, const tm_flow *flow, tm_arena *arena,
                            uint64_t *out_dropped, tm_error *error) {
  const uint64_t choice_count = choices->first[p->op_count];
  bool *is_dropped = tm_arena_calloc(arena, choice_count, sizeof *is_dropped);
  bool *is_due = tm_arena_calloc(arena, p->op_count, sizeof *is_due);
  bool *is_read = tm_arena_calloc(arena, p->memory_count, sizeof *is_read);
  uint32_t *scratch = tm_arena_alloc(arena, choice_count * sizeof *scratch);
  if (is_dropped == NULL || is_due == NULL || is_read == NULL || scratch == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the dead ends of %u operations", p->op_count);
  const dead_ends d = { p, choices, flow, is_dropped, is_due };
  uint64_t all = 0, dropped = 1;
  for (uint32_t op = 0; op < p->op_count; op++) is_due[op] = true;
  for (uint32_t i = 0; i < MOST_SWEEPS && dropped != 0; i++) {
    dropped = sweep(&d, is_read);
    all += dropped;
  }
  tm_choices_drop(choices, p, is_dropped, scratch);
  *out_dropped = all;
  return TM_OK;
}
