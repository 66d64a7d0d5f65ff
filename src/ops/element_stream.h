/* SPDX-License-Identifier: Apache-2.0 */
/* element_stream.h - elements of one format at equal distances in memory, read and written as numbers or as bits. */
#ifndef TM_OPS_ELEMENT_STREAM_H
#define TM_OPS_ELEMENT_STREAM_H

#include "tensor/codec.h"

typedef struct tm_element_stream {
  const tm_codec *codec;                /* NULL for a format without arithmetic: then only moves */
  uint32_t        block_elements;
  uint32_t        block_bytes;
  int64_t         step_bytes;           /* from one element (block) to the next */
} tm_element_stream;

/* The stream along an axis of an operand; the last axis of a rank 0 operand has one element. */
tm_element_stream tm_stream_along(const tm_operand *operand, uint32_t axis);

/* `elements` are whole blocks. */
void tm_stream_load(const tm_element_stream *stream, const void *address, uint64_t elements, double *out_values);
void tm_stream_load_integer(const tm_element_stream *stream, const void *address, uint64_t elements,
                            int64_t *out_values);
void tm_stream_store(const tm_element_stream *stream, const double *values, uint64_t elements, void *address);
void tm_stream_store_integer(const tm_element_stream *stream, const int64_t *values, uint64_t elements, void *address);
/* Copies bits between streams of one format. */
void tm_stream_move(const tm_element_stream *from, const void *source, const tm_element_stream *to, void *target,
                    uint64_t elements);
/* Sets zero bits. */
void tm_stream_clear(const tm_element_stream *stream, uint64_t elements, void *address);

#endif
