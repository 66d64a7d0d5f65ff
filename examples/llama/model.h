/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a Llama 2 model in the layout of llama2.c's first version: seven int32 (dim, hidden, layers, heads, kv heads,
 * vocabulary, longest sequence; a negative vocabulary says that the classifier is no copy of the token embedding), then the
 * weights as f32 in the order of the struct below.
 */
#ifndef LLAMA_MODEL_H
#define LLAMA_MODEL_H

#include <stdint.h>

#include <tensormorph/tensormorph.h>

#define LLAMA_MOST_LAYERS 256u

typedef struct llama_layer {
  const float *attention_norm, *wq, *wk, *wv, *wo, *ffn_norm, *w1, *w2, *w3;
} llama_layer;

typedef struct llama_model {
  uint32_t     dim, hidden, layers, heads, kv_heads, vocabulary, longest;
  uint32_t     head;            /* dim / heads */
  uint32_t     kv_dim;          /* head * kv_heads */
  const float *embedding;       /* [vocabulary][dim] */
  llama_layer  layer[LLAMA_MOST_LAYERS];
  const float *final_norm;
  const float *classifier;      /* [vocabulary][dim] */
  void        *file;
  uint64_t     file_bytes;
} llama_model;

/* Prints what is wrong and returns 0. */
int  llama_model_read(llama_model *model, const char *path);
void llama_model_free(llama_model *model);

#endif
