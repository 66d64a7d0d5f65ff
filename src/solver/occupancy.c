/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/occupancy.h"

#include <string.h>

#include "base/checked.h"

#define MOST_BYTES (UINT64_C(1) << 62)  /* of all values, and of a workspace, so that no sum in one memory overflows */

static tm_status check_bytes(const tm_solver_problem *p, tm_error *error) {
  uint64_t sum = 0;
  bool is_fit = true;
  for (uint32_t v = 0; v < p->value_count && is_fit; v++)
    is_fit = tm_checked_add(sum, p->values[v].bytes, &sum) && sum <= MOST_BYTES;
  for (uint32_t i = 0; i < p->label_count && is_fit; i++) is_fit = p->labels[i].workspace_bytes <= MOST_BYTES;
  return is_fit ? TM_OK : tm_fail(error, TM_ERROR_ARGUMENT, "the values or a workspace have more than 2^62 bytes");
}

tm_status tm_occupancy_init(tm_occupancy *o, const tm_solver_problem *p, const tm_flow *flow, tm_arena *arena, tm_error *error) {
  *o = (tm_occupancy){ .problem = p, .flow = flow };
  TM_TRY(check_bytes(p, error));
  o->used_bytes = tm_arena_calloc(arena, (uint64_t)p->memory_count * ((uint64_t)p->op_count + 1), sizeof(uint64_t));
  o->peak_bytes = tm_arena_calloc(arena, p->memory_count, sizeof(uint64_t));
  o->peak_op = tm_arena_calloc(arena, p->memory_count, sizeof(uint32_t));
  o->first_use = tm_arena_alloc(arena, p->memory_count * sizeof(uint32_t));
  o->last_use = tm_arena_alloc(arena, p->memory_count * sizeof(uint32_t));
  o->touched = tm_arena_alloc(arena, p->memory_count * sizeof(uint32_t));
  if (o->used_bytes == NULL || o->peak_bytes == NULL || o->peak_op == NULL || o->first_use == NULL ||
      o->last_use == NULL || o->touched == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to weigh a plan of %u operations", p->op_count);
  for (uint32_t m = 0; m < p->memory_count; m++) o->first_use[m] = TM_SOLVER_NONE;
  return TM_OK;
}

/* From operation `first` to `last`.  The place behind the last one takes what never ends. */
static void occupy(tm_occupancy *o, uint32_t memory, uint32_t first, uint32_t last, uint64_t bytes) {
  uint64_t *used = o->used_bytes + (uint64_t)memory * ((uint64_t)o->problem->op_count + 1);
  used[first] += bytes;
  used[last + 1] -= bytes;
}

static void occupy_unless_lent(tm_occupancy *o, uint32_t value, uint32_t memory, uint32_t first, uint32_t last) {
  if (!tm_solver_is_lent(o->problem, value, memory)) occupy(o, memory, first, last, o->problem->values[value].bytes);
}

/* Fills first_use and last_use of the memories in which the value is read; returns how many there are. */
static uint32_t find_uses(tm_occupancy *o, uint32_t value, const uint32_t *labels) {
  uint32_t count = 0;
  for (uint32_t i = o->flow->first_reader[value]; i < o->flow->first_reader[value + 1]; i++) {
    const uint32_t op = o->flow->readers[i], memory = o->problem->labels[labels[op]].input_memory;
    if (o->first_use[memory] == TM_SOLVER_NONE) {
      o->first_use[memory] = o->last_use[memory] = op;
      o->touched[count++] = memory;
    }
    if (op < o->first_use[memory]) o->first_use[memory] = op;
    if (op > o->last_use[memory]) o->last_use[memory] = op;
  }
  return count;
}

static void weigh_value(tm_occupancy *o, uint32_t value, const uint32_t *labels) {
  const tm_solver_problem *p = o->problem;
  const tm_solver_value *row = &p->values[value];
  const bool is_home = row->producer == TM_SOLVER_NONE;
  const uint32_t source = is_home ? row->home : p->labels[labels[row->producer]].output_memory;
  const uint32_t begin = is_home ? 0 : row->producer, end = p->op_count - 1;
  const uint32_t uses = find_uses(o, value, labels);
  uint32_t source_end = begin;
  for (uint32_t i = 0; i < uses; i++) {
    const uint32_t memory = o->touched[i];
    const bool stays = memory == row->wanted || tm_solver_is_kept(p, value);
    const uint32_t until = memory == source ? o->last_use[memory] : stays ? begin : o->first_use[memory];
    if (until > source_end) source_end = until;
    if (memory != source && memory != row->wanted) {
      o->total_ns = tm_solver_add(o->total_ns, tm_solver_copy_ns(p, value, source, memory));
      occupy_unless_lent(o, value, memory, stays ? 0 : o->first_use[memory], stays ? end : o->last_use[memory]);
    }
    o->first_use[memory] = TM_SOLVER_NONE;
  }
  const bool stays_home = tm_solver_has_trait(p, value, TM_SOLVER_STAYS);
  if (row->wanted == source || stays_home) source_end = end;
  const bool is_anywhere = !is_home || uses != 0 || row->wanted != TM_SOLVER_NONE || stays_home;
  if (is_anywhere) occupy_unless_lent(o, value, source, begin, source_end);
  if (row->wanted == TM_SOLVER_NONE || row->wanted == source) return;
  o->total_ns = tm_solver_add(o->total_ns, tm_solver_copy_ns(p, value, source, row->wanted));
  occupy_unless_lent(o, value, row->wanted, begin, end);
}

static void find_peaks(tm_occupancy *o) {
  const uint32_t ops = o->problem->op_count;
  o->excess_bytes = 0;
  for (uint32_t m = 0; m < o->problem->memory_count; m++) {
    uint64_t *used = o->used_bytes + (uint64_t)m * ((uint64_t)ops + 1);
    o->peak_bytes[m] = 0;
    o->peak_op[m] = 0;
    for (uint32_t op = 0; op < ops; op++) {
      if (op != 0) used[op] += used[op - 1];
      if (used[op] <= o->peak_bytes[m]) continue;
      o->peak_bytes[m] = used[op];
      o->peak_op[m] = op;
    }
    const uint64_t budget = tm_occupancy_budget(o->problem, m);
    if (o->peak_bytes[m] <= budget) continue;
    o->excess_bytes += tm_min_u64(o->peak_bytes[m] - budget, TM_OCCUPANCY_MOST_EXCESS - o->excess_bytes);
  }
}

void tm_occupancy_weigh(tm_occupancy *o, const uint32_t *labels) {
  const tm_solver_problem *p = o->problem;
  o->total_ns = 0;
  if (p->op_count == 0) return;
  memset(o->used_bytes, 0, (uint64_t)p->memory_count * ((uint64_t)p->op_count + 1) * sizeof *o->used_bytes);
  for (uint32_t op = 0; op < p->op_count; op++) {
    const tm_solver_label *label = &p->labels[labels[op]];
    o->total_ns = tm_solver_add(o->total_ns, label->cost_ns);
    if (label->workspace_bytes != 0) occupy(o, label->output_memory, op, op, label->workspace_bytes);
  }
  for (uint32_t v = 0; v < p->value_count; v++) weigh_value(o, v, labels);
  find_peaks(o);
}
