/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_text.h - a graph as text: for people, for Graphviz, and as the JSON that graph_file.h reads.  The same graph gives the
 * same bytes.
 */
#ifndef TM_GRAPH_GRAPH_TEXT_H
#define TM_GRAPH_GRAPH_TEXT_H

#include "base/sha256.h"
#include "graph/graph.h"

typedef enum tm_graph_form { TM_FORM_TEXT, TM_FORM_DOT, TM_FORM_JSON } tm_graph_form;

typedef struct tm_graph_digest {
  uint8_t bytes[TM_SHA256_BYTES];
  bool    is_known;
} tm_graph_digest;

/* Writes up to capacity bytes, the NUL included, and returns the length of the whole without it; text may be NULL with
   capacity 0.  digests: of the constants, in order, for the JSON form; NULL: those that the graph came with. */
uint64_t tm_graph_write(const tm_graph *graph, tm_graph_form form, const tm_graph_digest *digests, char *text, uint64_t capacity);

#endif
