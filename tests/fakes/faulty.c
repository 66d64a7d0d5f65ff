/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "faulty.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The contract's functions get no more than the backend's own handles, so the plan in force stands here. */
static _Atomic(fault_plan *) plan;

static fault_plan *current(void) { return atomic_load(&plan); }

/* A plan ends with its test, so a call that hangs has read all it needs of it before it says so. */
static int is_spoiled(fault_function function) {
  fault_plan *one = current();
  const fault_kind kind = one->kind;
  const uint64_t call = atomic_fetch_add(&one->calls[function], 1) + 1;
  const int is_within = function == one->function && call >= one->first && call <= one->last;
  if (!is_within || (one->each != 0 && (call - one->first) % one->each != 0)) return 0;
  atomic_fetch_add(&one->faults, 1);
  while (kind == FAULT_HANG) (void)pause();
  if (kind == FAULT_CRASH) abort();
  return 1;
}

static tm_status faulty_init(const tm_host *host, tm_backend **out_backend) {
  fault_plan *given = host->config_pointer(host->context, (tm_string)TM_STRING(FAULT_PLAN_KEY));
  atomic_store(&plan, given);
  if (given == NULL) return host->fail(host->context, TM_ERROR_NO_DEVICE, 0, (tm_string)TM_STRING("no plan"));
  if (given->config_get == NULL) return given->inner->init(host, out_backend);
  static tm_host told;          /* outlives the backend, as a host must */
  memcpy(&told, host, sizeof told < host->struct_size ? sizeof told : host->struct_size);
  told.config_get = given->config_get;
  return given->inner->init(&told, out_backend);
}

static void faulty_shutdown(tm_backend *backend) { current()->inner->shutdown(backend); }

static tm_status faulty_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  static const tm_identity none;
  const tm_status status = current()->inner->device_info(backend, index, out_info);
  if (status == TM_OK && memcmp(&out_info->uuid, &none, sizeof none) == 0) out_info->uuid = current()->uuid;
  if (status == TM_OK && !current()->keeps_costs) out_info->open_ns = 0;
  return status;
}

static tm_status faulty_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  return is_spoiled(FAULT_OPEN) ? current()->status : current()->inner->open(backend, index, out_device);
}

static void faulty_close(tm_device *device) { current()->inner->close(device); }

/* Between 1 and 2^17 ns, as likely small as large. */
static uint64_t random_price(const tm_operation *operation) {
  uint64_t hash = current()->price_seed * UINT64_C(0x9e3779b97f4a7c15) + operation->op;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++)
    hash = (hash ^ operation->operands[i].byte_count ^ (uint64_t)operation->operands[i].format << 40) * UINT64_C(0xd6e8feb86659fd93);
  hash ^= hash >> 32;
  return UINT64_C(1) << hash % 18;
}

static tm_status faulty_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                              tm_answer *const *out_answers) {
  if (is_spoiled(FAULT_QUERY)) return current()->status;
  const tm_status status = current()->inner->query(backend, index, operations, count, out_answers);
  for (uint32_t i = 0; i < count && status == TM_OK && !current()->keeps_costs; i++)
    if (out_answers[i]->level != TM_LEVEL_REFUSED) out_answers[i]->cost_ns = 1, out_answers[i]->setup_ns = 0; /* so that it is chosen */
  for (uint32_t i = 0; i < count && status == TM_OK && current()->price_seed != 0; i++)
    if (out_answers[i]->level != TM_LEVEL_REFUSED) out_answers[i]->cost_ns = random_price(operations[i]), out_answers[i]->setup_ns = 0;
  return status;
}

static tm_status faulty_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  return is_spoiled(FAULT_PREPARE) ? current()->status : current()->inner->prepare(device, operation, answer, out_kernel);
}

static void faulty_release(tm_device *device, tm_kernel *kernel) { current()->inner->release(device, kernel); }

static tm_status faulty_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const int spoiled = is_spoiled(FAULT_LAUNCH);
  if (spoiled && current()->kind == FAULT_STATUS) return current()->status;
  const tm_status status = current()->inner->launch(device, launch, out_ticket);
  if (!spoiled) return status;
#ifndef FAULTY_FAR
  if (current()->kind == FAULT_WRONG) {
    const tm_binding *output = &launch->bindings[current()->output];
    ((unsigned char *)(void *)output->buffer)[output->offset] ^= 1u;
    return status;
  }
  const tm_binding *output = &launch->bindings[launch->binding_count - 1];
  memset((char *)(void *)output->buffer + output->offset, 0x6b, output->length);
#endif
  return current()->status;
}

static tm_status faulty_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  if (is_spoiled(FAULT_WAIT)) {
    (void)current()->inner->wait(device, tickets, count, TM_WAIT_FOREVER);      /* it ended, but badly */
    return current()->status;
  }
  return current()->inner->wait(device, tickets, count, timeout_ns);
}

static tm_status faulty_cancel(tm_device *device, uint32_t queue) { return current()->inner->cancel(device, queue); }

#ifdef FAULTY_FAR
static tm_status faulty_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  return is_spoiled(FAULT_BUFFER_CREATE) ? current()->status : current()->inner->buffer_create(device, space, bytes, out_buffer);
}

static void faulty_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  current()->inner->buffer_destroy(device, space, buffer, bytes, imported);
}

static tm_status faulty_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  return is_spoiled(FAULT_UPLOAD) ? current()->status : current()->inner->upload(device, transfer, out_ticket);
}

static tm_status faulty_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  return is_spoiled(FAULT_DOWNLOAD) ? current()->status : current()->inner->download(device, transfer, out_ticket);
}

static tm_status faulty_flush(tm_device *device, uint32_t queue) { return current()->inner->flush(device, queue); }
#endif

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = faulty_init, .shutdown = faulty_shutdown, .device_info = faulty_info, .open = faulty_open,
  .close = faulty_close, .query = faulty_query, .prepare = faulty_prepare, .release = faulty_release, .launch = faulty_launch,
  .wait = faulty_wait, .cancel = faulty_cancel,
#ifdef FAULTY_FAR
  .buffer_create = faulty_buffer_create, .buffer_destroy = faulty_buffer_destroy, .upload = faulty_upload,
  .download = faulty_download, .flush = faulty_flush,
#endif
};

#ifndef FAULTY_NAME
#define FAULTY_NAME "faulty"
#endif
TM_DEFINE_PLUGIN(FAULTY_NAME, "1", "Tests", table)
