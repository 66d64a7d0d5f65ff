/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/tile_trial.h"

#include <string.h>

#include "base/checked.h"
#include "schedule/exploration.h"
#include "schedule/lowering.h"

/* The longest axis along which it can be cut, outermost first; TM_MAX_RANK if there is none. */
static uint32_t longest_axis(const tm_operation *operation) {
  const tm_op_row *row = tm_op_find(operation->op);
  const tm_operand *x = &operation->operands[0];
  uint32_t best = TM_MAX_RANK;
  const uint32_t axes = row->combine == TM_COMBINE_NONE || operation->input_count == 0 ? 0 : row->splittable(operation);
  for (uint32_t axis = 0; axis < x->rank; axis++)
    if ((axes >> axis & 1u) != 0 && (best == TM_MAX_RANK || x->dims[axis] > x->dims[best])) best = axis;
  return best;
}

/* The request of the first of so many tiles. */
static bool cut(const tm_request *request, uint64_t tiles, tm_lowering *out_lowering) {
  tm_request whole = *request;
  tm_operation operation = tm_request_operation(&whole);
  tm_op_normalize(&operation, whole.operands);
  const uint32_t axis = longest_axis(&operation);
  if (axis == TM_MAX_RANK) return false;
  const tm_answer proposal = { .struct_size = sizeof proposal, .change_count = 1,
                               .changes = { { .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis = axis,
                                              .value = tm_max_u64(1, whole.operands[0].dims[axis] / tiles) } } };
  memset(out_lowering, 0, sizeof *out_lowering);
  return tm_lowering_split(&whole, &proposal, out_lowering);
}

static bool is_known(const tm_runner *runner, uint32_t device) {
  return tm_correction_honesty_of(runner->table->market.correction, device).samples != 0;
}

/* Until something was learned: outputs that lie side by side will be written again anyway. */
static tm_status run_tile(const tm_runner *runner, const tm_lowering *lowering, const tm_request *tile, void *const *pointers,
                          tm_error *error) {
  void *places[TM_MAX_OPERANDS];
  const uint32_t count = tile->input_count + tile->output_count;
  memcpy(places, pointers, count * sizeof *places);
  tm_scratch_block block = { NULL, 0 };
  if (lowering->split.join != TM_JOIN_SIDE_BY_SIDE) {
    block = tm_scratch_take(runner->scratch, lowering->split.sum.byte_count);
    if (block.memory == NULL) return TM_ERROR_NO_MEMORY;
    places[tile->input_count] = block.memory;
  }
  tm_status status = TM_OK;
  for (uint32_t run = 0; run < TM_TILE_RUNS && status == TM_OK && !is_known(runner, tile->only_device); run++)
    status = tm_runner_run(runner, tile, places, NULL, error);
  if (status != TM_ERROR_INTERNAL && block.memory != NULL) tm_scratch_give(runner->scratch, block);
  return status;
}

tm_status tm_tile_trial_run(const tm_runner *runner, const tm_request *request, const tm_device_slot *device, uint64_t tiles,
                            void *const *pointers, tm_error *error) {
  tm_lowering *lowering = tm_memory_alloc(runner->table->memory, sizeof *lowering, 0);
  if (lowering == NULL) return TM_ERROR_NO_MEMORY;
  tm_status status = TM_UNSUPPORTED;
  if (cut(request, tiles, lowering)) {
    tm_request tile = lowering->inner;
    tile.only_device = device->index;
    tile.flags = (tile.flags | TM_REQUEST_AS_IS) & ~TM_REQUEST_UNMEASURED;      /* the second time its pages are there */
    status = run_tile(runner, lowering, &tile, pointers, error);
  }
  tm_memory_free(runner->table->memory, lowering, sizeof *lowering);
  return status;
}
