/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_stage.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/plan_memory.h"
#include "tensor/shape.h"

/* Beyond this the copy takes longer than anybody wants to wait for the sake of devices that hang. */
#define LARGEST_STAGE_BYTES (UINT64_C(4) << 20)

static const tm_operand *operand_of(const tm_plan *plan, const tm_plan_location *location) {
  return &plan->graph->values[location->value].operand;
}

static bool is_given(const tm_plan_location *location) {
  return location->kind == TM_LOCATION_INPUT || location->kind == TM_LOCATION_OUTPUT;
}

/* Elements may lie below the first one. */
static uint64_t first_bytes(const tm_plan *plan, const tm_plan_location *location) {
  uint64_t first = 0;
  (void)tm_checked_round_up(tm_operand_bytes_below(operand_of(plan, location)), plan->program.problem.alignment, &first);
  return first;
}

static uint64_t stage_bytes(const tm_plan *plan, const tm_plan_location *location) {
  return first_bytes(plan, location) + location->bytes;
}

/* ---- which ---- */

/* The host's side of a transfer that is waited for later. */
static tm_plan_location *find_touched(tm_plan *plan, const tm_plan_action *action) {
  tm_plan_program *program = &plan->program;
  if (action->kind != TM_ACTION_UPLOAD && action->kind != TM_ACTION_DOWNLOAD) return NULL;
  if ((program->problem.places[action->place].device->info.flags & TM_DEVICE_SYNCHRONOUS) != 0) return NULL;
  return &program->locations[action->kind == TM_ACTION_UPLOAD ? action->from : action->to];
}

void tm_plan_stage_choose(tm_plan *plan) {
  uint64_t *taken = &plan->program.memory_bytes[TM_HOST_SPACE];
  for (uint32_t i = 0; i < plan->program.action_count; i++) {
    tm_plan_location *one = find_touched(plan, &plan->program.actions[i]);
    if (one == NULL || !is_given(one) || one->is_staged || one->bytes > LARGEST_STAGE_BYTES) continue;
    if (!tm_plan_memory_has_room(plan, stage_bytes(plan, one)) || !tm_checked_add(*taken, stage_bytes(plan, one), taken)) continue;
    one->is_staged = 1;
  }
}

/* ---- memory ---- */

tm_status tm_plan_stage_make(tm_plan *plan, tm_plan_location *location, tm_error *error) {
  const uint64_t bytes = stage_bytes(plan, location);
  location->stage = tm_memory_alloc(plan->memory, bytes, plan->program.problem.alignment);
  if (location->stage != NULL) return TM_OK;
  return tm_fail(error, TM_ERROR_NO_MEMORY, "a plan: no memory for a copy of %llu bytes", (unsigned long long)bytes);
}

void tm_plan_stage_free(tm_plan *plan, tm_plan_location *location) {
  tm_plan_memory_free(plan, location->stage, stage_bytes(plan, location));
  location->stage = NULL;
}

char *tm_plan_stage_first(const tm_plan *plan, const tm_plan_location *location) {
  return location->stage == NULL ? NULL : location->stage + first_bytes(plan, location);
}

/* ---- runs ---- */

void tm_plan_stage_inputs(const tm_plan *plan) {
  for (uint32_t i = 0; i < plan->program.given_count; i++) {
    const tm_plan_location *one = &plan->program.locations[plan->program.givens[i]];
    if (one->stage == NULL || one->kind != TM_LOCATION_INPUT) continue;
    const tm_operand *operand = operand_of(plan, one);
    const uint64_t below = tm_operand_bytes_below(operand);
    memcpy(one->host - below, (const char *)plan->inputs[one->index] - below, (size_t)operand->byte_count);
  }
}

void tm_plan_stage_outputs(const tm_plan *plan) {
  for (uint32_t i = 0; i < plan->program.given_count; i++) {
    const tm_plan_location *one = &plan->program.locations[plan->program.givens[i]];
    if (one->stage == NULL || one->kind != TM_LOCATION_OUTPUT) continue;
    memcpy(plan->outputs[one->index], one->host, (size_t)operand_of(plan, one)->byte_count);
  }
}
