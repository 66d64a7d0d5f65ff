/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors of an ONNX model: initializers and the values of Constant nodes, of the graph, of the graphs inside its nodes
 * (the branches of If, the body of Loop and Scan) and of its functions.  The graph itself is passed over.  The file is walked
 * as protobuf without being loaded: docs/decisions/016-onnx-reader.md.
 *
 * A tensor of the main graph has its own name.  One inside a node's graph has the node's first output and the attribute's name
 * before it: "output:then_branch:weight".  Names of nodes would read better, but need not differ from each other.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/bytes.h"
#include "formats/onnx.h"
#include "formats/reader.h"

/* Graphs in nodes of graphs in nodes ..., at most; models have a few. */
#define MOST_DEPTH 32u
#define FIRST_GRAPH_DEPTH 1u

/* Where a graph is: what its tensors' names begin with. */
typedef struct graph_scope {
  tm_string prefix;             /* "" or with a / at its end; in the archive's arena */
  uint32_t  depth;
} graph_scope;

typedef struct node_parts {
  tm_wire_range name, first_output, op_type;
  bool          has_output;
  bool          is_constant;
  uint32_t      attribute_count;
} node_parts;

typedef struct attribute_parts {
  tm_wire_range name;
  uint64_t      value_count;    /* tensors, graphs and sparse tensors in it */
  uint32_t      numbers_field;  /* 2: f, 3: i, 7: floats, 8: ints */
} attribute_parts;

/* Ends a loop over fields: at the end of the message all is well, at the end of the file the caller stops too. */
static tm_status end_loop(const tm_onnx *parser, tm_status status) {
  return status == TM_END && !parser->wire.is_cut ? TM_OK : status;
}

/* ------------------------------------------------------------------------------------------------------- names ---- */

/* Puts the scope and a name of the file together, in parser->name. */
static tm_status make_name(tm_onnx *parser, const graph_scope *scope, tm_wire_range name, const char *ending, tm_string *out_name) {
  const uint64_t bytes = name.end - name.at, ending_bytes = strlen(ending);
  const unsigned char *data = NULL;
  if (bytes > TM_ONNX_LONGEST_NAME || scope->prefix.length + bytes + ending_bytes > TM_ONNX_LONGEST_NAME)
    return tm_onnx_fail(parser, "the name at offset %" PRIu64 " claims %" PRIu64 " bytes; %" PRIu64 " are allowed with the names "
                        "around it", name.at, bytes, TM_ONNX_LONGEST_NAME);
  TM_TRY(tm_wire_count(&parser->wire, scope->prefix.length));   /* a long one before ever so many short names */
  memcpy(parser->name, scope->prefix.data, (size_t)scope->prefix.length);
  if (bytes != 0) {
    TM_TRY(tm_wire_take(&parser->wire, name, &data));
    memcpy(parser->name + scope->prefix.length, data, (size_t)bytes);
  }
  memcpy(parser->name + scope->prefix.length + bytes, ending, (size_t)ending_bytes + 1);
  *out_name = (tm_string){ parser->name, scope->prefix.length + bytes + ending_bytes };
  return TM_OK;
}

/* What an attribute's tensor is called, or, ending in a colon, what the names of its graph's tensors begin with: the scope, the
   node, the attribute and, among several values of one, its number. */
static tm_status make_path(tm_onnx *parser, const graph_scope *scope, tm_wire_range label, tm_wire_range attribute, uint64_t number,
                           const char *ending, tm_string *out_path) {
  char last[32];
  tm_string name;
  TM_TRY(make_name(parser, scope, label, ":", &name));
  const graph_scope middle = { { tm_arena_string(&parser->archive->arena, name.data, name.length), name.length }, scope->depth };
  if (middle.prefix.data == NULL) return tm_onnx_fail_memory(parser);
  if (number > 0) (void)snprintf(last, sizeof last, ".%" PRIu64 "%s", number, ending);
  TM_TRY(make_name(parser, &middle, attribute, number > 0 ? last : ending, &name));
  *out_path = (tm_string){ tm_arena_string(&parser->archive->arena, name.data, name.length), name.length };
  return out_path->data == NULL ? tm_onnx_fail_memory(parser) : TM_OK;
}

/* ----------------------------------------------------------------------------------------------------- tensors ---- */

static tm_status read_initializer(tm_onnx *parser, const graph_scope *scope, tm_wire_range message) {
  tm_onnx_tensor tensor = { .rank = 0 };
  TM_TRY(tm_onnx_read_tensor(parser, message, &tensor));
  TM_TRY(make_name(parser, scope, tensor.own_name, "", &tensor.name));
  return tm_onnx_add_tensor(parser, &tensor);
}

/* A tensor that is named after something else than itself. */
static tm_status read_named(tm_onnx *parser, const graph_scope *scope, tm_wire_range message, tm_wire_range name, const char *ending) {
  tm_onnx_tensor tensor = { .rank = 0 };
  TM_TRY(tm_onnx_read_tensor(parser, message, &tensor));
  TM_TRY(make_name(parser, scope, name, ending, &tensor.name));
  return tm_onnx_add_tensor(parser, &tensor);
}

static tm_status note_sparse(tm_onnx *parser, tm_string name) {
  char text[300];
  (void)snprintf(text, sizeof text, "\"%s\" is sparse; its values and their indices are listed, each as a tensor",
                 tm_show_name(name).text);
  return tm_archive_add_note(parser->archive, text, parser->error);
}

/* Two tensors: the values, whose name is the sparse one's, and the indices. */
static tm_status read_sparse(tm_onnx *parser, const graph_scope *scope, tm_wire_range message, const tm_wire_range *given_name) {
  const uint64_t begin = message.at;
  tm_wire_range parts[2] = { { 0, 0 }, { 0, 0 } };
  tm_onnx_tensor values = { .rank = 0 };
  tm_wire_field field;
  tm_status status;
  tm_string name;
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK)
    if (field.type == TM_WIRE_LENGTH && (field.number == 1 || field.number == 2)) parts[field.number - 1] = field.content;
  if (status != TM_END || parser->wire.is_cut) return status;
  if (parts[0].end == 0 || parts[1].end == 0)
    return tm_onnx_fail(parser, "the sparse tensor at offset %" PRIu64 " has no values or no indices", begin);
  TM_TRY(tm_onnx_read_tensor(parser, parts[0], &values));
  const tm_wire_range own = given_name != NULL ? *given_name : values.own_name;
  TM_TRY(make_name(parser, scope, own, "", &name));
  TM_TRY(note_sparse(parser, name));
  TM_TRY(read_named(parser, scope, parts[0], own, ":values"));
  return read_named(parser, scope, parts[1], own, ":indices");
}

/* The value of a Constant that is numbers in the attribute itself: one (0-d), or a list. */
static tm_status read_numbers(tm_onnx *parser, const graph_scope *scope, tm_wire_range message, const attribute_parts *attribute,
                              tm_wire_range name) {
  const bool is_float = attribute->numbers_field == 2 || attribute->numbers_field == 7;
  const bool is_list = attribute->numbers_field > 3;
  tm_onnx_tensor tensor = { .offset = message.at, .rank = is_list ? 1 : 0, .data_type = is_float ? TM_ONNX_FLOAT : TM_ONNX_INT64,
                            .typed_field = is_float ? TM_ONNX_FLOAT_DATA : TM_ONNX_INT64_DATA };
  tm_wire_field field;
  tm_status status;
  parser->segment_count = 0;
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK) {
    if (field.number != attribute->numbers_field) continue;
    if (!is_list) parser->segment_count = 0;            /* of a single value the last one counts */
    TM_TRY(tm_onnx_add_segment(parser, field.content));
  }
  if (status != TM_END || parser->wire.is_cut) return status;
  TM_TRY(tm_onnx_count_numbers(parser, &tensor, &tensor.dims[0]));
  TM_TRY(make_name(parser, scope, name, "", &tensor.name));
  return tm_onnx_add_tensor(parser, &tensor);
}

/* -------------------------------------------------------------------------------------------------- attributes ---- */

static tm_wire_range label_of(const node_parts *node) { return node->has_output ? node->first_output : node->name; }

static tm_status read_graph(tm_onnx *parser, tm_wire_range message, const graph_scope *scope);

static bool holds_value(uint32_t number) {
  return number == 5 || number == 6 || number == 10 || number == 11 || number == 22 || number == 23;
}

static tm_status scan_attribute(tm_onnx *parser, tm_wire_range message, attribute_parts *out_parts) {
  tm_wire_field field;
  tm_status status;
  *out_parts = (attribute_parts){ .numbers_field = 0 };
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK) {
    const bool has_length = field.type == TM_WIRE_LENGTH;
    if (field.number == 1 && has_length) out_parts->name = field.content;
    if (holds_value(field.number) && has_length) out_parts->value_count++;
    if (field.number == 2 || field.number == 3 || field.number == 7 || field.number == 8) out_parts->numbers_field = field.number;
  }
  return end_loop(parser, status);
}

/* What an operation is told, such as what ConstantOfShape fills with, is no weight unless it is more than one number. */
static tm_status read_told(tm_onnx *parser, const graph_scope *scope, const node_parts *node, tm_wire_range attribute,
                           tm_wire_range message, uint64_t number) {
  tm_onnx_tensor tensor = { .rank = 0 };
  uint64_t count;
  TM_TRY(tm_onnx_read_tensor(parser, message, &tensor));
  if (tm_count_elements(tensor.dims, tensor.rank, &count) && count <= 1) return TM_OK;
  TM_TRY(make_path(parser, scope, label_of(node), attribute, number, "", &tensor.name));
  return tm_onnx_add_tensor(parser, &tensor);
}

static tm_status read_inner_graph(tm_onnx *parser, const graph_scope *outer, const node_parts *node, tm_wire_range attribute,
                                  tm_wire_range message, uint64_t number) {
  graph_scope inner = { .depth = outer->depth + 1 };
  if (inner.depth > MOST_DEPTH)
    return tm_onnx_fail(parser, "graphs are nested deeper than %u at offset %" PRIu64, MOST_DEPTH, message.at);
  TM_TRY(make_path(parser, outer, label_of(node), attribute, number, ":", &inner.prefix));
  return read_graph(parser, message, &inner);
}

static tm_status read_value(tm_onnx *parser, const graph_scope *scope, const node_parts *node, tm_wire_range attribute,
                            const tm_wire_field *value, uint64_t number) {
  if (value->number == 6 || value->number == 11) return read_inner_graph(parser, scope, node, attribute, value->content, number);
  if (value->number == 22 || value->number == 23)
    return node->is_constant ? read_sparse(parser, scope, value->content, &node->first_output) : TM_OK;
  if (node->is_constant) return read_named(parser, scope, value->content, node->first_output, "");
  return read_told(parser, scope, node, attribute, value->content, number);
}

static tm_status read_attribute(tm_onnx *parser, const graph_scope *scope, const node_parts *node, tm_wire_range message) {
  attribute_parts attribute;
  tm_wire_field field;
  tm_status status;
  uint64_t number = 0;
  TM_TRY(scan_attribute(parser, message, &attribute));
  if (attribute.value_count == 0 && attribute.numbers_field != 0 && node->is_constant)
    return read_numbers(parser, scope, message, &attribute, node->first_output);
  if (attribute.value_count == 0) return TM_OK;
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK) {
    if (!holds_value(field.number) || field.type != TM_WIRE_LENGTH) continue;
    TM_TRY(read_value(parser, scope, node, attribute.name, &field, attribute.value_count > 1 ? ++number : 0));
  }
  return end_loop(parser, status);
}

/* ------------------------------------------------------------------------------------------------------- nodes ---- */

static tm_status scan_node(tm_onnx *parser, tm_wire_range message, node_parts *out_parts) {
  tm_wire_field field;
  tm_status status;
  *out_parts = (node_parts){ .has_output = false };
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK) {
    if (field.type != TM_WIRE_LENGTH) continue;
    if (field.number == 2 && !out_parts->has_output) {
      out_parts->first_output = field.content;
      out_parts->has_output = true;
    }
    if (field.number == 3) out_parts->name = field.content;
    if (field.number == 4) out_parts->op_type = field.content;
    if (field.number == 5) out_parts->attribute_count++;
  }
  return end_loop(parser, status);
}

static tm_status find_operation(tm_onnx *parser, node_parts *node) {
  static const char constant[] = "Constant";
  const unsigned char *data;
  if (node->op_type.end - node->op_type.at != sizeof constant - 1) return TM_OK;
  TM_TRY(tm_wire_take(&parser->wire, node->op_type, &data));
  node->is_constant = memcmp(data, constant, sizeof constant - 1) == 0;
  return TM_OK;
}

/* Twice over a node: what its attributes' tensors are called may stand behind them. */
static tm_status read_node(tm_onnx *parser, const graph_scope *scope, tm_wire_range message) {
  node_parts node;
  tm_wire_field field;
  tm_status status;
  TM_TRY(scan_node(parser, message, &node));
  if (node.attribute_count == 0) return TM_OK;
  TM_TRY(find_operation(parser, &node));
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK)
    if (field.number == 5 && field.type == TM_WIRE_LENGTH) TM_TRY(read_attribute(parser, scope, &node, field.content));
  return end_loop(parser, status);
}

static tm_status add_text(tm_onnx *parser, const char *key, tm_wire_range range) {
  tm_string text;
  if (range.at == range.end) return TM_OK;
  TM_TRY(tm_onnx_text(parser, range, &text));
  const tm_metadata_value value = { .type = TM_METADATA_STRING, .count = 1, .data = text.data, .bytes = text.length };
  return tm_archive_add_metadata(parser->archive, (tm_string){ key, strlen(key) }, &value, parser->error);
}

static tm_status read_graph(tm_onnx *parser, tm_wire_range message, const graph_scope *scope) {
  tm_wire_field field;
  tm_status status;
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK) {
    if (field.type != TM_WIRE_LENGTH) continue;
    if (field.number == 1) TM_TRY(read_node(parser, scope, field.content));
    if (field.number == 2 && scope->depth == FIRST_GRAPH_DEPTH) TM_TRY(add_text(parser, "graph", field.content));
    if (field.number == 5) TM_TRY(read_initializer(parser, scope, field.content));
    if (field.number == 15) TM_TRY(read_sparse(parser, scope, field.content, NULL));
  }
  return end_loop(parser, status);
}

/* "domain.name:" or "domain.name.overload:", which together are unique. */
static tm_status name_function(tm_onnx *parser, const tm_wire_range *parts, graph_scope *scope) {
  const bool has_overload = parts[2].at != parts[2].end;
  for (int i = 0; i < 3; i++) {
    tm_string name;
    if (parts[i].at == parts[i].end) continue;
    TM_TRY(make_name(parser, scope, parts[i], i == 0 || (i == 1 && has_overload) ? "." : ":", &name));
    scope->prefix = (tm_string){ tm_arena_string(&parser->archive->arena, name.data, name.length), name.length };
    if (scope->prefix.data == NULL) return tm_onnx_fail_memory(parser);
  }
  return TM_OK;
}

static tm_status read_function(tm_onnx *parser, tm_wire_range message) {
  graph_scope scope = { { "", 0 }, FIRST_GRAPH_DEPTH };
  tm_wire_range whole = message, parts[3] = { { 0, 0 }, { 0, 0 }, { 0, 0 } };   /* domain, name, overload */
  tm_wire_field field;
  tm_status status;
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK) {
    if (field.type != TM_WIRE_LENGTH) continue;
    if (field.number == 10) parts[0] = field.content;
    if (field.number == 1) parts[1] = field.content;
    if (field.number == 13) parts[2] = field.content;
  }
  if (status != TM_END || parser->wire.is_cut) return status;
  TM_TRY(name_function(parser, parts, &scope));
  while ((status = tm_wire_next(&parser->wire, &whole, &field)) == TM_OK)
    if (field.number == 7 && field.type == TM_WIRE_LENGTH) TM_TRY(read_node(parser, &scope, field.content));
  return end_loop(parser, status);
}

/* ---------------------------------------------------------------------------------------------------- metadata ---- */

static tm_status add_number(tm_onnx *parser, const char *key, uint64_t number) {
  unsigned char *data = tm_arena_alloc(&parser->archive->arena, sizeof number);
  if (data == NULL) return tm_onnx_fail_memory(parser);
  tm_store_le(data, number, sizeof number);
  const tm_metadata_value value = { .type = TM_METADATA_I64, .count = 1, .data = data, .bytes = sizeof number };
  return tm_archive_add_metadata(parser->archive, (tm_string){ key, strlen(key) }, &value, parser->error);
}

/* "opset.ai.onnx": the domain without a name is that of the specification. */
static tm_status read_opset(tm_onnx *parser, tm_wire_range message) {
  const graph_scope scope = { { "opset.", 6 }, 0 };
  tm_wire_range domain = { 0, 0 };
  tm_wire_field field;
  tm_status status;
  tm_string key;
  uint64_t version = 0;
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK) {
    if (field.number == 1 && field.type == TM_WIRE_LENGTH) domain = field.content;
    if (field.number == 2) version = field.value;
  }
  if (status != TM_END || parser->wire.is_cut) return status;
  TM_TRY(make_name(parser, &scope, domain, domain.at == domain.end ? "ai.onnx" : "", &key));
  return add_number(parser, key.data, version);
}

static tm_status read_property(tm_onnx *parser, tm_wire_range message) {
  const graph_scope scope = { { "metadata.", 9 }, 0 };
  tm_wire_range parts[2] = { { 0, 0 }, { 0, 0 } };
  tm_wire_field field;
  tm_status status;
  tm_string key, text;
  while ((status = tm_wire_next(&parser->wire, &message, &field)) == TM_OK)
    if (field.type == TM_WIRE_LENGTH && (field.number == 1 || field.number == 2)) parts[field.number - 1] = field.content;
  if (status != TM_END || parser->wire.is_cut) return status;
  TM_TRY(tm_onnx_text(parser, parts[1], &text));
  TM_TRY(make_name(parser, &scope, parts[0], "", &key));
  const tm_metadata_value value = { .type = TM_METADATA_STRING, .count = 1, .data = text.data, .bytes = text.length };
  return tm_archive_add_metadata(parser->archive, key, &value, parser->error);
}

/* ------------------------------------------------------------------------------------------------------- model ---- */

static tm_status read_main_graph(tm_onnx *parser, tm_wire_range message) {
  const graph_scope scope = { { "", 0 }, FIRST_GRAPH_DEPTH };
  return read_graph(parser, message, &scope);
}

static tm_status read_model_field(tm_onnx *parser, const tm_wire_field *field) {
  const bool has_length = field->type == TM_WIRE_LENGTH;
  switch (field->number) {
    case 1: return has_length ? TM_OK : add_number(parser, "ir_version", field->value);
    case 2: return has_length ? add_text(parser, "producer_name", field->content) : TM_OK;
    case 3: return has_length ? add_text(parser, "producer_version", field->content) : TM_OK;
    case 4: return has_length ? add_text(parser, "domain", field->content) : TM_OK;
    case 5: return has_length ? TM_OK : add_number(parser, "model_version", field->value);
    case 6: return has_length ? add_text(parser, "doc_string", field->content) : TM_OK;
    case 7: return has_length ? read_main_graph(parser, field->content) : TM_OK;
    case 8: return has_length ? read_opset(parser, field->content) : TM_OK;
    case 14: return has_length ? read_property(parser, field->content) : TM_OK;
    case 20: return tm_archive_add_note(parser->archive, "what it holds for training is not listed", parser->error);
    case 25: return has_length ? read_function(parser, field->content) : TM_OK;
    default: return TM_OK;
  }
}

static tm_status fail_cut(const tm_onnx *parser) {
  return tm_onnx_fail(parser, "the file ends at offset %" PRIu64 ", inside its structure: truncated. Was a download interrupted? Fetch "
                      "the file again", parser->wire.file_bytes);
}

/* The file as a message has no end of its own, so what goes on beyond the file is seen here, before it is believed. */
static tm_status read_model(tm_onnx *parser) {
  tm_wire_range message = { 0, UINT64_MAX };
  const uint64_t end = parser->wire.file_bytes;
  tm_wire_field field;
  tm_status status = TM_OK;
  while (status == TM_OK && message.at < end) {
    status = tm_wire_next(&parser->wire, &message, &field);
    if ((parser->wire.is_cut || message.at > end) && !parser->archive->options.allow_incomplete) return fail_cut(parser);
    if (status == TM_OK) status = read_model_field(parser, &field);
  }
  if (message.at > end) parser->wire.is_cut = true;
  return status == TM_END ? TM_OK : status;
}

static tm_status read_parts(tm_onnx *parser, const tm_file *file) {
  (void)snprintf(parser->archive->format_name, sizeof parser->archive->format_name, "onnx");
  TM_TRY(read_model(parser));
  TM_TRY(tm_archive_finish_file(parser->archive, 0, TM_GAPS_ALLOWED, parser->error));
  if (!parser->wire.is_cut) return tm_onnx_open_externals(parser, file);
  if (parser->archive->incomplete_count == 0) return fail_cut(parser);
  return tm_archive_add_note(parser->archive, "the file ends inside its structure: what comes after is not listed", parser->error);
}

static tm_status read_onnx(tm_archive *archive, tm_file *file, tm_error *error) {
  tm_onnx parser = { .archive = archive, .label = tm_file_label(file), .error = error };
  TM_TRY(tm_archive_begin_file(archive, file, error));
  parser.wire = (tm_wire){ .label = parser.label, .file_bytes = tm_file_size(file), .limit_bytes = archive->options.max_header_bytes,
                           .error = error };
  TM_TRY(tm_window_init(&parser.wire.window, archive->memory, file, error));
  parser.name = tm_memory_alloc(archive->memory, TM_ONNX_LONGEST_NAME + 1, 0);
  const tm_status status = parser.name == NULL ? tm_onnx_fail_memory(&parser) : read_parts(&parser, file);
  tm_memory_free(archive->memory, parser.name, TM_ONNX_LONGEST_NAME + 1);
  tm_memory_free(archive->memory, parser.segments, parser.segment_capacity * sizeof *parser.segments);
  tm_memory_free(archive->memory, parser.externals, parser.external_capacity * sizeof *parser.externals);
  tm_window_deinit(&parser.wire.window);
  return status;
}

/* There is no magic.  A model begins with its version (field 1), and what follows are fields that a model has. */
static bool probe_onnx(const tm_head *head) {
  static const unsigned char next_tags[] = { 0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72 };
  return head->count > 4 && head->bytes[0] == 0x08 && head->bytes[1] < 0x80 && head->bytes[1] > 0 &&
         memchr(next_tags, head->bytes[2], sizeof next_tags) != NULL;
}

const tm_reader tm_onnx_reader = {
  .name = "onnx",
  .extension = ".onnx",
  .has_data_files = true,
  .probe = probe_onnx,
  .read = read_onnx,
};
