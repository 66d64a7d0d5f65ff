/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_problem.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "plugin/device.h"
#include "schedule/graph_labels.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a graph"); }

/* ---- values ---- */

static bool is_view(const tm_value *value) { return value->kind == TM_GRAPH_VIEW; }

/* What the application owns takes no room of the plan's. */
static uint8_t traits_of(const tm_value *value) {
  if (value->kind == TM_GRAPH_CONSTANT) return TM_SOLVER_KEPT | TM_SOLVER_LENT;
  if (value->kind == TM_GRAPH_INPUT) return TM_SOLVER_LENT;
  if (value->kind == TM_GRAPH_STATE) return TM_SOLVER_STAYS;
  return value->is_output != 0 ? TM_SOLVER_LENT : 0;
}

static tm_status number_values(tm_graph_problem *problem, tm_error *error) {
  const tm_graph *graph = problem->graph;
  problem->value_numbers = tm_arena_calloc(&problem->arena, graph->value_count, sizeof *problem->value_numbers);
  problem->graph_values = tm_arena_calloc(&problem->arena, graph->value_count, sizeof *problem->graph_values);
  tm_solver_value *values = tm_arena_calloc(&problem->arena, graph->value_count, sizeof *values);
  uint8_t *traits = tm_arena_calloc(&problem->arena, graph->value_count, sizeof *traits);
  if (problem->value_numbers == NULL || problem->graph_values == NULL || values == NULL || traits == NULL) return no_memory(error);
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->value_count; i++) {
    const tm_value *value = &graph->values[i];
    problem->value_numbers[i] = is_view(value) ? problem->value_numbers[value->base] : count;
    if (is_view(value)) continue;
    problem->graph_values[count] = i;
    traits[count] = traits_of(value);
    values[count++] = (tm_solver_value){
      .bytes = value->operand.byte_count,
      .producer = value->kind == TM_GRAPH_RESULT ? value->node : TM_SOLVER_NONE,
      .home = value->kind == TM_GRAPH_RESULT ? TM_SOLVER_NONE : TM_HOST_SPACE,
      .wanted = TM_SOLVER_NONE,
    };
  }
  for (uint32_t i = 0; i < graph->output_count; i++)
    values[problem->value_numbers[graph->outputs[i].value]].wanted = TM_HOST_SPACE;
  problem->solver.values = values;
  problem->solver.traits = traits;
  problem->solver.value_count = count;
  return TM_OK;
}

/* A state that becomes a part or another arrangement of something is put together in host memory. */
static bool can_move(const tm_graph *graph, uint32_t state) {
  const uint32_t carried = graph->values[state].carry;
  return carried == TM_GRAPH_NONE || graph->values[carried].kind == TM_GRAPH_RESULT;
}

bool tm_graph_problem_keep_states(tm_graph_problem *problem, uint32_t memory) {
  const tm_graph *graph = problem->graph;
  bool any = false;
  tm_solver_value *values = (tm_solver_value *)(uintptr_t)problem->solver.values;       /* made above, in our arena */
  for (uint64_t i = 0; i < graph->states.count; i++) {
    const uint32_t number = graph->states.values[i];
    const tm_value *state = &graph->values[number];
    const uint32_t home = can_move(graph, number) ? memory : TM_HOST_SPACE;
    any |= home == memory;
    values[problem->value_numbers[number]].home = home;
    if (state->carry == TM_GRAPH_NONE) continue;
    tm_solver_value *carried = &values[problem->value_numbers[state->carry]];
    if (carried->producer != TM_SOLVER_NONE && !graph->values[graph->values[state->carry].base].is_output) carried->wanted = home;
  }
  return any;
}

/* ---- operations ---- */

/* Each base once, in the order in which they come. */
static uint32_t list_inputs(const tm_graph_problem *problem, const tm_node *node, uint32_t *inputs) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < node->input_count; i++) {
    const uint32_t value = problem->value_numbers[node->inputs[i]];
    uint32_t known = 0;
    while (known < count && inputs[known] != value) known++;
    if (known == count) inputs[count++] = value;
  }
  return count;
}

static tm_status list_ops(tm_graph_problem *problem, const tm_plan_policy *policy, tm_error *error) {
  const tm_graph *graph = problem->graph;
  uint64_t most = 0;
  for (uint32_t i = 0; i < graph->node_count; i++) most += graph->nodes[i].input_count;
  if (most >= TM_SOLVER_NONE) return tm_fail(error, TM_ERROR_LIMIT, "a graph with more operands than can be numbered");
  tm_solver_op *ops = tm_arena_calloc(&problem->arena, graph->node_count, sizeof *ops);
  uint32_t *inputs = tm_arena_calloc(&problem->arena, most, sizeof *inputs);
  if (ops == NULL || inputs == NULL) return no_memory(error);
  TM_TRY(tm_graph_labels_make(problem, ops, policy, error));
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->node_count; i++) {
    ops[i].first_input = count;
    ops[i].input_count = list_inputs(problem, &graph->nodes[i], inputs + count);
    count += ops[i].input_count;
  }
  problem->solver.ops = ops;
  problem->solver.op_count = graph->node_count;
  problem->solver.inputs = inputs;
  problem->solver.input_count = count;
  return TM_OK;
}

/* ---- copies ---- */

static uint64_t one_way_ns(const tm_graph_problem *problem, const uint32_t *links, uint32_t memory, uint64_t bytes) {
  if (memory == TM_HOST_SPACE) return 0;
  return tm_correction_copy_ns(problem->table->market.correction, links[memory], bytes);
}

/* From one device's memory to another's bytes go through the host's. */
uint64_t tm_graph_problem_copy_ns(const tm_graph_problem *problem, uint32_t from, uint32_t to, uint64_t bytes) {
  if (from == to) return 0;
  return tm_cost_add(one_way_ns(problem, problem->links_out, from, bytes), one_way_ns(problem, problem->links_in, to, bytes));
}

/* Values whose copies cost the same: as many bytes, and a constant or not, as those are copied once for all runs. */
typedef struct size_class {
  uint64_t bytes;
  bool     is_constant;
} size_class;

static size_class class_of(const tm_graph_problem *problem, uint32_t value) {
  const tm_value *one = &problem->graph->values[problem->graph_values[value]];
  return (size_class){ one->operand.byte_count, one->kind == TM_GRAPH_CONSTANT };
}

static uint32_t find_class(const size_class *classes, uint64_t slot_count, size_class wanted) {
  uint64_t at = (wanted.bytes * UINT64_C(0x9e3779b97f4a7c15) >> 20) + wanted.is_constant;
  for (at &= slot_count - 1; classes[at].bytes != UINT64_MAX; at = (at + 1) & (slot_count - 1))
    if (classes[at].bytes == wanted.bytes && classes[at].is_constant == wanted.is_constant) break;
  return (uint32_t)at;
}

/* Numbers classes as they come; `found` gets one of each. */
static tm_status classify(tm_graph_problem *problem, size_class *found, tm_error *error) {
  tm_solver_value *values = (tm_solver_value *)(uintptr_t)problem->solver.values;
  uint64_t slot_count = 16;
  while (slot_count < (uint64_t)problem->solver.value_count * 2) slot_count *= 2;
  size_class *slots = tm_arena_calloc(&problem->arena, slot_count, sizeof *slots);
  uint32_t *numbers = tm_arena_calloc(&problem->arena, slot_count, sizeof *numbers);
  if (slots == NULL || numbers == NULL) return no_memory(error);
  for (uint64_t i = 0; i < slot_count; i++) slots[i].bytes = UINT64_MAX;
  uint32_t count = 0;
  for (uint32_t i = 0; i < problem->solver.value_count; i++) {
    const size_class wanted = class_of(problem, i);
    const uint32_t slot = find_class(slots, slot_count, wanted);
    if (slots[slot].bytes == UINT64_MAX) {
      slots[slot] = wanted;
      numbers[slot] = count;
      found[count++] = wanted;
    }
    values[i].size_class = numbers[slot];
  }
  problem->solver.size_class_count = count;
  return TM_OK;
}

static tm_status price_copies(tm_graph_problem *problem, const tm_plan_policy *policy, tm_error *error) {
  const uint64_t memories = problem->solver.memory_count;
  size_class *found = tm_arena_calloc(&problem->arena, problem->solver.value_count, sizeof *found);
  if (found == NULL) return no_memory(error);
  TM_TRY(classify(problem, found, error));
  const uint64_t classes = problem->solver.size_class_count;
  uint64_t *copy_ns = tm_arena_calloc(&problem->arena, classes * memories * memories, sizeof *copy_ns);
  uint32_t *links = tm_arena_calloc(&problem->arena, memories * memories, sizeof *links);
  if (copy_ns == NULL || links == NULL) return no_memory(error);
  for (uint64_t i = 0; i < classes * memories * memories; i++) {
    const uint32_t from = (uint32_t)(i / memories % memories), to = (uint32_t)(i % memories);
    const size_class *one = &found[i / memories / memories];
    const uint64_t ns = tm_graph_problem_copy_ns(problem, from, to, one->bytes);
    copy_ns[i] = one->is_constant ? ns / policy->repeats : ns;
  }
  for (uint32_t i = 0; i < memories * memories; i++) {
    const uint32_t from = (uint32_t)(i / memories), to = (uint32_t)(i % memories);
    links[i] = from == to ? TM_SOLVER_NONE : (from != TM_HOST_SPACE ? from : to) - 1;
  }
  problem->solver.copy_ns = copy_ns;
  problem->solver.links = links;
  if (policy->most_bytes == 0) return TM_OK;
  uint64_t *budgets = tm_arena_calloc(&problem->arena, memories, sizeof *budgets);
  if (budgets == NULL) return no_memory(error);
  for (uint32_t i = 0; i < memories; i++) budgets[i] = policy->most_bytes;
  problem->solver.budgets = budgets;
  return TM_OK;
}

/* ---- all ---- */

const char *tm_graph_problem_refusal(const tm_graph_problem *problem, const tm_plan_candidate *candidate) {
  if (tm_graph_problem_denies(problem, candidate->device)) return TM_NOT_ALLOWED;
  if (!tm_candidate_can_run(candidate)) return candidate->reason;
  if (!tm_device_is_usable(candidate->device)) return "not usable any more";
  return atomic_load(&candidate->is_starved) ? "it lacked memory more than once, so it is left alone for a while" : "";
}

tm_status tm_graph_problem_init(tm_graph_problem *problem, tm_memory *memory, const tm_graph *graph, tm_placement_table *table,
                                const tm_plan_policy *policy, tm_error *error) {
  memset(problem, 0, sizeof *problem);
  tm_arena_init(&problem->arena, memory);
  problem->graph = graph;
  problem->table = table;
  problem->denied = policy->denied;
  TM_TRY(tm_graph_labels_ask(problem, policy, error));
  TM_TRY(tm_graph_labels_place(problem, error));
  TM_TRY(number_values(problem, error));
  TM_TRY(list_ops(problem, policy, error));
  TM_TRY(price_copies(problem, policy, error));
  (void)tm_graph_problem_keep_states(problem, TM_HOST_SPACE);
  tm_graph_labels_settle(problem, memory, policy);
  return TM_OK;
}

void tm_graph_problem_unsettle(tm_graph_problem *problem) {
  if (problem->is_settled) tm_assignment_deinit(&problem->settled);
  problem->is_settled = false;
}

void tm_graph_problem_deinit(tm_graph_problem *problem) {
  tm_graph_problem_unsettle(problem);
  for (uint32_t i = 0; i < problem->placement_count; i++) tm_placement_release(problem->table, problem->placements[i]);
  problem->placement_count = 0;
  tm_arena_deinit(&problem->arena);
}

void tm_graph_problem_name_memory(const tm_graph_problem *problem, uint32_t memory, char *text, uint64_t capacity) {
  const tm_device_slot *device = problem->memories[memory];
  if (device == NULL) (void)snprintf(text, (size_t)capacity, "host memory");
  else (void)snprintf(text, (size_t)capacity, "%s's memory", device->name);
}
