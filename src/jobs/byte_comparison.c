/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/byte_comparison.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "jobs/tensor_tiles.h"

#define LEAST_STEP_BYTES (UINT64_C(1) << 18)
#define STEP_BYTES (UINT64_C(8) << 20)
#define PIECE_BYTES (UINT64_C(1) << 18)
#define RUN_BYTES UINT64_C(4096)        /* compared at once before it is looked at unit by unit */

typedef struct step {
  const unsigned char *data[2];
  uint64_t             bytes;
  uint64_t             unit_bytes;
  uint64_t             piece_bytes;
  _Atomic uint64_t     equal_units;
} step;

void tm_byte_comparer_init(tm_byte_comparer *comparer, const tm_memory *memory, tm_pool *pool, tm_scratch *scratch) {
  *comparer = (tm_byte_comparer){ .pool = pool, .scratch = scratch };
  comparer->room_bytes = tm_tensor_tile_share(memory, LEAST_STEP_BYTES, STEP_BYTES);
}

void tm_byte_comparer_deinit(tm_byte_comparer *comparer) {
  for (uint32_t i = 0; i < 2; i++) tm_scratch_give(comparer->scratch, comparer->rooms[i]);
}

void tm_byte_comparison_init(tm_byte_comparison *comparison, tm_byte_side a, tm_byte_side b, uint64_t bytes, uint64_t unit_bytes) {
  *comparison = (tm_byte_comparison){ .sides = { a, b }, .unit_bytes = tm_max_u64(1, unit_bytes), .end = bytes };
}

/* Whole units of at least `bytes`. */
static uint64_t whole_units(uint64_t bytes, uint64_t unit_bytes) { return tm_divide_up(bytes, unit_bytes) * unit_bytes; }

static uint64_t count_equal(const unsigned char *a, const unsigned char *b, uint64_t bytes, uint64_t unit_bytes) {
  const uint64_t run_bytes = whole_units(RUN_BYTES, unit_bytes);
  uint64_t equal = 0;
  for (uint64_t begin = 0; begin < bytes; begin += run_bytes) {
    const uint64_t count = tm_min_u64(run_bytes, bytes - begin);
    if (memcmp(a + begin, b + begin, (size_t)count) == 0) {
      equal += count / unit_bytes;
      continue;
    }
    for (uint64_t i = begin; i < begin + count; i += unit_bytes) equal += memcmp(a + i, b + i, (size_t)unit_bytes) == 0;
  }
  return equal;
}

static void compare_pieces(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  step *one = argument;
  (void)lane;
  for (uint64_t piece = begin; piece < end; piece++) {
    const uint64_t first = piece * one->piece_bytes, bytes = tm_min_u64(one->piece_bytes, one->bytes - first);
    atomic_fetch_add_explicit(&one->equal_units, count_equal(one->data[0] + first, one->data[1] + first, bytes, one->unit_bytes),
                              memory_order_relaxed);
  }
}

static tm_status load(tm_byte_comparer *comparer, uint32_t side, const tm_byte_comparison *comparison, uint64_t bytes,
                      const unsigned char **out_data, tm_error *error) {
  const tm_byte_side *one = &comparison->sides[side];
  const unsigned char *mapped = tm_archive_mapped(one->archive, one->tensor);
  if (mapped != NULL) {
    *out_data = mapped + comparison->next;
    return TM_OK;
  }
  tm_scratch_block *room = &comparer->rooms[side];
  if (room->memory == NULL) *room = tm_scratch_take(comparer->scratch, comparer->room_bytes);
  if (room->memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a piece of a tensor");
  *out_data = room->memory;
  return tm_archive_read(one->archive, one->tensor, comparison->next, room->memory, bytes, error);
}

tm_status tm_byte_comparison_step(tm_byte_comparer *comparer, tm_byte_comparison *comparison, uint64_t *out_bytes, uint32_t *out_side,
                                  tm_error *error) {
  const uint64_t unit_bytes = comparison->unit_bytes;
  const uint64_t most = tm_max_u64(1, comparer->room_bytes / unit_bytes) * unit_bytes;
  step one = { .bytes = tm_min_u64(most, comparison->end - comparison->next), .unit_bytes = unit_bytes };
  one.piece_bytes = whole_units(PIECE_BYTES, unit_bytes);
  for (uint32_t side = 0; side < 2; side++) {
    *out_side = side;
    TM_TRY(load(comparer, side, comparison, one.bytes, &one.data[side], error));
  }
  tm_pool_run(comparer->pool, tm_divide_up(one.bytes, one.piece_bytes), 1, compare_pieces, &one);
  comparison->equal_units += atomic_load(&one.equal_units);
  comparison->next += one.bytes;
  *out_bytes = one.bytes;
  return TM_OK;
}
