/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/graph_file.h"
#include "graph/graph_text.h"
#include "graph/liveness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const tm_graph *graph, tm_graph_form form, uint64_t *out_length) {
  *out_length = tm_graph_write(graph, form, NULL, NULL, 0);
  char *text = malloc((size_t)*out_length + 1);
  if (text == NULL || tm_graph_write(graph, form, NULL, text, *out_length + 1) != *out_length) __builtin_trap();
  return text;
}

/* What was accepted is written so that it is accepted again, as the same graph. */
static void check_back_and_forth(const tm_graph *graph, tm_memory *memory) {
  uint64_t length, again_length;
  char *text = print(graph, TM_FORM_JSON, &length);
  tm_graph back;
  tm_graph_init(&back, memory);
  if (tm_graph_read(&back, text, length, NULL) != TM_OK) __builtin_trap();
  char *again = print(&back, TM_FORM_JSON, &again_length);
  if (again_length != length) __builtin_trap();
  for (uint64_t i = 0; i < length; i++)
    if (text[i] != again[i]) __builtin_trap();
  tm_graph_deinit(&back);
  free(again);
  free(text);
}

static void check_lives(const tm_graph *graph) {
  tm_liveness liveness;
  if (tm_liveness_init(&liveness, graph, NULL, NULL, NULL) != TM_OK) __builtin_trap();
  for (uint32_t v = 0; v < graph->value_count; v++) {
    const uint32_t root = liveness.values[v].root;
    if (root >= graph->value_count || liveness.values[root].root != root) __builtin_trap();
    if (graph->values[root].kind == TM_GRAPH_VIEW) __builtin_trap();
  }
  tm_liveness_deinit(&liveness);
}

/* Every node that was accepted passes its operation's check. */
static void check_nodes(const tm_graph *graph) {
  tm_operand operands[TM_MAX_OPERANDS];
  for (uint32_t n = 0; n < graph->node_count; n++) {
    const tm_operation operation = tm_graph_operation(graph, n, operands);
    if (tm_op_check(&operation, NULL) != TM_OK) __builtin_trap();
    for (uint32_t i = 0; i < operation.input_count; i++)
      if (graph->values[graph->nodes[n].inputs[i]].kind == TM_GRAPH_RESULT && graph->values[graph->nodes[n].inputs[i]].node >= n)
        __builtin_trap();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tm_memory memory;
  tm_graph graph;
  tm_error error = TM_ERROR_INIT;
  uint64_t length;
  tm_memory_init(&memory, 0);
  tm_graph_init(&graph, &memory);
  const tm_status status = tm_graph_read(&graph, (const char *)data, size, &error);
  if (status != TM_OK) {
    if (status != TM_ERROR_CORRUPT || error.text[0] == '\0') __builtin_trap();
  } else {
    check_nodes(&graph);
    check_lives(&graph);
    check_back_and_forth(&graph, &memory);
    free(print(&graph, TM_FORM_TEXT, &length));
    free(print(&graph, TM_FORM_DOT, &length));
  }
  tm_graph_deinit(&graph);
  if (atomic_load(&memory.used_bytes) != 0) __builtin_trap();
  return 0;
}
