/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An accelerator with memory of its own, one queue and a thread that works it off, slowly with large transfers; with one slip
 * (ZOO_SLIP) in how it waits, numbers, cancels or judges sizes.  With ZOO_NEAR it works in the host's memory instead, slowly
 * with many elements.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "zoo.h"

#define PAUSE_NS 100000
#define NONE 0
#define EARLY_WAIT 1
#define EMPTY_TICKETS 2
#define IDLE_CANCEL 3
#define BOUNDLESS 4
#define BLOCKS 5
#define BLOCKS_UPLOADS 6
#define BLOCKS_DOWNLOADS 7
#define FIRST_ONLY 8
#define LEAKS_BUFFERS 9
#define RUNS_OUT 10
/* Only once it is asked to wait longer than most do when they try: */
#define TAKES_TIME_FOR_DONE 11          /* says TM_OK when the time has passed, */
#define TAKES_LONG_FOR_DONE 12          /* or at once; */
#define HANGS_IN_LONG_WAITS 13
#define FAILS_LATE 14
#define GIVES_UP_EARLY 15
#define WAITS_TO_THE_END 16             /* however short its time is */
#define POLLS_TO_THE_END 17
#define READS_BEHIND_UPLOADS 18         /* up to whole lines */
#define HAS_NO_EMPTY_BUFFERS 19         /* their handle is NULL */

#ifndef ZOO_NEAR
#define ZOO_NEAR 0
#endif

#define ROOM (ZOO_NEAR ? 16u : 64u)
#define LARGEST_BYTES (UINT64_C(64) << 20)
#define LARGE_BYTES (UINT64_C(1) << 20)
#define LARGE_NS 20000000l
#define LONG_WAIT_NS UINT64_C(10000000)
#define FOREVER_S 1000
#define LINE_BYTES 64u
#define MOST_LARGE 20u                  /* of RUNS_OUT, destroyed or not */

struct tm_buffer {
  uint64_t bytes;
  char    *content;
};

typedef struct work {
  tm_kernel   kernel;           /* unless there are no bindings: then a transfer */
  tm_binding  bindings[3];
  uint32_t    binding_count;
  char       *to;
  const char *from;
  uint64_t    bytes;
} work;

struct tm_device {
  const tm_host  *host;
  pthread_t       thread;
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  work            items[ROOM];
  uint64_t        issued;
  uint64_t        done;
  int             ends;
  uint32_t        large_count;          /* buffers that were made, as large as those that `growth` makes */
};

static const tm_memory_space memory = {
  .struct_size = sizeof memory, .identity = { { 'h', 'a', 's', 't', 'y' } }, .name = TM_STRING("hasty memory"),
  .total_bytes = UINT64_C(1) << 30, .largest_buffer_bytes = LARGEST_BYTES, .alignment = 64, .offset_granule = 4, .store_granule = 1,
};
static const tm_memory_space *const far_memories[] = { &memory };

static tm_status hasty_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  (void)backend;
  if (index != 0) return TM_END;
  const tm_device_info info = { .struct_size = out_info->struct_size, .name = TM_STRING("a hasty animal"), .epoch = 1,
                                .queue_count = 1, .memory_count = 1, .memories = ZOO_NEAR ? zoo_memories : far_memories };
  memcpy(out_info, &info, sizeof info < info.struct_size ? sizeof info : info.struct_size);
  return TM_OK;
}

/* ---- work ---- */

static char *place(const tm_binding *binding) {
  return (ZOO_NEAR ? (char *)(void *)binding->buffer : binding->buffer->content) + binding->offset;
}

static void execute(const work *item) {
  if (item->binding_count == 0) {
    if (item->bytes >= LARGE_BYTES) thrd_sleep(&(struct timespec){ .tv_nsec = LARGE_NS }, NULL);
    memcpy(item->to, item->from, item->bytes);
    return;
  }
  const uint32_t last = item->binding_count - 1;
  if (ZOO_NEAR && item->kernel.count >= LARGE_BYTES / 2) thrd_sleep(&(struct timespec){ .tv_nsec = LARGE_NS }, NULL);
  zoo_compute(&item->kernel, (const float *)(void *)place(&item->bindings[0]),
              (const float *)(void *)place(&item->bindings[last - 1]), (float *)(void *)place(&item->bindings[last]));
}

static void *work_off(void *argument) {
  tm_device *device = argument;
  pthread_mutex_lock(&device->lock);
  while (!device->ends || device->done < device->issued) {
    if (device->done == device->issued) {
      pthread_cond_wait(&device->changed, &device->lock);
      continue;
    }
    const work item = device->items[device->done % ROOM];
    pthread_mutex_unlock(&device->lock);
    execute(&item);
    pthread_mutex_lock(&device->lock);
    device->done++;
    pthread_cond_broadcast(&device->changed);
  }
  pthread_mutex_unlock(&device->lock);
  return NULL;
}

static tm_status hasty_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  tm_device *device = backend->host->alloc(backend->host->context, sizeof *device, 16);
  if (device == NULL) return TM_ERROR_NO_MEMORY;
  memset(device, 0, sizeof *device);
  device->host = backend->host;
  pthread_mutex_init(&device->lock, NULL);
  pthread_cond_init(&device->changed, NULL);
  if (pthread_create(&device->thread, NULL, work_off, device) != 0) {
    backend->host->free(backend->host->context, device, sizeof *device);
    return TM_ERROR_NO_MEMORY;
  }
  *out_device = device;
  return TM_OK;
}

static void hasty_close(tm_device *device) {
  pthread_mutex_lock(&device->lock);
  device->ends = 1;
  pthread_cond_broadcast(&device->changed);
  pthread_mutex_unlock(&device->lock);
  pthread_join(device->thread, NULL);
  device->host->free(device->host->context, device, sizeof *device);
}

/* ---- judging ---- */

static tm_status hasty_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                             tm_answer *const *out_answers) {
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) {
    const tm_operation *operation = operations[i];
    uint32_t reasons = zoo_refuses(operation);
    for (uint32_t k = 0; reasons == 0 && ZOO_SLIP != BOUNDLESS && k < operation->input_count + operation->output_count; k++)
      if (operation->operands[k].byte_count > LARGEST_BYTES) reasons = TM_REASON_SIZE;
    zoo_reply(out_answers[i], reasons);
  }
  return TM_OK;
}

static int is_strange(const void *data, uint64_t from, uint64_t to) {
  const char *bytes = data;
  while (from < to && bytes[from] == 0) from++;
  return from < to;
}

static tm_status hasty_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  (void)answer;
  if ((zoo_strange(operation) & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0) return TM_UNSUPPORTED;
  tm_kernel *kernel = device->host->alloc(device->host->context, sizeof *kernel, _Alignof(tm_kernel));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  *kernel = (tm_kernel){ .op = operation->op, .count = operation->operands[operation->input_count].element_count };
  *out_kernel = kernel;
  return TM_OK;
}

static void hasty_release(tm_device *device, tm_kernel *kernel) {
  device->host->free(device->host->context, kernel, sizeof *kernel);
}

#if !ZOO_NEAR
/* ---- buffers ---- */

static tm_status hasty_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  (void)device, (void)space;
  if (bytes > LARGEST_BYTES) return TM_ERROR_NO_MEMORY;
  if (ZOO_SLIP == RUNS_OUT && bytes >= LARGE_BYTES && device->large_count++ >= MOST_LARGE) return TM_ERROR_NO_MEMORY;
  if (ZOO_SLIP == HAS_NO_EMPTY_BUFFERS && bytes == 0) {
    *out_buffer = NULL;
    return TM_OK;
  }
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

static void hasty_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  (void)device, (void)space, (void)bytes, (void)imported;
  if (buffer == NULL) return;
  if (ZOO_SLIP != LEAKS_BUFFERS) free(buffer->content);
  free(buffer);
}
#endif

/* ---- the queue ---- */

static tm_status enqueue(tm_device *device, const work *item, int blocks, const tm_ticket *waits, uint32_t wait_count,
                         tm_ticket *out_ticket) {
  tm_status status = TM_OK;
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < wait_count; i++)
    if (waits[i].queue != 0 || waits[i].value > device->issued) status = TM_ERROR_ARGUMENT;
  while (blocks && device->issued - device->done == ROOM) pthread_cond_wait(&device->changed, &device->lock);
  if (status == TM_OK && device->issued - device->done == ROOM) status = TM_BUSY;
  if (status == TM_OK) {
    device->items[device->issued++ % ROOM] = *item;
    *out_ticket = (tm_ticket){ .value = ZOO_SLIP == EMPTY_TICKETS ? 0 : device->issued };
    pthread_cond_broadcast(&device->changed);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

#if !ZOO_NEAR
static tm_status hasty_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (is_strange(transfer, sizeof *transfer, transfer->struct_size)) return TM_UNSUPPORTED;
  const work item = { .to = transfer->destination->content + transfer->destination_offset, .from = transfer->host,
                      .bytes = transfer->bytes };
  if (ZOO_SLIP == READS_BEHIND_UPLOADS && transfer->bytes % LINE_BYTES != 0)
    (void)((const volatile char *)transfer->host)[transfer->bytes / LINE_BYTES * LINE_BYTES + LINE_BYTES - 1];
  return enqueue(device, &item, ZOO_SLIP == BLOCKS_UPLOADS, transfer->waits, transfer->wait_count, out_ticket);
}

static tm_status hasty_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (is_strange(transfer, sizeof *transfer, transfer->struct_size)) return TM_UNSUPPORTED;
  const work item = { .to = transfer->host, .from = transfer->source->content + transfer->source_offset, .bytes = transfer->bytes };
  return enqueue(device, &item, ZOO_SLIP == BLOCKS_DOWNLOADS, transfer->waits, transfer->wait_count, out_ticket);
}
#endif

static tm_status hasty_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  if (is_strange(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  work item = { .kernel = *launch->kernel, .binding_count = launch->binding_count };
  memcpy(item.bindings, launch->bindings, launch->binding_count * sizeof(tm_binding));
  return enqueue(device, &item, ZOO_SLIP == BLOCKS, launch->waits, launch->wait_count, out_ticket);
}

static uint64_t now_ns(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Under the lock, which it gives back meanwhile. */
static void rest(tm_device *device, time_t seconds) {
  pthread_mutex_unlock(&device->lock);
  thrd_sleep(&(struct timespec){ .tv_sec = seconds, .tv_nsec = PAUSE_NS }, NULL);
  pthread_mutex_lock(&device->lock);
}

static int is_slip_in_waits(uint64_t timeout_ns) { return timeout_ns != TM_WAIT_FOREVER && timeout_ns > LONG_WAIT_NS; }

/* What it waits for in the place of what it is told. */
static uint64_t own_timeout(uint64_t timeout_ns) {
  if (ZOO_SLIP == POLLS_TO_THE_END && timeout_ns == TM_WAIT_POLL) return TM_WAIT_FOREVER;
  if (!is_slip_in_waits(timeout_ns)) return timeout_ns;
  if (ZOO_SLIP == WAITS_TO_THE_END) return TM_WAIT_FOREVER;
  return ZOO_SLIP == TAKES_LONG_FOR_DONE || ZOO_SLIP == GIVES_UP_EARLY ? TM_WAIT_POLL : timeout_ns;
}

static tm_status when_time_is_over(uint64_t timeout_ns) {
  if (!is_slip_in_waits(timeout_ns)) return TM_PENDING;
  if (ZOO_SLIP == TAKES_TIME_FOR_DONE || ZOO_SLIP == TAKES_LONG_FOR_DONE) return TM_OK;
  return ZOO_SLIP == FAILS_LATE ? TM_ERROR_INTERNAL : TM_PENDING;
}

/* Under the lock. */
static tm_status wait_for(tm_device *device, uint64_t value, uint64_t timeout_ns) {
  const uint64_t own_ns = own_timeout(timeout_ns), begin_ns = now_ns();
  if (ZOO_SLIP == HANGS_IN_LONG_WAITS && is_slip_in_waits(timeout_ns)) rest(device, FOREVER_S);
  while (device->done < value && (own_ns == TM_WAIT_FOREVER || now_ns() - begin_ns < own_ns)) rest(device, 0);
  return device->done < value ? when_time_is_over(timeout_ns) : TM_OK;
}

static tm_status hasty_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  tm_status status = TM_OK;
  if (ZOO_SLIP == FIRST_ONLY && count > 1) count = 1;
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; ZOO_SLIP != EARLY_WAIT && i < count && status == TM_OK; i++) {
    status = tickets[i].value > device->issued ? TM_ERROR_ARGUMENT : wait_for(device, tickets[i].value, timeout_ns);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* Lets everything finish, which a cancel may; or does not even look. */
static tm_status hasty_cancel(tm_device *device, uint32_t queue) {
  (void)queue;
  pthread_mutex_lock(&device->lock);
  const tm_status status = ZOO_SLIP != IDLE_CANCEL && device->done < device->issued ? TM_BUSY : TM_OK;
  pthread_mutex_unlock(&device->lock);
  return status;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = hasty_info, .open = hasty_open,
  .close = hasty_close, .query = hasty_query, .prepare = hasty_prepare, .release = hasty_release, .launch = hasty_launch,
  .wait = hasty_wait, .cancel = hasty_cancel,
#if !ZOO_NEAR
  .buffer_create = hasty_create, .buffer_destroy = hasty_destroy, .upload = hasty_upload, .download = hasty_download,
#endif
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
