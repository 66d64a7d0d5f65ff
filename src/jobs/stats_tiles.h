/* SPDX-License-Identifier: Apache-2.0 */
/* stats_tiles.h - the statistics of each tile of a tensor, as an operation. */
#ifndef TM_JOBS_STATS_TILES_H
#define TM_JOBS_STATS_TILES_H

#include "jobs/tensor_tiles.h"

/* The tensor's next tile from element `begin` on as a piece of a stream; `subject` is left alone.   As tm_operand_contiguous */
tm_status tm_stats_tile_next(const tm_archive *archive, uint64_t tensor, uint64_t begin, const tm_tensor_tile_limits *limits,
                             tm_work_stream_piece *out_piece, tm_error *error);
uint64_t  tm_stats_piece_elements(const tm_work_stream_piece *piece);

/* The statistics of dense elements at an address of that alignment. */
tm_status tm_stats_tile_request(uint32_t format, uint64_t elements, uint32_t alignment, uint32_t worst_numerics, tm_request *out_request,
                                tm_error *error);

#endif
