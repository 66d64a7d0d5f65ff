/* SPDX-License-Identifier: Apache-2.0 */
/* piece_list.h - which bytes of a range have come, in whatever order: each at most once. */
#ifndef TM_FORMATS_PIECE_LIST_H
#define TM_FORMATS_PIECE_LIST_H

#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_piece {
  uint64_t begin;
  uint64_t end;
} tm_piece;

/* Zero everywhere is an empty one. */
typedef struct tm_piece_list {
  tm_piece *pieces;             /* ascending, not touching */
  uint64_t  count;
  uint64_t  capacity;
  uint64_t  total_bytes;        /* of all pieces */
} tm_piece_list;

/* begin <= end.   TM_ERROR_ARGUMENT (some of it was there before), TM_ERROR_NO_MEMORY; no text */
tm_status tm_piece_list_add(tm_piece_list *list, tm_memory *memory, uint64_t begin, uint64_t end);
void      tm_piece_list_deinit(tm_piece_list *list, tm_memory *memory);

#endif
