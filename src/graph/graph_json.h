/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_json.h - the form for programs and files, an item after the other, in the order in which the graph was built:
 *
 *     {"tensormorph_graph": 1, "items": [
 *     {"kind": "input", "value": 0, "name": "x", "format": "f32", "dims": [4,8]},
 *     {"kind": "constant", "value": 1, "name": "w", "format": "f32", "dims": [8,2], "strides": [4,32], "sha256": "..."},
 *     {"kind": "state", ...},
 *     {"kind": "node", "values": [2], "name": "fc", "op": "matmul", "version": 1, "attributes": "...", "inputs": [0,1],
 *      "results": [{"format": "f32", "dims": [4,2]}]},
 *     {"kind": "view", "value": 3, "of": 2, "offset": 0, "format": "f32", "dims": [8]},
 *     {"kind": "carry", "value": 3, "state": 5},
 *     {"kind": "output", "value": 3, "name": "y"}
 *     ]}
 *
 * Strides stand where they are not dense.  Attributes are the bytes of the struct of types.h, two digits each.  The digest is
 * that of all bytes from the lowest to the highest that the constant touches.
 */
#ifndef TM_GRAPH_GRAPH_JSON_H
#define TM_GRAPH_GRAPH_JSON_H

#include "graph/graph_text.h"
#include "graph/text_sink.h"

#define TM_GRAPH_FILE_VERSION 1u

void tm_graph_write_json(tm_text_sink *sink, const tm_graph *graph, const tm_graph_digest *digests);

#endif
