/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/op_table.h"
#include "picky_control.h"

struct tm_backend {
  picky_control  *control;
  const tm_host  *host;
  tm_memory_space space;
  const tm_memory_space *spaces[1];
};

struct tm_kernel {
  tm_operation operation;
  tm_operand   operands[TM_MAX_OPERANDS];
  uint64_t     attributes[8];
};

static tm_backend *backend_of(tm_device *device) { return (tm_backend *)(void *)device; }

static tm_status picky_init(const tm_host *host, tm_backend **out_backend) {
  picky_control *control = host->config_pointer(host->context, (tm_string)TM_STRING(PICKY_CONTROL_KEY));
  if (control == NULL) return host->fail(host->context, TM_ERROR_NO_DEVICE, 0, (tm_string)TM_STRING("no control"));
  tm_backend *backend = host->alloc(host->context, sizeof *backend, _Alignof(tm_backend));
  if (backend == NULL) return TM_ERROR_NO_MEMORY;
  static const tm_identity host_memory = TM_HOST_MEMORY, own_memory = { "picky memory" };
  memset(backend, 0, sizeof *backend);
  backend->control = control;
  backend->host = host;
  backend->space = (tm_memory_space){ .struct_size = sizeof backend->space,
                                      .flags = TM_MEMORY_HOST_POINTER,
                                      .identity = control->has_own_memory ? own_memory : host_memory,
                                      .name = TM_STRING("picky memory"),
                                      .alignment = 1,
                                      .offset_granule = 1,
                                      .store_granule = control->store_granule == 0 ? 1 : (uint32_t)control->store_granule };
  backend->spaces[0] = &backend->space;
  *out_backend = backend;
  return TM_OK;
}

static void picky_shutdown(tm_backend *backend) { backend->host->free(backend->host->context, backend, sizeof *backend); }

static tm_status picky_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  if (index != 0) return TM_END;
  out_info->flags = TM_DEVICE_SYNCHRONOUS;
  out_info->name = (tm_string)TM_STRING("a picky accelerator");
  out_info->epoch = 1;
  out_info->open_ns = backend->control->open_ns;
  out_info->queue_count = 4;
  out_info->memory_count = 1;
  out_info->memories = backend->spaces;
  return TM_OK;
}

static uint32_t operand_count(const tm_operation *operation) { return operation->input_count + operation->output_count; }

static int is_float(uint32_t format) { return format >= TM_FORMAT_F64 && format <= TM_FORMAT_BF16; }

/* ---- rules ---- */

static int obeys(const picky_rule *rule, const tm_operation *operation) {
  const tm_operand *operand = &operation->operands[rule->operand];
  const uint64_t extent = rule->axis_from_last < operand->rank ? operand->dims[operand->rank - 1 - rule->axis_from_last] : 0;
  switch (rule->kind) {
    case TM_CHANGE_CONTIGUOUS: return (operand->flags & TM_OPERAND_CONTIGUOUS) != 0 || operand->format >= TM_FORMAT_PRIVATE;
    case TM_CHANGE_ALIGN: return operand->alignment >= rule->value;
    case TM_CHANGE_PAD: return extent % rule->value == 0;
    case TM_CHANGE_CAST: return operand->format == rule->format;
    case TM_CHANGE_DEQUANTIZE: return operand->format < TM_FORMAT_GGUF || operand->format >= TM_FORMAT_PRIVATE;
    case TM_CHANGE_SPLIT_ABOVE: return extent <= rule->value;
    case TM_CHANGE_REDUCE_RANK: return operand->rank <= rule->value;
    case TM_CHANGE_CONVERT: return operand->format >= TM_FORMAT_PRIVATE;
    case TM_CHANGE_QUANTIZE:
      return !is_float(operand->format) && (operand->format < TM_FORMAT_GGUF || operand->format >= TM_FORMAT_PRIVATE);
    default: return 1;
  }
}

static int is_meant(const picky_rule *rule, const tm_operation *operation) {
  const uint32_t op = operation->op;
  if (rule->kind == 0 || rule->operand >= operand_count(operation)) return 0;
  if (rule->only_format != 0 && operation->operands[rule->operand].format != rule->only_format) return 0;
  return rule->op == op || (rule->op == 0 && op != TM_OP_COPY && op != TM_OP_CAST && op != TM_OP_DEQUANTIZE && op != TM_OP_FILL &&
                            op != TM_OP_CONVERT);
}

static uint64_t packed_bytes(const tm_operand *operand) { return operand->byte_count + 24; }

/* The same once its axes are padded as the rules want them. */
static uint64_t padded_bytes(const picky_control *control, const tm_operation *operation, uint32_t operand) {
  tm_operand padded = operation->operands[operand];
  uint64_t bytes = padded.byte_count / (padded.element_count == 0 ? 1 : padded.element_count);
  for (uint32_t i = 0; i < PICKY_RULES; i++) {
    const picky_rule *rule = &control->rules[i];
    const tm_matmul_attributes *attributes = operation->attributes;
    if (rule->kind != TM_CHANGE_PAD || control->is_naive) continue;
    uint32_t axis = padded.rank - 1 - rule->axis_from_last;
    if (rule->operand == 0 && operand == 1) axis = padded.rank - (attributes->transpose_b != 0 ? 1 : 2);       /* K */
    padded.dims[axis] = (padded.dims[axis] + rule->value - 1) / rule->value * rule->value;
  }
  for (uint32_t axis = 0; axis < padded.rank; axis++) bytes *= padded.dims[axis];
  padded.byte_count = bytes;
  return packed_bytes(&padded);
}

static void propose(const picky_control *control, const picky_rule *rule, const tm_operation *operation, tm_answer *answer) {
  const tm_operand *operand = &operation->operands[rule->operand];
  tm_change change = { .kind = rule->kind, .operand = rule->operand, .format = rule->format, .value = rule->value };
  if (operand->rank > rule->axis_from_last) change.axis = operand->rank - 1 - rule->axis_from_last;
  if (rule->kind == TM_CHANGE_CONVERT) {
    change.format = TM_FORMAT_PRIVATE + operand->format;
    change.value = padded_bytes(control, operation, rule->operand);
  }
  answer->changes[answer->change_count++] = change;
}

static void judge(const picky_control *control, const tm_operation *operation, tm_answer *answer) {
  for (uint32_t i = 0; i < PICKY_RULES && answer->change_count < TM_MAX_CHANGES; i++) {
    const picky_rule *rule = &control->rules[i];
    if (!is_meant(rule, operation) || obeys(rule, operation)) continue;
    answer->reasons |= TM_REASON_SHAPE;
    if (control->one_at_a_time == 0 || answer->change_count == 0) propose(control, rule, operation, answer);
  }
  for (uint32_t i = 0; i < operand_count(operation) && operation->op != TM_OP_CONVERT; i++)
    if ((control->needs_constant >> i & 1u) != 0 && (operation->operands[i].flags & TM_OPERAND_CONSTANT) == 0)
      answer->reasons |= TM_REASON_CONSTANT;
}

static int can_convert(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[1];
  return (x->flags & TM_OPERAND_CONTIGUOUS) != 0 && y->format == TM_FORMAT_PRIVATE + x->format && y->byte_count == packed_bytes(x);
}

static void answer_one(const picky_control *control, const tm_operation *operation, tm_answer *answer) {
  const tm_op_row *row = tm_op_find(operation->op);
  answer->operand = TM_NO_OPERAND;
  if (row == NULL || (control->only_op != 0 && operation->op != control->only_op && operation->op != TM_OP_CONVERT))
    answer->reasons = TM_REASON_OPERATION;
  else if (operation->op == TM_OP_CONVERT) answer->reasons = can_convert(operation) ? 0 : TM_REASON_LAYOUT;
  else judge(control, operation, answer);
  answer->text = (tm_string)TM_STRING("it is picky");
  if (answer->reasons != 0) return;
  answer->level = TM_LEVEL_NATIVE;
  const int is_exact = operation->operands[0].format == TM_FORMAT_I8;
  answer->numerics = is_exact ? TM_NUMERICS_N0 : control->numerics;
  answer->numerics_flags = TM_NUMERICS_RUN_TO_RUN;
  answer->numerics_bound = control->numerics_bound;
  answer->accumulator = control->accumulator;
  answer->cost_ns = control->cost_ns == 0 ? 1 : control->cost_ns;
  answer->setup_ns = operation->op == TM_OP_CONVERT ? 0 : control->setup_ns;
  answer->setup_key = control->setup_key;
}

static tm_status picky_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                             tm_answer *const *out_answers) {
  (void)index;
  for (uint32_t i = 0; i < count; i++) answer_one(backend->control, operations[i], out_answers[i]);
  return TM_OK;
}

/* ---- memory ---- */

static tm_status picky_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  tm_backend *backend = backend_of(device);
  (void)space;
  const uint64_t used = atomic_fetch_add(&backend->control->used_bytes, bytes) + bytes;
  void *memory = backend->control->capacity_bytes != 0 && used > backend->control->capacity_bytes
                     ? NULL
                     : backend->host->alloc(backend->host->context, bytes, 64);
  *out_buffer = memory;
  if (memory != NULL) return TM_OK;
  atomic_fetch_sub(&backend->control->used_bytes, bytes);
  return TM_ERROR_NO_MEMORY;
}

static void picky_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  tm_backend *backend = backend_of(device);
  (void)space;
  (void)imported;
  atomic_fetch_sub(&backend->control->used_bytes, bytes);
  backend->host->free(backend->host->context, buffer, bytes);
}

/* ---- computing ---- */

static tm_status picky_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  tm_backend *backend = backend_of(device);
  (void)answer;
  atomic_fetch_add(&backend->control->prepares, 1);
  tm_kernel *kernel = backend->host->alloc(backend->host->context, sizeof *kernel, _Alignof(tm_kernel));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  memset(kernel, 0, sizeof *kernel);
  kernel->operation = *operation;
  memcpy(kernel->operands, operation->operands, operand_count(operation) * sizeof(tm_operand));
  if (operation->attribute_bytes != 0) memcpy(kernel->attributes, operation->attributes, operation->attribute_bytes);
  kernel->operation.operands = kernel->operands;
  kernel->operation.attributes = operation->attribute_bytes == 0 ? NULL : kernel->attributes;
  *out_kernel = kernel;
  return TM_OK;
}

static void picky_release(tm_device *device, tm_kernel *kernel) {
  tm_backend *backend = backend_of(device);
  backend->host->free(backend->host->context, kernel, sizeof *kernel);
}

static void *address(const tm_launch *launch, uint32_t index) {
  return (void *)((uintptr_t)launch->bindings[index].buffer + launch->bindings[index].offset);
}

/* The layout: a mark, then the bytes from the last to the first. */
static const char mark[24] = "packed by the picky one";

static void pack(const unsigned char *from, unsigned char *to, uint64_t bytes) {
  memcpy(to, mark, sizeof mark);
  for (uint64_t i = 0; i < bytes; i++) to[sizeof mark + i] = from[bytes - 1 - i];
}

/* The dense form of a packed operand, to be freed; NULL if it is not what this one packs. */
static unsigned char *unpack(const tm_host *host, tm_operand *operand, const unsigned char *from) {
  const uint64_t bytes = operand->byte_count - sizeof mark;
  unsigned char *dense = memcmp(from, mark, sizeof mark) == 0 ? host->alloc(host->context, bytes, 64) : NULL;
  for (uint64_t i = 0; i < bytes && dense != NULL; i++) dense[i] = from[sizeof mark + bytes - 1 - i];
  operand->format -= TM_FORMAT_PRIVATE;
  int64_t stride = (int64_t)(bytes / (operand->element_count == 0 ? 1 : operand->element_count));
  for (uint32_t axis = operand->rank; axis-- > 0; stride *= (int64_t)operand->dims[axis]) operand->strides_bytes[axis] = stride;
  operand->byte_count = bytes;
  return dense;
}

static int is_as_promised(const tm_launch *launch) {
  const tm_kernel *kernel = launch->kernel;
  for (uint32_t i = 0; i < operand_count(&kernel->operation); i++)
    if (kernel->operands[i].byte_count != 0 && (uintptr_t)address(launch, i) % kernel->operands[i].alignment != 0) return 0;
  return launch->binding_count == operand_count(&kernel->operation);
}

static int compute(tm_backend *backend, const tm_launch *launch) {
  tm_operation operation = launch->kernel->operation;
  tm_operand operands[TM_MAX_OPERANDS];
  unsigned char *unpacked[TM_MAX_OPERANDS] = { NULL };
  void *pointers[TM_MAX_OPERANDS];
  int is_good = 1;
  memcpy(operands, launch->kernel->operands, sizeof operands);
  operation.operands = operands;
  for (uint32_t i = 0; i < operand_count(&operation); i++) {
    pointers[i] = address(launch, i);
    if (operands[i].format < TM_FORMAT_PRIVATE) continue;
    pointers[i] = unpacked[i] = unpack(backend->host, &operands[i], pointers[i]);
    is_good = is_good && unpacked[i] != NULL;
  }
  const tm_op_row *row = tm_op_find(operation.op);
  if (is_good) row->reference(&operation, pointers, 0, row->units(&operation));
  if (is_good && backend->control->is_wrong && operation.op == TM_OP_MATMUL)
    memset(pointers[2], 1, (size_t)operands[2].byte_count / 2);
  for (uint32_t i = 0; i < operand_count(&operation); i++)
    if (unpacked[i] != NULL) backend->host->free(backend->host->context, unpacked[i], operands[i].byte_count);
  return is_good;
}

static tm_status picky_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  tm_backend *backend = backend_of(device);
  const tm_host *host = backend->host;
  (void)out_ticket;
  const tm_status status = atomic_load(&backend->control->launch_status);
  if (status != TM_OK) return host->fail(host->context, status, 0, (tm_string)TM_STRING("told to fail"));
  int is_good = is_as_promised(launch);
  if (launch->kernel->operation.op == TM_OP_CONVERT) {
    atomic_fetch_add(&backend->control->converts, 1);
    pack(address(launch, 0), address(launch, 1), launch->kernel->operands[0].byte_count);
  } else {
    atomic_fetch_add(&backend->control->launches, 1);
    is_good = is_good && compute(backend, launch);
  }
  if (is_good) return TM_OK;
  atomic_fetch_add(&backend->control->complaints, 1);
  return host->fail(host->context, TM_ERROR_INTERNAL, 0, (tm_string)TM_STRING("operands are not as promised"));
}

static const tm_accelerator_backend_plugin picky_table = {
  .struct_size = sizeof picky_table,
  .init = picky_init,
  .shutdown = picky_shutdown,
  .device_info = picky_device_info,
  .query = picky_query,
  .prepare = picky_prepare,
  .release = picky_release,
  .buffer_create = picky_buffer_create,
  .buffer_destroy = picky_buffer_destroy,
  .launch = picky_launch,
};

TM_DEFINE_PLUGIN("picky", "1", "Tests", picky_table)
