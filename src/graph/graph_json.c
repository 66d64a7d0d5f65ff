/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph_json.h"

#include <inttypes.h>

#include "ops/op_check.h"

static void put_layout(tm_text_sink *sink, const tm_operand *operand) {
  tm_sink_format(sink, "\"format\": \"%s\", \"dims\": ", tm_format_title(operand->format));
  tm_sink_dims(sink, operand);
  if ((operand->flags & TM_OPERAND_CONTIGUOUS) != 0) return;
  tm_sink_format(sink, ", \"strides\": ");
  tm_sink_strides(sink, operand);
}

static void put_name(tm_text_sink *sink, tm_string name) {
  if (name.length == 0) return;
  tm_sink_format(sink, ", \"name\": ");
  tm_sink_quoted(sink, name);
}

static void put_numbers(tm_text_sink *sink, const char *key, const uint32_t *numbers, uint32_t count) {
  tm_sink_format(sink, ", \"%s\": [", key);
  for (uint32_t i = 0; i < count; i++) tm_sink_format(sink, i == 0 ? "%u" : ",%u", numbers[i]);
  tm_sink_bytes(sink, "]", 1);
}

static void put_node(tm_text_sink *sink, const tm_graph *graph, const tm_node *node) {
  tm_sink_format(sink, "{\"kind\": \"node\"");
  put_numbers(sink, "values", node->outputs, node->row->output_count);
  put_name(sink, node->name);
  tm_sink_format(sink, ", \"op\": \"%s\", \"version\": %u", node->row->name, node->row->version);
  if (node->row->attribute_bytes != 0) {
    tm_sink_format(sink, ", \"attributes\": \"");
    tm_sink_hex(sink, node->attributes, node->row->attribute_bytes);
    tm_sink_bytes(sink, "\"", 1);
  }
  put_numbers(sink, "inputs", node->inputs, node->input_count);
  tm_sink_format(sink, ", \"results\": [");
  for (uint32_t i = 0; i < node->row->output_count; i++) {
    tm_sink_format(sink, i == 0 ? "{" : ", {");
    put_layout(sink, &graph->values[node->outputs[i]].operand);
    tm_sink_bytes(sink, "}", 1);
  }
  tm_sink_format(sink, "]}");
}

static void put_digest(tm_text_sink *sink, const tm_value *constant, const tm_graph_digest *digests) {
  const bool is_new = digests != NULL && digests[constant->index].is_known;
  const uint8_t *digest = is_new ? digests[constant->index].bytes : constant->digest;
  if (digest == NULL) return;
  tm_sink_format(sink, ", \"sha256\": \"");
  tm_sink_hex(sink, digest, TM_SHA256_BYTES);
  tm_sink_bytes(sink, "\"", 1);
}

static void put_value(tm_text_sink *sink, const tm_value *value, uint32_t v, const tm_graph_digest *digests) {
  static const char *const kinds[] = { "", "input", "constant", "state", "", "view" };
  tm_sink_format(sink, "{\"kind\": \"%s\", \"value\": %u", kinds[value->kind], v);
  put_name(sink, value->name);
  if (value->kind == TM_GRAPH_VIEW) tm_sink_format(sink, ", \"of\": %u, \"offset\": %" PRIu64, value->base, value->offset_bytes);
  tm_sink_bytes(sink, ", ", 2);
  put_layout(sink, &value->operand);
  if (value->kind == TM_GRAPH_CONSTANT) put_digest(sink, value, digests);
  tm_sink_bytes(sink, "}", 1);
}

static void next_item(tm_text_sink *sink, bool *is_first) {
  tm_sink_format(sink, *is_first ? "\n" : ",\n");
  *is_first = false;
}

void tm_graph_write_json(tm_text_sink *sink, const tm_graph *graph, const tm_graph_digest *digests) {
  bool is_first = true;
  tm_sink_format(sink, "{\"tensormorph_graph\": %u, \"items\": [", TM_GRAPH_FILE_VERSION);
  for (uint32_t v = 0; v < graph->value_count; v++) {
    const tm_value *value = &graph->values[v];
    if (value->kind == TM_GRAPH_RESULT && value->index != 0) continue;
    next_item(sink, &is_first);
    if (value->kind == TM_GRAPH_RESULT) put_node(sink, graph, &graph->nodes[value->node]);
    else put_value(sink, value, v, digests);
  }
  for (uint64_t i = 0; i < graph->states.count; i++) {
    const tm_value *state = &graph->values[graph->states.values[i]];
    if (state->carry == TM_GRAPH_NONE) continue;
    next_item(sink, &is_first);
    tm_sink_format(sink, "{\"kind\": \"carry\", \"value\": %u, \"state\": %u}", state->carry, graph->states.values[i]);
  }
  for (uint32_t i = 0; i < graph->output_count; i++) {
    next_item(sink, &is_first);
    tm_sink_format(sink, "{\"kind\": \"output\", \"value\": %u", graph->outputs[i].value);
    put_name(sink, graph->outputs[i].name);
    tm_sink_bytes(sink, "}", 1);
  }
  tm_sink_format(sink, "\n]}\n");
}
