/* SPDX-License-Identifier: Apache-2.0 */
/* codec_block.h - what the decoders of block formats share.  Each is written for one block, which holds values of f32; the sources
   are the block structs of ggml (ggml-common.h), whose field order and arithmetic in f32 they follow. */
#ifndef TM_TENSOR_CODEC_BLOCK_H
#define TM_TENSOR_CODEC_BLOCK_H

#include <stddef.h>

#include "tensor/block_scale.h"
#include "tensor/codec_family.h"

/* decode_NAME for runs of whole blocks, of NAME_block(block, out_values), which decodes one. */
#define TM_DECODE_BLOCKS(name, block_elements, block_bytes)                                            \
  static void decode_##name(const void *source, uint64_t elements, double *out_values) {               \
    const unsigned char *block = source;                                                               \
    for (uint64_t at = 0; at < elements; at += (block_elements), block += (block_bytes)) name##_block(block, out_values + at); \
  }

/* The row of a format that can be read but not written. */
#define TM_READ_ONLY_CODEC(id, name) { TM_FORMAT_##id, decode_##name, NULL, NULL, NULL, NULL }

#endif
