/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - goes through an index space line by line (a line lies along the last axis) with an address in every operand.
 * Operands broadcast to the space by the numpy rule.  This is how all references but matmul find their elements:
 *
 *     tm_walk walk = tm_walk_begin(...);
 *     for (left = count; left > 0; left -= n) {
 *       n = tm_walk_line(&walk, tm_min_u64(left, TM_RUN));
 *       ... n elements along walk.streams[i] at walk.addresses[i] ...
 *       tm_walk_advance(&walk, n);
 *     }
 */
#ifndef TM_OPS_WALK_H
#define TM_OPS_WALK_H

#include "ops/element_stream.h"

/* Elements that references take at a time through buffers on the stack. */
#define TM_RUN 512u
#define TM_WALK_OPERANDS 4

typedef struct tm_walk {
  uint32_t rank;                        /* at least 1 */
  uint32_t operand_count;
  uint64_t dims[TM_MAX_RANK];
  uint64_t index[TM_MAX_RANK];
  int64_t  strides[TM_WALK_OPERANDS][TM_MAX_RANK];
  char    *addresses[TM_WALK_OPERANDS];
  tm_element_stream streams[TM_WALK_OPERANDS];
} tm_walk;

/* Starts at element `element` (row-major number, the start of a block where any operand has them) of the dims of
 * `space`. */
tm_walk tm_walk_begin(const tm_operand *space, const tm_operand *operands, void *const *pointers,
                      uint32_t operand_count, uint64_t element);
/* At most `limit` elements that lie ahead on the current line. */
uint64_t tm_walk_line(const tm_walk *walk, uint64_t limit);
/* Goes on by `elements`, at most to the end of the line. */
void tm_walk_advance(tm_walk *walk, uint64_t elements);
/* Back to element 0 after the last one, with another address for operand 0 (the only one). */
void tm_walk_restart(tm_walk *walk, void *pointer);
/* Copies the bits of the next `elements` elements from operand 0 to operand 1. */
void tm_walk_copy(tm_walk *walk, uint64_t elements);

#endif
