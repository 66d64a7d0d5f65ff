/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_name.h - what a tensor's name says of its place: the number of its layer, and its kind, which is the name with a star for
 * each number.  Names are split at dots and slashes, and the first part that is a number is the layer: so it is in the names
 * of Transformers ("model.layers.3.mlp.up_proj.weight"), of GGUF ("blk.3.ffn_up.weight") and of exported modules.
 */
#ifndef TM_CLI_LAYER_NAME_H
#define TM_CLI_LAYER_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TM_NO_LAYER UINT64_MAX

typedef struct tm_layer_name {
  uint64_t layer;               /* TM_NO_LAYER: none of its parts is a number */
  size_t   kind_length;         /* at most that of the name */
  size_t   prefix_length;       /* of the kind, up to what follows its first star and the separator; 0 without a layer */
} tm_layer_name;

/* Writes the kind, without a NUL, to out_kind[length]. */
tm_layer_name tm_layer_name_split(const char *name, size_t length, char *out_kind);

#endif
