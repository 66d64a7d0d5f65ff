/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_parameters.h - what a kernel is told when it is launched.  One struct for all kernels, read by the kernels and
 * written by the host; it includes nothing, since a kernel's compiler has no include path.  u32, u64 and i64 come from
 * kernel_dialect.h in a kernel and from kernel_types.h on the host.
 */
#ifndef KERNEL_PARAMETERS_H
#define KERNEL_PARAMETERS_H

#define KERNEL_MAX_RANK 8
#define KERNEL_WALKED 4         /* operands that follow the walk: inputs, then the output */
#define KERNEL_BINDINGS 6       /* operands and workspace */

/* Work items of a group; every kernel is launched with groups of just this size. */
#define GROUP_SIZE 64u

/* Reductions: work items that share one part, and elements of a part (lanes and superblock of the canonical order). */
#define PART_LANES 16u
#define PART_ELEMENTS 32768u
#define PARTS_A_GROUP (GROUP_SIZE / PART_LANES)

/* Edge of the tile of a product that one group computes; each work item has a square of TILE_STEP. */
#define TILE_EDGE 32u
#define TILE_STEP 4u

/* Words (u64) of a part's result in the workspace. */
#define STATS_PART_WORDS 11u
#define COMPARISON_PART_WORDS 13u

/* The numbers of formats and operations are those of types.h. */
#define FORMAT_F64        1u
#define FORMAT_F32        2u
#define FORMAT_F16        3u
#define FORMAT_BF16       4u
#define FORMAT_F8_E4M3FN  5u
#define FORMAT_F8_E5M2    6u
#define FORMAT_I8        18u
#define FORMAT_U8        19u
#define FORMAT_I16       20u
#define FORMAT_U16       21u
#define FORMAT_I32       22u
#define FORMAT_U32       23u
#define FORMAT_I64       24u
#define FORMAT_U64       25u
#define FORMAT_BOOL      26u
#define FORMAT_Q4_0   0x102u
#define FORMAT_Q8_0   0x108u

#define OP_ADD 16u
#define OP_SUB 17u
#define OP_MUL 18u
#define OP_DIV 19u
#define OP_COMPARE 20u
#define OP_NEG 32u
#define OP_ABS 33u
#define OP_SQRT 34u
#define OP_EXP 35u
#define OP_LOG 36u
#define OP_TANH 37u
#define OP_SIGMOID 38u
#define OP_ERF 39u
#define OP_GELU 40u
#define OP_SILU 41u
#define OP_RELU 42u
#define OP_CLAMP 48u
#define OP_WHERE 49u
#define OP_LERP 50u
#define OP_SUM 64u
#define OP_MEAN 65u
#define OP_MIN 66u
#define OP_MAX 67u
#define OP_ARGMAX 68u
#define OP_LAYER_NORM 97u
#define OP_RMS_NORM 98u

typedef struct kernel_parameters {
  /* The walk: index 0..count-1, row-major over dims; operand j's element lies strides[j] bytes apart on each axis. */
  u64 count;
  u64 dims[KERNEL_MAX_RANK];
  i64 strides[KERNEL_WALKED][KERNEL_MAX_RANK];
  i64 offsets[KERNEL_BINDINGS];         /* of each binding's first element, in bytes */
  /* Reductions: the reduced axes of the first input. */
  u64 inner_count;
  u64 inner_dims[KERNEL_MAX_RANK];
  i64 inner_strides[KERNEL_MAX_RANK];
  u64 sizes[4];                         /* the family's own: M, N, K; extent of an axis; parts of an output */
  i64 steps[8];                         /* the family's own strides in bytes */
  u64 f64_bits;                         /* a number of the operation (epsilon), as f64 ... */
  u32 f32_bits;                         /* ... and as f32 */
  u32 op;
  u32 formats[KERNEL_WALKED];
  u32 rank;
  u32 inner_rank;
  u32 is_small;                         /* all indices fit 32 bits */
  u32 detail;                           /* predicate, saturate, form; reductions: 1 if lanes lie side by side in outputs */
  u32 unit_bytes;                       /* moves: of one unit */
  u32 reserved;
} kernel_parameters;

#endif
