/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An honest device whose launches take their time: inside the call, in host memory, or (ZOO_FAR) after it, in memory of its
 * own with two queues; or (ZOO_LINGERS) the first call of another function.  It says yes to everything, and to the log what
 * the host does to kernels and buffers in use, and which it forgets.
 */
#define _DEFAULT_SOURCE
#include <string.h>
#include <unistd.h>

#include "zoo.h"

#define QUEUES 2u
#define LAUNCH_NS UINT64_C(200000000)

#ifndef ZOO_FLAGS
#define ZOO_FLAGS 0
#endif
#ifndef ZOO_FAR
#define ZOO_FAR 0
#endif

#define WORK 0
#define OPEN 1
#define PREPARE 2
#define BUFFER_CREATE 3
#ifndef ZOO_LINGERS
#define ZOO_LINGERS WORK
#endif

typedef struct lingering_kernel {
  struct tm_kernel head;
  _Atomic uint64_t busy_until_ns;
} lingering_kernel;

struct tm_buffer {
  _Atomic uint64_t busy_until_ns;
  char             pad[56];
  char             content[];
};

static uint64_t now_ns(const tm_backend *backend) { return backend->host->now_ns(backend->host->context); }

static void sleep_until(const tm_backend *backend, uint64_t end_ns) {
  for (uint64_t now = now_ns(backend); now < end_ns; now = now_ns(backend)) (void)usleep((useconds_t)((end_ns - now) / 1000 + 1));
}

static void raise_to(_Atomic uint64_t *busy_until_ns, uint64_t end_ns) {
  uint64_t known = atomic_load(busy_until_ns);
  while (known < end_ns && !atomic_compare_exchange_weak(busy_until_ns, &known, end_ns)) {
  }
}

static void must_be_idle(const tm_backend *backend, const _Atomic uint64_t *busy_until_ns, tm_string otherwise) {
  if (now_ns(backend) < atomic_load(busy_until_ns)) backend->host->log(backend->host->context, TM_LOG_ERROR, otherwise);
}

static uint64_t launch_ns(void) { return zoo_is_on_trial() || ZOO_LINGERS != WORK ? 0 : LAUNCH_NS; }

/* Kernels and buffers that there are count as the backend's calls: a context that left some of them for good, because somebody was
   at work when it ended, is no concern of the next one's. */
static _Atomic uint64_t lingered;

static void linger(const tm_backend *backend, int here) {
  if (here == ZOO_LINGERS && !zoo_is_on_trial() && atomic_fetch_add(&lingered, 1) == 0) sleep_until(backend, now_ns(backend) + LAUNCH_NS);
}

static tm_status linger_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  linger(backend, OPEN);
  *out_device = (tm_device *)(void *)backend;
  return TM_OK;
}

static void linger_shutdown(tm_backend *backend) {
  const tm_string text = TM_STRING("BROKEN: something was forgotten");
  if (atomic_load(&backend->calls) != 0) backend->host->log(backend->host->context, TM_LOG_ERROR, text);
  atomic_store(&lingered, 0);           /* the library stays */
  zoo_shutdown(backend);
}

static tm_status linger_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                              tm_answer *const *out_answers) {
  (void)backend, (void)index, (void)operations;
  for (uint32_t i = 0; i < count; i++) zoo_reply(out_answers[i], 0);
  return TM_OK;
}

static tm_status linger_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const tm_host *host = zoo_backend_of(device)->host;
  lingering_kernel *kernel = host->alloc(host->context, sizeof *kernel, 16);
  (void)answer;
  linger(zoo_backend_of(device), PREPARE);
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  atomic_fetch_add(&zoo_backend_of(device)->calls, 1);
  memset(kernel, 0, sizeof *kernel);
  kernel->head = (tm_kernel){ .op = operation->op, .count = operation->op == TM_OP_NEG ? operation->operands[0].element_count : 0 };
  *out_kernel = &kernel->head;
  return TM_OK;
}

static void linger_release(tm_device *device, tm_kernel *kernel) {
  const tm_backend *backend = zoo_backend_of(device);
  lingering_kernel *whole = (lingering_kernel *)(void *)kernel;
  must_be_idle(backend, &whole->busy_until_ns, (tm_string)TM_STRING("BROKEN: a kernel was released during its launch"));
  atomic_fetch_sub(&zoo_backend_of(device)->calls, 1);
  backend->host->free(backend->host->context, whole, sizeof *whole);
}

#if ZOO_FAR
static _Atomic uint64_t queue_end_ns[QUEUES];   /* the contract's cancel gets no more than a queue's number */

static const tm_memory_space far_memory = {
  .struct_size = sizeof far_memory,
  .identity = { { 'l', 'i', 'n', 'g', 'e', 'r' } },
  .name = TM_STRING("memory of its own"),
  .alignment = 64,
  .offset_granule = 1,
  .store_granule = 1,
};
static const tm_memory_space *const memories[] = { &far_memory };

static tm_status linger_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = zoo_device_info(backend, index, out_info);
  out_info->flags = 0;
  if (TM_HAS_MEMBER(out_info, tm_device_info, queue_count)) out_info->queue_count = QUEUES;
  if (TM_HAS_MEMBER(out_info, tm_device_info, memories)) out_info->memories = memories;
  return status;
}

static tm_status linger_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  const tm_host *host = zoo_backend_of(device)->host;
  (void)space;
  linger(zoo_backend_of(device), BUFFER_CREATE);
  *out_buffer = host->alloc(host->context, sizeof(tm_buffer) + bytes, 64);
  if (*out_buffer == NULL) return TM_ERROR_NO_MEMORY;
  atomic_store(&(*out_buffer)->busy_until_ns, 0);
  atomic_fetch_add(&zoo_backend_of(device)->calls, 1);
  return TM_OK;
}

static void linger_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  const tm_backend *backend = zoo_backend_of(device);
  (void)space, (void)imported;
  must_be_idle(backend, &buffer->busy_until_ns, (tm_string)TM_STRING("BROKEN: a buffer was destroyed during work on it"));
  atomic_fetch_sub(&zoo_backend_of(device)->calls, 1);
  backend->host->free(backend->host->context, buffer, sizeof *buffer + bytes);
}

static tm_status linger_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  (void)device, (void)out_ticket;
  memcpy(transfer->destination->content + transfer->destination_offset, transfer->host, transfer->bytes);
  return TM_OK;
}

static tm_status linger_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  (void)device, (void)out_ticket;
  memcpy(transfer->host, transfer->source->content + transfer->source_offset, transfer->bytes);
  return TM_OK;
}

static tm_status linger_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  tm_backend *backend = zoo_backend_of(device);
  const uint64_t end_ns = now_ns(backend) + launch_ns();
  raise_to(&((lingering_kernel *)(void *)launch->kernel)->busy_until_ns, end_ns);
  for (uint32_t i = 0; i < launch->binding_count; i++) raise_to(&launch->bindings[i].buffer->busy_until_ns, end_ns);
  const float *x = (const float *)(void *)(launch->bindings[0].buffer->content + launch->bindings[0].offset);
  const tm_binding *output = &launch->bindings[launch->binding_count - 1];
  zoo_compute(launch->kernel, x, x, (float *)(void *)(output->buffer->content + output->offset));
  atomic_store(&queue_end_ns[launch->queue], end_ns);
  *out_ticket = (tm_ticket){ .queue = launch->queue, .value = end_ns };
  return TM_OK;
}

static tm_status linger_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  const tm_backend *backend = zoo_backend_of(device);
  const uint64_t give_up_ns = timeout_ns == TM_WAIT_FOREVER ? UINT64_MAX : now_ns(backend) + timeout_ns;
  for (uint32_t i = 0; i < count; i++) {
    sleep_until(backend, tickets[i].value < give_up_ns ? tickets[i].value : give_up_ns);
    if (now_ns(backend) < tickets[i].value) return TM_PENDING;
  }
  return TM_OK;
}

static tm_status linger_cancel(tm_device *device, uint32_t queue) {
  return now_ns(zoo_backend_of(device)) < atomic_load(&queue_end_ns[queue]) ? TM_BUSY : TM_OK;
}
#else
static tm_status linger_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = zoo_device_info(backend, index, out_info);
  out_info->flags |= ZOO_FLAGS;
  return status;
}

static tm_status linger_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  tm_backend *backend = zoo_backend_of(device);
  const uint64_t end_ns = now_ns(backend) + launch_ns();
  raise_to(&((lingering_kernel *)(void *)launch->kernel)->busy_until_ns, end_ns);
  sleep_until(backend, end_ns);
  return zoo_launch(device, launch, out_ticket);
}
#endif

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = linger_shutdown, .device_info = linger_info, .open = linger_open, .query = linger_query,
  .prepare = linger_prepare, .release = linger_release, .launch = linger_launch,
#if ZOO_FAR
  .buffer_create = linger_create, .buffer_destroy = linger_destroy, .upload = linger_upload, .download = linger_download,
  .wait = linger_wait, .cancel = linger_cancel,
#endif
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
