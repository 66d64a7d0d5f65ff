/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_control.h"

#include <string.h>

struct tm_backend {
  fake_control   *control;
  const tm_host  *host;
  tm_memory_space space;
  const tm_memory_space *spaces[1];
};

struct tm_kernel {
  uint32_t op;
  uint32_t has_workspace;
  uint64_t count;               /* elements; 0: only pretends */
};

static const tm_identity none;

static tm_backend *backend_of(tm_device *device) { return (tm_backend *)(void *)device; }

static tm_status fake_init(const tm_host *host, tm_backend **out_backend) {
  fake_control *control = host->config_pointer(host->context, (tm_string)TM_STRING(FAKE_CONTROL_KEY));
  if (control == NULL) return host->fail(host->context, TM_ERROR_NO_DEVICE, 0, (tm_string)TM_STRING("no control"));
  tm_backend *backend = host->alloc(host->context, sizeof *backend, _Alignof(tm_backend));
  if (backend == NULL) return TM_ERROR_NO_MEMORY;
  memset(backend, 0, sizeof *backend);
  backend->control = control;
  backend->host = host;
  const tm_identity host_memory = TM_HOST_MEMORY;
  const int is_host = memcmp(&control->memory, &none, sizeof none) == 0;
  backend->space = (tm_memory_space){
    .struct_size = sizeof backend->space,
    .flags = TM_MEMORY_HOST_POINTER,
    .identity = is_host ? host_memory : control->memory,
    .name = TM_STRING("fake memory"),
    .alignment = 1,
    .offset_granule = control->granule == 0 ? 1 : control->granule,
    .store_granule = control->granule == 0 ? 1 : control->granule,
  };
  backend->spaces[0] = &backend->space;
  control->host = host;
  atomic_store(&control->epoch, 1);
  *out_backend = backend;
  return TM_OK;
}

static void fake_shutdown(tm_backend *backend) { backend->host->free(backend->host->context, backend, sizeof *backend); }

static tm_status fake_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  if (index != 0) return TM_END;
  out_info->flags = backend->control->is_asynchronous ? 0 : TM_DEVICE_SYNCHRONOUS;
  out_info->uuid = backend->control->uuid;
  out_info->resource = backend->control->resource;
  out_info->name = (tm_string)TM_STRING("a fake accelerator");
  out_info->epoch = 1;
  out_info->queue_count = backend->control->queue_count == 0 ? 4 : backend->control->queue_count;
  out_info->memory_count = 1;
  out_info->memories = backend->spaces;
  return TM_OK;
}

static uint32_t operand_count(const tm_operation *operation) { return operation->input_count + operation->output_count; }

static int computes(uint32_t op) { return op == TM_OP_NEG || op == TM_OP_ADD || op == TM_OP_COPY; }

static void propose(tm_answer *answer, uint32_t kind, uint32_t operand, uint32_t format) {
  answer->changes[answer->change_count++] = (tm_change){ .kind = kind, .operand = operand, .format = format };
}

/* Reasons against the operands, with the changes that would mend them. */
static void judge_operands(const fake_control *control, const tm_operation *operation, tm_answer *answer) {
  const uint32_t format = control->proposed_format != 0 ? control->proposed_format : TM_FORMAT_F32;
  for (uint32_t i = 0; i < operand_count(operation); i++) {
    const tm_operand *operand = &operation->operands[i];
    if (operand->format != TM_FORMAT_F32 && operand->format != format && !control->any_format) {
      answer->reasons |= TM_REASON_FORMAT;
      if (control->proposes) propose(answer, operand->format >= TM_FORMAT_GGUF ? TM_CHANGE_DEQUANTIZE : TM_CHANGE_CAST, i, format);
    } else if ((operand->flags & TM_OPERAND_CONTIGUOUS) == 0) {
      answer->reasons |= TM_REASON_LAYOUT;
      if (control->proposes) propose(answer, TM_CHANGE_CONTIGUOUS, i, 0);
    }
  }
}

static void answer_one(const fake_control *control, const tm_operation *operation, tm_answer *answer) {
  answer->operand = TM_NO_OPERAND;
  answer->epoch = atomic_load(&control->epoch);
  const int known = control->any_format || computes(operation->op);
  if (!known || (control->only_op != 0 && operation->op != control->only_op)) answer->reasons = TM_REASON_OPERATION;
  else judge_operands(control, operation, answer);
  if (answer->reasons != 0) {
    answer->text = (tm_string)TM_STRING("the fake does not want it");
    return;
  }
  const uint64_t elements = operation->operands[operation->input_count].element_count;
  answer->level = TM_LEVEL_NATIVE;
  answer->numerics = control->numerics;
  answer->numerics_flags = control->numerics_flags;
  answer->numerics_bound = control->numerics_bound;
  answer->accumulator = TM_FORMAT_F32;
  answer->cost_ns = control->declared_ns != NULL ? control->declared_ns(control, operation->op, elements)
                                                 : control->cost_ns + elements * control->element_cost_ps / 1000;
  answer->setup_key = control->virtual_setup_ns != 0;   /* one for all */
  answer->setup_ns = control->setup_ns;
  answer->workspace_bytes = control->workspace_bytes;
}

static tm_status fake_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                            tm_answer *const *out_answers) {
  (void)index;
  atomic_fetch_add(&backend->control->queries, count);
  for (uint32_t i = 0; i < count; i++) answer_one(backend->control, operations[i], out_answers[i]);
  return TM_OK;
}

static tm_status fake_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  tm_backend *backend = backend_of(device);
  const uint64_t prepared = atomic_fetch_add(&backend->control->prepares, 1);
  if (backend->control->clock_ns != NULL && prepared == 0) atomic_fetch_add(backend->control->clock_ns, backend->control->virtual_setup_ns);
  if (answer->epoch != atomic_load(&backend->control->epoch)) return TM_STALE;
  const tm_status status = atomic_load(&backend->control->prepare_status);
  if (status != TM_OK) return status;
  tm_kernel *kernel = backend->host->alloc(backend->host->context, sizeof *kernel, _Alignof(tm_kernel));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  const tm_operand *output = &operation->operands[operation->input_count];
  const int is_real = computes(operation->op) && output->format == TM_FORMAT_F32 && operation->operands[0].format == TM_FORMAT_F32;
  *kernel = (tm_kernel){ operation->op, backend->control->workspace_bytes != 0, is_real ? output->element_count : 0 };
  *out_kernel = kernel;
  return TM_OK;
}

static void fake_release(tm_device *device, tm_kernel *kernel) {
  tm_backend *backend = backend_of(device);
  atomic_fetch_add(&backend->control->releases, 1);
  backend->host->free(backend->host->context, kernel, sizeof *kernel);
}

static float *address(const tm_launch *launch, uint32_t index) {
  return (float *)((uintptr_t)launch->bindings[index].buffer + launch->bindings[index].offset);
}

/* Tickets are numbers of launches. */
static void give_ticket(fake_control *control, const tm_launch *launch, uint64_t number, tm_ticket *out_ticket) {
  out_ticket->queue = launch->queue;
  out_ticket->value = number;
  if (number != control->hang_at) return;
  control->held_input = address(launch, 0);
  control->held_output = address(launch, launch->binding_count - 1);
}

static tm_status fake_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  const tm_host *host = backend_of(device)->host;
  fake_control *control = backend_of(device)->control;
  const uint64_t hang_at = control->hang_at, fail_at = atomic_load(&control->fail_at), begin = host->now_ns(host->context);
  atomic_fetch_add(&control->waits, 1);
  atomic_store(&control->unwaited, 0);
  for (uint32_t i = 0; i < count; i++) {
    if (fail_at != 0 && tickets[i].value >= fail_at) return tickets[i].value == fail_at ? TM_ERROR_INTERNAL : TM_ERROR_PREDECESSOR;
    if (hang_at == 0 || tickets[i].value < hang_at) continue;
    while (host->now_ns(host->context) - begin < timeout_ns) {
    }
    return TM_PENDING;
  }
  return TM_OK;
}

static tm_status fake_cancel(tm_device *device, uint32_t queue) {
  fake_control *control = backend_of(device)->control;
  (void)queue;
  if (atomic_load(&control->launches) >= atomic_load(&control->fail_at)) atomic_store(&control->fail_at, 0);
  return control->hang_at != 0 && atomic_load(&control->launches) >= control->hang_at ? TM_BUSY : TM_OK;
}

static int are_placed(const tm_launch *launch, uint32_t granule) {
  for (uint32_t i = 0; i < launch->binding_count && granule != 0; i++)
    if (launch->bindings[i].offset % granule != 0) return 0;
  return 1;
}

static void spoil(const fake_control *control, uint32_t op, float *y, uint64_t count, uint64_t launch) {
  const uint64_t from = atomic_load(&control->wrong_from), end = control->wrong_end == 0 ? count : control->wrong_end;
  if (from == 0 || launch < from || (control->wrong_op != 0 && control->wrong_op != op)) return;
  for (uint64_t i = control->wrong_begin; i < end && i < count; i++)
    y[control->wrong_is_last ? count - 1 - i : i] += control->wrong_by == 0 ? 1000 : control->wrong_by;
}

static tm_status launch_now(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  tm_backend *backend = backend_of(device);
  if (!are_placed(launch, backend->control->granule))
    return backend->host->fail(backend->host->context, TM_ERROR_ARGUMENT, 0, (tm_string)TM_STRING("an offset beside the granule"));
  const tm_host *host = backend->host;
  const uint64_t begin = host->now_ns(host->context);
  const uint64_t number = atomic_fetch_add(&backend->control->launches, 1);
  const tm_status status = atomic_load(&backend->control->launch_status);
  if (status != TM_OK) return host->fail(host->context, status, 0, (tm_string)TM_STRING("told to fail"));
  const int is_together = atomic_fetch_add(&backend->control->unwaited, 1) != 0 && backend->control->together_status != TM_OK;
  if (is_together) return host->fail(host->context, backend->control->together_status, 0, (tm_string)TM_STRING("one at a time"));
  const tm_kernel *kernel = launch->kernel;
  const uint32_t last = launch->binding_count - 1 - kernel->has_workspace;
  const float *a = address(launch, 0), *b = address(launch, last - 1);
  float *y = address(launch, last);
  const int is_idle = backend->control->clock_ns != NULL && !backend->control->computes_all_the_same;   /* no time is to be spent */
  const uint64_t count = is_idle ? 0 : kernel->count;
  for (uint64_t i = 0; i < count; i++) y[i] = kernel->op == TM_OP_ADD ? a[i] + b[i] : kernel->op == TM_OP_NEG ? -a[i] : a[i];
  fake_control *control = backend->control;
  spoil(control, kernel->op, y, count, number + 1);
  if (control->clock_ns != NULL && control->virtual_ns != NULL)
    atomic_fetch_add(control->clock_ns, control->virtual_ns(control, kernel->op, kernel->count, number));
  while (control->clock_ns == NULL && host->now_ns(host->context) - begin < control->real_ns) {
  }
  if (control->is_asynchronous) give_ticket(control, launch, number + 1, out_ticket);
  return TM_OK;
}

static tm_status fake_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  fake_control *control = backend_of(device)->control;
  const uint32_t now = atomic_fetch_add(&control->in_launch, 1) + 1;
  for (uint32_t most = atomic_load(&control->most_in_launch); most < now;)
    if (atomic_compare_exchange_weak(&control->most_in_launch, &most, now)) break;
  const tm_status status = launch_now(device, launch, out_ticket);
  atomic_fetch_sub(&control->in_launch, 1);
  return status;
}

static const tm_accelerator_backend_plugin fake_table = {
  .struct_size = sizeof fake_table,
  .init = fake_init,
  .shutdown = fake_shutdown,
  .device_info = fake_device_info,
  .query = fake_query,
  .prepare = fake_prepare,
  .release = fake_release,
  .launch = fake_launch,
  .wait = fake_wait,
  .cancel = fake_cancel,
};

TM_DEFINE_PLUGIN(FAKE_NAME, "1", "Tests", fake_table)
