/* SPDX-License-Identifier: Apache-2.0 */
/* shape.h - operands: making, checking, viewing and comparing them.  Sizes are checked; nothing here touches data. */
#ifndef TM_TENSOR_SHAPE_H
#define TM_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

/* Fills *out_operand as a dense row-major tensor and derives counts and facts.  TM_ERROR_ARGUMENT: unknown format, rank
   too large, last axis no whole number of blocks, or more bytes than 64 bits count. */
tm_status tm_operand_contiguous(uint32_t format, uint32_t rank, const uint64_t *dims, tm_operand *out_operand,
                                tm_error *error);

/* Derives element_count, byte_count and the facts CONTIGUOUS and SCALAR from format, dims and strides, which it checks.
   Keeps alignment and the facts CONSTANT and IN_PLACE, which only the host knows. */
tm_status tm_operand_derive(tm_operand *operand, tm_error *error);

/* Broadcasts to `rank` and `dims` by the numpy rule (new axes outermost, extents 1 repeat with stride 0); false when it
 * cannot. */
bool tm_operand_broadcast(const tm_operand *operand, uint32_t rank, const uint64_t *dims, tm_operand *out_operand);

/* The dims that a set of operands broadcasts to; false when they do not agree. */
bool tm_broadcast_dims(const tm_operand *operands, uint32_t count, uint32_t *out_rank, uint64_t *out_dims);

bool tm_same_dims(const tm_operand *a, const tm_operand *b);

/* Bytes below the binding address that negative strides reach (0 if none): an operand touches
   [address - below, address - below + byte_count). */
uint64_t tm_operand_bytes_below(const tm_operand *operand);

/* "[4096,64]" into `text`; always terminated, cut if too small. */
void tm_format_dims(const tm_operand *operand, char *text, uint64_t capacity);

#endif
