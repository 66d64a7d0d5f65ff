/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "lazy_control.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops/op_table.h"

#define QUEUES 2u
#define POISON 0x7f             /* of floats: NaN */

struct tm_buffer {
  uint64_t       bytes;
  unsigned char *data;
  uint32_t       place;                 /* in `known` */
};

/* Those that nobody gives back, as their device never came back, are no leak: they stay known here. */
#define MOST_KNOWN 65536u
static _Atomic(tm_buffer *) known[MOST_KNOWN];
static _Atomic uint32_t known_count;

struct tm_kernel {
  tm_operation operation;
  tm_operand   operands[TM_MAX_OPERANDS];
  uint64_t     attributes[8];
  uint64_t     cost_ns;
};

typedef struct task {
  tm_kernel *kernel;                    /* NULL: it is a copy */
  void      *pointers[TM_MAX_OPERANDS];
  void      *to;
  void      *from;
  uint64_t   bytes;
  uint64_t   copy_ns;                   /* on the virtual clock */
  uint64_t   given_ns;
  uint64_t   end_ns;
} task;

typedef struct queue {
  task     *tasks;
  uint64_t  count;                      /* tickets given out: task i has ticket i + 1 */
  uint64_t  done;
  uint64_t  failed;                     /* ticket; 0: none */
  tm_status status;                     /* TM_PENDING: it never ends */
} queue;

struct tm_backend {
  lazy_control   *control;
  const tm_host  *host;
  tm_memory_space space;
  const tm_memory_space *spaces[1];
  queue           queues[QUEUES];
};

static tm_backend *backend_of(tm_device *device) { return (tm_backend *)(void *)device; }

/* ---- failures ---- */

static tm_status fate_of(tm_backend *backend, lazy_function function) {
  lazy_control *control = backend->control;
  const uint64_t call = atomic_fetch_add(&control->calls[function], 1) + 1;
  if (atomic_load(&control->is_lost) != 0) return TM_ERROR_DEVICE_LOST;
  if (atomic_load(&control->function) != (uint32_t)function || call < atomic_load(&control->first) ||
      call > atomic_load(&control->last))
    return TM_OK;
  const tm_status status = atomic_load(&control->status);
  if (status == TM_ERROR_DEVICE_LOST) atomic_store(&control->is_lost, 1);
  return status;
}

static void complain(tm_backend *backend) { atomic_fetch_add(&backend->control->complaints, 1); }

/* ---- life ---- */

static tm_status lazy_init(const tm_host *host, tm_backend **out_backend) {
  lazy_control *control = host->config_pointer(host->context, (tm_string)TM_STRING(LAZY_CONTROL_KEY));
  if (control == NULL) return host->fail(host->context, TM_ERROR_NO_DEVICE, 0, (tm_string)TM_STRING("no control"));
  tm_backend *backend = calloc(1, sizeof *backend);
  if (backend == NULL) return TM_ERROR_NO_MEMORY;
  static const tm_identity host_memory = TM_HOST_MEMORY;
  backend->control = control;
  backend->host = control->host = host;
  const uint32_t granule = control->granule == 0 ? 1 : control->granule;
  const uint32_t alignment = control->alignment == 0 ? 1 : control->alignment;
  backend->space = (tm_memory_space){ .struct_size = sizeof backend->space, .name = TM_STRING("lazy memory"), .alignment = alignment,
                                      .offset_granule = granule, .store_granule = 1 };
  if (control->is_host != 0) {
    backend->space.flags = TM_MEMORY_HOST_POINTER;
    backend->space.identity = host_memory;
  }
  backend->spaces[0] = &backend->space;
  *out_backend = backend;
  return TM_OK;
}

static void lazy_shutdown(tm_backend *backend) {
  for (uint32_t i = 0; i < QUEUES; i++) free(backend->queues[i].tasks);
  free(backend);
}

static tm_status lazy_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  if (index != 0) return TM_END;
  out_info->flags = backend->control->is_prompt != 0 ? TM_DEVICE_SYNCHRONOUS : 0;
  out_info->uuid = backend->control->uuid;
  out_info->resource = backend->control->resource;
  out_info->name = (tm_string)TM_STRING("a lazy accelerator");
  out_info->epoch = 1;
  out_info->open_ns = backend->control->open_ns;
  out_info->queue_count = QUEUES;
  out_info->memory_count = 1;
  out_info->memories = backend->spaces;
  return TM_OK;
}

static uint32_t operand_count(const tm_operation *operation) { return operation->input_count + operation->output_count; }

/* ---- time ---- */

static uint64_t now_ns(const tm_backend *backend) {
  return backend->control->clock_ns == NULL ? 0 : atomic_load(backend->control->clock_ns);
}

static void move_clock(const tm_backend *backend, uint64_t to_ns) {
  if (backend->control->clock_ns != NULL && now_ns(backend) < to_ns) atomic_store(backend->control->clock_ns, to_ns);
}

/* One after the other, from when it was given on. */
static void take_time(tm_backend *backend, task *one) {
  if (backend->control->clock_ns == NULL) return;
  const uint64_t free_ns = backend->control->free_ns, cost_ns = one->kernel == NULL ? one->copy_ns : one->kernel->cost_ns;
  one->end_ns = (free_ns < one->given_ns ? one->given_ns : free_ns) + cost_ns;
  backend->control->free_ns = one->end_ns;
}

/* ---- answers ---- */

static uint64_t extra_cost_ns(const lazy_control *control, const tm_operation *operation) {
  if (control->cost_spread_ns == 0) return 0;
  uint64_t mixed = (operation->op * UINT64_C(256) + control->uuid.bytes[0] + control->cost_seed * UINT64_C(65537)) *
                   UINT64_C(0x9e3779b97f4a7c15);
  mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
  return (mixed ^ mixed >> 31) % control->cost_spread_ns;
}

static uint64_t element_count(const tm_operation *operation) {
  const tm_operand *output = &operation->operands[operation->input_count];
  uint64_t count = 1;
  for (uint32_t i = 0; i < output->rank; i++) count *= output->dims[i];
  return count;
}

static void answer_one(const lazy_control *control, const tm_operation *operation, tm_answer *answer) {
  const tm_op_row *row = tm_op_find(operation->op);
  if (row == NULL || row->reference == NULL || operation->op == control->refused_op || operation->attribute_bytes > 64) {
    answer->reasons = TM_REASON_OPERATION;
    return;
  }
  answer->level = TM_LEVEL_NATIVE;
  answer->numerics = TM_NUMERICS_N0;
  answer->numerics_flags = TM_NUMERICS_RUN_TO_RUN;
  answer->cost_ns = (control->cost_ns == 0 ? 1 : control->cost_ns) + extra_cost_ns(control, operation) +
                    control->element_cost_ns * element_count(operation);
  answer->setup_ns = control->setup_ns;
  answer->alias_mask = control->aliases;
  if (operation->op == control->workspace_op) answer->workspace_bytes = control->workspace_bytes;
}

static tm_status lazy_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                            tm_answer *const *out_answers) {
  (void)index;
  atomic_fetch_add(&backend->control->queries, count);
  for (uint32_t i = 0; i < count; i++) answer_one(backend->control, operations[i], out_answers[i]);
  return TM_OK;
}

static tm_status lazy_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  tm_backend *backend = backend_of(device);
  for (uint32_t i = 0; i < 5000 && atomic_load(&backend->control->holds_prepare) != 0; i++) (void)usleep(1000);
  const tm_status fate = fate_of(backend, LAZY_PREPARE);
  if (fate != TM_OK) return fate;
  tm_kernel *kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  kernel->cost_ns = answer->cost_ns;
  kernel->operation = *operation;
  memcpy(kernel->operands, operation->operands, operand_count(operation) * sizeof *kernel->operands);
  kernel->operation.operands = kernel->operands;
  if (operation->attribute_bytes != 0) memcpy(kernel->attributes, operation->attributes, operation->attribute_bytes);
  kernel->operation.attributes = operation->attribute_bytes != 0 ? kernel->attributes : NULL;
  *out_kernel = kernel;
  return TM_OK;
}

static void lazy_release(tm_device *device, tm_kernel *kernel) {
  (void)device;
  free(kernel);
}

/* ---- memory ---- */

static tm_status lazy_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  (void)space;
  tm_backend *backend = backend_of(device);
  const tm_status fate = fate_of(backend, LAZY_BUFFER_CREATE);
  if (fate != TM_OK) return fate;
  tm_buffer *buffer = malloc(sizeof *buffer);
  unsigned char *data = malloc(bytes == 0 ? 1 : (size_t)bytes);
  if (buffer == NULL || data == NULL) {
    free(buffer);
    free(data);
    return TM_ERROR_NO_MEMORY;
  }
  memset(data, POISON, (size_t)bytes);
  *buffer = (tm_buffer){ bytes, data, atomic_fetch_add(&known_count, 1) % MOST_KNOWN };
  atomic_store(&known[buffer->place], buffer);
  atomic_fetch_add(&backend->control->buffers, 1);
  *out_buffer = buffer;
  return TM_OK;
}

static void lazy_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  (void)space, (void)bytes, (void)imported;
  atomic_store(&known[buffer->place], NULL);
  free(buffer->data);
  free(buffer);
  atomic_fetch_sub(&backend_of(device)->control->buffers, 1);
}

static void *address_in(tm_backend *backend, tm_buffer *buffer, uint64_t offset, uint64_t bytes) {
  if (backend->control->is_host != 0) return (char *)(void *)buffer + offset;
  if (offset + bytes > buffer->bytes || offset % backend->space.offset_granule != 0) complain(backend);
  return buffer->data + offset;
}

/* ---- work ---- */

static void do_task(const task *one) {
  if (one->kernel == NULL) {
    memcpy(one->to, one->from, (size_t)one->bytes);
    return;
  }
  const tm_op_row *row = tm_op_find(one->kernel->operation.op);
  row->reference(&one->kernel->operation, one->pointers, 0, row->units(&one->kernel->operation));
}

/* Until the ticket, or until one fails. */
static void work(tm_backend *backend, queue *q, uint64_t to) {
  for (; q->done < to && q->failed == 0; q->done++) {
    const tm_status fate = fate_of(backend, LAZY_WORK);
    if (fate == TM_OK) {
      do_task(&q->tasks[q->done]);
      take_time(backend, &q->tasks[q->done]);
      continue;
    }
    q->failed = q->done + 1;
    q->status = fate;
  }
}

static tm_status enqueue(tm_backend *backend, uint32_t number, const task *what, tm_ticket *out_ticket) {
  queue *q = &backend->queues[number];
  task now = *what;
  now.given_ns = now_ns(backend);
  if (backend->control->is_prompt != 0) {
    do_task(&now);
    take_time(backend, &now);
    move_clock(backend, now.end_ns);
    return TM_OK;
  }
  if (backend->control->depth != 0 && q->count - q->done >= backend->control->depth) return TM_BUSY;
  if ((q->count & (q->count + 1)) == 0) {       /* full: there is room for one less than a power of two */
    task *tasks = realloc(q->tasks, (size_t)(2 * q->count + 1) * sizeof *tasks);
    if (tasks == NULL) return TM_ERROR_NO_MEMORY;
    q->tasks = tasks;
  }
  q->tasks[q->count++] = now;
  *out_ticket = (tm_ticket){ .queue = number, .value = q->count };
  return TM_OK;
}

static uint64_t copy_ns(const tm_backend *backend, uint64_t bytes, uint32_t is_upload) {
  const lazy_control *control = backend->control;
  return control->copy_ns == NULL ? 0 : control->copy_ns(control->copy_context, bytes, is_upload);
}

static tm_status lazy_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  tm_backend *backend = backend_of(device);
  const tm_status fate = fate_of(backend, LAZY_UPLOAD);
  if (fate != TM_OK) return fate;
  const task one = { .to = address_in(backend, transfer->destination, transfer->destination_offset, transfer->bytes),
                     .from = transfer->host, .bytes = transfer->bytes, .copy_ns = copy_ns(backend, transfer->bytes, 1) };
  return enqueue(backend, transfer->queue, &one, out_ticket);
}

static tm_status lazy_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  tm_backend *backend = backend_of(device);
  const tm_status fate = fate_of(backend, LAZY_DOWNLOAD);
  if (fate != TM_OK) return fate;
  const task one = { .to = transfer->host, .bytes = transfer->bytes,
                     .from = address_in(backend, transfer->source, transfer->source_offset, transfer->bytes),
                     .copy_ns = copy_ns(backend, transfer->bytes, 0) };
  return enqueue(backend, transfer->queue, &one, out_ticket);
}

/* One buffer to be read and written in one launch is what some interfaces cannot do. */
static void check_buffers(tm_backend *backend, const tm_launch *launch, const tm_operation *operation) {
  const tm_binding *output = &launch->bindings[operation->input_count];
  for (uint32_t i = 0; i < operation->input_count; i++) {
    const tm_binding *input = &launch->bindings[i];
    if (input->buffer != output->buffer) continue;
    if (backend->control->aliases == 0 || i != 0 || input->offset != output->offset) complain(backend);
  }
}

static int is_told_of_place(const tm_backend *backend, const tm_operation *operation) {
  return backend->control->aliases != 0 && (operation->operands[operation->input_count].flags & TM_OPERAND_IN_PLACE) != 0;
}

static tm_status lazy_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  tm_backend *backend = backend_of(device);
  const tm_status fate = fate_of(backend, LAZY_LAUNCH);
  if (fate != TM_OK) return fate;
  task one = { .kernel = launch->kernel };
  const tm_operation *operation = &launch->kernel->operation;
  if (backend->control->is_host == 0) check_buffers(backend, launch, operation);
  for (uint32_t i = 0; i < operand_count(operation); i++)
    one.pointers[i] =
        address_in(backend, launch->bindings[i].buffer, launch->bindings[i].offset, operation->operands[i].byte_count);
  if (is_told_of_place(backend, operation)) {
    atomic_fetch_add(&backend->control->places, 1);
    if (one.pointers[operation->input_count] != one.pointers[0]) complain(backend);
  }
  return enqueue(backend, launch->queue, &one, out_ticket);
}

static tm_status lazy_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  tm_backend *backend = backend_of(device);
  tm_status first = TM_OK;
  for (uint32_t i = 0; i < count; i++) {
    queue *q = &backend->queues[tickets[i].queue];
    if (tickets[i].value > q->count) return TM_ERROR_ARGUMENT;
    work(backend, q, tickets[i].value);
    if (tickets[i].value != 0 && tickets[i].value <= q->done) move_clock(backend, q->tasks[tickets[i].value - 1].end_ns);
    if (q->failed == 0 || tickets[i].value < q->failed || first != TM_OK) continue;
    if (q->status == TM_PENDING) (void)usleep((useconds_t)(timeout_ns / 1000));
    first = tickets[i].value == q->failed || q->status == TM_PENDING ? q->status : q->status == TM_ERROR_DEVICE_LOST ? q->status : TM_ERROR_PREDECESSOR;
  }
  return first;
}

static tm_status lazy_cancel(tm_device *device, uint32_t number) {
  queue *q = &backend_of(device)->queues[number];
  if (q->failed != 0 && q->status == TM_PENDING) return TM_BUSY;
  q->done = q->count;
  q->failed = 0;
  return TM_OK;
}

static const tm_accelerator_backend_plugin lazy_table = {
  .struct_size = sizeof lazy_table,
  .init = lazy_init,
  .shutdown = lazy_shutdown,
  .device_info = lazy_device_info,
  .query = lazy_query,
  .prepare = lazy_prepare,
  .release = lazy_release,
  .buffer_create = lazy_buffer_create,
  .buffer_destroy = lazy_buffer_destroy,
  .upload = lazy_upload,
  .download = lazy_download,
  .launch = lazy_launch,
  .wait = lazy_wait,
  .cancel = lazy_cancel,
};

TM_DEFINE_PLUGIN(LAZY_NAME, "1", "Tests", lazy_table)
