/* SPDX-License-Identifier: Apache-2.0 */
/* merge_tiles.h - tensors of a merge cut into tiles of whole units, and how much memory that takes. */
#ifndef TM_JOBS_MERGE_TILES_H
#define TM_JOBS_MERGE_TILES_H

#include "base/memory.h"
#include "jobs/merge_item.h"

/* Whole superblocks, so that sums do not depend on the size of tiles (canonical_sum.h). */
#define TM_MERGE_UNIT_ELEMENTS UINT64_C(32768)

/* Tensors that are worked on at once; those of ties have a histogram each. */
#define TM_MERGE_OPEN_TENSORS 32u
#define TM_MERGE_OPEN_HISTOGRAMS 4u

/* The format that an item is computed in: its own, or f32 before it becomes blocks. */
uint32_t tm_merge_computed_format(const tm_merge_item *item);

/* Memory that a tile of one unit of an item takes: what files that are not mapped are read into, and results.  0: it is copied. */
uint64_t tm_merge_unit_bytes(const tm_merge_settings *settings, const tm_merge_item *item);
/* A unit of what is copied from a file that is not mapped, and read into room for that; 0: of no such thing. */
uint64_t tm_merge_copy_unit(const tm_merge_settings *settings, const tm_merge_item *item);
/* That room, of whole units of the largest kind, by what the application allows.   unit_bytes: 0: none */
uint64_t tm_merge_copy_bytes(const tm_memory *memory, uint64_t unit_bytes);
/* Bytes that are copied at once.   room_bytes: 0: from where they are mapped */
uint64_t tm_merge_copy_step(uint64_t room_bytes, uint64_t unit_bytes);

/* What is there beside the tiles. */
uint64_t tm_merge_fixed_bytes(const tm_merge_settings *settings);
/* Units that a tile may have at most, by what the application allows; at least 1. */
uint64_t tm_merge_most_units(const tm_memory *memory, uint64_t unit_bytes);
/* Units of an item's tiles: all inputs and results together stay in the caches while they are worked on, and end soon. */
uint64_t tm_merge_tile_units(const tm_merge_item *item, uint64_t most_units);

/* What is read for an item, in all passes. */
uint64_t tm_merge_read_bytes(const tm_merge_settings *settings, const tm_merge_item *item);

/* Bytes of a unit; of a type that this version does not know, of as many bytes. */
uint64_t tm_merge_unit_of(uint32_t format);
/* Bytes of so many elements, which are whole blocks. */
uint64_t tm_merge_bytes_of(uint32_t format, uint64_t elements);

#endif
