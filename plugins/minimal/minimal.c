/* SPDX-License-Identifier: Apache-2.0 */
/* A whole backend: it adds, subtracts and multiplies f32 tensors on the host's cores, and says what would help it. */
#include <string.h>
#include <tensormorph/plugin.h>
/* What is behind the handles is up to the backend.  Here: the host's services.  Without `open`, both handles are the same. */
struct tm_device { tm_host host; };
struct tm_kernel { uint32_t op; uint64_t count; };
typedef struct task { uint32_t op; const float *a, *b; float *y; } task;

static tm_status minimal_init(const tm_host *host, tm_backend **out_backend) {
  *out_backend = (tm_backend *)(uintptr_t)host; /* valid until shutdown; nothing of it is written */
  return TM_OK;
}

static tm_status minimal_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  static const tm_memory_space memory = { .struct_size = sizeof(memory), .flags = TM_MEMORY_HOST_POINTER,
    .identity = TM_HOST_MEMORY, .name = TM_STRING("host memory"), .alignment = 4, .offset_granule = 4, .store_granule = 4 };
  static const tm_memory_space *const memories[] = { &memory };
  const tm_device_info info = { .struct_size = out_info->struct_size, .flags = TM_DEVICE_SYNCHRONOUS,
    .resource = TM_HOST_CORES, .name = TM_STRING("three operations"), .cost_model_id = 1, .memory_count = 1, .memories = memories };
  if (backend == NULL || index > 0) return TM_END;
  memcpy(out_info, &info, info.struct_size < sizeof(info) ? info.struct_size : sizeof(info));
  return TM_OK;
}

/* What a later host appended to a struct may be ignored only while it is zero. */
static int is_zero(const void *data, uint64_t begin, uint64_t end) {
  while (begin < end && ((const char *)data)[begin] == 0) begin++;
  return begin >= end;
}

/* Why not?  0 is yes.  Each operand may need one change; made together, they turn this answer into a yes. */
static uint32_t judge(const tm_operation *operation, tm_answer *answer) {
  const uint32_t known = TM_OPERATION_FACTS | TM_OPERATION_RUN_TO_RUN, op = operation->op;
  if ((op != TM_OP_ADD && op != TM_OP_SUB && op != TM_OP_MUL) || operation->version != 1) return TM_REASON_OPERATION;
  if ((operation->flags & ~known) != 0 || !is_zero(operation, sizeof(*operation), operation->struct_size)) return TM_REASON_DEMAND;
  if (!is_zero(operation->attributes, 0, operation->attribute_bytes)) return TM_REASON_ATTRIBUTE;
  if ((operation->flags & TM_OPERATION_ALL_SAME_SHAPE) == 0) return TM_REASON_SHAPE;
  const uint32_t format = operation->operands[0].format, is_half = format == TM_FORMAT_F16 || format == TM_FORMAT_BF16;
  if (format != TM_FORMAT_F32 && !is_half) return TM_REASON_FORMAT;
  for (uint32_t i = 0; i < 3; i++) {
    const tm_operand *x = &operation->operands[i];
    uint32_t why = 0, kind = 0;
    if (is_half) why = TM_REASON_FORMAT, kind = TM_CHANGE_CAST;
    else if ((x->flags & TM_OPERAND_CONTIGUOUS) == 0) why = TM_REASON_LAYOUT, kind = TM_CHANGE_CONTIGUOUS;
    else if (x->alignment < 4) why = TM_REASON_ALIGNMENT, kind = TM_CHANGE_ALIGN;
    if (why != 0) answer->reasons |= why, answer->changes[answer->change_count++] = (tm_change){ kind, i, 0, TM_FORMAT_F32, 4 };
  }
  return answer->reasons;
}

static tm_status minimal_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                               tm_answer *const *out_answers) {
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) {
    tm_answer answer = { .struct_size = out_answers[i]->struct_size, .operand = TM_NO_OPERAND };
    answer.reasons = judge(operations[i], &answer);
    if (answer.reasons == 0) {
      answer.level = TM_LEVEL_NATIVE, answer.numerics = TM_NUMERICS_N0, answer.launch_ns = 2000;
      answer.numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE;
      answer.cost_ns = answer.launch_ns + operations[i]->operands[0].element_count;
    } else answer.text = (tm_string)TM_STRING("add, sub and mul of dense f32 tensors of one shape, and nothing else");
    memcpy(out_answers[i], &answer, answer.struct_size < sizeof(answer) ? answer.struct_size : sizeof(answer));
  }
  return TM_OK;
}

static tm_status minimal_prepare(tm_device *device, const tm_operation *operation, const tm_answer *given, tm_kernel **out_kernel) {
  tm_answer answer = { .struct_size = given->struct_size };
  const uint32_t why = judge(operation, &answer);   /* bytes or flags that it does not know: unsupported */
  if (why != 0) return why == TM_REASON_DEMAND || why == TM_REASON_ATTRIBUTE ? TM_UNSUPPORTED : TM_ERROR_ARGUMENT;
  if ((*out_kernel = device->host.alloc(device->host.context, sizeof(tm_kernel), 8)) == NULL) return TM_ERROR_NO_MEMORY;
  **out_kernel = (tm_kernel){ operation->op, operation->operands[0].element_count };
  return TM_OK;
}

static void minimal_release(tm_device *device, tm_kernel *kernel) {
  device->host.free(device->host.context, kernel, sizeof(*kernel));
}

static void run_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const task *t = argument;
  (void)lane;
  for (uint64_t i = begin; i < end; i++)
    t->y[i] = t->op == TM_OP_ADD ? t->a[i] + t->b[i] : t->op == TM_OP_SUB ? t->a[i] - t->b[i] : t->a[i] * t->b[i];
}

/* In a space with TM_MEMORY_HOST_POINTER a buffer is its address. */
static void *address_of(const tm_binding *binding) { return (char *)binding->buffer + binding->offset; }
static tm_status minimal_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_binding *bound = launch->bindings;
  if (out_ticket == NULL || !is_zero(launch, sizeof(*launch), launch->struct_size)) return TM_UNSUPPORTED;
  task t = { launch->kernel->op, address_of(&bound[0]), address_of(&bound[1]), address_of(&bound[2]) };
  device->host.parallel_for(device->host.context, launch->kernel->count, 4096, run_range, &t);
  return TM_OK;
}

static const tm_accelerator_backend_plugin minimal = { .struct_size = sizeof(minimal), .init = minimal_init, .query = minimal_query,
  .device_info = minimal_device_info, .prepare = minimal_prepare, .release = minimal_release, .launch = minimal_launch };
TM_DEFINE_PLUGIN("minimal", "1.0", "an example", minimal)
