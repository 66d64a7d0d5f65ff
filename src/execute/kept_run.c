/* SPDX-License-Identifier: Apache-2.0 */
/* Making the copy of a constant that later runs use, too. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/lowered_run.h"
#include "plugin/device.h"
#include "tensor/shape.h"

/* Everything about a copy but the bytes that it is made from: the layouts that they go through, and whose format it ends
   in.  All of it is zero-padded data. */
static uint64_t recipe_of(const tm_lowered_run *run, const tm_operand_way *way) {
  const tm_operand layouts[3] = { way->dense, way->presented, way->packed };
  const uint64_t device = way->packed.format == TM_FORMAT_NONE ? 0 : 1u + run->candidate->device->index;
  const uint64_t rest[3] = { XXH3_64bits(layouts, sizeof layouts), device, way->is_padded };
  return XXH3_64bits(rest, sizeof rest);
}

static tm_kept_key source_of(const tm_lowered_run *run, const tm_operand_way *way, uint64_t recipe) {
  struct {
    uint64_t   origin, address, recipe, op;
    tm_operand original;
  } source;
  memset(&source, 0, sizeof source);
  source.origin = run->origins[way->operand];
  source.address = (uint64_t)(uintptr_t)run->pointers[way->operand];
  source.recipe = recipe;
  source.op = way->op;
  source.original = way->original;
  return tm_kept_hash(&source, sizeof source);
}

/* ---- packing ---- */

static tm_status convert(const tm_lowered_run *run, tm_device_use *use, const tm_operation *operation, const tm_answer *answer,
                         void *dense, const tm_kept *copy) {
  tm_kernel *kernel = NULL;
  tm_copy_times copies;
  const tm_preparation what = { operation, answer, use->trial, use->cancelled };
  TM_TRY(tm_device_prepare(copy->device, &what, &kernel, run->error));
  void *const pointers[2] = { dense, NULL };
  const tm_resident residents[2] = { { NULL, 0 }, { copy->buffer, copy->bytes } };
  const tm_launch_site site = { .device = copy->device, .kernel = kernel, .operation = operation, .pointers = pointers,
                                .workspace_bytes = answer->workspace_bytes, .residents = residents };
  const tm_status status = tm_launcher_run(run->runner->scratch, &site, use, &copies, run->error);
  if (!use->is_abandoned) tm_device_release(copy->device, kernel);
  return status;
}

static tm_status convert_into_buffer(const tm_lowered_run *run, const tm_operation *operation, const tm_answer *answer, void *dense, tm_kept *copy) {
  tm_device_use use = tm_device_use_begin(copy->device, run->runner->cancelled);
  use.trial = tm_trial_find(copy->device, operation);
  use.expected_ns = answer->cost_ns;
  tm_status status = tm_device_buffer_create(&use, copy->bytes, &copy->buffer, run->error);
  if (status == TM_OK) {
    status = convert(run, &use, operation, answer, dense, copy);
    if (status != TM_OK) tm_device_buffer_destroy(copy->device, copy->buffer, copy->bytes, use.cancelled);
  }
  if (status == TM_OK && use.trial != NULL) tm_trial_pass(use.trial);
  if (use.is_abandoned && !use.is_apart) atomic_store(&run->candidate->holds_operands, true);
  tm_device_use_end(&use);
  return status;
}

/* Into memory of the device, whole store units included. */
static tm_status pack(const tm_lowered_run *run, const tm_operand_way *way, void *dense, tm_kept *copy) {
  tm_request request;
  tm_answer answer;
  tm_device_slot *device = run->candidate->device;
  tm_lowering_convert_request(way, device->index, &request);
  const tm_operation operation = tm_request_operation(&request), *asked = &operation;
  tm_device_query(device, &asked, 1, run->runner->cancelled, &answer);
  if (answer.level == TM_LEVEL_REFUSED) return tm_fail(run->error, TM_STALE, "the device packs it no more");
  uint64_t bytes;
  if (!tm_checked_round_up(way->packed.byte_count, device->memories[0].store_granule, &bytes)) return TM_ERROR_NO_MEMORY;
  copy->device = device;
  copy->bytes = bytes;
  return convert_into_buffer(run, &operation, &answer, dense, copy);
}

static tm_status keep_in_host_memory(const tm_lowered_run *run, const tm_operand_way *way, const void *dense, tm_kept *copy) {
  copy->bytes = way->dense.byte_count;
  copy->buffer = tm_memory_alloc(run->runner->kept->memory, copy->bytes, tm_max_u64(64, way->dense.alignment));
  if (copy->buffer == NULL) return tm_fail(run->error, TM_ERROR_NO_MEMORY, "no memory for a copy of a constant");
  memcpy(copy->buffer, dense, (size_t)copy->bytes);
  return TM_OK;
}

/* ---- all of it ---- */

static tm_status make_copy(const tm_lowered_run *run, const tm_operand_way *way, void *dense, const tm_kept_key *content,
                           const tm_kept_key *source, tm_kept **out_kept) {
  tm_kept copy = { .content = *content };
  if (way->packed.format != TM_FORMAT_NONE) TM_TRY(pack(run, way, dense, &copy));
  else TM_TRY(keep_in_host_memory(run, way, dense, &copy));
  *out_kept = tm_kept_add(run->runner->kept, &copy, source);
  if (*out_kept != NULL) return TM_OK;
  if (copy.device != NULL) tm_device_buffer_destroy(copy.device, copy.buffer, copy.bytes, NULL);
  else tm_memory_free(run->runner->kept->memory, copy.buffer, copy.bytes);
  return tm_fail(run->error, TM_ERROR_NO_MEMORY, "no memory for a copy of a constant");
}

static tm_status look_for_content(const tm_lowered_run *run, const tm_operand_way *way, void *dense, uint64_t recipe,
                                  const tm_kept_key *source, tm_kept **out_kept) {
  tm_kept_key content = tm_kept_hash(dense, way->dense.byte_count);
  content.words[0] ^= recipe;
  content.words[1] += recipe;
  *out_kept = tm_kept_find_content(run->runner->kept, &content, source);
  return *out_kept != NULL ? TM_OK : make_copy(run, way, dense, &content, source, out_kept);
}

tm_status tm_lowered_run_keep(const tm_lowered_run *run, const tm_operand_way *way, tm_kept **out_kept) {
  const uint64_t recipe = recipe_of(run, way);
  const tm_kept_key key = source_of(run, way, recipe), *source = run->origins[way->operand] == 0 ? NULL : &key;
  *out_kept = source == NULL ? NULL : tm_kept_find(run->runner->kept, source);
  if (*out_kept != NULL) return TM_OK;
  if (way->op == TM_OP_NONE) return look_for_content(run, way, run->pointers[way->operand], recipe, source, out_kept);
  tm_scratch_block block = tm_scratch_take_aligned(run->runner->scratch, way->dense.byte_count, way->dense.alignment);
  if (block.memory == NULL) return tm_fail(run->error, TM_ERROR_NO_MEMORY, "no memory for an intermediate tensor");
  void *dense = tm_scratch_start(&block, way->dense.alignment);
  tm_status status = tm_lowered_run_move_in(run, way, run->pointers[way->operand], dense);
  if (status == TM_OK) status = look_for_content(run, way, dense, recipe, source, out_kept);
  if (!tm_lowered_run_is_held(run)) tm_scratch_give(run->runner->scratch, block);
  return status;
}
