/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_reduce.h"

#define LARGEST_COUNT UINT64_C(0xfffffff0)      /* of outputs, terms and invocations */
#define ENOUGH_ITEMS  8192u
#define LEAST_TERMS   32u                       /* of a part */
#define MOST_TERMS    (WEBGPU_MOST_TURNS / (TM_MAX_RANK + 2))   /* of a part: a term costs a turn for each axis as well */
#define MOST_PARTS    1024u                     /* unless the terms need more */

/* ---- predicates ---- */

static uint32_t refuses_operand(const tm_operand *operand) {
  const uint32_t bytes = kernel_element_bytes(operand->format);
  const uint32_t reasons = bytes == 0 ? TM_REASON_FORMAT : webgpu_refuses_steps(operand, bytes > 4 ? 4 : bytes);
  return reasons == 0 && operand->element_count > LARGEST_COUNT ? TM_REASON_SIZE : reasons;
}

/* Superblocks cost five turns each when they are added exactly, parts one. */
static int has_too_many_terms(const tm_operation *operation) {
  kernel_reduction r;
  kernel_reduction_make(operation, &r);
  return r.term_count / MOST_TERMS >= WEBGPU_MOST_TURNS;
}

/* Attributes that contradict the shapes would lead outside of y's axes. */
static int attributes_fit(const tm_operation *operation) {
  const tm_reduce_attributes *attributes = operation->attributes;
  const uint32_t rank = operation->operands[0].rank;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < rank; ++i) kept += attributes->keep_dims != 0 || (attributes->axes >> i & 1u) == 0;
  return operation->operands[1].rank == kept;
}

uint32_t webgpu_refuses_reduction(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  (void)limits;
  *out_operand = TM_NO_OPERAND;
  if (!attributes_fit(operation)) return TM_REASON_ATTRIBUTE;
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t reasons = refuses_operand(&operation->operands[i]);
    *out_operand = i;
    if (reasons != 0) return reasons;
  }
  *out_operand = TM_NO_OPERAND;
  return has_too_many_terms(operation) ? TM_REASON_SIZE : 0;
}

/* ---- splitting ---- */

/* The input's axis that an axis of the output comes from. */
static uint32_t kept_axis(const tm_operation *operation, uint32_t operand, uint32_t axis) {
  const tm_reduce_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  uint32_t y_axis = 0;
  if (operand != 0) return axis;
  for (uint32_t i = 0; i < x->rank; ++i) {
    const int is_reduced = (attributes->axes >> i & 1u) != 0;
    if (!is_reduced && y_axis == axis) return i;
    if (!is_reduced || attributes->keep_dims != 0) ++y_axis;
  }
  return TM_MAX_RANK;
}

/* By bytes without those between elements: a part that spans more than a binding is then copied. */
static int split_apart(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[1];
  const uint64_t room = limits->binding_bytes - 2 * limits->offset_alignment;
  for (uint32_t axis = 0; axis < y->rank; ++axis) {
    const uint32_t from = kept_axis(operation, 0, axis);
    const uint64_t extent = y->dims[axis];
    if (from == TM_MAX_RANK || extent < 2 || x->element_count == 0) continue;
    const uint64_t x_step = x->element_count / extent * kernel_element_bytes(x->format);
    const uint64_t y_step = y->element_count / extent * kernel_element_bytes(y->format);
    const uint64_t most = room / (x_step > y_step ? x_step : y_step);
    if (most == 0 || most >= extent) continue;
    *out_change = (tm_change){ .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 1, .axis = axis, .value = most };
    return 1;
  }
  return 0;
}

int webgpu_split_reduction(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  const int is_split = webgpu_split_by(limits, operation, kept_axis, out_change);
  if (is_split && out_change->value > 1) return 1;
  return split_apart(limits, operation, out_change) || is_split;
}

/* ---- plans ---- */

void webgpu_say_reduction(const tm_operation *operation, const kernel_reduction *reduction, webgpu_plan *plan) {
  webgpu_say(plan, "@group(0) @binding(1) var<storage, read> x0: array<u32>;\n"
                   "@group(0) @binding(2) var<storage, read_write> y: array<atomic<u32>>;\n"
                   "@group(0) @binding(3) var<storage, read_write> w: array<u32>;\n");
  const uint32_t x_bytes = kernel_element_bytes(operation->operands[0].format);
  webgpu_say(plan, "const ONE_AXIS = %s;\n", reduction->reduced.count == 1 ? "true" : "false");
  webgpu_say(plan, "const X_BYTES = %uu;\nconst X_LIFT = %uu;\n", x_bytes, x_bytes < 4 ? 32 - 8 * x_bytes : 0);
}

void webgpu_put_axes(webgpu_pass *pass, const kernel_axes *axes, uint32_t room) {
  for (uint32_t i = 0; i < room; ++i) {
    const kernel_axis axis = i < axes->count ? axes->items[axes->count - 1 - i] : (kernel_axis){ .extent = 1 };
    webgpu_put(pass, (uint32_t)axis.extent);
    webgpu_put(pass, (uint32_t)axis.x_step_bytes);
    webgpu_put(pass, (uint32_t)axis.y_step_bytes);
    webgpu_put(pass, 0);
  }
}

void webgpu_add_reduction_pass(const webgpu_limits *limits, const tm_operation *operation,
                               const kernel_reduction *reduction, const char *entry, uint64_t items, uint64_t part_count,
                               webgpu_plan *plan) {
  webgpu_pass *pass = webgpu_add_pass(limits, plan, entry, items);
  if (pass == NULL) return;
  webgpu_put(pass, (uint32_t)reduction->output_count);
  webgpu_put(pass, (uint32_t)reduction->term_count);
  webgpu_put(pass, (uint32_t)part_count);
  webgpu_put(pass, (uint32_t)items);
  webgpu_put(pass, webgpu_first_byte(limits, &operation->operands[0]));
  webgpu_put(pass, webgpu_first_byte(limits, &operation->operands[1]));
  webgpu_put(pass, reduction->kept.count);
  webgpu_put(pass, reduction->reduced.count);
  webgpu_put_axes(pass, &reduction->kept, TM_MAX_RANK);
  webgpu_put_axes(pass, &reduction->reduced, TM_MAX_RANK);
}

uint64_t webgpu_reduction_parts(const kernel_reduction *reduction) {
  const uint64_t least = (reduction->term_count + MOST_TERMS - 1) / MOST_TERMS;
  if (reduction->output_count == 0) return 1;
  const uint64_t wanted = ENOUGH_ITEMS / reduction->output_count, possible = reduction->term_count / LEAST_TERMS;
  const uint64_t parts = wanted < possible ? wanted : possible, some = parts < MOST_PARTS ? parts : MOST_PARTS;
  return some > least ? some : least == 0 ? 1 : least;
}
