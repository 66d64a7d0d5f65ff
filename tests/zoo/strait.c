/* SPDX-License-Identifier: Apache-2.0 */
/* Adds f32 tensors of any layout, and multiplies two matrices if the second one is a weight: right but for one flaw
   (ZOO_FLAW), which only some sizes, ranks or layouts show. */
#include <string.h>

#include "zoo.h"

#define FLAW_NONE 0
#define FLAW_BEHIND_64K 1       /* all elements behind the first 65536 */
#define FLAW_RANKS 2            /* all elements where there are three axes or more */
#define FLAW_BROADCAST 3        /* likewise, if one is broadcast */
#define FLAW_TAIL 4             /* the last of 32 n + 17 elements */
#define FLAW_NO_TAIL 5          /* the last of 256 n elements */
#define FLAW_PRODUCT 6          /* every product */

typedef struct strait_kernel {
  uint32_t   op;
  tm_operand operands[3];
} strait_kernel;

static uint32_t refuses_product(const tm_operation *operation) {
  uint32_t reasons = 0;
  for (uint32_t i = 0; i < 3; i++) {
    if (operation->operands[i].rank != 2) reasons |= TM_REASON_RANK;
    if ((operation->operands[i].flags & TM_OPERAND_CONTIGUOUS) == 0) reasons |= TM_REASON_LAYOUT;
  }
  return (operation->operands[1].flags & TM_OPERAND_CONSTANT) != 0 ? reasons : reasons | TM_REASON_CONSTANT;
}

static uint32_t refuses(const tm_operation *operation) {
  const int is_product = operation->op == TM_OP_MATMUL;
  uint32_t reasons = zoo_strange(operation);
  if (is_product && operation->version == 1) reasons &= ~TM_REASON_OPERATION;           /* the zoo does not know it */
  if (reasons != 0) return reasons;
  if (operation->op != TM_OP_ADD && !is_product) return TM_REASON_OPERATION;
  for (uint32_t i = 0; i < 3; i++) {
    if (operation->operands[i].format != TM_FORMAT_F32) return TM_REASON_FORMAT;
    if (operation->operands[i].alignment < 4) return TM_REASON_ALIGNMENT;
  }
  return is_product ? refuses_product(operation) : 0;
}

static tm_status query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                       tm_answer *const *out_answers) {
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t reasons = refuses(operations[i]);
    tm_answer answer = { .struct_size = sizeof answer };
    zoo_reply(&answer, reasons);
    answer.struct_size = out_answers[i]->struct_size;
    if (reasons == 0 && operations[i]->op == TM_OP_MATMUL) {
      answer.numerics = TM_NUMERICS_N2;
      answer.numerics_bound = 1;
      answer.growth = TM_GROWTH_LINEAR;
      answer.accumulator = TM_FORMAT_F32;
      if (operations[i]->worst_numerics < TM_NUMERICS_N2) zoo_reply(&answer, TM_REASON_NUMERICS);
    }
    memcpy(out_answers[i], &answer, sizeof answer < answer.struct_size ? sizeof answer : answer.struct_size);
  }
  return TM_OK;
}

static tm_status prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  (void)answer;
  if ((refuses(operation) & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0) return TM_UNSUPPORTED;
  const tm_host *host = zoo_backend_of(device)->host;
  strait_kernel *kernel = host->alloc(host->context, sizeof *kernel, _Alignof(strait_kernel));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  kernel->op = operation->op;
  memcpy(kernel->operands, operation->operands, sizeof kernel->operands);
  *out_kernel = (tm_kernel *)(void *)kernel;
  return TM_OK;
}

static void release(tm_device *device, tm_kernel *kernel) {
  const tm_host *host = zoo_backend_of(device)->host;
  if (kernel != NULL) host->free(host->context, kernel, sizeof(strait_kernel));
}

/* Of element i, row-major. */
static float *element(const tm_operand *operand, char *first, uint64_t i) {
  for (uint32_t axis = operand->rank; axis-- > 0; i /= operand->dims[axis])
    first += (int64_t)(i % operand->dims[axis]) * operand->strides_bytes[axis];
  return (float *)(void *)first;
}

static int is_broadcast(const tm_operand *operand) {
  for (uint32_t axis = 0; axis < operand->rank; axis++)
    if (operand->strides_bytes[axis] == 0) return 1;
  return 0;
}

static int is_flawed(const strait_kernel *k, uint64_t i) {
  const tm_operand *y = &k->operands[2];
  const uint64_t count = y->element_count;
  switch (ZOO_FLAW) {
    case FLAW_BEHIND_64K: return i >= 65536;
    case FLAW_RANKS: return y->rank >= 3;
    case FLAW_BROADCAST: return y->rank >= 3 && (is_broadcast(&k->operands[0]) || is_broadcast(&k->operands[1]));
    case FLAW_TAIL: return count % 32 == 17 && i + 1 == count;
    case FLAW_NO_TAIL: return count % 256 == 0 && i + 1 == count;
    default: return 0;
  }
}

static void add(const strait_kernel *k, char *a, char *b, char *y) {
  for (uint64_t i = 0; i < k->operands[2].element_count; i++) {
    const float sum = *element(&k->operands[0], a, i) + *element(&k->operands[1], b, i);
    *element(&k->operands[2], y, i) = is_flawed(k, i) ? sum + 1 : sum;
  }
}

static void multiply(const strait_kernel *k, const float *a, const float *b, float *y) {
  const uint64_t terms = k->operands[1].dims[0], columns = k->operands[1].dims[1];
  for (uint64_t i = 0; i < k->operands[2].element_count; i++) {
    float sum = 0;
    for (uint64_t t = 0; t < terms; t++) sum += a[i / columns * terms + t] * b[t * columns + i % columns];
    y[i] = ZOO_FLAW == FLAW_PRODUCT ? 2 * sum : sum;
  }
}

static tm_status launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const strait_kernel *k = (const strait_kernel *)(const void *)launch->kernel;
  char *first[3];
  (void)device, (void)out_ticket;
  if (!zoo_is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  for (uint32_t i = 0; i < 3; i++) first[i] = (char *)(uintptr_t)launch->bindings[i].buffer + launch->bindings[i].offset;
  if (k->op == TM_OP_ADD) add(k, first[0], first[1], first[2]);
  else multiply(k, (float *)(void *)first[0], (float *)(void *)first[1], (float *)(void *)first[2]);
  return TM_OK;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = zoo_device_info, .query = query,
  .prepare = prepare, .release = release, .launch = launch,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
