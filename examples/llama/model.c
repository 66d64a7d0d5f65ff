/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 28u
#define MOST_EXTENT 1048576     /* of anything in the header: products of two then fit into 64 bits with ease */

/* The whole file, or NULL. */
static void *read_whole(const char *path, uint64_t *out_bytes) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  void *data = NULL;
  long end = -1;
  if (fseek(file, 0, SEEK_END) == 0) end = ftell(file);
  if (end > 0 && fseek(file, 0, SEEK_SET) == 0) data = malloc((size_t)end);
  if (data != NULL && fread(data, 1, (size_t)end, file) != (size_t)end) {
    free(data);
    data = NULL;
  }
  fclose(file);
  *out_bytes = (uint64_t)end;
  return data;
}

static int fail(const char *path, const char *what) {
  fprintf(stderr, "%s: %s\n", path, what);
  return 0;
}

static int is_sound(const int32_t *header, uint32_t *out_vocabulary) {
  for (int i = 0; i < 7; i++)
    if (header[i] == 0 || header[i] > MOST_EXTENT || (i != 5 ? header[i] < 0 : header[i] < -MOST_EXTENT)) return 0;
  *out_vocabulary = (uint32_t)(header[5] < 0 ? -header[5] : header[5]);
  return (uint32_t)header[2] <= LLAMA_MOST_LAYERS && header[0] % header[3] == 0 && header[3] % header[4] == 0 &&
         header[0] / header[3] % 2 == 0;
}

/* The next `count` weights; beyond the end it only counts on. */
static const float *take(const llama_model *model, uint64_t *at, uint64_t count) {
  const float *values = (const float *)(const void *)((const char *)model->file + (*at <= model->file_bytes ? *at : 0));
  *at += count * sizeof(float);
  return values;
}

/* One kind of weight of all layers. */
static void take_layers(llama_model *model, uint64_t *at, size_t member, uint64_t count) {
  for (uint32_t i = 0; i < model->layers; i++) {
    const float *values = take(model, at, count);
    memcpy((char *)&model->layer[i] + member, &values, sizeof values);
  }
}

static uint64_t place(llama_model *model, int has_classifier) {
  const uint64_t dim = model->dim, hidden = model->hidden;
  uint64_t at = HEADER_BYTES;
  model->embedding = take(model, &at, model->vocabulary * dim);
  take_layers(model, &at, offsetof(llama_layer, attention_norm), dim);
  take_layers(model, &at, offsetof(llama_layer, wq), dim * dim);
  take_layers(model, &at, offsetof(llama_layer, wk), dim * model->kv_dim);
  take_layers(model, &at, offsetof(llama_layer, wv), dim * model->kv_dim);
  take_layers(model, &at, offsetof(llama_layer, wo), dim * dim);
  take_layers(model, &at, offsetof(llama_layer, ffn_norm), dim);
  take_layers(model, &at, offsetof(llama_layer, w1), dim * hidden);
  take_layers(model, &at, offsetof(llama_layer, w2), dim * hidden);
  take_layers(model, &at, offsetof(llama_layer, w3), dim * hidden);
  model->final_norm = take(model, &at, dim);
  (void)take(model, &at, (uint64_t)model->longest * model->head);       /* tables of angles: they are computed here */
  model->classifier = has_classifier ? take(model, &at, model->vocabulary * dim) : model->embedding;
  return at;
}

int llama_model_read(llama_model *model, const char *path) {
  int32_t header[7];
  memset(model, 0, sizeof *model);
  model->file = read_whole(path, &model->file_bytes);
  if (model->file == NULL) return fail(path, "cannot be read");
  if (model->file_bytes < HEADER_BYTES) return fail(path, "is too short for a header");
  memcpy(header, model->file, sizeof header);
  if (!is_sound(header, &model->vocabulary)) return fail(path, "its header is that of no such model");
  model->dim = (uint32_t)header[0];
  model->hidden = (uint32_t)header[1];
  model->layers = (uint32_t)header[2];
  model->heads = (uint32_t)header[3];
  model->kv_heads = (uint32_t)header[4];
  model->longest = (uint32_t)header[6];
  model->head = model->dim / model->heads;
  model->kv_dim = model->head * model->kv_heads;
  const uint64_t expected = place(model, header[5] < 0);
  if (expected == model->file_bytes) return 1;
  fprintf(stderr, "%s: %" PRIu64 " bytes by its header, %" PRIu64 " found\n", path, expected, model->file_bytes);
  return 0;
}

void llama_model_free(llama_model *model) { free(model->file); }
