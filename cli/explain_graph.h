/* SPDX-License-Identifier: Apache-2.0 */
/* explain_graph.h - explain --graph FILE: where each node of a saved graph would run, as text and as JSON. */
#ifndef TM_CLI_EXPLAIN_GRAPH_H
#define TM_CLI_EXPLAIN_GRAPH_H

#include "command.h"
#include "explain_words.h"

#define TM_EXPLAIN_GRAPH_FLAGS                                                                                         \
  { "graph", 0, TM_FLAG_TEXT, false, "FILE", "explain a saved graph instead of one operation" },                       \
  { "node", 0, TM_FLAG_TEXT, false, "NODE", "of the graph only this node, by its name or number, with every candidate" }, \
  { "repeats", 0, TM_FLAG_COUNT, false, "N",                                                                           \
    "how often it will run: what is paid once is spread over so many runs (a graph: 100 unless this says otherwise; an " \
    "operation: not spread)" }

/* Does all of it; returns the exit code. */
int tm_explain_graph(tm_invocation *invocation);

/* TM_NO_NODE: the whole plan, a line a node. */
void tm_explained_graph_print(const tm_explained_graph *explained, tm_invocation *invocation);
void tm_explained_node_print(const tm_explained_graph *explained, uint32_t node, tm_invocation *invocation);
void tm_explained_graph_print_json(const tm_explained_graph *explained, uint32_t node, tm_output_stream *stream);

#endif
