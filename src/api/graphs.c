/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as the application builds, asks, saves and loads them; the graph itself is in src/graph. */
#include <string.h>

#include "api/tensor.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "base/replaced_file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "graph/graph_file.h"
#include "graph/graph_text.h"
#include "tensor/shape.h"

_Static_assert(TM_NO_VALUE == TM_GRAPH_NONE && TM_NO_NODE == TM_GRAPH_NONE, "the same numbers inside and outside");
_Static_assert(TM_VALUE_INPUT == TM_GRAPH_INPUT && TM_VALUE_CONSTANT == TM_GRAPH_CONSTANT && TM_VALUE_STATE == TM_GRAPH_STATE &&
               TM_VALUE_RESULT == TM_GRAPH_RESULT && TM_VALUE_VIEW == TM_GRAPH_VIEW, "the same kinds inside and outside");
_Static_assert(TM_GRAPH_TEXT == TM_FORM_TEXT && TM_GRAPH_DOT == TM_FORM_DOT && TM_GRAPH_JSON == TM_FORM_JSON,
               "the same forms inside and outside");

/* ---- building ---- */

tm_status tm_graph_create(tm_context *context, tm_graph **out_graph, tm_error *error) {
  tm_graph *graph = tm_memory_calloc(&context->memory, 1, sizeof *graph);
  if (graph == NULL)
    return tm_memory_name_limit(&context->memory, tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a graph"), error);
  tm_graph_init(graph, &context->memory);
  graph->owner = context;
  *out_graph = graph;
  return TM_OK;
}

void tm_graph_destroy(tm_graph *graph) {
  if (graph == NULL) return;
  tm_memory *memory = graph->memory;
  tm_graph_deinit(graph);
  tm_memory_free(memory, graph, sizeof *graph);
}

/* The layout of what is called `what` and `name`. */
static tm_status complete(const tm_operand *layout, const char *what, const char *name, tm_operand *out_operand, tm_error *error) {
  const tm_status status = tm_layout_complete(layout, out_operand, error);
  if (status == TM_OK) return TM_OK;
  char shown[TM_GRAPH_LABEL_CAPACITY];
  tm_text_escape(name == NULL ? "" : name, name == NULL ? 0 : strlen(name), shown, sizeof shown);
  tm_error_prefix(error, "%s '%s'", what, shown);
  return status;
}

tm_status tm_graph_input(tm_graph *graph, const char *name, const tm_operand *layout, uint32_t *out_value, tm_error *error) {
  tm_operand operand;
  TM_TRY(complete(layout, "input", name, &operand, error));
  return tm_memory_name_limit(graph->memory, tm_graph_add_input(graph, name, &operand, out_value, error), error);
}

tm_status tm_graph_state(tm_graph *graph, const char *name, const tm_operand *layout, uint32_t *out_value, tm_error *error) {
  tm_operand operand;
  TM_TRY(complete(layout, "state", name, &operand, error));
  return tm_memory_name_limit(graph->memory, tm_graph_add_state(graph, name, &operand, out_value, error), error);
}

static tm_status check_tensor(const tm_graph *graph, const tm_tensor *tensor, tm_error *error) {
  if (tensor == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "a constant without a tensor");
  if (tensor->context == graph->owner) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "the tensor of a constant is of another context than the graph");
}

/* The application promises by making it a constant of a graph that its bytes stay, whatever it said of the tensor. */
static tm_status bind(tm_graph *graph, uint32_t value, tm_tensor *tensor, tm_error *error) {
  tm_context *context = tensor->context;
  tm_operand operand = tensor->operand;
  operand.alignment = tm_alignment_of(tensor->data);
  const uint64_t origin = tensor->origin != 0 ? tensor->origin : tm_kept_new_origin(&context->kept);
  const tm_status status = tm_graph_bind_constant(graph, value, &operand, tensor->data, origin, tensor, error);
  return tm_memory_name_limit(graph->memory, status, error);
}

tm_status tm_graph_constant(tm_graph *graph, const char *name, tm_tensor *tensor, uint32_t *out_value, tm_error *error) {
  uint32_t value;
  TM_TRY(check_tensor(graph, tensor, error));
  TM_TRY(tm_memory_name_limit(graph->memory, tm_graph_add_constant(graph, name, &tensor->operand, &value, error), error));
  TM_TRY(bind(graph, value, tensor, error));
  *out_value = value;
  return TM_OK;
}

tm_status tm_graph_carry(tm_graph *graph, uint32_t state, uint32_t value, tm_error *error) {
  return tm_memory_name_limit(graph->memory, tm_graph_add_carry(graph, state, value, error), error);
}

tm_status tm_graph_view(tm_graph *graph, uint32_t value, const tm_operand *layout, uint64_t offset_bytes, uint32_t *out_value,
                        tm_error *error) {
  tm_operand operand;
  const tm_status status = tm_layout_complete(layout, &operand, error);
  if (status != TM_OK) {
    tm_error_prefix(error, "a view of value %u", value);
    return status;
  }
  return tm_memory_name_limit(graph->memory, tm_graph_add_view(graph, value, &operand, offset_bytes, out_value, error), error);
}

tm_status tm_graph_node(tm_graph *graph, const char *name, uint32_t op, const void *attributes, uint32_t attribute_bytes,
                        const uint32_t *inputs, uint32_t input_count, const tm_operand *outputs, uint32_t output_count,
                        uint32_t *out_values, tm_error *error) {
  const tm_node_request request = {
    .name = name,
    .op = op,
    .attributes = attributes,
    .attribute_bytes = attribute_bytes,
    .input_count = input_count,
    .inputs = inputs,
    .outputs = outputs,
    .output_count = output_count,
  };
  if (out_values == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "a node without a place for the numbers of its outputs");
  return tm_memory_name_limit(graph->memory, tm_graph_add_node(graph, &request, out_values, error), error);
}

tm_status tm_graph_output(tm_graph *graph, const char *name, uint32_t value, tm_error *error) {
  return tm_graph_add_output(graph, name, value, error);
}

/* ---- asking ---- */

static uint32_t unbound_count(const tm_graph *graph) {
  uint32_t count = 0;
  for (uint64_t i = 0; i < graph->constants.count; i++) count += graph->values[graph->constants.values[i]].owner == NULL;
  return count;
}

void tm_graph_describe(const tm_graph *graph, tm_graph_description *out_description) {
  const tm_graph_description description = {
    .struct_size = out_description->struct_size,
    .sealed = atomic_load(&graph->is_sealed),
    .value_count = graph->value_count,
    .node_count = graph->node_count,
    .input_count = (uint32_t)graph->inputs.count,
    .constant_count = (uint32_t)graph->constants.count,
    .state_count = (uint32_t)graph->states.count,
    .output_count = graph->output_count,
    .unbound_count = unbound_count(graph),
  };
  tm_copy_out(out_description, &description, sizeof description);
}

tm_status tm_graph_value_describe(const tm_graph *graph, uint32_t value, tm_value_description *out_description) {
  if (value >= graph->value_count) return TM_END;
  const tm_value *one = &graph->values[value];
  const tm_value_description description = {
    .struct_size = out_description->struct_size,
    .kind = one->kind,
    .name = one->name.data,
    .layout = one->operand,
    .index = one->index,
    .node = one->node,
    .base = one->base,
    .carry = one->carry,
    .offset_bytes = one->offset_bytes,
    .bound = one->owner != NULL,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_graph_find(const tm_graph *graph, const char *name, uint32_t *out_value) {
  const tm_string wanted = { .data = name, .length = strlen(name) };
  const bool found = tm_name_table_find(&graph->value_names, graph->values, sizeof *graph->values, wanted, out_value);
  return found ? TM_OK : TM_ERROR_NOT_FOUND;
}

tm_status tm_graph_node_describe(const tm_graph *graph, uint32_t node, tm_node_description *out_description) {
  if (node >= graph->node_count) return TM_END;
  const tm_node *one = &graph->nodes[node];
  const tm_node_description description = {
    .struct_size = out_description->struct_size,
    .op = one->row->op,
    .name = one->name.data,
    .op_name = one->row->name,
    .attributes = one->attributes,
    .inputs = one->inputs,
    .outputs = one->outputs,
    .attribute_bytes = one->row->attribute_bytes,
    .input_count = one->input_count,
    .output_count = one->row->output_count,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_graph_output_describe(const tm_graph *graph, uint32_t output, tm_graph_output_description *out_description) {
  if (output >= graph->output_count) return TM_END;
  const tm_graph_output_description description = {
    .struct_size = out_description->struct_size,
    .value = graph->outputs[output].value,
    .name = graph->outputs[output].name.data,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_graph_print(const tm_graph *graph, uint32_t form, char *out_text, uint64_t capacity, uint64_t *out_length,
                         tm_error *error) {
  if (form > TM_GRAPH_JSON)
    return tm_fail(error, TM_ERROR_ARGUMENT, "form %u of a graph, expected 0 (text), 1 (DOT) or 2 (JSON)", form);
  if (out_text == NULL && capacity != 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "no place for %llu bytes", (unsigned long long)capacity);
  *out_length = tm_graph_write(graph, (tm_graph_form)form, NULL, out_text, capacity);
  return TM_OK;
}

/* ---- saving and loading ---- */

/* Of all bytes that it touches; those of a file that changed meanwhile are worthless. */
static tm_status digest_tensor(const tm_tensor *tensor, uint8_t *out_digest, tm_error *error) {
  tm_sha256 hash;
  tm_sha256_init(&hash);
  if (tensor->operand.byte_count != 0)
    tm_sha256_add(&hash, tensor->data - tm_operand_bytes_below(&tensor->operand), tensor->operand.byte_count);
  tm_sha256_finish(&hash, out_digest);
  const bool is_in_file = tensor->checkpoint != NULL && tensor->owned == NULL;
  return !is_in_file ? TM_OK : tm_checkpoint_verify(tensor->checkpoint, error);
}

static tm_status digest_constants(const tm_graph *graph, tm_graph_digest *digests, tm_error *error) {
  for (uint64_t i = 0; i < graph->constants.count; i++) {
    const tm_tensor *tensor = graph->values[graph->constants.values[i]].owner;
    if (tensor == NULL) continue;
    TM_TRY(digest_tensor(tensor, digests[i].bytes, error));
    digests[i].is_known = true;
  }
  return TM_OK;
}

static tm_status write_file(const tm_graph *graph, const char *path, const tm_graph_digest *digests, tm_error *error) {
  const uint64_t length = tm_graph_write(graph, TM_FORM_JSON, digests, NULL, 0);
  char *text = tm_memory_alloc(graph->memory, length + 1, 0);
  if (text == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for %llu bytes of text", (unsigned long long)length);
  tm_graph_write(graph, TM_FORM_JSON, digests, text, length + 1);
  const tm_status status = tm_file_replace(path, text, length, error);
  tm_memory_free(graph->memory, text, length + 1);
  return status;
}

tm_status tm_graph_save(const tm_graph *graph, const char *path, uint32_t flags, tm_error *error) {
  if ((flags & ~TM_GRAPH_SAVE_DIGESTS) != 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "unknown flags 0x%x for saving a graph", flags);
  if ((flags & TM_GRAPH_SAVE_DIGESTS) == 0) return write_file(graph, path, NULL, error);
  tm_graph_digest *digests = tm_memory_calloc(graph->memory, graph->constants.count, sizeof *digests);
  if (digests == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for digests");
  tm_status status = digest_constants(graph, digests, error);
  if (status == TM_OK) status = write_file(graph, path, digests, error);
  tm_memory_free(graph->memory, digests, graph->constants.count * sizeof *digests);
  return status;
}

tm_status tm_graph_load(tm_context *context, const char *path, tm_graph **out_graph, tm_error *error) {
  tm_graph *graph;
  TM_TRY(tm_graph_create(context, &graph, error));
  const tm_status status = tm_memory_name_limit(&context->memory, tm_graph_read_file(graph, path, error), error);
  if (status == TM_OK) *out_graph = graph;
  else tm_graph_destroy(graph);
  return status;
}

static tm_status check_digest(const tm_graph *graph, uint32_t value, const tm_tensor *tensor, tm_error *error) {
  const uint8_t *expected = graph->values[value].digest;
  uint8_t found[TM_SHA256_BYTES];
  TM_TRY(digest_tensor(tensor, found, error));
  if (memcmp(found, expected, sizeof found) == 0) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT,
                 "constant '%s': the tensor's SHA-256 begins with %02x%02x%02x%02x, expected %02x%02x%02x%02x as in the file",
                 graph->values[value].name.data, found[0], found[1], found[2], found[3], expected[0], expected[1], expected[2],
                 expected[3]);
}

tm_status tm_graph_bind(tm_graph *graph, uint32_t value, tm_tensor *tensor, tm_error *error) {
  TM_TRY(check_tensor(graph, tensor, error));
  TM_TRY(tm_graph_check_bindable(graph, value, &tensor->operand, error));
  if (graph->values[value].digest != NULL) TM_TRY(check_digest(graph, value, tensor, error));
  return bind(graph, value, tensor, error);
}
