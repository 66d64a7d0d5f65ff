/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/residency.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

#define FOREVER UINT64_MAX

/* Kinds of change; what takes no time at all still needs its room. */
#define GIVEN_BACK      0u
#define TAKEN           1u
#define GIVEN_BACK_SOON 2u

tm_status tm_residency_init(tm_residency *residency, const tm_problem_index *index, tm_arena *arena, tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  const uint64_t most_copies = (uint64_t)index->edge_count + problem->value_count;
  const uint64_t most_changes = 2 * (problem->value_count + most_copies + problem->op_count);
  memset(residency, 0, sizeof *residency);
  residency->changes = tm_arena_alloc(arena, most_changes * sizeof *residency->changes);
  residency->peak_bytes = tm_arena_calloc(arena, problem->memory_count, sizeof *residency->peak_bytes);
  residency->used_bytes = tm_arena_calloc(arena, problem->memory_count, sizeof *residency->used_bytes);
  residency->copy_until_ns = tm_arena_alloc(arena, most_copies * sizeof *residency->copy_until_ns);
  if (residency->changes == NULL || residency->peak_bytes == NULL || residency->used_bytes == NULL ||
      residency->copy_until_ns == NULL) {
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to see how full memories get");
  }
  return TM_OK;
}

static void add(tm_residency *residency, uint32_t memory, uint64_t bytes, uint64_t from_ns, uint64_t until_ns) {
  if (bytes == 0) return;
  residency->changes[residency->change_count++] = (tm_residency_change){ from_ns, bytes, memory, TAKEN };
  if (until_ns == FOREVER) return;
  const uint32_t kind = from_ns == until_ns ? GIVEN_BACK_SOON : GIVEN_BACK;
  residency->changes[residency->change_count++] = (tm_residency_change){ until_ns, bytes, memory, kind };
}

/* When the copies of a value, and (the result) the value where it is made, have been used for the last time. */
static uint64_t find_last_uses(tm_residency *residency, const tm_event_model *model, uint32_t v, uint32_t source) {
  const tm_problem_index *index = model->index;
  const tm_solver_value *value = &index->problem->values[v];
  uint64_t source_until_ns = value->producer == TM_SOLVER_NONE ? FOREVER : model->op_end_ns[value->producer];
  if (value->wanted == source) source_until_ns = FOREVER;
  for (uint32_t c = model->value_first_copy[v]; c != TM_SOLVER_NONE; c = model->copies[c].next_of_value) {
    source_until_ns = tm_max_u64(source_until_ns, model->copies[c].end_ns);
    const bool stays = model->copies[c].to == value->wanted || tm_solver_is_kept(index->problem, v);
    residency->copy_until_ns[c] = stays ? FOREVER : model->copies[c].end_ns;
  }
  for (uint32_t i = index->flow.first_reader[v]; i < index->flow.first_reader[v + 1]; i++) {
    const uint32_t reader = index->flow.readers[i];
    const uint32_t memory = index->problem->labels[model->labels[reader]].input_memory;
    uint64_t *until_ns = memory == source ? &source_until_ns : &residency->copy_until_ns[tm_event_model_copy(model, v, memory)];
    *until_ns = tm_max_u64(*until_ns, model->op_end_ns[reader]);
  }
  return source_until_ns;
}

static void add_value(tm_residency *residency, const tm_event_model *model, uint32_t v) {
  const tm_solver_problem *problem = model->index->problem;
  const tm_solver_value *value = &problem->values[v];
  const uint32_t source = tm_problem_source(problem, model->labels, v);
  const uint64_t until_ns = find_last_uses(residency, model, v, source);
  if (!tm_solver_is_lent(problem, v, source))
    add(residency, source, value->bytes, value->producer == TM_SOLVER_NONE ? 0 : model->op_start_ns[value->producer], until_ns);
  for (uint32_t c = model->value_first_copy[v]; c != TM_SOLVER_NONE; c = model->copies[c].next_of_value) {
    const uint64_t from_ns = tm_solver_is_kept(problem, v) ? 0 : model->copies[c].start_ns;
    if (tm_solver_is_lent(problem, v, model->copies[c].to)) continue;
    add(residency, model->copies[c].to, value->bytes, from_ns, residency->copy_until_ns[c]);
  }
}

static int compare(const void *left, const void *right) {
  const tm_residency_change *a = left, *b = right;
  if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns ? -1 : 1;
  return (a->kind > b->kind) - (a->kind < b->kind);
}

/* So that the sums below cannot overflow; sets the peaks of memories that they leave out. */
static void check_sums(tm_residency *residency, uint32_t memory_count) {
  memset(residency->peak_bytes, 0, memory_count * sizeof *residency->peak_bytes);
  memset(residency->used_bytes, 0, memory_count * sizeof *residency->used_bytes);
  for (uint64_t i = 0; i < residency->change_count; i++) {
    const tm_residency_change *change = &residency->changes[i];
    uint64_t *sum = &residency->used_bytes[change->memory];
    if (change->kind == TAKEN && !tm_checked_add(*sum, change->bytes, sum)) residency->peak_bytes[change->memory] = UINT64_MAX;
  }
  memset(residency->used_bytes, 0, memory_count * sizeof *residency->used_bytes);
}

void tm_residency_measure(tm_residency *residency, const tm_event_model *model) {
  const tm_solver_problem *problem = model->index->problem;
  residency->change_count = 0;
  for (uint32_t v = 0; v < problem->value_count; v++) add_value(residency, model, v);
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_label *label = &problem->labels[model->labels[o]];
    add(residency, label->output_memory, label->workspace_bytes, model->op_start_ns[o], model->op_end_ns[o]);
  }
  check_sums(residency, problem->memory_count);
  if (residency->change_count != 0) {
    qsort(residency->changes, residency->change_count, sizeof *residency->changes, compare);
  }
  for (uint64_t i = 0; i < residency->change_count; i++) {
    const tm_residency_change *change = &residency->changes[i];
    uint64_t *used = &residency->used_bytes[change->memory], *peak = &residency->peak_bytes[change->memory];
    if (*peak == UINT64_MAX) continue;
    *used = change->kind == TAKEN ? *used + change->bytes : *used - change->bytes;
    *peak = tm_max_u64(*peak, *used);
  }
}
