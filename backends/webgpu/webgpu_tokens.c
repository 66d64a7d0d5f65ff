/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope, update, attention of dense operands.  rope and attention are f32 alone; update moves words whatever they mean.
 *
 * rope: angles are within 2^-20 of the reference's at the farthest position, products and sums within 4 eps of the pair.
 * attention: a sum of n terms is within n eps, an exponential within (3 + 2|x|) eps, where |x| is at most 2S.
 */
#include <math.h>
#include <string.h>

#include "webgpu_kernel.h"
#include "webgpu_shaders.h"
#include "webgpu_work.h"

#define POWERS 8u
#define LARGEST_COUNT UINT64_C(0xfffffff0)
#define ROPE_BOUND 32.0
#define ATTENTION_BOUND 8.0

static const char *const rope_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_rope, 0 };
static const char *const update_shaders[] = { webgpu_wgsl_bits, webgpu_wgsl_wide, webgpu_wgsl_update, 0 };
static const char *const attention_shaders[] = { webgpu_wgsl_attention, 0 };

static uint32_t index_words(const tm_operand *operand) { return operand->format == TM_FORMAT_I64 ? 2 : 1; }

/* Whether an invocation gets by with its turns when `items` of `each` are shared out. */
static int turns_fit(const webgpu_limits *limits, uint64_t items, uint64_t each) {
  const uint64_t started = (uint64_t)limits->workgroup_count * limits->workgroup_size;
  return items <= LARGEST_COUNT && each < WEBGPU_MOST_TURNS && (items / started + 1) * (each + 1) <= WEBGPU_MOST_TURNS;
}

static void put_words(webgpu_pass *pass, const uint64_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) webgpu_put(pass, (uint32_t)values[i]);
}

static void put_wide(webgpu_pass *pass, uint64_t value) {
  webgpu_put(pass, (uint32_t)value);
  webgpu_put(pass, (uint32_t)(value >> 32));
}

/* ---- rope ---- */

static uint64_t turning_of(const tm_operation *operation) {
  const tm_rope_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  return attributes->rotary_dims != 0 ? attributes->rotary_dims : x->dims[x->rank - 1];
}

static double theta_of(const tm_rope_attributes *attributes) { return attributes->theta != 0 ? attributes->theta : 10000.0; }
static double scale_of(const tm_rope_attributes *attributes) { return attributes->scale != 0 ? attributes->scale : 1.0; }

static uint32_t refuses_rope(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  const tm_rope_attributes *attributes = operation->attributes;
  const double theta = theta_of(attributes), scale = scale_of(attributes);
  *out_operand = TM_NO_OPERAND;
  if (!(theta > 1) || !(scale > 0) || scale > 1 || turning_of(operation) / 2 > 1u << POWERS) return TM_REASON_ATTRIBUTE;
  if (!turns_fit(limits, operation->operands[0].element_count, POWERS + 1)) return TM_REASON_SIZE;
  return kernel_refuses_strided(operation, out_operand);
}

/* Positions go with the tokens. */
static uint32_t rope_axis(const tm_operation *operation, uint32_t operand, uint32_t axis) {
  if (operand != 1) return axis;
  return axis + 3 == operation->operands[0].rank ? 0 : TM_MAX_RANK;
}

/* Any axis but the elements of a head, which turn together. */
static int split_rope(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  return webgpu_split_by(limits, operation, rope_axis, out_change) && out_change->axis + 1 != operation->operands[0].rank;
}

/* value * 2^64, for values from 0 to 1. */
static uint64_t fraction_of(double value) { return value < 1 ? (uint64_t)(value * 0x1p64) : UINT64_MAX; }

static void plan_rope(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const tm_rope_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  const uint64_t dim = x->dims[x->rank - 1], turning = turning_of(operation), units = dim - turning / 2;
  (void)row;
  webgpu_say_bindings(out_plan, operation, 0);
  const uint64_t items = x->element_count == 0 ? 0 : x->element_count / dim * units;
  webgpu_pass *pass = webgpu_add_pass(limits, out_plan, "run", items);
  if (pass == NULL) return;
  const uint64_t words[] = { items, units, turning / 2, dim, x->dims[x->rank - 2], x->dims[x->rank - 3], attributes->layout,
                             index_words(&operation->operands[1]) };
  put_words(pass, words, 8);
  put_wide(pass, fraction_of(scale_of(attributes) / 6.283185307179586));
  put_wide(pass, 0);
  for (uint32_t j = 0; j < POWERS; ++j)
    put_wide(pass, fraction_of(pow(theta_of(attributes), -2.0 * (double)(1u << j) / (double)(turning != 0 ? turning : 1))));
}

static uint64_t cost_rope(const webgpu_limits *limits, const tm_operation *operation) {
  return webgpu_work_ns(limits, WEBGPU_WORK_SOFTMAX, (double)operation->operands[0].element_count, kernel_operand_bytes(operation));
}

/* ---- update ---- */

/* Bytes of one place of the state, or of one row. */
static uint64_t inner_bytes(const tm_operation *operation, uint32_t axis) {
  const tm_operand *state = &operation->operands[0];
  uint64_t places = 1;
  for (uint32_t i = 0; i <= axis; ++i) places *= state->dims[i];
  return state->element_count == 0 ? 0 : state->byte_count / places;
}

static uint32_t axis_of(const tm_operation *operation) { return ((const tm_axis_attributes *)operation->attributes)->axis; }

static uint32_t refuses_update(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  const tm_operand *rows = &operation->operands[1], *start = &operation->operands[2];
  const uint32_t reasons = kernel_refuses_strided(operation, out_operand);
  if (reasons != 0) return reasons;
  *out_operand = 0;
  if (axis_of(operation) >= rows->rank) return TM_REASON_ATTRIBUTE;
  if (inner_bytes(operation, axis_of(operation)) % 4 != 0) return TM_REASON_SHAPE;
  const uint64_t each = start->rank != 0 ? rows->dims[axis_of(operation)] : 1;
  return turns_fit(limits, operation->operands[0].byte_count / 4, each) ? 0 : TM_REASON_SIZE;
}

static void plan_update(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const uint32_t axis = axis_of(operation);
  const tm_operand *state = &operation->operands[0], *start = &operation->operands[2];
  (void)row;
  webgpu_say_bindings(out_plan, operation, 0);
  webgpu_pass *pass = webgpu_add_pass(limits, out_plan, "run", state->byte_count / 4);
  if (pass == NULL) return;
  const uint64_t words[] = { state->byte_count / 4, inner_bytes(operation, axis) / 4, state->dims[axis],
                             operation->operands[1].dims[axis], start->rank != 0, index_words(start) };
  put_words(pass, words, 6);
}

static uint32_t update_axis(const tm_operation *operation, uint32_t operand, uint32_t axis) {
  (void)operation;
  return operand == 2 ? TM_MAX_RANK : axis;
}

/* Any axis but that of the rows. */
static int split_update(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  return webgpu_split_by(limits, operation, update_axis, out_change) && out_change->axis != axis_of(operation);
}

static uint64_t cost_update(const webgpu_limits *limits, const tm_operation *operation) {
  return webgpu_cost_ns(limits, (double)operation->operands[0].byte_count / 4, 4000.0, kernel_operand_bytes(operation));
}

/* ---- attention ---- */

static uint64_t extent(const tm_operand *x, uint32_t from_last) { return x->dims[x->rank - 1 - from_last]; }

static uint64_t row_count(const tm_operation *operation) {
  const tm_operand *y = &operation->operands[operation->input_count];
  return y->element_count == 0 ? 0 : y->element_count / extent(y, 0);
}

static uint64_t attention_workspace(const webgpu_limits *limits, const tm_operation *operation) {
  (void)limits;
  const uint64_t scores = row_count(operation) * extent(&operation->operands[1], 2);
  return scores != 0 ? 4 * scores : 4;
}

static uint32_t refuses_attention(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand) {
  const tm_operand *q = &operation->operands[0], *y = &operation->operands[operation->input_count];
  const uint64_t capacity = extent(&operation->operands[1], 2), rows = row_count(operation);
  const uint32_t reasons = kernel_refuses_strided(operation, out_operand);
  if (reasons != 0) return reasons;
  *out_operand = TM_NO_OPERAND;
  if (extent(q, 0) == 0) return TM_REASON_SHAPE;
  if (capacity > LARGEST_COUNT || (capacity != 0 && rows > LARGEST_COUNT / capacity)) return TM_REASON_SIZE;
  if (!turns_fit(limits, rows * capacity, extent(q, 0)) || !turns_fit(limits, rows, 3 * capacity + 3) ||
      !turns_fit(limits, y->element_count, capacity))
    return TM_REASON_SIZE;
  return attention_workspace(limits, operation) > limits->binding_bytes ? TM_REASON_SIZE : 0;
}

/* Steps in elements along batch, head, token and key; 0 where the mask repeats. */
static void mask_steps(const tm_operand *mask, uint64_t *out_steps) {
  uint64_t dense = 1;
  for (uint32_t i = 0; i < 4; ++i) {
    const int is_there = i < mask->rank && extent(mask, i) != 1;
    out_steps[3 - i] = is_there ? dense : 0;
    if (i < mask->rank) dense *= extent(mask, i);
  }
}

static void say_mask(const tm_operation *operation, webgpu_plan *plan) {
  const char *bits = "0u";
  if (operation->input_count > 4)
    bits = operation->operands[4].format == TM_FORMAT_BOOL
               ? "select(0xff800000u, 0u, ((x4[at >> 2u] >> ((at & 3u) * 8u)) & 0xffu) != 0u)" : "x4[at]";
  webgpu_say(plan, "fn mask_bits(at: u32) -> u32 { return %s; }\n", bits);
}

static void add_attention_pass(const webgpu_limits *limits, const tm_operation *operation, const char *entry, uint64_t items,
                               webgpu_plan *plan) {
  const tm_attention_attributes *attributes = operation->attributes;
  const tm_operand *q = &operation->operands[0], *k = &operation->operands[1], *v = &operation->operands[2];
  uint64_t steps[4] = { 0, 0, 0, 0 };
  uint32_t scale_bits;
  webgpu_pass *pass = webgpu_add_pass(limits, plan, entry, items);
  if (pass == NULL) return;
  const float scale = (float)(attributes->scale != 0 ? attributes->scale : 1.0 / sqrt((double)extent(q, 0)));
  memcpy(&scale_bits, &scale, sizeof scale_bits);
  if (operation->input_count > 4) mask_steps(&operation->operands[4], steps);
  const uint64_t words[] = { items, extent(q, 2), extent(q, 1), extent(q, 1) / extent(k, 1), extent(k, 2), extent(q, 0), extent(v, 0),
                             attributes->causal, index_words(&operation->operands[3]), scale_bits, operation->input_count > 4, 0 };
  put_words(pass, words, 12);
  put_words(pass, steps, 4);
}

static void plan_attention(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan) {
  const uint64_t rows = row_count(operation);
  (void)row;
  webgpu_say_bindings(out_plan, operation, 1);
  say_mask(operation, out_plan);
  if (rows == 0) return;
  add_attention_pass(limits, operation, "scores", rows * extent(&operation->operands[1], 2), out_plan);
  add_attention_pass(limits, operation, "weights", rows, out_plan);
  add_attention_pass(limits, operation, "values", operation->operands[operation->input_count].element_count, out_plan);
}

/* Which keys a token sees depends on how many tokens there are. */
static int split_attention(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  (void)limits;
  (void)operation;
  (void)out_change;
  return 0;
}

static uint64_t cost_attention(const webgpu_limits *limits, const tm_operation *operation) {
  const double each = (double)extent(&operation->operands[1], 0) + (double)extent(&operation->operands[2], 0) + 64;
  const double products = (double)row_count(operation) * (double)extent(&operation->operands[1], 2) * each;
  return webgpu_work_ns(limits, WEBGPU_WORK_PRODUCT, products, kernel_operand_bytes(operation));
}

/* ---- rows ---- */

#define INDICES (KERNEL_FORMAT_BIT(TM_FORMAT_I32) | KERNEL_FORMAT_BIT(TM_FORMAT_I64))
#define F32_BIT KERNEL_FORMAT_BIT(TM_FORMAT_F32)
#define CLOSE                                                                                                            \
  .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N2, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_FLUSHES,  \
  .accumulator = TM_FORMAT_F32

/* Of attention without a mask y stands in the mask's place, and cannot be bool. */
static const webgpu_row rows[] = {
  { .op = TM_OP_ROPE, .formats = { TM_FORMAT_F32, INDICES, TM_FORMAT_F32 }, .attribute_bytes = sizeof(tm_rope_attributes), CLOSE,
    .growth = TM_GROWTH_ONE, .numerics_bound = ROPE_BOUND, .alias_mask = 0x1, .name = "webgpu_rope_f32", .shaders = rope_shaders,
    .refuses = refuses_rope, .split = split_rope, .cost_ns = cost_rope, .plan = plan_rope },
  { .op = TM_OP_UPDATE, .formats = { TM_FORMAT_NONE, KERNEL_SAME, INDICES, KERNEL_SAME }, .attribute_bytes = sizeof(tm_axis_attributes),
    .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,
    .alias_mask = 0x1, .name = "webgpu_update", .shaders = update_shaders, .refuses = refuses_update, .split = split_update,
    .cost_ns = cost_update, .plan = plan_update },
  { .op = TM_OP_ATTENTION, .formats = { TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32, INDICES,
                                        F32_BIT | KERNEL_FORMAT_BIT(TM_FORMAT_BOOL), TM_FORMAT_F32 },
    .attribute_bytes = sizeof(tm_attention_attributes), CLOSE, .growth = TM_GROWTH_LINEAR, .numerics_bound = ATTENTION_BOUND,
    .name = "webgpu_attention_f32", .shaders = attention_shaders, .refuses = refuses_attention, .split = split_attention, .cost_ns = cost_attention,
    .workspace_bytes = attention_workspace, .plan = plan_attention },
};

const kernel_row_table webgpu_rows_tokens = { rows, sizeof rows / sizeof rows[0] };
