/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/in_place.h"

#include "base/error.h"
#include "graph/liveness.h"

/* Reads of each value that is no view, its views included; what is wanted after the run is read once more than anybody can. */
static void count_reads(const tm_graph *graph, uint32_t *reads) {
  for (uint32_t n = 0; n < graph->node_count; n++)
    for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) reads[graph->values[graph->nodes[n].inputs[i]].base]++;
  for (uint32_t i = 0; i < graph->output_count; i++) reads[graph->values[graph->outputs[i].value].base] += 2;
  for (uint64_t i = 0; i < graph->states.count; i++) {
    const uint32_t state = graph->states.values[i], carried = graph->values[state].carry;
    reads[graph->values[carried == TM_GRAPH_NONE ? state : carried].base] += 2;
  }
}

/* To a device that sees axes merged and broadcasts filled in, the two may look like one another. */
static bool is_like_result(const tm_graph *graph, uint32_t node, uint32_t input) {
  const tm_node *one = &graph->nodes[node];
  const tm_operand *read = &graph->values[one->inputs[input]].operand, *written = &graph->values[one->outputs[0]].operand;
  return input < 8 && (one->row->may_alias >> input & 1u) != 0 && read->format == written->format &&
         read->element_count == written->element_count;
}

/* Several such inputs are no certainty: which of them is overwritten depends on what the device allows. */
static uint32_t only_place(const tm_graph *graph, uint32_t node) {
  uint32_t found = TM_GRAPH_NONE;
  for (uint32_t i = 0; i < graph->nodes[node].input_count; i++) {
    if (!is_like_result(graph, node, i)) continue;
    if (found != TM_GRAPH_NONE) return TM_GRAPH_NONE;
    found = i;
  }
  return found != TM_GRAPH_NONE && tm_graph_may_alias(graph, node, 0, found) ? found : TM_GRAPH_NONE;
}

/* A state is written over only by what moves (see usable aliases of plans), and only by what it then is. */
static bool is_certain(const tm_graph *graph, uint32_t node, const uint32_t *reads) {
  const tm_node *one = &graph->nodes[node];
  if (one->row->output_count != 1) return false;
  const uint32_t place = only_place(graph, node);
  if (place == TM_GRAPH_NONE) return false;
  const uint32_t read = one->inputs[place];
  const tm_value *value = &graph->values[read];
  if (value->base != read || reads[read] != 1) return false;
  if (value->kind == TM_GRAPH_STATE) return one->row->op_class == TM_CLASS_MOVE && value->carry == one->outputs[0];
  return value->kind == TM_GRAPH_RESULT;
}

tm_status tm_graph_in_place_find(const tm_graph *graph, tm_arena *arena, uint8_t **out_is_certain, tm_error *error) {
  uint8_t *certain = tm_arena_calloc(arena, graph->node_count, sizeof *certain);
  uint32_t *reads = tm_arena_calloc(arena, graph->value_count, sizeof *reads);
  if (certain == NULL || reads == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to look for what is overwritten");
  count_reads(graph, reads);
  for (uint32_t n = 0; n < graph->node_count; n++) certain[n] = is_certain(graph, n, reads);
  *out_is_certain = certain;
  return TM_OK;
}
