/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/tensor_tiles.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"

uint64_t tm_tensor_tile_elements(uint64_t superblock_bytes, uint64_t bytes, uint64_t left) {
  return tm_min_u64(tm_max_u64(1, bytes / superblock_bytes) * TM_TILE_SUPERBLOCK_ELEMENTS, left);
}

tm_tensor_tile tm_tensor_tile_at(const tm_format_info *info, uint64_t begin, uint64_t element_count, uint64_t bytes) {
  const uint64_t superblock_bytes = TM_TILE_SUPERBLOCK_ELEMENTS / info->block_elements * info->block_bytes;
  const uint64_t elements = tm_tensor_tile_elements(superblock_bytes, bytes, element_count - begin);
  return (tm_tensor_tile){ begin, elements, begin / info->block_elements * info->block_bytes,
                          elements / info->block_elements * info->block_bytes };
}

#define SHORT_TILE_NS UINT64_C(2500000)
#define LONG_TILE_NS UINT64_C(10000000)

/* Whole tiles only: a short rest says nothing. */
void tm_tensor_tile_adapt(uint64_t *tile_bytes, uint64_t done_bytes, uint64_t taken_ns) {
  if (done_bytes < *tile_bytes / 2) return;
  if (taken_ns < SHORT_TILE_NS && *tile_bytes < TM_TILE_LARGEST_BYTES) *tile_bytes *= 2;
  if (taken_ns > LONG_TILE_NS && *tile_bytes > TM_TILE_SMALLEST_BYTES) *tile_bytes /= 2;
}

/* So many may have a tile each. */
#define TILES_IN_MEMORY 16u

uint64_t tm_tensor_tile_share(const tm_memory *memory, uint64_t least, uint64_t most) {
  const uint64_t used = atomic_load(&memory->used_bytes), limit = memory->limit_bytes;
  if (limit == 0) return most;
  return limit <= used ? least : tm_max_u64(least, tm_min_u64(most, (limit - used) / TILES_IN_MEMORY));
}

tm_status tm_tensor_tile_load(const tm_archive *archive, uint64_t tensor, const tm_tensor_tile *tile, tm_work_stream_room *room,
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

tm_status tm_tensor_name_failure(const tm_archive_tensor *tensor, tm_status status, tm_error *error) {
  char name[256];
  if (status == TM_OK || status == TM_ERROR_CANCELLED) return status;
  tm_text_escape(tensor->name.data, tensor->name.length, name, sizeof name);
  tm_error_prefix(error, "tensor '%s'", name);
  return status;
}
