/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_query.h"

#define LAUNCH_NS 25000u                /* encoding, submitting and hearing of the end */
#define SETUP_NS 3000000u               /* one shader compiled */
#define MOST_ELEMENTS (UINT64_C(1) << 31)

/* ---- sizes ---- */

uint64_t webgpu_binding_bytes(const webgpu_limits *limits, const tm_operand *operand) {
  if (operand->byte_count == 0) return 4;
  if (operand->byte_count > limits->binding_bytes) return operand->byte_count;
  const uint64_t above = operand->byte_count - kernel_bytes_below(operand);
  return (webgpu_first_byte(limits, operand) + above + 3) / 4 * 4;
}

uint64_t webgpu_workspace_bytes(const webgpu_offer *offer, const webgpu_row *row, const tm_operation *operation) {
  const uint64_t bytes = row->workspace_bytes != NULL ? row->workspace_bytes(offer->limits, operation) : 0;
  return (bytes + 3) / 4 * 4;
}

/* ---- what depends on the adapter ---- */

static int has_room_for_bindings(const webgpu_limits *limits, const tm_operation *operation) {
  return operation->input_count + operation->output_count + 1 <= limits->storage_buffers && operation->input_count <= 8 &&
         operation->output_count <= 3;
}

static uint32_t lacks(const void *context, const void *row, const tm_operation *operation) {
  const webgpu_limits *limits = ((const webgpu_offer *)context)->limits;
  const uint32_t missing = ((const webgpu_row *)row)->needs & ~limits->features;
  return missing != 0 || !has_room_for_bindings(limits, operation) ? TM_REASON_OPERATION : 0;
}

static int is_broken(const void *context, const void *row) { return webgpu_offer_lacks(context, row); }

static uint32_t refuses(const void *context, const void *row, const tm_operation *operation, uint32_t *out_operand) {
  const webgpu_row *own = row;
  const webgpu_limits *limits = ((const webgpu_offer *)context)->limits;
  return own->refuses != NULL ? own->refuses(limits, operation, out_operand) : kernel_refuses_strided(operation, out_operand);
}

static int exceeds(const void *context, const void *row, const tm_operation *operation, uint32_t *out_operand) {
  const webgpu_offer *offer = context;
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; ++i) {
    *out_operand = i;
    if (operation->operands[i].element_count > MOST_ELEMENTS) return 1;
    if (webgpu_binding_bytes(offer->limits, &operation->operands[i]) > offer->limits->binding_bytes) return 1;
  }
  *out_operand = TM_NO_OPERAND;
  return webgpu_workspace_bytes(offer, row, operation) > offer->limits->binding_bytes;
}

static int split(const void *context, const void *row, const tm_operation *operation, uint32_t operand, tm_change *out_change) {
  const webgpu_row *own = row;
  const webgpu_limits *limits = ((const webgpu_offer *)context)->limits;
  (void)operand;
  return own->split != NULL ? own->split(limits, operation, out_change) : webgpu_split_output(limits, operation, out_change);
}

static void price(const void *context, const void *row, const tm_operation *operation, tm_answer *answer) {
  const webgpu_offer *offer = context;
  const webgpu_row *own = row;
  answer->cost_ns = LAUNCH_NS + own->cost_ns(offer->limits, operation);
  answer->launch_ns = LAUNCH_NS;
  answer->setup_ns = SETUP_NS;
  answer->workspace_bytes = webgpu_workspace_bytes(offer, own, operation);
}

static const kernel_judge judge = {
  .tables = webgpu_row_tables,
  .row_bytes = sizeof(webgpu_row),
  .lacks_text = "the kernel needs a feature that the adapter lacks",
  .exceeds_text = "larger than a binding of the adapter",
  .lacks = lacks,
  .is_broken = is_broken,
  .refuses = refuses,
  .exceeds = exceeds,
  .split = split,
  .price = price,
};

const webgpu_row *webgpu_row_find(const webgpu_offer *offer, const tm_operation *operation) {
  return kernel_judge_find(&judge, offer, operation);
}

void webgpu_query_answer(const webgpu_offer *offer, const tm_operation *operation, tm_answer *out_answer) {
  kernel_judge_answer(&judge, offer, offer->epoch, operation, out_answer);
}
