/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_choice.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a graph"); }

/* ---- one pass ---- */

/* Where values are while nodes get their labels one after the other. */
typedef struct pass {
  const tm_solver_problem *solver;
  bool     *is_there;           /* [value][memory] */
  uint32_t *source;             /* [value]: memory that it is copied from */
  uint32_t *first_output;       /* [op]: its outputs are outputs[first_output[op] ... first_output[op + 1]) */
  uint32_t *outputs;
  uint64_t  total_ns;
} pass;

static bool is_there(const pass *p, uint32_t value, uint32_t memory) {
  return p->is_there[(uint64_t)value * p->solver->memory_count + memory];
}

static uint64_t fetch_ns(const pass *p, uint32_t value, uint32_t memory) {
  return is_there(p, value, memory) ? 0 : tm_solver_copy_ns(p->solver, value, p->source[value], memory);
}

static void place(pass *p, uint32_t value, uint32_t memory) {
  p->is_there[(uint64_t)value * p->solver->memory_count + memory] = true;
}

static uint64_t label_ns(const pass *p, uint32_t op, uint32_t label) {
  const tm_solver_op *one = &p->solver->ops[op];
  const tm_solver_label *how = &p->solver->labels[label];
  uint64_t ns = how->cost_ns;
  for (uint32_t i = 0; i < one->input_count; i++)
    ns = tm_solver_add(ns, fetch_ns(p, p->solver->inputs[one->first_input + i], how->input_memory));
  for (uint32_t i = p->first_output[op]; i < p->first_output[op + 1]; i++) {
    const uint32_t wanted = p->solver->values[p->outputs[i]].wanted;
    if (wanted != TM_SOLVER_NONE) ns = tm_solver_add(ns, tm_solver_copy_ns(p->solver, p->outputs[i], how->output_memory, wanted));
  }
  return ns;
}

static void take_label(pass *p, uint32_t op, uint32_t label) {
  const tm_solver_op *one = &p->solver->ops[op];
  const tm_solver_label *how = &p->solver->labels[label];
  p->total_ns = tm_solver_add(p->total_ns, label_ns(p, op, label));
  for (uint32_t i = 0; i < one->input_count; i++) place(p, p->solver->inputs[one->first_input + i], how->input_memory);
  for (uint32_t i = p->first_output[op]; i < p->first_output[op + 1]; i++) {
    const uint32_t value = p->outputs[i];
    p->source[value] = how->output_memory;
    place(p, value, how->output_memory);
    if (p->solver->values[value].wanted != TM_SOLVER_NONE) place(p, value, p->solver->values[value].wanted);
  }
}

/* What is there from the start, and wanted elsewhere, too. */
static void start(pass *p) {
  memset(p->is_there, 0, (uint64_t)p->solver->value_count * p->solver->memory_count * sizeof *p->is_there);
  p->total_ns = 0;
  for (uint32_t i = 0; i < p->solver->value_count; i++) {
    const tm_solver_value *value = &p->solver->values[i];
    if (value->producer != TM_SOLVER_NONE) continue;
    p->source[i] = value->home;
    place(p, i, value->home);
    if (value->wanted == TM_SOLVER_NONE) continue;
    p->total_ns = tm_solver_add(p->total_ns, fetch_ns(p, i, value->wanted));
    place(p, i, value->wanted);
  }
}

/* ---- choosing ---- */

static bool is_better(const pass *p, uint64_t ns, uint32_t label, uint64_t best_ns, uint32_t best) {
  if (best == TM_SOLVER_NONE || ns != best_ns) return best == TM_SOLVER_NONE || ns < best_ns;
  return p->solver->labels[label].rank < p->solver->labels[best].rank;
}

/* The cheapest, the copies that it needs included; from `memory` only, where that can be, unless it is NONE. */
static uint32_t cheapest(const pass *p, uint32_t op, uint32_t memory) {
  const tm_solver_op *one = &p->solver->ops[op];
  uint32_t best = TM_SOLVER_NONE;
  uint64_t best_ns = 0;
  for (uint32_t label = one->first_label; label < one->first_label + one->label_count; label++) {
    if (memory != TM_SOLVER_NONE && p->solver->labels[label].input_memory != memory) continue;
    const uint64_t ns = label_ns(p, op, label);
    if (!is_better(p, ns, label, best_ns, best)) continue;
    best = label;
    best_ns = ns;
  }
  return best;
}

static void choose_all(pass *p, uint32_t memory, uint32_t *labels) {
  start(p);
  for (uint32_t op = 0; op < p->solver->op_count; op++) {
    uint32_t label = cheapest(p, op, memory);
    if (label == TM_SOLVER_NONE) label = cheapest(p, op, TM_SOLVER_NONE);
    labels[op] = label;
    take_label(p, op, label);
  }
}

static void list_outputs(pass *p) {
  const tm_solver_problem *solver = p->solver;
  for (uint32_t i = 0; i < solver->value_count; i++)
    if (solver->values[i].producer != TM_SOLVER_NONE) p->first_output[solver->values[i].producer + 1]++;
  for (uint32_t op = 0; op < solver->op_count; op++) p->first_output[op + 1] += p->first_output[op];
  uint32_t *next = p->source;           /* not in use yet */
  memcpy(next, p->first_output, solver->op_count * sizeof *next);
  for (uint32_t i = 0; i < solver->value_count; i++)
    if (solver->values[i].producer != TM_SOLVER_NONE) p->outputs[next[solver->values[i].producer]++] = i;
}

static bool pass_init(pass *p, const tm_solver_problem *solver, tm_arena *arena) {
  const uint64_t most = tm_max_u64(solver->value_count, solver->op_count);
  uint64_t cells;
  memset(p, 0, sizeof *p);
  p->solver = solver;
  if (!tm_checked_mul(solver->value_count, solver->memory_count, &cells)) return false;
  p->is_there = tm_arena_calloc(arena, cells, sizeof *p->is_there);
  p->source = tm_arena_calloc(arena, most, sizeof *p->source);
  p->first_output = tm_arena_calloc(arena, (uint64_t)solver->op_count + 1, sizeof *p->first_output);
  p->outputs = tm_arena_calloc(arena, solver->value_count, sizeof *p->outputs);
  if (p->is_there == NULL || p->source == NULL || p->first_output == NULL || p->outputs == NULL) return false;
  list_outputs(p);
  return true;
}

/* The best of going by what is cheapest at each node, and of staying in one memory where that can be. */
static tm_status choose(tm_graph_problem *problem, tm_arena *arena, tm_graph_choice *choice, tm_error *error) {
  pass p;
  uint32_t *labels = tm_arena_calloc(arena, choice->node_count, sizeof *labels);
  if (labels == NULL || !pass_init(&p, &problem->solver, arena)) return no_memory(error);
  choice->total_ns = TM_SOLVER_NEVER;
  const uint32_t home_count = problem->graph->states.count == 0 ? 1 : problem->solver.memory_count;
  for (uint32_t home = 0; home < home_count; home++) {
    tm_graph_problem_keep_states(problem, home);
    for (uint32_t memory = 0; memory <= problem->solver.memory_count; memory++) {
      choose_all(&p, memory == problem->solver.memory_count ? TM_SOLVER_NONE : memory, labels);
      if (p.total_ns >= choice->total_ns) continue;
      choice->total_ns = p.total_ns;
      choice->state_memory = home;
      if (choice->node_count != 0) memcpy(choice->labels, labels, choice->node_count * sizeof *labels);
    }
  }
  tm_graph_problem_keep_states(problem, choice->state_memory);
  return TM_OK;
}

/* ---- alternates ---- */

static void find_alternates(const tm_graph_problem *problem, tm_graph_choice *choice) {
  const tm_solver_problem *solver = &problem->solver;
  for (uint32_t op = 0; op < choice->node_count; op++) {
    const tm_solver_op *one = &solver->ops[op];
    const tm_device_slot *taken = tm_graph_problem_candidate(problem, op, choice->labels[op])->device;
    uint32_t best = TM_SOLVER_NONE;
    for (uint32_t label = one->first_label; label < one->first_label + one->label_count; label++) {
      if (tm_graph_problem_candidate(problem, op, label)->device == taken) continue;
      const tm_solver_label *how = &solver->labels[label], *known = &solver->labels[best == TM_SOLVER_NONE ? label : best];
      if (best == TM_SOLVER_NONE || how->cost_ns < known->cost_ns || (how->cost_ns == known->cost_ns && how->rank < known->rank))
        best = label;
    }
    choice->alternates[op] = best;
  }
}

static tm_status begin(tm_graph_choice *choice, tm_memory *memory, uint32_t node_count, tm_error *error) {
  *choice = (tm_graph_choice){ .memory = memory, .node_count = node_count };
  choice->labels = tm_memory_calloc(memory, node_count, sizeof *choice->labels);
  choice->alternates = tm_memory_calloc(memory, node_count, sizeof *choice->alternates);
  if (choice->labels != NULL && choice->alternates != NULL) return TM_OK;
  tm_graph_choice_deinit(choice);
  return no_memory(error);
}

tm_status tm_graph_choice_make(tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *out_choice, tm_error *error) {
  tm_arena arena;
  TM_TRY(begin(out_choice, memory, problem->graph->node_count, error));
  tm_arena_init(&arena, memory);
  const tm_status status = choose(problem, &arena, out_choice, error);
  tm_arena_deinit(&arena);
  if (status != TM_OK) {
    tm_graph_choice_deinit(out_choice);
    return status;
  }
  find_alternates(problem, out_choice);
  return TM_OK;
}

tm_status tm_graph_choice_pin(tm_graph_problem *problem, tm_memory *memory, const uint32_t *labels, uint32_t state_memory,
                              tm_graph_choice *out_choice, tm_error *error) {
  tm_arena arena;
  pass p;
  TM_TRY(begin(out_choice, memory, problem->graph->node_count, error));
  tm_graph_problem_keep_states(problem, state_memory);
  out_choice->state_memory = state_memory;
  if (out_choice->node_count != 0) memcpy(out_choice->labels, labels, out_choice->node_count * sizeof *labels);
  tm_arena_init(&arena, memory);
  const bool is_ready = pass_init(&p, &problem->solver, &arena);
  if (is_ready) start(&p);
  for (uint32_t op = 0; is_ready && op < out_choice->node_count; op++) take_label(&p, op, labels[op]);
  out_choice->total_ns = p.total_ns;
  tm_arena_deinit(&arena);
  if (!is_ready) {
    tm_graph_choice_deinit(out_choice);
    return no_memory(error);
  }
  find_alternates(problem, out_choice);
  return TM_OK;
}

void tm_graph_choice_deinit(tm_graph_choice *choice) {
  tm_memory_free(choice->memory, choice->labels, choice->node_count * sizeof *choice->labels);
  tm_memory_free(choice->memory, choice->alternates, choice->node_count * sizeof *choice->alternates);
  memset(choice, 0, sizeof *choice);
}
