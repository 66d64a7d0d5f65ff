/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: an operation over values that are there, checked by its row. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growth.h"
#include "graph/addition.h"

#define MOST_ATTRIBUTE_BYTES 64u

/* A node on its way into the graph: nothing is kept before everything is known to be right. */
typedef struct draft {
  const tm_op_row *row;
  uint64_t   attributes[MOST_ATTRIBUTE_BYTES / sizeof(uint64_t)];
  tm_operand operands[TM_MAX_OPERANDS];         /* inputs, then outputs */
} draft;

static tm_status find_row(const tm_node_request *request, draft *node, tm_error *error) {
  node->row = tm_op_find(request->op);
  if (node->row == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "operation number %u is not known; tm_op_describe lists those that are", request->op);
  if (node->row->reference == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s is none that a graph takes; plans convert by themselves", node->row->name);
  if (request->version == 0 || request->version == node->row->version) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s version %u, expected %u, which this library has", node->row->name, request->version,
                 node->row->version);
}

static tm_status check_counts(const tm_node_request *request, const tm_op_row *row, tm_error *error) {
  const uint32_t input_count = request->inputs == NULL ? 0 : request->input_count;
  const uint32_t attribute_bytes = request->attributes == NULL ? 0 : request->attribute_bytes;
  if (input_count < row->input_min || input_count > row->input_max || input_count != request->input_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s has %u inputs, expected %u to %u", row->name, input_count, row->input_min,
                   row->input_max);
  if (request->output_count != row->output_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s has %u outputs, expected %u", row->name, request->output_count, row->output_count);
  if (attribute_bytes <= row->attribute_bytes && row->attribute_bytes <= MOST_ATTRIBUTE_BYTES &&
      attribute_bytes == request->attribute_bytes)
    return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s has %u bytes of attributes, expected %u", row->name, attribute_bytes,
                 row->attribute_bytes);
}

static tm_status take_inputs(const tm_graph *graph, const tm_node_request *request, draft *node, tm_error *error) {
  for (uint32_t i = 0; i < request->input_count; i++) {
    const uint32_t value = request->inputs[i];
    if (value >= graph->value_count) {
      char what[24];
      snprintf(what, sizeof what, "input %u", i);
      return tm_graph_check_value(graph, value, what, error);
    }
    node->operands[i] = graph->values[value].operand;
  }
  return TM_OK;
}

/* Formats, shapes and attributes are the row's to judge; the outputs are what it makes of them, dense. */
static tm_status infer(const tm_node_request *request, draft *node, tm_error *error) {
  tm_operand *outputs = node->operands + request->input_count;
  memset(outputs, 0, request->output_count * sizeof *outputs);
  memset(node->attributes, 0, sizeof node->attributes);
  if (request->outputs != NULL) memcpy(outputs, request->outputs, request->output_count * sizeof *outputs);
  if (request->attribute_bytes != 0) memcpy(node->attributes, request->attributes, request->attribute_bytes);
  const tm_operation operation = {
    .struct_size = sizeof operation,
    .op = node->row->op,
    .version = node->row->version,
    .worst_numerics = node->row->default_numerics,
    .attribute_bytes = node->row->attribute_bytes,
    .input_count = request->input_count,
    .output_count = request->output_count,
    .operands = node->operands,
    .attributes = node->row->attribute_bytes == 0 ? NULL : node->attributes,
  };
  return tm_op_infer_outputs(&operation, outputs, error);
}

static tm_status make_draft(const tm_graph *graph, const tm_node_request *request, draft *node, tm_error *error) {
  TM_TRY(find_row(request, node, error));
  TM_TRY(check_counts(request, node->row, error));
  TM_TRY(take_inputs(graph, request, node, error));
  return infer(request, node, error);
}

/* The node that does not exist is called by the number that it would have got. */
static void prefix_node(const tm_graph *graph, const tm_node_request *request, tm_error *error) {
  if (request->name == NULL || request->name[0] == '\0') tm_error_prefix(error, "node %u", graph->node_count);
  else tm_error_prefix(error, "node %u '%s'", graph->node_count, request->name);
}

static tm_status check_name(const tm_graph *graph, const char *name, tm_error *error) {
  if (name == NULL || name[0] == '\0') return TM_OK;
  TM_TRY(tm_graph_check_name("node", name, error));
  const tm_string wanted = { .data = name, .length = strlen(name) };
  uint32_t existing;
  if (!tm_name_table_find(&graph->node_names, graph->nodes, sizeof *graph->nodes, wanted, &existing)) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "node '%s': node %u has this name; names are unique", name, existing);
}

static tm_status reserve(tm_graph *graph, uint32_t output_count, tm_error *error) {
  TM_TRY(tm_graph_reserve_values(graph, output_count, error));
  if (graph->node_count == TM_GRAPH_NONE - 1) return tm_fail(error, TM_ERROR_ARGUMENT, "a graph has fewer than %u nodes",
                                                             TM_GRAPH_NONE);
  void *grown = tm_make_room(graph->memory, graph->nodes, graph->node_count, &graph->node_capacity, sizeof *graph->nodes);
  if (grown == NULL) return tm_graph_no_memory(error);
  graph->nodes = grown;
  return TM_OK;
}

/* The lists and attributes of the node behind the last one, which is not counted yet. */
static tm_status keep(tm_graph *graph, const tm_node_request *request, const draft *node, tm_error *error) {
  const uint64_t attribute_bytes = node->row->attribute_bytes;
  void *attributes = attribute_bytes == 0 ? NULL : tm_arena_alloc(&graph->arena, attribute_bytes);
  uint32_t *links = tm_arena_alloc(&graph->arena, (uint64_t)(request->input_count + request->output_count) * sizeof *links);
  if (links == NULL || (attributes == NULL && attribute_bytes != 0)) return tm_graph_no_memory(error);
  if (attribute_bytes != 0) memcpy(attributes, node->attributes, attribute_bytes);
  if (request->input_count != 0) memcpy(links, request->inputs, request->input_count * sizeof *links);
  for (uint32_t i = 0; i < request->output_count; i++) links[request->input_count + i] = graph->value_count + i;
  tm_node *kept = &graph->nodes[graph->node_count];
  *kept = (tm_node){
    .row = node->row,
    .attributes = attributes,
    .inputs = links,
    .outputs = links + request->input_count,
    .input_count = request->input_count,
  };
  TM_TRY(tm_graph_keep_name(graph, request->name, &kept->name, error));
  uint32_t existing;
  if (kept->name.length != 0 &&
      !tm_name_table_add(&graph->node_names, graph->nodes, sizeof *kept, graph->node_count, &existing))
    return tm_graph_no_memory(error);
  return TM_OK;
}

tm_status tm_graph_add_node(tm_graph *graph, const tm_node_request *request, uint32_t *out_values, tm_error *error) {
  draft node;
  TM_TRY(tm_graph_check_open(graph, error));
  TM_TRY(check_name(graph, request->name, error));
  const tm_status status = make_draft(graph, request, &node, error);
  if (status != TM_OK) {
    prefix_node(graph, request, error);
    return status;
  }
  TM_TRY(reserve(graph, request->output_count, error));
  TM_TRY(keep(graph, request, &node, error));
  for (uint32_t i = 0; i < request->output_count; i++) {
    const uint32_t value = graph->value_count++;
    graph->values[value] = (tm_value){
      .name.data = "",
      .operand = node.operands[request->input_count + i],
      .kind = TM_GRAPH_RESULT,
      .index = i,
      .node = graph->node_count,
      .base = value,
      .carry = TM_GRAPH_NONE,
    };
    out_values[i] = value;
  }
  graph->node_count++;
  return TM_OK;
}

tm_operation tm_graph_operation(const tm_graph *graph, uint32_t node, tm_operand *operands) {
  const tm_node *one = &graph->nodes[node];
  for (uint32_t i = 0; i < one->input_count; i++) operands[i] = graph->values[one->inputs[i]].operand;
  for (uint32_t i = 0; i < one->row->output_count; i++) operands[one->input_count + i] = graph->values[one->outputs[i]].operand;
  return (tm_operation){
    .struct_size = sizeof(tm_operation),
    .op = one->row->op,
    .version = one->row->version,
    .worst_numerics = one->row->default_numerics,
    .attribute_bytes = one->row->attribute_bytes,
    .input_count = one->input_count,
    .output_count = one->row->output_count,
    .operands = operands,
    .attributes = one->attributes,
  };
}
