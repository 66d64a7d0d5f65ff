/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_device.h"

#include <stdio.h>
#include <string.h>

#include "sim_judge.h"
#include "sim_number.h"

#define MOST_KEYS 64u
#define MOST_NS 1e15

struct tm_device {
  const tm_backend *backend;
  int              lock;
  _Atomic uint64_t used_bytes;
  pthread_mutex_t  setup_lock;          /* of the keys, and of the device while it sets something up */
  uint64_t         setup_keys[MOST_KEYS];
  uint32_t         setup_key_count;
  sim_queues       queues;
};

/* The content follows at the next multiple of the memory's alignment. */
struct tm_buffer {
  uint64_t bytes;
  char    *content;
};

struct tm_kernel {
  sim_task        task;                 /* without data */
  const sim_loop *loop;
  uint64_t        virtual_ns;
};

static tm_status fail(const tm_device *device, tm_status status, int64_t native_code, const char *text) {
  const tm_host *host = device->backend->host;
  return host->fail(host->context, status, native_code, (tm_string){ text, strlen(text) });
}

/* ---- life ---- */

static tm_status lock_process(tm_device *device) {
  const tm_backend *backend = device->backend;
  char text[512];
  int error = 0;
  device->lock = SIM_NO_LOCK;
  if (!backend->description.exclusive_process) return TM_OK;
  const tm_status status = sim_lock_take(backend->lock_folder, backend->description.hash, &device->lock, &error);
  if (status == TM_OK) return TM_OK;
  if (status == TM_BUSY) snprintf(text, sizeof text, "another process has it (lock file in %.400s)", backend->lock_folder);
  else snprintf(text, sizeof text, "no lock file in %.400s (errno %d)", backend->lock_folder, error);
  return fail(device, status, error, text);
}

tm_status sim_device_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  const tm_host *host = backend->host;
  (void)index;
  tm_device *device = host->alloc(host->context, sizeof *device, 64);
  if (device == NULL) return TM_ERROR_NO_MEMORY;
  memset(device, 0, sizeof *device);
  device->backend = backend;
  pthread_mutex_init(&device->setup_lock, NULL);
  tm_status status = lock_process(device);
  if (status == TM_OK) status = sim_queues_init(&device->queues, host, (uint32_t)backend->description.queues, backend->is_real);
  if (status == TM_OK) {
    *out_device = device;
    return TM_OK;
  }
  sim_lock_drop(device->lock);
  pthread_mutex_destroy(&device->setup_lock);
  host->free(host->context, device, sizeof *device);
  return status;
}

void sim_device_close(tm_device *device) {
  const tm_host *host = device->backend->host;
  sim_queues_deinit(&device->queues);
  sim_lock_drop(device->lock);
  pthread_mutex_destroy(&device->setup_lock);
  host->free(host->context, device, sizeof *device);
}

/* ---- kernels ---- */

/* Whether the key is paid for from now on and was not before.  When the list is full, every set-up is paid anew. */
static int is_new_key(tm_device *device, uint64_t key) {
  for (uint32_t i = 0; i < device->setup_key_count; i++)
    if (device->setup_keys[i] == key) return 0;
  if (key != 0 && device->setup_key_count < MOST_KEYS) device->setup_keys[device->setup_key_count++] = key;
  return 1;
}

/* Who comes second waits for who sets up: only then is it paid. */
static void set_up(tm_device *device, const tm_answer *answer) {
  if (answer->setup_ns == 0) return;
  pthread_mutex_lock(&device->setup_lock);
  if (is_new_key(device, answer->setup_key)) sim_queues_spend(&device->queues, answer->setup_ns);
  pthread_mutex_unlock(&device->setup_lock);
}

tm_status sim_device_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  const tm_host *host = device->backend->host;
  tm_answer own = { .struct_size = sizeof own };
  (void)answer;
  sim_judge(&device->backend->description, operation, &own);
  if ((own.reasons & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0) return TM_UNSUPPORTED;
  if (own.reasons != 0) return TM_ERROR_ARGUMENT;
  tm_kernel *kernel = host->alloc(host->context, sizeof *kernel, sizeof(uint64_t));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  memset(kernel, 0, sizeof *kernel);
  kernel->loop = sim_loop_find(operation->op);
  kernel->virtual_ns = own.cost_ns;
  kernel->task.op = operation->op;
  kernel->task.count = kernel->loop->operand_count;
  memcpy(kernel->task.operands, operation->operands, kernel->task.count * sizeof(tm_operand));
  if (kernel->loop->attribute_bytes != 0) memcpy(kernel->task.attributes, operation->attributes, kernel->loop->attribute_bytes);
  set_up(device, &own);
  *out_kernel = kernel;
  return TM_OK;
}

void sim_device_release(tm_device *device, tm_kernel *kernel) {
  const tm_host *host = device->backend->host;
  if (kernel != NULL) host->free(host->context, kernel, sizeof *kernel);
}

/* ---- memory ---- */

static uint64_t head_bytes(const tm_device *device) {
  const uint64_t alignment = device->backend->description.memory.alignment;
  return (sizeof(tm_buffer) + alignment - 1) / alignment * alignment;
}

/* Takes from the cap; the device gives whole units of its alignment. */
static int take(tm_device *device, uint64_t bytes) {
  uint64_t used = atomic_load(&device->used_bytes);
  do {
    if (bytes > device->backend->description.memory.bytes - used) return 0;
  } while (!atomic_compare_exchange_weak(&device->used_bytes, &used, used + bytes));
  return 1;
}

static uint64_t units_of(const tm_device *device, uint64_t bytes) {
  const uint64_t alignment = device->backend->description.memory.alignment;
  return bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
}

tm_status sim_device_create_buffer(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  const tm_host *host = device->backend->host;
  const sim_memory *memory = &device->backend->description.memory;
  if (space != 0 || bytes > memory->bytes || (memory->largest_buffer_bytes != 0 && bytes > memory->largest_buffer_bytes))
    return fail(device, TM_ERROR_NO_MEMORY, 0, "larger than a buffer of the device may be");
  if (!take(device, units_of(device, bytes))) return fail(device, TM_ERROR_NO_MEMORY, 0, "the device's memory is full");
  tm_buffer *buffer = host->alloc(host->context, head_bytes(device) + bytes, memory->alignment < 16 ? 16 : memory->alignment);
  if (buffer == NULL) {
    atomic_fetch_sub(&device->used_bytes, units_of(device, bytes));
    return TM_ERROR_NO_MEMORY;
  }
  *buffer = (tm_buffer){ bytes, (char *)buffer + head_bytes(device) };
  *out_buffer = buffer;
  return TM_OK;
}

void sim_device_destroy_buffer(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  const tm_host *host = device->backend->host;
  (void)space, (void)bytes, (void)imported;
  if (buffer == NULL) return;
  atomic_fetch_sub(&device->used_bytes, units_of(device, buffer->bytes));
  host->free(host->context, buffer, head_bytes(device) + buffer->bytes);
}

tm_status sim_device_memory_stats(tm_device *device, uint32_t space, tm_memory_stats *out_stats) {
  const uint64_t total = device->backend->description.memory.bytes, used = atomic_load(&device->used_bytes);
  const tm_memory_stats stats = { .struct_size = out_stats->struct_size, .total_bytes = total, .free_bytes = total - used,
                                  .used_bytes = used };
  if (space != 0) return TM_UNSUPPORTED;
  memcpy(out_stats, &stats, stats.struct_size < sizeof stats ? stats.struct_size : sizeof stats);
  return TM_OK;
}

/* ---- work ---- */

static int holds(const tm_buffer *buffer, uint64_t offset, uint64_t bytes) {
  return buffer != NULL && offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}

static uint64_t transfer_ns(const tm_device *device, uint64_t bytes) {
  const sim_link *link = &device->backend->description.link;
  const double ns = (double)link->latency_ns + (double)bytes / link->bytes_per_second * 1e9;
  return (uint64_t)(ns < MOST_NS ? ns : MOST_NS);
}

static tm_status transfer(tm_device *device, const tm_transfer *given, char *to, const char *from, int is_sound,
                          tm_ticket *out_ticket) {
  sim_work work = { .to = to, .from = from, .bytes = given->bytes, .virtual_ns = transfer_ns(device, given->bytes) };
  if (!sim_is_zero(given, sizeof *given, given->struct_size)) return TM_UNSUPPORTED;
  if (!is_sound) return fail(device, TM_ERROR_ARGUMENT, 0, "a transfer beyond its buffer");
  return sim_queues_enqueue(&device->queues, given->queue, &work, given->waits, given->wait_count, out_ticket);
}

tm_status sim_device_upload(tm_device *device, const tm_transfer *given, tm_ticket *out_ticket) {
  const int is_sound = holds(given->destination, given->destination_offset, given->bytes);
  char *to = is_sound ? given->destination->content + given->destination_offset : NULL;
  return transfer(device, given, to, given->host, is_sound, out_ticket);
}

tm_status sim_device_download(tm_device *device, const tm_transfer *given, tm_ticket *out_ticket) {
  const int is_sound = holds(given->source, given->source_offset, given->bytes);
  const char *from = is_sound ? given->source->content + given->source_offset : NULL;
  return transfer(device, given, given->host, from, is_sound, out_ticket);
}

tm_status sim_device_copy(tm_device *device, const tm_transfer *given, tm_ticket *out_ticket) {
  const int is_sound = holds(given->destination, given->destination_offset, given->bytes) &&
                       holds(given->source, given->source_offset, given->bytes);
  char *to = is_sound ? given->destination->content + given->destination_offset : NULL;
  const char *from = is_sound ? given->source->content + given->source_offset : NULL;
  return transfer(device, given, to, from, is_sound, out_ticket);
}

/* The bytes between the end of a dense output and the end of the last unit that is stored. */
static uint64_t spill_of(const tm_device *device, const tm_operand *y) {
  const uint64_t granule = device->backend->description.memory.store_granule;
  return (granule - y->byte_count % granule) % granule;
}

static tm_status bind(const tm_device *device, const tm_launch *launch, sim_work *work) {
  const uint64_t granule = device->backend->description.memory.offset_granule;
  const uint32_t last = work->task.count - 1;
  if (launch->binding_count != work->task.count)
    return fail(device, TM_ERROR_ARGUMENT, 0, "another number of bindings than of operands");
  work->spill_bytes = spill_of(device, &work->task.operands[last]);
  for (uint32_t i = 0; i <= last; i++) {
    const tm_binding *binding = &launch->bindings[i];
    const uint64_t bytes = work->task.operands[i].byte_count + (i == last ? work->spill_bytes : 0);
    if (!holds(binding->buffer, binding->offset, bytes)) return fail(device, TM_ERROR_ARGUMENT, 0, "a binding beyond its buffer");
    if (binding->offset % granule != 0) return fail(device, TM_ERROR_ARGUMENT, 0, "a binding off the granule");
    work->task.data[i] = binding->buffer->content + binding->offset;
  }
  work->to = (char *)work->task.data[last] + work->task.operands[last].byte_count;
  return TM_OK;
}

tm_status sim_device_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_kernel *kernel = launch->kernel;
  sim_work work = { .task = kernel->task, .run = kernel->loop->run, .virtual_ns = kernel->virtual_ns };
  if (!sim_is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  const tm_status status = bind(device, launch, &work);
  if (status != TM_OK) return status;
  return sim_queues_enqueue(&device->queues, launch->queue, &work, launch->waits, launch->wait_count, out_ticket);
}

tm_status sim_device_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  return sim_queues_wait(&device->queues, tickets, count, timeout_ns);
}

tm_status sim_device_cancel(tm_device *device, uint32_t queue) { return sim_queues_cancel(&device->queues, queue); }

/* ---- the clock ---- */

static uint64_t now_ns(tm_device *device) { return sim_queues_now_ns(&device->queues); }

static uint64_t queue_ns(tm_device *device, uint32_t queue) { return sim_queues_queue_ns(&device->queues, queue); }

const sim_clock sim_device_clock = { .struct_size = sizeof sim_device_clock, .now_ns = now_ns, .queue_ns = queue_ns };
