/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/careful_replay.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/plan_memory.h"
#include "tensor/shape.h"

void tm_plan_move(const tm_operand *from, const char *from_first, const tm_operand *to, char *to_first) {
  if (from->byte_count == 0) return;
  if ((from->flags & to->flags & TM_OPERAND_CONTIGUOUS) != 0) {
    memmove(to_first, from_first, (size_t)from->byte_count);
    return;
  }
  const tm_op_row *row = tm_op_find(TM_OP_COPY);
  const tm_operand operands[] = { *from, *to };
  const tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_COPY, .version = row->version, .input_count = 1,
                                   .output_count = 1, .operands = operands };
  void *const pointers[] = { (void *)(uintptr_t)from_first, to_first };
  row->reference(&operation, pointers, 0, row->units(&operation));
}

/* ---- values ---- */

static const tm_value *value_of(const tm_careful_replay *replay, uint32_t value) { return &replay->plan->graph->values[value]; }

tm_status tm_careful_replay_own(tm_careful_replay *replay, uint32_t value, tm_error *error) {
  tm_careful_value *one = &replay->values[value];
  const uint64_t bytes = value_of(replay, value)->operand.byte_count;
  uint64_t rounded;
  if (!tm_checked_round_up(bytes, replay->plan->program.problem.alignment, &rounded)) rounded = UINT64_MAX;
  one->owned = tm_memory_alloc(replay->plan->memory, rounded, replay->plan->program.problem.alignment);
  if (one->owned == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a value of %llu bytes", (unsigned long long)bytes);
  one->owned_bytes = rounded;
  one->first = one->owned;
  return TM_OK;
}

static void drop(tm_careful_replay *replay, uint32_t value) {
  tm_careful_value *one = &replay->values[value];
  if (one->owned == NULL || replay->is_held) return;
  tm_plan_memory_free(replay->plan, one->owned, one->owned_bytes);
  one->owned = NULL;
  one->first = NULL;
}

static char *address_of(const tm_careful_replay *replay, uint32_t value) {
  const tm_value *what = value_of(replay, value);
  char *base = replay->values[what->base].first;
  return base == NULL ? NULL : base + (what->kind == TM_GRAPH_VIEW ? what->offset_bytes : 0);
}

static void keep(tm_careful_replay *replay, uint32_t value) { replay->values[value_of(replay, value)->base].is_kept = 1; }

tm_status tm_careful_replay_init(tm_careful_replay *replay, tm_plan *plan, tm_error *error) {
  const tm_graph *graph = plan->graph;
  *replay = (tm_careful_replay){ .plan = plan };
  replay->values = tm_memory_calloc(plan->memory, graph->value_count, sizeof *replay->values);
  replay->must_run = tm_memory_calloc(plan->memory, graph->node_count, sizeof *replay->must_run);
  if (replay->values == NULL || replay->must_run == NULL) {
    tm_careful_replay_deinit(replay);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to run a graph");
  }
  for (uint32_t i = 0; i < graph->value_count; i++) {
    const tm_value *value = &graph->values[i];
    if (value->kind == TM_GRAPH_INPUT) replay->values[i].first = plan->inputs[value->index];
    if (value->kind == TM_GRAPH_CONSTANT) replay->values[i].first = (char *)(uintptr_t)value->data;
    if (value->kind == TM_GRAPH_STATE && plan->states[value->index].is_mirrored)
      replay->values[i].first = plan->states[value->index].mirror;
  }
  for (uint32_t i = 0; i < graph->output_count; i++) keep(replay, graph->outputs[i].value);
  for (uint64_t i = 0; i < graph->states.count; i++) {
    const uint32_t carried = graph->values[graph->states.values[i]].carry;
    if (carried != TM_GRAPH_NONE) keep(replay, carried);
  }
  if (graph->node_count != 0) memset(replay->must_run, 1, graph->node_count);
  return TM_OK;
}

void tm_careful_replay_deinit(tm_careful_replay *replay) {
  const tm_graph *graph = replay->plan->graph;
  for (uint32_t i = 0; replay->values != NULL && i < graph->value_count; i++) drop(replay, i);
  tm_memory_free(replay->plan->memory, replay->values, graph->value_count * sizeof *replay->values);
  tm_memory_free(replay->plan->memory, replay->must_run, graph->node_count * sizeof *replay->must_run);
}

/* ---- nodes ---- */

/* Until what was chosen is prepared the alternate does it. */
static uint32_t candidate_now(const tm_plan *plan, const tm_plan_step *step, const tm_placement *placement) {
  const tm_plan_candidate *chosen = &placement->candidates[step->candidate];
  const bool has_kernel = chosen->lowering == NULL || !chosen->lowering->has_inner;
  const bool must_wait = has_kernel && step->alternate != TM_PLAN_NONE && atomic_load(&plan->is_preparing) != 0 &&
                         !atomic_load_explicit(&chosen->is_prepared, memory_order_acquire);
  return must_wait ? step->alternate : step->candidate;
}

static tm_status make_outputs(tm_careful_replay *replay, const tm_node *node, tm_error *error) {
  const tm_graph *graph = replay->plan->graph;
  for (uint32_t i = 0; i < node->row->output_count; i++) {
    const uint32_t value = node->outputs[i];
    if (replay->values[value].owned == NULL) replay->values[value].first = NULL;        /* a copy that survived is not written */
    for (uint32_t o = 0; o < graph->output_count && value_of(replay, value)->is_output != 0; o++)
      if (graph->outputs[o].value == value && replay->values[value].first == NULL)
        replay->values[value].first = replay->plan->outputs[o];
    if (replay->values[value].first == NULL) TM_TRY(tm_careful_replay_own(replay, value, error));
  }
  return TM_OK;
}

void tm_plan_outcome_add(tm_plan_outcome *outcome, const tm_run_outcome *run) {
  outcome->retries += run->retries;
  outcome->fell_back |= run->fell_back;
  if (run->note[0] != '\0') memcpy(outcome->note, run->note, sizeof outcome->note);
}

static void release_inputs(tm_careful_replay *replay, const tm_node *node) {
  for (uint32_t i = 0; i < node->input_count; i++) {
    const uint32_t base = value_of(replay, node->inputs[i])->base;
    tm_careful_value *one = &replay->values[base];
    if (--one->readers_left == 0 && !one->is_kept) drop(replay, base);
  }
  for (uint32_t i = 0; i < node->row->output_count; i++) {
    const tm_careful_value *one = &replay->values[node->outputs[i]];
    if (one->readers_left == 0 && !one->is_kept) drop(replay, node->outputs[i]);
  }
}

static tm_status run_node(tm_careful_replay *replay, const tm_plan_step *step, tm_plan_outcome *outcome, tm_error *error) {
  tm_plan *plan = replay->plan;
  const tm_node *node = &plan->graph->nodes[step->node];
  tm_placement *placement = plan->program.problem.placements[step->placement];
  void *pointers[TM_MAX_OPERANDS];
  uint64_t origins[TM_MAX_OPERANDS];
  tm_run_outcome run;
  TM_TRY(make_outputs(replay, node, error));
  for (uint32_t i = 0; i < node->input_count + node->row->output_count; i++) {
    const uint32_t value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    pointers[i] = address_of(replay, value);
    origins[i] = plan->graph->values[value_of(replay, value)->base].origin;
  }
  tm_runner runner = plan->runner;
  tm_last_word last = { .is_held = false };
  runner.last_word = &last;
  const tm_status status =
      tm_runner_run_candidate(&runner, placement, candidate_now(plan, step, placement), pointers, origins, &run, error);
  if (last.is_held) replay->is_held = 1;
  if (status != TM_OK) {
    plan->must_replace = 1;     /* what failed is not asked again */
    char name[TM_GRAPH_LABEL_CAPACITY];
    tm_graph_name_node(plan->graph, step->node, name, sizeof name);
    tm_error_prefix(error, "%s", name);
    return status;
  }
  tm_plan_outcome_add(outcome, &run);
  if (run.retries != 0) plan->must_replace = 1;
  release_inputs(replay, node);
  return TM_OK;
}

static void count_readers(tm_careful_replay *replay) {
  const tm_graph *graph = replay->plan->graph;
  for (uint32_t i = 0; i < graph->value_count; i++) replay->values[i].readers_left = 0;
  for (uint32_t i = 0; i < graph->node_count; i++)
    for (uint32_t k = 0; replay->must_run[i] && k < graph->nodes[i].input_count; k++)
      replay->values[value_of(replay, graph->nodes[i].inputs[k])->base].readers_left++;
}

/* ---- after the last node ---- */

static tm_status fill_outputs(tm_careful_replay *replay, tm_error *error) {
  const tm_graph *graph = replay->plan->graph;
  for (uint32_t i = 0; i < graph->output_count; i++) {
    const uint32_t value = graph->outputs[i].value;
    char *to = replay->plan->outputs[i], *from = address_of(replay, value);
    if (from == to) continue;
    const tm_operand *operand = &graph->values[value].operand;
    tm_operand dense;
    TM_TRY(tm_operand_contiguous(operand->format, operand->rank, operand->dims, &dense, error));
    tm_plan_move(operand, from, &dense, to);
  }
  return TM_OK;
}

/* The next contents are there whole before any state changes; they may lie in other states. */
static tm_status set_aside(tm_careful_replay *replay, uint64_t index, void **out_next, tm_error *error) {
  const tm_plan *plan = replay->plan;
  const tm_plan_state *state = &plan->states[index];
  const tm_value *value = &plan->graph->values[state->value];
  *out_next = NULL;
  if (value->carry == TM_GRAPH_NONE) return TM_OK;
  *out_next = tm_memory_alloc(plan->memory, state->bytes, plan->program.problem.alignment);
  if (*out_next == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a state of %llu bytes", (unsigned long long)state->bytes);
  tm_plan_move(&plan->graph->values[value->carry].operand, address_of(replay, value->carry), &value->operand, *out_next);
  return TM_OK;
}

/* A result that nobody else needs becomes the state without a copy. */
static bool take_result(tm_careful_replay *replay, uint64_t index, void **out_next) {
  const tm_plan *plan = replay->plan;
  const uint32_t carried = plan->graph->values[plan->states[index].value].carry;
  if (carried == TM_GRAPH_NONE || plan->graph->values[carried].kind != TM_GRAPH_RESULT) return false;
  tm_careful_value *one = &replay->values[carried];
  if (one->owned == NULL || one->owned_bytes != plan->states[index].bytes) return false;
  for (uint64_t i = 0; i < plan->graph->states.count; i++) {
    const uint32_t other = plan->graph->values[plan->states[i].value].carry;
    if (i != index && other != TM_GRAPH_NONE && plan->graph->values[other].base == carried) return false;
  }
  *out_next = one->owned;
  one->owned = NULL;
  return true;
}

static tm_status carry_states(tm_careful_replay *replay, tm_error *error) {
  tm_plan *plan = replay->plan;
  const uint64_t count = plan->graph->states.count;
  void **next = tm_memory_calloc(plan->memory, count, sizeof *next);
  tm_status status = next == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the states of a graph") : TM_OK;
  for (uint64_t i = 0; i < count && status == TM_OK; i++)
    if (!take_result(replay, i, &next[i])) status = set_aside(replay, i, &next[i], error);
  for (uint64_t i = 0; i < count && next != NULL; i++) {
    tm_plan_state *state = &plan->states[i];
    void *old = next[i];
    if (status == TM_OK && old != NULL) {
      old = state->mirror;
      state->mirror = next[i];
      state->health = TM_STATE_FINE;
    }
    tm_plan_memory_free(plan, old, state->bytes);
  }
  tm_memory_free(plan->memory, next, count * sizeof *next);
  return status;
}

tm_status tm_careful_replay_run(tm_careful_replay *replay, tm_plan_outcome *outcome, tm_error *error) {
  tm_plan *plan = replay->plan;
  count_readers(replay);
  for (uint32_t i = 0; i < plan->program.step_count; i++)
    if (replay->must_run[plan->program.steps[i].node]) TM_TRY(run_node(replay, &plan->program.steps[i], outcome, error));
  TM_TRY(fill_outputs(replay, error));
  return carry_states(replay, error);
}
