/* SPDX-License-Identifier: Apache-2.0 */
/* The form for people and the one for Graphviz; that for programs is in graph_json.c. */
#include "graph/graph_text.h"

#include <inttypes.h>

#include "graph/graph_json.h"
#include "ops/op_check.h"

/* ---- for people ---- */

static void put_layout(tm_text_sink *sink, const tm_operand *operand) {
  tm_sink_format(sink, "%s ", tm_format_title(operand->format));
  tm_sink_dims(sink, operand);
  if ((operand->flags & TM_OPERAND_CONTIGUOUS) != 0) return;
  tm_sink_format(sink, " strides ");
  tm_sink_strides(sink, operand);
}

static void put_values(tm_text_sink *sink, const uint32_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) tm_sink_format(sink, i == 0 ? "%%%u" : ", %%%u", values[i]);
}

static void text_node(tm_text_sink *sink, const tm_graph *graph, uint32_t n) {
  const tm_node *node = &graph->nodes[n];
  put_values(sink, node->outputs, node->row->output_count);
  tm_sink_format(sink, " = %s(", node->row->name);
  put_values(sink, node->inputs, node->input_count);
  tm_sink_format(sink, ")");
  if (node->row->attribute_bytes != 0) {
    tm_sink_format(sink, " {");
    tm_sink_hex(sink, node->attributes, node->row->attribute_bytes);
    tm_sink_format(sink, "}");
  }
  for (uint32_t i = 0; i < node->row->output_count; i++) {
    tm_sink_format(sink, i == 0 ? " -> " : ", ");
    put_layout(sink, &graph->values[node->outputs[i]].operand);
  }
  tm_sink_format(sink, node->name.length != 0 ? "  # node %u " : "  # node %u", n);
  if (node->name.length != 0) tm_sink_quoted(sink, node->name);
  tm_sink_format(sink, "\n");
}

static const char *title(tm_value_kind kind) {
  return kind == TM_GRAPH_INPUT ? "input" : kind == TM_GRAPH_CONSTANT ? "constant" : "state";
}

static void text_value(tm_text_sink *sink, const tm_graph *graph, uint32_t v) {
  const tm_value *value = &graph->values[v];
  if (value->kind == TM_GRAPH_VIEW) {
    tm_sink_format(sink, "%%%u = view of %%%u at byte %" PRIu64 ", ", v, value->base, value->offset_bytes);
  } else {
    tm_sink_format(sink, "%%%u = %s ", v, title(value->kind));
    tm_sink_quoted(sink, value->name);
    tm_sink_format(sink, " ");
  }
  put_layout(sink, &value->operand);
  if (value->kind == TM_GRAPH_CONSTANT && value->owner == NULL) tm_sink_format(sink, ", no bytes yet");
  if (value->kind == TM_GRAPH_STATE && value->carry != TM_GRAPH_NONE) tm_sink_format(sink, ", then %%%u", value->carry);
  tm_sink_format(sink, "\n");
}

static void put_count(tm_text_sink *sink, uint64_t count, const char *noun, bool is_first) {
  tm_sink_format(sink, "%s%" PRIu64 " %s%s", is_first ? " " : ", ", count, noun, count == 1 ? "" : "s");
}

static void write_text(tm_text_sink *sink, const tm_graph *graph) {
  tm_sink_format(sink, "graph:");
  put_count(sink, graph->inputs.count, "input", true);
  put_count(sink, graph->constants.count, "constant", false);
  put_count(sink, graph->states.count, "state", false);
  put_count(sink, graph->node_count, "node", false);
  put_count(sink, graph->output_count, "output", false);
  tm_sink_format(sink, "\n");
  for (uint32_t v = 0; v < graph->value_count; v++) {
    const tm_value *value = &graph->values[v];
    if (value->kind != TM_GRAPH_RESULT) text_value(sink, graph, v);
    else if (value->index == 0) text_node(sink, graph, value->node);
  }
  for (uint32_t i = 0; i < graph->output_count; i++) {
    tm_sink_format(sink, "output ");
    tm_sink_quoted(sink, graph->outputs[i].name);
    tm_sink_format(sink, " = %%%u\n", graph->outputs[i].value);
  }
}

/* ---- for Graphviz ---- */

/* Where an edge from a value begins: at its node, or at the value itself. */
static void dot_place(tm_text_sink *sink, const tm_graph *graph, uint32_t v) {
  if (graph->values[v].kind == TM_GRAPH_RESULT) tm_sink_format(sink, "n%u", graph->values[v].node);
  else tm_sink_format(sink, "v%u", v);
}

/* A quoted text with `\n` between its parts; the second part is plain. */
static void dot_label(tm_text_sink *sink, tm_string name, const char *what, const tm_operand *layout) {
  tm_sink_format(sink, "\"%s", what);
  for (uint64_t i = 0; i < name.length; i++) {
    if (i == 0) tm_sink_format(sink, "\\n");
    if (name.data[i] == '"' || name.data[i] == '\\') tm_sink_bytes(sink, "\\", 1);
    tm_sink_bytes(sink, &name.data[i], 1);
  }
  if (layout != NULL) {
    tm_sink_format(sink, "\\n");
    put_layout(sink, layout);
  }
  tm_sink_format(sink, "\"");
}

static void dot_edge(tm_text_sink *sink, const tm_graph *graph, uint32_t from) {
  tm_sink_format(sink, "  ");
  dot_place(sink, graph, from);
  tm_sink_format(sink, " -> ");
}

static void dot_edge_end(tm_text_sink *sink, const tm_graph *graph, uint32_t from, const char *style) {
  if (graph->values[from].kind != TM_GRAPH_RESULT) {
    tm_sink_format(sink, "%s%s%s;\n", style[0] == '\0' ? "" : " [", style, style[0] == '\0' ? "" : "]");
    return;
  }
  tm_sink_format(sink, " [%s%slabel=\"", style, style[0] == '\0' ? "" : ", ");
  put_layout(sink, &graph->values[from].operand);
  tm_sink_format(sink, "\"];\n");
}

static void dot_node(tm_text_sink *sink, const tm_graph *graph, uint32_t n) {
  const tm_node *node = &graph->nodes[n];
  tm_sink_format(sink, "  n%u [shape=box, label=", n);
  dot_label(sink, node->name, node->row->name, NULL);
  tm_sink_format(sink, "];\n");
  for (uint32_t i = 0; i < node->input_count; i++) {
    dot_edge(sink, graph, node->inputs[i]);
    tm_sink_format(sink, "n%u", n);
    dot_edge_end(sink, graph, node->inputs[i], "");
  }
}

static void dot_value(tm_text_sink *sink, const tm_graph *graph, uint32_t v) {
  const tm_value *value = &graph->values[v];
  const bool is_view = value->kind == TM_GRAPH_VIEW;
  tm_sink_format(sink, "  v%u [shape=%s, label=", v,
                 is_view ? "plaintext" : value->kind == TM_GRAPH_STATE ? "cylinder" : "ellipse");
  dot_label(sink, value->name, is_view ? "view" : title(value->kind), &value->operand);
  tm_sink_format(sink, "];\n");
  if (!is_view) return;
  dot_edge(sink, graph, value->base);
  tm_sink_format(sink, "v%u", v);
  dot_edge_end(sink, graph, value->base, "style=dashed");
}

static void dot_ends(tm_text_sink *sink, const tm_graph *graph) {
  for (uint32_t i = 0; i < graph->output_count; i++) {
    const uint32_t value = graph->outputs[i].value;
    tm_sink_format(sink, "  o%u [shape=ellipse, label=", i);
    dot_label(sink, graph->outputs[i].name, "output", NULL);
    tm_sink_format(sink, "];\n");
    dot_edge(sink, graph, value);
    tm_sink_format(sink, "o%u", i);
    dot_edge_end(sink, graph, value, "");
  }
  for (uint64_t i = 0; i < graph->states.count; i++) {
    const uint32_t state = graph->states.values[i];
    const uint32_t carry = graph->values[state].carry;
    if (carry == TM_GRAPH_NONE) continue;
    dot_edge(sink, graph, carry);
    tm_sink_format(sink, "v%u", state);
    dot_edge_end(sink, graph, carry, "style=dotted, constraint=false");
  }
}

static void write_dot(tm_text_sink *sink, const tm_graph *graph) {
  tm_sink_format(sink, "digraph tensormorph {\n");
  for (uint32_t v = 0; v < graph->value_count; v++) {
    const tm_value *value = &graph->values[v];
    if (value->kind != TM_GRAPH_RESULT) dot_value(sink, graph, v);
    else if (value->index == 0) dot_node(sink, graph, value->node);
  }
  dot_ends(sink, graph);
  tm_sink_format(sink, "}\n");
}

uint64_t tm_graph_write(const tm_graph *graph, tm_graph_form form, const tm_graph_digest *digests, char *text, uint64_t capacity) {
  tm_text_sink sink = { .text = text, .capacity = capacity };
  switch (form) {
    case TM_FORM_TEXT: write_text(&sink, graph); break;
    case TM_FORM_DOT: write_dot(&sink, graph); break;
    case TM_FORM_JSON: tm_graph_write_json(&sink, graph, digests); break;
  }
  tm_sink_finish(&sink);
  return sink.length;
}
