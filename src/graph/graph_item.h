/* SPDX-License-Identifier: Apache-2.0 */
/* graph_item.h - one item of a graph file: its members, read and checked one by one, with nothing known of the graph yet. */
#ifndef TM_GRAPH_GRAPH_ITEM_H
#define TM_GRAPH_GRAPH_ITEM_H

#include "base/json_pull.h"
#include "base/sha256.h"
#include "graph/graph.h"

#define TM_ITEM_ATTRIBUTE_BYTES 64u

typedef enum tm_item_kind {
  TM_ITEM_INPUT, TM_ITEM_CONSTANT, TM_ITEM_STATE, TM_ITEM_VIEW, TM_ITEM_NODE, TM_ITEM_CARRY, TM_ITEM_OUTPUT, TM_ITEM_KIND_COUNT
} tm_item_kind;

typedef struct tm_graph_item {
  tm_item_kind kind;
  uint64_t     offset;          /* in the text */
  uint32_t     has;             /* members that are there, as bits of a table of graph_item.c */
  uint32_t     version;
  char         name[TM_GRAPH_LONGEST_NAME + 1];
  char         op_name[65];
  const tm_op_row *row;         /* of a node; NULL: an operation that is not known here */
  tm_operand   operand;
  uint32_t     value;
  uint32_t     of;
  uint32_t     state;
  uint32_t     value_count;
  uint32_t     input_count;
  uint32_t     result_count;
  uint64_t     offset_bytes;
  uint32_t     values[TM_MAX_OPERANDS];
  uint32_t     inputs[TM_MAX_OPERANDS];
  tm_operand   results[TM_MAX_OPERANDS];
  uint32_t     attribute_bytes;
  bool         has_digest;
  uint64_t     attributes[TM_ITEM_ATTRIBUTE_BYTES / 8];
  uint8_t      digest[TM_SHA256_BYTES];
} tm_graph_item;

/* The item whose first token is `first`.   TM_ERROR_CORRUPT, TM_ERROR_ARGUMENT (a layout that cannot be); the text has the line. */
tm_status tm_graph_item_read(tm_json_pull *json, const tm_json_token *first, tm_graph_item *out_item, tm_error *error);

/* "node 'fc1'", "view 7", "input 'x'" */
void tm_graph_item_label(const tm_graph_item *item, char *text, uint64_t capacity);

/* The line of a place in the text, from 1. */
uint64_t tm_text_line(const char *text, uint64_t offset);

/* What a JSON error or an unexpected token is; TM_ERROR_CORRUPT. */
tm_status tm_graph_unexpected(const tm_json_pull *json, const tm_json_token *found, const char *expected, tm_error *error);

#endif
