/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tensor.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "tensor/shape.h"

static tm_status make(tm_context *context, const tm_operand *operand, tm_tensor **out_tensor, tm_error *error) {
  tm_tensor *tensor = tm_memory_calloc(&context->memory, 1, sizeof *tensor);
  if (tensor == NULL)
    return tm_memory_name_limit(&context->memory, tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tensor"), error);
  tensor->context = context;
  tensor->operand = *operand;
  if ((operand->flags & TM_OPERAND_CONSTANT) != 0) tensor->origin = tm_kept_new_origin(&context->kept);
  *out_tensor = tensor;
  return TM_OK;
}

tm_status tm_tensor_make(tm_context *context, const tm_operand *operand, tm_tensor **out_tensor, tm_error *error) {
  tm_tensor *tensor = NULL;
  TM_TRY(make(context, operand, &tensor, error));
  void *memory = tm_memory_alloc(&context->memory, operand->byte_count, TM_BEST_ALIGNMENT);
  if (memory == NULL) {
    tm_tensor_destroy(tensor);
    char dims[128];
    tm_format_dims(operand, dims, sizeof dims);
    (void)tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tensor of %llu bytes (%s)", (unsigned long long)operand->byte_count,
                  dims);
    return tm_memory_name_limit(&context->memory, TM_ERROR_NO_MEMORY, error);
  }
  tensor->owned = memory;
  tensor->owned_bytes = operand->byte_count;
  tensor->data = memory;
  tensor->lowest = memory;
  tensor->extent_bytes = operand->byte_count;
  *out_tensor = tensor;
  return TM_OK;
}

tm_status tm_tensor_borrow(tm_context *context, const tm_operand *operand, const void *data, tm_tensor **out_tensor, tm_error *error) {
  tm_tensor *tensor = NULL;
  TM_TRY(make(context, operand, &tensor, error));
  tensor->data = (char *)(uintptr_t)data;
  tensor->lowest = tensor->data;
  tensor->extent_bytes = operand->byte_count;
  tensor->read_only = true;
  *out_tensor = tensor;
  return TM_OK;
}

tm_status tm_tensor_create(tm_context *context, uint32_t format, uint32_t rank, const uint64_t *dims, tm_tensor **out_tensor, tm_error *error) {
  tm_operand operand;
  if (rank != 0 && dims == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "rank %u without dims", rank);
  TM_TRY(tm_operand_contiguous(format, rank, dims, &operand, error));
  TM_TRY(tm_tensor_make(context, &operand, out_tensor, error));
  if (operand.byte_count != 0) memset((*out_tensor)->data, 0, operand.byte_count);
  return TM_OK;
}

tm_status tm_layout_complete(const tm_operand *layout, tm_operand *out_operand, tm_error *error) {
  if (layout == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "there is no layout");
  if (layout->rank > TM_MAX_RANK)
    return tm_fail(error, TM_ERROR_ARGUMENT, "rank %u is more than %d", layout->rank, TM_MAX_RANK);
  bool has_strides = false;
  for (uint32_t i = 0; i < layout->rank; i++) has_strides |= layout->strides_bytes[i] != 0;
  tm_operand operand;
  TM_TRY(tm_operand_contiguous(layout->format, layout->rank, layout->dims, &operand, error));
  operand.flags |= layout->flags & TM_OPERAND_CONSTANT;
  if (has_strides) {
    memcpy(operand.strides_bytes, layout->strides_bytes, layout->rank * sizeof operand.strides_bytes[0]);
    TM_TRY(tm_operand_derive(&operand, error));
  }
  *out_operand = operand;
  return TM_OK;
}

static tm_status check_inside(const tm_operand *operand, const char *data, const char *lowest, uint64_t extent, tm_error *error) {
  const uint64_t below = tm_operand_bytes_below(operand);
  const uint64_t before = (uint64_t)(data - lowest);
  const bool inside = operand->byte_count == 0 ||
                      (below <= before && before - below <= extent && operand->byte_count <= extent - (before - below));
  if (inside) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "the layout reaches from %llu bytes before its first element to %llu after it; there are %llu before and %llu after",
                 (unsigned long long)below, (unsigned long long)(operand->byte_count - below), (unsigned long long)before,
                 (unsigned long long)(extent - before));
}

tm_status tm_tensor_wrap(tm_context *context, const tm_operand *layout, void *data, uint64_t data_bytes, tm_tensor **out_tensor, tm_error *error) {
  tm_operand operand;
  TM_TRY(tm_layout_complete(layout, &operand, error));
  if (data == NULL && operand.byte_count != 0) return tm_fail(error, TM_ERROR_ARGUMENT, "no data to wrap");
  const uint64_t below = tm_operand_bytes_below(&operand);
  const uint64_t extent = data_bytes > UINT64_MAX - below ? UINT64_MAX : data_bytes + below;
  char *lowest = below == 0 ? data : (char *)data - below;
  TM_TRY(check_inside(&operand, data, lowest, extent, error));
  tm_tensor *tensor = NULL;
  TM_TRY(make(context, &operand, &tensor, error));
  tensor->data = data;
  tensor->lowest = lowest;
  tensor->extent_bytes = extent;
  *out_tensor = tensor;
  return TM_OK;
}

tm_status tm_tensor_view(tm_tensor *tensor, const tm_operand *layout, uint64_t offset_bytes, tm_tensor **out_view, tm_error *error) {
  tm_operand operand;
  TM_TRY(tm_layout_complete(layout, &operand, error));
  operand.flags |= tensor->operand.flags & TM_OPERAND_CONSTANT;
  const uint64_t before = (uint64_t)(tensor->data - tensor->lowest);
  if (offset_bytes > tensor->extent_bytes - before)
    return tm_fail(error, TM_ERROR_ARGUMENT, "a view at offset %llu of a tensor with %llu bytes", (unsigned long long)offset_bytes,
                   (unsigned long long)(tensor->extent_bytes - before));
  char *data = offset_bytes == 0 ? tensor->data : tensor->data + offset_bytes;
  TM_TRY(check_inside(&operand, data, tensor->lowest, tensor->extent_bytes, error));
  tm_tensor *view = NULL;
  TM_TRY(make(tensor->context, &operand, &view, error));
  view->data = data;
  view->lowest = tensor->lowest;
  view->extent_bytes = tensor->extent_bytes;
  view->checkpoint = tensor->checkpoint;
  view->read_only = tensor->read_only;
  if (tensor->origin != 0) view->origin = tensor->origin;
  *out_view = view;
  return TM_OK;
}

void tm_tensor_destroy(tm_tensor *tensor) {
  if (tensor == NULL) return;
  tm_memory *memory = &tensor->context->memory;
  tm_memory_free(memory, tensor->owned, tensor->owned_bytes);
  tm_memory_free(memory, tensor, sizeof *tensor);
}

const tm_operand *tm_tensor_operand(const tm_tensor *tensor) { return &tensor->operand; }

void *tm_tensor_data(tm_tensor *tensor) { return tensor->data; }
