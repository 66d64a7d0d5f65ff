/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/trial_operands.h"

#include <string.h>

#include "base/checked.h"
#include "plugin/device.h"
#include "tensor/format.h"
#include "tensor/shape.h"

/* Beyond this a copy costs more than it is worth, and a hang is an error instead of a fallback. */
#define LARGEST_COPY_BYTES (UINT64_C(256) << 20)

static bool are_small(const tm_plan_candidate *candidate, uint32_t count) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!tm_checked_add(total, candidate->operands[i].byte_count, &total)) return false;
  return total <= LARGEST_COPY_BYTES;
}

/* The copy keeps the address modulo the device's alignment and granule, and with it all that was promised of it. */
static bool copy_one(tm_trial_operands *operands, const tm_plan_candidate *candidate, uint32_t index, void *pointer) {
  const tm_operand *operand = &candidate->operands[index];
  operands->pointers[index] = pointer;
  if (operand->format >= TM_FORMAT_PRIVATE) return true;        /* packed, in memory of the device's own */
  const tm_memory_space *space = &candidate->device->memories[0];
  const uint64_t unit = tm_max_u64(tm_max_u64(TM_BEST_ALIGNMENT, space->alignment), operand->alignment);
  const uint64_t below = tm_operand_bytes_below(operand);
  const uint64_t lead = (uint64_t)((uintptr_t)pointer - below) % unit;
  const uint64_t bytes = lead + operand->byte_count;
  char *block = tm_memory_try_alloc(operands->memory, bytes, unit);
  if (block == NULL) return false;
  operands->blocks[operands->count] = block;
  operands->block_bytes[operands->count++] = bytes;
  operands->pointers[index] = block + lead + below;
  const bool is_input = index < candidate->operation.input_count;
  if (operand->byte_count != 0 && (is_input || (operand->flags & TM_OPERAND_CONTIGUOUS) == 0))
    memcpy(block + lead, (const char *)pointer - below, operand->byte_count);
  return true;
}

bool tm_trial_operands_init(tm_trial_operands *operands, tm_memory *memory, const tm_plan_candidate *candidate, void *const *pointers) {
  const uint32_t count = candidate->operation.input_count + candidate->operation.output_count;
  operands->memory = memory;
  operands->count = 0;
  if (!are_small(candidate, count)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (copy_one(operands, candidate, i, pointers[i])) continue;
    tm_trial_operands_deinit(operands);
    return false;
  }
  return true;
}

/* Elements along the last axis lie together, or each (or each block) for itself. */
static void copy_line(const tm_operand *operand, const tm_format_info *info, const char *from, char *to) {
  const uint32_t last = operand->rank - 1;
  const uint64_t blocks = tm_divide_up(operand->dims[last], info->block_elements);
  if (operand->strides_bytes[last] == (int64_t)info->block_bytes) {
    memcpy(to, from, blocks * info->block_bytes);
    return;
  }
  for (uint64_t i = 0; i < blocks; i++) {
    const int64_t offset = (int64_t)i * operand->strides_bytes[last];
    memcpy(to + offset, from + offset, info->block_bytes);
  }
}

static void copy_elements(const tm_operand *operand, const tm_format_info *info, const char *from, char *to) {
  uint64_t index[TM_MAX_RANK] = { 0 };
  if (operand->rank == 0) memcpy(to, from, info->block_bytes);
  while (operand->rank != 0) {
    copy_line(operand, info, from, to);
    uint32_t axis = operand->rank - 1;
    while (axis-- > 0) {
      from += operand->strides_bytes[axis];
      to += operand->strides_bytes[axis];
      if (++index[axis] < operand->dims[axis]) break;
      from -= (int64_t)operand->dims[axis] * operand->strides_bytes[axis];
      to -= (int64_t)operand->dims[axis] * operand->strides_bytes[axis];
      index[axis] = 0;
    }
    if (axis == UINT32_MAX) break;
  }
}

void tm_trial_operands_collect(const tm_trial_operands *operands, const tm_plan_candidate *candidate, void *const *pointers) {
  const tm_operation *operation = &candidate->operation;
  for (uint32_t i = operation->input_count; i < operation->input_count + operation->output_count; i++) {
    const tm_operand *operand = &candidate->operands[i];
    const tm_format_info *info = tm_format_find(operand->format);
    if (operand->byte_count == 0) continue;
    if (info == NULL || (operand->flags & TM_OPERAND_CONTIGUOUS) != 0)
      memcpy(pointers[i], operands->pointers[i], operand->byte_count);
    else
      copy_elements(operand, info, operands->pointers[i], pointers[i]);
  }
}

void tm_trial_operands_deinit(tm_trial_operands *operands) {
  for (uint32_t i = 0; i < operands->count; i++) tm_memory_free(operands->memory, operands->blocks[i], operands->block_bytes[i]);
  operands->count = 0;
}

void tm_trial_operands_leave(tm_trial_operands *operands, tm_device_slot *device) {
  for (uint32_t i = 0; i < operands->count; i++) tm_device_memory_free(device, operands->blocks[i], operands->block_bytes[i]);
  operands->count = 0;
}
