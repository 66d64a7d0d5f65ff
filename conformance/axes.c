/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/axes.h"

#define LABEL_ROWS 0u
#define LABEL_COLUMNS 1u
#define LABEL_TERMS 2u
#define LABEL_BATCH 8u          /* and on: counted from the innermost */
#define LABEL_INDICES 32u       /* and on */

typedef void (*label_fn)(const kernel_case *c, axes *a);

static uint32_t count_of(const kernel_case *c) { return c->operation.input_count + 1; }

/* Aligned at the innermost, as broadcasting has it. */
static void label_aligned(const kernel_case *c, axes *a) {
  for (uint32_t i = 0; i < count_of(c); i++)
    for (uint32_t axis = 0; axis < c->operands[i].rank; axis++) a->labels[i][axis] = (uint8_t)(c->operands[i].rank - 1 - axis);
}

static void label_transpose(const kernel_case *c, axes *a) {
  for (uint32_t axis = 0; axis < c->operands[0].rank; axis++) {
    a->labels[0][axis] = (uint8_t)axis;
    a->labels[1][axis] = c->attributes.transpose.permutation[axis];
  }
}

static void label_gather(const kernel_case *c, axes *a) {
  const uint32_t along = c->attributes.axis.axis, added = c->operands[1].rank;
  for (uint32_t axis = 0; axis < c->operands[0].rank; axis++) {
    a->labels[0][axis] = (uint8_t)axis;
    if (axis != along) a->labels[2][axis < along ? axis : axis + added - 1] = (uint8_t)axis;
  }
  for (uint32_t axis = 0; axis < added; axis++) a->labels[1][axis] = a->labels[2][along + axis] = (uint8_t)(LABEL_INDICES + axis);
}

static void label_reduce(const kernel_case *c, axes *a) {
  const tm_reduce_attributes *reduce = &c->attributes.reduce;
  for (uint32_t axis = 0, y = 0; axis < c->operands[0].rank; axis++) {
    const bool is_reduced = (reduce->axes >> axis & 1u) != 0;
    a->labels[0][axis] = (uint8_t)axis;
    if (!is_reduced) a->labels[1][y] = (uint8_t)axis;
    if (!is_reduced || reduce->keep_dims) y++;
  }
}

/* The results of one pass over everything have no axis in common with what they are made from. */
static void label_one_pass(const kernel_case *c, axes *a) {
  for (uint32_t i = 0; i < c->operation.input_count; i++)
    for (uint32_t axis = 0; axis < c->operands[i].rank; axis++) a->labels[i][axis] = (uint8_t)axis;
}

static void label_factor(const kernel_case *c, axes *a, uint32_t operand, uint32_t outer, uint32_t inner) {
  const uint32_t rank = c->operands[operand].rank;
  for (uint32_t axis = 0; axis + 2 < rank; axis++) a->labels[operand][axis] = (uint8_t)(LABEL_BATCH + rank - 3 - axis);
  if (rank < 2) return;
  a->labels[operand][rank - 2] = (uint8_t)outer;
  a->labels[operand][rank - 1] = (uint8_t)inner;
}

/* Scales and zero points have the axes of their factor. */
static void label_product(const kernel_case *c, axes *a) {
  const uint32_t y = c->operation.input_count;
  for (uint32_t i = 0; i < y; i++) {
    const bool is_transposed = i % 2 == 0 ? c->attributes.matmul.transpose_a != 0 : c->attributes.matmul.transpose_b != 0;
    const uint32_t free_label = i % 2 == 0 ? LABEL_ROWS : LABEL_COLUMNS;
    if ((i % 2 == 0) != is_transposed) label_factor(c, a, i, free_label, LABEL_TERMS);
    else label_factor(c, a, i, LABEL_TERMS, free_label);
  }
  label_factor(c, a, y, LABEL_ROWS, LABEL_COLUMNS);
}

/* Positions go with the tokens. */
static void label_rope(const kernel_case *c, axes *a) {
  const uint32_t rank = c->operands[0].rank;
  for (uint32_t axis = 0; axis < rank; axis++) a->labels[0][axis] = a->labels[2][axis] = (uint8_t)axis;
  a->labels[1][0] = (uint8_t)(rank - 3);
}

/* The axis of the rows is none of the state's. */
static void label_update(const kernel_case *c, axes *a) {
  for (uint32_t axis = 0; axis < c->operands[0].rank; axis++) {
    a->labels[0][axis] = a->labels[3][axis] = (uint8_t)axis;
    if (axis != c->attributes.axis.axis) a->labels[1][axis] = (uint8_t)axis;
  }
  if (c->operands[2].rank != 0) a->labels[1][c->attributes.axis.axis] = a->labels[2][0] = LABEL_INDICES;
}

/* Counted from the last: elements of q and k, heads, tokens, batches; then keys, heads that are shared, elements of v. */
static void label_attention(const kernel_case *c, axes *a) {
  enum { ELEMENTS, HEADS, TOKENS, BATCHES, KEYS, SHARED, WIDTH };
  static const uint8_t q[] = { ELEMENTS, HEADS, TOKENS, BATCHES }, k[] = { ELEMENTS, SHARED, KEYS, BATCHES };
  static const uint8_t v[] = { WIDTH, SHARED, KEYS, BATCHES }, mask[] = { KEYS, TOKENS, HEADS, BATCHES };
  static const uint8_t none[] = { AXES_NONE }, y[] = { WIDTH, HEADS, TOKENS, BATCHES };
  const uint8_t *const order[] = { q, k, v, none, c->operation.input_count > 4 ? mask : y, y };
  for (uint32_t i = 0; i < count_of(c); i++)
    for (uint32_t axis = 0; axis < c->operands[i].rank; axis++) a->labels[i][axis] = order[i][c->operands[i].rank - 1 - axis];
}

/* The settings have an axis of their own. */
static void label_merge(const kernel_case *c, axes *a) {
  label_aligned(c, a);
  memset(a->labels[1], AXES_NONE, sizeof a->labels[1]);
}

static const struct { uint32_t op; label_fn label; } rules[] = {
  { TM_OP_TRANSPOSE, label_transpose }, { TM_OP_GATHER, label_gather }, { TM_OP_SUM, label_reduce }, { TM_OP_MEAN, label_reduce },
  { TM_OP_MIN, label_reduce }, { TM_OP_MAX, label_reduce }, { TM_OP_ARGMAX, label_reduce }, { TM_OP_STATS, label_one_pass },
  { TM_OP_COMPARE_TENSORS, label_one_pass }, { TM_OP_MATMUL, label_product }, { TM_OP_MATMUL_SCALED, label_product },
  { TM_OP_ROPE, label_rope }, { TM_OP_UPDATE, label_update }, { TM_OP_ATTENTION, label_attention },
  { TM_OP_WEIGHTED_SUM, label_merge }, { TM_OP_DARE_SUM, label_merge }, { TM_OP_TIES_SUM, label_merge },
  { TM_OP_MAGNITUDES, label_one_pass },
};

void axes_label(const kernel_case *c, axes *out_axes) {
  label_fn label = label_aligned;
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (rules[i].op == c->operation.op) label = rules[i].label;
  memset(out_axes, AXES_NONE, sizeof *out_axes);
  label(c, out_axes);
}
