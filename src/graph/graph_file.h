/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_file.h - reads what graph_json.h writes.  A file is a stranger: everything in it is checked as if it were added by hand,
 * memory grows with what is right in it, and what is wrong is told with its line: also what cannot be built by hand, such as a
 * cycle or a value that is used before it is made.
 */
#ifndef TM_GRAPH_GRAPH_FILE_H
#define TM_GRAPH_GRAPH_FILE_H

#include "graph/graph.h"

/* Adds all that the text says to an empty graph, which may be partly filled when it fails.
   TM_ERROR_CORRUPT (line, what, expected, found), TM_ERROR_NO_MEMORY */
tm_status tm_graph_read(tm_graph *graph, const char *text, uint64_t length, tm_error *error);

/* The same from a file.   TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_CHANGED, TM_ERROR_LIMIT too */
tm_status tm_graph_read_file(tm_graph *graph, const char *path, tm_error *error);

#endif
