/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_memory.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/plan_stage.h"
#include "tensor/shape.h"

#define MOST_DOWNLOADS 3u

static tm_status no_memory(const char *what, uint64_t bytes, tm_error *error) {
  return tm_fail(error, TM_ERROR_NO_MEMORY, "a plan: no memory for %s of %llu bytes", what, (unsigned long long)bytes);
}

/* ---- transfers ---- */

tm_status tm_plan_upload(tm_device_slot *device, const tm_plan_location *to, uint64_t below, const char *first, uint64_t bytes,
                         tm_error *error) {
  if (bytes == 0) return TM_OK;
  tm_device_use use = tm_device_use_begin(device, NULL);
  const tm_status status = tm_device_upload(&use, to->buffer, to->first_bytes - below, first - below, bytes, error);
  tm_device_use_end(&use);
  return status;
}

/* What a device still has is worth asking for more than once, as long as the device is there. */
tm_status tm_plan_download(tm_device_slot *device, const tm_plan_location *from, uint64_t below, char *first, uint64_t bytes,
                           tm_error *error) {
  tm_status status = TM_OK;
  if (bytes == 0) return status;
  for (uint32_t i = 0; i < MOST_DOWNLOADS && (i == 0 || (status != TM_OK && tm_device_is_usable(device))); i++) {
    tm_device_use use = tm_device_use_begin(device, NULL);
    status = tm_device_download(&use, from->buffer, from->first_bytes - below, first - below, bytes, error);
    tm_device_use_end(&use);
    if (status == TM_ERROR_DEVICE_LOST) tm_inventory_retire(device, TM_DEVICE_LOST);
  }
  return status;
}

/* ---- memory ---- */

bool tm_plan_memory_has_room(const tm_plan *plan, uint64_t bytes) {
  const uint64_t most = plan->policy.most_bytes, taken = plan->program.memory_bytes[TM_HOST_SPACE];
  return most == 0 || (taken <= most && bytes <= most - taken);
}

/* What a device that never came back may still touch stays for ever. */
void tm_plan_memory_free(tm_plan *plan, void *memory, uint64_t bytes) {
  const tm_plan_program *program = &plan->program;
  for (uint32_t i = 0; memory != NULL && i < program->problem.place_count; i++) {
    tm_device_slot *device = program->problem.places[i].device;
    if (program->queues == NULL || !program->queues[i].is_used) continue;
    if (!atomic_load(&device->is_stuck) && atomic_load(&device->unfinished_count) == 0) continue;
    tm_device_memory_free(device, memory, bytes);
    return;
  }
  tm_memory_free(plan->memory, memory, bytes);
}

static tm_status make_buffer(tm_device_slot *device, uint64_t bytes, tm_buffer **out_buffer, tm_error *error) {
  const tm_device_use use = { .device = device };
  return tm_device_buffer_create(&use, bytes, out_buffer, error);
}

static tm_status make_slots(tm_plan *plan, tm_error *error) {
  tm_plan_program *program = &plan->program;
  program->block = tm_memory_alloc(plan->memory, program->block_bytes, program->problem.alignment);
  if (program->block == NULL) return no_memory("a block", program->block_bytes, error);
  for (uint32_t i = 0; i < program->slot_count; i++) {
    tm_plan_slot *slot = &program->slots[i];
    if (slot->memory == TM_HOST_SPACE) continue;
    TM_TRY(make_buffer(program->problem.memories[slot->memory], slot->bytes, &slot->buffer, error));
  }
  return TM_OK;
}

static tm_status make_workspaces(tm_plan *plan, tm_error *error) {
  tm_plan_program *program = &plan->program;
  for (uint32_t i = 0; i < program->problem.place_count; i++) {
    tm_plan_queue *queue = &program->queues[i];
    const tm_graph_place *place = &program->problem.places[i];
    if (queue->workspace_bytes == 0) continue;
    if (place->memory != TM_HOST_SPACE) {
      TM_TRY(make_buffer(place->device, queue->workspace_bytes, &queue->workspace_buffer, error));
      continue;
    }
    queue->workspace = tm_memory_alloc(plan->memory, queue->workspace_bytes, program->problem.alignment);
    if (queue->workspace == NULL) return no_memory("a workspace", queue->workspace_bytes, error);
  }
  return TM_OK;
}

static bool is_in_buffer(const tm_plan_location *one) { return one->memory != TM_HOST_SPACE; }

/* What does not share a slot. */
static tm_status make_own(tm_plan *plan, tm_plan_location *one, tm_error *error) {
  tm_plan_program *program = &plan->program;
  const tm_value *value = &plan->graph->values[one->value];
  if (one->kind == TM_LOCATION_NEXT) {
    one->host = tm_memory_alloc(plan->memory, one->bytes, program->problem.alignment);
    return one->host != NULL ? TM_OK : no_memory("a state", one->bytes, error);
  }
  if (one->kind != TM_LOCATION_KEPT && one->kind != TM_LOCATION_STATE) return TM_OK;
  if (!is_in_buffer(one)) return TM_OK;
  tm_device_slot *device = program->problem.memories[one->memory];
  TM_TRY(make_buffer(device, one->bytes, &one->buffer, error));
  if (one->kind == TM_LOCATION_STATE) return TM_OK;
  return tm_plan_upload(device, one, tm_operand_bytes_below(&value->operand), value->data, value->operand.byte_count, error);
}

static tm_status make_locations(tm_plan *plan, tm_error *error) {
  tm_plan_program *program = &plan->program;
  for (uint32_t i = 0; i < program->location_count; i++) {
    tm_plan_location *one = &program->locations[i];
    TM_TRY(make_own(plan, one, error));
    if (one->is_staged) TM_TRY(tm_plan_stage_make(plan, one, error));
    if (one->kind == TM_LOCATION_CONSTANT) one->host = (char *)(uintptr_t)plan->graph->values[one->value].data;
    if (one->kind != TM_LOCATION_SLOT || one->slot == TM_PLAN_NONE) continue;
    const tm_plan_slot *slot = &program->slots[one->slot];
    if (is_in_buffer(one)) {
      one->buffer = slot->buffer;
      one->bytes = slot->bytes;
    } else {
      one->host = (char *)program->block + slot->offset;
    }
  }
  return TM_OK;
}

/* ---- states ---- */

static uint64_t state_bytes(const tm_plan *plan, const tm_plan_state *state) {
  return plan->graph->values[state->value].operand.byte_count;
}

static tm_plan_location *location_of(tm_plan *plan, const tm_plan_state *state) {
  return &plan->program.locations[state->location];
}

bool tm_plan_keeps_mirror(const tm_plan *plan, uint32_t state_value) {
  return plan->graph->values[state_value].carry == TM_GRAPH_NONE && plan->policy.most_bytes == 0;
}

static bool take_in(tm_plan *plan, tm_plan_state *state) {
  tm_plan_location *from = location_of(plan, state);
  if (state->mirror != NULL) return true;
  state->mirror = tm_memory_alloc(plan->memory, state->bytes, plan->program.problem.alignment);
  if (state->mirror == NULL) return false;
  tm_device_slot *device = plan->program.problem.memories[from->memory];
  return tm_plan_download(device, from, 0, state->mirror, state_bytes(plan, state), NULL) == TM_OK;
}

void tm_plan_states_take_in(tm_plan *plan) {
  for (uint64_t i = 0; plan->program.is_bound && i < plan->graph->states.count; i++) {
    tm_plan_state *state = &plan->states[i];
    if (state->is_mirrored || state->health == TM_STATE_LOST) continue;
    if (!take_in(plan, state)) state->health = TM_STATE_LOST;
    state->is_mirrored = 1;
  }
}

tm_status tm_plan_state_ready(tm_plan *plan, tm_plan_state *state, tm_error *error) {
  if (state->mirror == NULL) state->mirror = tm_memory_alloc(plan->memory, state->bytes, plan->alignment);
  if (state->mirror == NULL) return no_memory("a state", state->bytes, error);
  state->health = TM_STATE_FINE;
  state->is_mirrored = 1;
  return TM_OK;
}

tm_status tm_plan_states_renew(tm_plan *plan, tm_error *error) {
  for (uint64_t i = 0; i < plan->graph->states.count; i++) {
    tm_plan_state *state = &plan->states[i];
    if (!state->is_mirrored || state->mirror == NULL) continue;
    void *fresh = tm_memory_alloc(plan->memory, state->bytes, plan->alignment);
    if (fresh == NULL) return no_memory("a state", state->bytes, error);
    memcpy(fresh, state->mirror, (size_t)state->bytes);
    tm_plan_memory_free(plan, state->mirror, state->bytes);
    state->mirror = fresh;
    if (plan->program.is_bound && !is_in_buffer(location_of(plan, state))) location_of(plan, state)->host = fresh;
  }
  return TM_OK;
}

/* In host memory the mirror is the state; a lost one has none, and is refused before it is read. */
tm_status tm_plan_states_put_out(tm_plan *plan, tm_error *error) {
  for (uint64_t i = 0; i < plan->graph->states.count; i++) {
    tm_plan_state *state = &plan->states[i];
    tm_plan_location *to = location_of(plan, state);
    if (!is_in_buffer(to)) to->host = state->mirror;
    if (!is_in_buffer(to) || !state->is_mirrored || state->health == TM_STATE_LOST) continue;
    tm_device_slot *device = plan->program.problem.memories[to->memory];
    TM_TRY(tm_plan_upload(device, to, 0, state->mirror, state_bytes(plan, state), error));
    state->is_mirrored = 0;
    if (tm_plan_keeps_mirror(plan, state->value)) continue;
    tm_plan_memory_free(plan, state->mirror, state->bytes);
    state->mirror = NULL;
  }
  return TM_OK;
}

/* ---- launches ---- */

static tm_binding bind_operand(const tm_plan *plan, const tm_plan_location *location, const tm_operand *operand, uint64_t offset) {
  if (!is_in_buffer(location))
    return (tm_binding){ location->host == NULL ? NULL : (tm_buffer *)(void *)(location->host + offset), 0, operand->byte_count };
  const uint64_t at = location->first_bytes + offset, rest = location->bytes - at;
  const uint64_t largest = plan->program.problem.memories[location->memory]->memories[0].largest_binding_bytes;
  return (tm_binding){ location->buffer, at, largest != 0 && rest > largest ? largest : rest };
}

static void bind_workspace(const tm_plan_queue *queue, uint64_t bytes, tm_binding *binding) {
  binding->buffer = queue->workspace_buffer != NULL ? queue->workspace_buffer : queue->workspace;
  binding->offset = 0;
  binding->length = bytes;
}

static tm_status bind_launch(tm_plan *plan, const tm_plan_action *action, tm_error *error) {
  tm_plan_program *program = &plan->program;
  const tm_plan_step *step = &program->steps[action->step];
  tm_placement *placement = program->problem.placements[step->placement];
  tm_plan_candidate *candidate = &placement->candidates[step->candidate];
  tm_launch *launch = &program->launches[action->to];
  tm_plan_queue *queue = &program->queues[action->place];
  tm_binding *bindings = (tm_binding *)(uintptr_t)launch->bindings;
  const uint32_t count = candidate->operation.input_count + candidate->operation.output_count;
  for (uint32_t i = 0; i < count; i++) {
    const tm_plan_operand *operand = &program->operands[action->from + i];
    bindings[i] = bind_operand(plan, &program->locations[operand->location], &plan->graph->values[operand->value].operand,
                               program->offsets[operand->value]);
  }
  if (launch->binding_count > count)
    bind_workspace(queue, candidate->answer.workspace_bytes, &bindings[count]);
  TM_TRY(tm_placement_kernel(placement, candidate, NULL, &launch->kernel, error));
  queue->device = atomic_load_explicit(&candidate->device->handle, memory_order_acquire);
  queue->launch = candidate->device->backend->table.launch;
  return TM_OK;
}

/* Whether anything that the application gives is elsewhere than it was. */
static bool point_locations(tm_plan *plan) {
  tm_plan_program *program = &plan->program;
  bool is_new = program->is_pointed == 0;
  for (uint32_t i = 0; i < program->given_count; i++) {
    tm_plan_location *one = &program->locations[program->givens[i]];
    char *now = tm_plan_stage_first(plan, one);
    if (now == NULL) now = one->kind == TM_LOCATION_INPUT ? plan->inputs[one->index] : plan->outputs[one->index];
    is_new |= one->host != now;
    one->host = now;
  }
  program->is_pointed = 1;
  return is_new;
}

void tm_plan_point(tm_plan *plan) {
  tm_plan_program *program = &plan->program;
  if (!point_locations(plan)) return;
  for (uint32_t i = 0; i < program->patch_count; i++) {
    const tm_plan_patch *patch = &program->patches[i];
    program->bindings[patch->binding].buffer =
        (tm_buffer *)(void *)(program->locations[patch->location].host + program->offsets[patch->value]);
  }
}

/* ---- all ---- */

static tm_status bind_all(tm_plan *plan, tm_error *error) {
  TM_TRY(make_slots(plan, error));
  TM_TRY(make_workspaces(plan, error));
  TM_TRY(make_locations(plan, error));
  TM_TRY(tm_plan_states_put_out(plan, error));
  for (uint32_t i = 0; i < plan->program.action_count; i++) {
    const tm_plan_action *action = &plan->program.actions[i];
    if (action->kind == TM_ACTION_LAUNCH || action->kind == TM_ACTION_ENQUEUE) TM_TRY(bind_launch(plan, action, error));
  }
  return TM_OK;
}

static void free_locations(tm_plan *plan) {
  tm_plan_program *program = &plan->program;
  for (uint32_t i = 0; i < program->location_count; i++) {
    tm_plan_location *one = &program->locations[i];
    const bool is_own = one->kind == TM_LOCATION_KEPT || one->kind == TM_LOCATION_STATE;
    if (is_own && is_in_buffer(one)) tm_device_buffer_destroy(program->problem.memories[one->memory], one->buffer, one->bytes, NULL);
    if (one->kind == TM_LOCATION_NEXT) tm_plan_memory_free(plan, one->host, one->bytes);
    tm_plan_stage_free(plan, one);
    one->buffer = NULL;
    one->host = NULL;
  }
}

static void free_all(tm_plan *plan) {
  tm_plan_program *program = &plan->program;
  free_locations(plan);
  for (uint32_t i = 0; i < program->slot_count; i++) {
    tm_plan_slot *slot = &program->slots[i];
    if (slot->memory != TM_HOST_SPACE) tm_device_buffer_destroy(program->problem.memories[slot->memory], slot->buffer, slot->bytes, NULL);
    slot->buffer = NULL;
  }
  for (uint32_t i = 0; i < program->problem.place_count; i++) {
    tm_plan_queue *queue = &program->queues[i];
    tm_device_buffer_destroy(program->problem.places[i].device, queue->workspace_buffer, queue->workspace_bytes, NULL);
    tm_plan_memory_free(plan, queue->workspace, queue->workspace_bytes);
    queue->workspace_buffer = NULL;
    queue->workspace = NULL;
  }
  tm_plan_memory_free(plan, program->block, program->block_bytes);
  program->block = NULL;
  program->is_bound = program->is_pointed = 0;
}

tm_status tm_plan_bind(tm_plan *plan, tm_error *error) {
  plan->program.is_bound = 1;           /* so that states that went out come back in */
  const tm_status status = bind_all(plan, error);
  if (status != TM_OK) tm_plan_unbind(plan);
  return status;
}

void tm_plan_unbind(tm_plan *plan) {
  if (!plan->program.is_bound) return;
  tm_plan_states_take_in(plan);
  free_all(plan);
}
