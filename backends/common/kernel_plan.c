/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_plan.h"
#include "kernel_shape.h"

#include <math.h>
#include <string.h>

/* A kernel knows formats and operations by the contract's numbers. */
#define SAME(a, b) _Static_assert((a) == (b), #a)
SAME(FORMAT_F64, TM_FORMAT_F64);
SAME(FORMAT_F8_E5M2, TM_FORMAT_F8_E5M2);
SAME(FORMAT_I8, TM_FORMAT_I8);
SAME(FORMAT_BOOL, TM_FORMAT_BOOL);
SAME(FORMAT_Q4_0, TM_FORMAT_Q4_0);
SAME(FORMAT_Q8_0, TM_FORMAT_Q8_0);
SAME(OP_ADD, TM_OP_ADD);
SAME(OP_COMPARE, TM_OP_COMPARE);
SAME(OP_NEG, TM_OP_NEG);
SAME(OP_RELU, TM_OP_RELU);
SAME(OP_LERP, TM_OP_LERP);
SAME(OP_SUM, TM_OP_SUM);
SAME(OP_ARGMAX, TM_OP_ARGMAX);
SAME(OP_RMS_NORM, TM_OP_RMS_NORM);
SAME(KERNEL_MAX_RANK, TM_MAX_RANK);
SAME(STATS_PART_WORDS, TM_STATS_SUM + 2);
SAME(COMPARISON_PART_WORDS, TM_COMPARISON_SUM_SQUARED + 4 * 2);

/* ---- pieces of a plan ---- */

static const tm_operand *output_of(const tm_operation *operation) { return &operation->operands[operation->input_count]; }

static u64 at_most(u64 value, u64 limit) { return value < limit ? value : limit; }

static u64 parts_of(u64 count, u64 size) { return count / size + (count % size != 0); }

static u32 complain(u32 reasons, u32 operand, u32 *out_operand) {
  *out_operand = operand;
  return reasons;
}

/* Steps between elements must keep their alignment; a kernel reads whole words, and blocks from even addresses. */
static int strides_fit(const tm_operand *operand) {
  u32 elements, bytes;
  if (!kernel_block_size(operand->format, &elements, &bytes)) return 0;
  const int64_t unit = elements > 1 ? (bytes % 2 == 0 ? 2 : 1) : (int64_t)bytes;
  for (u32 i = 0; i < operand->rank; i++)
    if (operand->dims[i] > 1 && operand->strides_bytes[i] % unit != 0) return 0;
  return 1;
}

static u32 check_strides(const tm_operation *operation, u32 *out_operand) {
  for (u32 i = 0; i < operation->input_count + operation->output_count; i++)
    if (!strides_fit(&operation->operands[i])) return complain(TM_REASON_LAYOUT, i, out_operand);
  return 0;
}

/* The walk over an operand's blocks: its dims, the last one in blocks. */
static void walk_over(kernel_parameters *p, const tm_operand *operand) {
  u32 elements = 1, bytes = 0;
  (void)kernel_block_size(operand->format, &elements, &bytes);
  p->rank = operand->rank;
  p->count = 1;
  for (u32 i = 0; i < operand->rank; i++) {
    p->dims[i] = i + 1 == operand->rank ? operand->dims[i] / elements : operand->dims[i];
    p->count *= p->dims[i];
  }
}

static void walk_along(kernel_parameters *p, u32 slot, const tm_operand *operand) {
  for (u32 i = 0; i < operand->rank; i++) p->strides[slot][i] = operand->strides_bytes[i];
}

static void begin(const tm_operation *operation, kernel_plan *plan) {
  kernel_parameters *p = &plan->parameters;
  p->op = operation->op;
  for (u32 i = 0; i < operation->input_count && i < 3; i++) p->formats[i] = operation->operands[i].format;
  p->formats[3] = output_of(operation)->format;
  plan->binding_count = operation->input_count + operation->output_count;
  for (u32 i = 0; i < KERNEL_BINDINGS; i++) plan->slots[i] = i;
}

/* A launch of `count` independent units, or of `count` groups if `unit_is_group`; buffers are the bindings in order. */
static void add_dispatch(kernel_plan *plan, const char *kernel, u64 group_count, u32 buffer_count, const u32 *buffers) {
  if (group_count == 0) return;
  kernel_dispatch *dispatch = &plan->dispatches[plan->dispatch_count++];
  dispatch->kernel = kernel;
  dispatch->group_count = at_most(group_count, KERNEL_MOST_GROUPS);
  dispatch->buffer_count = buffer_count;
  for (u32 i = 0; i < buffer_count; i++) dispatch->buffers[i] = buffers[i];
}

static void add_plain_dispatch(kernel_plan *plan, const char *kernel, u64 units) {
  static const u32 in_order[] = { 0, 1, 2, 3 };
  add_dispatch(plan, kernel, parts_of(units, GROUP_SIZE), plan->binding_count, in_order);
}

static void settle(kernel_parameters *p) {
  p->is_small = p->count <= UINT32_MAX && p->inner_count <= UINT32_MAX;
  for (u32 i = 0; i < KERNEL_MAX_RANK; i++)
    if (p->dims[i] > UINT32_MAX || p->inner_dims[i] > UINT32_MAX) p->is_small = 0;
}

/* ---- elementwise, casts ---- */

#define IS_LESS      0x1u
#define IS_EQUAL     0x2u
#define IS_GREATER   0x4u
#define IS_UNORDERED 0x8u

static u32 detail_of(const tm_operation *operation) {
  static const u32 predicates[] = { IS_EQUAL, IS_LESS | IS_GREATER | IS_UNORDERED, IS_LESS, IS_LESS | IS_EQUAL, IS_GREATER,
                                    IS_GREATER | IS_EQUAL };
  const uint32_t *first = operation->attributes;        /* each of these structs begins with the u32 that matters */
  if (first == NULL) return 0;
  if (operation->op != TM_OP_COMPARE) return *first;
  return *first < sizeof predicates / sizeof predicates[0] ? predicates[*first] : 0;
}

u32 kernel_plan_elementwise(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  u32 elements = 1, bytes = 1;
  const u32 reasons = check_strides(operation, out_operand);
  if (reasons != 0) return reasons;
  begin(operation, out_plan);
  walk_over(p, output_of(operation));
  for (u32 i = 0; i <= operation->input_count; i++) walk_along(p, i, &operation->operands[i]);
  (void)kernel_block_size(p->formats[3], &elements, &bytes);
  p->unit_bytes = bytes;
  p->detail = detail_of(operation);
  settle(p);
  add_plain_dispatch(out_plan, kernels[0], p->count);
  out_plan->flops = (double)p->count;
  return 0;
}

u32 kernel_plan_dequantize(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_operand *y = output_of(operation);
  const u32 reasons = check_strides(operation, out_operand);
  if (reasons != 0) return reasons;
  if (y->rank == 0 || operation->operands[0].rank != y->rank) return complain(TM_REASON_RANK, TM_NO_OPERAND, out_operand);
  begin(operation, out_plan);
  walk_over(p, &operation->operands[0]);
  walk_along(p, 0, &operation->operands[0]);
  walk_along(p, 1, y);
  p->strides[1][p->rank - 1] = y->strides_bytes[y->rank - 1] * 32;
  p->steps[0] = y->strides_bytes[y->rank - 1];
  settle(p);
  add_plain_dispatch(out_plan, kernels[0], y->element_count);
  out_plan->flops = (double)y->element_count;
  return 0;
}

/* ---- merges ---- */

/* Dense inputs around their weights, which are binding 1; what is not there is bound to the first again. */
u32 kernel_plan_merge(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const u32 inputs = operation->input_count;
  const u32 reasons = kernel_refuses_strided(operation, out_operand);
  u32 buffers[KERNEL_MOST_BUFFERS] = { 0, 1, 0, 0, 0, inputs };
  if (reasons != 0) return reasons;
  begin(operation, out_plan);
  for (u32 i = 2; i < inputs; i++) buffers[i] = i;
  for (u32 i = 3; i < inputs; i++) p->sizes[i - 3] = operation->operands[i].format;
  p->count = output_of(operation)->element_count;
  p->detail = inputs - 1;
  if (operation->op == TM_OP_TIES_SUM) p->steps[0] = ((const tm_ties_attributes *)operation->attributes)->sum;
  out_plan->slots[inputs] = 5;
  settle(p);
  out_plan->flops = (operation->op == TM_OP_DARE_SUM ? 40 : 4) * (double)p->count * (inputs - 1);
  add_dispatch(out_plan, kernels[0], parts_of(p->count, GROUP_SIZE), KERNEL_MOST_BUFFERS, buffers);
  return 0;
}

/* ---- moves ---- */

static u32 plan_units(const tm_operation *operation, kernel_plan *plan, u32 *out_operand) {
  u32 elements = 1, bytes = 1;
  const u32 reasons = check_strides(operation, out_operand);
  if (reasons != 0) return reasons;
  begin(operation, plan);
  walk_over(&plan->parameters, output_of(operation));
  (void)kernel_block_size(plan->parameters.formats[3], &elements, &bytes);
  plan->parameters.unit_bytes = bytes;
  return 0;
}

u32 kernel_plan_move(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_operand *x = &operation->operands[0];
  const tm_transpose_attributes *attributes = operation->attributes;
  const u32 reasons = plan_units(operation, out_plan, out_operand);
  if (reasons != 0) return reasons;
  for (u32 i = 0; i < p->rank && operation->op != TM_OP_FILL; i++)
    p->strides[0][i] = x->strides_bytes[operation->op == TM_OP_TRANSPOSE ? attributes->permutation[i] % TM_MAX_RANK : i];
  walk_along(p, 1, output_of(operation));
  settle(p);
  add_plain_dispatch(out_plan, kernels[0], p->count);
  return 0;
}

u32 kernel_plan_gather(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_operand *x = &operation->operands[0], *indices = &operation->operands[1];
  const u32 axis = ((const tm_axis_attributes *)operation->attributes)->axis;
  const u32 reasons = plan_units(operation, out_plan, out_operand);
  if (reasons != 0) return reasons;
  if (axis >= x->rank) return complain(TM_REASON_ATTRIBUTE, TM_NO_OPERAND, out_operand);
  for (u32 i = 0; i < p->rank; i++) {
    const u32 after = axis + indices->rank;
    if (i < axis) p->strides[0][i] = x->strides_bytes[i];
    else if (i < after) p->strides[1][i] = indices->strides_bytes[i - axis];
    else p->strides[0][i] = x->strides_bytes[i - indices->rank + 1];
  }
  walk_along(p, 2, output_of(operation));
  p->sizes[0] = x->dims[axis];
  p->steps[0] = x->strides_bytes[axis];
  settle(p);
  add_plain_dispatch(out_plan, kernels[0], p->count);
  return 0;
}

/* ---- reductions ---- */

/* The walk over the outputs, with x as operand 0 and y as 1. */
static void walk_kept(kernel_parameters *p, const kernel_reduction *r) {
  p->rank = r->kept.count;
  p->count = r->output_count;
  for (u32 i = 0; i < r->kept.count; i++) {
    p->dims[i] = r->kept.items[i].extent;
    p->strides[0][i] = r->kept.items[i].x_step_bytes;
    p->strides[1][i] = r->kept.items[i].y_step_bytes;
  }
}

static void walk_reduced(kernel_parameters *p, const kernel_reduction *r) {
  p->inner_rank = r->reduced.count;
  p->inner_count = r->term_count;
  for (u32 i = 0; i < r->reduced.count; i++) {
    p->inner_dims[i] = r->reduced.items[i].extent;
    p->inner_strides[i] = r->reduced.items[i].x_step_bytes;
  }
}

/* Lanes side by side along the outputs if x's last axis is kept. */
static u32 is_by_columns(const tm_operation *operation) {
  const tm_reduce_attributes *attributes = operation->attributes;
  const u32 rank = operation->operands[0].rank;
  return rank > 0 && (attributes->axes >> (rank - 1) & 1u) == 0 ? 1 : 0;
}

u32 kernel_plan_reduce(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  kernel_reduction r;
  const u32 reasons = check_strides(operation, out_operand);
  if (reasons != 0) return reasons;
  begin(operation, out_plan);
  kernel_reduction_make(operation, &r);
  walk_kept(p, &r);
  walk_reduced(p, &r);
  p->sizes[0] = p->inner_count == 0 ? 1 : parts_of(p->inner_count, PART_ELEMENTS);
  p->detail = is_by_columns(operation);
  settle(p);
  const int is_cut = p->sizes[0] > 1;
  const u32 parts_buffers[] = { 0, 1, is_cut ? 2 : 1 };
  const u32 whole_buffers[] = { 2, 1 }, extreme_buffers[] = { 0, 2, 1 };
  const int is_extreme = operation->op >= TM_OP_MIN && operation->op <= TM_OP_ARGMAX;
  add_dispatch(out_plan, kernels[0], parts_of(p->count * p->sizes[0], PARTS_A_GROUP), 3, parts_buffers);
  out_plan->flops = (double)p->count * (double)p->inner_count;
  if (!is_cut || p->count == 0) return 0;
  add_dispatch(out_plan, kernels[1], parts_of(p->count, GROUP_SIZE), is_extreme ? 3 : 2,
               is_extreme ? extreme_buffers : whole_buffers);
  out_plan->workspace_bytes = p->count * p->sizes[0] * sizeof(uint64_t);
  out_plan->binding_count = 3;
  return 0;
}

/* ---- one pass ---- */

u32 kernel_plan_one_pass(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_operand *x = &operation->operands[0], *y = output_of(operation);
  const int is_stats = operation->op == TM_OP_STATS;
  const u32 workspace = operation->input_count + 1;
  const u32 reasons = check_strides(operation, out_operand);
  if (reasons != 0) return reasons;
  begin(operation, out_plan);
  walk_over(p, x);
  for (u32 i = 0; i < operation->input_count; i++) walk_along(p, i, &operation->operands[i]);
  p->sizes[0] = parts_of(x->element_count, PART_ELEMENTS);
  p->sizes[1] = x->element_count;
  p->steps[0] = y->strides_bytes[0];
  settle(p);
  p->is_small = p->is_small && x->element_count <= UINT32_MAX;
  const u32 parts_buffers[] = { 0, is_stats ? workspace : 1, workspace };
  const u32 whole_buffers[] = { workspace, operation->input_count };
  add_dispatch(out_plan, kernels[0], p->sizes[0], is_stats ? 2 : 3, parts_buffers);
  add_dispatch(out_plan, kernels[1], 1, 2, whole_buffers);
  out_plan->workspace_bytes = (p->sizes[0] + 1) * (is_stats ? STATS_PART_WORDS : COMPARISON_PART_WORDS) * sizeof(uint64_t);
  out_plan->binding_count = workspace + 1;
  out_plan->flops = 16 * (double)x->element_count;
  return 0;
}

/* ---- along one axis ---- */

static void walk_rows(const tm_operation *operation, kernel_parameters *p, u32 axis) {
  kernel_reduction r;
  kernel_reduction_make_lines(operation, axis, &r);
  walk_kept(p, &r);
  p->sizes[0] = r.term_count;
  p->steps[0] = operation->operands[0].strides_bytes[axis];
  p->steps[1] = output_of(operation)->strides_bytes[axis];
}

/* Epsilon as each kind of real sees it. */
static void set_epsilon(const tm_operation *operation, kernel_parameters *p) {
  const tm_norm_attributes *attributes = operation->attributes;
  const float narrow = (float)attributes->epsilon;
  memcpy(&p->f64_bits, &attributes->epsilon, sizeof p->f64_bits);
  memcpy(&p->f32_bits, &narrow, sizeof p->f32_bits);
}

static void plan_norm(const tm_operation *operation, const char *kernel, kernel_plan *plan) {
  kernel_parameters *p = &plan->parameters;
  const u32 inputs = operation->input_count;
  const u32 buffers[] = { 0, 1, inputs > 2 ? 2 : 1, inputs };
  for (u32 i = 1; i < inputs; i++) {
    p->steps[1 + i] = operation->operands[i].strides_bytes[0];
    plan->slots[i] = 1 + i;
  }
  plan->slots[inputs] = 1;
  set_epsilon(operation, p);
  add_dispatch(plan, kernel, p->count, 4, buffers);
}

u32 kernel_plan_normalize(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_operand *x = &operation->operands[0];
  const int is_softmax = operation->op == TM_OP_SOFTMAX;
  const u32 in_order[] = { 0, 1 };
  const u32 reasons = check_strides(operation, out_operand);
  const u32 axis = is_softmax ? ((const tm_axis_attributes *)operation->attributes)->axis : x->rank - 1;
  if (reasons != 0) return reasons;
  if (axis >= x->rank) return complain(TM_REASON_ATTRIBUTE, TM_NO_OPERAND, out_operand);
  begin(operation, out_plan);
  out_plan->flops = (is_softmax ? 40.0 : 10.0) * (double)x->element_count;
  if (x->element_count == 0) return 0;
  walk_rows(operation, p, axis);
  settle(p);
  if (is_softmax) add_dispatch(out_plan, kernels[0], p->count, 2, in_order);
  else plan_norm(operation, kernels[0], out_plan);
  return 0;
}

/* ---- tokens ---- */

/* Walks over `like` with axis `axis` first, as find_row wants it: operands 0 and 1 and the output. */
static void walk_axis_first(const tm_operation *operation, kernel_parameters *p, const tm_operand *like, u32 axis) {
  const tm_operand *walked[] = { &operation->operands[0], &operation->operands[1], output_of(operation) };
  walk_over(p, like);
  const u64 extent = p->dims[axis];
  for (u32 i = axis; i > 0; i--) p->dims[i] = p->dims[i - 1];
  p->dims[0] = extent;
  for (u32 slot = 0; slot < 3; slot++) {
    p->strides[slot][0] = walked[slot]->strides_bytes[axis];
    for (u32 i = 1; i < p->rank; i++) p->strides[slot][i] = walked[slot]->strides_bytes[i <= axis ? i - 1 : i];
  }
}

u32 kernel_plan_update(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_operand *state = &operation->operands[0], *rows = &operation->operands[1], *start = &operation->operands[2];
  const u32 axis = ((const tm_axis_attributes *)operation->attributes)->axis;
  const int in_place = (output_of(operation)->flags & TM_OPERAND_IN_PLACE) != 0;
  const u32 reasons = plan_units(operation, out_plan, out_operand);
  if (reasons != 0) return reasons;
  if (axis >= state->rank || rows->rank != state->rank) return complain(TM_REASON_ATTRIBUTE, TM_NO_OPERAND, out_operand);
  walk_axis_first(operation, p, in_place ? rows : state, axis);
  p->steps[0] = p->strides[1][0];
  p->steps[1] = start->rank != 0 ? start->strides_bytes[0] : 0;
  p->steps[2] = p->strides[2][0];
  p->strides[in_place ? 2 : 1][0] = 0;
  p->sizes[0] = state->dims[axis];
  p->sizes[1] = rows->dims[axis];
  p->sizes[2] = start->rank != 0;
  p->detail = start->format == TM_FORMAT_I64;
  settle(p);
  const u32 in_place_buffers[] = { 1, 2, 3 };
  if (in_place) add_dispatch(out_plan, kernels[1], parts_of(p->count, GROUP_SIZE), 3, in_place_buffers);
  else add_plain_dispatch(out_plan, kernels[0], p->count);
  return 0;
}

/* value * 2^64, for values from 0 to 1. */
static u64 fraction_of(double value) { return value < 1 ? (u64)(value * 0x1p64) : UINT64_MAX; }

/* Powers of theta are made of those with exponents that are powers of two. */
static int make_frequencies(const tm_rope_attributes *attributes, u64 turning, kernel_parameters *p) {
  const double theta = attributes->theta != 0 ? attributes->theta : 10000, scale = attributes->scale != 0 ? attributes->scale : 1;
  if (!(theta > 1) || !(scale > 0) || scale > 1 || turning / 2 > (u64)1 << KERNEL_MAX_RANK) return 0;
  for (u32 j = 0; j < KERNEL_MAX_RANK; j++) p->inner_dims[j] = fraction_of(pow(theta, -2.0 * (double)(1u << j) / (double)(turning + (turning == 0))));
  p->f64_bits = fraction_of(scale / 6.283185307179586);
  return 1;
}

/* From head to head of x and y, and along the positions, whose axis is that of the tokens. */
static void walk_heads_of(kernel_parameters *p, const tm_operand *x, const tm_operand *y, i64 position_step) {
  p->rank = x->rank - 1;
  p->count = 1;
  for (u32 i = 0; i < p->rank; i++) {
    p->dims[i] = x->dims[i];
    p->count *= x->dims[i];
    p->strides[0][i] = x->strides_bytes[i];
    p->strides[1][i] = i + 2 == p->rank ? position_step : 0;
    p->strides[2][i] = y->strides_bytes[i];
  }
  p->steps[0] = x->strides_bytes[p->rank];
  p->steps[1] = y->strides_bytes[p->rank];
}

u32 kernel_plan_rope(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_rope_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0], *y = output_of(operation);
  const u32 last = x->rank - 1;
  const u64 turning = attributes->rotary_dims != 0 ? attributes->rotary_dims : x->dims[last];
  const u32 reasons = check_strides(operation, out_operand);
  if (reasons != 0) return reasons;
  begin(operation, out_plan);
  if (!make_frequencies(attributes, turning, p)) return complain(TM_REASON_ATTRIBUTE, TM_NO_OPERAND, out_operand);
  walk_heads_of(p, x, y, operation->operands[1].strides_bytes[0]);
  p->sizes[0] = turning / 2 + (x->dims[last] - turning);
  p->sizes[1] = turning / 2;
  p->detail = attributes->layout;
  p->is_small = p->count <= UINT32_MAX;
  for (u32 i = 0; i < p->rank; i++) p->is_small &= p->dims[i] <= UINT32_MAX;
  out_plan->flops = 20 * (double)x->element_count;
  add_plain_dispatch(out_plan, kernels[0], p->count * p->sizes[0]);
  return 0;
}

/* A mask along the walked axes: batch, token, and the head in two. */
static void walk_mask(const tm_operand *mask, kernel_parameters *p) {
  i64 strides[4] = { 0, 0, 0, 0 };      /* batch, head, token, key */
  for (u32 i = 0; i < mask->rank && mask->rank <= 4; i++)
    if (mask->dims[i] != 1) strides[4 - mask->rank + i] = mask->strides_bytes[i];
  p->inner_strides[0] = strides[0];
  p->inner_strides[1] = strides[2];
  p->inner_strides[2] = strides[1] * (i64)p->dims[3];
  p->inner_strides[3] = strides[1];
  p->steps[6] = strides[3];
  p->sizes[3] = mask->format;
}

static void walk_heads(kernel_parameters *p, u32 slot, const tm_operand *x, int is_shared) {
  const u32 last = x->rank - 1;
  p->strides[slot][0] = x->rank == 4 ? x->strides_bytes[0] : 0;
  p->strides[slot][1] = is_shared ? 0 : x->strides_bytes[last - 2];
  p->strides[slot][2] = is_shared ? x->strides_bytes[last - 1] : x->strides_bytes[last - 1] * (i64)p->dims[3];
  p->strides[slot][3] = is_shared ? 0 : x->strides_bytes[last - 1];
}

static u32 attention_detail(const tm_operation *operation) {
  const tm_attention_attributes *attributes = operation->attributes;
  const int has_mask = operation->input_count > 4;
  const int is_bool = has_mask && operation->operands[4].format == TM_FORMAT_BOOL;
  return (attributes->causal != 0 ? 1u : 0u) | (has_mask ? 2u : 0u) | (is_bool ? 4u : 0u) |
         (operation->operands[3].format == TM_FORMAT_I64 ? 8u : 0u);
}

u32 kernel_plan_attention(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_attention_attributes *attributes = operation->attributes;
  const tm_operand *q = &operation->operands[0], *k = &operation->operands[1], *v = &operation->operands[2], *y = output_of(operation);
  const u32 last = q->rank - 1, has_mask = operation->input_count > 4;
  const u32 buffers[] = { 0, 1, 2, 3, has_mask ? 4 : 3, operation->input_count };
  const u32 reasons = check_strides(operation, out_operand);
  if (reasons != 0) return reasons;
  begin(operation, out_plan);
  if (y->element_count == 0) return 0;
  const double scale = attributes->scale != 0 ? attributes->scale : 1 / sqrt((double)(q->dims[last] != 0 ? q->dims[last] : 1));
  const float narrow = (float)scale;
  const u64 dims[] = { q->rank == 4 ? q->dims[0] : 1, q->dims[last - 2], k->dims[last - 1], q->dims[last - 1] / k->dims[last - 1] };
  const i64 steps[] = { k->strides_bytes[last - 2], k->strides_bytes[last], v->strides_bytes[last - 2], v->strides_bytes[last],
                        q->strides_bytes[last], y->strides_bytes[last] };
  memcpy(&p->f64_bits, &scale, sizeof scale);
  memcpy(&p->f32_bits, &narrow, sizeof narrow);
  memcpy(p->dims, dims, sizeof dims);
  memcpy(p->steps, steps, sizeof steps);
  p->rank = 4;
  p->count = dims[0] * dims[1] * dims[2] * dims[3];
  walk_heads(p, 0, q, 0);
  walk_heads(p, 1, k, 1);
  walk_heads(p, 2, v, 1);
  walk_heads(p, 3, y, 0);
  p->sizes[0] = k->dims[last - 2];
  p->sizes[1] = q->dims[last];
  p->sizes[2] = v->dims[last];
  p->detail = attention_detail(operation);
  if (has_mask) walk_mask(&operation->operands[4], p);
  out_plan->slots[operation->input_count] = 5;
  settle(p);
  out_plan->flops = (double)p->count * (double)p->sizes[0] * (6 * (double)p->sizes[1] + 2 * (double)p->sizes[2] + 40);
  add_dispatch(out_plan, kernels[0], p->count, 6, buffers);
  return 0;
}

/* ---- products ---- */

u32 kernel_plan_matmul(const tm_operation *operation, const char *const *kernels, kernel_plan *out_plan, u32 *out_operand) {
  kernel_parameters *p = &out_plan->parameters;
  const tm_operand *a = &operation->operands[0], *b = &operation->operands[1], *y = &operation->operands[2];
  const u32 in_order[] = { 0, 1, 2 };
  const u32 reasons = check_strides(operation, out_operand);
  if (reasons != 0) return reasons;
  if (y->rank < 2 || a->rank != y->rank || b->rank != y->rank) return complain(TM_REASON_RANK, TM_NO_OPERAND, out_operand);
  begin(operation, out_plan);
  const kernel_product product = kernel_product_of(operation);
  const u32 last = y->rank - 1, *line = product.line_axis, *k = product.k_axis;
  p->rank = y->rank - 2;
  p->count = product.batch_count;
  for (u32 i = 0; i < p->rank; i++) {
    p->dims[i] = y->dims[i];
    p->strides[0][i] = a->strides_bytes[i];
    p->strides[1][i] = b->strides_bytes[i];
    p->strides[2][i] = y->strides_bytes[i];
  }
  p->sizes[0] = product.rows;
  p->sizes[1] = product.columns;
  p->sizes[2] = product.depth;
  const i64 steps[] = { a->strides_bytes[line[0]], a->strides_bytes[k[0]], b->strides_bytes[k[1]], b->strides_bytes[line[1]],
                        y->strides_bytes[last - 1], y->strides_bytes[last] };
  memcpy(p->steps, steps, sizeof steps);
  settle(p);
  out_plan->flops = 2 * (double)y->element_count * (double)p->sizes[2];
  add_dispatch(out_plan, kernels[0], parts_of(p->sizes[0], TILE_EDGE) * parts_of(p->sizes[1], TILE_EDGE) * p->count, 3, in_order);
  return 0;
}
