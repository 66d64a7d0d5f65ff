/* SPDX-License-Identifier: Apache-2.0 */
#define TM_PLUGIN_ENTRY tm_reference_plugin_query
#define TM_PLUGIN_BUILD_ID "1"
#include "plugin/reference.h"

#include <string.h>

#include "base/checked.h"
#include "ops/op_table.h"
#include "tensor/format.h"

#define QUEUES 64u              /* it keeps no state between launches, so any number of threads may launch */
#define LAUNCH_NS 300u

struct tm_backend {
  const tm_host *host;
};

struct tm_kernel {
  tm_operation     operation;
  const tm_op_row *row;
  uint64_t         unit_count;
  uint64_t         grain;
  uint64_t         attributes[8];
  tm_operand       operands[TM_MAX_OPERANDS];
};

/* Picoseconds that an operation takes per FLOP and per byte. */
typedef struct class_cost {
  uint64_t flop_ps;
  uint64_t byte_ps;
} class_cost;

/* As measured in the middle of the class's operations and of sizes from 16 kB to 16 MB; corrected by what is measured later.  A
   rate far off would be taken for what the class is like, and with a few of them for what the device is like. */
static const class_cost costs[TM_CLASS_COUNT] = {
  [TM_CLASS_MOVE] = { 0, 130 },           [TM_CLASS_CAST] = { 2000, 500 },   [TM_CLASS_ELEMENTWISE] = { 3000, 500 },
  [TM_CLASS_TRANSCENDENTAL] = { 1500, 500 }, [TM_CLASS_REDUCE] = { 1800, 100 }, [TM_CLASS_SCAN] = { 1000, 500 },
  [TM_CLASS_MATMUL] = { 300, 50 },        [TM_CLASS_NORMALIZE] = { 550, 50 },
  [TM_CLASS_ATTENTION] = { 1000, 500 },
};
static const class_cost whole_runs = { 0, 25 };         /* of a move that finds many bytes side by side */

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

static tm_status reference_init(const tm_host *host, tm_backend **out_backend) {
  tm_backend *backend = host->alloc(host->context, sizeof *backend, _Alignof(tm_backend));
  if (backend == NULL) return TM_ERROR_NO_MEMORY;
  backend->host = host;
  *out_backend = backend;
  return TM_OK;
}

static void reference_shutdown(tm_backend *backend) {
  if (backend != NULL) backend->host->free(backend->host->context, backend, sizeof *backend);
}

static tm_status reference_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  (void)backend;
  if (index != 0) return TM_END;
  const tm_device_info info = {
    .struct_size = out_info->struct_size,
    .flags = TM_DEVICE_SYNCHRONOUS,
    .resource = TM_HOST_CORES,
    .name = TM_STRING("scalar reference"),
    .epoch = 1,
    .cost_model_id = 2,
    .queue_count = QUEUES,
    .memory_count = 1,
    .memories = memories,
  };
  memcpy(out_info, &info, tm_min_u64(sizeof info, info.struct_size));
  return TM_OK;
}

static class_cost cost_of(const tm_op_row *row, const tm_operation *operation) {
  const bool moves_runs = row->op == TM_OP_COPY || row->op == TM_OP_GATHER || row->op == TM_OP_UPDATE;
  return moves_runs && (operation->flags & TM_OPERATION_ALL_CONTIGUOUS) != 0 ? whole_runs : costs[row->op_class];
}

static uint64_t estimate_ns(const tm_op_row *row, const tm_operation *operation, uint32_t lanes, uint64_t *out_bytes) {
  tm_work work;
  row->work(operation, &work);
  const class_cost cost = cost_of(row, operation);
  *out_bytes = work.read_bytes + work.written_bytes;
  const uint64_t compute = tm_saturating_mul(work.flops, cost.flop_ps) / 1000;
  const uint64_t move = tm_saturating_mul(*out_bytes, cost.byte_ps) / 1000;
  return LAUNCH_NS + (compute / 2 + move / 2) / lanes * 2;
}

uint64_t tm_reference_price_ns(const tm_operation *operation) {
  uint64_t bytes;
  return estimate_ns(tm_op_find(operation->op), operation, 1, &bytes);
}

/* A longer struct than ours comes from a later host; what it appended may only be ignored if it is zero. */
static bool has_unknown_tail(const void *data, uint64_t known, uint64_t given) {
  const unsigned char *bytes = data;
  for (uint64_t i = known; i < given; i++)
    if (bytes[i] != 0) return true;
  return given < known;
}

/* Bytes or demands that it does not know. */
static bool is_from_later(const tm_operation *operation) {
  return (operation->flags & ~(TM_OPERATION_FACTS | TM_OPERATION_RUN_TO_RUN)) != 0 ||
         has_unknown_tail(operation, sizeof *operation, operation->struct_size);
}

static bool knows_formats(const tm_operation *operation) {
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++)
    if (tm_format_find(operation->operands[i].format) == NULL) return false;
  return true;
}

static void refuse(tm_answer *out_answer, uint32_t reason, const char *text) {
  out_answer->reasons = reason;
  out_answer->text = (tm_string){ text, strlen(text) };
}

static void answer_one(const tm_backend *backend, const tm_operation *operation, tm_answer *out_answer) {
  out_answer->epoch = 1;
  out_answer->operand = TM_NO_OPERAND;
  const tm_op_row *row = tm_op_find(operation->op);
  if (row == NULL || row->version != operation->version || row->reference == NULL) {
    refuse(out_answer, TM_REASON_OPERATION, "only a backend with a kernel for it can do this");
    return;
  }
  if (is_from_later(operation)) {
    refuse(out_answer, TM_REASON_DEMAND, "a demand that it does not know");
    return;
  }
  if (operation->attribute_bytes != row->attribute_bytes) {
    refuse(out_answer, TM_REASON_ATTRIBUTE, "attributes of another size than it knows");
    return;
  }
  if (!knows_formats(operation)) {
    refuse(out_answer, TM_REASON_FORMAT, "a format that it does not know");
    return;
  }
  out_answer->level = TM_LEVEL_NATIVE;
  out_answer->numerics = TM_NUMERICS_N0;
  out_answer->numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE;
  out_answer->alias_mask = row->may_alias;
  out_answer->launch_ns = LAUNCH_NS;
  out_answer->cost_ns = estimate_ns(row, operation, backend->host->lane_count, &out_answer->moved_bytes);
  out_answer->spread_ns = out_answer->cost_ns / 2;
}

static tm_status reference_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                                 tm_answer *const *out_answers) {
  (void)index;
  for (uint32_t i = 0; i < count; i++) {
    tm_answer answer = { .struct_size = out_answers[i]->struct_size };
    answer_one(backend, operations[i], &answer);
    memcpy(out_answers[i], &answer, tm_min_u64(sizeof answer, answer.struct_size));
  }
  return TM_OK;
}

/* A part should take long enough (some 20 us) that handing it out costs nothing. */
static uint64_t choose_grain(const tm_op_row *row, const tm_operation *operation, uint64_t unit_count) {
  uint64_t bytes;
  const uint64_t ns = estimate_ns(row, operation, 1, &bytes);
  const uint64_t parts = tm_max_u64(1, ns / 20000);
  return tm_max_u64(1, unit_count / parts);
}

static tm_status reference_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer,
                                   tm_kernel **out_kernel) {
  (void)answer;
  const tm_host *host = ((const tm_backend *)(const void *)device)->host;
  const tm_op_row *row = tm_op_find(operation->op);
  const uint32_t count = operation->input_count + operation->output_count;
  if (is_from_later(operation) || (row != NULL && operation->attribute_bytes > row->attribute_bytes)) return TM_UNSUPPORTED;
  if (row == NULL || count > TM_MAX_OPERANDS || operation->attribute_bytes > sizeof(uint64_t[8])) return TM_ERROR_ARGUMENT;
  tm_kernel *kernel = host->alloc(host->context, sizeof *kernel, _Alignof(tm_kernel));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  memset(kernel, 0, sizeof *kernel);
  memcpy(kernel->operands, operation->operands, count * sizeof(tm_operand));
  if (operation->attribute_bytes != 0) memcpy(kernel->attributes, operation->attributes, operation->attribute_bytes);
  kernel->operation = *operation;
  kernel->operation.operands = kernel->operands;
  kernel->operation.attributes = operation->attribute_bytes != 0 ? kernel->attributes : NULL;
  kernel->row = row;
  kernel->unit_count = row->units(&kernel->operation);
  kernel->grain = choose_grain(row, &kernel->operation, kernel->unit_count);
  *out_kernel = kernel;
  return TM_OK;
}

static void reference_release(tm_device *device, tm_kernel *kernel) {
  const tm_host *host = ((const tm_backend *)(const void *)device)->host;
  if (kernel != NULL) host->free(host->context, kernel, sizeof *kernel);
}

typedef struct reference_run {
  const tm_kernel *kernel;
  void            *pointers[TM_MAX_OPERANDS];
} reference_run;

static void run_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const reference_run *run = argument;
  (void)lane;
  run->kernel->row->reference(&run->kernel->operation, run->pointers, begin, end);
}

static tm_status reference_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  (void)out_ticket;
  const tm_host *host = ((const tm_backend *)(const void *)device)->host;
  if (has_unknown_tail(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  reference_run run = { .kernel = launch->kernel };
  const tm_operation *operation = &launch->kernel->operation;
  if (launch->binding_count != operation->input_count + operation->output_count) return TM_ERROR_ARGUMENT;
  for (uint32_t i = 0; i < launch->binding_count; i++)
    run.pointers[i] = (void *)((uintptr_t)launch->bindings[i].buffer + launch->bindings[i].offset);
  host->parallel_for(host->context, launch->kernel->unit_count, launch->kernel->grain, run_range, &run);
  return TM_OK;
}

static const tm_accelerator_backend_plugin reference_table = {
  .struct_size = sizeof reference_table,
  .init = reference_init,
  .shutdown = reference_shutdown,
  .device_info = reference_device_info,
  .query = reference_query,
  .prepare = reference_prepare,
  .release = reference_release,
  .launch = reference_launch,
};

TM_DEFINE_PLUGIN(TM_REFERENCE_NAME, "1", "Tensormorph", reference_table)
