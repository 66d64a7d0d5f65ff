/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/growth.h"
#include "base/text.h"
#include "graph/addition.h"
#include "ops/op_check.h"
#include "tensor/shape.h"

#define DIMS_CAPACITY 200

void tm_graph_init(tm_graph *graph, tm_memory *memory) {
  memset(graph, 0, sizeof *graph);
  graph->memory = memory;
  tm_arena_init(&graph->arena, memory);
  tm_name_table_init(&graph->value_names, memory);
  tm_name_table_init(&graph->node_names, memory);
  tm_name_table_init(&graph->output_names, memory);
}

static void free_numbers(tm_graph *graph, tm_value_list *numbers) {
  tm_memory_free(graph->memory, numbers->values, numbers->capacity * sizeof *numbers->values);
}

void tm_graph_deinit(tm_graph *graph) {
  free_numbers(graph, &graph->inputs);
  free_numbers(graph, &graph->constants);
  free_numbers(graph, &graph->states);
  tm_memory_free(graph->memory, graph->values, graph->value_capacity * sizeof *graph->values);
  tm_memory_free(graph->memory, graph->nodes, graph->node_capacity * sizeof *graph->nodes);
  tm_memory_free(graph->memory, graph->outputs, graph->output_capacity * sizeof *graph->outputs);
  tm_name_table_deinit(&graph->value_names);
  tm_name_table_deinit(&graph->node_names);
  tm_name_table_deinit(&graph->output_names);
  tm_arena_deinit(&graph->arena);
}

void tm_graph_seal(tm_graph *graph) { atomic_store(&graph->is_sealed, true); }

/* ---- what all additions share ---- */

tm_status tm_graph_no_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a graph"); }

tm_status tm_graph_check_open(const tm_graph *graph, tm_error *error) {
  if (!atomic_load(&graph->is_sealed)) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "the graph is sealed since a plan was made of it; build another to add more");
}

tm_status tm_graph_check_name(const char *what, const char *name, tm_error *error) {
  if (name == NULL || name[0] == '\0') return tm_fail(error, TM_ERROR_ARGUMENT, "%s without a name; give it one of its own", what);
  const size_t length = strlen(name);
  if (length <= TM_GRAPH_LONGEST_NAME && tm_text_is_clean(name, length)) return TM_OK;
  char shown[80];
  tm_text_escape(name, length, shown, sizeof shown);
  if (length > TM_GRAPH_LONGEST_NAME)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s '%s': the name has %llu bytes, expected at most %u", what, shown,
                   (unsigned long long)length, TM_GRAPH_LONGEST_NAME);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s '%s': the name is no UTF-8 without control characters", what, shown);
}

tm_status tm_graph_keep_name(tm_graph *graph, const char *name, tm_string *out_name, tm_error *error) {
  const size_t length = name == NULL ? 0 : strlen(name);
  if (length == 0) {
    *out_name = (tm_string){ .data = "" };
    return TM_OK;
  }
  const char *kept = tm_arena_string(&graph->arena, name, length);
  if (kept == NULL) return tm_graph_no_memory(error);
  *out_name = (tm_string){ .data = kept, .length = length };
  return TM_OK;
}

tm_status tm_graph_reserve_values(tm_graph *graph, uint32_t count, tm_error *error) {
  if (count >= TM_GRAPH_NONE - graph->value_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "a graph has fewer than %u values", TM_GRAPH_NONE);
  for (uint64_t wanted = (uint64_t)graph->value_count + count; graph->value_capacity < wanted;) {
    void *grown = tm_make_room(graph->memory, graph->values, graph->value_capacity, &graph->value_capacity, sizeof *graph->values);
    if (grown == NULL) return tm_graph_no_memory(error);
    graph->values = grown;
  }
  return TM_OK;
}

tm_status tm_graph_check_value(const tm_graph *graph, uint32_t value, const char *what, tm_error *error) {
  if (value < graph->value_count) return TM_OK;
  if (value == TM_GRAPH_NONE) return tm_fail(error, TM_ERROR_ARGUMENT, "%s is no value", what);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s is value %u, which is not made yet: there are %u; a value is used after it is made",
                 what, value, graph->value_count);
}

/* ---- what is there before a run ---- */

static const char *kind_name(tm_value_kind kind) {
  switch (kind) {
    case TM_GRAPH_INPUT: return "input";
    case TM_GRAPH_CONSTANT: return "constant";
    case TM_GRAPH_STATE: return "state";
    case TM_GRAPH_RESULT: return "result";
    case TM_GRAPH_VIEW: return "view";
  }
  return "value";
}

static tm_value_list *numbers_of(tm_graph *graph, tm_value_kind kind) {
  return kind == TM_GRAPH_INPUT ? &graph->inputs : kind == TM_GRAPH_CONSTANT ? &graph->constants : &graph->states;
}

/* Strides of axes with one step do not matter: of a dense layout they are what files, which leave them out, bring back. */
static void settle_strides(tm_operand *operand) {
  tm_operand dense;
  if ((operand->flags & TM_OPERAND_CONTIGUOUS) == 0) return;
  if (tm_operand_contiguous(operand->format, operand->rank, operand->dims, &dense, NULL) != TM_OK) return;
  memcpy(operand->strides_bytes, dense.strides_bytes, sizeof operand->strides_bytes);
}

/* The place behind the last value, filled but not counted yet. */
static tm_value *next_value(tm_graph *graph, const tm_operand *operand, tm_value_kind kind) {
  const uint32_t number = graph->value_count;
  graph->values[number] = (tm_value){
    .name.data = "",
    .operand = *operand,
    .kind = kind,
    .node = TM_GRAPH_NONE,
    .base = number,
    .carry = TM_GRAPH_NONE,
  };
  settle_strides(&graph->values[number].operand);
  return &graph->values[number];
}

static tm_status name_twice(const tm_graph *graph, const char *what, const char *name, uint32_t existing, tm_error *error) {
  char other[TM_GRAPH_LABEL_CAPACITY];
  tm_graph_name_value(graph, existing, other, sizeof other);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s '%s': the name is that of value %u, %s; names are unique", what, name, existing,
                 other);
}

static tm_status add_named(tm_graph *graph, tm_value_kind kind, const char *name, const tm_operand *operand, uint32_t *out_value,
                           tm_error *error) {
  tm_value_list *numbers = numbers_of(graph, kind);
  TM_TRY(tm_graph_check_open(graph, error));
  TM_TRY(tm_graph_check_name(kind_name(kind), name, error));
  TM_TRY(tm_graph_reserve_values(graph, 1, error));
  uint32_t *grown = tm_make_room(graph->memory, numbers->values, numbers->count, &numbers->capacity, sizeof *grown);
  if (grown == NULL) return tm_graph_no_memory(error);
  numbers->values = grown;
  const uint32_t number = graph->value_count;
  tm_value *value = next_value(graph, operand, kind);
  value->index = (uint32_t)numbers->count;
  /* The name is looked for before it is kept, so that what is refused leaves nothing behind. */
  uint32_t existing = number;
  const tm_string wanted = { .data = name, .length = strlen(name) };
  if (tm_name_table_find(&graph->value_names, graph->values, sizeof *value, wanted, &existing))
    return name_twice(graph, kind_name(kind), name, existing, error);
  TM_TRY(tm_graph_keep_name(graph, name, &value->name, error));
  if (!tm_name_table_add(&graph->value_names, graph->values, sizeof *value, number, &existing)) return tm_graph_no_memory(error);
  numbers->values[numbers->count++] = number;
  graph->value_count++;
  *out_value = number;
  return TM_OK;
}

tm_status tm_graph_add_input(tm_graph *graph, const char *name, const tm_operand *operand, uint32_t *out_value, tm_error *error) {
  tm_operand varying = *operand;
  varying.flags &= ~TM_OPERAND_CONSTANT;
  return add_named(graph, TM_GRAPH_INPUT, name, &varying, out_value, error);
}

tm_status tm_graph_add_constant(tm_graph *graph, const char *name, const tm_operand *operand, uint32_t *out_value,
                                tm_error *error) {
  tm_operand constant = *operand;
  constant.flags |= TM_OPERAND_CONSTANT;
  return add_named(graph, TM_GRAPH_CONSTANT, name, &constant, out_value, error);
}

tm_status tm_graph_add_state(tm_graph *graph, const char *name, const tm_operand *operand, uint32_t *out_value, tm_error *error) {
  tm_operand varying = *operand;
  varying.flags &= ~TM_OPERAND_CONSTANT;
  TM_TRY(tm_graph_check_name("state", name, error));
  if ((operand->flags & TM_OPERAND_CONTIGUOUS) == 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "state '%s': its layout has strides of its own, expected a dense one", name);
  return add_named(graph, TM_GRAPH_STATE, name, &varying, out_value, error);
}

/* ---- views ---- */

/* A view touches [first - below, first - below + byte_count) of its base; all of it must be bytes that the base touches.  One
   that touches nothing is at a place inside or right behind them, so that offsets can be added to it. */
static bool lies_inside(const tm_operand *base, const tm_operand *view, uint64_t offset_bytes) {
  const uint64_t base_below = tm_operand_bytes_below(base);
  const uint64_t below = tm_operand_bytes_below(view);
  uint64_t first;               /* of the view's first element, from the base's lowest byte */
  if (!tm_checked_add(base_below, offset_bytes, &first) || below > first) return false;
  const uint64_t lowest = first - below;
  return lowest <= base->byte_count && view->byte_count <= base->byte_count - lowest;
}

static tm_status outside(const tm_graph *graph, uint32_t of, const tm_operand *view, uint64_t offset_bytes, tm_error *error) {
  char label[TM_GRAPH_LABEL_CAPACITY];
  char dims[DIMS_CAPACITY];
  tm_graph_name_value(graph, of, label, sizeof label);
  tm_format_dims(view, dims, sizeof dims);
  const tm_value *base = &graph->values[graph->values[of].base];
  return tm_fail(error, TM_ERROR_ARGUMENT,
                 "a view %s of %s at offset %llu (%llu of the memory it lies in) touches %llu bytes, %llu of them before its first "
                 "element; that memory has %llu bytes, %llu of them before its first element; a view stays inside",
                 dims, label, (unsigned long long)(offset_bytes - graph->values[of].offset_bytes), (unsigned long long)offset_bytes,
                 (unsigned long long)view->byte_count, (unsigned long long)tm_operand_bytes_below(view),
                 (unsigned long long)base->operand.byte_count, (unsigned long long)tm_operand_bytes_below(&base->operand));
}

tm_status tm_graph_add_view(tm_graph *graph, uint32_t of, const tm_operand *operand, uint64_t offset_bytes, uint32_t *out_value,
                            tm_error *error) {
  TM_TRY(tm_graph_check_open(graph, error));
  TM_TRY(tm_graph_check_value(graph, of, "what is viewed", error));
  TM_TRY(tm_graph_reserve_values(graph, 1, error));
  const uint32_t base = graph->values[of].base;
  uint64_t offset;
  if (!tm_checked_add(graph->values[of].offset_bytes, offset_bytes, &offset))
    return tm_fail(error, TM_ERROR_ARGUMENT, "a view at offset %llu is larger than 64 bits can count",
                   (unsigned long long)offset_bytes);
  if (!lies_inside(&graph->values[base].operand, operand, offset)) return outside(graph, of, operand, offset, error);
  tm_operand layout = *operand;
  layout.flags = (layout.flags & ~TM_OPERAND_CONSTANT) | (graph->values[base].operand.flags & TM_OPERAND_CONSTANT);
  tm_value *value = next_value(graph, &layout, TM_GRAPH_VIEW);
  value->index = graph->view_count++;
  value->base = base;
  value->offset_bytes = offset;
  *out_value = graph->value_count++;
  return TM_OK;
}

/* ---- what is there after a run ---- */

tm_status tm_graph_add_output(tm_graph *graph, const char *name, uint32_t value, tm_error *error) {
  TM_TRY(tm_graph_check_open(graph, error));
  TM_TRY(tm_graph_check_name("output", name, error));
  const tm_string wanted = { .data = name, .length = strlen(name) };
  uint32_t existing;
  if (tm_name_table_find(&graph->output_names, graph->outputs, sizeof *graph->outputs, wanted, &existing))
    return tm_fail(error, TM_ERROR_ARGUMENT, "output '%s': output %u has this name; names are unique", name, existing);
  char what[TM_GRAPH_LABEL_CAPACITY];
  snprintf(what, sizeof what, "output '%s'", name);
  TM_TRY(tm_graph_check_value(graph, value, what, error));
  if (graph->output_count == TM_GRAPH_NONE - 1)
    return tm_fail(error, TM_ERROR_ARGUMENT, "a graph has fewer than %u outputs", TM_GRAPH_NONE);
  void *grown = tm_make_room(graph->memory, graph->outputs, graph->output_count, &graph->output_capacity, sizeof *graph->outputs);
  if (grown == NULL) return tm_graph_no_memory(error);
  graph->outputs = grown;
  tm_named_output *output = &graph->outputs[graph->output_count];
  *output = (tm_named_output){ .value = value };
  TM_TRY(tm_graph_keep_name(graph, name, &output->name, error));
  if (!tm_name_table_add(&graph->output_names, graph->outputs, sizeof *output, graph->output_count, &existing))
    return tm_graph_no_memory(error);
  graph->output_count++;
  graph->values[value].is_output = 1;
  return TM_OK;
}

static tm_status check_same_layout(const tm_graph *graph, uint32_t value, const tm_operand *found, const char *what,
                                   tm_error *error) {
  const tm_operand *expected = &graph->values[value].operand;
  if (found->format == expected->format && tm_same_dims(found, expected)) return TM_OK;
  char label[TM_GRAPH_LABEL_CAPACITY];
  char found_dims[DIMS_CAPACITY];
  char expected_dims[DIMS_CAPACITY];
  tm_graph_name_value(graph, value, label, sizeof label);
  tm_format_dims(found, found_dims, sizeof found_dims);
  tm_format_dims(expected, expected_dims, sizeof expected_dims);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s is %s %s, expected %s %s", label, what, tm_format_title(found->format),
                 found_dims, tm_format_title(expected->format), expected_dims);
}

tm_status tm_graph_add_carry(tm_graph *graph, uint32_t state, uint32_t value, tm_error *error) {
  TM_TRY(tm_graph_check_open(graph, error));
  TM_TRY(tm_graph_check_value(graph, state, "the state to carry", error));
  char label[TM_GRAPH_LABEL_CAPACITY];
  tm_graph_name_value(graph, state, label, sizeof label);
  if (graph->values[state].kind != TM_GRAPH_STATE)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s is no state; only a state is carried into the next run", label);
  TM_TRY(tm_graph_check_value(graph, value, label, error));
  if (graph->values[state].carry != TM_GRAPH_NONE)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s is carried already, as value %u; a state has one next content", label,
                   graph->values[state].carry);
  TM_TRY(check_same_layout(graph, state, &graph->values[value].operand, "what it becomes", error));
  graph->values[state].carry = value;
  return TM_OK;
}

/* ---- constants of a graph from a file ---- */

static bool same_strides(const tm_operand *a, const tm_operand *b) {
  return ((a->flags & b->flags & TM_OPERAND_CONTIGUOUS) != 0) ||
         memcmp(a->strides_bytes, b->strides_bytes, sizeof a->strides_bytes) == 0;
}

tm_status tm_graph_check_bindable(const tm_graph *graph, uint32_t value, const tm_operand *operand, tm_error *error) {
  TM_TRY(tm_graph_check_value(graph, value, "the constant", error));
  const tm_value *constant = &graph->values[value];
  char label[TM_GRAPH_LABEL_CAPACITY];
  tm_graph_name_value(graph, value, label, sizeof label);
  if (constant->kind != TM_GRAPH_CONSTANT) return tm_fail(error, TM_ERROR_ARGUMENT, "%s is no constant", label);
  if (constant->owner != NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "%s has its bytes already; they are given once", label);
  TM_TRY(check_same_layout(graph, value, operand, "the tensor", error));
  if (same_strides(operand, &constant->operand)) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT,
                 "%s: the tensor's strides are not those of the constant; give one that lies the same way", label);
}

tm_status tm_graph_bind_constant(tm_graph *graph, uint32_t value, const tm_operand *operand, const void *data, uint64_t origin,
                                 void *owner, tm_error *error) {
  TM_TRY(tm_graph_check_bindable(graph, value, operand, error));
  tm_value *constant = &graph->values[value];
  constant->operand.alignment = operand->alignment;
  constant->data = data;
  constant->origin = origin;
  constant->owner = owner;
  return TM_OK;
}

uint32_t tm_graph_unbound(const tm_graph *graph) {
  for (uint64_t i = 0; i < graph->constants.count; i++)
    if (graph->values[graph->constants.values[i]].owner == NULL) return graph->constants.values[i];
  return TM_GRAPH_NONE;
}

/* ---- names for people ---- */

void tm_graph_name_node(const tm_graph *graph, uint32_t node, char *text, uint64_t capacity) {
  const tm_node *one = &graph->nodes[node];
  if (one->name.length == 0) snprintf(text, capacity, "node %u (%s)", node, one->row->name);
  else snprintf(text, capacity, "node %u '%s'", node, one->name.data);
}

void tm_graph_name_value(const tm_graph *graph, uint32_t value, char *text, uint64_t capacity) {
  const tm_value *one = &graph->values[value];
  if (one->name.length != 0) {
    snprintf(text, capacity, "%s '%s'", kind_name(one->kind), one->name.data);
  } else if (one->kind == TM_GRAPH_VIEW) {
    snprintf(text, capacity, "view %u", value);
  } else {
    char node[TM_GRAPH_LABEL_CAPACITY];
    tm_graph_name_node(graph, one->node, node, sizeof node);
    snprintf(text, capacity, "result %u of %.*s", one->index, (int)TM_GRAPH_LABEL_CAPACITY - 40, node);
  }
}
