/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPSILON 1e-5
#define WEIGHTS_PER_LAYER 9u

/* What is being built.  After the first failure nothing more is added. */
typedef struct builder {
  llama_network     *network;
  tm_context        *context;
  const llama_model *model;
  tm_error          *error;
  tm_status          status;
  uint32_t           tokens, capacity;
  uint32_t           positions, start, length;  /* inputs */
} builder;

static tm_operand layout_of(uint32_t format, uint32_t rank, uint64_t a, uint64_t b, uint64_t c) {
  return (tm_operand){ .format = format, .rank = rank, .dims = { a, b, c } };
}

static uint32_t input(builder *b, const char *name, uint32_t rank, uint64_t extent) {
  const tm_operand layout = layout_of(TM_FORMAT_I32, rank, rank == 0 ? 0 : extent, 0, 0);
  uint32_t value = TM_NO_VALUE;
  if (b->status == TM_OK) b->status = tm_graph_input(b->network->graph, name, &layout, &value, b->error);
  return value;
}

/* Weights lie in the file's memory; nothing is copied.  columns 0: a vector. */
static uint32_t weights(builder *b, const char *name, const float *data, uint64_t rows, uint64_t columns) {
  tm_operand layout = layout_of(TM_FORMAT_F32, columns == 0 ? 1 : 2, rows, columns, 0);
  layout.flags = TM_OPERAND_CONSTANT;
  const uint64_t bytes = rows * (columns == 0 ? 1 : columns) * sizeof(float);
  tm_tensor *tensor = NULL;
  uint32_t value = TM_NO_VALUE;
  if (b->status == TM_OK) b->status = tm_tensor_wrap(b->context, &layout, (void *)(uintptr_t)data, bytes, &tensor, b->error);
  if (b->status != TM_OK) return value;
  b->network->weights[b->network->weight_count++] = tensor;
  b->status = tm_graph_constant(b->network->graph, name, tensor, &value, b->error);
  return value;
}

static uint32_t layer_weights(builder *b, uint32_t layer, const char *kind, const float *data, uint64_t rows, uint64_t columns) {
  char name[64];
  snprintf(name, sizeof name, "layers.%u.%s", layer, kind);
  return weights(b, name, data, rows, columns);
}

static uint32_t node(builder *b, uint32_t op, const void *attributes, uint32_t attribute_bytes, const uint32_t *inputs, uint32_t count) {
  uint32_t value = TM_NO_VALUE;
  if (b->status == TM_OK)
    b->status = tm_graph_node(b->network->graph, NULL, op, attributes, attribute_bytes, inputs, count, NULL, 1, &value, b->error);
  return value;
}

static uint32_t apply(builder *b, uint32_t op, uint32_t x) { return node(b, op, NULL, 0, &x, 1); }

static uint32_t combine(builder *b, uint32_t op, uint32_t x, uint32_t y) {
  const uint32_t inputs[] = { x, y };
  return node(b, op, NULL, 0, inputs, 2);
}

static uint32_t normalize(builder *b, uint32_t x, uint32_t scale) {
  const tm_norm_attributes attributes = { EPSILON };
  const uint32_t inputs[] = { x, scale };
  return node(b, TM_OP_RMS_NORM, &attributes, sizeof attributes, inputs, 2);
}

/* x W^T: a row of W is what makes one output. */
static uint32_t project(builder *b, uint32_t x, uint32_t matrix) {
  const tm_matmul_attributes attributes = { .transpose_b = 1 };
  const uint32_t inputs[] = { x, matrix };
  return node(b, TM_OP_MATMUL, &attributes, sizeof attributes, inputs, 2);
}

static uint32_t view(builder *b, uint32_t x, tm_operand layout, uint64_t offset_bytes) {
  uint32_t value = TM_NO_VALUE;
  if (b->status == TM_OK) b->status = tm_graph_view(b->network->graph, x, &layout, offset_bytes, &value, b->error);
  return value;
}

static uint32_t split_heads(builder *b, uint32_t x, uint32_t heads) {
  return view(b, x, layout_of(TM_FORMAT_F32, 3, b->tokens, heads, b->model->head), 0);
}

static uint32_t rotate(builder *b, uint32_t x) {
  const tm_rope_attributes attributes = { .layout = TM_ROPE_PAIRS };
  const uint32_t inputs[] = { x, b->positions };
  return node(b, TM_OP_ROPE, &attributes, sizeof attributes, inputs, 2);
}

/* Appends rows to what earlier runs left. */
static uint32_t remember(builder *b, uint32_t layer, const char *kind, uint32_t rows) {
  char name[64];
  snprintf(name, sizeof name, "layers.%u.%s", layer, kind);
  const tm_operand layout = layout_of(TM_FORMAT_F32, 3, b->capacity, b->model->kv_heads, b->model->head);
  uint32_t state = TM_NO_VALUE;
  if (b->status == TM_OK) b->status = tm_graph_state(b->network->graph, name, &layout, &state, b->error);
  const tm_axis_attributes attributes = { .axis = 0 };
  const uint32_t inputs[] = { state, rows, b->start };
  const uint32_t all = node(b, TM_OP_UPDATE, &attributes, sizeof attributes, inputs, 3);
  if (b->status == TM_OK) b->status = tm_graph_carry(b->network->graph, state, all, b->error);
  return all;
}

static uint32_t attend(builder *b, uint32_t layer, uint32_t x) {
  const llama_model *m = b->model;
  const llama_layer *w = &m->layer[layer];
  const uint32_t normal = normalize(b, x, layer_weights(b, layer, "attention_norm", w->attention_norm, m->dim, 0));
  const uint32_t q = project(b, normal, layer_weights(b, layer, "wq", w->wq, m->dim, m->dim));
  const uint32_t k = project(b, normal, layer_weights(b, layer, "wk", w->wk, m->kv_dim, m->dim));
  const uint32_t v = project(b, normal, layer_weights(b, layer, "wv", w->wv, m->kv_dim, m->dim));
  const uint32_t query = rotate(b, split_heads(b, q, m->heads));
  const uint32_t keys = remember(b, layer, "keys", rotate(b, split_heads(b, k, m->kv_heads)));
  const uint32_t values = remember(b, layer, "values", split_heads(b, v, m->kv_heads));
  const tm_attention_attributes attributes = { .causal = 1 };
  const uint32_t inputs[] = { query, keys, values, b->length };
  const uint32_t heads = node(b, TM_OP_ATTENTION, &attributes, sizeof attributes, inputs, 4);
  const uint32_t joined = view(b, heads, layout_of(TM_FORMAT_F32, 2, b->tokens, m->dim, 0), 0);
  return combine(b, TM_OP_ADD, x, project(b, joined, layer_weights(b, layer, "wo", w->wo, m->dim, m->dim)));
}

static uint32_t feed_forward(builder *b, uint32_t layer, uint32_t x) {
  const llama_model *m = b->model;
  const llama_layer *w = &m->layer[layer];
  const uint32_t normal = normalize(b, x, layer_weights(b, layer, "ffn_norm", w->ffn_norm, m->dim, 0));
  const uint32_t gate = apply(b, TM_OP_SILU, project(b, normal, layer_weights(b, layer, "w1", w->w1, m->hidden, m->dim)));
  const uint32_t up = project(b, normal, layer_weights(b, layer, "w3", w->w3, m->hidden, m->dim));
  const uint32_t down = project(b, combine(b, TM_OP_MUL, gate, up), layer_weights(b, layer, "w2", w->w2, m->dim, m->hidden));
  return combine(b, TM_OP_ADD, x, down);
}

static void build(builder *b) {
  const llama_model *m = b->model;
  const uint32_t tokens = input(b, "tokens", 1, b->tokens);
  b->positions = input(b, "positions", 1, b->tokens);
  b->start = input(b, "start", 0, 0);
  b->length = input(b, "length", 0, 0);
  const uint32_t embedding = weights(b, "embedding", m->embedding, m->vocabulary, m->dim);
  const tm_axis_attributes rows = { .axis = 0 };
  const uint32_t inputs[] = { embedding, tokens };
  uint32_t x = node(b, TM_OP_GATHER, &rows, sizeof rows, inputs, 2);
  for (uint32_t layer = 0; layer < m->layers; layer++) x = feed_forward(b, layer, attend(b, layer, x));
  const uint32_t last = view(b, x, layout_of(TM_FORMAT_F32, 2, 1, m->dim, 0), (b->tokens - 1) * (uint64_t)m->dim * sizeof(float));
  const uint32_t normal = normalize(b, last, weights(b, "final_norm", m->final_norm, m->dim, 0));
  const uint32_t classifier = m->classifier == m->embedding ? embedding : weights(b, "classifier", m->classifier, m->vocabulary, m->dim);
  const uint32_t logits = project(b, normal, classifier);
  if (b->status == TM_OK) b->status = tm_graph_output(b->network->graph, "logits", logits, b->error);
}

tm_status llama_network_build(llama_network *network, tm_context *context, const llama_model *model, uint32_t tokens, uint32_t capacity,
                              tm_error *error) {
  memset(network, 0, sizeof *network);
  network->weight_room = 3 + model->layers * WEIGHTS_PER_LAYER;
  network->weights = calloc(network->weight_room, sizeof *network->weights);
  if (network->weights == NULL) return TM_ERROR_NO_MEMORY;
  builder b = { .network = network, .context = context, .model = model, .error = error, .tokens = tokens, .capacity = capacity };
  b.status = tm_graph_create(context, &network->graph, error);
  if (b.status == TM_OK) build(&b);
  return b.status;
}

void llama_network_free(llama_network *network) {
  tm_graph_destroy(network->graph);
  for (uint32_t i = 0; i < network->weight_count; i++) tm_tensor_destroy(network->weights[i]);
  free(network->weights);
}
