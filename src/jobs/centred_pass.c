/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/centred_pass.h"

#include <string.h>

#include "base/error.h"
#include "jobs/stats_figures.h"
#include "jobs/stats_tiles.h"
#include "tensor/shape.h"

#define TILE_ELEMENTS (8 * TM_TILE_SUPERBLOCK_ELEMENTS)

/* One operation with one input and one more, 0-d, operand if `point` is not NULL; exact, like everything that bytes of a
   result depend on. */
static tm_status run_exact(const tm_runner *runner, uint32_t op, uint32_t format, const void *data, const double *point,
                           double *out_values, uint64_t elements, tm_error *error) {
  tm_request request;
  memset(&request, 0, sizeof request);
  const tm_op_row *row = tm_op_find(op);
  request.op = op;
  request.version = row->version;
  request.attribute_bytes = row->attribute_bytes;
  request.worst_numerics = TM_NUMERICS_N0;
  request.only_device = TM_ANY_DEVICE;
  request.input_count = point == NULL ? 1 : 2;
  request.output_count = 1;
  const uint32_t result = request.input_count;
  TM_TRY(tm_operand_contiguous(format, 1, &elements, &request.operands[0], error));
  if (point != NULL) TM_TRY(tm_operand_contiguous(TM_FORMAT_F64, 0, NULL, &request.operands[1], error));
  TM_TRY(tm_operand_contiguous(TM_FORMAT_F64, 1, &elements, &request.operands[result], error));
  void *pointers[3] = { (void *)(uintptr_t)data, (void *)(uintptr_t)point, NULL };
  pointers[result] = out_values;
  for (uint32_t i = 0; i <= result; i++) request.operands[i].alignment = tm_alignment_of(pointers[i]);
  return tm_runner_run(runner, &request, pointers, NULL, error);
}

/* x - centre of a tile as f64, in `distances`; `wide` has room for the values. */
static tm_status take_distances(const tm_centred_pass *pass, const void *data, uint64_t elements, double *wide, double *distances,
                                tm_error *error) {
  const void *values = data;
  if (pass->info->format != TM_FORMAT_F64) {
    const uint32_t op = pass->info->kind == TM_KIND_BLOCK ? TM_OP_DEQUANTIZE : TM_OP_CAST;
    TM_TRY(run_exact(pass->runner, op, pass->info->format, data, NULL, wide, elements, error));
    values = wide;
  }
  return run_exact(pass->runner, TM_OP_SUB, TM_FORMAT_F64, values, &pass->centre, distances, elements, error);
}

static tm_status add_statistics(const tm_centred_pass *pass, const double *distances, uint64_t elements, uint64_t *words,
                                tm_run_outcome *out_outcome, tm_error *error) {
  tm_request request;
  TM_TRY(tm_stats_tile_request(TM_FORMAT_F64, elements, tm_alignment_of(distances), TM_NUMERICS_N0, &request, error));
  uint64_t part[TM_STATS_WORDS];
  void *pointers[2] = { (void *)(uintptr_t)distances, part };
  TM_TRY(tm_runner_run(pass->runner, &request, pointers, out_outcome, error));
  tm_op_find(TM_OP_STATS)->combine_words(words, part);
  return TM_OK;
}

static bool is_cancelled(const tm_runner *runner) {
  return runner->cancelled != NULL && atomic_load_explicit(runner->cancelled, memory_order_relaxed) != 0;
}

static tm_status run_tiles(const tm_centred_pass *pass, tm_centred_count_fn count, void *count_context, double *wide, double *distances,
                           uint64_t *words, tm_error *error) {
  const uint64_t elements = tm_archive_tensor_at(pass->archive, pass->tensor)->element_count;
  const uint64_t tile_bytes = TILE_ELEMENTS / pass->info->block_elements * pass->info->block_bytes;
  for (uint64_t begin = 0; begin < elements;) {
    if (is_cancelled(pass->runner)) return TM_ERROR_CANCELLED;
    const tm_tensor_tile tile = tm_tensor_tile_at(pass->info, begin, elements, tile_bytes);
    const void *data = NULL;
    tm_run_outcome outcome;
    TM_TRY(tm_tensor_tile_load(pass->archive, pass->tensor, &tile, pass->room, &data, error));
    TM_TRY(take_distances(pass, data, tile.element_count, wide, distances, error));
    TM_TRY(add_statistics(pass, distances, tile.element_count, words, &outcome, error));
    count(count_context, &outcome);
    begin += tile.element_count;
  }
  return tm_archive_check_tensor(pass->archive, pass->tensor, error);
}

tm_status tm_centred_pass_run(const tm_centred_pass *pass, tm_centred_count_fn count, void *count_context, uint64_t *out_words,
                              tm_error *error) {
  const uint64_t bytes = TILE_ELEMENTS * sizeof(double);
  const tm_scratch_block block = tm_scratch_take(pass->runner->scratch, 2 * bytes);
  if (block.memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tile of %llu bytes", (unsigned long long)(2 * bytes));
  double *wide = block.memory;
  tm_stats_words_init(out_words);
  const tm_status status = run_tiles(pass, count, count_context, wide, wide + TILE_ELEMENTS, out_words, error);
  tm_scratch_give(pass->runner->scratch, block);
  return status;
}
