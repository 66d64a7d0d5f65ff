/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/size_walk.h"

#include "base/checked.h"

/* What the steps are, one kind behind the other. */
#define LARGE_STEPS 2u
#define PLAIN_STEPS 16u                 /* four sizes, each without weights and with them in three ways */
#define RANK_STEPS 42u                  /* ranks 2 to 8 in each layout */
#define TAIL_STEPS 65u                  /* 0 to 64, behind multiples of 256 */
#define SMALL_STEPS 64u                 /* 1 to 64 */
#define EDGES ((uint32_t)(sizeof edges / sizeof edges[0]))
#define STEPS (LARGE_STEPS + PLAIN_STEPS + RANK_STEPS + TAIL_STEPS + SMALL_STEPS + EDGES)
/* Neighbours in time are far from each other; without a divisor in common with STEPS, so that none is left out. */
#define STRIDE 89u
#define HUGE_STEPS 2u

static const uint64_t edges[] = { 127,  128,  129,  255,  511,  512,  513,   1023,  1024, 1025, 2047,
                                  2048, 2049, 4095, 4096, 4097, 8191, 8192,  8193,  65535, 65536, 65537 };
static const uint64_t large[] = { 70001, 140003 };
static const uint64_t huge[] = { 1000003, (UINT64_C(1) << 24) + 257 };

_Static_assert(STEPS % STRIDE != 0 && STEPS == 211, "a prime number of steps is walked with any stride");

/* ---- what a step is ---- */

typedef enum step_kind { KIND_LARGE, KIND_PLAIN, KIND_RANK, KIND_TAIL, KIND_SMALL, KIND_EDGE, KIND_HUGE } step_kind;

typedef struct step_place {
  step_kind kind;
  uint32_t  index;              /* within the kind */
} step_place;

static step_place place_of(uint32_t step) {
  static const uint32_t counts[] = { LARGE_STEPS, PLAIN_STEPS, RANK_STEPS, TAIL_STEPS, SMALL_STEPS, EDGES };
  uint32_t left = step * STRIDE % STEPS, kind = 0;
  if (step >= STEPS) return (step_place){ KIND_HUGE, step - STEPS };
  while (left >= counts[kind]) left -= counts[kind++];
  return (step_place){ (step_kind)kind, left };
}

uint32_t size_walk_count(bool has_huge) { return STEPS + (has_huge ? HUGE_STEPS : 0); }

bool size_walk_is_large(uint32_t step) {
  const step_place p = place_of(step);
  return p.kind == KIND_LARGE || p.kind == KIND_HUGE || (p.kind == KIND_EDGE && edges[p.index] >= 65535);
}

/* ---- dims ---- */

typedef enum family { FAMILY_FLAT, FAMILY_ROWS, FAMILY_PRODUCT, FAMILY_ROPE, FAMILY_ATTENTION } family;

static family family_of(uint32_t op) {
  switch (op) {
    case TM_OP_MATMUL:
    case TM_OP_MATMUL_SCALED: return FAMILY_PRODUCT;
    case TM_OP_ROPE: return FAMILY_ROPE;
    case TM_OP_ATTENTION: return FAMILY_ATTENTION;
    case TM_OP_TRANSPOSE:
    case TM_OP_GATHER:
    case TM_OP_UPDATE:
    case TM_OP_SOFTMAX:
    case TM_OP_LAYER_NORM:
    case TM_OP_RMS_NORM: return FAMILY_ROWS;
    default: return op >= TM_OP_SUM && op <= TM_OP_ARGMAX ? FAMILY_ROWS : FAMILY_FLAT;
  }
}

static void plan_dims(case_plan *plan, uint32_t rank, uint64_t first, uint64_t second, uint64_t third) {
  plan->rank = rank;
  plan->dims[0] = first;
  plan->dims[1] = second;
  plan->dims[2] = third;
}

/* Elements of the widest unit of the inputs' formats. */
static uint64_t unit_of(const combination *which) {
  uint64_t unit = 1;
  for (uint32_t i = 0; i <= which->inputs; i++) unit = tm_max_u64(unit, whole_blocks(which->formats[i], 1));
  return unit;
}

/* One extent is `size`, the others are small; of rows either their number or their length. */
static void plan_size(case_plan *plan, const combination *which, uint64_t size, uint32_t turn) {
  const uint64_t unit = unit_of(which), few = 2 + turn % 3;
  const family f = family_of(which->row->op);
  plan->variant = turn;
  if (f == FAMILY_FLAT) plan_dims(plan, 1, size < 256 ? size * unit : size, 0, 0);
  if (f == FAMILY_ROWS && turn % 2 == 0) plan_dims(plan, 2, few, size < 256 ? size * unit : size, 0);
  if (f == FAMILY_ROWS && turn % 2 == 1) plan_dims(plan, 2, size < 256 ? size : size / unit, few * unit, 0);
  if (f == FAMILY_ROWS) plan->variant = 0;
  if (f == FAMILY_ROPE) plan_dims(plan, 3, turn % 2 == 0 ? size : few, 2, turn % 2 == 0 ? few : tm_min_u64(size, 4096));
  if (f == FAMILY_ATTENTION) plan_dims(plan, 3, turn % 2 == 0 ? size : few, turn % 2 == 0 ? few : tm_min_u64(size, 4096), 8);
  if (f == FAMILY_PRODUCT && turn % 3 == 0) plan_dims(plan, 2, size, few, few);
  if (f == FAMILY_PRODUCT && turn % 3 == 1) plan_dims(plan, 2, few, size, few);
  if (f == FAMILY_PRODUCT && turn % 3 == 2) plan_dims(plan, 2, few, few, size);
}

/* All extents of a product have tails, and never the same ones. */
static void plan_tail(case_plan *plan, const combination *which, uint32_t tail, uint64_t base, uint32_t turn) {
  if (family_of(which->row->op) != FAMILY_PRODUCT) {
    plan_size(plan, which, base + tail, turn);
    return;
  }
  const uint64_t least = base == 0 ? 0 : 32;
  plan_dims(plan, 2, least + tail, least + 1 + (tail * 27 + 5) % 64, least + 1 + (tail * 11 + 3) % 64);
  plan->variant = turn;
}

static void plan_plain(case_plan *plan, const combination *which, uint32_t index) {
  static const uint64_t sizes[] = { 64, 128, 256, 1024 };
  const family f = family_of(which->row->op);
  const uint64_t size = sizes[index / 4];
  plan->variant = index / 4;
  if (f == FAMILY_PRODUCT) plan_dims(plan, 2, 16u << (index / 4), 128, 64);
  else if (f == FAMILY_ROPE || f == FAMILY_ATTENTION) plan_dims(plan, 3, 32, 32, 32);
  else if (index / 4 % 2 == 0) plan_dims(plan, 1, size, 0, 0);
  else plan_dims(plan, 2, 16, size, 0);
}

static void plan_large(case_plan *plan, const combination *which, uint64_t size, uint32_t turn) {
  const family f = family_of(which->row->op);
  plan_size(plan, which, size, turn);
  if (f == FAMILY_ATTENTION) plan_dims(plan, 3, tm_min_u64(size, 140000) / 140, 40, 32);
  if (f == FAMILY_ROPE) plan_dims(plan, 3, size / 4, 2, 2);
  if (f == FAMILY_PRODUCT && turn != 0) plan_dims(plan, 2, size / 265, 17, 266);
}

/* ---- ranks ---- */

static void plan_rank(case_plan *plan, const combination *which, uint32_t rank) {
  static const uint64_t dims[][TM_MAX_RANK] = {
    { 37, 41 }, { 11, 13, 17 }, { 5, 6, 7, 9 }, { 3, 4, 5, 4, 6 }, { 3, 2, 4, 3, 4, 5 }, { 2, 3, 2, 4, 2, 3, 5 }, { 2, 3, 2, 2, 3, 2, 3, 5 },
  };
  plan->rank = rank;
  memcpy(plan->dims, dims[rank - 2], sizeof plan->dims);
  if (family_of(which->row->op) == FAMILY_PRODUCT) plan_dims(plan, rank, 9, 10, 7);
  if (family_of(which->row->op) == FAMILY_ROPE || family_of(which->row->op) == FAMILY_ATTENTION)
    plan_dims(plan, 3 + rank % 2, 3 + rank, 4, 3 + rank);
}

/* Room for one element behind each axis: no two of them are one. */
static void pad(tm_operand *operand) {
  const tm_format_info *info = tm_format_find(operand->format);
  const tm_operand dense = *operand;
  int64_t stride = info->block_bytes;
  if (operand->rank == 0 || operand->element_count == 0) return;
  for (uint32_t i = operand->rank; i-- > 0;) {
    const uint64_t steps = i + 1 == operand->rank ? operand->dims[i] / info->block_elements : operand->dims[i];
    operand->strides_bytes[i] = stride;
    stride = stride * (int64_t)steps + info->block_bytes;
  }
  if (tm_operand_derive(operand, NULL) != TM_OK) *operand = dense;
}

static void turn_round(tm_operand *operand) {
  const tm_operand dense = *operand;
  if (operand->rank < 2 || operand->element_count == 0 || tm_format_find(operand->format)->block_elements != 1) return;
  reverse_strides(operand, tm_format_find(operand->format)->block_bytes);
  if (tm_operand_derive(operand, NULL) != TM_OK) *operand = dense;
}

typedef enum layout { LAYOUT_PADDED, LAYOUT_THIN_LAST, LAYOUT_TURNED, LAYOUT_THIN_ALL, LAYOUT_PADDED_INPUTS, LAYOUT_DENSE, LAYOUTS } layout;

static uint32_t thin_mask(layout l, uint32_t inputs) {
  if (inputs < 2) return 0;
  return l == LAYOUT_THIN_LAST ? 1u << (inputs - 1) : l == LAYOUT_THIN_ALL ? (1u << inputs) - 1 : 0;
}

static void lay_out(question *q, layout l) {
  const uint32_t inputs = q->c.operation.input_count;
  for (uint32_t i = 0; i < inputs && (l == LAYOUT_PADDED || l == LAYOUT_PADDED_INPUTS); i++) pad(&q->c.operands[i]);
  for (uint32_t i = 0; i < inputs && l == LAYOUT_TURNED; i++) turn_round(&q->c.operands[i]);
  if (l == LAYOUT_PADDED) pad(&q->c.operands[inputs]);
}

/* ---- a step ---- */

/* About weights: none, all but the first input, all but the last, all but the second. */
static void weigh(question *q, uint32_t kind) {
  const uint32_t inputs = q->c.operation.input_count, but[] = { 0, 0, inputs - 1, 1 };
  if (inputs > 1 && kind % 4 != 0) question_make_constant(q, but[kind % 4]);
}

static void plan_step(case_plan *plan, const combination *which, step_place p) {
  const uint32_t i = p.index;
  switch (p.kind) {
    case KIND_LARGE: plan_large(plan, which, large[i], 1 - i); break;
    case KIND_PLAIN: plan_plain(plan, which, i); break;
    case KIND_RANK: plan_rank(plan, which, 2 + i / LAYOUTS); break;
    case KIND_TAIL: plan_tail(plan, which, i, 256 * (1 + (uint64_t)i % 3), i); break;
    case KIND_SMALL: plan_tail(plan, which, 1 + i, 0, i); break;
    case KIND_EDGE: plan_size(plan, which, edges[i], edges[i] < 65535 ? i : 1); break;
    default: plan_large(plan, which, huge[i], 1 - i % 2); break;
  }
  if (p.kind == KIND_RANK) plan->thin = thin_mask((layout)(i % LAYOUTS), which->inputs);
  if (p.kind == KIND_RANK) plan->variant = i;
}

/* Of a way behind the first: products with weights, second factor as it is and transposed, then without. */
static void choose_way(case_plan *plan, const combination *which, uint32_t way, uint32_t *inout_kind) {
  if (way == 0) return;
  if (family_of(which->row->op) == FAMILY_PRODUCT) plan->variant = way == 2 ? 2 : 0;
  *inout_kind = way == 3 ? 0 : 1;
}

bool size_walk_make(question *q, const combination *which, uint32_t number, uint64_t seed) {
  const uint32_t step = (number - SIZE_WALK_FIRST) % SIZE_WALK_WAY, way = (number - SIZE_WALK_FIRST) / SIZE_WALK_WAY;
  const step_place p = place_of(step);
  uint64_t state = seed;
  case_plan plan = { .rank = 0 };
  uint32_t weights = p.kind == KIND_PLAIN ? p.index : step / 4;
  if (step >= size_walk_count(true) || (way != 0 && which->inputs == 1 && which->row->attribute_bytes == 0)) return false;
  plan_step(&plan, which, p);
  choose_way(&plan, which, way, &weights);
  if (!question_make_planned(q, which, &plan, &state)) return false;
  if (p.kind == KIND_RANK) lay_out(q, (layout)(p.index % LAYOUTS));
  weigh(q, weights);
  return question_settle(q);
}
