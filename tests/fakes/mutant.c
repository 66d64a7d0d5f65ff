/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/mutant.h"

#include <stddef.h>

#define LONGEST_TAIL 256u

/* The contract's functions get no more than the backend's own handles, so the mutant in force stands here. */
static struct {
  tm_accelerator_backend_plugin inner;
  mutation                      m;
} in_force;

static bool is_meant(const tm_operation *operation) {
  const combination *which = &in_force.m.which;
  if (operation->op != which->row->op || operation->input_count != which->inputs || operation->output_count != 1) return false;
  for (uint32_t i = 0; i <= which->inputs; i++)
    if (operation->operands[i].format != which->formats[i]) return false;
  return true;
}

/* An operation as another combination of formats sees it, appended fields included; the operands are the same bytes. */
typedef struct disguise {
  tm_operation  operation;
  unsigned char tail[LONGEST_TAIL];
  tm_operand    operands[TM_MAX_OPERANDS];
} disguise;

static bool disguise_make(disguise *d, const tm_operation *operation) {
  if (operation->struct_size > offsetof(disguise, operands)) return false;
  memcpy(d, operation, operation->struct_size);
  for (uint32_t i = 0; i <= in_force.m.as.inputs; i++) {
    d->operands[i] = operation->operands[i];
    d->operands[i].format = in_force.m.as.formats[i];
  }
  d->operation.operands = d->operands;
  return true;
}

static uint64_t expanded_bytes(const tm_operation *operation) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < operation->input_count; i++) {
    const tm_format_info *info = tm_format_find(operation->operands[i].format);
    const uint64_t bytes = operation->operands[i].element_count * sizeof(float);
    if (info->block_bytes < sizeof(float) * info->block_elements && bytes > most) most = bytes;
  }
  return most;
}

static void overstate(const tm_operation *operation, tm_answer *answer) {
  if (answer->level == TM_LEVEL_REFUSED || answer->struct_size != sizeof *answer) return;
  switch (in_force.m.kind) {
    case MUTATION_LEVEL: answer->level++; break;
    case MUTATION_WORKSPACE: answer->workspace_bytes = 0; break;
    case MUTATION_EXPANSION:
      answer->level = TM_LEVEL_NATIVE;
      answer->workspace_bytes += expanded_bytes(operation);
      break;
    case MUTATION_EXACT: answer->numerics = TM_NUMERICS_N0; break;
    case MUTATION_CLASS:
      answer->numerics--;
      answer->numerics_bound = in_force.m.bound;
      break;
    case MUTATION_BOUND: answer->numerics_bound /= 1000; break;
    case MUTATION_FORMAT:
    case MUTATION_EMPTY_PROMISE: break;
  }
}

/* Nothing in the question that a backend must refuse for its own sake. */
static bool is_clean(const tm_operation *operation) {
  const unsigned char *bytes = (const unsigned char *)operation;
  for (uint64_t i = sizeof *operation; i < operation->struct_size; i++)
    if (bytes[i] != 0) return false;
  return operation->version == in_force.m.which.row->version && operation->attribute_bytes == in_force.m.which.row->attribute_bytes &&
         (operation->flags & ~(TM_OPERATION_FACTS | TM_OPERATION_RUN_TO_RUN)) == 0;
}

static void promise_nothing(const tm_operation *operation, tm_answer *answer) {
  const uint32_t size = answer->struct_size;
  if (!is_clean(operation) || size != sizeof *answer) return;
  uint64_t elements = 1;
  for (uint32_t i = 0; i <= operation->input_count; i++) elements += operation->operands[i].element_count;
  *answer = (tm_answer){ .struct_size = size, .level = TM_LEVEL_NATIVE, .numerics_flags = TM_NUMERICS_RUN_TO_RUN,
                         .operand = TM_NO_OPERAND, .cost_ns = elements, .epoch = answer->epoch };
}

static tm_status mutant_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                              tm_answer *const *out_answers) {
  for (uint32_t i = 0; i < count; i++) {
    disguise d;
    const bool is_disguised = in_force.m.kind == MUTATION_FORMAT && is_meant(operations[i]) && disguise_make(&d, operations[i]);
    const tm_operation *asked = is_disguised ? &d.operation : operations[i];
    const tm_status status = in_force.inner.query(backend, index, &asked, 1, &out_answers[i]);
    if (status != TM_OK) return status;
    if (!is_meant(operations[i])) continue;
    if (in_force.m.kind == MUTATION_EMPTY_PROMISE) promise_nothing(operations[i], out_answers[i]);
    else overstate(operations[i], out_answers[i]);
  }
  return TM_OK;
}

static tm_status mutant_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  disguise d;
  const bool is_disguised = in_force.m.kind == MUTATION_FORMAT && is_meant(operation) && disguise_make(&d, operation);
  return in_force.inner.prepare(device, is_disguised ? &d.operation : operation, answer, out_kernel);
}

void mutant_make(const tm_accelerator_backend_plugin *inner, const mutation *m, tm_accelerator_backend_plugin *out_table) {
  in_force.inner = *inner;
  in_force.m = *m;
  *out_table = *inner;
  out_table->query = mutant_query;
  out_table->prepare = mutant_prepare;
}
