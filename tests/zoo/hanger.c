/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Honest in its trial, and then but for one call, ZOO_HANGS, from which it never comes back.  With ZOO_FAR it is an
 * asynchronous device with memory of its own, else a synchronous one in host memory; ZOO_FLAGS are added to its flags.  With
 * ZOO_GREEDY it says yes to everything, and computes nothing.  The first ZOO_AFTER of those calls go well.  It tells the log when
 * it comes to the one that does not.
 */
#define _DEFAULT_SOURCE
#include <string.h>
#include <unistd.h>

#include "zoo.h"

#define NOTHING 0
#define INIT 1
#define DEVICE_INFO 2
#define QUERY 3
#define OPEN 4
#define PREPARE 5
#define LAUNCH 6
#define WAIT 7
#define UPLOAD 8
#define DOWNLOAD 9
#define CANCEL 10
#define RELEASE 11
#define BUFFER_CREATE 12
#define BUFFER_DESTROY 13
#define CLOSE 14
#define SHUTDOWN 15
#define POOL 17                 /* a part of a launch, in every thread of the host's pool */
#define FULL 18                 /* its queues take nothing, for ever */
#define FULL_WAIT 19            /* the same, and then no wait for what is on them comes back */
#define WORK 16                 /* every wait is answered as it should be, but the work never ends */

#ifndef ZOO_FLAGS
#define ZOO_FLAGS 0
#endif
#ifndef ZOO_GREEDY
#define ZOO_GREEDY 0
#endif
#ifndef ZOO_AFTER
#define ZOO_AFTER 0
#endif
#ifndef ZOO_FAR
#define ZOO_FAR 0
#endif

#if ZOO_FAR
static const tm_memory_space far_memory = {
  .struct_size = sizeof far_memory,
  .identity = { { 'h', 'a', 'n', 'g', 'e', 'r' } },
  .name = TM_STRING("memory of its own"),
  .alignment = 64,
  .offset_granule = 1,
  .store_granule = 1,
};
static const tm_memory_space *const far_memories[] = { &far_memory };
#else
#define far_memories zoo_memories
#endif

static _Atomic(const tm_host *) known_host;
static _Atomic int calls_that_go_well = ZOO_AFTER, is_full;

static int is_here(int here) {
  if (here != ZOO_HANGS || zoo_is_on_trial()) return 0;
  if (atomic_load(&calls_that_go_well) > 0 && atomic_fetch_sub(&calls_that_go_well, 1) > 0) return 0;
  const tm_host *host = atomic_exchange(&known_host, NULL);
  if (host != NULL) host->log(host->context, TM_LOG_INFO, (tm_string)TM_STRING("it hangs from now on"));
  return 1;
}

static void may_hang(int here) {
  while (is_here(here)) (void)pause();
}

static tm_status hang_init(const tm_host *host, tm_backend **out_backend) {
  atomic_store(&known_host, host);
  may_hang(INIT);
  return zoo_init(host, out_backend);
}

static void hang_shutdown(tm_backend *backend) {
  may_hang(SHUTDOWN);
  zoo_shutdown(backend);
}

static tm_status hang_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  may_hang(DEVICE_INFO);
  const tm_status status = zoo_device_info(backend, index, out_info);
  if (status != TM_OK) return status;
  out_info->flags = (ZOO_FAR ? 0 : TM_DEVICE_SYNCHRONOUS) | ZOO_FLAGS;
  if (ZOO_FAR && TM_HAS_MEMBER(out_info, tm_device_info, memories)) out_info->memories = far_memories;
  return status;
}

static tm_status hang_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  may_hang(OPEN);
  *out_device = (tm_device *)(void *)backend;
  return TM_OK;
}

static void hang_close(tm_device *device) {
  (void)device;
  may_hang(CLOSE);
}

static tm_status hang_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                            tm_answer *const *out_answers) {
  may_hang(QUERY);
  if (!ZOO_GREEDY || zoo_is_on_trial()) return zoo_query(backend, index, operations, count, out_answers);
  for (uint32_t i = 0; i < count; i++) zoo_reply(out_answers[i], 0);
  return TM_OK;
}

static tm_status hang_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  may_hang(PREPARE);
  return zoo_prepare(device, operation, answer, out_kernel);
}

static void hang_release(tm_device *device, tm_kernel *kernel) {
  may_hang(RELEASE);
  zoo_release(device, kernel);
}

/* ---- memory ---- */

#if ZOO_FAR
static tm_status hang_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  const tm_host *host = zoo_backend_of(device)->host;
  (void)space;
  may_hang(BUFFER_CREATE);
  *out_buffer = host->alloc(host->context, bytes, 64);
  return *out_buffer == NULL ? TM_ERROR_NO_MEMORY : TM_OK;
}

static void hang_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  const tm_host *host = zoo_backend_of(device)->host;
  (void)space, (void)imported;
  may_hang(BUFFER_DESTROY);
  host->free(host->context, buffer, bytes);
}

static tm_status hang_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  (void)device, (void)out_ticket;
  may_hang(UPLOAD);
  memcpy((char *)(void *)transfer->destination + transfer->destination_offset, transfer->host, transfer->bytes);
  return TM_OK;
}

static tm_status hang_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  (void)device, (void)out_ticket;
  may_hang(DOWNLOAD);
  memcpy(transfer->host, (char *)(void *)transfer->source + transfer->source_offset, transfer->bytes);
  return TM_OK;
}
#endif

/* ---- work ---- */

static void hang_part(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  (void)argument, (void)begin, (void)end, (void)lane;
  may_hang(POOL);
}

static tm_status hang_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_host *host = zoo_backend_of(device)->host;
  may_hang(LAUNCH);
  if (is_here(FULL)) return TM_BUSY;
  if (is_here(FULL_WAIT)) {
    atomic_store(&is_full, 1);
    return TM_BUSY;
  }
  host->parallel_for(host->context, 64, 1, hang_part, NULL);
  if (ZOO_FAR) *out_ticket = (tm_ticket){ .queue = launch->queue, .value = atomic_fetch_add(&zoo_backend_of(device)->calls, 1) + 1 };
  return ZOO_GREEDY && !zoo_is_on_trial() ? TM_OK : zoo_launch(device, launch, out_ticket);
}

#if ZOO_FAR
static tm_status hang_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  (void)device, (void)tickets, (void)count;
  may_hang(WAIT);
  while (atomic_load(&is_full) != 0) (void)pause();
  if (zoo_is_on_trial()) return TM_OK;
  if (ZOO_HANGS == CANCEL) return TM_ERROR_NO_MEMORY;
  if (!is_here(WORK)) return TM_OK;
  (void)usleep((useconds_t)(timeout_ns / 1000));
  return TM_PENDING;
}

static tm_status hang_cancel(tm_device *device, uint32_t queue) {
  (void)device, (void)queue;
  may_hang(CANCEL);
  return ZOO_HANGS == WORK ? TM_BUSY : TM_OK;
}
#endif

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = hang_init, .shutdown = hang_shutdown, .device_info = hang_info, .open = hang_open,
  .close = hang_close, .query = hang_query, .prepare = hang_prepare, .release = hang_release,
#if ZOO_FAR
  .buffer_create = hang_create, .buffer_destroy = hang_destroy, .upload = hang_upload, .download = hang_download,
  .wait = hang_wait, .cancel = hang_cancel,
#endif
  .launch = hang_launch,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
