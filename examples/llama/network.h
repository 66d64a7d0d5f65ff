/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - the model as a graph for a number of tokens at a time.  Keys and values of all earlier tokens are states of
 * `capacity` rows, which each run writes a few rows of; positions and lengths are operands, so that one plan serves all runs.
 */
#ifndef LLAMA_NETWORK_H
#define LLAMA_NETWORK_H

#include "model.h"

/* The graph's inputs, in this order: tokens i32[tokens], positions i32[tokens], start i32 (the first of these positions),
   length i32 (keys that are there, these tokens' included).  Its output: logits f32[vocabulary] after the last token. */
typedef struct llama_network {
  tm_graph  *graph;
  tm_tensor **weights;          /* of the graph's constants; they go after it */
  uint32_t   weight_count;
  uint32_t   weight_room;
} llama_network;

tm_status llama_network_build(llama_network *network, tm_context *context, const llama_model *model, uint32_t tokens, uint32_t capacity,
                              tm_error *error);
void      llama_network_free(llama_network *network);

#endif
