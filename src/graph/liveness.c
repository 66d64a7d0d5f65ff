/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/liveness.h"

#include <string.h>

#include "base/error.h"
#include "tensor/shape.h"

/* What a pass over the graph needs. */
typedef struct survey {
  const tm_graph *graph;
  tm_value_life  *lives;
  const uint32_t *order;
  const uint64_t *allowed;
  uint32_t       *chains;       /* by value: the state whose next content it leads to in place, or TM_GRAPH_NONE */
  uint64_t        steps_left;   /* for following chains; a graph made to exceed it gets copies instead */
} survey;

static uint32_t node_at(const survey *all, uint32_t place) { return all->order == NULL ? place : all->order[place]; }

/* ---- uses ---- */

static void note_use(tm_value_life *life, uint32_t place) {
  if (life->last_use == place) return;
  if (life->first_use == TM_GRAPH_NONE) life->first_use = place;
  life->last_use = place;
  life->use_count++;
}

static void note_uses(const survey *all) {
  const tm_graph *graph = all->graph;
  for (uint32_t place = 0; place < graph->node_count; place++) {
    const tm_node *node = &graph->nodes[node_at(all, place)];
    for (uint32_t i = 0; i < node->input_count; i++) {
      note_use(&all->lives[node->inputs[i]], place);
      note_use(&all->lives[graph->values[node->inputs[i]].base], place);
    }
  }
}

/* Views are made with their base. */
static void note_makers(const survey *all) {
  const tm_graph *graph = all->graph;
  for (uint32_t place = 0; place < graph->node_count; place++) {
    const tm_node *node = &graph->nodes[node_at(all, place)];
    for (uint32_t o = 0; o < node->row->output_count; o++) all->lives[node->outputs[o]].made = place;
  }
  for (uint32_t v = 0; v < graph->value_count; v++) all->lives[v].made = all->lives[graph->values[v].base].made;
}

static void note_wanted(const survey *all, uint32_t value) {
  all->lives[value].outlives = 1;
  all->lives[all->graph->values[value].base].outlives = 1;
}

/* A state that is not carried is its own next content. */
static void note_survivors(const survey *all) {
  const tm_graph *graph = all->graph;
  for (uint32_t i = 0; i < graph->output_count; i++) note_wanted(all, graph->outputs[i].value);
  for (uint64_t i = 0; i < graph->states.count; i++) {
    const uint32_t state = graph->states.values[i];
    note_wanted(all, graph->values[state].carry == TM_GRAPH_NONE ? state : graph->values[state].carry);
  }
}

static void begin_lives(const survey *all) {
  for (uint32_t v = 0; v < all->graph->value_count; v++) {
    const tm_value *value = &all->graph->values[v];
    all->chains[v] = TM_GRAPH_NONE;
    all->lives[v] = (tm_value_life){
      .root = value->base,
      .in_place_of = TM_GRAPH_NONE,
      .offset_bytes = value->offset_bytes,
      .made = TM_GRAPH_NONE,
      .first_use = TM_GRAPH_NONE,
      .last_use = TM_GRAPH_NONE,
      .memory_last = TM_GRAPH_NONE,
    };
  }
}

/* ---- in place ---- */

/* The mask has room for the first eight inputs of the first eight outputs. */
static uint64_t alias_bit(uint32_t output, uint32_t input) {
  return output < 8 && input < 8 ? UINT64_C(1) << (output * 8 + input) : 0;
}

bool tm_graph_may_alias(const tm_graph *graph, uint32_t node, uint32_t output, uint32_t input) {
  const tm_node *one = &graph->nodes[node];
  if ((one->row->may_alias & alias_bit(output, input)) == 0) return false;
  const tm_operand *written = &graph->values[one->outputs[output]].operand;
  const tm_operand *read = &graph->values[one->inputs[input]].operand;
  return written->byte_count != 0 && written->format == read->format && tm_same_dims(written, read) &&
         (written->flags & read->flags & TM_OPERAND_CONTIGUOUS) != 0;
}

static bool may_alias(const survey *all, uint32_t node, uint32_t output, uint32_t input) {
  return (all->allowed == NULL || (all->allowed[node] & alias_bit(output, input)) != 0) &&
         tm_graph_may_alias(all->graph, node, output, input);
}

/* The value in whose place `value` could be written on the way from `state`: the state itself before any result. */
static uint32_t step_back(const survey *all, uint32_t value, uint32_t state) {
  const tm_value *result = &all->graph->values[value];
  if (result->kind != TM_GRAPH_RESULT) return TM_GRAPH_NONE;
  const tm_node *node = &all->graph->nodes[result->node];
  uint32_t found = TM_GRAPH_NONE;
  for (uint32_t i = 0; i < node->input_count; i++) {
    const uint32_t input = node->inputs[i];
    if (!may_alias(all, result->node, result->index, i)) continue;
    if (input == state) return state;
    if (found == TM_GRAPH_NONE && all->graph->values[input].kind == TM_GRAPH_RESULT) found = input;
  }
  return found;
}

/* Marks the values from a state to its next content, if operations lead there in place.  A value leads to one state only.  What
   one operation leads to is marked in any case: devices were told so (in_place.h). */
static void mark_chain(survey *all, uint32_t state) {
  const uint32_t last = all->graph->values[state].carry;
  uint32_t value = last;
  while (value != TM_GRAPH_NONE && value != state && all->chains[value] == TM_GRAPH_NONE &&
         (value == last || all->steps_left > 0)) {
    all->chains[value] = state;
    value = step_back(all, value, state);
    if (all->steps_left > 0) all->steps_left--;
  }
  if (value == state) return;
  const uint32_t end = value;   /* it leads elsewhere: the marks are taken back, up to where it ended */
  for (value = last; value != end && value != TM_GRAPH_NONE; value = step_back(all, value, state))
    all->chains[value] = TM_GRAPH_NONE;
}

/* Nothing else that the node touches may lie in the memory that it overwrites, but the same operand again. */
static bool is_alone(const survey *all, uint32_t n, uint32_t output, uint32_t input) {
  const tm_node *node = &all->graph->nodes[n];
  const uint32_t root = all->lives[node->inputs[input]].root;
  for (uint32_t i = 0; i < node->input_count; i++) {
    if (i == input || all->lives[node->inputs[i]].root != root) continue;
    if (node->inputs[i] != node->inputs[input] || !may_alias(all, n, output, i)) return false;
  }
  for (uint32_t o = 0; o < output; o++)
    if (all->lives[node->outputs[o]].root == root) return false;
  return true;
}

static bool can_overwrite(const survey *all, uint32_t place, uint32_t output, uint32_t input) {
  const tm_graph *graph = all->graph;
  const uint32_t n = node_at(all, place);
  const uint32_t base = graph->values[graph->nodes[n].inputs[input]].base;
  const uint32_t root = all->lives[base].root;
  if (!may_alias(all, n, output, input)) return false;
  if (graph->values[base].kind != TM_GRAPH_RESULT && graph->values[base].kind != TM_GRAPH_STATE) return false;
  if (all->lives[base].outlives != 0 || all->lives[base].last_use != place) return false;
  /* All that leads to a state has its dims, so what lies in its memory lies at its beginning. */
  if (graph->values[root].kind == TM_GRAPH_STATE && all->chains[graph->nodes[n].outputs[output]] != root) return false;
  return is_alone(all, n, output, input);
}

/* The input in whose place the output goes: before all others the one that keeps a state where it is. */
static uint32_t choose_place(const survey *all, uint32_t place, uint32_t output) {
  const tm_node *node = &all->graph->nodes[node_at(all, place)];
  const uint32_t state = all->chains[node->outputs[output]];
  uint32_t found = TM_GRAPH_NONE;
  for (uint32_t i = 0; i < node->input_count; i++) {
    if (!can_overwrite(all, place, output, i)) continue;
    if (state != TM_GRAPH_NONE && all->lives[node->inputs[i]].root == state) return i;
    if (found == TM_GRAPH_NONE) found = i;
  }
  return found;
}

static void place_outputs(const survey *all, uint32_t place) {
  const tm_node *node = &all->graph->nodes[node_at(all, place)];
  for (uint32_t o = 0; o < node->row->output_count; o++) {
    const uint32_t input_place = choose_place(all, place, o);
    if (input_place == TM_GRAPH_NONE) continue;
    const tm_value_life *input = &all->lives[node->inputs[input_place]];
    tm_value_life *written = &all->lives[node->outputs[o]];
    written->in_place_of = node->inputs[input_place];
    written->root = input->root;
    written->offset_bytes = input->offset_bytes;
  }
}

/* Views of results were given their base as root before that had one itself. */
static void place_view(const survey *all, uint32_t v) {
  const tm_value *value = &all->graph->values[v];
  if (value->kind != TM_GRAPH_VIEW) return;
  all->lives[v].root = all->lives[value->base].root;
  all->lives[v].offset_bytes = all->lives[value->base].offset_bytes + value->offset_bytes;
}

static void place_all(const survey *all) {
  const tm_graph *graph = all->graph;
  for (uint32_t place = 0; place < graph->node_count; place++) {
    const tm_node *node = &graph->nodes[node_at(all, place)];
    for (uint32_t i = 0; i < node->input_count; i++) place_view(all, node->inputs[i]);
    place_outputs(all, place);
  }
  for (uint32_t v = 0; v < graph->value_count; v++) place_view(all, v);
}

/* ---- how long memory is needed ---- */

static uint32_t later(uint32_t a, uint32_t b) { return a == TM_GRAPH_NONE || (b != TM_GRAPH_NONE && b > a) ? b : a; }

static void note_memory(const survey *all) {
  const tm_graph *graph = all->graph;
  for (uint32_t v = 0; v < graph->value_count; v++) {
    const tm_value_life *life = &all->lives[v];
    tm_value_life *root = &all->lives[life->root];
    root->memory_last = later(root->memory_last, later(life->made, life->last_use));
    if (life->outlives != 0 || graph->values[v].kind == TM_GRAPH_STATE) root->memory_last = graph->node_count;
  }
}

tm_status tm_liveness_init(tm_liveness *liveness, const tm_graph *graph, const uint32_t *order, const uint64_t *allowed,
                           tm_error *error) {
  survey all = { .graph = graph, .order = order, .allowed = allowed, .steps_left = UINT64_C(4) * graph->value_count };
  *liveness = (tm_liveness){ .memory = graph->memory, .value_count = graph->value_count, .node_count = graph->node_count };
  all.lives = tm_memory_calloc(graph->memory, graph->value_count, sizeof *all.lives);
  all.chains = tm_memory_calloc(graph->memory, graph->value_count, sizeof *all.chains);
  liveness->values = all.lives;
  if (all.lives == NULL || all.chains == NULL) {
    tm_memory_free(graph->memory, all.chains, graph->value_count * sizeof *all.chains);
    tm_liveness_deinit(liveness);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the lives of %u values", graph->value_count);
  }
  begin_lives(&all);
  note_makers(&all);
  note_uses(&all);
  note_survivors(&all);
  for (uint64_t i = 0; i < graph->states.count; i++) mark_chain(&all, graph->states.values[i]);
  place_all(&all);
  note_memory(&all);
  tm_memory_free(graph->memory, all.chains, graph->value_count * sizeof *all.chains);
  return TM_OK;
}

void tm_liveness_deinit(tm_liveness *liveness) {
  tm_memory_free(liveness->memory, liveness->values, liveness->value_count * sizeof *liveness->values);
  *liveness = (tm_liveness){ 0 };
}
