/* SPDX-License-Identifier: Apache-2.0 */
/* addition.h - what the functions that add to a graph share; for src/graph only. */
#ifndef TM_GRAPH_ADDITION_H
#define TM_GRAPH_ADDITION_H

#include "graph/graph.h"

tm_status tm_graph_no_memory(tm_error *error);
/* TM_ERROR_ARGUMENT: it is sealed. */
tm_status tm_graph_check_open(const tm_graph *graph, tm_error *error);
/* `what` ("input") is for the message. */
tm_status tm_graph_check_name(const char *what, const char *name, tm_error *error);
/* A copy that lives as long as the graph; of NULL or "" an empty one. */
tm_status tm_graph_keep_name(tm_graph *graph, const char *name, tm_string *out_name, tm_error *error);
tm_status tm_graph_reserve_values(tm_graph *graph, uint32_t count, tm_error *error);
/* Is it one that is there?  `what` begins the message. */
tm_status tm_graph_check_value(const tm_graph *graph, uint32_t value, const char *what, tm_error *error);

#endif
