/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_request.h"

#include <string.h>

#include "base/checked.h"
#include "tensor/shape.h"

/* Of the first element, wherever the plan puts the value: what it makes itself it aligns well, a view lies where it lies. */
static uint32_t alignment_of(const tm_graph *graph, const tm_value *value) {
  uint32_t alignment = TM_BEST_ALIGNMENT;
  const tm_value *base = &graph->values[value->base];
  if (base->kind == TM_GRAPH_CONSTANT && base->data != NULL && tm_alignment_of(base->data) < alignment)
    alignment = tm_alignment_of(base->data);
  while (value->offset_bytes % alignment != 0) alignment /= 2;
  return alignment;
}

void tm_graph_request_make(const tm_graph *graph, uint32_t node, bool is_in_place, const tm_plan_policy *policy,
                           tm_request *out_request) {
  const tm_node *what = &graph->nodes[node];
  const tm_op_row *row = what->row;
  memset(out_request, 0, offsetof(tm_request, operands));
  out_request->op = row->op;
  out_request->version = row->version;
  out_request->worst_numerics = policy->worst_numerics != TM_NUMERICS_DEFAULT ? policy->worst_numerics : row->default_numerics;
  out_request->flags = policy->run_to_run != 0 ? TM_REQUEST_RUN_TO_RUN : 0;
  out_request->only_device = TM_ANY_DEVICE;
  out_request->input_count = what->input_count;
  out_request->output_count = row->output_count;
  out_request->attribute_bytes = row->attribute_bytes;
  if (row->attribute_bytes != 0) memcpy(out_request->attributes, what->attributes, row->attribute_bytes);
  for (uint32_t i = 0; i < what->input_count + row->output_count; i++) {
    const uint32_t number = i < what->input_count ? what->inputs[i] : what->outputs[i - what->input_count];
    out_request->operands[i] = graph->values[number].operand;
    out_request->operands[i].alignment = alignment_of(graph, &graph->values[number]);
  }
  if (is_in_place) out_request->operands[what->input_count].flags |= TM_OPERAND_IN_PLACE;
}

/* ---- where operands can lie ---- */

static bool is_power_of_two(uint64_t number) { return (number & (number - 1)) == 0; }

/* Granules are at most 2^20, so the least common multiple fits. */
static uint64_t common_multiple(uint64_t a, uint64_t b) {
  uint64_t x = a, y = b;
  if (is_power_of_two(a) && is_power_of_two(b)) return tm_max_u64(a, b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

static uint64_t unit_of(const tm_device_slot *device) {
  const tm_memory_space *space = &device->memories[0];
  return common_multiple(common_multiple(space->offset_granule, space->store_granule), TM_BEST_ALIGNMENT);
}

uint64_t tm_graph_request_first_bytes(const tm_operand *operand, const tm_device_slot *device) {
  uint64_t first;
  return tm_checked_round_up(tm_operand_bytes_below(operand), unit_of(device), &first) ? first : UINT64_MAX;
}

uint64_t tm_graph_request_buffer_bytes(const tm_operand *operand, const tm_device_slot *device) {
  const uint64_t below = tm_operand_bytes_below(operand), unit = unit_of(device);
  uint64_t first, end;
  if (!tm_checked_round_up(below, unit, &first) || !tm_checked_add(first - below, operand->byte_count, &end) ||
      !tm_checked_round_up(tm_max_u64(end, 1), unit, &end))
    return UINT64_MAX;
  return end;
}

static bool fits_in_buffer(const tm_value *value, const tm_value *base, const tm_device_slot *device) {
  const tm_memory_space *space = &device->memories[0];
  const uint64_t bytes = tm_graph_request_buffer_bytes(&base->operand, device);
  if (bytes == UINT64_MAX || (space->largest_buffer_bytes != 0 && bytes > space->largest_buffer_bytes)) return false;
  return value->offset_bytes % space->offset_granule == 0;
}

uint32_t tm_graph_request_host_alignment(uint32_t alignment, const tm_device_slot *device) {
  const tm_memory_space *space = &device->memories[0];
  if (space->alignment > alignment) alignment = space->alignment;
  return is_power_of_two(space->store_granule) && space->store_granule > alignment ? space->store_granule : alignment;
}

static bool lies_in_host_memory(const tm_value *value, const tm_value *base, const tm_device_slot *device,
                                uint64_t host_alignment) {
  const uint64_t alignment = tm_max_u64(1, device->memories[0].alignment);
  const uint64_t at = base->kind == TM_GRAPH_CONSTANT ? (uint64_t)(uintptr_t)base->data % host_alignment : 0;
  if (!is_power_of_two(device->memories[0].store_granule)) return false;
  return value->operand.byte_count == 0 || (at + value->offset_bytes) % alignment == 0;
}

bool tm_graph_request_is_bindable(const tm_graph *graph, uint32_t node, const tm_device_slot *device, uint64_t host_alignment) {
  const tm_node *what = &graph->nodes[node];
  for (uint32_t i = 0; i < what->input_count + what->row->output_count; i++) {
    const uint32_t number = i < what->input_count ? what->inputs[i] : what->outputs[i - what->input_count];
    const tm_value *value = &graph->values[number], *base = &graph->values[value->base];
    const bool fits = device->is_host_memory ? lies_in_host_memory(value, base, device, host_alignment)
                                             : fits_in_buffer(value, base, device);
    if (!fits) return false;
  }
  return true;
}
