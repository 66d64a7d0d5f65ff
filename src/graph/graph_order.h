/* SPDX-License-Identifier: Apache-2.0 */
/* graph_order.h - says what is wrong with an item of a graph file that uses a value which is not made yet. */
#ifndef TM_GRAPH_GRAPH_ORDER_H
#define TM_GRAPH_GRAPH_ORDER_H

#include "graph/graph_item.h"

/* `json` is behind `item` in the list of items; the rest of the text is read to find out who makes `value`: nobody, one that
   stands too late, or one that needs the item itself.   TM_ERROR_CORRUPT, TM_ERROR_NO_MEMORY */
tm_status tm_graph_explain_order(tm_memory *memory, const tm_json_pull *json, const tm_graph_item *item, uint32_t value,
                                 tm_error *error);

/* The values that an item reads, at most TM_MAX_OPERANDS, and those that it makes. */
const uint32_t *tm_graph_item_reads(const tm_graph_item *item, uint32_t *out_count);
const uint32_t *tm_graph_item_makes(const tm_graph_item *item, uint32_t *out_count);

#endif
