/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_host.h - a host for one backend, for tests and benchmarks of kernels: it loads the backend through its entry,
 * prepares and launches single operations, and lets the caller choose how ranges are spread over lanes.
 */
#ifndef KERNEL_HOST_H
#define KERNEL_HOST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "tensormorph/plugin.h"

typedef struct kernel_host {
  tm_host                              services;
  tm_memory                            memory;
  tm_pool                             *pool;    /* NULL: ranges run one after the other, on changing lanes, from the back */
  const char                          *isa;
  const tm_accelerator_backend_plugin *table;
  tm_backend                          *backend;
  tm_status                            status;  /* of init */
  char                                 text[256];
} kernel_host;

static inline void kernel_host_log(void *context, uint32_t level, tm_string message) {
  (void)context;
  (void)level;
  (void)message;
}

static inline tm_status kernel_host_fail(void *context, tm_status status, int64_t native_code, tm_string message) {
  kernel_host *host = context;
  (void)native_code;
  snprintf(host->text, sizeof host->text, "%.*s", (int)message.length, message.data);
  return status;
}

static inline void *kernel_host_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  return tm_memory_alloc(&((kernel_host *)context)->memory, bytes, alignment);
}

static inline void kernel_host_free(void *context, void *memory, uint64_t bytes) {
  tm_memory_free(&((kernel_host *)context)->memory, memory, bytes);
}

static inline void kernel_host_parallel_for(void *context, uint64_t count, uint64_t grain, tm_range_fn function, void *argument) {
  kernel_host *host = context;
  if (grain == 0) grain = 1;
  if (host->pool != NULL) {
    tm_pool_run(host->pool, count, grain, function, argument);
    return;
  }
  uint32_t lane = 0;
  for (uint64_t part = count / grain + (count % grain != 0); part-- > 0;) {
    const uint64_t begin = part * grain, end = count - begin < grain ? count : begin + grain;
    function(argument, begin, end, lane);
    lane = (lane + 1) % host->services.lane_count;
  }
}

static inline uint64_t kernel_host_now(void *context) {
  (void)context;
  return tm_now_ns();
}

static inline tm_status kernel_host_config(void *context, tm_string key, tm_string *out_value) {
  const kernel_host *host = context;
  if (key.length != 3 || memcmp(key.data, "isa", 3) != 0) return TM_ERROR_NOT_FOUND;
  *out_value = (tm_string){ host->isa, strlen(host->isa) };
  return TM_OK;
}

static inline void *kernel_host_pointer(void *context, tm_string key) {
  (void)context;
  (void)key;
  return NULL;
}

static inline tm_status kernel_host_cache_get(void *context, tm_string key, void *out_data, uint64_t *inout_bytes) {
  (void)context;
  (void)key;
  (void)out_data;
  (void)inout_bytes;
  return TM_ERROR_NOT_FOUND;
}

static inline tm_status kernel_host_cache_put(void *context, tm_string key, const void *data, uint64_t bytes) {
  (void)context;
  (void)key;
  (void)data;
  (void)bytes;
  return TM_OK;
}

static inline void kernel_host_event(void *context, uint32_t index, uint32_t event, uint64_t epoch) {
  (void)context;
  (void)index;
  (void)event;
  (void)epoch;
}

static inline uint64_t kernel_host_trace_begin(void *context, tm_string name) {
  (void)context;
  (void)name;
  return 0;
}

static inline void kernel_host_trace_end(void *context, uint64_t span) {
  (void)context;
  (void)span;
}

/* The backend's table behind an entry function; NULL if it offers none. */
static inline const tm_accelerator_backend_plugin *kernel_host_table(tm_plugin_query_fn query) {
  const tm_plugin_header *header = query(TM_ABI_MAJOR, TM_ABI_MINOR);
  if (header == NULL || header->magic != TM_PLUGIN_MAGIC || header->trait_count == 0) return NULL;
  return header->traits[0].table;
}

/* `threads` 0: ranges run serially on `lanes` lanes; else on a pool of that many threads (lanes is then ignored). */
static inline void kernel_host_open(kernel_host *host, tm_plugin_query_fn query, const char *isa, uint32_t lanes, uint32_t threads) {
  memset(host, 0, sizeof *host);
  tm_memory_init(&host->memory, 0);
  if (threads > 0 && tm_pool_create(&host->memory, threads, &host->pool, NULL) == TM_OK) lanes = tm_pool_lane_count(host->pool);
  host->isa = isa;
  host->services = (tm_host){
    .struct_size = sizeof host->services, .lane_count = lanes, .context = host, .log = kernel_host_log,
    .fail = kernel_host_fail, .alloc = kernel_host_alloc, .free = kernel_host_free,
    .parallel_for = kernel_host_parallel_for, .now_ns = kernel_host_now, .config_get = kernel_host_config,
    .config_pointer = kernel_host_pointer, .cache_get = kernel_host_cache_get, .cache_put = kernel_host_cache_put,
    .device_event = kernel_host_event, .trace_begin = kernel_host_trace_begin, .trace_end = kernel_host_trace_end,
  };
  host->table = kernel_host_table(query);
  host->status = host->table != NULL ? host->table->init(&host->services, &host->backend) : TM_ERROR_INTERNAL;
}

static inline void kernel_host_close(kernel_host *host) {
  if (host->status == TM_OK && host->table->shutdown != NULL) host->table->shutdown(host->backend);
  tm_pool_destroy(host->pool);
}

static inline tm_answer kernel_host_query(const kernel_host *host, const tm_operation *operation) {
  tm_answer answer = { .struct_size = sizeof answer };
  tm_answer *answers[] = { &answer };
  host->table->query(host->backend, 0, &operation, 1, answers);
  return answer;
}

/* A prepared operation with the workspace it asked for. */
typedef struct kernel_run {
  kernel_host *host;
  tm_kernel   *kernel;
  void        *workspace;
  uint64_t     workspace_bytes;
  uint32_t     operand_count;
} kernel_run;

static inline tm_status kernel_run_prepare(kernel_run *run, kernel_host *host, const tm_operation *operation) {
  *run = (kernel_run){ .host = host, .operand_count = operation->input_count + operation->output_count };
  const tm_answer answer = kernel_host_query(host, operation);
  if (answer.level == TM_LEVEL_REFUSED) return TM_UNSUPPORTED;
  run->workspace_bytes = answer.workspace_bytes;
  if (answer.workspace_bytes > 0) run->workspace = kernel_host_alloc(host, answer.workspace_bytes, 1);
  return host->table->prepare((tm_device *)(void *)host->backend, operation, &answer, &run->kernel);
}

static inline tm_status kernel_run_launch(const kernel_run *run, void *const *pointers) {
  tm_binding bindings[TM_MAX_OPERANDS + 1] = { { 0 } };
  for (uint32_t i = 0; i < run->operand_count; ++i) bindings[i].buffer = (tm_buffer *)pointers[i];
  bindings[run->operand_count].buffer = (tm_buffer *)run->workspace;
  const tm_launch launch = {
    .struct_size = sizeof launch, .kernel = run->kernel, .bindings = bindings,
    .binding_count = run->operand_count + (run->workspace_bytes > 0 ? 1u : 0u),
  };
  tm_ticket ticket = { 0 };
  return run->host->table->launch((tm_device *)(void *)run->host->backend, &launch, &ticket);
}

static inline void kernel_run_release(kernel_run *run) {
  if (run->kernel != NULL && run->host->table->release != NULL) {
    run->host->table->release((tm_device *)(void *)run->host->backend, run->kernel);
  }
  if (run->workspace != NULL) kernel_host_free(run->host, run->workspace, run->workspace_bytes);
}

#endif
