/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stats_tiles.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/shape.h"

uint64_t tm_stats_piece_elements(const tm_work_stream_piece *piece) { return piece->request.operands[0].element_count; }

tm_status tm_stats_tile_next(const tm_archive *archive, uint64_t tensor, uint64_t begin, const tm_tensor_tile_limits *limits,
                             tm_work_stream_piece *out_piece, tm_error *error) {
  const tm_archive_tensor *one = tm_archive_tensor_at(archive, tensor);
  const char *mapped = tm_archive_mapped(archive, tensor);
  const uint64_t bytes = mapped != NULL ? limits->bytes : tm_min_u64(limits->bytes, limits->read_bytes);
  const tm_tensor_tile tile = tm_tensor_tile_at(tm_format_find(one->format), begin, one->element_count, bytes);
  const uint32_t alignment = mapped == NULL ? TM_SCRATCH_ALIGNMENT : tm_alignment_of(mapped + tile.offset);
  TM_TRY(tm_stats_tile_request(one->format, tile.element_count, alignment, limits->worst_numerics, &out_piece->request, error));
  if (mapped != NULL) out_piece->request.flags |= TM_REQUEST_UNMEASURED;
  out_piece->bytes = tile.bytes;
  out_piece->begin = tile.first_element;
  return TM_OK;
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
