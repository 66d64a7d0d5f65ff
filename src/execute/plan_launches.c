/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_build.h"

#include "base/checked.h"
#include "base/error.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan"); }

static const tm_plan_candidate *candidate_of(const tm_plan_program *program, const tm_plan_action *action) {
  const tm_plan_step *step = &program->steps[action->step];
  return &program->problem.placements[step->placement]->candidates[step->candidate];
}

static bool is_launch(const tm_plan_action *action) {
  return action->kind == TM_ACTION_LAUNCH || action->kind == TM_ACTION_ENQUEUE;
}

static uint32_t count_bindings(const tm_plan_candidate *candidate) {
  return candidate->operation.input_count + candidate->operation.output_count + (candidate->answer.workspace_bytes != 0);
}

tm_status tm_plan_build_workspace(const tm_plan_program *program, const tm_plan_action *action, uint64_t *out_bytes,
                                  tm_error *error) {
  const tm_plan_candidate *candidate = candidate_of(program, action);
  *out_bytes = 0;
  if (candidate->answer.workspace_bytes == 0) return TM_OK;
  if (tm_checked_round_up(candidate->answer.workspace_bytes, candidate->device->memories[0].store_granule, out_bytes)) return TM_OK;
  return tm_fail(error, TM_ERROR_LIMIT, "a workspace larger than 64 bits can count");
}

static tm_status note_workspace(tm_plan_program *program, const tm_plan_action *action, tm_error *error) {
  tm_plan_queue *queue = &program->queues[action->place];
  uint64_t bytes;
  TM_TRY(tm_plan_build_workspace(program, action, &bytes, error));
  queue->workspace_bytes = tm_max_u64(queue->workspace_bytes, bytes);
  return TM_OK;
}

/* Launches that read or write what the application gives at each run follow it. */
static tm_status note_patches(tm_plan_build *build, const tm_plan_action *action, uint32_t first_binding, tm_error *error) {
  tm_plan_program *program = build->program;
  const tm_plan_candidate *candidate = candidate_of(program, action);
  for (uint32_t i = 0; i < candidate->operation.input_count + candidate->operation.output_count; i++) {
    const tm_plan_operand *operand = &program->operands[action->from + i];
    const uint32_t kind = program->locations[operand->location].kind;
    if (kind != TM_LOCATION_INPUT && kind != TM_LOCATION_OUTPUT) continue;
    tm_plan_patch *patch = tm_plan_build_push(build->plan->memory, (void **)&program->patches, &program->patch_count,
                                              &program->patch_capacity, sizeof *patch);
    if (patch == NULL) return no_memory(error);
    *patch = (tm_plan_patch){ first_binding + i, operand->location, operand->value };
  }
  return TM_OK;
}

static tm_status count_all(tm_plan_program *program, tm_error *error) {
  for (uint32_t i = 0; i < program->action_count; i++) {
    const tm_plan_action *action = &program->actions[i];
    if (action->place != TM_PLAN_NONE) program->queues[action->place].is_used = 1;
    if (action->place != TM_PLAN_NONE && action->kind != TM_ACTION_CAREFUL) program->queues[action->place].takes_queue = 1;
    if (!is_launch(action)) continue;
    program->launch_count++;
    program->binding_count += count_bindings(candidate_of(program, action));
    program->queues[action->place].launch_count++;
    TM_TRY(note_workspace(program, action, error));
  }
  return TM_OK;
}

/* By action, or none at all where nothing is enqueued. */
static uint32_t count_tickets(const tm_plan_program *program) {
  for (uint32_t i = 0; i < program->action_count; i++) {
    const uint32_t kind = program->actions[i].kind;
    if (kind == TM_ACTION_ENQUEUE || kind == TM_ACTION_UPLOAD || kind == TM_ACTION_DOWNLOAD) return program->action_count;
  }
  return 0;
}

static bool is_given(const tm_plan_location *one) { return one->kind == TM_LOCATION_INPUT || one->kind == TM_LOCATION_OUTPUT; }

static tm_status list_givens(tm_plan_program *program, tm_error *error) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->location_count; i++) count += is_given(&program->locations[i]);
  program->givens = tm_arena_calloc(&program->arena, count, sizeof *program->givens);
  if (program->givens == NULL) return no_memory(error);
  for (uint32_t i = 0; i < program->location_count; i++)
    if (is_given(&program->locations[i])) program->givens[program->given_count++] = i;
  return TM_OK;
}

/* From each on, so that a loop may begin anywhere. */
static void count_rows(tm_plan_program *program) {
  for (uint32_t i = program->action_count; i-- > 0;) {
    tm_plan_action *action = &program->actions[i];
    if (action->kind != TM_ACTION_LAUNCH) continue;
    const tm_plan_action *next = i + 1 < program->action_count ? action + 1 : NULL;
    const bool goes_on = next != NULL && next->kind == TM_ACTION_LAUNCH && next->place == action->place;
    action->value = 1 + (goes_on ? next->value : 0);
  }
}

tm_status tm_plan_build_launches(tm_plan_build *build, tm_error *error) {
  tm_plan_program *program = build->program;
  program->queues = tm_arena_calloc(&program->arena, program->problem.place_count, sizeof *program->queues);
  program->tickets = tm_arena_calloc(&program->arena, count_tickets(program), sizeof *program->tickets);
  if (program->queues == NULL || program->tickets == NULL) return no_memory(error);
  TM_TRY(count_all(program, error));
  program->launches = tm_arena_calloc(&program->arena, program->launch_count, sizeof *program->launches);
  program->bindings = tm_arena_calloc(&program->arena, program->binding_count, sizeof *program->bindings);
  if (program->launches == NULL || program->bindings == NULL) return no_memory(error);
  uint32_t launch = 0, binding = 0;
  for (uint32_t i = 0; i < program->action_count; i++) {
    tm_plan_action *action = &program->actions[i];
    if (!is_launch(action)) continue;
    const uint32_t count = count_bindings(candidate_of(program, action));
    program->launches[launch] = (tm_launch){ .struct_size = sizeof(tm_launch), .bindings = &program->bindings[binding],
                                             .binding_count = count };
    TM_TRY(note_patches(build, action, binding, error));
    action->to = launch++;
    binding += count;
  }
  count_rows(program);
  return list_givens(program, error);
}
