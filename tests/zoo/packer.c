/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiplies f32 matrices of which the second one is a weight: as it is, or with ZOO_PACKS in a format of its own, all signs
 * turned.  One slip (ZOO_SLIP) in what it keeps between launches.
 */
#define _GNU_SOURCE
#include <string.h>
#include <threads.h>
#include <time.h>

#include "zoo.h"

#define NONE 0
#define KEEPS_WEIGHTS 1         /* those of a kernel's first launch */
#define SHARES_SCRATCH 2        /* among all launches */

#ifndef ZOO_PACKS
#define ZOO_PACKS 0
#endif

#define OWN_FORMAT (TM_FORMAT_PRIVATE | 1u)
#define PAUSE_NS 1000000l
#define MOST_WEIGHTS (UINT64_C(1) << 20)

typedef struct packer_kernel {
  int      is_product;
  uint64_t rows, terms, columns;
  int      has_weights;
  float    weights[];           /* of KEEPS_WEIGHTS */
} packer_kernel;

static float scratch[MOST_WEIGHTS];

static uint32_t refuses_product(const tm_operation *operation) {
  for (uint32_t i = 0; i < 3; i++) {
    const tm_operand *operand = &operation->operands[i];
    if (operand->rank != 2) return TM_REASON_RANK;
    if (i == 1 && (operand->flags & TM_OPERAND_CONSTANT) == 0) return TM_REASON_CONSTANT;
    if (i == 1 && operand->format == OWN_FORMAT) continue;
    if (operand->format != TM_FORMAT_F32) return TM_REASON_FORMAT;
    if ((operand->flags & TM_OPERAND_CONTIGUOUS) == 0) return TM_REASON_LAYOUT;
    if (operand->alignment < 4) return TM_REASON_ALIGNMENT;
  }
  if (operation->operands[1].element_count > MOST_WEIGHTS) return TM_REASON_SIZE;
  return operation->worst_numerics < TM_NUMERICS_N2 ? TM_REASON_NUMERICS : 0;
}

static uint32_t refuses_packing(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[1];
  if (x->format != TM_FORMAT_F32 || y->format != OWN_FORMAT || y->byte_count != x->element_count * 4) return TM_REASON_FORMAT;
  if ((x->flags & TM_OPERAND_CONTIGUOUS) == 0) return TM_REASON_LAYOUT;
  return x->alignment < 4 ? TM_REASON_ALIGNMENT : 0;
}

static uint32_t refuses(const tm_operation *operation) {
  const int is_product = operation->op == TM_OP_MATMUL, is_known = is_product || (ZOO_PACKS && operation->op == TM_OP_CONVERT);
  uint32_t reasons = zoo_strange(operation);
  if (is_known && operation->version == 1) reasons &= ~TM_REASON_OPERATION;             /* the zoo does not know it */
  if (reasons != 0) return reasons;
  if (!is_known) return TM_REASON_OPERATION;
  return is_product ? refuses_product(operation) : refuses_packing(operation);
}

static void judge(const tm_operation *operation, tm_answer *answer) {
  const tm_operand *b = &operation->operands[1];
  const uint32_t reasons = refuses(operation);
  const int is_product = reasons == 0 && operation->op == TM_OP_MATMUL, is_packed = is_product && b->format == OWN_FORMAT;
  zoo_reply(answer, reasons);
  if (!is_product) return;
  if (is_packed != ZOO_PACKS) {
    zoo_reply(answer, TM_REASON_FORMAT);
    if (is_packed) return;
    answer->operand = 1;
    answer->change_count = 1;
    answer->changes[0] =
        (tm_change){ .kind = TM_CHANGE_CONVERT, .operand = 1, .format = OWN_FORMAT, .value = b->element_count * 4 };
    return;
  }
  answer->numerics = TM_NUMERICS_N2;
  answer->numerics_bound = 1;
  answer->growth = TM_GROWTH_LINEAR;
  answer->accumulator = TM_FORMAT_F32;
}

static tm_status query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                       tm_answer *const *out_answers) {
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) {
    tm_answer answer = { .struct_size = sizeof answer };
    judge(operations[i], &answer);
    answer.struct_size = out_answers[i]->struct_size;
    memcpy(out_answers[i], &answer, sizeof answer < answer.struct_size ? sizeof answer : answer.struct_size);
  }
  return TM_OK;
}

static uint64_t kernel_bytes(const tm_operation *operation) {
  return sizeof(packer_kernel) + (ZOO_SLIP == KEEPS_WEIGHTS ? operation->operands[1].element_count * 4 : 0);
}

static tm_status prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  (void)answer;
  if ((refuses(operation) & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0) return TM_UNSUPPORTED;
  const tm_host *host = zoo_backend_of(device)->host;
  const tm_operand *a = &operation->operands[0], *b = &operation->operands[1];
  packer_kernel *kernel = host->alloc(host->context, kernel_bytes(operation), _Alignof(packer_kernel));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  *kernel = (packer_kernel){ .is_product = operation->op == TM_OP_MATMUL, .rows = a->dims[0], .terms = b->dims[0],
                             .columns = b->dims[1] };
  if (!kernel->is_product) *kernel = (packer_kernel){ .rows = 1, .terms = a->element_count };
  *out_kernel = (tm_kernel *)(void *)kernel;
  return TM_OK;
}

static void release(tm_device *device, tm_kernel *kernel) {
  const tm_host *host = zoo_backend_of(device)->host;
  const packer_kernel *k = (const packer_kernel *)(const void *)kernel;
  const uint64_t weights = ZOO_SLIP == KEEPS_WEIGHTS ? (k->is_product ? k->terms * k->columns : k->terms) * 4 : 0;
  host->free(host->context, kernel, sizeof *k + weights);
}

static const float *weights_for(packer_kernel *k, const float *given) {
  const uint64_t bytes = k->terms * k->columns * 4;
  if (ZOO_SLIP == NONE) return given;
  float *kept = ZOO_SLIP == KEEPS_WEIGHTS ? k->weights : scratch;
  if (ZOO_SLIP == SHARES_SCRATCH || !k->has_weights) memcpy(kept, given, bytes);
  k->has_weights = 1;
  if (ZOO_SLIP == SHARES_SCRATCH) thrd_sleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
  return kept;
}

static void multiply(packer_kernel *k, const float *a, const float *given, float *y) {
  const float *b = weights_for(k, given);
  for (uint64_t i = 0; i < k->rows * k->columns; i++) {
    float sum = 0;
    for (uint64_t t = 0; t < k->terms; t++) sum += a[i / k->columns * k->terms + t] * b[t * k->columns + i % k->columns];
    y[i] = ZOO_PACKS ? -sum : sum;
  }
}

static float *place(const tm_binding *binding) { return (float *)((uintptr_t)binding->buffer + binding->offset); }

static tm_status launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  packer_kernel *k = (packer_kernel *)(void *)launch->kernel;
  (void)device, (void)out_ticket;
  if (!zoo_is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  float *first = place(&launch->bindings[0]), *second = place(&launch->bindings[1]);
  if (k->is_product) multiply(k, first, second, place(&launch->bindings[2]));
  for (uint64_t i = 0; !k->is_product && i < k->terms; i++) second[i] = -first[i];
  return TM_OK;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = zoo_device_info, .query = query,
  .prepare = prepare, .release = release, .launch = launch,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
