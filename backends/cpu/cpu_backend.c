/* SPDX-License-Identifier: Apache-2.0 */
/* The contract's functions for the host's own cores: one synchronous device that works in the host's memory. */
#include <string.h>

#include "cpu_features.h"
#include "cpu_kernel.h"
#include "cpu_query.h"

#define EPOCH 1u
#define COST_MODEL_ID 2u
#define QUEUES 64u              /* a launch keeps no state, so any number of threads may launch at once */

struct tm_backend {
  const tm_host *host;
  cpu_offer      offer;
};

struct tm_kernel {
  const cpu_row *row;
  tm_operation   operation;
  uint64_t       bytes;         /* of this allocation: the kernel, its attributes, its operands */
  uint32_t       operand_count;
  uint32_t       has_workspace;
};

static const tm_option isa_option = {
  .struct_size = sizeof isa_option,
  .type = TM_OPTION_TEXT,
  .name = TM_STRING("isa"),
  .default_value = TM_STRING("auto"),
  .help = TM_STRING("Instruction sets of the kernels: auto, avx512 (AVX-512 F, BW, DQ and VL beside AVX2), avx2 (AVX2 with FMA and F16C) or none."),
};
static const tm_option *const options[] = { &isa_option };

static const tm_memory_space host_memory = {
  .struct_size = sizeof host_memory,
  .flags = TM_MEMORY_HOST_POINTER | TM_MEMORY_IMPORT | TM_MEMORY_IMPORT_READ_ONLY,
  .identity = TM_HOST_MEMORY,
  .name = TM_STRING("host memory"),
  .alignment = 1,
  .offset_granule = 1,
  .store_granule = 1,
};
static const tm_memory_space *const memories[] = { &host_memory };

static int string_is(tm_string string, const char *text) {
  return string.length == strlen(text) && memcmp(string.data, text, string.length) == 0;
}

static tm_status fail(const tm_host *host, tm_status status, const char *text) {
  return host->fail(host->context, status, 0, (tm_string){ text, strlen(text) });
}

/* The option decides which of the machine's abilities are used, so that every variant can be tested on one machine. */
static tm_status choose_isa(const tm_host *host, uint32_t *out_isa) {
  const uint32_t machine = cpu_features_detect();
  tm_string value = isa_option.default_value;
  if (host->config_get(host->context, isa_option.name, &value) != TM_OK) value = isa_option.default_value;
  if (string_is(value, "auto")) {
    *out_isa = machine;
  } else if (string_is(value, "none")) {
    *out_isa = 0;
  } else if (string_is(value, "avx512") && (machine & CPU_ISA_AVX512) == 0) {
    return fail(host, TM_ERROR_NO_DEVICE, "option isa: this processor has no AVX-512 F, BW, DQ and VL");
  } else if (string_is(value, "avx512")) {
    *out_isa = CPU_ISA_AVX2 | CPU_ISA_AVX512;
  } else if (!string_is(value, "avx2")) {
    return fail(host, TM_ERROR_ARGUMENT, "option isa: expected auto, avx512, avx2 or none");
  } else if ((machine & CPU_ISA_AVX2) == 0) {
    return fail(host, TM_ERROR_NO_DEVICE, "option isa: this processor has no AVX2 with FMA and F16C");
  } else {
    *out_isa = CPU_ISA_AVX2;
  }
  return TM_OK;
}

static tm_status backend_init(const tm_host *host, tm_backend **out_backend) {
  uint32_t isa = 0;
  const tm_status status = choose_isa(host, &isa);
  if (status != TM_OK) return status;
  tm_backend *backend = host->alloc(host->context, sizeof *backend, _Alignof(tm_backend));
  if (backend == NULL) return fail(host, TM_ERROR_NO_MEMORY, "no memory for the backend's state");
  *backend = (tm_backend){ .host = host, .offer = { .isa = isa, .lanes = host->lane_count, .epoch = EPOCH } };
  *out_backend = backend;
  return TM_OK;
}

static void backend_shutdown(tm_backend *backend) {
  if (backend == NULL) return;
  const tm_host *host = backend->host;
  host->free(host->context, backend, sizeof *backend);
}

static tm_status backend_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  (void)backend;
  if (index != 0) return TM_END;
  const tm_device_info info = {
    .struct_size = out_info->struct_size,
    .flags = TM_DEVICE_SYNCHRONOUS,
    .resource = TM_HOST_CORES,
    .name = TM_STRING("host cores"),
    .driver_version = TM_STRING(TM_PLUGIN_BUILD_ID),
    .epoch = EPOCH,
    .cost_model_id = COST_MODEL_ID,
    .queue_count = QUEUES,
    .memory_count = 1,
    .memories = memories,
  };
  memcpy(out_info, &info, sizeof info < info.struct_size ? sizeof info : info.struct_size);
  return TM_OK;
}

static tm_status backend_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations,
                               uint32_t count, tm_answer *const *out_answers) {
  if (index != 0) return fail(backend->host, TM_ERROR_ARGUMENT, "there is one device only");
  for (uint32_t i = 0; i < count; ++i) cpu_query_answer(&backend->offer, operations[i], out_answers[i]);
  return TM_OK;
}

/* Attributes first: they hold nothing that needs more than the alignment of a pointer or a double. */
static uint64_t attributes_offset(void) { return (sizeof(tm_kernel) + 7u) / 8u * 8u; }
static uint64_t operands_offset(const cpu_row *row) { return attributes_offset() + (row->attribute_bytes + 7u) / 8u * 8u; }

/* A kernel owns copies of all it needs: the caller's structs are valid during prepare only. */
static tm_kernel *kernel_create(const tm_host *host, const cpu_row *row, const tm_operation *operation) {
  const uint32_t count = operation->input_count + operation->output_count;
  const uint64_t bytes = operands_offset(row) + count * sizeof(tm_operand);
  tm_kernel *kernel = host->alloc(host->context, bytes, 16);
  if (kernel == NULL) return NULL;
  memset(kernel, 0, bytes);
  char *attributes = (char *)kernel + attributes_offset();
  tm_operand *operands = (tm_operand *)(void *)((char *)kernel + operands_offset(row));
  if (row->attribute_bytes > 0) memcpy(attributes, operation->attributes, row->attribute_bytes);
  memcpy(operands, operation->operands, count * sizeof *operands);
  kernel->row = row;
  kernel->bytes = bytes;
  kernel->operation = *operation;
  kernel->operation.struct_size = sizeof kernel->operation;
  kernel->operation.operands = operands;
  kernel->operation.attributes = attributes;
  kernel->operation.attribute_bytes = row->attribute_bytes;
  kernel->operand_count = count;
  return kernel;
}

static tm_status refuse_prepare(const tm_backend *backend, const tm_operation *operation) {
  tm_answer refusal = { .struct_size = sizeof refusal };
  cpu_query_answer(&backend->offer, operation, &refusal);
  return fail(backend->host, kernel_refusal_status(&refusal), "prepare of an operation that query refuses");
}

/* The device handle is the backend's: there is one device, and opening it takes nothing. */
static tm_status backend_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer,
                                 tm_kernel **out_kernel) {
  tm_backend *backend = (tm_backend *)(void *)device;
  if (answer != NULL && TM_HAS_MEMBER(answer, tm_answer, epoch) && answer->epoch != EPOCH) return TM_STALE;
  const cpu_row *row = cpu_row_find(&backend->offer, operation);
  if (row == NULL) return refuse_prepare(backend, operation);
  tm_kernel *kernel = kernel_create(backend->host, row, operation);
  if (kernel == NULL) return fail(backend->host, TM_ERROR_NO_MEMORY, "no memory for a prepared kernel");
  kernel->has_workspace = cpu_workspace_bytes(&backend->offer, row, operation) != 0;
  *out_kernel = kernel;
  return TM_OK;
}

static void backend_release(tm_device *device, tm_kernel *kernel) {
  if (kernel == NULL) return;
  const tm_host *host = ((tm_backend *)(void *)device)->host;
  host->free(host->context, kernel, kernel->bytes);
}

/* A buffer of this memory is its address; the sum is made of integers because an empty operand may have none. */
static void *binding_address(const tm_binding *binding) {
  return (void *)((uintptr_t)binding->buffer + (uintptr_t)binding->offset);
}

/* plugin.h aligns a workspace like a buffer.  The declared size has room to align it again, so that a host that takes its
   workspaces out of a larger block loses nothing but those bytes. */
static void *align_workspace(void *address) {
  return (void *)(((uintptr_t)address + CPU_WORKSPACE_ALIGNMENT - 1) & ~(uintptr_t)(CPU_WORKSPACE_ALIGNMENT - 1));
}

static tm_status backend_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_host *host = ((tm_backend *)(void *)device)->host;
  (void)out_ticket;
  if (launch->struct_size < sizeof *launch) return fail(host, TM_ERROR_ARGUMENT, "launch: struct_size is too small");
  if (!kernel_rest_is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  if (launch->queue >= QUEUES) return fail(host, TM_ERROR_ARGUMENT, "launch: no such queue");
  const tm_kernel *kernel = launch->kernel;
  const uint32_t count = kernel->operand_count;
  if (launch->binding_count != count + kernel->has_workspace) {
    return fail(host, TM_ERROR_ARGUMENT, "launch: one binding an operand, and the workspace if one was declared");
  }
  void *pointers[TM_MAX_OPERANDS];
  for (uint32_t i = 0; i < count; ++i) pointers[i] = binding_address(&launch->bindings[i]);
  cpu_call call = { .operation = &kernel->operation, .host = host, .pointers = pointers };
  if (kernel->has_workspace) call.workspace = align_workspace(binding_address(&launch->bindings[count]));
  kernel->row->run(&call);
  return TM_OK;
}

static const tm_accelerator_backend_plugin backend_table = {
  .struct_size = sizeof backend_table,
  .option_count = sizeof options / sizeof options[0],
  .options = options,
  .init = backend_init,
  .shutdown = backend_shutdown,
  .device_info = backend_device_info,
  .query = backend_query,
  .prepare = backend_prepare,
  .release = backend_release,
  .launch = backend_launch,
};

TM_DEFINE_PLUGIN("cpu", TM_PLUGIN_BUILD_ID, "Tensormorph", backend_table)
