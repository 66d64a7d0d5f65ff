/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_digest.h"

#include <string.h>

#define FORM UINT64_C(2)        /* of what is hashed */

/* ---- pieces ---- */

static void add_number(tm_sha256 *hash, uint64_t number) {
  uint8_t bytes[8];
  for (uint32_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(number >> (8 * i));
  tm_sha256_add(hash, bytes, sizeof bytes);
}

static void add_text(tm_sha256 *hash, const char *text) {
  const uint64_t length = text == NULL ? 0 : strlen(text);
  add_number(hash, length);
  if (length != 0) tm_sha256_add(hash, text, length);
}

static void add_operand(tm_sha256 *hash, const tm_operand *operand) {
  add_number(hash, operand->format);
  add_number(hash, operand->rank);
  for (uint32_t i = 0; i < operand->rank; i++) {
    add_number(hash, operand->dims[i]);
    add_number(hash, (uint64_t)operand->strides_bytes[i]);
  }
}

/* ---- the graph ---- */

static void add_value(tm_sha256 *hash, const tm_value *value) {
  const uint64_t numbers[] = { (uint64_t)value->kind, value->index, value->node, value->base, value->carry, value->offset_bytes };
  for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++) add_number(hash, numbers[i]);
  add_operand(hash, &value->operand);
}

static void add_node(tm_sha256 *hash, const tm_node *node) {
  add_number(hash, node->row->op);
  add_number(hash, node->row->version);
  add_number(hash, node->row->attribute_bytes);
  if (node->row->attribute_bytes != 0) tm_sha256_add(hash, node->attributes, node->row->attribute_bytes);
  add_number(hash, node->input_count);
  for (uint32_t i = 0; i < node->input_count; i++) add_number(hash, node->inputs[i]);
}

void tm_plan_graph_digest(const tm_graph *graph, uint8_t out_digest[TM_SHA256_BYTES]) {
  tm_sha256 hash;
  tm_sha256_init(&hash);
  add_number(&hash, FORM);
  add_number(&hash, graph->value_count);
  for (uint32_t i = 0; i < graph->value_count; i++) add_value(&hash, &graph->values[i]);
  add_number(&hash, graph->node_count);
  for (uint32_t i = 0; i < graph->node_count; i++) add_node(&hash, &graph->nodes[i]);
  add_number(&hash, graph->output_count);
  for (uint32_t i = 0; i < graph->output_count; i++) add_number(&hash, graph->outputs[i].value);
  tm_sha256_finish(&hash, out_digest);
}

/* ---- the plan ---- */

static void add_candidate(tm_sha256 *hash, const tm_plan_candidate *candidate) {
  const tm_device_slot *device = candidate->device;
  tm_sha256_add(hash, device->info.uuid.bytes, sizeof device->info.uuid.bytes);
  add_text(hash, device->backend->build_id);
  add_text(hash, candidate->lowering == NULL ? "" : candidate->lowering->text);
}

static void add_step(tm_sha256 *hash, const tm_plan_program *program, const tm_plan_step *step) {
  const tm_plan_candidate *candidates = program->problem.placements[step->placement]->candidates;
  add_number(hash, step->node);
  add_number(hash, step->is_direct);
  add_candidate(hash, &candidates[step->candidate]);
}

/* Devices that the plan does not use have no say: places and memories are numbered without them. */
static uint64_t count_used(const tm_plan_program *program, uint32_t place) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < place; i++) {
    const bool has_states = program->state_memory != TM_HOST_SPACE && program->problem.places[i].memory == program->state_memory;
    count += program->queues[i].is_used != 0 || has_states;
  }
  return count;
}

static uint64_t number_memory(const tm_plan_program *program, uint32_t memory) {
  for (uint32_t i = 0; i < program->problem.place_count && memory != TM_HOST_SPACE; i++)
    if (program->problem.places[i].memory == memory) return 1 + count_used(program, i);
  return 0;
}

static uint64_t number_place(const tm_plan_program *program, const tm_plan_action *action) {
  return action->place == TM_PLAN_NONE ? TM_PLAN_NONE : count_used(program, action->place);
}

static void add_program(tm_sha256 *hash, const tm_plan_program *program) {
  const uint64_t counts[] = { program->step_count, program->action_count, program->location_count, program->slot_count,
                              number_memory(program, program->state_memory) };
  for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) add_number(hash, counts[i]);
  for (uint32_t i = 0; i < program->step_count; i++) add_step(hash, program, &program->steps[i]);
  for (uint32_t i = 0; i < program->action_count; i++) {
    const tm_plan_action *a = &program->actions[i];
    const uint64_t numbers[] = { a->kind, number_place(program, a), a->step, a->value, a->from, a->to, a->target, a->output };
    for (uint32_t k = 0; k < sizeof numbers / sizeof *numbers; k++) add_number(hash, numbers[k]);
  }
  for (uint32_t i = 0; i < program->location_count; i++) {
    const tm_plan_location *l = &program->locations[i];
    const uint64_t numbers[] = { l->kind, l->value, number_memory(program, l->memory), l->slot, l->first, l->last };
    for (uint32_t k = 0; k < sizeof numbers / sizeof *numbers; k++) add_number(hash, numbers[k]);
  }
  for (uint32_t i = 0; i < program->slot_count; i++) {  /* in host memory padding is no part of what is done */
    const tm_plan_slot *slot = &program->slots[i];
    add_number(hash, number_memory(program, slot->memory));
    add_number(hash, slot->memory == TM_HOST_SPACE ? 0 : slot->bytes);
  }
}

void tm_plan_digest_make(const tm_plan *plan, uint8_t out_digest[TM_SHA256_BYTES]) {
  uint8_t graph[TM_SHA256_BYTES];
  tm_sha256 hash;
  tm_plan_graph_digest(plan->graph, graph);
  tm_sha256_init(&hash);
  add_number(&hash, FORM);
  add_text(&hash, tm_version());
  tm_sha256_add(&hash, graph, sizeof graph);
  const tm_plan_policy *policy = &plan->policy;
  const uint64_t numbers[] = { policy->worst_numerics, policy->run_to_run, policy->repeats, policy->most_bytes,
                               policy->one_resource };
  for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++) add_number(&hash, numbers[i]);
  add_program(&hash, &plan->program);
  tm_sha256_finish(&hash, out_digest);
}
