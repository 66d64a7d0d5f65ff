/* SPDX-License-Identifier: Apache-2.0 */
/* Of several rows for one operation and format the first that the device can run is taken. */
#include "kernel_row.h"

#define BIT(name) KERNEL_FORMAT_BIT(TM_FORMAT_##name)
#define F8 (BIT(F8_E4M3FN) | BIT(F8_E5M2))
#define NARROW (BIT(F32) | BIT(F16) | BIT(BF16) | F8)           /* floats that an f32 holds */
#define USUAL (BIT(F32) | BIT(F16) | BIT(BF16))                 /* of what passes between operations */
#define SHORT (BIT(F16) | F8)                                   /* ... with products that an f32 holds */
#define FLOATS (NARROW | BIT(F64))
#define INTEGERS (BIT(I8) | BIT(U8) | BIT(I16) | BIT(U16) | BIT(I32) | BIT(U32) | BIT(I64) | BIT(U64))
#define NUMBERS (FLOATS | INTEGERS)
#define PLAIN (NUMBERS | BIT(BOOL))
#define BLOCKS (KERNEL_Q4_0_BIT | KERNEL_Q8_0_BIT)
#define WORDS (PLAIN | BIT(F8_E8M0))
#define KNOWN (WORDS | BIT(F6_E2M3) | BIT(F6_E3M2) | BIT(F4_E2M1) | BIT(I4) | BIT(U4) | BLOCKS | KERNEL_OTHER_BIT)

#define SAME KERNEL_SAME
#define ROUNDS KERNEL_ROUNDS_IN_F32
#define F64 KERNEL_NEEDS_F64
#define OVERFLOWS KERNEL_MAY_OVERFLOW
#define DENORMALS KERNEL_NEEDS_DENORMALS

#define RUNS(id, where, first, second, how)                                                                            \
  .op = TM_OP_##id, .level = TM_LEVEL_NATIVE, .name = first, .program = KERNEL_##where, .kernels = { first, second },  \
  .plan = kernel_plan_##how
#define ELEMENTWISE_RUNS(id, where, set, kernel)                                                                       \
  RUNS(id, where, kernel, NULL, elementwise), .formats = { set, SAME, SAME, SAME }

/* Bit-equal to the reference. */
#define EXACT(id, set, where, kernel, what) { ELEMENTWISE_RUNS(id, where, set, kernel), .needs = what }
/* Within `limit` ulp. */
#define CLOSE(id, set, where, kernel, what, limit)                                                                     \
  { ELEMENTWISE_RUNS(id, where, set, kernel), .needs = what, .numerics = TM_NUMERICS_N1, .numerics_bound = limit }
#define DIVISION(id, set, kernel, limit)                                                                               \
  { ELEMENTWISE_RUNS(id, ELEMENTWISE, set, kernel), .needs = ROUNDS | KERNEL_DIVIDES_IN_F32, .inexact_bound = limit }

/* f32 functions within the distances that the language allows them, one ulp more for the reference's own rounding; narrower
   formats hide all of it but the last rounding. */
#define FUNCTION(id, set, where, what, limit, bytes)                                                                   \
  { ELEMENTWISE_RUNS(id, where, set, "transcendental"), .needs = what, .numerics = TM_NUMERICS_N1,                     \
    .numerics_bound = limit, .attribute_bytes = bytes }
#define TRANSCENDENTAL(id, limit)                                                                                      \
  FUNCTION(id, BIT(F32), TRANSCENDENTAL, ROUNDS, limit, 0),                                                            \
  FUNCTION(id, NARROW & ~BIT(F32), TRANSCENDENTAL, ROUNDS, 1, 0),                                                      \
  FUNCTION(id, BIT(F64), TRANSCENDENTAL_F64, F64, limit, 0)
/* Whose tails would lose more than that in f32: an f32 is computed in f64. */
#define TAILED(id, limit, bytes)                                                                                       \
  FUNCTION(id, NARROW & ~BIT(F32), TRANSCENDENTAL, ROUNDS, 1, bytes),                                                  \
  FUNCTION(id, BIT(F32), TRANSCENDENTAL_F64, F64 | ROUNDS, 1, bytes),                                                  \
  FUNCTION(id, BIT(F64), TRANSCENDENTAL_F64, F64, limit, bytes)

#define MOVE(id, bytes)                                                                                                \
  { RUNS(id, MOVE, "move_units", NULL, move), .formats = { KNOWN, SAME }, .attribute_bytes = bytes }

#define REDUCE(id, where, set, out, what, parts, whole)                                                                \
  { RUNS(id, where, parts, whole, reduce), .formats = { set, out }, .needs = what,                                     \
    .attribute_bytes = sizeof(tm_reduce_attributes) }
#define NARROW_SUM(id)                                                                                                 \
  { RUNS(id, REDUCE, "sum_parts", "sum_whole", reduce), .formats = { NARROW, NARROW }, .needs = ROUNDS | OVERFLOWS,    \
    .numerics = TM_NUMERICS_N2, .numerics_bound = 1, .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F32,         \
    .attribute_bytes = sizeof(tm_reduce_attributes) }

#define COMPARE_PASS(set)                                                                                              \
  { RUNS(COMPARE_TENSORS, STATS, "comparison_parts", "comparison_whole", one_pass),                                    \
    .formats = { set, set, BIT(U64) }, .needs = F64 | DENORMALS }

#define MERGED (FLOATS | BLOCKS)
#define MERGE(id, kernel, numbers, bytes)                                                                              \
  { RUNS(id, MERGE, kernel, NULL, merge), .needs = F64, .attribute_bytes = bytes,                                      \
    .formats = { MERGED, numbers, MERGED, MERGED, MERGED, FLOATS } }

/* In class N2: `limit` times growth times the epsilon of the accumulator. */
#define SUMMED(id, where, a, b, c, d, what, kernel, how, grows, sum, limit, type)                                      \
  { RUNS(id, where, kernel, NULL, how), .formats = { a, b, c, d }, .needs = what, .numerics = TM_NUMERICS_N2,          \
    .numerics_bound = limit, .growth = TM_GROWTH_##grows, .accumulator = TM_FORMAT_##sum,                              \
    .attribute_bytes = sizeof(type) }

static const kernel_row rows[] = {
  EXACT(ADD, NARROW, ELEMENTWISE, "arithmetic_real", ROUNDS),
  EXACT(ADD, BIT(F64), ELEMENTWISE_F64, "arithmetic_real", F64),
  EXACT(ADD, INTEGERS, ELEMENTWISE, "arithmetic_integer", 0),
  EXACT(SUB, NARROW, ELEMENTWISE, "arithmetic_real", ROUNDS),
  EXACT(SUB, BIT(F64), ELEMENTWISE_F64, "arithmetic_real", F64),
  EXACT(SUB, INTEGERS, ELEMENTWISE, "arithmetic_integer", 0),
  /* A tiny product of bf16 is rounded twice in f32, which has the same smallest exponent. */
  EXACT(MUL, BIT(F32) | SHORT, ELEMENTWISE, "arithmetic_real", ROUNDS),
  EXACT(MUL, BIT(BF16), ELEMENTWISE_F64, "arithmetic_real", F64 | ROUNDS),
  CLOSE(MUL, BIT(BF16), ELEMENTWISE, "arithmetic_real", ROUNDS, 1),
  EXACT(MUL, BIT(F64), ELEMENTWISE_F64, "arithmetic_real", F64),
  EXACT(MUL, INTEGERS, ELEMENTWISE, "arithmetic_integer", 0),
  DIVISION(DIV, BIT(F32), "arithmetic_real", 3),
  DIVISION(DIV, SHORT, "arithmetic_real", 1),
  EXACT(DIV, BIT(BF16), ELEMENTWISE_F64, "arithmetic_real", F64 | ROUNDS),
  CLOSE(DIV, BIT(BF16), ELEMENTWISE, "arithmetic_real", ROUNDS, 1),
  EXACT(DIV, BIT(F64), ELEMENTWISE_F64, "arithmetic_real", F64),
  EXACT(DIV, INTEGERS, ELEMENTWISE, "arithmetic_integer", 0),
  DIVISION(SQRT, BIT(F32), "sqrt_real", 3),
  DIVISION(SQRT, NARROW & ~BIT(F32), "sqrt_real", 1),
  EXACT(SQRT, BIT(F64), ELEMENTWISE_F64, "sqrt_real", F64),
  EXACT(NEG, NUMBERS, ELEMENTWISE, "sign_code", 0),
  EXACT(ABS, NUMBERS, ELEMENTWISE, "sign_code", 0),
  EXACT(RELU, NUMBERS, ELEMENTWISE, "sign_code", 0),
  EXACT(CLAMP, NUMBERS, ELEMENTWISE, "clamp_code", 0),
  EXACT(LERP, FLOATS, ELEMENTWISE_F64, "lerp_real", F64 | ROUNDS),
  MERGE(WEIGHTED_SUM, "weighted_sum", BIT(F64), 0),
  MERGE(DARE_SUM, "dare_sum", BIT(U64), 0),
  MERGE(TIES_SUM, "ties_sum", BIT(F64), sizeof(tm_ties_attributes)),
  { RUNS(COMPARE, ELEMENTWISE, "compare_code", NULL, elementwise), .formats = { PLAIN, SAME, BIT(BOOL) },
    .attribute_bytes = sizeof(tm_compare_attributes) },
  { RUNS(WHERE, ELEMENTWISE, "where_code", NULL, elementwise), .formats = { BIT(BOOL), WORDS, WORDS, WORDS } },

  TRANSCENDENTAL(EXP, 4),
  TRANSCENDENTAL(LOG, 4),
  TRANSCENDENTAL(TANH, 6),
  TRANSCENDENTAL(SIGMOID, 9),
  TRANSCENDENTAL(ERF, 17),
  TAILED(GELU, 40, sizeof(tm_gelu_attributes)),
  TAILED(SILU, 12, 0),

  MOVE(COPY, 0),
  MOVE(TRANSPOSE, sizeof(tm_transpose_attributes)),
  MOVE(FILL, 0),
  { RUNS(GATHER, MOVE, "gather_units", NULL, gather), .formats = { KNOWN, BIT(I32) | BIT(I64), KNOWN },
    .attribute_bytes = sizeof(tm_axis_attributes) },
  { RUNS(CAST, CAST, "cast_codes", NULL, elementwise), .formats = { PLAIN, PLAIN }, .attribute_bytes = sizeof(tm_cast_attributes) },
  { RUNS(DEQUANTIZE, CAST, "dequantize_blocks", NULL, dequantize), .formats = { BLOCKS, FLOATS } },

  REDUCE(SUM, REDUCE_F64, FLOATS, FLOATS, F64 | DENORMALS, "sum_parts", "sum_whole"),
  NARROW_SUM(SUM),
  REDUCE(SUM, REDUCE, INTEGERS | BIT(BOOL), INTEGERS, 0, "integer_sum_parts", "integer_sum_whole"),
  REDUCE(MEAN, REDUCE_F64, PLAIN, FLOATS, F64 | DENORMALS, "sum_parts", "sum_whole"),
  NARROW_SUM(MEAN),
  REDUCE(MIN, REDUCE, PLAIN, SAME, 0, "extreme_parts", "extreme_whole"),
  REDUCE(MAX, REDUCE, PLAIN, SAME, 0, "extreme_parts", "extreme_whole"),
  REDUCE(ARGMAX, REDUCE, PLAIN, BIT(I64), 0, "extreme_parts", "extreme_whole"),

  { RUNS(STATS, STATS, "stats_parts", "stats_whole", one_pass), .formats = { PLAIN | BLOCKS, BIT(U64) }, .needs = F64 | DENORMALS },
  COMPARE_PASS(PLAIN),
  COMPARE_PASS(BLOCKS),

  { RUNS(UPDATE, MOVE, "update_units", "place_units", update), .formats = { KNOWN, SAME, BIT(I32) | BIT(I64), SAME },
    .attribute_bytes = sizeof(tm_axis_attributes), .alias_mask = 0x1 },

  /* Its angles are exact to 2^-20 at the farthest position, and so are the reference's. */
  { RUNS(ROPE, TOKENS, "rope_units", NULL, rope), .formats = { USUAL, BIT(I32) | BIT(I64), USUAL }, .needs = ROUNDS | OVERFLOWS,
    .numerics = TM_NUMERICS_N2, .numerics_bound = 32, .growth = TM_GROWTH_ONE, .accumulator = TM_FORMAT_F32,
    .attribute_bytes = sizeof(tm_rope_attributes), .alias_mask = 0x1 },
  /* Without a mask y stands in its place, and cannot be bool. */
  { RUNS(ATTENTION, TOKENS, "attention_rows", NULL, attention),
    .formats = { USUAL, USUAL, USUAL, BIT(I32) | BIT(I64), USUAL | BIT(BOOL), USUAL }, .needs = ROUNDS | OVERFLOWS,
    .numerics = TM_NUMERICS_N2, .numerics_bound = 8, .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F32,
    .attribute_bytes = sizeof(tm_attention_attributes) },
  { RUNS(ATTENTION, TOKENS_F64, "attention_rows", NULL, attention),
    .formats = { BIT(F64), BIT(F64), BIT(F64), BIT(I32) | BIT(I64), BIT(F64) | BIT(BOOL), BIT(F64) }, .needs = F64 | OVERFLOWS,
    .numerics = TM_NUMERICS_N2, .numerics_bound = 8, .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F64,
    .attribute_bytes = sizeof(tm_attention_attributes) },

  SUMMED(SOFTMAX, NORMALIZE, NARROW, NARROW, 0, 0, ROUNDS, "softmax_rows", normalize, LINEAR, F32, 8,
         tm_axis_attributes),
  SUMMED(SOFTMAX, NORMALIZE_F64, FLOATS, FLOATS, 0, 0, F64, "softmax_rows", normalize, LINEAR, F64, 8,
         tm_axis_attributes),
  /* In f64, whose rounding an f32 does not see, so that a mean far from zero costs no digits. */
  SUMMED(LAYER_NORM, NORMALIZE_F64, NARROW, NARROW, NARROW, NARROW, F64 | ROUNDS | OVERFLOWS, "norm_rows",
         normalize, ONE, F32, 2, tm_norm_attributes),
  SUMMED(RMS_NORM, NORMALIZE_F64, NARROW, NARROW, NARROW, 0, F64 | ROUNDS, "norm_rows", normalize, ONE, F32, 2,
         tm_norm_attributes),

  SUMMED(MATMUL, MATMUL, NARROW, NARROW | BLOCKS, NARROW, 0, ROUNDS | OVERFLOWS, "matmul_tiles", matmul, LINEAR,
         F32, 1, tm_matmul_attributes),
  SUMMED(MATMUL, MATMUL_F64, FLOATS, FLOATS | BLOCKS, FLOATS, 0, F64 | OVERFLOWS, "matmul_tiles", matmul, LINEAR,
         F64, 1, tm_matmul_attributes),
  { RUNS(MATMUL, MATMUL_INTEGER, "matmul_tiles", NULL, matmul), .formats = { BIT(I8), BIT(I8), BIT(I32) },
    .attribute_bytes = sizeof(tm_matmul_attributes) },
};

static const kernel_row_table table = { rows, sizeof rows / sizeof rows[0] };

const kernel_row_table *const kernel_row_tables[] = { &table, NULL };
