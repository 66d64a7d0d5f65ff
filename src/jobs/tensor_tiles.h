/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_tiles.h - tensors cut into tiles, which a job computes with one by one, in any order. */
#ifndef TM_JOBS_TENSOR_TILES_H
#define TM_JOBS_TENSOR_TILES_H

#include "execute/work_stream.h"
#include "formats/archive.h"
#include "tensor/format.h"

/* Tiles are whole superblocks, so that sums do not depend on their size (canonical_sum.h). */
#define TM_TILE_SUPERBLOCK_ELEMENTS UINT64_C(32768)

/* Tensors up to this size run many at once on devices that take long to be told of each. */
#define TM_TILE_SMALL_BYTES (UINT64_C(1) << 16)

/* A part of a tensor. */
typedef struct tm_tensor_tile {
  uint64_t first_element;       /* a multiple of the superblock */
  uint64_t element_count;
  uint64_t offset;              /* of its first byte in the tensor */
  uint64_t bytes;
} tm_tensor_tile;

/* How many elements a tile of about `bytes` has, of `left` in all: whole superblocks, unless fewer are left. */
uint64_t tm_tensor_tile_elements(uint64_t superblock_bytes, uint64_t bytes, uint64_t left);
/* The tile from `begin` on, of about `bytes`. */
tm_tensor_tile tm_tensor_tile_at(const tm_format_info *info, uint64_t begin, uint64_t element_count, uint64_t bytes);

/* What a tile may be, and be computed with. */
typedef struct tm_tensor_tile_limits {
  uint64_t bytes;               /* about, as tiles are whole superblocks */
  uint64_t read_bytes;          /* at most, of a file that is not mapped */
  uint32_t worst_numerics;
} tm_tensor_tile_limits;

/* A job begins with tiles of TM_TILE_FIRST_BYTES ... */
#define TM_TILE_SMALLEST_BYTES (UINT64_C(1) << 17)
#define TM_TILE_FIRST_BYTES (UINT64_C(1) << 20)
#define TM_TILE_LARGEST_BYTES (UINT64_C(32) << 20)
/* ... and goes on by what they take: large enough that a device's start does not count, small enough that whoever is in a hurry,
   or cancels, waits for no more than one. */
void tm_tensor_tile_adapt(uint64_t *tile_bytes, uint64_t done_bytes, uint64_t taken_ns);

/* The most bytes of a tile that needs memory, since its file is not mapped: a share of what the application allows, as tiles that
   grow into the limit would make a larger one worse than a smaller one.  Between `least` and `most`. */
uint64_t tm_tensor_tile_share(const tm_memory *memory, uint64_t least, uint64_t most);

/* The tile's bytes: where they lie, or read into the room.   TM_ERROR_NO_MEMORY, as tm_archive_read */
tm_status tm_tensor_tile_load(const tm_archive *archive, uint64_t tensor, const tm_tensor_tile *tile, tm_work_stream_room *room,
                             const void **out_data, tm_error *error);

/* Puts the tensor's name in front of what is wrong with it; returns the status. */
tm_status tm_tensor_name_failure(const tm_archive_tensor *tensor, tm_status status, tm_error *error);

#endif
