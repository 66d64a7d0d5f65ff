/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/graph_budget.h"

#include "base/error.h"

#define MEMORY_NAME_BYTES 96u

/* Host memory cannot be done without; a device can. */
static tm_status fail_short(const tm_graph_problem *problem, const tm_memory_shortage *lack, tm_error *error) {
  char node[TM_GRAPH_LABEL_CAPACITY], where[MEMORY_NAME_BYTES];
  const tm_device_slot *device = problem->memories[lack->memory];
  tm_graph_name_node(problem->graph, lack->op, node, sizeof node);
  tm_graph_problem_name_memory(problem, lack->memory, where, sizeof where);
  return tm_fail(error, TM_ERROR_LIMIT,
                 "no plan keeps to the memory that is allowed: the nearest one needs %llu bytes of %s for %.200s, and %llu are "
                 "allowed in any one memory; allow more (max_memory_bytes)%s%s",
                 (unsigned long long)lack->needed_bytes, where, node, (unsigned long long)lack->allowed_bytes,
                 device == NULL ? "" : ", or do without ", device == NULL ? "" : device->name);
}

/* What is too large to be added up is mostly one value. */
static void name_largest(const tm_graph_problem *problem, tm_error *error) {
  char name[TM_GRAPH_LABEL_CAPACITY];
  uint32_t largest = 0;
  for (uint32_t i = 1; i < problem->solver.value_count; i++)
    if (problem->solver.values[i].bytes > problem->solver.values[largest].bytes) largest = i;
  if (problem->solver.value_count == 0) return;
  tm_graph_name_value(problem->graph, problem->graph_values[largest], name, sizeof name);
  tm_error_prefix(error, "a graph with %s", name);
}

tm_status tm_graph_budget_solve(const tm_graph_problem *problem, bool with_marginals, tm_memory *memory, tm_assignment_within *out,
                                tm_error *error) {
  const tm_assignment_options options = { .without_marginals = !with_marginals };
  const tm_status status = tm_assignment_solve_within(&problem->solver, &options, memory, out, error);
  if (status == TM_ERROR_ARGUMENT) name_largest(problem, error);
  return status == TM_ERROR_LIMIT && out->shortage.needed_bytes != 0 ? fail_short(problem, &out->shortage, error) : status;
}
