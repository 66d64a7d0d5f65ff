/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_build.h"

#include <string.h>

#include "base/error.h"
#include "schedule/graph_request.h"

/* Where values are while actions are written, and what is still under way. */
typedef struct writer {
  tm_plan_build *build;
  tm_plan_program *program;
  const tm_graph *graph;
  uint32_t *number;             /* [graph value]: the solver's */
  uint32_t  memory_count;
  bool     *is_there;           /* [solver value][memory] */
  bool     *is_read_abroad;     /* [solver value]: somebody needs it in host memory though it is made elsewhere */
  uint32_t *written_by;         /* [solver value]: place that writes it to host memory without being waited for */
  uint32_t *written_at;         /* ... and in which action */
  uint32_t *waited_to;          /* [place]: all that was enqueued there before this action is done */
  uint32_t *last;               /* [place]: one past the last action that was enqueued there */
  uint32_t *touched_to;         /* [solver value][place]: one past the last action there that uses its memory of the host's */
  uint32_t *place_of_memory;    /* [memory] */
  tm_error *error;
} writer;

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan"); }

static bool *there(const writer *w, uint32_t value, uint32_t memory) {
  return &w->is_there[(uint64_t)w->number[value] * w->memory_count + memory];
}

static uint32_t root_of(const writer *w, uint32_t value) { return w->build->liveness.values[value].root; }

static tm_status write_action(writer *w, const tm_plan_action *action) {
  tm_plan_action *one = tm_plan_build_push(w->build->plan->memory, (void **)&w->program->actions, &w->program->action_count,
                                           &w->program->action_capacity, sizeof *one);
  if (one == NULL) return no_memory(w->error);
  *one = *action;
  return TM_OK;
}

/* Until all is done that was enqueued there before action `to`. */
static tm_status wait_for(writer *w, uint32_t place, uint32_t to) {
  if (to <= w->waited_to[place]) return TM_OK;
  w->waited_to[place] = to;
  return write_action(w, &(tm_plan_action){ .kind = TM_ACTION_WAIT, .place = place, .step = TM_PLAN_NONE, .value = TM_PLAN_NONE,
                                            .from = to - 1, .to = TM_PLAN_NONE, .target = TM_PLAN_NONE, .output = TM_PLAN_NONE });
}

/* All that is pending. */
static tm_status wait_for_all(writer *w) {
  for (uint32_t i = 0; i < w->program->problem.place_count; i++) TM_TRY(wait_for(w, i, w->last[i]));
  return TM_OK;
}

static uint32_t *touched_to(const writer *w, uint32_t value, uint32_t place) {
  return &w->touched_to[(uint64_t)w->number[root_of(w, value)] * w->program->problem.place_count + place];
}

/* What is pending and uses the value's memory of the host's, but for `except`, whose work is done in turn anyway. */
static tm_status wait_for_users(writer *w, uint32_t value, uint32_t except) {
  for (uint32_t i = 0; i < w->program->problem.place_count; i++)
    if (i != except) TM_TRY(wait_for(w, i, *touched_to(w, value, i)));
  return TM_OK;
}

/* The action that is written next is enqueued, and uses the values' memory of the host's. */
static void note_enqueued(writer *w, uint32_t place, const uint32_t *values, uint32_t count) {
  w->last[place] = w->program->action_count + 1;
  for (uint32_t i = 0; i < count; i++) *touched_to(w, values[i], place) = w->program->action_count + 1;
}

/* ---- transfers ---- */

static tm_status write_transfer(writer *w, uint32_t kind, uint32_t value, uint32_t memory) {
  tm_plan_action action = { .kind = kind, .place = w->place_of_memory[memory], .step = TM_PLAN_NONE, .value = value,
                            .target = TM_PLAN_NONE, .output = TM_PLAN_NONE };
  uint32_t host, device;
  TM_TRY(tm_plan_build_location(w->build, root_of(w, value), TM_HOST_SPACE, &host, w->error));
  TM_TRY(tm_plan_build_location(w->build, root_of(w, value), memory, &device, w->error));
  action.from = kind == TM_ACTION_UPLOAD ? host : device;
  action.to = kind == TM_ACTION_UPLOAD ? device : host;
  note_enqueued(w, action.place, &value, 1);
  if (kind == TM_ACTION_DOWNLOAD) {
    w->written_by[w->number[value]] = action.place;
    w->written_at[w->number[value]] = w->program->action_count;
  }
  return write_action(w, &action);
}

/* Into memory that may have held something else before: nobody reads that any more. */
static tm_status download(writer *w, uint32_t value, uint32_t memory) {
  if (root_of(w, value) != value) TM_TRY(wait_for_users(w, value, w->place_of_memory[memory]));
  TM_TRY(write_transfer(w, TM_ACTION_DOWNLOAD, value, memory));
  *there(w, value, TM_HOST_SPACE) = true;
  return TM_OK;
}

/* The value in host memory, and written: for `reader`, or if that is NONE for whoever reads at once. */
static tm_status need_in_host(writer *w, uint32_t value, uint32_t reader) {
  if (!*there(w, value, TM_HOST_SPACE)) {
    uint32_t memory = 1;
    while (memory < w->memory_count && !*there(w, value, memory)) memory++;
    if (memory == w->memory_count) return tm_fail(w->error, TM_ERROR_INTERNAL, "value %u is nowhere when it is needed", value);
    TM_TRY(download(w, value, memory));
  }
  const uint32_t place = w->written_by[w->number[value]];
  return place == TM_PLAN_NONE || place == reader ? TM_OK : wait_for(w, place, w->written_at[w->number[value]] + 1);
}

static tm_status need(writer *w, uint32_t value, uint32_t memory, uint32_t reader) {
  if (memory == TM_HOST_SPACE) return need_in_host(w, value, reader);
  if (*there(w, value, memory)) return TM_OK;
  if (w->graph->values[value].kind == TM_GRAPH_CONSTANT) {      /* made once, before any run */
    uint32_t location;
    TM_TRY(tm_plan_build_location(w->build, value, memory, &location, w->error));
  } else {
    TM_TRY(need_in_host(w, value, w->place_of_memory[memory]));
    TM_TRY(write_transfer(w, TM_ACTION_UPLOAD, value, memory));
  }
  *there(w, value, memory) = true;
  return TM_OK;
}

/* All that has to be uploaded is waited for before the first upload, as timelines have it (event_model.h). */
static tm_status await_for_upload(writer *w, uint32_t value, uint32_t memory) {
  if (*there(w, value, memory) || w->graph->values[value].kind == TM_GRAPH_CONSTANT) return TM_OK;
  return need_in_host(w, value, w->place_of_memory[memory]);
}

/* ---- nodes ---- */

static bool is_plain(const tm_device_slot *device) {
  return device->is_host_memory && (device->info.flags & TM_DEVICE_SYNCHRONOUS) != 0 &&
         (device->info.flags & TM_DEVICE_OPENING_THREAD) == 0;
}

static tm_status list_operands(writer *w, const tm_node *node, uint32_t memory, uint32_t *out_first) {
  *out_first = w->program->operand_count;
  for (uint32_t i = 0; i < node->input_count + node->row->output_count; i++) {
    const uint32_t value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    uint32_t location;
    TM_TRY(tm_plan_build_location(w->build, root_of(w, value), memory, &location, w->error));
    tm_plan_operand *one = tm_plan_build_push(w->build->plan->memory, (void **)&w->program->operands, &w->program->operand_count,
                                              &w->program->operand_capacity, sizeof *one);
    if (one == NULL) return no_memory(w->error);
    *one = (tm_plan_operand){ location, value };
  }
  return TM_OK;
}

/* What is written in place takes the old value away; in host memory nobody may be reading that any more. */
static tm_status prepare_outputs(writer *w, const tm_node *node, uint32_t memory, uint32_t place) {
  for (uint32_t i = 0; i < node->row->output_count; i++) {
    const tm_value_life *life = &w->build->liveness.values[node->outputs[i]];
    if (life->in_place_of == TM_GRAPH_NONE) continue;
    if (memory == TM_HOST_SPACE) TM_TRY(wait_for_users(w, node->outputs[i], place));
    for (uint32_t m = 0; m < w->memory_count; m++) *there(w, w->graph->values[life->in_place_of].base, m) = false;
  }
  return TM_OK;
}

static tm_status note_outputs(writer *w, const tm_node *node, uint32_t memory, uint32_t place, bool is_async) {
  for (uint32_t i = 0; i < node->row->output_count; i++) {
    const uint32_t value = node->outputs[i];
    *there(w, value, memory) = true;
    if (memory == TM_HOST_SPACE && is_async) {
      w->written_by[w->number[value]] = place;
      w->written_at[w->number[value]] = w->program->action_count - 1;
    }
  }
  if (w->build->waits) return TM_OK;    /* copies are made when they are needed, and not before */
  for (uint32_t i = 0; i < node->row->output_count && memory != TM_HOST_SPACE; i++)
    if (w->is_read_abroad[w->number[node->outputs[i]]]) TM_TRY(download(w, node->outputs[i], memory));
  return TM_OK;
}

static tm_status write_node(writer *w, uint32_t step) {
  const tm_plan_step *what = &w->program->steps[step];
  const tm_graph_problem *problem = &w->program->problem;
  const tm_node *node = &w->graph->nodes[what->node];
  const uint32_t memory = problem->solver.labels[what->label].input_memory;
  const tm_device_slot *device = tm_graph_problem_candidate(problem, what->node, what->label)->device;
  const uint32_t place = problem->place_of_device[device->index];
  const bool is_async = what->is_direct && !is_plain(device);
  tm_plan_action action = { .place = place, .step = step, .value = TM_PLAN_NONE, .to = TM_PLAN_NONE, .target = TM_PLAN_NONE,
                            .output = TM_PLAN_NONE };
  action.kind = !what->is_direct ? TM_ACTION_CAREFUL : is_async ? TM_ACTION_ENQUEUE : TM_ACTION_LAUNCH;
  for (uint32_t i = 0; i < node->input_count && memory != TM_HOST_SPACE; i++)
    TM_TRY(await_for_upload(w, w->graph->values[node->inputs[i]].base, memory));
  for (uint32_t i = 0; i < node->input_count; i++)
    TM_TRY(need(w, w->graph->values[node->inputs[i]].base, memory, is_async ? place : TM_PLAN_NONE));
  if (!what->is_direct) TM_TRY(wait_for_all(w));        /* whoever runs it takes queues of its own */
  TM_TRY(list_operands(w, node, memory, &action.from));
  TM_TRY(prepare_outputs(w, node, memory, is_async ? place : TM_PLAN_NONE));
  if (is_async) note_enqueued(w, place, NULL, 0);
  if (is_async && memory == TM_HOST_SPACE) {
    note_enqueued(w, place, node->inputs, node->input_count);
    note_enqueued(w, place, node->outputs, node->row->output_count);
  }
  TM_TRY(write_action(w, &action));
  return note_outputs(w, node, memory, place, is_async);
}

/* ---- after the last node ---- */

/* Whether the state's memory holds its next content already. */
static bool is_in_place(const writer *w, uint32_t state) {
  const uint32_t carried = w->graph->values[state].carry;
  return carried == TM_GRAPH_NONE ||
         (root_of(w, carried) == state && w->build->liveness.values[carried].offset_bytes == 0 &&
          *there(w, w->graph->values[carried].base, w->program->problem.solver.values[w->number[state]].home));
}

static uint32_t home_of(const writer *w, uint32_t state) { return w->program->problem.solver.values[w->number[state]].home; }

static bool is_of_state(const writer *w, uint32_t value) {
  return w->graph->values[root_of(w, value)].kind == TM_GRAPH_STATE;
}

static tm_status write_move(writer *w, uint32_t value, uint32_t to, uint32_t target, uint32_t output) {
  uint32_t from = TM_PLAN_NONE;
  TM_TRY(tm_plan_build_location(w->build, root_of(w, value), TM_HOST_SPACE, &from, w->error));
  return write_action(w, &(tm_plan_action){ .kind = TM_ACTION_MOVE, .place = TM_PLAN_NONE, .step = TM_PLAN_NONE, .value = value,
                                            .from = from, .to = to, .target = target, .output = output });
}

/* A state that becomes what lies in a state first goes to a place of its own: that one may be overwritten as well. */
static tm_status set_aside(writer *w, uint32_t state, uint32_t *out_location) {
  tm_plan_location *one = tm_plan_build_push(w->build->plan->memory, (void **)&w->program->locations, &w->program->location_count,
                                             &w->program->location_capacity, sizeof *one);
  if (one == NULL) return no_memory(w->error);
  *one = (tm_plan_location){ .kind = TM_LOCATION_NEXT, .value = state, .memory = TM_HOST_SPACE, .slot = TM_PLAN_NONE };
  *out_location = w->program->location_count - 1;
  return write_move(w, w->graph->values[state].carry, *out_location, state, TM_PLAN_NONE);
}

static tm_status carry_late(writer *w, uint32_t state, uint32_t aside) {
  const uint32_t carried = w->graph->values[state].carry, home = home_of(w, state);
  uint32_t to;
  TM_TRY(tm_plan_build_location(w->build, state, home, &to, w->error));
  if (home == TM_HOST_SPACE && aside == TM_PLAN_NONE) return write_move(w, carried, to, state, TM_PLAN_NONE);
  tm_plan_action action = { .step = TM_PLAN_NONE, .value = state, .to = to, .target = state, .output = TM_PLAN_NONE };
  action.kind = home == TM_HOST_SPACE ? TM_ACTION_MOVE : TM_ACTION_UPLOAD;
  action.place = home == TM_HOST_SPACE ? TM_PLAN_NONE : w->place_of_memory[home];
  action.from = aside;
  if (aside == TM_PLAN_NONE) TM_TRY(tm_plan_build_location(w->build, root_of(w, carried), TM_HOST_SPACE, &action.from, w->error));
  if (home != TM_HOST_SPACE) note_enqueued(w, action.place, &carried, aside == TM_PLAN_NONE);
  return write_action(w, &action);
}

static bool needs_aside(const writer *w, uint32_t state) {
  const tm_value *carried = &w->graph->values[w->graph->values[state].carry];
  return is_of_state(w, w->graph->values[state].carry) || carried->kind == TM_GRAPH_VIEW || carried->kind == TM_GRAPH_INPUT;
}

static tm_status write_carries(writer *w) {
  const uint64_t count = w->graph->states.count;
  uint32_t *asides = tm_arena_calloc(&w->build->arena, count, sizeof *asides);
  if (asides == NULL) return no_memory(w->error);
  for (uint64_t i = 0; i < count; i++) {
    asides[i] = TM_PLAN_NONE;
    const uint32_t state = w->graph->states.values[i];
    if (!is_in_place(w, state) && needs_aside(w, state)) TM_TRY(set_aside(w, state, &asides[i]));
  }
  for (uint64_t i = 0; i < count; i++)
    if (!is_in_place(w, w->graph->states.values[i])) TM_TRY(carry_late(w, w->graph->states.values[i], asides[i]));
  return wait_for_all(w);
}

static tm_status write_end(writer *w) {
  for (uint64_t i = 0; i < w->graph->states.count; i++) {
    uint32_t location;
    TM_TRY(
        tm_plan_build_location(w->build, w->graph->states.values[i], home_of(w, w->graph->states.values[i]), &location, w->error));
  }
  for (uint32_t i = 0; i < w->graph->output_count; i++)
    TM_TRY(need_in_host(w, w->graph->values[w->graph->outputs[i].value].base, TM_PLAN_NONE));
  for (uint64_t i = 0; i < w->graph->states.count; i++) {
    const uint32_t state = w->graph->states.values[i];
    if (!is_in_place(w, state)) TM_TRY(need_in_host(w, w->graph->values[w->graph->values[state].carry].base, TM_PLAN_NONE));
  }
  TM_TRY(wait_for_all(w));
  for (uint32_t i = 0; i < w->graph->output_count; i++) {
    const uint32_t value = w->graph->outputs[i].value;
    uint32_t location;
    TM_TRY(tm_plan_build_location(w->build, root_of(w, value), TM_HOST_SPACE, &location, w->error));
    const tm_plan_location *lies = &w->program->locations[location];
    if (lies->kind != TM_LOCATION_OUTPUT || lies->index != i) TM_TRY(write_move(w, value, TM_PLAN_NONE, TM_PLAN_NONE, i));
  }
  return write_carries(w);
}

/* ---- all ---- */

static void note_reader(writer *w, uint32_t value, uint32_t memory) {
  const uint32_t number = w->number[value];
  const uint32_t producer = w->program->problem.solver.values[number].producer;
  if (producer == TM_SOLVER_NONE) return;
  const uint32_t made_in = w->program->problem.solver.labels[w->build->choice->labels[producer]].output_memory;
  if (made_in != memory) w->is_read_abroad[number] = true;
}

static void note_readers(writer *w) {
  const tm_solver_problem *solver = &w->program->problem.solver;
  for (uint32_t i = 0; i < w->graph->node_count; i++)
    for (uint32_t k = 0; k < w->graph->nodes[i].input_count; k++)
      note_reader(w, w->graph->nodes[i].inputs[k], solver->labels[w->build->choice->labels[i]].input_memory);
  for (uint32_t i = 0; i < w->graph->output_count; i++) note_reader(w, w->graph->outputs[i].value, TM_HOST_SPACE);
  for (uint64_t i = 0; i < w->graph->states.count; i++) {
    const uint32_t state = w->graph->states.values[i], carried = w->graph->values[state].carry;
    if (carried != TM_GRAPH_NONE) note_reader(w, carried, root_of(w, carried) == state ? home_of(w, state) : TM_HOST_SPACE);
  }
}

static void note_start(writer *w) {
  const tm_solver_problem *solver = &w->program->problem.solver;
  for (uint32_t i = 0; i < solver->value_count; i++) {
    w->written_by[i] = TM_PLAN_NONE;
    if (solver->values[i].producer == TM_SOLVER_NONE) w->is_there[(uint64_t)i * w->memory_count + solver->values[i].home] = true;
  }
  for (uint32_t i = 0; i < w->program->problem.place_count; i++)
    if (w->program->problem.places[i].memory != TM_HOST_SPACE) w->place_of_memory[w->program->problem.places[i].memory] = i;
}

tm_status tm_plan_build_actions(tm_plan_build *build, tm_error *error) {
  tm_plan_program *program = build->program;
  const tm_solver_problem *solver = &program->problem.solver;
  writer w = { .build = build, .program = program, .graph = build->graph, .number = program->problem.value_numbers,
               .memory_count = solver->memory_count, .error = error };
  tm_arena *arena = &build->arena;
  w.is_there = tm_arena_calloc(arena, (uint64_t)solver->value_count * solver->memory_count, sizeof *w.is_there);
  w.is_read_abroad = tm_arena_calloc(arena, solver->value_count, sizeof *w.is_read_abroad);
  w.written_by = tm_arena_calloc(arena, solver->value_count, sizeof *w.written_by);
  w.written_at = tm_arena_calloc(arena, solver->value_count, sizeof *w.written_at);
  w.waited_to = tm_arena_calloc(arena, program->problem.place_count, sizeof *w.waited_to);
  w.last = tm_arena_calloc(arena, program->problem.place_count, sizeof *w.last);
  w.touched_to = tm_arena_calloc(arena, (uint64_t)solver->value_count * program->problem.place_count, sizeof *w.touched_to);
  w.place_of_memory = tm_arena_calloc(arena, solver->memory_count, sizeof *w.place_of_memory);
  if (w.is_there == NULL || w.is_read_abroad == NULL || w.written_by == NULL || w.written_at == NULL || w.waited_to == NULL ||
      w.last == NULL || w.touched_to == NULL || w.place_of_memory == NULL)
    return no_memory(error);
  note_start(&w);
  note_readers(&w);
  for (uint32_t i = 0; i < program->step_count; i++) {
    TM_TRY(write_node(&w, i));
    if (build->waits) TM_TRY(wait_for_all(&w));
  }
  return write_end(&w);
}
