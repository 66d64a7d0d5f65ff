/* SPDX-License-Identifier: Apache-2.0 */
/* A device with memory of its own and one queue, which a thread works off behind the calls: what a driver does, in small.
   It adds, subtracts and multiplies f32 tensors; where a real one talks to hardware, this one copies and computes. */
#define _POSIX_C_SOURCE 200809L         /* -std=c11 alone hides the clock and the signal mask */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <tensormorph/plugin.h>

#define MEMORY_BYTES (UINT64_C(1) << 28)        /* of the device */
#define BUFFER_BYTES (UINT64_C(1) << 26)        /* of one buffer */
#define ROOM 16u                                /* work that a queue holds */
#define SECOND_NS UINT64_C(1000000000)

/* ---- what is behind the handles ---- */

struct tm_backend {
  const tm_host *host;
};

struct tm_buffer {
  char    *data;
  uint64_t bytes;
};

struct tm_kernel {
  uint32_t op;
  uint64_t count;
};

/* One entry of the queue: a kernel with its operands, or a copy if `op` is TM_OP_COPY.  Nothing in it points to a struct of the
   caller's, as those are only valid during the call. */
typedef struct work {
  uint32_t    op;
  uint64_t    count;            /* elements, or bytes of a copy */
  const void *a, *b;
  void       *y;
} work;

/* Tickets count up from 1; done <= started <= issued.  Cancelled work is taken as started, and complete once what ran is. */
struct tm_device {
  const tm_host  *host;
  pthread_t       worker;
  pthread_mutex_t lock;                         /* of all that follows */
  pthread_cond_t  moved;                        /* whenever some of it changed */
  uint64_t        used_bytes;
  uint64_t        issued, started, done;
  uint64_t        cancelled_first, cancelled_last;      /* by the last cancel that found something */
  int             is_running, is_closing;
  work            items[ROOM];
};

/* What a later host appended to a struct may be ignored only while it is zero. */
static int is_zero(const void *data, uint64_t begin, uint64_t end) {
  while (begin < end && ((const char *)data)[begin] == 0) begin++;
  return begin >= end;
}

/* ---- the backend ---- */

static tm_status queued_init(const tm_host *host, tm_backend **out_backend) {
  tm_backend *backend = host->alloc(host->context, sizeof(*backend), sizeof(void *));
  if (backend == NULL) return TM_ERROR_NO_MEMORY;
  backend->host = host;
  *out_backend = backend;
  return TM_OK;
}

static void queued_shutdown(tm_backend *backend) { backend->host->free(backend->host->context, backend, sizeof(*backend)); }

/* No TM_MEMORY_HOST_POINTER: the host copies operands here and results back.  No TM_DEVICE_SYNCHRONOUS: it waits for tickets. */
static tm_status queued_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  static const tm_memory_space memory = { .struct_size = sizeof(memory), .name = TM_STRING("memory of its own"),
    .total_bytes = MEMORY_BYTES, .largest_buffer_bytes = BUFFER_BYTES, .alignment = 64, .offset_granule = 4, .store_granule = 4 };
  static const tm_memory_space *const memories[] = { &memory };
  const tm_device_info info = { .struct_size = out_info->struct_size, .name = TM_STRING("three operations behind a queue"),
    .open_ns = 100000, .cost_model_id = 1, .queue_count = 1, .memory_count = 1, .memories = memories };
  (void)backend;
  if (index > 0) return TM_END;
  memcpy(out_info, &info, info.struct_size < sizeof(info) ? info.struct_size : sizeof(info));
  return TM_OK;
}

/* ---- the worker ---- */

static void execute(const work *item) {
  const float *a = item->a, *b = item->b;
  float *y = item->y;
  if (item->op == TM_OP_COPY) {
    if (item->count != 0) memcpy(item->y, item->a, item->count);
    return;
  }
  for (uint64_t i = 0; i < item->count; i++)
    y[i] = item->op == TM_OP_ADD ? a[i] + b[i] : item->op == TM_OP_SUB ? a[i] - b[i] : a[i] * b[i];
}

static void *work_off(void *argument) {
  tm_device *device = argument;
  pthread_mutex_lock(&device->lock);
  for (;;) {
    while (!device->is_closing && device->started == device->issued) pthread_cond_wait(&device->moved, &device->lock);
    if (device->started == device->issued) break;
    const work item = device->items[device->started++ % ROOM];
    const uint64_t ticket = device->started;
    device->is_running = 1;
    pthread_mutex_unlock(&device->lock);
    execute(&item);
    pthread_mutex_lock(&device->lock);
    device->is_running = 0;
    device->done = device->cancelled_first == ticket + 1 ? device->cancelled_last : ticket;
    pthread_cond_broadcast(&device->moved);
  }
  pthread_mutex_unlock(&device->lock);
  return NULL;
}

/* Signals belong to the application: the worker takes none. */
static int start_worker(tm_device *device) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&device->worker, NULL, work_off, device);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed == 0;
}

static void destroy_device(tm_device *device) {
  pthread_cond_destroy(&device->moved);
  pthread_mutex_destroy(&device->lock);
  device->host->free(device->host->context, device, sizeof(*device));
}

static tm_status queued_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  pthread_condattr_t monotonic;
  (void)index;
  tm_device *device = backend->host->alloc(backend->host->context, sizeof(*device), sizeof(void *));
  if (device == NULL) return TM_ERROR_NO_MEMORY;
  memset(device, 0, sizeof(*device));
  device->host = backend->host;
  pthread_mutex_init(&device->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&device->moved, &monotonic);
  pthread_condattr_destroy(&monotonic);
  if (!start_worker(device)) {
    destroy_device(device);
    return TM_ERROR_NO_MEMORY;
  }
  *out_device = device;
  return TM_OK;
}

static void queued_close(tm_device *device) {
  pthread_mutex_lock(&device->lock);
  device->is_closing = 1;
  pthread_cond_broadcast(&device->moved);
  pthread_mutex_unlock(&device->lock);
  pthread_join(device->worker, NULL);
  destroy_device(device);
}

/* ---- what it can do ---- */

/* Why not?  0 is yes.  A change for each operand that is not dense: made together, they turn this answer into a yes.
   Alignment is no question here: operands lie in buffers of ours, at multiples of offset_granule. */
static uint32_t judge(const tm_operation *operation, tm_answer *answer) {
  const uint32_t known = TM_OPERATION_FACTS | TM_OPERATION_RUN_TO_RUN, op = operation->op;
  if ((op != TM_OP_ADD && op != TM_OP_SUB && op != TM_OP_MUL) || operation->version != 1) return TM_REASON_OPERATION;
  if ((operation->flags & ~known) != 0 || !is_zero(operation, sizeof(*operation), operation->struct_size)) return TM_REASON_DEMAND;
  if (!is_zero(operation->attributes, 0, operation->attribute_bytes)) return TM_REASON_ATTRIBUTE;
  if ((operation->flags & TM_OPERATION_ALL_SAME_SHAPE) == 0) return TM_REASON_SHAPE;
  for (uint32_t i = 0; i < 3; i++) {
    const tm_operand *x = &operation->operands[i];
    if (x->format != TM_FORMAT_F32) return answer->operand = i, TM_REASON_FORMAT;
    if (x->element_count > BUFFER_BYTES / sizeof(float)) return answer->operand = i, TM_REASON_SIZE;
  }
  for (uint32_t i = 0; i < 3; i++) {
    if ((operation->operands[i].flags & TM_OPERAND_CONTIGUOUS) != 0) continue;
    answer->reasons |= TM_REASON_LAYOUT;
    answer->changes[answer->change_count++] = (tm_change){ TM_CHANGE_CONTIGUOUS, i, 0, 0, 0 };
  }
  return answer->reasons;
}

/* The cost is that of a warm run with operands in place; what copies cost the host knows from what it measures. */
static tm_status queued_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                              tm_answer *const *out_answers) {
  static const tm_string refusal = TM_STRING("dense f32 tensors of one shape, up to 64 MiB each");
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) {
    tm_answer answer = { .struct_size = out_answers[i]->struct_size, .operand = TM_NO_OPERAND };
    answer.reasons = judge(operations[i], &answer);
    if (answer.reasons == 0) {
      answer.level = TM_LEVEL_NATIVE, answer.numerics = TM_NUMERICS_N0, answer.launch_ns = 8000;
      answer.numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE;
      answer.cost_ns = answer.launch_ns + operations[i]->operands[0].element_count;
    } else {
      answer.text = refusal;
    }
    memcpy(out_answers[i], &answer, answer.struct_size < sizeof(answer) ? answer.struct_size : sizeof(answer));
  }
  return TM_OK;
}

static tm_status queued_prepare(tm_device *device, const tm_operation *operation, const tm_answer *given, tm_kernel **out_kernel) {
  tm_answer answer = { .struct_size = given->struct_size };
  const uint32_t reasons = judge(operation, &answer);
  if ((reasons & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0 || !is_zero(given, sizeof(*given), given->struct_size))
    return TM_UNSUPPORTED;
  if (reasons != 0) return TM_ERROR_ARGUMENT;
  tm_kernel *kernel = device->host->alloc(device->host->context, sizeof(*kernel), sizeof(uint64_t));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  *kernel = (tm_kernel){ operation->op, operation->operands[0].element_count };
  *out_kernel = kernel;
  return TM_OK;
}

static void queued_release(tm_device *device, tm_kernel *kernel) {
  device->host->free(device->host->context, kernel, sizeof(*kernel));
}

/* ---- memory ---- */

static int reserve(tm_device *device, uint64_t bytes) {
  pthread_mutex_lock(&device->lock);
  const int fits = bytes <= BUFFER_BYTES && bytes <= MEMORY_BYTES - device->used_bytes;
  if (fits) device->used_bytes += bytes;
  pthread_mutex_unlock(&device->lock);
  return fits;
}

static void give_back(tm_device *device, uint64_t bytes) {
  pthread_mutex_lock(&device->lock);
  device->used_bytes -= bytes;
  pthread_mutex_unlock(&device->lock);
}

static tm_status queued_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  const tm_host *host = device->host;
  if (space != 0 || !reserve(device, bytes)) return TM_ERROR_NO_MEMORY;
  tm_buffer *buffer = host->alloc(host->context, sizeof(*buffer), sizeof(void *));
  char *data = buffer == NULL ? NULL : host->alloc(host->context, bytes, 64);
  if (data == NULL) {
    if (buffer != NULL) host->free(host->context, buffer, sizeof(*buffer));
    give_back(device, bytes);
    return TM_ERROR_NO_MEMORY;
  }
  *buffer = (tm_buffer){ data, bytes };
  *out_buffer = buffer;
  return TM_OK;
}

static void queued_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  const tm_host *host = device->host;
  (void)space, (void)imported;
  host->free(host->context, buffer->data, bytes);
  host->free(host->context, buffer, sizeof(*buffer));
  give_back(device, bytes);
}

/* ---- the queue ---- */

/* Never waits: a full queue is the caller's to come back to.  Of one queue each earlier ticket is complete before later work
   starts, so waits need only be checked. */
static tm_status enqueue(tm_device *device, uint32_t queue, const tm_ticket *waits, uint32_t wait_count, const work *item,
                         tm_ticket *out_ticket) {
  tm_status status = queue == 0 && out_ticket != NULL ? TM_OK : TM_ERROR_ARGUMENT;
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < wait_count; i++)
    if (waits[i].queue != 0 || waits[i].value > device->issued) status = TM_ERROR_ARGUMENT;
  if (status == TM_OK && device->issued - device->done == ROOM) status = TM_BUSY;
  if (status == TM_OK) {
    device->items[device->issued++ % ROOM] = *item;
    *out_ticket = (tm_ticket){ .queue = 0, .value = device->issued };
    pthread_cond_broadcast(&device->moved);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

static int lies_in(const tm_buffer *buffer, uint64_t offset, uint64_t bytes) {
  return offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}

static tm_status queued_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (!is_zero(transfer, sizeof(*transfer), transfer->struct_size)) return TM_UNSUPPORTED;
  if (!lies_in(transfer->destination, transfer->destination_offset, transfer->bytes)) return TM_ERROR_ARGUMENT;
  const work item = { .op = TM_OP_COPY, .count = transfer->bytes, .a = transfer->host,
                      .y = transfer->destination->data + transfer->destination_offset };
  return enqueue(device, transfer->queue, transfer->waits, transfer->wait_count, &item, out_ticket);
}

static tm_status queued_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (!is_zero(transfer, sizeof(*transfer), transfer->struct_size)) return TM_UNSUPPORTED;
  if (!lies_in(transfer->source, transfer->source_offset, transfer->bytes)) return TM_ERROR_ARGUMENT;
  const work item = { .op = TM_OP_COPY, .count = transfer->bytes, .a = transfer->source->data + transfer->source_offset,
                      .y = transfer->host };
  return enqueue(device, transfer->queue, transfer->waits, transfer->wait_count, &item, out_ticket);
}

static char *address_of(const tm_binding *binding) { return binding->buffer->data + binding->offset; }

static tm_status queued_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  if (!is_zero(launch, sizeof(*launch), launch->struct_size)) return TM_UNSUPPORTED;
  if (launch->binding_count != 3) return TM_ERROR_ARGUMENT;
  const tm_binding *bound = launch->bindings;
  const work item = { launch->kernel->op, launch->kernel->count, address_of(&bound[0]),
                      address_of(&bound[1]), address_of(&bound[2]) };
  return enqueue(device, launch->queue, launch->waits, launch->wait_count, &item, out_ticket);
}

/* ---- waiting ---- */

/* Under the lock.  TM_PENDING while it is not complete; a ticket that was never given is the caller's mistake. */
static tm_status outcome(const tm_device *device, const tm_ticket *ticket) {
  if (ticket->queue != 0 || ticket->value > device->issued) return TM_ERROR_ARGUMENT;
  if (ticket->value > device->done) return TM_PENDING;
  const int is_cancelled = ticket->value != 0 && ticket->value >= device->cancelled_first &&
                           ticket->value <= device->cancelled_last;
  return is_cancelled ? TM_ERROR_CANCELLED : TM_OK;
}

/* Under the lock.  The first error among them, unless one is still pending. */
static tm_status outcome_of_all(const tm_device *device, const tm_ticket *tickets, uint32_t count) {
  tm_status first = TM_OK;
  for (uint32_t i = 0; i < count; i++) {
    const tm_status status = outcome(device, &tickets[i]);
    if (status == TM_PENDING) return TM_PENDING;
    if (first == TM_OK) first = status;
  }
  return first;
}

static struct timespec deadline_after(uint64_t ns) {
  struct timespec end = { 0, 0 };
  clock_gettime(CLOCK_MONOTONIC, &end);
  const uint64_t fraction = (uint64_t)end.tv_nsec + ns % SECOND_NS;
  end.tv_sec += (time_t)(ns / SECOND_NS + fraction / SECOND_NS);
  end.tv_nsec = (long)(fraction % SECOND_NS);
  return end;
}

static tm_status queued_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  const struct timespec end = deadline_after(timeout_ns == TM_WAIT_FOREVER ? 0 : timeout_ns);
  int is_late = timeout_ns == TM_WAIT_POLL;
  pthread_mutex_lock(&device->lock);
  tm_status status = outcome_of_all(device, tickets, count);
  while (status == TM_PENDING && !is_late) {
    if (timeout_ns == TM_WAIT_FOREVER) pthread_cond_wait(&device->moved, &device->lock);
    else is_late = pthread_cond_timedwait(&device->moved, &device->lock, &end) != 0;
    status = outcome_of_all(device, tickets, count);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* What has not started never will; what runs is to be asked for again. */
static tm_status queued_cancel(tm_device *device, uint32_t queue) {
  if (queue != 0) return TM_OK;
  pthread_mutex_lock(&device->lock);
  if (device->issued > device->started) {
    const int goes_on = device->cancelled_first != 0 && device->cancelled_last == device->started;
    if (!goes_on) device->cancelled_first = device->started + 1;
    device->cancelled_last = device->started = device->issued;
  }
  const int is_running = device->is_running;
  if (!is_running) device->done = device->started;
  pthread_cond_broadcast(&device->moved);
  pthread_mutex_unlock(&device->lock);
  return is_running ? TM_BUSY : TM_OK;
}

static const tm_accelerator_backend_plugin queued = { .struct_size = sizeof(queued), .init = queued_init,
  .shutdown = queued_shutdown, .device_info = queued_device_info, .open = queued_open, .close = queued_close,
  .query = queued_query, .prepare = queued_prepare, .release = queued_release, .buffer_create = queued_buffer_create,
  .buffer_destroy = queued_buffer_destroy, .upload = queued_upload, .download = queued_download, .launch = queued_launch,
  .wait = queued_wait, .cancel = queued_cancel };
TM_DEFINE_PLUGIN("queued", "1.0", "an example", queued)
