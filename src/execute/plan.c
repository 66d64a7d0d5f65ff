/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/plan_budget.h"
#include "execute/plan_build.h"
#include "execute/plan_memory.h"
#include "execute/plan_prepare.h"
#include "execute/plan_stage.h"
#include "schedule/graph_request.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan"); }

/* ---- the program ---- */

static uint32_t candidate_of_label(const tm_graph_problem *problem, uint32_t label) {
  return label == TM_SOLVER_NONE ? TM_PLAN_NONE : problem->labels[label].candidate;
}

static tm_status make_steps(tm_plan_program *program, const tm_graph_choice *choice, tm_error *error) {
  const tm_graph_problem *problem = &program->problem;
  program->steps = tm_arena_calloc(&program->arena, choice->node_count, sizeof *program->steps);
  if (program->steps == NULL) return no_memory(error);
  program->step_count = choice->node_count;
  for (uint32_t i = 0; i < choice->node_count; i++) {
    const uint32_t node = choice->order[i], label = choice->labels[node], alternate = choice->alternates[node];
    program->steps[i] = (tm_plan_step){
      .node = node,
      .placement = problem->node_placements[node],
      .candidate = candidate_of_label(problem, label),
      .alternate = candidate_of_label(problem, alternate),
      .label = label,
      .is_direct = problem->labels[label].is_direct,
      .predicted_ns = problem->solver.labels[label].cost_ns,
      .alternate_ns = alternate == TM_SOLVER_NONE ? 0 : problem->solver.labels[alternate].cost_ns,
    };
  }
  program->state_memory = choice->state_memory;
  program->total_ns = choice->total_ns;
  program->bound_ns = choice->bound_ns;
  program->additive_ns = choice->additive_ns;
  program->overlaps = choice->overlaps;
  program->is_exact = choice->is_exact;
  return TM_OK;
}

/* Actions, and what lies where while they run. */
static tm_status build_actions(tm_plan_build *build, tm_error *error) {
  tm_plan_program *program = build->program;
  uint64_t cells;
  if (!tm_checked_mul(program->problem.solver.value_count, program->problem.solver.memory_count, &cells)) return no_memory(error);
  build->locations = tm_arena_calloc(&build->arena, cells, sizeof *build->locations);
  if (build->locations == NULL) return no_memory(error);
  for (uint64_t i = 0; i < cells; i++) build->locations[i] = TM_PLAN_NONE;
  program->action_count = program->location_count = program->slot_count = program->operand_count = program->patch_count = 0;
  program->launch_count = program->binding_count = program->given_count = 0;
  program->block_bytes = 0;
  TM_TRY(tm_plan_build_actions(build, error));
  return tm_plan_build_slots(build, error);
}

uint64_t tm_plan_program_bytes(const tm_plan_program *program, uint32_t *out_memory) {
  uint64_t bytes = 0;
  *out_memory = 0;
  for (uint32_t i = 0; i < program->problem.solver.memory_count; i++) {
    if (program->memory_bytes[i] <= bytes) continue;
    bytes = program->memory_bytes[i];
    *out_memory = i;
  }
  return bytes;
}

/* What is under way keeps memory longer than whoever chose could know. */
static tm_status build_stages(tm_plan_build *build, uint64_t most_bytes, tm_error *error) {
  uint32_t memory;
  TM_TRY(tm_plan_build_lives(build, error));
  TM_TRY(build_actions(build, error));
  if (tm_plan_program_bytes(build->program, &memory) > most_bytes) {
    build->waits = true;
    TM_TRY(build_actions(build, error));
  }
  return tm_plan_build_launches(build, error);
}

uint64_t tm_plan_epochs(const tm_plan *plan) {
  const tm_graph_problem *problem = &plan->program.problem;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < problem->place_count; i++)
    if (plan->program.queues[i].is_used) sum += atomic_load_explicit(&problem->places[i].device->epoch, memory_order_relaxed);
  return sum;
}

static void find_states(tm_plan *plan, const tm_plan_build *build) {
  const tm_solver_problem *solver = &plan->program.problem.solver;
  for (uint64_t i = 0; plan->states != NULL && i < plan->graph->states.count; i++) {
    const uint32_t number = plan->program.problem.value_numbers[plan->states[i].value];
    plan->states[i].location = build->locations[(uint64_t)number * solver->memory_count + solver->values[number].home];
  }
}

/* What an earlier try left in the program's arena goes. */
static tm_status build_program(tm_plan *plan, const tm_graph_choice *choice, uint64_t most_bytes, tm_error *error) {
  tm_plan_build build = { .plan = plan, .program = &plan->program, .graph = plan->graph, .choice = choice };
  tm_arena_deinit(&plan->program.arena);
  tm_arena_init(&plan->program.arena, plan->memory);
  TM_TRY(make_steps(&plan->program, choice, error));
  tm_arena_init(&build.arena, plan->memory);
  const tm_status status = build_stages(&build, most_bytes, error);
  if (status == TM_OK) find_states(plan, &build);
  tm_liveness_deinit(&build.liveness);
  tm_arena_deinit(&build.arena);
  return status;
}

static void free_program(tm_plan *plan) {
  tm_plan_program *program = &plan->program;
  if (!program->was_made) return;
  tm_plan_prepare_stop(plan);
  tm_plan_unbind(plan);
  tm_memory_free(plan->memory, program->actions, program->action_capacity * sizeof *program->actions);
  tm_memory_free(plan->memory, program->locations, program->location_capacity * sizeof *program->locations);
  tm_memory_free(plan->memory, program->slots, program->slot_capacity * sizeof *program->slots);
  tm_memory_free(plan->memory, program->operands, program->operand_capacity * sizeof *program->operands);
  tm_memory_free(plan->memory, program->patches, program->patch_capacity * sizeof *program->patches);
  tm_arena_deinit(&program->arena);
  tm_graph_problem_deinit(&program->problem);
  memset(program, 0, sizeof *program);
}

static tm_status choose(tm_plan *plan, const tm_plan_request *request, tm_graph_choice *out_choice, tm_error *error) {
  if (request != NULL && request->choose != NULL)
    return request->choose(request->choose_context, &plan->program.problem, plan->memory, out_choice, error);
  return tm_graph_choice_make(&plan->program.problem, &plan->policy, plan->memory, out_choice, error);
}

tm_status tm_plan_choose_and_build(tm_plan *plan, const tm_plan_request *request, uint64_t most_bytes,
                                   tm_memory_shortage *out_lack, tm_error *error) {
  tm_graph_choice choice = { .memory = plan->memory };
  const tm_status chosen = choose(plan, request, &choice, error);
  *out_lack = choice.shortage;
  TM_TRY(chosen);
  const tm_status status = build_program(plan, &choice, most_bytes, error);
  tm_graph_choice_deinit(&choice);
  return status;
}

static tm_status place(tm_plan *plan, const tm_plan_request *request, tm_error *error) {
  tm_plan_program *program = &plan->program;
  TM_TRY(tm_graph_problem_init(&program->problem, plan->memory, plan->graph, plan->runner.table, &plan->policy, error));
  TM_TRY(tm_plan_place_within(plan, request, error));
  tm_plan_stage_choose(plan);
  program->generation = tm_plan_epochs(plan);
  return TM_OK;
}

tm_status tm_plan_place(tm_plan *plan, const tm_plan_request *request, tm_error *error) {
  free_program(plan);
  plan->program.was_made = true;
  tm_arena_init(&plan->program.arena, plan->memory);
  const tm_status status = place(plan, request, error);
  plan->must_replace = status != TM_OK;
  if (status != TM_OK) free_program(plan);
  if (status != TM_OK) return status;
  if (plan->states != NULL) tm_plan_prepare_start(plan);
  plan->counters.plans++;
  return TM_OK;
}

/* ---- the plan ---- */

/* Fit for every device there is, so that it serves whatever is chosen. */
static void note_demands(tm_plan *plan) {
  const tm_inventory *inventory = plan->runner.table->market.inventory;
  plan->alignment = TM_BEST_ALIGNMENT;
  for (uint32_t i = 0; i < inventory->device_count; i++) {
    const tm_device_slot *device = inventory->devices[i];
    const tm_memory_space *space = &device->memories[0];
    if (!device->is_host_memory) continue;
    plan->alignment = tm_graph_request_host_alignment(plan->alignment, device);
    if (space->store_granule > 1) plan->writes_whole_units = 1;
  }
}

static tm_status make_states(tm_plan *plan, tm_error *error) {
  note_demands(plan);
  plan->states = tm_memory_calloc(plan->memory, plan->graph->states.count, sizeof *plan->states);
  if (plan->states == NULL) return no_memory(error);
  for (uint64_t i = 0; i < plan->graph->states.count; i++) {
    tm_plan_state *state = &plan->states[i];
    state->value = plan->graph->states.values[i];
    const uint64_t bytes = plan->graph->values[state->value].operand.byte_count;
    if (!tm_checked_round_up(bytes, plan->alignment, &state->bytes)) return no_memory(error);
    state->mirror = tm_memory_alloc(plan->memory, state->bytes, plan->alignment);
    if (state->mirror == NULL)
      return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a state of %llu bytes", (unsigned long long)bytes);
    memset(state->mirror, 0, (size_t)state->bytes);
    state->is_mirrored = 1;
  }
  return TM_OK;
}

static tm_status make_lists(tm_plan *plan, const tm_plan_request *request, tm_error *error) {
  const tm_graph *graph = plan->graph;
  const uint32_t device_count = plan->runner.table->market.inventory->device_count;
  plan->inputs = tm_memory_calloc(plan->memory, graph->inputs.count, sizeof *plan->inputs);
  plan->outputs = tm_memory_calloc(plan->memory, graph->output_count, sizeof *plan->outputs);
  plan->denied = tm_memory_calloc(plan->memory, device_count, sizeof *plan->denied);
  if (plan->inputs == NULL || plan->outputs == NULL || plan->denied == NULL) return no_memory(error);
  if (request->policy.denied != NULL) memcpy(plan->denied, request->policy.denied, device_count);
  plan->policy.denied = plan->denied;
  plan->runner.denied = plan->denied;
  return make_states(plan, error);
}

tm_status tm_plan_init(tm_plan *plan, const tm_plan_request *request, tm_error *error) {
  memset(plan, 0, sizeof *plan);
  plan->memory = request->memory;
  plan->graph = request->graph;
  plan->runner = request->runner;
  plan->policy = request->policy;
  plan->waits_for_prepare = request->waits_for_prepare;
  tm_status status = make_lists(plan, request, error);
  if (status == TM_OK) status = tm_plan_place(plan, request, error);
  if (status != TM_OK) tm_plan_deinit(plan);
  return status;
}

tm_status tm_plan_draft(tm_plan *plan, const tm_plan_request *request, tm_error *error) {
  *plan = (tm_plan){ .memory = request->memory, .graph = request->graph, .runner = request->runner, .policy = request->policy };
  return tm_plan_place(plan, request, error);
}

void tm_plan_draft_deinit(tm_plan *plan) { free_program(plan); }

static void free_states(tm_plan *plan) {
  for (uint64_t i = 0; plan->states != NULL && i < plan->graph->states.count; i++)
    tm_plan_memory_free(plan, plan->states[i].mirror, plan->states[i].bytes);
  tm_memory_free(plan->memory, plan->states, plan->graph->states.count * sizeof *plan->states);
}

void tm_plan_deinit(tm_plan *plan) {
  for (uint64_t i = 0; plan->states != NULL && i < plan->graph->states.count; i++)      /* nobody wants them back */
    if (!plan->states[i].is_mirrored) plan->states[i].health = TM_STATE_LOST;
  tm_plan_prepare_stop(plan);
  tm_plan_unbind(plan);
  free_states(plan);
  free_program(plan);
  tm_memory_free(plan->memory, plan->inputs, plan->graph->inputs.count * sizeof *plan->inputs);
  tm_memory_free(plan->memory, plan->outputs, plan->graph->output_count * sizeof *plan->outputs);
  tm_memory_free(plan->memory, plan->denied, plan->runner.table->market.inventory->device_count * sizeof *plan->denied);
  memset(plan, 0, sizeof *plan);
}
