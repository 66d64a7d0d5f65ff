/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_build.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/plan_memory.h"
#include "schedule/graph_request.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan"); }

void *tm_plan_build_push(tm_memory *memory, void **array, uint32_t *count, uint64_t *capacity, uint64_t element_bytes) {
  if (*count == TM_PLAN_NONE - 1) return NULL;
  if (*count == *capacity) {
    const uint64_t more = tm_max_u64(64, *capacity * 2);
    void *grown = tm_memory_grow(memory, *array, *capacity, more, element_bytes);
    if (grown == NULL) return NULL;
    *array = grown;
    *capacity = more;
  }
  char *place = (char *)*array + *count * element_bytes;
  memset(place, 0, (size_t)element_bytes);
  (*count)++;
  return place;
}

/* ---- lives ---- */

/* Bits of an answer that a plan can make use of.  What the application owns is never overwritten, and a state only by what moves:
   that may be done again when a device fails halfway. */
static uint64_t usable_aliases(const tm_plan_build *build, uint32_t node, uint64_t mask) {
  const tm_node *what = &build->graph->nodes[node];
  for (uint32_t i = 0; i < what->input_count && i < 8; i++) {
    const tm_value *base = &build->graph->values[build->graph->values[what->inputs[i]].base];
    const bool may = base->kind == TM_GRAPH_RESULT || (base->kind == TM_GRAPH_STATE && what->row->op_class == TM_CLASS_MOVE);
    if (!may) mask &= ~(UINT64_C(0x0101010101010101) << i);
  }
  return mask;
}

tm_status tm_plan_build_lives(tm_plan_build *build, tm_error *error) {
  tm_plan_program *program = build->program;
  const tm_graph *graph = build->graph;
  uint64_t *allowed = tm_arena_calloc(&build->arena, graph->node_count, sizeof *allowed);
  program->roots = tm_arena_calloc(&program->arena, graph->value_count, sizeof *program->roots);
  program->offsets = tm_arena_calloc(&program->arena, graph->value_count, sizeof *program->offsets);
  if (allowed == NULL || program->roots == NULL || program->offsets == NULL) return no_memory(error);
  for (uint32_t i = 0; i < graph->node_count; i++) {
    const uint32_t label = build->choice->labels[i];
    const tm_plan_candidate *candidate = tm_graph_problem_candidate(&program->problem, i, label);
    if (program->problem.labels[label].is_direct) allowed[i] = usable_aliases(build, i, candidate->promise.alias_mask);
  }
  TM_TRY(tm_liveness_init(&build->liveness, graph, build->choice->order, allowed, error));
  for (uint32_t i = 0; i < graph->value_count; i++) {
    program->roots[i] = build->liveness.values[i].root;
    program->offsets[i] = build->liveness.values[i].offset_bytes;
  }
  return TM_OK;
}

/* ---- locations ---- */

static uint32_t output_of(const tm_plan_build *build, uint32_t root) {
  const tm_value *value = &build->graph->values[root];
  if (value->kind != TM_GRAPH_RESULT || value->is_output == 0) return TM_PLAN_NONE;
  for (uint32_t i = 0; i < build->graph->output_count; i++)
    if (build->graph->outputs[i].value == root) return i;
  return TM_PLAN_NONE;
}

static uint32_t kind_in_host(const tm_plan_build *build, uint32_t root, uint32_t *out_index) {
  const tm_value *value = &build->graph->values[root];
  *out_index = value->index;
  if (value->kind == TM_GRAPH_CONSTANT) return TM_LOCATION_CONSTANT;
  if (value->kind == TM_GRAPH_INPUT) return TM_LOCATION_INPUT;
  *out_index = output_of(build, root);
  return *out_index != TM_PLAN_NONE ? TM_LOCATION_OUTPUT : TM_LOCATION_SLOT;
}

static uint32_t kind_of(const tm_plan_build *build, uint32_t root, uint32_t memory, uint32_t *out_index) {
  const tm_graph_problem *problem = &build->program->problem;
  const uint32_t kind = build->graph->values[root].kind;
  *out_index = 0;
  if (kind == TM_GRAPH_STATE && problem->solver.values[problem->value_numbers[root]].home == memory) return TM_LOCATION_STATE;
  if (memory == TM_HOST_SPACE) return kind_in_host(build, root, out_index);
  return kind == TM_GRAPH_CONSTANT ? TM_LOCATION_KEPT : TM_LOCATION_SLOT;
}

static tm_status measure(const tm_plan_build *build, tm_plan_location *location, tm_error *error) {
  const tm_operand *operand = &build->graph->values[location->value].operand;
  const tm_device_slot *device = build->program->problem.memories[location->memory];
  if (device == NULL) {
    if (tm_checked_round_up(operand->byte_count, build->program->problem.alignment, &location->bytes)) return TM_OK;
  } else {
    location->first_bytes = tm_graph_request_first_bytes(operand, device);
    location->bytes = tm_graph_request_buffer_bytes(operand, device);
    if (location->bytes != UINT64_MAX) return TM_OK;
  }
  char name[TM_GRAPH_LABEL_CAPACITY];
  tm_graph_name_value(build->graph, location->value, name, sizeof name);
  return tm_fail(error, TM_ERROR_LIMIT, "%s: larger than 64 bits can count, with what its device wants around it", name);
}

tm_status tm_plan_build_location(tm_plan_build *build, uint32_t root, uint32_t memory, uint32_t *out_location, tm_error *error) {
  tm_plan_program *program = build->program;
  const uint64_t cell = (uint64_t)program->problem.value_numbers[root] * program->problem.solver.memory_count + memory;
  if (build->locations[cell] == TM_PLAN_NONE) {
    tm_plan_location *one = tm_plan_build_push(build->plan->memory, (void **)&program->locations, &program->location_count,
                                               &program->location_capacity, sizeof *one);
    if (one == NULL) return no_memory(error);
    *one = (tm_plan_location){ .value = root, .memory = memory, .slot = TM_PLAN_NONE };
    one->kind = kind_of(build, root, memory, &one->index);
    TM_TRY(measure(build, one, error));
    build->locations[cell] = program->location_count - 1;
  }
  *out_location = build->locations[cell];
  return TM_OK;
}

/* ---- from when to when ---- */

/* Memory of a device's own is used by its queue alone, where one thing comes after the other: whoever comes next there need not
   wait.  What is under way in host memory is in use until it was waited for. */
static void touch(tm_plan_location *location, uint32_t action, uint32_t done_at) {
  const uint32_t last = location->memory == TM_HOST_SPACE ? done_at : action;
  if (action < location->first) location->first = action;
  if (location->last == TM_PLAN_NONE || last > location->last) location->last = last;
}

static uint32_t operand_count(const tm_plan_program *program, const tm_graph *graph, uint32_t step) {
  const tm_node *node = &graph->nodes[program->steps[step].node];
  return node->input_count + node->row->output_count;
}

/* [action]: the wait after which what it enqueued is done; [place] `next`: from where on that is not known yet. */
static void note_waits(const tm_plan_program *program, uint32_t *done_at, uint32_t *next) {
  for (uint32_t i = 0; i < program->action_count; i++) done_at[i] = program->action_count;
  for (uint32_t i = 0; i < program->action_count; i++) {
    const tm_plan_action *wait = &program->actions[i];
    if (wait->kind != TM_ACTION_WAIT) continue;
    for (; next[wait->place] <= wait->from; next[wait->place]++)
      if (program->actions[next[wait->place]].place == wait->place) done_at[next[wait->place]] = i;
  }
}

static void find_uses(const tm_plan_build *build, const uint32_t *done_at) {
  tm_plan_program *program = build->program;
  for (uint32_t i = 0; i < program->location_count; i++) {
    program->locations[i].first = TM_PLAN_NONE;
    program->locations[i].last = TM_PLAN_NONE;
  }
  for (uint32_t i = program->action_count; i-- > 0;) {
    const tm_plan_action *action = &program->actions[i];
    const bool is_async =
        action->kind == TM_ACTION_ENQUEUE || action->kind == TM_ACTION_UPLOAD || action->kind == TM_ACTION_DOWNLOAD;
    const uint32_t last = is_async ? done_at[i] : i;
    if (action->step != TM_PLAN_NONE) {
      const uint32_t count = operand_count(program, build->graph, action->step);
      for (uint32_t k = 0; k < count; k++) touch(&program->locations[program->operands[action->from + k].location], i, last);
    } else if (action->kind != TM_ACTION_WAIT) {
      touch(&program->locations[action->from], i, last);
      if (action->to != TM_PLAN_NONE) touch(&program->locations[action->to], i, last);
    }
  }
}

/* ---- slots ---- */

/* What a slot must have for it.  In host memory without what devices that happen to be there want around it (add_up): who shares
   a slot with whom is then the same wherever the same devices are used. */
static uint64_t wanted_bytes(const tm_plan_build *build, const tm_plan_location *location) {
  uint64_t bytes;
  if (location->memory != TM_HOST_SPACE) return location->bytes;
  const uint64_t content = build->graph->values[location->value].operand.byte_count;
  return tm_checked_round_up(content, TM_BEST_ALIGNMENT, &bytes) ? bytes : location->bytes;
}

/* Of those that are free the smallest that is large enough, else the largest. */
static uint32_t find_slot(const tm_plan_program *program, const tm_plan_location *location, uint64_t wanted) {
  uint32_t best = TM_PLAN_NONE;
  for (uint32_t i = 0; i < program->slot_count; i++) {
    const tm_plan_slot *slot = &program->slots[i];
    if (slot->memory != location->memory || slot->free_from > location->first) continue;
    if (best == TM_PLAN_NONE) {
      best = i;
      continue;
    }
    const uint64_t bytes = slot->bytes, known = program->slots[best].bytes;
    const bool is_enough = bytes >= wanted;
    if (is_enough ? known < wanted || bytes < known : known < wanted && bytes > known) best = i;
  }
  return best;
}

static tm_status give_slot(tm_plan_build *build, tm_plan_location *location, tm_error *error) {
  tm_plan_program *program = build->program;
  const uint64_t wanted = wanted_bytes(build, location);
  uint32_t slot = find_slot(program, location, wanted);
  if (slot == TM_PLAN_NONE) {
    tm_plan_slot *one = tm_plan_build_push(build->plan->memory, (void **)&program->slots, &program->slot_count,
                                           &program->slot_capacity, sizeof *one);
    if (one == NULL) return no_memory(error);
    one->memory = location->memory;
    slot = program->slot_count - 1;
  }
  program->slots[slot].bytes = tm_max_u64(program->slots[slot].bytes, wanted);
  program->slots[slot].free_from = location->last + 1;
  location->slot = slot;
  return TM_OK;
}

/* Locations by the action that first uses them: a list an action. */
static tm_status order_locations(tm_plan_build *build, uint32_t *order, tm_error *error) {
  const tm_plan_program *program = build->program;
  uint32_t *starts = tm_arena_calloc(&build->arena, (uint64_t)program->action_count + 2, sizeof *starts);
  if (starts == NULL) return no_memory(error);
  for (uint32_t i = 0; i < program->location_count; i++)
    starts[(program->locations[i].first == TM_PLAN_NONE ? program->action_count : program->locations[i].first) + 1]++;
  for (uint32_t i = 0; i <= program->action_count; i++) starts[i + 1] += starts[i];
  for (uint32_t i = 0; i < program->location_count; i++)
    order[starts[program->locations[i].first == TM_PLAN_NONE ? program->action_count : program->locations[i].first]++] = i;
  return TM_OK;
}

/* Each device has one workspace for all that it runs. */
static tm_status add_workspaces(tm_plan_build *build, bool *fits, tm_error *error) {
  tm_plan_program *program = build->program;
  const tm_graph_problem *problem = &program->problem;
  uint64_t *most = tm_arena_calloc(&build->arena, problem->place_count, sizeof *most);
  if (most == NULL) return no_memory(error);
  for (uint32_t i = 0; i < program->action_count; i++) {
    const tm_plan_action *action = &program->actions[i];
    uint64_t bytes = 0;
    if (action->kind == TM_ACTION_LAUNCH || action->kind == TM_ACTION_ENQUEUE)
      TM_TRY(tm_plan_build_workspace(program, action, &bytes, error));
    if (bytes != 0) most[action->place] = tm_max_u64(most[action->place], bytes);
  }
  for (uint32_t i = 0; i < problem->place_count; i++) {
    uint64_t *sum = &program->memory_bytes[problem->places[i].memory];
    *fits = *fits && tm_checked_add(*sum, most[i], sum);
  }
  return TM_OK;
}

/* What stays in host memory of a state that a device's own memory holds. */
static bool add_mirror(const tm_plan_build *build, const tm_plan_location *one) {
  uint64_t bytes, *sum = &build->program->memory_bytes[TM_HOST_SPACE];
  if (one->kind != TM_LOCATION_STATE || one->memory == TM_HOST_SPACE || !tm_plan_keeps_mirror(build->plan, one->value)) return true;
  return tm_checked_round_up(build->graph->values[one->value].operand.byte_count, build->program->problem.alignment, &bytes) &&
         tm_checked_add(*sum, bytes, sum);
}

/* The plan's own bytes in each memory: slots, what stays, and workspaces. */
static tm_status add_up(tm_plan_build *build, tm_error *error) {
  tm_plan_program *program = build->program;
  program->memory_bytes = tm_arena_calloc(&program->arena, program->problem.solver.memory_count, sizeof *program->memory_bytes);
  if (program->memory_bytes == NULL) return no_memory(error);
  bool fits = true;
  for (uint32_t i = 0; i < program->slot_count; i++) {
    tm_plan_slot *slot = &program->slots[i];
    if (slot->memory == TM_HOST_SPACE) {
      fits = fits && tm_checked_round_up(slot->bytes, program->problem.alignment, &slot->bytes);
      slot->offset = program->block_bytes;
      fits = fits && tm_checked_add(program->block_bytes, slot->bytes, &program->block_bytes);
    }
    fits = fits && tm_checked_add(program->memory_bytes[slot->memory], slot->bytes, &program->memory_bytes[slot->memory]);
  }
  for (uint32_t i = 0; i < program->location_count; i++) {
    const tm_plan_location *one = &program->locations[i];
    const bool is_own = one->kind == TM_LOCATION_STATE || one->kind == TM_LOCATION_KEPT || one->kind == TM_LOCATION_NEXT;
    if (is_own) fits = fits && tm_checked_add(program->memory_bytes[one->memory], one->bytes, &program->memory_bytes[one->memory]);
    fits = fits && add_mirror(build, one);
  }
  TM_TRY(add_workspaces(build, &fits, error));
  return fits ? TM_OK : tm_fail(error, TM_ERROR_LIMIT, "a plan that needs more memory than 64 bits can count");
}

tm_status tm_plan_build_slots(tm_plan_build *build, tm_error *error) {
  tm_plan_program *program = build->program;
  uint32_t *done_at = tm_arena_calloc(&build->arena, program->action_count, sizeof *done_at);
  uint32_t *order = tm_arena_calloc(&build->arena, program->location_count, sizeof *order);
  uint32_t *next = tm_arena_calloc(&build->arena, program->problem.place_count, sizeof *next);
  if (done_at == NULL || order == NULL || next == NULL) return no_memory(error);
  for (uint32_t i = 0; i < program->location_count; i++)        /* those that are set aside were made without */
    if (program->locations[i].bytes == 0) TM_TRY(measure(build, &program->locations[i], error));
  note_waits(program, done_at, next);
  find_uses(build, done_at);
  TM_TRY(order_locations(build, order, error));
  for (uint32_t i = 0; i < program->location_count; i++) {
    tm_plan_location *location = &program->locations[order[i]];
    if (location->kind == TM_LOCATION_SLOT && location->first != TM_PLAN_NONE) TM_TRY(give_slot(build, location, error));
  }
  return add_up(build, error);
}
