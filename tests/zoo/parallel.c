/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An accelerator with memory of its own and two queues, each worked off by a thread, slowly with large transfers: waits between
 * queues, a cancel that keeps from running what has not begun; with one slip (ZOO_SLIP).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "zoo.h"

#define NONE 0
#define FORGETS_CANCEL 1        /* says of what was cancelled that it is done */
#define CANCELS_ONE 2           /* the first queue only */
#define IGNORES_WAITS 3
#define IGNORES_SECOND_WAIT 4
#define MINDS_COMPANY 5         /* wrong while the other queue has something to do */
#define HAS_A_SHORT_RING 6      /* of bindings, which are written over where many launches are under way */

#define QUEUES 2u
#define ROOM 64u
#define RING 8u
#define MOST_WAITS 4u
#define PAUSE_NS 50000l
#define LARGE_BYTES (UINT64_C(1) << 20)
#define LARGE_NS 20000000l
#define LARGEST_BYTES (UINT64_C(64) << 20)

struct tm_buffer {
  uint64_t bytes;
  char    *content;
};

typedef struct work {
  tm_kernel  kernel;
  tm_binding bindings[3];
  uint32_t   binding_count;     /* 0: a transfer */
  uint32_t   slot;              /* of the ring */
  char      *to;
  const char *from;
  uint64_t   bytes;
  tm_ticket  waits[MOST_WAITS];
  uint32_t   wait_count;
} work;

/* done <= started <= issued; what was cancelled counts as started. */
typedef struct line {
  struct tm_device *device;
  pthread_t thread;
  work      items[ROOM];
  uint64_t  issued;
  uint64_t  started;
  uint64_t  done;
  uint64_t  cancelled_first;
  uint64_t  cancelled_last;
  int       is_running;
} line;

struct tm_device {
  const tm_host  *host;
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  line            lines[QUEUES];
  tm_binding      ring[RING][3];
  uint32_t        next_slot;
  int             ends;
};

static const tm_memory_space memory = {
  .struct_size = sizeof memory, .identity = { { 'p', 'a', 'r', 'a' } }, .name = TM_STRING("parallel memory"),
  .total_bytes = UINT64_C(1) << 30, .largest_buffer_bytes = LARGEST_BYTES, .alignment = 64, .offset_granule = 4, .store_granule = 1,
};
static const tm_memory_space *const memories[] = { &memory };

static tm_status info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  (void)backend;
  if (index != 0) return TM_END;
  const tm_device_info own = { .struct_size = out_info->struct_size, .name = TM_STRING("a parallel animal"), .epoch = 1,
                               .queue_count = QUEUES, .memory_count = 1, .memories = memories };
  memcpy(out_info, &own, sizeof own < own.struct_size ? sizeof own : own.struct_size);
  return TM_OK;
}

/* ---- work ---- */

static float *place(const tm_binding *binding) { return (float *)(void *)(binding->buffer->content + binding->offset); }

static void execute(struct tm_device *device, const work *item) {
  if (item->binding_count == 0) {
    if (item->bytes >= LARGE_BYTES) thrd_sleep(&(struct timespec){ .tv_nsec = LARGE_NS }, NULL);
    memcpy(item->to, item->from, item->bytes);
    return;
  }
  const tm_binding *bindings = ZOO_SLIP == HAS_A_SHORT_RING ? device->ring[item->slot] : item->bindings;
  const uint32_t last = item->binding_count - 1;
  zoo_compute(&item->kernel, place(&bindings[0]), place(&bindings[last - 1]), place(&bindings[last]));
}

/* The same whoever the machine lets work when. */
static int has_company(const struct tm_device *device, const line *l) {
  for (uint32_t i = 0; i < QUEUES; i++)
    if (&device->lines[i] != l && device->lines[i].done < device->lines[i].issued) return 1;
  return 0;
}

static void mind(const work *item) {
  if (item->binding_count != 0 && item->kernel.count != 0) place(&item->bindings[item->binding_count - 1])[0] += 1;
}

static int may_start(const struct tm_device *device, const work *item) {
  for (uint32_t i = 0; i < item->wait_count; i++)
    if (device->lines[item->waits[i].queue].done < item->waits[i].value) return 0;
  return 1;
}

static void *work_off(void *argument) {
  line *l = argument;
  struct tm_device *device = l->device;
  pthread_mutex_lock(&device->lock);
  while (!device->ends || l->started < l->issued) {
    if (l->started == l->issued || !may_start(device, &l->items[l->started % ROOM])) {
      pthread_cond_wait(&device->changed, &device->lock);
      continue;
    }
    const work item = l->items[l->started++ % ROOM];
    const uint64_t number = l->started;
    l->is_running = 1;
    const int had_company = has_company(device, l);
    pthread_mutex_unlock(&device->lock);
    execute(device, &item);
    pthread_mutex_lock(&device->lock);
    if (ZOO_SLIP == MINDS_COMPANY && (had_company || has_company(device, l))) mind(&item);
    l->is_running = 0;
    l->done = l->cancelled_first == number + 1 ? l->cancelled_last : number;
    pthread_cond_broadcast(&device->changed);
  }
  pthread_mutex_unlock(&device->lock);
  return NULL;
}

static void stop(tm_device *device, uint32_t count) {
  pthread_mutex_lock(&device->lock);
  device->ends = 1;
  pthread_cond_broadcast(&device->changed);
  pthread_mutex_unlock(&device->lock);
  for (uint32_t i = 0; i < count; i++) pthread_join(device->lines[i].thread, NULL);
  device->host->free(device->host->context, device, sizeof *device);
}

static tm_status open_it(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  tm_device *device = backend->host->alloc(backend->host->context, sizeof *device, 16);
  if (device == NULL) return TM_ERROR_NO_MEMORY;
  memset(device, 0, sizeof *device);
  device->host = backend->host;
  pthread_mutex_init(&device->lock, NULL);
  pthread_cond_init(&device->changed, NULL);
  for (uint32_t i = 0; i < QUEUES; i++) {
    device->lines[i].device = device;
    if (pthread_create(&device->lines[i].thread, NULL, work_off, &device->lines[i]) == 0) continue;
    stop(device, i);
    return TM_ERROR_NO_MEMORY;
  }
  *out_device = device;
  return TM_OK;
}

static void close_it(tm_device *device) { stop(device, QUEUES); }

/* ---- judging ---- */

static tm_status query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                       tm_answer *const *out_answers) {
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t reasons = zoo_refuses(operations[i]);
    for (uint32_t k = 0; reasons == 0 && k < operations[i]->input_count + operations[i]->output_count; k++)
      if (operations[i]->operands[k].byte_count > LARGEST_BYTES) reasons = TM_REASON_SIZE;
    zoo_reply(out_answers[i], reasons);
  }
  return TM_OK;
}

static tm_status prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  (void)answer;
  if ((zoo_strange(operation) & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0) return TM_UNSUPPORTED;
  tm_kernel *kernel = device->host->alloc(device->host->context, sizeof *kernel, _Alignof(tm_kernel));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  *kernel = (tm_kernel){ .op = operation->op, .count = operation->operands[operation->input_count].element_count };
  *out_kernel = kernel;
  return TM_OK;
}

static void release(tm_device *device, tm_kernel *kernel) { device->host->free(device->host->context, kernel, sizeof *kernel); }

/* ---- buffers ---- */

static tm_status create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  (void)device, (void)space;
  if (bytes > LARGEST_BYTES) return TM_ERROR_NO_MEMORY;
  tm_buffer *buffer = malloc(sizeof *buffer);
  char *content = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (buffer == NULL || content == NULL) {
    free(buffer);
    free(content);
    return TM_ERROR_NO_MEMORY;
  }
  *buffer = (tm_buffer){ bytes, content };
  *out_buffer = buffer;
  return TM_OK;
}

static void destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  (void)device, (void)space, (void)bytes, (void)imported;
  free(buffer->content);
  free(buffer);
}

/* ---- queues ---- */

/* Under the lock.  What is complete need not be waited for. */
static tm_status take_waits(const tm_device *device, work *item, const tm_ticket *waits, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (waits[i].queue >= QUEUES || waits[i].value > device->lines[waits[i].queue].issued) return TM_ERROR_ARGUMENT;
    if (device->lines[waits[i].queue].done >= waits[i].value || ZOO_SLIP == IGNORES_WAITS) continue;
    if (ZOO_SLIP == IGNORES_SECOND_WAIT && item->wait_count == 1) continue;
    if (item->wait_count == MOST_WAITS) return TM_BUSY;
    item->waits[item->wait_count++] = waits[i];
  }
  return TM_OK;
}

static tm_status enqueue(tm_device *device, uint32_t queue, const work *item, const tm_ticket *waits, uint32_t count, tm_ticket *out_ticket) {
  if (queue >= QUEUES) return TM_ERROR_ARGUMENT;
  line *l = &device->lines[queue];
  work own = *item;
  pthread_mutex_lock(&device->lock);
  tm_status status = take_waits(device, &own, waits, count);
  if (status == TM_OK && l->issued - l->done == ROOM) status = TM_BUSY;
  if (status == TM_OK) {
    own.slot = device->next_slot++ % RING;
    memcpy(device->ring[own.slot], own.bindings, sizeof own.bindings);
    l->items[l->issued++ % ROOM] = own;
    *out_ticket = (tm_ticket){ .queue = queue, .value = l->issued };
    pthread_cond_broadcast(&device->changed);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

static tm_status upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (!zoo_is_zero(transfer, sizeof *transfer, transfer->struct_size)) return TM_UNSUPPORTED;
  const work item = { .to = transfer->destination->content + transfer->destination_offset, .from = transfer->host, .bytes = transfer->bytes };
  return enqueue(device, transfer->queue, &item, transfer->waits, transfer->wait_count, out_ticket);
}

static tm_status download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (!zoo_is_zero(transfer, sizeof *transfer, transfer->struct_size)) return TM_UNSUPPORTED;
  const work item = { .to = transfer->host, .from = transfer->source->content + transfer->source_offset, .bytes = transfer->bytes };
  return enqueue(device, transfer->queue, &item, transfer->waits, transfer->wait_count, out_ticket);
}

static tm_status copy(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (!zoo_is_zero(transfer, sizeof *transfer, transfer->struct_size)) return TM_UNSUPPORTED;
  const work item = { .to = transfer->destination->content + transfer->destination_offset,
                      .from = transfer->source->content + transfer->source_offset, .bytes = transfer->bytes };
  return enqueue(device, transfer->queue, &item, transfer->waits, transfer->wait_count, out_ticket);
}

static tm_status launch(tm_device *device, const tm_launch *what, tm_ticket *out_ticket) {
  if (!zoo_is_zero(what, sizeof *what, what->struct_size)) return TM_UNSUPPORTED;
  work item = { .kernel = *what->kernel, .binding_count = what->binding_count };
  memcpy(item.bindings, what->bindings, what->binding_count * sizeof(tm_binding));
  return enqueue(device, what->queue, &item, what->waits, what->wait_count, out_ticket);
}

/* Under the lock. */
static tm_status outcome(const tm_device *device, const tm_ticket *ticket) {
  const line *l = &device->lines[ticket->queue];
  if (ticket->value > l->issued) return TM_ERROR_ARGUMENT;
  if (ticket->value > l->done) return TM_PENDING;
  const int is_cancelled = ticket->value != 0 && ticket->value >= l->cancelled_first && ticket->value <= l->cancelled_last;
  return is_cancelled && ZOO_SLIP != FORGETS_CANCEL ? TM_ERROR_CANCELLED : TM_OK;
}

static tm_status wait_for(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  tm_status status = TM_OK;
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < count && status != TM_PENDING; i++) {
    tm_status one = tickets[i].queue < QUEUES ? outcome(device, &tickets[i]) : TM_ERROR_ARGUMENT;
    for (uint64_t waited_ns = 0; one == TM_PENDING && waited_ns < timeout_ns; waited_ns += PAUSE_NS) {
      pthread_mutex_unlock(&device->lock);
      thrd_sleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
      pthread_mutex_lock(&device->lock);
      one = outcome(device, &tickets[i]);
    }
    if (status == TM_OK || one == TM_PENDING) status = one;
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

static tm_status cancel(tm_device *device, uint32_t queue) {
  line *l = &device->lines[queue % QUEUES];
  if (ZOO_SLIP == CANCELS_ONE && queue != 0) return TM_OK;
  pthread_mutex_lock(&device->lock);
  if (l->started < l->issued) {
    l->cancelled_first = l->started + 1;
    l->cancelled_last = l->started = l->issued;
    if (!l->is_running) l->done = l->issued;
    pthread_cond_broadcast(&device->changed);
  }
  const tm_status status = l->is_running ? TM_BUSY : TM_OK;
  pthread_mutex_unlock(&device->lock);
  return status;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = info, .open = open_it, .close = close_it,
  .query = query, .prepare = prepare, .release = release, .launch = launch, .wait = wait_for, .cancel = cancel,
  .buffer_create = create, .buffer_destroy = destroy, .upload = upload, .download = download, .copy = copy,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
