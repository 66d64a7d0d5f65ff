/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/format.h"

static uint64_t magnitude(int64_t stride) { return stride < 0 ? UINT64_C(0) - (uint64_t)stride : (uint64_t)stride; }

/* Steps of one stride along an axis: elements, or blocks on the last axis. */
static uint64_t axis_steps(const tm_format_info *info, const tm_operand *operand, uint32_t axis) {
  return axis + 1 == operand->rank ? operand->dims[axis] / info->block_elements : operand->dims[axis];
}

static tm_status check_rank(uint32_t rank, tm_error *error) {
  if (rank <= TM_MAX_RANK) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "rank %u, expected at most %d", (unsigned)rank, TM_MAX_RANK);
}

static tm_status find_format(uint32_t format, const tm_format_info **out_info, tm_error *error) {
  *out_info = tm_format_find(format);
  if (*out_info != NULL) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "format number 0x%x is not known", (unsigned)format);
}

static tm_status check_blocks(const tm_format_info *info, const tm_operand *operand, tm_error *error) {
  if (info->block_elements == 1) return TM_OK;
  if (operand->rank == 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: rank 0, expected a last axis of whole blocks of %u elements",
                   info->name, (unsigned)info->block_elements);
  const uint64_t extent = operand->dims[operand->rank - 1];
  if (extent % info->block_elements != 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: last axis has %llu elements, expected whole blocks of %u", info->name,
                   (unsigned long long)extent, (unsigned)info->block_elements);
  return TM_OK;
}

static tm_status check_strides(const tm_format_info *info, const tm_operand *operand, tm_error *error) {
  TM_TRY(check_blocks(info, operand, error));
  for (uint32_t i = operand->rank; i < TM_MAX_RANK; i++)
    if (operand->dims[i] != 0 || operand->strides_bytes[i] != 0)
      return tm_fail(error, TM_ERROR_ARGUMENT, "axis %u: expected zero extent and stride beyond rank %u", (unsigned)i,
                     (unsigned)operand->rank);
  if (info->block_elements == 1 || operand->strides_bytes[operand->rank - 1] == (int64_t)info->block_bytes)
    return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: last axis has stride %lld, expected %u (the bytes of a block)",
                 info->name, (long long)operand->strides_bytes[operand->rank - 1], (unsigned)info->block_bytes);
}

static bool is_empty(const tm_operand *operand) {
  for (uint32_t i = 0; i < operand->rank; i++)
    if (operand->dims[i] == 0) return true;
  return false;
}

/* Offsets are signed in strides, so a tensor may span what a signed 64-bit number counts and no more. */
static tm_status derive_counts(const tm_format_info *info, tm_operand *operand, tm_error *error) {
  uint64_t elements = 1;
  uint64_t bytes = info->block_bytes;
  bool fits = true;
  for (uint32_t i = 0; i < operand->rank && fits; i++) {
    uint64_t reach = 0;
    fits = tm_checked_mul(elements, operand->dims[i], &elements) &&
           tm_checked_mul(axis_steps(info, operand, i) - 1, magnitude(operand->strides_bytes[i]), &reach) &&
           tm_checked_add(bytes, reach, &bytes);
  }
  if (!fits || bytes > (uint64_t)INT64_MAX)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s tensor is larger than 64 bits can count", info->name);
  operand->element_count = elements;
  operand->byte_count = bytes;
  return TM_OK;
}

/* Strides of axes with one step are never used, so they do not matter. */
static bool is_contiguous(const tm_format_info *info, const tm_operand *operand) {
  uint64_t dense = info->block_bytes;
  for (uint32_t i = operand->rank; i-- > 0;) {
    const uint64_t steps = axis_steps(info, operand, i);
    if (steps != 1 && operand->strides_bytes[i] != (int64_t)dense) return false;
    dense *= steps;
  }
  return true;
}

tm_status tm_operand_derive(tm_operand *operand, tm_error *error) {
  const tm_format_info *info;
  TM_TRY(check_rank(operand->rank, error));
  TM_TRY(find_format(operand->format, &info, error));
  TM_TRY(check_strides(info, operand, error));
  operand->flags &= TM_OPERAND_CONSTANT | TM_OPERAND_IN_PLACE;
  if (is_empty(operand)) {
    operand->element_count = 0;
    operand->byte_count = 0;
    operand->flags |= TM_OPERAND_CONTIGUOUS;
    return TM_OK;
  }
  TM_TRY(derive_counts(info, operand, error));
  if (is_contiguous(info, operand)) operand->flags |= TM_OPERAND_CONTIGUOUS;
  if (operand->element_count == 1) operand->flags |= TM_OPERAND_SCALAR;
  return TM_OK;
}

tm_status tm_operand_contiguous(uint32_t format, uint32_t rank, const uint64_t *dims, tm_operand *out_operand,
                                tm_error *error) {
  tm_operand operand = { .format = format, .rank = rank, .alignment = 1 };
  const tm_format_info *info;
  TM_TRY(check_rank(rank, error));
  TM_TRY(find_format(format, &info, error));
  for (uint32_t i = 0; i < rank; i++) operand.dims[i] = dims[i];
  TM_TRY(check_blocks(info, &operand, error));
  uint64_t dense = info->block_bytes;
  for (uint32_t i = rank; i-- > 0;) {
    if (dense > (uint64_t)INT64_MAX)
      return tm_fail(error, TM_ERROR_ARGUMENT, "%s tensor is larger than 64 bits can count", info->name);
    operand.strides_bytes[i] = (int64_t)dense;
    if (!tm_checked_mul(dense, axis_steps(info, &operand, i), &dense)) dense = UINT64_MAX;
  }
  TM_TRY(tm_operand_derive(&operand, error));
  *out_operand = operand;
  return TM_OK;
}

/* Whether one axis of `from` can stand for an axis of extent `to`; blocks cannot repeat inside a row. */
static bool axis_broadcasts(const tm_format_info *info, const tm_operand *from, uint32_t axis, uint64_t to) {
  if (from->dims[axis] == to) return true;
  return from->dims[axis] == 1 && (info->block_elements == 1 || axis + 1 != from->rank);
}

bool tm_operand_broadcast(const tm_operand *operand, uint32_t rank, const uint64_t *dims, tm_operand *out_operand) {
  const tm_format_info *info = tm_format_find(operand->format);
  if (info == NULL || rank > TM_MAX_RANK || operand->rank > rank) return false;
  tm_operand wide = {.format = operand->format, .rank = rank, .alignment = operand->alignment, .flags = operand->flags};
  const uint32_t added = rank - operand->rank;
  for (uint32_t i = 0; i < rank; i++) {
    wide.dims[i] = dims[i];
    if (i < added) continue;
    if (!axis_broadcasts(info, operand, i - added, dims[i])) return false;
    if (operand->dims[i - added] == dims[i]) wide.strides_bytes[i] = operand->strides_bytes[i - added];
  }
  if (tm_operand_derive(&wide, NULL) != TM_OK) return false;
  *out_operand = wide;
  return true;
}

bool tm_broadcast_dims(const tm_operand *operands, uint32_t count, uint32_t *out_rank, uint64_t *out_dims) {
  uint64_t dims[TM_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < count; i++)
    if (operands[i].rank > rank) rank = operands[i].rank;
  if (rank > TM_MAX_RANK) return false;
  for (uint32_t axis = 0; axis < rank; axis++) {
    dims[axis] = 1;
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t added = rank - operands[i].rank;
      const uint64_t extent = axis < added ? 1 : operands[i].dims[axis - added];
      if (extent == 1 || extent == dims[axis]) continue;
      if (dims[axis] != 1) return false;
      dims[axis] = extent;
    }
  }
  *out_rank = rank;
  memcpy(out_dims, dims, rank * sizeof dims[0]);
  return true;
}

bool tm_same_dims(const tm_operand *a, const tm_operand *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

uint64_t tm_operand_bytes_below(const tm_operand *operand) {
  uint64_t below = 0;
  if (is_empty(operand)) return 0;
  for (uint32_t i = 0; i < operand->rank; i++)
    if (operand->strides_bytes[i] < 0) below += (operand->dims[i] - 1) * magnitude(operand->strides_bytes[i]);
  return below;
}

void tm_format_dims(const tm_operand *operand, char *text, uint64_t capacity) {
  char all[TM_MAX_RANK * 21 + 3];
  size_t length = 0;
  all[length++] = '[';
  for (uint32_t i = 0; i < operand->rank && i < TM_MAX_RANK; i++)
    length += (size_t)snprintf(all + length, sizeof all - length, i == 0 ? "%llu" : ",%llu",
                               (unsigned long long)operand->dims[i]);
  all[length++] = ']';
  all[length] = '\0';
  if (capacity == 0) return;
  const size_t kept = length < capacity ? length : (size_t)capacity - 1;
  memcpy(text, all, kept);
  text[kept] = '\0';
}
