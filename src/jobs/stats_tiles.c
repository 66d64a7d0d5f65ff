/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stats_tiles.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "tensor/shape.h"

tm_stats_tile tm_stats_tile_at(const tm_format_info *info, uint64_t begin, uint64_t element_count, uint64_t bytes) {
  const uint64_t superblock_bytes = TM_STATS_SUPERBLOCK_ELEMENTS / info->block_elements * info->block_bytes;
  const uint64_t most = tm_max_u64(1, bytes / superblock_bytes) * TM_STATS_SUPERBLOCK_ELEMENTS;
  const uint64_t elements = tm_min_u64(most, element_count - begin);
  return (tm_stats_tile){ begin, elements, begin / info->block_elements * info->block_bytes,
                          elements / info->block_elements * info->block_bytes };
}

#define SHORT_TILE_NS UINT64_C(2500000)
#define LONG_TILE_NS UINT64_C(10000000)

/* Whole tiles only: a short rest says nothing. */
void tm_stats_tile_adapt(uint64_t *tile_bytes, uint64_t done_bytes, uint64_t taken_ns) {
  if (done_bytes < *tile_bytes / 2) return;
  if (taken_ns < SHORT_TILE_NS && *tile_bytes < TM_STATS_LARGEST_TILE_BYTES) *tile_bytes *= 2;
  if (taken_ns > LONG_TILE_NS && *tile_bytes > TM_STATS_SMALLEST_TILE_BYTES) *tile_bytes /= 2;
}

/* So many may have a tile each. */
#define TILES_IN_MEMORY 16u

uint64_t tm_stats_tile_share(const tm_memory *memory, uint64_t least, uint64_t most) {
  const uint64_t used = atomic_load(&memory->used_bytes), limit = memory->limit_bytes;
  if (limit == 0) return most;
  return limit <= used ? least : tm_max_u64(least, tm_min_u64(most, (limit - used) / TILES_IN_MEMORY));
}

uint64_t tm_stats_piece_elements(const tm_work_stream_piece *piece) { return piece->request.operands[0].element_count; }

tm_status tm_stats_tile_next(const tm_archive *archive, uint64_t tensor, uint64_t begin, const tm_stats_tile_limits *limits,
                             tm_work_stream_piece *out_piece, tm_error *error) {
  const tm_archive_tensor *one = tm_archive_tensor_at(archive, tensor);
  const char *mapped = tm_archive_mapped(archive, tensor);
  const uint64_t bytes = mapped != NULL ? limits->bytes : tm_min_u64(limits->bytes, limits->read_bytes);
  const tm_stats_tile tile = tm_stats_tile_at(tm_format_find(one->format), begin, one->element_count, bytes);
  const uint32_t alignment = mapped == NULL ? TM_SCRATCH_ALIGNMENT : tm_alignment_of(mapped + tile.offset);
  TM_TRY(tm_stats_tile_request(one->format, tile.element_count, alignment, limits->worst_numerics, &out_piece->request, error));
  if (mapped != NULL) out_piece->request.flags |= TM_REQUEST_UNMEASURED;
  out_piece->bytes = tile.bytes;
  out_piece->begin = tile.first_element;
  return TM_OK;
}

tm_status tm_stats_name_tensor(const tm_archive_tensor *tensor, tm_status status, tm_error *error) {
  char name[256];
  if (status == TM_OK || status == TM_ERROR_CANCELLED) return status;
  tm_text_escape(tensor->name.data, tensor->name.length, name, sizeof name);
  tm_error_prefix(error, "tensor '%s'", name);
  return status;
}

tm_status tm_stats_tile_request(uint32_t format, uint64_t elements, uint32_t alignment, uint32_t worst_numerics, tm_request *out_request,
                                tm_error *error) {
  const uint64_t words = TM_STATS_WORDS;
  memset(out_request, 0, sizeof *out_request);
  out_request->op = TM_OP_STATS;
  out_request->version = tm_op_find(TM_OP_STATS)->version;
  out_request->worst_numerics = worst_numerics;
  out_request->only_device = TM_ANY_DEVICE;
  out_request->input_count = 1;
  out_request->output_count = 1;
  TM_TRY(tm_operand_contiguous(format, 1, &elements, &out_request->operands[0], error));
  TM_TRY(tm_operand_contiguous(TM_FORMAT_U64, 1, &words, &out_request->operands[1], error));
  out_request->operands[0].alignment = alignment;
  out_request->operands[1].alignment = 8;
  return TM_OK;
}

tm_status tm_stats_tile_load(const tm_archive *archive, uint64_t tensor, const tm_stats_tile *tile, tm_work_stream_room *room,
                             const void **out_data, tm_error *error) {
  const char *mapped = tm_archive_mapped(archive, tensor);
  if (mapped != NULL) {
    *out_data = mapped + tile->offset;
    return TM_OK;
  }
  void *memory = tm_work_stream_room_take(room, tile->bytes);
  if (memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tile of %llu bytes", (unsigned long long)tile->bytes);
  *out_data = memory;
  return tm_archive_read(archive, tensor, tile->offset, memory, tile->bytes, error);
}
