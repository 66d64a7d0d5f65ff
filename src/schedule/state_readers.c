/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/state_readers.h"

#include "base/error.h"
#include "graph/liveness.h"

static tm_status no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a graph"); }

/* [value]: the node that writes in its place, of those that lie in a state's memory; else TM_GRAPH_NONE. */
static void find_writers(const tm_graph *graph, const tm_liveness *liveness, uint32_t *writers) {
  for (uint32_t v = 0; v < graph->value_count; v++) writers[v] = TM_GRAPH_NONE;
  for (uint32_t v = 0; v < graph->value_count; v++) {
    const tm_value_life *life = &liveness->values[v];
    if (life->in_place_of == TM_GRAPH_NONE || graph->values[life->root].kind != TM_GRAPH_STATE) continue;
    writers[graph->values[life->in_place_of].base] = graph->values[v].node;
  }
}

/* With `befores` NULL only counts, into first_before[node + 1]; else begins of lists move to their ends. */
static void visit(const tm_graph *graph, const uint32_t *writers, uint32_t *first_before, uint32_t *befores) {
  for (uint32_t n = 0; n < graph->node_count; n++) {
    for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
      const uint32_t writer = writers[graph->values[graph->nodes[n].inputs[i]].base];
      if (writer == TM_GRAPH_NONE || writer == n) continue;
      if (befores == NULL) first_before[writer + 1]++;
      else befores[first_before[writer]++] = n;
    }
  }
}

static tm_status list(const tm_graph *graph, const tm_liveness *liveness, tm_arena *arena, tm_issue_rules *rules, tm_error *error) {
  uint32_t *writers = tm_arena_alloc(arena, graph->value_count * sizeof *writers);
  uint32_t *first_before = tm_arena_calloc(arena, (uint64_t)graph->node_count + 2, sizeof *first_before);
  if (writers == NULL || first_before == NULL) return no_memory(error);
  find_writers(graph, liveness, writers);
  visit(graph, writers, first_before + 1, NULL);
  for (uint32_t n = 0; n < graph->node_count; n++) first_before[n + 2] += first_before[n + 1];
  uint32_t *befores = tm_arena_calloc(arena, first_before[graph->node_count + 1], sizeof *befores);
  if (befores == NULL) return no_memory(error);
  visit(graph, writers, first_before + 1, befores);
  rules->first_before = first_before;
  rules->befores = befores;
  return TM_OK;
}

tm_status tm_state_readers_list(const tm_graph *graph, tm_arena *arena, tm_issue_rules *rules, tm_error *error) {
  tm_liveness liveness;
  if (graph->states.count == 0) return TM_OK;
  uint64_t *allowed = tm_arena_calloc(arena, graph->node_count, sizeof *allowed);
  if (allowed == NULL) return no_memory(error);
  for (uint32_t n = 0; n < graph->node_count; n++) allowed[n] = graph->nodes[n].row->op_class == TM_CLASS_MOVE ? UINT64_MAX : 0;
  TM_TRY(tm_liveness_init(&liveness, graph, NULL, allowed, error));
  const tm_status status = list(graph, &liveness, arena, rules, error);
  tm_liveness_deinit(&liveness);
  return status;
}
