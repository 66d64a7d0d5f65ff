/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/requirement_change.h"

#include <string.h>

#include "base/error.h"
#include "plugin/device.h"

#define MOST_NODES      20000u
#define MOST_DENIED     16u
#define MOST_REPEATS    UINT64_C(1000000)
#define MOST_CHANGES    (4u + 8u + 4u + MOST_DENIED)

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to explain a graph"); }

/* ---- what would be ---- */

bool tm_requirement_change_moves(const tm_plan_explanation *explanation, const tm_requirement_change *change, uint32_t node) {
  const tm_explained_candidate *now = explanation->labels[explanation->nodes[node].chosen].candidate;
  const tm_changed_place *then = &change->places[node];
  return then->device != now->device || strcmp(then->lowering, now->lowering) != 0;
}

static tm_status note_places(tm_plan_explanation *explanation, const tm_graph_problem *problem, const tm_graph_choice *choice,
                             tm_requirement_change *change, tm_error *error) {
  change->total_ns = choice->total_ns;
  change->places = tm_arena_calloc(&explanation->arena, explanation->node_count, sizeof *change->places);
  if (change->places == NULL) return no_memory(error);
  for (uint32_t node = 0; node < explanation->node_count; node++) {
    const tm_plan_candidate *candidate = tm_graph_problem_candidate(problem, node, choice->labels[node]);
    const char *lowering = candidate->lowering == NULL ? "" : candidate->lowering->text;
    change->places[node].device = candidate->device;
    change->places[node].lowering = lowering[0] == '\0' ? "" : tm_arena_string(&explanation->arena, lowering, strlen(lowering));
    if (change->places[node].lowering == NULL) return no_memory(error);
    change->moved_count += tm_requirement_change_moves(explanation, change, node);
  }
  return TM_OK;
}

/* What is left of the limit to choose within is taken to be the same. */
static void take_budgets(const tm_plan_explanation *explanation, tm_graph_problem *problem) {
  const uint64_t *known = explanation->problem.solver.budgets;
  uint64_t *budgets = (uint64_t *)(uintptr_t)problem->solver.budgets;           /* the problem's own */
  if (known == NULL || budgets == NULL) return;
  for (uint32_t i = 0; i < problem->solver.memory_count; i++)
    for (uint32_t k = 0; k < explanation->problem.solver.memory_count; k++)
      if (problem->memories[i] == explanation->problem.memories[k]) budgets[i] = known[k];
}

static tm_status place_again(tm_plan_explanation *explanation, const tm_graph *graph, const tm_plan_policy *policy,
                             tm_requirement_change *change, tm_error *error) {
  tm_memory *memory = explanation->memory;
  tm_graph_choice choice;
  tm_graph_problem *problem = tm_memory_calloc(memory, 1, sizeof *problem);
  if (problem == NULL) return no_memory(error);
  tm_status status = tm_graph_problem_init(problem, memory, graph, explanation->problem.table, policy, NULL);
  if (status == TM_OK) take_budgets(explanation, problem);
  if (status == TM_OK) status = tm_graph_choice_make(problem, policy, memory, &choice, NULL);
  if (status == TM_OK) {
    status = note_places(explanation, problem, &choice, change, error);
    tm_graph_choice_deinit(&choice);
  } else if (status == TM_ERROR_NO_MEMORY) {
    (void)no_memory(error);
  } else {
    status = TM_OK;             /* that no plan meets it is what there is to tell */
  }
  tm_graph_problem_deinit(problem);
  tm_memory_free(memory, problem, sizeof *problem);
  return status;
}

/* ---- what could be asked for ---- */

static tm_status try_change(tm_plan_explanation *explanation, const tm_plan_policy *policy, const tm_requirement_change *what,
                            tm_error *error) {
  tm_requirement_change *change = &explanation->changes[explanation->change_count++];
  *change = *what;
  return place_again(explanation, explanation->problem.graph, policy, change, error);
}

static tm_status try_classes(tm_plan_explanation *explanation, tm_error *error) {
  for (uint32_t numerics = TM_NUMERICS_N0; numerics <= TM_NUMERICS_N3; numerics++) {
    tm_plan_policy policy = explanation->policy;
    if (policy.worst_numerics == numerics) continue;
    policy.worst_numerics = numerics;
    TM_TRY(try_change(explanation, &policy, &(tm_requirement_change){ .kind = TM_CHANGE_NUMERICS, .value = numerics }, error));
  }
  return TM_OK;
}

/* Only what is paid once depends on how often it runs. */
static bool pays_once(const tm_plan_explanation *explanation) {
  for (uint32_t i = 0; i < explanation->problem.solver.label_count; i++)
    if (explanation->labels[i].price.setup_ns != 0) return true;
  return explanation->problem.graph->constants.count != 0 && explanation->problem.solver.memory_count > 1;
}

static tm_status try_repeats(tm_plan_explanation *explanation, tm_error *error) {
  if (!pays_once(explanation)) return TM_OK;
  for (uint64_t repeats = 1; repeats <= MOST_REPEATS; repeats *= 10) {
    tm_plan_policy policy = explanation->policy;
    if (policy.repeats == repeats) continue;
    policy.repeats = repeats;
    TM_TRY(try_change(explanation, &policy, &(tm_requirement_change){ .kind = TM_CHANGE_REPEATS, .value = repeats }, error));
  }
  return TM_OK;
}

static tm_status try_limits(tm_plan_explanation *explanation, tm_error *error) {
  tm_plan_policy policy = explanation->policy;
  policy.most_bytes = 0;
  if (explanation->policy.most_bytes != 0)
    TM_TRY(try_change(explanation, &policy, &(tm_requirement_change){ .kind = TM_CHANGE_MEMORY }, error));
  policy = explanation->policy;
  policy.run_to_run = 0;
  if (explanation->policy.run_to_run != 0)
    TM_TRY(try_change(explanation, &policy, &(tm_requirement_change){ .kind = TM_CHANGE_BITS }, error));
  policy = explanation->policy;
  policy.one_resource = 0;
  if (explanation->policy.one_resource != 0)
    TM_TRY(try_change(explanation, &policy, &(tm_requirement_change){ .kind = TM_CHANGE_RESOURCE }, error));
  policy = explanation->policy;
  policy.latency_permille = policy.throughput_permille = policy.memory_permille = 0;
  if ((explanation->policy.throughput_permille | explanation->policy.memory_permille) == 0) return TM_OK;
  return try_change(explanation, &policy, &(tm_requirement_change){ .kind = TM_CHANGE_WEIGHTS }, error);
}

static tm_status try_denied(tm_plan_explanation *explanation, tm_error *error) {
  const tm_inventory *inventory = explanation->problem.table->market.inventory;
  uint32_t tried = 0;
  for (uint32_t i = 0; i < inventory->device_count && explanation->policy.denied != NULL && tried < MOST_DENIED; i++) {
    if (explanation->denied[i] == 0 || !tm_device_is_usable(inventory->devices[i])) continue;
    explanation->denied[i] = 0;         /* meanwhile */
    const tm_status status = try_change(explanation, &explanation->policy,
        &(tm_requirement_change){ .kind = TM_CHANGE_ALLOWED, .value = i, .device = inventory->devices[i] }, error);
    explanation->denied[i] = 1;
    TM_TRY(status);
    tried++;
  }
  return TM_OK;
}

tm_status tm_requirement_changes_make(tm_plan_explanation *explanation, tm_error *error) {
  if (explanation->node_count == 0 || explanation->node_count > MOST_NODES) return TM_OK;
  explanation->changes = tm_arena_calloc(&explanation->arena, MOST_CHANGES, sizeof *explanation->changes);
  if (explanation->changes == NULL) return no_memory(error);
  TM_TRY(try_classes(explanation, error));
  TM_TRY(try_repeats(explanation, error));
  TM_TRY(try_limits(explanation, error));
  return try_denied(explanation, error);
}

/* ---- which one moves a node ---- */

static bool leads_to(const tm_plan_explanation *explanation, const tm_requirement_change *change, uint32_t node,
                     const tm_device_slot *device, const char *lowering) {
  const tm_changed_place *then = &change->places[node];
  if (!tm_requirement_change_moves(explanation, change, node)) return false;
  return device == NULL || (then->device == device && (lowering == NULL || strcmp(then->lowering, lowering) == 0));
}

/* Of several numbers of runs that lead there only the nearest to the one that was declared is worth telling. */
static bool is_farther(const tm_plan_explanation *explanation, uint32_t index, uint32_t node, const tm_device_slot *device,
                       const char *lowering) {
  const tm_requirement_change *change = &explanation->changes[index];
  const uint64_t now = explanation->policy.repeats;
  for (uint32_t i = 0; change->kind == TM_CHANGE_REPEATS && i < explanation->change_count; i++) {
    const tm_requirement_change *other = &explanation->changes[i];
    const bool is_between =
        (now < other->value && other->value < change->value) || (change->value < other->value && other->value < now);
    if (other->kind != TM_CHANGE_REPEATS || other->places == NULL || !is_between) continue;
    if (leads_to(explanation, other, node, device, lowering)) return true;
  }
  return false;
}

bool tm_requirement_change_is_farther(const tm_plan_explanation *explanation, uint32_t index, uint32_t node) {
  const tm_changed_place *then = &explanation->changes[index].places[node];
  return is_farther(explanation, index, node, then->device, then->lowering);
}

uint32_t tm_requirement_change_find(const tm_plan_explanation *explanation, uint32_t node, const tm_device_slot *device,
                                    const char *lowering) {
  uint32_t best = TM_NO_CHANGE;
  for (uint32_t i = 0; i < explanation->change_count; i++) {
    const tm_requirement_change *change = &explanation->changes[i];
    if (change->places == NULL || !leads_to(explanation, change, node, device, lowering)) continue;
    if (is_farther(explanation, i, node, device, lowering)) continue;
    if (best == TM_NO_CHANGE || change->total_ns < explanation->changes[best].total_ns) best = i;
  }
  return best;
}
