/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers rows of f32 by i64 indices, of which it looks at the lowest ZOO_BITS bits only. */
#include <string.h>

#include "zoo.h"

typedef struct narrow_kernel {
  uint64_t outer;
  uint64_t extent;
  uint64_t row;
  uint64_t picks;
} narrow_kernel;

static uint32_t refuses(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0];
  tm_axis_attributes axis = { 0 };
  if ((operation->flags & ~(TM_OPERATION_FACTS | TM_OPERATION_RUN_TO_RUN)) != 0) return TM_REASON_DEMAND;
  if (!zoo_is_zero(operation, sizeof *operation, operation->struct_size)) return TM_REASON_DEMAND;
  if (operation->op != TM_OP_GATHER || operation->version != 1) return TM_REASON_OPERATION;
  if (!zoo_is_zero(operation->attributes, sizeof axis, operation->attribute_bytes)) return TM_REASON_ATTRIBUTE;
  memcpy(&axis, operation->attributes, sizeof axis);
  if (axis.axis >= x->rank) return TM_REASON_ATTRIBUTE;
  if (x->format != TM_FORMAT_F32 || operation->operands[1].format != TM_FORMAT_I64) return TM_REASON_FORMAT;
  for (uint32_t i = 0; i < 3; i++) {
    if ((operation->operands[i].flags & TM_OPERAND_CONTIGUOUS) == 0) return TM_REASON_LAYOUT;
    if (operation->operands[i].alignment < 8) return TM_REASON_ALIGNMENT;
  }
  return 0;
}

static tm_status query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                       tm_answer *const *out_answers) {
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) zoo_reply(out_answers[i], refuses(operations[i]));
  return TM_OK;
}

static tm_status prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  (void)answer;
  if (refuses(operation) != 0) return TM_UNSUPPORTED;
  const tm_host *host = zoo_backend_of(device)->host;
  const tm_operand *x = &operation->operands[0];
  tm_axis_attributes axis;
  narrow_kernel *kernel = host->alloc(host->context, sizeof *kernel, _Alignof(narrow_kernel));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  memcpy(&axis, operation->attributes, sizeof axis);
  *kernel = (narrow_kernel){ .outer = 1, .extent = x->dims[axis.axis], .row = 1, .picks = operation->operands[1].element_count };
  for (uint32_t i = 0; i < axis.axis; i++) kernel->outer *= x->dims[i];
  for (uint32_t i = axis.axis + 1; i < x->rank; i++) kernel->row *= x->dims[i];
  *out_kernel = (tm_kernel *)(void *)kernel;
  return TM_OK;
}

static void release(tm_device *device, tm_kernel *kernel) {
  const tm_host *host = zoo_backend_of(device)->host;
  if (kernel != NULL) host->free(host->context, kernel, sizeof(narrow_kernel));
}

static int64_t narrowed(int64_t index) {
  const uint64_t low = (uint64_t)index << (64 - ZOO_BITS);
  int64_t whole;
  memcpy(&whole, &low, sizeof whole);
  return whole >> (64 - ZOO_BITS);
}

static void *address(const tm_launch *launch, uint32_t index) {
  return (void *)((uintptr_t)launch->bindings[index].buffer + launch->bindings[index].offset);
}

static tm_status launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const narrow_kernel *k = (const narrow_kernel *)(const void *)launch->kernel;
  const float *x = address(launch, 0);
  const int64_t *indices = address(launch, 1);
  float *y = address(launch, 2);
  (void)device, (void)out_ticket;
  if (!zoo_is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  for (uint64_t i = 0; i < k->outer * k->picks; i++) {
    const int64_t at = narrowed(indices[i % k->picks]);
    if (at < 0 || (uint64_t)at >= k->extent) memset(y + i * k->row, 0, k->row * sizeof *y);
    else memcpy(y + i * k->row, x + (i / k->picks * k->extent + (uint64_t)at) * k->row, k->row * sizeof *y);
  }
  return TM_OK;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = zoo_device_info, .query = query,
  .prepare = prepare, .release = release, .launch = launch,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
