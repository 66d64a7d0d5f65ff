/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_cases.h - random operations for tests of kernels: shapes, attributes and layouts by a table of rules, one an
 * operation, and operand data of several tempers.  Everything follows from the seed.
 */
#ifndef KERNEL_CASES_H
#define KERNEL_CASES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op_table.h"
#include "tensor/codec.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define CASE_MAX_OPERANDS 8u
#define CASE_GUARD_BYTES 64u
#define CASE_GUARD 0xa5

static inline bool case_is_guard(const unsigned char *bytes, uint64_t count) {
  return count == 0 || (bytes[0] == CASE_GUARD && memcmp(bytes, bytes + 1, (size_t)(count - 1)) == 0);
}

/* Dims that are wanted, where they are not left to luck. */
typedef struct case_plan {
  uint32_t rank;                /* of the first input; 0: all is left to luck */
  uint32_t thin;                /* mask of inputs of which every other axis has the extent 1; broadcasting operations only */
  uint32_t variant;             /* of the attributes: lowest bits of products the transposes, of others 0 the last axis */
  uint64_t dims[TM_MAX_RANK];   /* of products m, k, n; of attention tokens, keys, elements; of rope tokens, heads, halves */
} case_plan;

typedef struct kernel_case {
  tm_operation operation;
  tm_operand   operands[CASE_MAX_OPERANDS];
  case_plan    plan;
  union {
    tm_transpose_attributes     transpose;
    tm_axis_attributes          axis;
    tm_cast_attributes          cast;
    tm_compare_attributes       compare;
    tm_gelu_attributes          gelu;
    tm_reduce_attributes        reduce;
    tm_matmul_attributes        matmul;
    tm_matmul_scaled_attributes scaled;
    tm_norm_attributes          norm;
    tm_rope_attributes          rope;
    tm_attention_attributes     attention;
    tm_ties_attributes          ties;
    tm_magnitudes_attributes    magnitudes;
  } attributes;
} kernel_case;

/* ---- random numbers ---- */

static inline uint64_t random_u64(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}
static inline uint64_t random_below(uint64_t *state, uint64_t limit) { return random_u64(state) % limit; }

/* Log-uniform in [1, limit]. */
static inline uint64_t random_extent(uint64_t *state, uint64_t limit) {
  const double u = (double)(random_u64(state) >> 11) * 0x1p-53;
  const uint64_t extent = (uint64_t)exp(u * log((double)limit + 1));
  return extent < 1 ? 1 : extent > limit ? limit : extent;
}

/* ---- shapes ---- */

static inline uint64_t whole_blocks(uint32_t format, uint64_t extent) {
  const uint64_t block = tm_format_find(format)->block_elements;
  return (extent + block - 1) / block * block;
}

/* Whether something is left to luck that a plan leaves as it is in its first variant. */
static inline bool varies(const kernel_case *c) { return c->plan.rank == 0 || c->plan.variant != 0; }

/* Extents of about `limit` elements in all, or as planned; the last one fills whole blocks of all inputs. */
static inline uint32_t random_dims(kernel_case *c, uint64_t *state, uint32_t least_rank, uint64_t limit, uint64_t *dims) {
  const bool is_planned = c->plan.rank != 0;
  const uint32_t rank = is_planned ? c->plan.rank : least_rank + (uint32_t)random_below(state, 5 - least_rank);
  uint64_t left = is_planned ? 0 : random_extent(state, limit);
  if (is_planned) memcpy(dims, c->plan.dims, sizeof c->plan.dims);
  for (uint32_t i = 0; i < rank && !is_planned; ++i) {
    dims[i] = i + 1 == rank ? left : random_extent(state, left);
    left /= dims[i];
    if (left == 0) left = 1;
  }
  for (uint32_t i = 0; rank > 0 && i < c->operation.input_count; ++i) {
    dims[rank - 1] = whole_blocks(c->operands[i].format, dims[rank - 1]);
  }
  return rank;
}

static inline bool make_operand(kernel_case *c, uint32_t index, uint32_t rank, const uint64_t *dims) {
  if (rank == 0 && tm_format_find(c->operands[index].format)->block_elements > 1) return false;
  return tm_operand_contiguous(c->operands[index].format, rank, dims, &c->operands[index], NULL) == TM_OK;
}

/* Every other axis of some inputs is thin, so that no two of them can be taken as one. */
static inline bool make_planned(kernel_case *c) {
  uint64_t dims[TM_MAX_RANK];
  const uint32_t rank = random_dims(c, NULL, 0, 0, dims);
  const bool broadcasts = tm_op_find(c->operation.op)->broadcasts;
  for (uint32_t i = 0; i < c->operation.input_count; ++i) {
    uint64_t own[TM_MAX_RANK];
    for (uint32_t axis = 0; axis < rank; ++axis)
      own[axis] = broadcasts && (c->plan.thin >> i & 1u) != 0 && (axis + i) % 2 == 0 ? 1 : dims[axis];
    if (!make_operand(c, i, rank, own)) return false;
  }
  return true;
}

static inline bool shape_same(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  if (c->plan.rank != 0) return make_planned(c);
  const uint32_t rank = random_dims(c, state, 0, limit, dims);
  const bool broadcasts = tm_op_find(c->operation.op)->broadcasts && random_below(state, 3) == 0;
  for (uint32_t i = 0; i < c->operation.input_count; ++i) {
    uint64_t own[TM_MAX_RANK];
    memcpy(own, dims, sizeof own);
    uint32_t skipped = 0;
    if (broadcasts && rank > 0 && random_below(state, 2) == 0) {
      const uint32_t axis = (uint32_t)random_below(state, rank);
      if (random_below(state, 3) == 0) skipped = axis + 1;
      else own[axis] = 1;
    }
    if (!make_operand(c, i, rank - skipped, own + skipped)) return false;
  }
  return true;
}

static inline bool shape_blocks(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  const uint32_t rank = random_dims(c, state, 1, limit, dims);
  dims[rank - 1] = whole_blocks(TM_FORMAT_Q8_0, dims[rank - 1]);
  return make_operand(c, 0, rank, dims);
}

static inline bool shape_cast(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  const uint32_t rank = random_dims(c, state, 1, limit, dims);
  if (c->plan.rank == 0) dims[rank - 1] += dims[rank - 1] % 2;
  else if (c->operands[1].format != TM_FORMAT_NONE) dims[rank - 1] = whole_blocks(c->operands[1].format, dims[rank - 1]);
  c->attributes.cast.saturate = (uint32_t)random_below(state, 2);
  return make_operand(c, 0, rank, dims);
}

static inline bool shape_transpose(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  const uint32_t rank = random_dims(c, state, 1, limit, dims);
  uint8_t *order = c->attributes.transpose.permutation;
  for (uint32_t i = 0; i < rank; ++i) order[i] = (uint8_t)i;
  const uint32_t movable = tm_format_find(c->operands[0].format)->block_elements > 1 ? rank - 1 : rank;
  for (uint32_t i = movable; i > 1; --i) {
    const uint64_t j = random_below(state, i);
    const uint8_t swap = order[i - 1];
    order[i - 1] = order[j];
    order[j] = swap;
  }
  return make_operand(c, 0, rank, dims);
}

static inline bool shape_gather(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK], indices[2];
  const uint32_t rank = random_dims(c, state, 1, limit, dims);
  c->attributes.axis.axis = varies(c) ? (uint32_t)random_below(state, rank) : 0;
  for (int i = 0; i < 2; ++i) indices[i] = varies(c) ? random_extent(state, 8 + limit / 4096) : i == 0 ? dims[0] : 1;
  return make_operand(c, 0, rank, dims) && make_operand(c, 1, (uint32_t)random_below(state, 3), indices);
}

static inline bool shape_fill(kernel_case *c, uint64_t *state, uint64_t limit) {
  tm_operand *y = &c->operands[1];
  uint64_t dims[TM_MAX_RANK];
  y->format = c->operands[0].format;
  y->rank = random_dims(c, state, 1, limit, dims);
  memcpy(y->dims, dims, y->rank * sizeof *dims);
  return make_operand(c, 0, 0, NULL);
}

static inline bool shape_compare(kernel_case *c, uint64_t *state, uint64_t limit) {
  c->attributes.compare.predicate = (uint32_t)random_below(state, 6);
  return shape_same(c, state, limit);
}

static inline bool shape_gelu(kernel_case *c, uint64_t *state, uint64_t limit) {
  c->attributes.gelu.tanh_form = (uint32_t)random_below(state, 2);
  return shape_same(c, state, limit);
}

/* Now and then one long row, or a few of them, which threads share. */
static inline bool shape_reduce(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  uint32_t rank = random_dims(c, state, 1, limit, dims);
  if (c->plan.rank == 0 && random_below(state, 8) == 0) {
    rank = 1 + (uint32_t)random_below(state, 2);
    dims[0] = 1 + random_below(state, 2);
    dims[rank - 1] = limit - random_below(state, 1000);
  }
  const uint32_t one = 1u << (varies(c) ? random_below(state, rank) : rank - 1);
  const uint32_t some =
      !varies(c) || c->operation.op == TM_OP_ARGMAX || random_below(state, 2) ? one
                                                                             : one | (uint32_t)random_below(state, 1u << rank);
  c->attributes.reduce = (tm_reduce_attributes){ some, (uint32_t)random_below(state, 2) };
  return make_operand(c, 0, rank, dims);
}

static inline bool shape_axis(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  const uint32_t rank = random_dims(c, state, 1, limit, dims);
  c->attributes.axis.axis = !varies(c) || random_below(state, 2) ? rank - 1 : (uint32_t)random_below(state, rank);
  return make_operand(c, 0, rank, dims);
}

static inline bool shape_norm(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  const uint32_t rank = random_dims(c, state, 1, limit, dims);
  c->attributes.norm.epsilon = random_below(state, 2) ? 1e-5 : 0.1;
  for (uint32_t i = 1; i < c->operation.input_count; ++i) {
    if (!make_operand(c, i, 1, &dims[rank - 1])) return false;
  }
  return make_operand(c, 0, rank, dims);
}

/* A product with the planned extents: two dims, and batches of two before them up to the rank. */
static inline bool make_product(kernel_case *c, const uint32_t *transposed) {
  const uint64_t m = c->plan.dims[0], n = c->plan.dims[2];
  const uint64_t k = whole_blocks(c->operands[0].format, whole_blocks(c->operands[1].format, c->plan.dims[1]));
  const uint32_t batches = c->plan.rank - 2;
  uint64_t a[TM_MAX_RANK], b[TM_MAX_RANK];
  for (uint32_t i = 0; i < batches; ++i) {
    a[i] = 2;
    b[i] = (c->plan.thin >> 1 & 1u) != 0 && i % 2 == 0 ? 1 : 2;
  }
  a[batches] = transposed[0] ? k : m;
  a[batches + 1] = transposed[0] ? m : k;
  b[batches] = transposed[1] ? n : k;
  b[batches + 1] = transposed[1] ? k : n;
  return make_operand(c, 0, c->plan.rank, a) && make_operand(c, 1, c->plan.rank, b);
}

/* a and b of a product with at most about `limit` multiplications; both attribute structs start with the transposes. */
static inline bool shape_matmul(kernel_case *c, uint64_t *state, uint64_t limit) {
  const uint64_t side = (uint64_t)cbrt((double)limit * 32);
  uint64_t m = random_extent(state, side), n = random_extent(state, side), k = random_extent(state, side);
  for (uint32_t i = 0; i < 2; ++i) k = whole_blocks(c->operands[i].format, k);
  uint32_t transposed[2];
  for (uint32_t i = 0; i < 2; ++i) transposed[i] = c->plan.rank != 0 ? c->plan.variant >> i & 1u : (uint32_t)random_below(state, 2);
  if (tm_format_find(c->operands[0].format)->block_elements > 1) transposed[0] = 0;
  if (tm_format_find(c->operands[1].format)->block_elements > 1) transposed[1] = 1;
  c->attributes.matmul = (tm_matmul_attributes){ transposed[0], transposed[1] };
  if (c->plan.rank != 0) return make_product(c, transposed);
  const uint64_t batch = random_extent(state, 3);
  const uint64_t a[] = { batch, transposed[0] ? k : m, transposed[0] ? m : k };
  const uint64_t b[] = { random_below(state, 2) ? batch : 1, transposed[1] ? n : k, transposed[1] ? k : n };
  const uint32_t skipped = (uint32_t)random_below(state, 2);
  return make_operand(c, 0, 3 - skipped, a + skipped) && make_operand(c, 1, 3 - skipped, b + skipped);
}

/* Scales: one for the tensor, one a row of a or column of b, or one a block of K. */
static inline bool shape_scaled(kernel_case *c, uint64_t *state, uint64_t limit) {
  if (!shape_matmul(c, state, limit)) return false;
  c->attributes.scaled.zero_points = c->operation.input_count == 6;
  for (uint32_t i = 0; i < 2; ++i) {
    const tm_operand *x = &c->operands[i];
    uint64_t dims[TM_MAX_RANK] = { 1, 1, 1 };
    const uint32_t kind = (uint32_t)random_below(state, 3);
    const uint32_t axis = x->rank - 1 - (uint32_t)random_below(state, 2);
    if (kind == 1) dims[axis] = x->dims[axis];
    if (kind == 2) dims[axis] = x->dims[axis] % 4 == 0 ? x->dims[axis] / 4 : 1;
    const uint32_t rank = kind == 0 ? 0 : x->rank;
    if (!make_operand(c, 2 + i, rank, dims)) return false;
    if (c->operation.input_count == 6 && !make_operand(c, 4 + i, rank, dims)) return false;
  }
  return true;
}

static inline bool shape_rope(kernel_case *c, uint64_t *state, uint64_t limit) {
  const bool is_planned = c->plan.rank != 0;
  const uint64_t *plan = c->plan.dims;
  const uint64_t half = is_planned ? plan[2] : random_extent(state, 64), heads = is_planned ? plan[1] : random_extent(state, 12);
  const uint64_t batch = is_planned ? c->plan.rank - 2 : random_extent(state, 3);
  const uint64_t tokens = is_planned ? plan[0] : random_extent(state, 1 + limit / (2 * half * heads * batch));
  const uint64_t dims[] = { batch, tokens, heads, 2 * half };
  const uint32_t skipped = random_below(state, 2) ? 1 : 0;
  static const double thetas[] = { 0, 10000, 500000, 2 }, scales[] = { 0, 1, 0.25, 0.001 };
  c->attributes.rope = (tm_rope_attributes){
    .theta = thetas[random_below(state, 4)],
    .scale = scales[random_below(state, 4)],
    .rotary_dims = random_below(state, 2) ? 0 : 2 * (uint32_t)(1 + random_below(state, half)),
    .layout = (uint32_t)random_below(state, 2),
  };
  return make_operand(c, 0, 4 - skipped, dims + skipped) && make_operand(c, 1, 1, &tokens);
}

static inline bool shape_update(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  const uint32_t rank = random_dims(c, state, 1, limit, dims);
  const uint32_t axis = (uint32_t)random_below(state, rank);
  c->attributes.axis.axis = axis;
  if (!make_operand(c, 0, rank, dims)) return false;
  const uint64_t count = dims[axis] = random_extent(state, 8);
  return make_operand(c, 1, rank, dims) && make_operand(c, 2, (uint32_t)random_below(state, 2), &count);
}

/* A quarter of the cases is one token, as when text is made. */
static inline bool shape_attention(kernel_case *c, uint64_t *state, uint64_t limit) {
  const uint64_t side = (uint64_t)cbrt((double)limit);
  const uint64_t shared = random_extent(state, 4), heads = shared * random_extent(state, 4), batch = random_extent(state, 3);
  const bool is_planned = c->plan.rank != 0;
  const uint64_t *plan = c->plan.dims;
  const uint64_t tokens = is_planned ? plan[0] : random_below(state, 4) == 0 ? 1 : random_extent(state, side);
  const uint64_t capacity = is_planned ? plan[1] : random_extent(state, 2 * side);
  const uint64_t dim = is_planned ? plan[2] : random_extent(state, 64);
  const uint64_t width = random_below(state, 2) ? dim : random_extent(state, 80);
  const uint64_t q[] = { batch, tokens, heads, dim }, k[] = { batch, capacity, shared, dim }, v[] = { batch, capacity, shared, width };
  const uint32_t skipped = random_below(state, 3) ? 1 : 0, mask_rank = 2 + (uint32_t)random_below(state, 3 - skipped);
  uint64_t mask[] = { batch, heads, tokens, capacity };
  for (uint32_t i = 0; i < 4; ++i)
    if (random_below(state, 3) == 0) mask[i] = 1;
  c->attributes.attention = (tm_attention_attributes){ random_below(state, 2) ? 0.0 : 0.125, (uint32_t)random_below(state, 2), 0 };
  return make_operand(c, 0, 4 - skipped, q + skipped) && make_operand(c, 1, 4 - skipped, k + skipped) &&
         make_operand(c, 2, 4 - skipped, v + skipped) && make_operand(c, 3, 0, NULL) &&
         (c->operation.input_count < 5 || make_operand(c, 4, mask_rank, mask + 4 - mask_rank));
}

/* All inputs alike but the second, which holds numbers that go with the others. */
static inline bool shape_merge(kernel_case *c, uint64_t *state, uint64_t limit) {
  uint64_t dims[TM_MAX_RANK];
  const uint64_t others = c->operation.input_count - 2;
  const uint64_t settings = c->operation.op == TM_OP_DARE_SUM   ? 1 + TM_DARE_WORDS * others
                            : c->operation.op == TM_OP_TIES_SUM ? 1 + 2 * others
                                                                : 1 + others;
  const uint32_t rank = random_dims(c, state, 0, limit, dims);
  if (c->operation.op == TM_OP_TIES_SUM) c->attributes.ties.sum = (uint32_t)random_below(state, 2);
  for (uint32_t i = 0; i < c->operation.input_count; ++i)
    if (i != 1 && !make_operand(c, i, rank, dims)) return false;
  return make_operand(c, 1, 1, &settings);
}

/* The upper bits of magnitudes of ordinary size. */
static inline bool shape_magnitudes(kernel_case *c, uint64_t *state, uint64_t limit) {
  if (!shape_same(c, state, limit)) return false;
  const uint32_t near_one = UINT32_C(0x3f800000) >> TM_MAGNITUDE_LOW_BITS;
  if (random_below(state, 2)) return true;
  c->attributes.magnitudes = (tm_magnitudes_attributes){ 1, near_one - 256 + (uint32_t)random_below(state, 512) };
  return true;
}

typedef struct shape_rule {
  uint32_t op;
  bool   (*shape)(kernel_case *c, uint64_t *state, uint64_t limit);
} shape_rule;

/* What is not listed takes inputs of equal dims. */
static const shape_rule shape_rules[] = {
  { TM_OP_TRANSPOSE, shape_transpose }, { TM_OP_GATHER, shape_gather },   { TM_OP_FILL, shape_fill },
  { TM_OP_CAST, shape_cast },           { TM_OP_QUANTIZE, shape_blocks }, { TM_OP_DEQUANTIZE, shape_blocks },
  { TM_OP_COMPARE, shape_compare },     { TM_OP_GELU, shape_gelu },       { TM_OP_SUM, shape_reduce },
  { TM_OP_MEAN, shape_reduce },         { TM_OP_MIN, shape_reduce },      { TM_OP_MAX, shape_reduce },
  { TM_OP_ARGMAX, shape_reduce },       { TM_OP_MATMUL, shape_matmul },   { TM_OP_MATMUL_SCALED, shape_scaled },
  { TM_OP_SOFTMAX, shape_axis },        { TM_OP_LAYER_NORM, shape_norm }, { TM_OP_RMS_NORM, shape_norm },
  { TM_OP_ROPE, shape_rope },           { TM_OP_UPDATE, shape_update },   { TM_OP_ATTENTION, shape_attention },
  { TM_OP_WEIGHTED_SUM, shape_merge },  { TM_OP_DARE_SUM, shape_merge },  { TM_OP_TIES_SUM, shape_merge },
  { TM_OP_MAGNITUDES, shape_magnitudes },
};

static inline bool case_merges(uint32_t op) { return op >= TM_OP_WEIGHTED_SUM && op <= TM_OP_TIES_SUM; }

/* The most inputs that are worth trying: of those of which there may be many one more than must be. */
static inline uint32_t case_most_inputs(const tm_op_row *row) {
  return row->input_max >= CASE_MAX_OPERANDS ? row->input_min + 1 : row->input_max;
}

/* Formats of the inputs from the third on, which follow from the first two: indices of either width, masks of either kind,
   scales and zero points; of what is merged one like the first, then another; others are like the second. */
static inline void case_fill_formats(const tm_op_row *row, uint32_t inputs, uint32_t *formats) {
  const uint32_t index_format = formats[0] % 2 == 0 ? TM_FORMAT_I64 : TM_FORMAT_I32;
  for (uint32_t i = 2; i < inputs; ++i) {
    formats[i] = formats[1];
    if (case_merges(row->op)) formats[i] = i == 2 ? formats[0] : TM_FORMAT_BF16;
    if (row->op == TM_OP_MATMUL_SCALED) formats[i] = i < 4 ? TM_FORMAT_F32 : TM_FORMAT_I32;
    if (row->op == TM_OP_UPDATE || (row->op == TM_OP_ATTENTION && i == 3)) formats[i] = index_format;
    if (row->op == TM_OP_ATTENTION && i == 4) formats[i] = formats[0] == formats[1] ? TM_FORMAT_F32 : TM_FORMAT_BOOL;
  }
}

/* Fills *c for an operation with these formats (inputs, then the output or TM_FORMAT_NONE), the planned dims or about
   `limit` elements; false if the operation does not take them. */
static inline bool case_make_planned(kernel_case *c, const tm_op_row *row, uint32_t inputs, const uint32_t *formats,
                                     const case_plan *plan, uint64_t limit, uint64_t *state) {
  memset(c, 0, sizeof *c);
  c->plan = *plan;
  c->operation = (tm_operation){
    .struct_size = sizeof c->operation, .op = row->op, .version = row->version, .worst_numerics = TM_NUMERICS_N4,
    .attribute_bytes = row->attribute_bytes, .input_count = inputs, .output_count = 1, .operands = c->operands,
    .attributes = row->attribute_bytes > 0 ? &c->attributes : NULL,
  };
  for (uint32_t i = 0; i <= inputs; ++i) c->operands[i].format = formats[i];
  bool (*shape)(kernel_case *, uint64_t *, uint64_t) = shape_same;
  for (size_t i = 0; i < sizeof shape_rules / sizeof shape_rules[0]; ++i) {
    if (shape_rules[i].op == row->op) shape = shape_rules[i].shape;
  }
  if (!shape(c, state, limit)) return false;
  return tm_op_infer_outputs(&c->operation, &c->operands[inputs], NULL) == TM_OK;
}

static inline bool case_make(kernel_case *c, const tm_op_row *row, uint32_t inputs, const uint32_t *formats, uint64_t limit,
                             uint64_t *state) {
  const case_plan none = { .rank = 0 };
  return case_make_planned(c, row, inputs, formats, &none, limit, state);
}

/* The strides of a dense tensor whose axes stand in reverse order, so a transposed view. */
static inline void reverse_strides(tm_operand *operand, uint32_t element_bytes) {
  uint64_t stride = element_bytes;
  for (uint32_t i = 0; i < operand->rank; ++i) {
    operand->strides_bytes[i] = (int64_t)stride;
    stride *= operand->dims[i];
  }
}

static inline void case_transpose(tm_operand *operand) {
  reverse_strides(operand, tm_format_find(operand->format)->block_bytes);
  tm_operand_derive(operand, NULL);
}

/* Spreads a plain operand out: gaps between outer rows, every second element, transposed, or backwards. */
static inline void case_spread(tm_operand *operand, uint64_t *state) {
  const tm_format_info *info = tm_format_find(operand->format);
  if (operand->rank == 0 || operand->element_count == 0) return;
  const tm_operand dense = *operand;
  const uint32_t last = operand->rank - 1;
  switch (random_below(state, 4)) {
    case 0:
      for (uint32_t i = 0; i < last; ++i) operand->strides_bytes[i] *= 2;
      break;
    case 1:
      for (uint32_t i = 0; info->block_elements == 1 && i <= last; ++i) operand->strides_bytes[i] *= 2;
      break;
    case 2:
      if (info->block_elements == 1) reverse_strides(operand, info->block_bytes);
      break;
    default:
      if (last > 0 || info->block_elements == 1) operand->strides_bytes[0] = -operand->strides_bytes[0];
  }
  if (tm_operand_derive(operand, NULL) != TM_OK) *operand = dense;
}

/* ---- data ---- */

typedef enum temper { TEMPER_PLAIN, TEMPER_SPECIALS, TEMPER_BITS, TEMPER_CONSTANT, TEMPER_SCALED, TEMPER_COUNT } temper;

static inline double plain_value(uint64_t *state) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += (double)(random_u64(state) >> 11) * 0x1p-53;
  return (sum - 2) * 2;
}

#define CASE_SPECIALS 35u

/* Where arithmetic has a rule of its own: zeros, subnormal and largest numbers, infinities, ties. */
static inline double special_number(uint64_t index) {
  static const double specials[CASE_SPECIALS] = {
    0.0, -0.0, 1.0, -1.0, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffcp-127, 0x1.fffffep127, -0x1.fffffep127, 0x1p-1074, 0x1p-1022,
    0x1.fffffffffffffp1023, 65504.0, 65520.0, 0x1p-24, 0x1p-14, 448.0, 464.0, 0x1p-9, 57344.0, 2147483647.0, -2147483648.0,
    0x1p63, 127.5, -128.5, 0.5, 1.5, 2.5, 0x1p60, 0x1p-50, 0x1p-51,
    INFINITY, -INFINITY, NAN,
  };
  return specials[index % CASE_SPECIALS];
}

static inline double special_value(uint64_t *state) { return special_number(random_below(state, CASE_SPECIALS)); }

/* Whether special_element knows such elements. */
static inline bool has_specials(uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  if (info == NULL || info->block_elements != 1 || !info->has_arithmetic || tm_codec_find(format) == NULL) return false;
  return info->kind == TM_KIND_FLOAT || info->kind == TM_KIND_SIGNED || info->kind == TM_KIND_UNSIGNED;
}

/* One of CASE_SPECIALS of a format that has them: of integers the ends of their range, small ones and single bits. */
static inline void special_element(uint32_t format, uint64_t index, unsigned char *to) {
  const tm_format_info *info = tm_format_find(format);
  const uint64_t top = UINT64_C(1) << (8 * info->block_bytes - 1), which = index % CASE_SPECIALS;
  const uint64_t usual[] = { 0, 1, UINT64_MAX, top, top - 1, top + 1, 2, UINT64_MAX - 1, 3, 10, top >> 1 };
  const uint64_t count = sizeof usual / sizeof usual[0], bits = which < count ? usual[which] : UINT64_C(1) << (which - count);
  const double value = special_number(which);
  if (info->kind == TM_KIND_FLOAT) tm_codec_find(format)->encode(&value, 1, to);
  else memcpy(to, &bits, info->block_bytes);
}

/* One block of elements in `format` at `to`.  Scaled values reach `scale` often and never exceed it, so that limits on
   magnitudes are met exactly. */
static inline void random_block(uint32_t format, temper t, double scale, uint64_t *state, unsigned char *to) {
  const tm_format_info *info = tm_format_find(format);
  double values[256];
  for (uint32_t i = 0; i < info->block_bytes; ++i) to[i] = (unsigned char)random_u64(state);
  if (info->kind == TM_KIND_BLOCK) {
    /* Raw bits, but for a scale of ordinary size; special ones now and then. */
    const uint16_t odd[] = { 0x0000, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0x0001, 0x7bff };
    uint16_t bits = (uint16_t)(0x2000 | (random_u64(state) & 0x8fff));
    if (t != TEMPER_PLAIN && random_below(state, 8) == 0) bits = odd[random_below(state, 7)];
    memcpy(to, &bits, sizeof bits);
    return;
  }
  if (!info->has_arithmetic || t == TEMPER_BITS || (info->kind != TM_KIND_FLOAT && t != TEMPER_CONSTANT)) return;
  for (uint32_t i = 0; i < info->block_elements; ++i) {
    values[i] = t == TEMPER_CONSTANT                                  ? 1.25
                : t == TEMPER_SPECIALS && random_below(state, 8) == 0 ? special_value(state)
                                                                      : plain_value(state);
    if (t == TEMPER_SCALED) values[i] = fmax(-1, fmin(1, values[i])) * scale;
  }
  tm_codec_find(format)->encode(values, info->block_elements, to);
}

/* Memory of an operand: the whole buffer with guards, and the address of its first element. */
typedef struct case_buffer {
  unsigned char *memory;
  uint64_t       bytes;         /* of memory */
  unsigned char *first;
  unsigned char *lowest;        /* of what the operand touches */
} case_buffer;

static inline bool buffer_make(case_buffer *buffer, const tm_operand *operand, uint64_t misalignment) {
  const uint64_t below = tm_operand_bytes_below(operand);
  buffer->bytes = operand->byte_count + 2 * CASE_GUARD_BYTES + misalignment;
  buffer->memory = malloc(buffer->bytes);
  if (buffer->memory == NULL) return false;
  memset(buffer->memory, CASE_GUARD, buffer->bytes);
  buffer->lowest = buffer->memory + CASE_GUARD_BYTES + misalignment;
  buffer->first = buffer->lowest + below;
  return true;
}

/* Fills all bytes that the operand touches, gaps included. */
static inline void buffer_fill(const case_buffer *buffer, const tm_operand *operand, temper t, uint64_t *state) {
  static const double scales[] = { 0x1p-140, 0x1.fep-51, 0x1p-50, 0x1.fep59, 0x1p60, 0x1p100, 0x1p-16, 0x1p13 };
  const uint32_t step = tm_format_find(operand->format)->block_bytes;
  const double scale = t == TEMPER_SCALED ? scales[random_below(state, sizeof scales / sizeof scales[0])] : 1;
  for (uint64_t at = 0; at + step <= operand->byte_count; at += step)
    random_block(operand->format, t, scale, state, buffer->lowest + at);
}

/* The input that holds indices, positions or a length; UINT32_MAX if there is none. */
static inline uint32_t case_index_input(const kernel_case *c) {
  switch (c->operation.op) {
    case TM_OP_GATHER:
    case TM_OP_ROPE: return 1;
    case TM_OP_UPDATE: return 2;
    case TM_OP_ATTENTION: return 3;
    default: return UINT32_MAX;
  }
}

static inline bool case_is_index(const kernel_case *c, uint32_t input) {
  return input < CASE_MAX_OPERANDS && case_index_input(c) == input;
}

/* One past the last index that is inside. */
static inline uint64_t case_index_extent(const kernel_case *c) {
  const tm_operand *k = &c->operands[1];
  if (c->operation.op == TM_OP_ROPE) return 5000;
  return c->operation.op == TM_OP_ATTENTION ? k->dims[k->rank - 3] : c->operands[0].dims[c->attributes.axis.axis];
}

/* An index that is inside but for bits that a narrower integer has not: a negative one, or one far beyond. */
static inline int64_t case_far_index(int64_t inside, uint64_t *state) {
  static const uint32_t widths[] = { 8, 15, 16, 24, 31, 32, 33, 40, 48, 56 };
  const uint64_t added = (1 + random_below(state, 3)) << widths[random_below(state, sizeof widths / sizeof widths[0])];
  return random_below(state, 2) ? inside + (int64_t)added : inside - (int64_t)added;
}

/* Indices that are mostly inside, for that input at `lowest`; now and then anything, or what is inside once it is cut. */
static inline void case_fill_indices(const kernel_case *c, uint32_t input, unsigned char *lowest, uint64_t *state) {
  const tm_operand *indices = &c->operands[input];
  const uint64_t extent = case_index_extent(c);
  const uint32_t bytes = tm_format_find(indices->format)->block_bytes;
  for (uint64_t at = 0; at + bytes <= indices->byte_count; at += bytes) {
    const uint64_t kind = random_below(state, 16);
    int64_t index = (int64_t)random_below(state, extent + 3) - 1;
    if (kind == 1 || kind == 2) index = case_far_index(index, state);
    if (kind != 0) memcpy(lowest + at, &index, bytes);
  }
}

/* ---- settings of merges ---- */

static inline uint64_t case_bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline uint64_t case_weight(uint64_t *state) {
  static const double usual[] = { 0.5, 0.25, 1, 0, -1, 2 };
  if (random_below(state, 16) == 0) return case_bits_of(special_value(state));
  return case_bits_of(random_below(state, 2) ? usual[random_below(state, 6)] : plain_value(state));
}

/* Word `index` of the settings: numbers of ordinary size, thresholds that keep all, none or some. */
static inline uint64_t case_setting(uint32_t op, uint64_t index, uint64_t *state) {
  if (op == TM_OP_WEIGHTED_SUM) return case_weight(state);
  if (op == TM_OP_TIES_SUM) return index == 0 || index % 2 == 1 ? case_weight(state) : case_bits_of(fabs(plain_value(state)) / 4);
  if (index == 0) return random_below(state, 2) ? random_below(state, 100) : (UINT64_C(1) << 34) - random_below(state, 9000);
  const uint64_t thresholds[] = { 0, UINT64_C(1) << 32, random_u64(state), random_u64(state) >> 32, random_u64(state) >> 32 };
  switch ((index - 1) % TM_DARE_WORDS) {
    case TM_DARE_THRESHOLD: return thresholds[random_below(state, 5)];
    case TM_DARE_KEY: return random_u64(state);
    default: return case_weight(state);
  }
}

static inline void case_fill_settings(const kernel_case *c, unsigned char *lowest, uint64_t *state) {
  const tm_operand *settings = &c->operands[1];
  unsigned char *first = lowest + tm_operand_bytes_below(settings);
  for (uint64_t i = 0; i < settings->element_count; ++i) {
    const uint64_t word = case_setting(c->operation.op, i, state);
    memcpy(first + (int64_t)i * settings->strides_bytes[0], &word, sizeof word);
  }
}

/* What is not just any data, for that input at `lowest`. */
static inline void case_fill_special(const kernel_case *c, uint32_t input, unsigned char *lowest, uint64_t *state) {
  if (case_is_index(c, input)) case_fill_indices(c, input, lowest, state);
  if (case_merges(c->operation.op) && input == 1) case_fill_settings(c, lowest, state);
}

#endif
