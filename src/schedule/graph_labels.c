/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_labels.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/reason_list.h"
#include "graph/in_place.h"
#include "plugin/device.h"
#include "plugin/device_identity.h"
#include "plugin/left_out.h"
#include "schedule/graph_request.h"
#include "schedule/label_price.h"
#include "solver/assignment.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a graph"); }

/* ---- asking ---- */

/* Distinct requests by their bytes, while they are collected. */
typedef struct request_set {
  tm_graph_problem *problem;
  uint32_t         *slots;              /* placement + 1, open addressing */
  uint64_t         *hashes;             /* [placement] */
  uint64_t          slot_count;
  uint32_t          capacity;
} request_set;

static uint32_t *find_slot(const request_set *set, const tm_request *request, uint64_t hash) {
  uint64_t at = hash & (set->slot_count - 1);
  for (; set->slots[at] != 0; at = (at + 1) & (set->slot_count - 1)) {
    const uint32_t index = set->slots[at] - 1;
    if (set->hashes[index] != hash) continue;
    const tm_request *known = &set->problem->placements[index]->request;
    if (memcmp(known, request, tm_request_key_bytes(request)) == 0) break;
  }
  return &set->slots[at];
}

static tm_status ask_node(request_set *set, uint32_t node, const tm_request *request, tm_error *error) {
  tm_graph_problem *problem = set->problem;
  const uint64_t hash = XXH3_64bits(request, tm_request_key_bytes(request));
  uint32_t *slot = find_slot(set, request, hash);
  if (*slot == 0) {
    const tm_status status = tm_placement_acquire(problem->table, request, NULL, &problem->placements[problem->placement_count], error);
    if (status != TM_OK) {
      char name[160];
      tm_graph_name_node(problem->graph, node, name, sizeof name);
      tm_error_prefix(error, "%s", name);
      return status;
    }
    set->hashes[problem->placement_count++] = hash;
    *slot = problem->placement_count;
  }
  problem->node_placements[node] = *slot - 1;
  return TM_OK;
}

tm_status tm_graph_labels_ask(tm_graph_problem *problem, const tm_plan_policy *policy, tm_error *error) {
  const uint32_t node_count = problem->graph->node_count;
  request_set set = { .problem = problem, .slot_count = 16, .capacity = node_count };
  while (set.slot_count < (uint64_t)node_count * 2) set.slot_count *= 2;
  problem->placements = tm_arena_calloc(&problem->arena, node_count, sizeof *problem->placements);
  problem->node_placements = tm_arena_calloc(&problem->arena, node_count, sizeof *problem->node_placements);
  set.slots = tm_arena_calloc(&problem->arena, set.slot_count, sizeof *set.slots);
  set.hashes = tm_arena_calloc(&problem->arena, node_count, sizeof *set.hashes);
  if (problem->placements == NULL || problem->node_placements == NULL || set.slots == NULL || set.hashes == NULL)
    return no_memory(error);
  uint8_t *is_in_place;
  TM_TRY(tm_graph_in_place_find(problem->graph, &problem->arena, &is_in_place, error));
  tm_request request;
  for (uint32_t i = 0; i < node_count; i++) {
    tm_graph_request_make(problem->graph, i, is_in_place[i] != 0, policy, &request);
    TM_TRY(ask_node(&set, i, &request, error));
  }
  return TM_OK;
}

/* ---- where ---- */

static int compare_identity(const tm_identity *a, const tm_identity *b) { return memcmp(a->bytes, b->bytes, sizeof a->bytes); }

static bool is_nothing(const tm_identity *identity) {
  static const tm_identity nothing;
  return compare_identity(identity, &nothing) == 0;
}

/* The memory of each device of its own is one: what another device of the same memory made lies in buffers that it cannot name. */
static void number_place(tm_graph_problem *problem, uint32_t index) {
  tm_graph_place *place = &problem->places[index];
  const tm_device_slot *device = place->device;
  place->memory = TM_HOST_SPACE;
  if (!device->is_host_memory) {
    place->memory = problem->solver.memory_count;
    problem->links_in[problem->solver.memory_count] = tm_candidate_link_in(&problem->table->market, device);
    problem->links_out[problem->solver.memory_count] = tm_candidate_link_out(&problem->table->market, device);
    problem->memories[problem->solver.memory_count++] = place->device;
  } else {
    problem->alignment = tm_graph_request_host_alignment(problem->alignment, device);
  }
  for (uint32_t i = 0; i < index; i++) {
    const tm_graph_place *other = &problem->places[i];
    if (is_nothing(&device->info.resource) || compare_identity(&device->info.resource, &other->device->info.resource) != 0)
      continue;
    place->resource = other->resource;
    return;
  }
  place->resource = problem->solver.resource_count++;
}

/* A replay gives a device its copies in the queue in which it gives it its work.  What works within its calls has none. */
static tm_status queue_copies(tm_graph_problem *problem, tm_error *error) {
  uint32_t *queues = tm_arena_alloc(&problem->arena, problem->solver.memory_count * sizeof *queues);
  if (queues == NULL) return no_memory(error);
  queues[TM_HOST_SPACE] = TM_SOLVER_NONE;
  for (uint32_t i = 0; i < problem->place_count; i++) {
    const tm_graph_place *place = &problem->places[i];
    const bool is_enqueued = (place->device->info.flags & TM_DEVICE_SYNCHRONOUS) == 0;
    if (place->memory != TM_HOST_SPACE) queues[place->memory] = is_enqueued ? place->resource : TM_SOLVER_NONE;
  }
  problem->solver.copy_queues = queues;
  return TM_OK;
}

tm_status tm_graph_labels_place(tm_graph_problem *problem, tm_error *error) {
  const tm_inventory *inventory = problem->table->market.inventory;
  const uint32_t count = inventory->device_count;
  problem->places = tm_arena_calloc(&problem->arena, count, sizeof *problem->places);
  problem->memories = tm_arena_calloc(&problem->arena, (uint64_t)count + 1, sizeof *problem->memories);
  problem->place_of_device = tm_arena_calloc(&problem->arena, count, sizeof *problem->place_of_device);
  problem->links_in = tm_arena_calloc(&problem->arena, (uint64_t)count + 1, sizeof *problem->links_in);
  problem->links_out = tm_arena_calloc(&problem->arena, (uint64_t)count + 1, sizeof *problem->links_out);
  if (problem->links_in == NULL || problem->links_out == NULL) return no_memory(error);
  problem->links_in[TM_HOST_SPACE] = problem->links_out[TM_HOST_SPACE] = TM_NO_LINK;
  if (problem->places == NULL || problem->memories == NULL || problem->place_of_device == NULL) return no_memory(error);
  problem->alignment = TM_BEST_ALIGNMENT;
  problem->place_count = count;
  problem->solver.memory_count = 1;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t place = i;
    const tm_device_slot *device = inventory->devices[i];
    for (; place > 0 && tm_device_identity_compare(device, problem->places[place - 1].device) < 0; place--)
      problem->places[place] = problem->places[place - 1];
    problem->places[place].device = inventory->devices[i];
  }
  for (uint32_t i = 0; i < count; i++) {
    number_place(problem, i);
    problem->place_of_device[problem->places[i].device->index] = i;
  }
  problem->solver.link_count = problem->solver.memory_count - 1;
  return queue_copies(problem, error);
}

/* ---- labels ---- */

typedef struct label_maker {
  tm_graph_problem     *problem;
  const tm_plan_policy *policy;
  tm_solver_label      *solver_labels;
  tm_graph_label       *labels;
  uint32_t              count;
} label_maker;

static bool may_be_used(const label_maker *maker, const tm_plan_candidate *candidate) {
  const uint32_t device = candidate->device->index;
  if (maker->policy->denied != NULL && maker->policy->denied[device] != 0) return false;
  return tm_candidate_can_run(candidate) && tm_device_is_usable(candidate->device) && !atomic_load(&candidate->is_starved);
}

static tm_label_price price_of(const tm_graph_problem *problem, const tm_plan_policy *policy, const tm_plan_candidate *candidate,
                               bool is_direct) {
  const uint64_t shared_ns = tm_setup_shares_ns(&problem->shares, &problem->table->market, candidate, policy->repeats);
  return tm_label_price_of(candidate, is_direct, policy->repeats, shared_ns);
}

static void add_label(label_maker *maker, uint32_t node, uint32_t index, const tm_plan_candidate *candidate) {
  tm_graph_problem *problem = maker->problem;
  const uint32_t place = problem->place_of_device[candidate->device->index];
  const bool is_direct = candidate->lowering == NULL &&
                         tm_graph_request_is_bindable(problem->graph, node, candidate->device, problem->alignment);
  const tm_label_price price = price_of(problem, maker->policy, candidate, is_direct);
  const uint32_t memory = is_direct ? problem->places[place].memory : TM_HOST_SPACE;
  maker->solver_labels[maker->count] = (tm_solver_label){
    .cost_ns = tm_label_price_sum(&price),
    .input_memory = memory,
    .output_memory = memory,
    .resource = problem->places[place].resource,
    .rank = place * 2 + (candidate->lowering != NULL),
    .workspace_bytes = is_direct ? candidate->answer.workspace_bytes : 0,
  };
  maker->labels[maker->count++] = (tm_graph_label){ index, is_direct };
}

static tm_status nobody(const label_maker *maker, uint32_t node, tm_error *error) {
  char name[160], left_out[TM_LEFT_OUT_BYTES];
  tm_reason_list list = { .used = 0 };
  const tm_placement *placement = maker->problem->placements[maker->problem->node_placements[node]];
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *candidate = &placement->candidates[i];
    const char *reason = tm_graph_problem_refusal(maker->problem, candidate);
    tm_reason_list_add(&list, candidate->device->name, reason[0] != '\0' ? reason : "refuses it");
  }
  tm_reason_list_end(&list);
  tm_graph_name_node(maker->problem->graph, node, name, sizeof name);
  tm_left_out_describe(maker->problem->table->market.inventory, left_out);
  return tm_fail(error, TM_ERROR_NO_DEVICE, "%s: no device can run it as asked%s%s%s", name, list.text[0] == '\0' ? "" : ": ", list.text, left_out);
}

static tm_status add_node(label_maker *maker, tm_solver_op *op, uint32_t node, tm_error *error) {
  tm_graph_problem *problem = maker->problem;
  tm_placement *placement = problem->placements[problem->node_placements[node]];
  op->first_label = maker->count;
  tm_mutex_lock(&placement->lock);      /* others may be learning */
  for (uint32_t i = 0; i < placement->candidate_count; i++)
    if (may_be_used(maker, &placement->candidates[i])) add_label(maker, node, i, &placement->candidates[i]);
  tm_mutex_unlock(&placement->lock);
  op->label_count = maker->count - op->first_label;
  return op->label_count != 0 ? TM_OK : nobody(maker, node, error);
}

/* Prices are those of now. */
static void reprice(tm_graph_problem *problem) {
  for (uint32_t i = 0; i < problem->placement_count; i++) {
    tm_placement *placement = problem->placements[i];
    tm_mutex_lock(&placement->lock);
    tm_candidates_reprice(&problem->table->market, placement->candidates, placement->candidate_count);
    tm_mutex_unlock(&placement->lock);
  }
}

/* All nodes that could run on a device that is not open yet share its opening, and so on. */
static tm_status share_setups(const label_maker *maker, tm_error *error) {
  tm_graph_problem *problem = maker->problem;
  uint64_t candidate_count = 0;
  bool any = false;
  uint32_t *node_counts = tm_arena_calloc(&problem->arena, problem->placement_count, sizeof *node_counts);
  if (node_counts == NULL) return no_memory(error);
  for (uint32_t i = 0; i < problem->graph->node_count; i++) node_counts[problem->node_placements[i]]++;
  for (uint32_t i = 0; i < problem->placement_count; i++) {
    const tm_placement *placement = problem->placements[i];
    candidate_count += placement->candidate_count;
    for (uint32_t k = 0; k < placement->candidate_count; k++) any |= tm_candidate_has_setup(&placement->candidates[k]);
  }
  if (!any) return TM_OK;
  TM_TRY(tm_setup_shares_init(&problem->shares, &problem->arena, candidate_count, error));
  for (uint32_t i = 0; i < problem->placement_count; i++) {
    tm_placement *placement = problem->placements[i];
    tm_mutex_lock(&placement->lock);
    for (uint32_t k = 0; k < placement->candidate_count; k++)
      if (may_be_used(maker, &placement->candidates[k]))
        tm_setup_shares_add(&problem->shares, &problem->table->market, &placement->candidates[k], i, node_counts[i]);
    tm_mutex_unlock(&placement->lock);
  }
  return TM_OK;
}

static void price_again(tm_graph_problem *problem, const tm_plan_policy *policy) {
  tm_solver_label *solver_labels = (tm_solver_label *)(uintptr_t)problem->solver.labels;        /* made in the problem's arena */
  for (uint32_t node = 0; node < problem->graph->node_count; node++) {
    const tm_solver_op *op = &problem->solver.ops[node];
    tm_placement *placement = problem->placements[problem->node_placements[node]];
    tm_mutex_lock(&placement->lock);
    for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
      const tm_label_price price = price_of(problem, policy, tm_graph_problem_candidate(problem, node, i), problem->labels[i].is_direct != 0);
      solver_labels[i].cost_ns = tm_label_price_sum(&price);
    }
    tm_mutex_unlock(&placement->lock);
  }
}

/* Each round some leave for good, so they come to an end; what a later one would still mend is little. */
#define MOST_ROUNDS 8u

void tm_graph_labels_settle(tm_graph_problem *problem, tm_memory *memory, const tm_plan_policy *policy) {
  const tm_assignment_options options = { .without_marginals = true };
  for (uint32_t round = 0; problem->shares.slot_count != 0 && round < MOST_ROUNDS; round++) {
    tm_assignment found;
    if (tm_assignment_solve(&problem->solver, &options, memory, &found, NULL) != TM_OK) return;
    for (uint32_t node = 0; node < problem->graph->node_count; node++)
      tm_setup_shares_take(&problem->shares, &problem->table->market, tm_graph_problem_candidate(problem, node, found.labels[node]));
    if (!tm_setup_shares_narrow(&problem->shares)) {
      problem->settled = found;
      problem->is_settled = true;
      return;
    }
    tm_assignment_deinit(&found);
    price_again(problem, policy);
  }
}

tm_status tm_graph_labels_make(tm_graph_problem *problem, tm_solver_op *ops, const tm_plan_policy *policy, tm_error *error) {
  const uint32_t node_count = problem->graph->node_count;
  label_maker maker = { .problem = problem, .policy = policy };
  uint64_t most = 0;
  for (uint32_t i = 0; i < node_count; i++) most += problem->placements[problem->node_placements[i]]->candidate_count;
  if (most >= TM_SOLVER_NONE) return tm_fail(error, TM_ERROR_LIMIT, "a graph with more candidates than can be numbered");
  maker.solver_labels = tm_arena_calloc(&problem->arena, most, sizeof *maker.solver_labels);
  maker.labels = tm_arena_calloc(&problem->arena, most, sizeof *maker.labels);
  if (maker.solver_labels == NULL || maker.labels == NULL) return no_memory(error);
  reprice(problem);
  TM_TRY(share_setups(&maker, error));
  for (uint32_t i = 0; i < node_count; i++) TM_TRY(add_node(&maker, &ops[i], i, error));
  problem->labels = maker.labels;
  problem->solver.labels = maker.solver_labels;
  problem->solver.label_count = maker.count;
  return TM_OK;
}
