/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An honest accelerator with everything that host memory spares a host: memory of its own that has no address, two queues
 * that start work only when somebody waits or flushes, bindings at multiples of 256 bytes, and stores of whole units of
 * four bytes, whatever lay behind an output's end.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "zoo.h"

#ifndef ZOO_OFFSET_BITS
#define ZOO_OFFSET_BITS 63
#endif

#ifndef ZOO_IDLE_FLUSH
#define ZOO_IDLE_FLUSH 0
#endif

#ifndef ZOO_FULL
#define ZOO_FULL TM_BUSY        /* what a full queue says */
#endif

#define QUEUES 2u
#define ROOM 16u
#define OFFSET_GRANULE 256u
#define STORE_GRANULE 4u

struct tm_buffer {
  uint64_t bytes;
  char     content[];
};

typedef struct copy_kernel {
  struct tm_kernel head;
  uint64_t         bytes;               /* of an element */
  tm_operand       operands[3];
} copy_kernel;

typedef struct work {
  const copy_kernel *kernel;            /* NULL: a transfer */
  tm_binding         bindings[3];
  uint32_t           binding_count;
  char              *to;
  const char        *from;
  uint64_t           bytes;
  uint64_t           waits[QUEUES];     /* until so much of each queue is done */
} work;

typedef struct queue {
  work     items[ROOM];
  uint64_t issued;
  uint64_t done;
} queue;

struct tm_device {
  const tm_host  *host;
  pthread_mutex_t lock;
  queue           queues[QUEUES];
};

static const tm_memory_space far_memory = {
  .struct_size = sizeof far_memory,
  .identity = { { 'f', 'a', 'r' } },
  .name = TM_STRING("far memory"),
  .total_bytes = UINT64_C(1) << 30,
  .largest_buffer_bytes = UINT64_C(1) << 28,
  .alignment = 256,
  .offset_granule = OFFSET_GRANULE,
  .store_granule = STORE_GRANULE,
};
static const tm_memory_space *const memories[] = { &far_memory };

static tm_status far_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = zoo_device_info(backend, index, out_info);
  out_info->flags = 0;
  if (TM_HAS_MEMBER(out_info, tm_device_info, queue_count)) out_info->queue_count = QUEUES;
  if (TM_HAS_MEMBER(out_info, tm_device_info, memories)) out_info->memories = memories;
  return status;
}

static tm_status far_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  tm_device *device = backend->host->alloc(backend->host->context, sizeof *device, 16);
  if (device == NULL) return TM_ERROR_NO_MEMORY;
  memset(device, 0, sizeof *device);
  device->host = backend->host;
  pthread_mutex_init(&device->lock, NULL);
  *out_device = device;
  return TM_OK;
}

/* Of what is queued nothing may be left by then: one that says otherwise of a full queue is not forgiving. */
static void far_close(tm_device *device) {
  for (uint32_t i = 0; i < QUEUES && ZOO_FULL != TM_BUSY; i++)
    if (device->queues[i].issued != device->queues[i].done) abort();
  pthread_mutex_destroy(&device->lock);
  device->host->free(device->host->context, device, sizeof *device);
}

/* ---- memory ---- */

static tm_status far_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  if (space != 0 || bytes > far_memory.largest_buffer_bytes) return TM_ERROR_NO_MEMORY;
  tm_buffer *buffer = device->host->alloc(device->host->context, sizeof *buffer + bytes, 256);
  if (buffer == NULL) return TM_ERROR_NO_MEMORY;
  buffer->bytes = bytes;
  *out_buffer = buffer;
  return TM_OK;
}

static void far_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  (void)space, (void)imported;
  device->host->free(device->host->context, buffer, sizeof *buffer + bytes);
}

/* ---- questions ---- */

static int is_zero(const void *data, uint64_t from, uint64_t to) {
  const unsigned char *bytes = data;
  for (uint64_t i = from; i < to; i++)
    if (bytes[i] != 0) return 0;
  return 1;
}

static uint64_t element_bytes(uint32_t format) { return format == TM_FORMAT_F32 ? 4 : format == TM_FORMAT_U8 ? 1 : 0; }

/* Besides the zoo's usual: copies of any layout, also of single bytes. */
static uint32_t far_refuses(const tm_operation *operation) {
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++)
    if (operation->operands[i].byte_count > far_memory.largest_buffer_bytes) return TM_REASON_SIZE;
  if (operation->op != TM_OP_COPY || zoo_strange(operation) != 0) return zoo_refuses(operation);
  return element_bytes(operation->operands[0].format) != 0 ? 0 : TM_REASON_FORMAT;
}

static tm_status far_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                           tm_answer *const *out_answers) {
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) zoo_reply(out_answers[i], far_refuses(operations[i]));
  return TM_OK;
}

static tm_status far_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  (void)answer;
  if ((zoo_strange(operation) & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0) return TM_UNSUPPORTED;
  copy_kernel *kernel = device->host->alloc(device->host->context, sizeof *kernel, 16);
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  const uint32_t count = operation->input_count + operation->output_count;
  memset(kernel, 0, sizeof *kernel);
  memcpy(kernel->operands, operation->operands, count * sizeof(tm_operand));
  kernel->head = (tm_kernel){ .op = operation->op, .count = operation->operands[count - 1].element_count };
  kernel->bytes = element_bytes(operation->operands[0].format);
  *out_kernel = &kernel->head;
  return TM_OK;
}

static void far_release(tm_device *device, tm_kernel *kernel) {
  device->host->free(device->host->context, kernel, sizeof(copy_kernel));
}

/* ---- work ---- */

/* ZOO_OFFSET_BITS: of an offset it looks at the lower ones only. */
static char *place(const tm_binding *binding) {
  return binding->buffer->content + (binding->offset & ((UINT64_C(1) << ZOO_OFFSET_BITS) - 1));
}

static void copy_axis(const copy_kernel *kernel, uint32_t axis, const char *from, char *to) {
  const tm_operand *x = &kernel->operands[0];
  if (axis == x->rank) {
    memcpy(to, from, kernel->bytes);
    return;
  }
  for (uint64_t i = 0; i < x->dims[axis]; i++)
    copy_axis(kernel, axis + 1, from + (int64_t)i * x->strides_bytes[axis],
              to + (int64_t)i * kernel->operands[1].strides_bytes[axis]);
}

/* What a store of whole units does to the bytes behind the end of a dense output. */
static void spill(const copy_kernel *kernel, const tm_binding *output) {
  const tm_operand *y = &kernel->operands[1];
  if ((y->flags & TM_OPERAND_CONTIGUOUS) == 0) return;
  for (uint64_t end = output->offset + y->byte_count; end % STORE_GRANULE != 0; end++) output->buffer->content[end] = 0x5a;
}

static void execute(const work *item) {
  if (item->kernel == NULL) {
    memcpy(item->to, item->from, item->bytes);
  } else if (item->kernel->head.op != TM_OP_COPY) {
    const uint32_t last = item->binding_count - 1;
    zoo_compute(&item->kernel->head, (const float *)(void *)place(&item->bindings[0]),
                (const float *)(void *)place(&item->bindings[last - 1]), (float *)(void *)place(&item->bindings[last]));
  } else if (item->kernel->head.count != 0) {
    copy_axis(item->kernel, 0, place(&item->bindings[0]), place(&item->bindings[1]));
    spill(item->kernel, &item->bindings[1]);
  }
}

/* Waits name earlier tickets only, so this ends. */
static void drain(tm_device *device, uint32_t index, uint64_t until) {
  queue *q = &device->queues[index];
  while (q->done < until) {
    const work *item = &q->items[q->done % ROOM];
    for (uint32_t i = 0; i < QUEUES; i++)
      if (i != index) drain(device, i, item->waits[i]);
    execute(item);
    q->done++;
  }
}

static int take_waits(const tm_device *device, const tm_ticket *waits, uint32_t count, work *item) {
  for (uint32_t i = 0; i < count; i++) {
    if (waits[i].queue >= QUEUES || waits[i].value > device->queues[waits[i].queue].issued) return 0;
    if (waits[i].value > item->waits[waits[i].queue]) item->waits[waits[i].queue] = waits[i].value;
  }
  return 1;
}

static tm_status enqueue(tm_device *device, uint32_t index, work *item, const tm_ticket *waits, uint32_t wait_count,
                         tm_ticket *out_ticket) {
  if (index >= QUEUES) return TM_ERROR_ARGUMENT;
  pthread_mutex_lock(&device->lock);
  queue *q = &device->queues[index];
  tm_status status = q->issued - q->done == ROOM ? ZOO_FULL : TM_OK;
  if (status == TM_OK && !take_waits(device, waits, wait_count, item)) status = TM_ERROR_ARGUMENT;
  if (status == TM_OK) {
    q->items[q->issued % ROOM] = *item;
    *out_ticket = (tm_ticket){ .queue = index, .value = ++q->issued };
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

static int is_strange(const tm_transfer *transfer) { return !is_zero(transfer, sizeof *transfer, transfer->struct_size); }

static tm_status far_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (is_strange(transfer)) return TM_UNSUPPORTED;
  if (transfer->bytes > transfer->destination->bytes - transfer->destination_offset) return TM_ERROR_ARGUMENT;
  work item = { .to = transfer->destination->content + transfer->destination_offset, .from = transfer->host,
                      .bytes = transfer->bytes };
  return enqueue(device, transfer->queue, &item, transfer->waits, transfer->wait_count, out_ticket);
}

static tm_status far_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (is_strange(transfer)) return TM_UNSUPPORTED;
  if (transfer->bytes > transfer->source->bytes - transfer->source_offset) return TM_ERROR_ARGUMENT;
  work item = { .to = transfer->host, .from = transfer->source->content + transfer->source_offset,
                      .bytes = transfer->bytes };
  return enqueue(device, transfer->queue, &item, transfer->waits, transfer->wait_count, out_ticket);
}

/* Bindings that a real device would refuse, or write beyond. */
static int is_sound(const copy_kernel *kernel, const tm_launch *launch) {
  for (uint32_t i = 0; i < launch->binding_count; i++) {
    const tm_binding *binding = &launch->bindings[i];
    const tm_operand *operand = &kernel->operands[i];
    const uint64_t unit = i + 1 == launch->binding_count ? STORE_GRANULE : 1;
    if (binding->offset % OFFSET_GRANULE != 0 || binding->offset > binding->buffer->bytes) return 0;
    if ((operand->flags & TM_OPERAND_CONTIGUOUS) != 0 &&
        (operand->byte_count + unit - 1) / unit * unit > binding->buffer->bytes - binding->offset)
      return 0;
  }
  return 1;
}

static tm_status far_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const copy_kernel *kernel = (const copy_kernel *)(const void *)launch->kernel;
  const tm_string text = TM_STRING("a binding off the granule or beyond its buffer");
  if (!is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  if (!is_sound(kernel, launch)) return device->host->fail(device->host->context, TM_ERROR_ARGUMENT, 0, text);
  work item = { .kernel = kernel, .binding_count = launch->binding_count };
  memcpy(item.bindings, launch->bindings, launch->binding_count * sizeof(tm_binding));
  const uint64_t span = device->host->trace_begin(device->host->context, (tm_string)TM_STRING("enqueuing\x1b"));
  const tm_status status = enqueue(device, launch->queue, &item, launch->waits, launch->wait_count, out_ticket);
  device->host->trace_end(device->host->context, span);
  return status;
}

static tm_status far_flush(tm_device *device, uint32_t index) {
  if (ZOO_IDLE_FLUSH) return TM_OK;     /* work begins with a wait, of whatever time */
  pthread_mutex_lock(&device->lock);
  drain(device, index, device->queues[index].issued);
  pthread_mutex_unlock(&device->lock);
  return TM_OK;
}

static tm_status far_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  tm_status status = TM_OK;
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < count && status == TM_OK; i++) {
    queue *q = &device->queues[tickets[i].queue];
    if (tickets[i].value > q->issued) status = TM_ERROR_ARGUMENT;
    else if (timeout_ns != TM_WAIT_POLL) drain(device, tickets[i].queue, tickets[i].value);
    else if (q->done < tickets[i].value) status = TM_PENDING;
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = far_info, .open = far_open,
  .close = far_close, .query = far_query, .prepare = far_prepare, .release = far_release, .buffer_create = far_create,
  .buffer_destroy = far_destroy, .upload = far_upload, .download = far_download, .launch = far_launch, .flush = far_flush,
  .wait = far_wait,
};

TM_DEFINE_PLUGIN("zoo_two_queues", "1", "zoo", table)
