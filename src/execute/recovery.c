/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/recovery.h"

#include <string.h>

#include "base/error.h"
#include "execute/plan_memory.h"
#include "tensor/shape.h"

/* What lies where after the actions that were done. */
typedef struct wreck {
  tm_plan          *plan;
  tm_plan_program  *program;
  const tm_graph   *graph;
  tm_careful_replay replay;
  tm_arena          arena;
  uint32_t         *holders;    /* [location]: graph value that it holds, TM_PLAN_NONE: nothing of use */
  uint32_t         *tenants;    /* [slot]: location that was written last */
  uint8_t          *is_done;    /* [node] */
  uint8_t          *is_unreadable;      /* [memory] */
  uint32_t         *changed_by; /* [graph value that is a state]: last node that wrote in its place, TM_PLAN_NONE */
  uint32_t          failed;
  tm_error         *error;
} wreck;

static const tm_value *value_of(const wreck *w, uint32_t value) { return &w->graph->values[value]; }

/* ---- what was done ---- */

static bool is_async(const tm_plan_action *action) {
  return action->kind == TM_ACTION_ENQUEUE || action->kind == TM_ACTION_UPLOAD || action->kind == TM_ACTION_DOWNLOAD;
}

static bool is_confirmed(const wreck *w, uint32_t index) {
  const tm_plan_action *action = &w->program->actions[index];
  if (index >= w->failed) return false;
  return !is_async(action) || index < w->program->queues[action->place].done_to;
}

static void settle(wreck *w, uint32_t location, uint32_t value) {
  const tm_plan_location *one = &w->program->locations[location];
  if (one->slot != TM_PLAN_NONE) w->tenants[one->slot] = location;
  w->holders[location] = value;
}

static void note_node(wreck *w, const tm_plan_action *action, bool is_confirmed_action) {
  const tm_plan_step *step = &w->program->steps[action->step];
  const tm_node *node = &w->graph->nodes[step->node];
  w->is_done[step->node] = is_confirmed_action;
  for (uint32_t i = 0; i < node->row->output_count; i++) {
    const tm_plan_operand *operand = &w->program->operands[action->from + node->input_count + i];
    settle(w, operand->location, is_confirmed_action ? operand->value : TM_PLAN_NONE);
    const tm_plan_location *one = &w->program->locations[operand->location];
    if (one->kind == TM_LOCATION_STATE) w->changed_by[one->value] = step->node;
  }
}

static void note_transfer(wreck *w, const tm_plan_action *action, bool is_confirmed_action) {
  const tm_plan_location *to = &w->program->locations[action->to];
  const bool is_copy = action->kind != TM_ACTION_MOVE && to->kind != TM_LOCATION_STATE;
  settle(w, action->to, is_confirmed_action && is_copy ? action->value : TM_PLAN_NONE);
  if (to->kind == TM_LOCATION_STATE && !is_copy) w->changed_by[to->value] = w->graph->node_count;
}

/* All that was begun, the failed action included, may have written. */
static void note_actions(wreck *w) {
  for (uint32_t i = 0; i <= w->failed && i < w->program->action_count; i++) {
    const tm_plan_action *action = &w->program->actions[i];
    if (action->kind == TM_ACTION_WAIT) continue;
    if (action->step != TM_PLAN_NONE) note_node(w, action, is_confirmed(w, i));
    else if (action->to != TM_PLAN_NONE) note_transfer(w, action, is_confirmed(w, i));
  }
}

static void note_start(wreck *w) {
  for (uint32_t i = 0; i < w->program->location_count; i++) {
    const tm_plan_location *one = &w->program->locations[i];
    const bool is_given = one->kind == TM_LOCATION_STATE || one->kind == TM_LOCATION_KEPT || one->kind == TM_LOCATION_CONSTANT ||
                          one->kind == TM_LOCATION_INPUT;
    w->holders[i] = is_given ? one->value : TM_PLAN_NONE;
  }
  for (uint32_t i = 0; i < w->program->slot_count; i++) w->tenants[i] = TM_PLAN_NONE;
  for (uint32_t i = 0; i < w->graph->value_count; i++) w->changed_by[i] = TM_PLAN_NONE;
  for (uint32_t i = 1; i < w->program->problem.solver.memory_count; i++)
    w->is_unreadable[i] = !tm_device_is_usable(w->program->problem.memories[i]);
}

/* ---- getting it back ---- */

static bool holds(const wreck *w, uint32_t location, uint32_t value) {
  const tm_plan_location *one = &w->program->locations[location];
  if (w->holders[location] != value || w->is_unreadable[one->memory]) return false;
  return one->slot == TM_PLAN_NONE || w->tenants[one->slot] == location;
}

static bool read_back(wreck *w, uint32_t location, uint32_t value) {
  const tm_plan_location *one = &w->program->locations[location];
  const tm_operand *operand = &value_of(w, value)->operand;
  if (one->memory == TM_HOST_SPACE) {
    w->replay.values[value].first = one->host + w->program->offsets[value];
    return true;
  }
  if (tm_careful_replay_own(&w->replay, value, w->error) != TM_OK) return false;
  tm_plan_location at = *one;
  at.first_bytes += w->program->offsets[value];
  const uint64_t below = tm_operand_bytes_below(operand);
  w->replay.values[value].first += below;
  if (tm_plan_download(w->program->problem.memories[one->memory], &at, below, w->replay.values[value].first, operand->byte_count,
                       NULL) == TM_OK)
    return true;
  w->is_unreadable[one->memory] = 1;
  w->replay.values[value].first = NULL;
  return false;
}

/* In host memory if it is there, else from a device's. */
static bool find(wreck *w, uint32_t value, const uint32_t *first_of, const uint32_t *next_of) {
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t l = first_of[w->program->roots[value]]; l != TM_PLAN_NONE; l = next_of[l]) {
      const bool is_host = w->program->locations[l].memory == TM_HOST_SPACE;
      if (is_host == (pass == 0) && holds(w, l, value) && read_back(w, l, value)) return true;
    }
  return false;
}

/* ---- states ---- */

static tm_status say_lost(const wreck *w, uint32_t state, const char *why) {
  char name[TM_GRAPH_LABEL_CAPACITY];
  tm_graph_name_value(w->graph, state, name, sizeof name);
  w->plan->states[value_of(w, state)->index].health = TM_STATE_LOST;
  return tm_fail(w->error, TM_ERROR_DEVICE_LOST, "%s %s; write or reset it, then run again", name, why);
}

static bool moves_in_place(const wreck *w, uint32_t node, uint32_t state) {
  const tm_node *what = &w->graph->nodes[node];
  for (uint32_t i = 0; i < what->row->output_count; i++)
    if (w->program->roots[what->outputs[i]] == state) return true;
  return false;
}

/* Whether all that is to run again is the moves themselves, and what reads the last of them: to do a move twice changes nothing. */
static bool may_start_from_changed(const wreck *w, uint32_t state) {
  if (w->changed_by[state] == w->graph->node_count) return false;
  const tm_node *last = &w->graph->nodes[w->changed_by[state]];
  for (uint32_t n = 0; n < w->graph->node_count; n++) {
    if (!w->replay.must_run[n] || moves_in_place(w, n, state)) continue;
    for (uint32_t i = 0; i < w->graph->nodes[n].input_count; i++) {
      const uint32_t base = value_of(w, w->graph->nodes[n].inputs[i])->base;
      if (w->program->roots[base] != state || value_of(w, base)->node > w->changed_by[state]) continue;
      bool is_last = false;
      for (uint32_t o = 0; o < last->row->output_count; o++) is_last |= last->outputs[o] == base;
      if (value_of(w, base)->kind == TM_GRAPH_STATE || !is_last) return false;
    }
  }
  return true;
}

static tm_status use_changed(wreck *w, uint32_t state) {
  const tm_plan_state *one = &w->plan->states[value_of(w, state)->index];
  if (!one->is_mirrored || one->health == TM_STATE_LOST) return say_lost(w, state, "lay in the memory of a device that is gone");
  if (w->changed_by[state] != TM_PLAN_NONE && !may_start_from_changed(w, state))
    return say_lost(w, state, "was changed already by a run that failed and needs it as it was");
  w->replay.values[state].first = one->mirror;
  return TM_OK;
}

/* ---- what is to run again ---- */

static void need(uint8_t *needed, const wreck *w, uint32_t value) { needed[value_of(w, value)->base] = 1; }

/* Backwards, so that who needs what is known before its maker is looked at. */
static void find_runs(wreck *w, uint8_t *needed, const uint32_t *first_of, const uint32_t *next_of) {
  for (uint32_t i = 0; i < w->graph->output_count; i++) need(needed, w, w->graph->outputs[i].value);
  for (uint64_t i = 0; i < w->graph->states.count; i++)
    if (value_of(w, w->graph->states.values[i])->carry != TM_GRAPH_NONE)
      need(needed, w, value_of(w, w->graph->states.values[i])->carry);
  for (uint32_t n = w->graph->node_count; n-- > 0;) {
    const tm_node *node = &w->graph->nodes[n];
    bool must = false;
    for (uint32_t i = 0; i < node->row->output_count; i++) {
      const uint32_t value = node->outputs[i];
      if (!w->is_done[n] || (needed[value] && !find(w, value, first_of, next_of))) must = true;
    }
    w->replay.must_run[n] = must;
    for (uint32_t i = 0; must && i < node->input_count; i++) need(needed, w, node->inputs[i]);
  }
}

static tm_status find_states(wreck *w, const uint8_t *needed, const uint32_t *first_of, const uint32_t *next_of) {
  for (uint64_t i = 0; i < w->graph->states.count; i++) {
    const uint32_t state = w->graph->states.values[i];
    w->replay.values[state].first = NULL;
    if (needed[state] && !find(w, state, first_of, next_of)) TM_TRY(use_changed(w, state));
  }
  return TM_OK;
}

/* Locations by root. */
static void list_locations(const wreck *w, uint32_t *first_of, uint32_t *next_of) {
  for (uint32_t i = 0; i < w->graph->value_count; i++) first_of[i] = TM_PLAN_NONE;
  for (uint32_t i = w->program->location_count; i-- > 0;) {
    if (w->program->locations[i].kind == TM_LOCATION_NEXT) continue;
    next_of[i] = first_of[w->program->locations[i].value];
    first_of[w->program->locations[i].value] = i;
  }
}

static tm_status take_stock(wreck *w) {
  tm_arena *arena = &w->arena;
  w->holders = tm_arena_calloc(arena, w->program->location_count, sizeof *w->holders);
  w->tenants = tm_arena_calloc(arena, w->program->slot_count, sizeof *w->tenants);
  w->is_done = tm_arena_calloc(arena, w->graph->node_count, sizeof *w->is_done);
  w->is_unreadable = tm_arena_calloc(arena, w->program->problem.solver.memory_count, sizeof *w->is_unreadable);
  w->changed_by = tm_arena_calloc(arena, w->graph->value_count, sizeof *w->changed_by);
  uint8_t *needed = tm_arena_calloc(arena, w->graph->value_count, sizeof *needed);
  uint32_t *first_of = tm_arena_calloc(arena, w->graph->value_count, sizeof *first_of);
  uint32_t *next_of = tm_arena_calloc(arena, w->program->location_count, sizeof *next_of);
  if (w->holders == NULL || w->tenants == NULL || w->is_done == NULL || w->is_unreadable == NULL || w->changed_by == NULL ||
      needed == NULL || first_of == NULL || next_of == NULL)
    return tm_fail(w->error, TM_ERROR_NO_MEMORY, "no memory to go on after a failure");
  note_start(w);
  note_actions(w);
  list_locations(w, first_of, next_of);
  find_runs(w, needed, first_of, next_of);
  tm_plan_states_take_in(w->plan);
  return find_states(w, needed, first_of, next_of);
}

tm_status tm_plan_recover(tm_plan *plan, uint32_t failed, tm_plan_outcome *outcome, tm_error *error) {
  wreck w = { .plan = plan, .program = &plan->program, .graph = plan->graph, .failed = failed, .error = error };
  tm_arena_init(&w.arena, plan->memory);
  tm_status status = tm_careful_replay_init(&w.replay, plan, error);
  if (status == TM_OK) {
    status = take_stock(&w);
    for (uint32_t i = 0; status == TM_OK && i < plan->graph->node_count; i++)
      outcome->rerun_count += w.replay.must_run[i] != 0 && w.is_done[i] != 0;
    if (status == TM_OK) status = tm_careful_replay_run(&w.replay, outcome, error);
    tm_careful_replay_deinit(&w.replay);
  }
  tm_plan_states_take_in(plan);
  tm_arena_deinit(&w.arena);
  plan->must_replace = 1;
  return status;
}
