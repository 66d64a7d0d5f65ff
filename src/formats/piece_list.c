/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/piece_list.h"

#include <stdbool.h>
#include <string.h>

#include "base/growth.h"

/* The first piece that ends at or behind `begin`. */
static uint64_t find(const tm_piece_list *list, uint64_t begin) {
  uint64_t low = 0, high = list->count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (list->pieces[middle].end < begin) low = middle + 1;
    else high = middle;
  }
  return low;
}

static void remove_at(tm_piece_list *list, uint64_t index) {
  memmove(&list->pieces[index], &list->pieces[index + 1], (size_t)(list->count - index - 1) * sizeof *list->pieces);
  list->count--;
}

static tm_status insert(tm_piece_list *list, tm_memory *memory, uint64_t index, tm_piece piece) {
  tm_piece *pieces = tm_make_room(memory, list->pieces, list->count, &list->capacity, sizeof *pieces);
  if (pieces == NULL) return TM_ERROR_NO_MEMORY;
  list->pieces = pieces;
  memmove(&pieces[index + 1], &pieces[index], (size_t)(list->count - index) * sizeof *pieces);
  pieces[index] = piece;
  list->count++;
  return TM_OK;
}

/* Into the neighbours that it touches, so that pieces in order are one. */
static tm_status join(tm_piece_list *list, tm_memory *memory, uint64_t at, tm_piece piece) {
  const bool touches_before = at < list->count && list->pieces[at].end == piece.begin;
  const uint64_t next = at + touches_before;
  const bool touches_after = next < list->count && list->pieces[next].begin == piece.end;
  if (next < list->count && list->pieces[next].begin < piece.end) return TM_ERROR_ARGUMENT;
  if (!touches_before && !touches_after) return insert(list, memory, at, piece);
  if (!touches_before) {
    list->pieces[next].begin = piece.begin;
  } else if (!touches_after) {
    list->pieces[at].end = piece.end;
  } else {
    list->pieces[at].end = list->pieces[next].end;
    remove_at(list, next);
  }
  return TM_OK;
}

tm_status tm_piece_list_add(tm_piece_list *list, tm_memory *memory, uint64_t begin, uint64_t end) {
  if (begin == end) return TM_OK;
  const tm_status status = join(list, memory, find(list, begin), (tm_piece){ begin, end });
  if (status == TM_OK) list->total_bytes += end - begin;
  return status;
}

void tm_piece_list_deinit(tm_piece_list *list, tm_memory *memory) {
  tm_memory_free(memory, list->pieces, list->capacity * sizeof *list->pieces);
  *list = (tm_piece_list){ 0 };
}
