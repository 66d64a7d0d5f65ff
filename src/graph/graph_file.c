/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph_file.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "graph/graph_json.h"
#include "graph/graph_order.h"
#include "ops/op_check.h"
#include "tensor/shape.h"

#define MOST_FILE_BYTES (UINT64_C(1) << 30)

typedef struct reader {
  tm_graph     *graph;
  tm_json_pull  json;
  tm_graph_item item;           /* the one at hand */
} reader;

/* ---- what holds for all items ---- */

static tm_status check_reads(reader *r, tm_error *error) {
  uint32_t count;
  const uint32_t *reads = tm_graph_item_reads(&r->item, &count);
  for (uint32_t i = 0; i < count; i++)
    if (reads[i] >= r->graph->value_count) return tm_graph_explain_order(r->graph->memory, &r->json, &r->item, reads[i], error);
  return TM_OK;
}

/* Values are numbered in the order in which they stand, so that a loaded graph has the numbers of the one that was saved. */
static tm_status check_makes(const reader *r, tm_error *error) {
  uint32_t count;
  const uint32_t *makes = tm_graph_item_makes(&r->item, &count);
  for (uint32_t i = 0; i < count; i++)
    if (makes[i] != r->graph->value_count + i)
      return tm_fail(error, TM_ERROR_CORRUPT, "it makes value %u, expected %u: values are numbered in their order", makes[i],
                     r->graph->value_count + i);
  return TM_OK;
}

/* ---- by kind ---- */

static tm_status check_results(const reader *r, const uint32_t *values, tm_error *error) {
  for (uint32_t i = 0; i < r->item.result_count; i++) {
    const tm_operand *found = &r->item.results[i];
    const tm_operand *expected = &r->graph->values[values[i]].operand;
    if (found->format == expected->format && tm_same_dims(found, expected)) continue;
    char found_dims[200], expected_dims[200];
    tm_format_dims(found, found_dims, sizeof found_dims);
    tm_format_dims(expected, expected_dims, sizeof expected_dims);
    return tm_fail(error, TM_ERROR_CORRUPT, "result %u is %s %s, expected %s %s from its inputs", i, tm_format_title(found->format),
                   found_dims, tm_format_title(expected->format), expected_dims);
  }
  return TM_OK;
}

static tm_status add_node(reader *r, tm_error *error) {
  const tm_graph_item *item = &r->item;
  uint32_t values[TM_MAX_OPERANDS];
  if (item->row == NULL) return tm_fail(error, TM_ERROR_CORRUPT, "operation '%s' is not known to this library", item->op_name);
  if (item->result_count != item->value_count)
    return tm_fail(error, TM_ERROR_CORRUPT, "%u results with %u values, expected one each", item->result_count, item->value_count);
  if (item->version == 0) return tm_fail(error, TM_ERROR_CORRUPT, "version 0, expected %u", item->row->version);
  const tm_node_request request = {
    .name = item->name,
    .op = item->row->op,
    .version = item->version,
    .attributes = item->attributes,
    .attribute_bytes = item->attribute_bytes,
    .input_count = item->input_count,
    .inputs = item->inputs,
    .outputs = item->results,
    .output_count = item->result_count,
  };
  TM_TRY(tm_graph_add_node(r->graph, &request, values, error));
  return check_results(r, values, error);
}

static tm_status add_constant(reader *r, tm_error *error) {
  uint32_t value;
  TM_TRY(tm_graph_add_constant(r->graph, r->item.name, &r->item.operand, &value, error));
  if (!r->item.has_digest) return TM_OK;
  uint8_t *digest = tm_arena_alloc(&r->graph->arena, TM_SHA256_BYTES);
  if (digest == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to read a graph");
  memcpy(digest, r->item.digest, TM_SHA256_BYTES);
  r->graph->values[value].digest = digest;
  return TM_OK;
}

static tm_status add_by_kind(reader *r, tm_error *error) {
  const tm_graph_item *item = &r->item;
  uint32_t value;
  switch (item->kind) {
    case TM_ITEM_INPUT: return tm_graph_add_input(r->graph, item->name, &item->operand, &value, error);
    case TM_ITEM_CONSTANT: return add_constant(r, error);
    case TM_ITEM_STATE: return tm_graph_add_state(r->graph, item->name, &item->operand, &value, error);
    case TM_ITEM_VIEW: return tm_graph_add_view(r->graph, item->of, &item->operand, item->offset_bytes, &value, error);
    case TM_ITEM_NODE: return add_node(r, error);
    case TM_ITEM_CARRY: return tm_graph_add_carry(r->graph, item->state, item->value, error);
    default: return tm_graph_add_output(r->graph, item->name, item->value, error);
  }
}

/* A view of a view says its offset from the first, which has no view as its base. */
static tm_status check_view(const reader *r, tm_error *error) {
  if (r->item.kind != TM_ITEM_VIEW || r->graph->values[r->item.of].kind != TM_GRAPH_VIEW) return TM_OK;
  return tm_fail(error, TM_ERROR_CORRUPT, "it is of value %u, which is a view, expected the value in whose memory that lies, %u",
                 r->item.of, r->graph->values[r->item.of].base);
}

static tm_status add_item(reader *r, tm_error *error) {
  char label[TM_GRAPH_LABEL_CAPACITY];
  tm_status status = check_makes(r, error);
  if (status == TM_OK) status = check_view(r, error);
  if (status == TM_OK) status = add_by_kind(r, error);
  if (status == TM_OK || status == TM_ERROR_NO_MEMORY) return status;
  tm_graph_item_label(&r->item, label, sizeof label);
  tm_error_prefix(error, "line %llu: %s", (unsigned long long)tm_text_line(r->json.text, r->item.offset), label);
  return status;
}

/* ---- the whole ---- */

static tm_status expect_key(reader *r, const char *key, const char *expected, tm_error *error) {
  tm_json_token token;
  if (tm_json_next(&r->json, &token) == TM_JSON_KEY && tm_json_is(&token, key)) return TM_OK;
  return tm_graph_unexpected(&r->json, &token, expected, error);
}

static tm_status read_version(reader *r, tm_error *error) {
  static const char expected[] = "a graph file, which begins with {\"tensormorph_graph\": 1, \"items\": [";
  tm_json_token token;
  if (tm_json_next(&r->json, &token) != TM_JSON_OBJECT_BEGIN) return tm_graph_unexpected(&r->json, &token, expected, error);
  TM_TRY(expect_key(r, "tensormorph_graph", expected, error));
  if (tm_json_next(&r->json, &token) != TM_JSON_NUMBER || !token.is_integer)
    return tm_graph_unexpected(&r->json, &token, expected, error);
  if (token.integer != TM_GRAPH_FILE_VERSION)
    return tm_fail(error, TM_ERROR_CORRUPT, "a graph file of version %llu, expected %u, which this library reads",
                   (unsigned long long)token.integer, TM_GRAPH_FILE_VERSION);
  TM_TRY(expect_key(r, "items", expected, error));
  return tm_json_next(&r->json, &token) == TM_JSON_ARRAY_BEGIN ? TM_OK : tm_graph_unexpected(&r->json, &token, expected, error);
}

static tm_status read_all(reader *r, tm_error *error) {
  tm_json_token token;
  TM_TRY(read_version(r, error));
  while (tm_json_next(&r->json, &token) != TM_JSON_ARRAY_END) {
    TM_TRY(tm_graph_item_read(&r->json, &token, &r->item, error));
    TM_TRY(check_reads(r, error));
    TM_TRY(add_item(r, error));
  }
  if (tm_json_next(&r->json, &token) != TM_JSON_OBJECT_END)
    return tm_graph_unexpected(&r->json, &token, "the end of the graph", error);
  if (tm_json_next(&r->json, &token) == TM_JSON_END) return TM_OK;
  return tm_graph_unexpected(&r->json, &token, "nothing behind the graph", error);
}

tm_status tm_graph_read(tm_graph *graph, const char *text, uint64_t length, tm_error *error) {
  reader r = { .graph = graph };
  tm_error inner = TM_ERROR_INIT;
  tm_json_init(&r.json, text, length);
  const tm_status status = read_all(&r, &inner);
  if (status == TM_OK) return TM_OK;
  /* What a caller may not do by hand, a file may not say. */
  return tm_fail(error, status == TM_ERROR_ARGUMENT ? TM_ERROR_CORRUPT : status, "%s", inner.text);
}

static tm_status read_open(tm_graph *graph, const tm_file *file, tm_error *error) {
  const uint64_t bytes = tm_file_size(file);
  if (bytes > MOST_FILE_BYTES)
    return tm_fail(error, TM_ERROR_LIMIT, "%llu bytes, expected at most %llu for a graph", (unsigned long long)bytes,
                   (unsigned long long)MOST_FILE_BYTES);
  char *text = tm_memory_alloc(graph->memory, bytes, 0);
  if (text == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)bytes);
  tm_status status = tm_file_read(file, 0, text, bytes, error);
  if (status == TM_OK) status = tm_graph_read(graph, text, bytes, error);
  tm_memory_free(graph->memory, text, bytes);
  return status;
}

tm_status tm_graph_read_file(tm_graph *graph, const char *path, tm_error *error) {
  tm_file *file = NULL;
  TM_TRY(tm_file_open(graph->memory, path, 0, &file, error));
  const tm_status status = read_open(graph, file, error);
  if (status != TM_OK) tm_error_prefix(error, "%s", tm_file_label(file));
  tm_file_close(file);
  return status;
}
