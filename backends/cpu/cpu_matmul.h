/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_matmul.h - the parts that the matmul kernels share.
 *
 * The blocked product of one thread: a block of a (MATMUL_ROWS x MATMUL_DEPTH at most) is packed into the workspace, as
 * panels of as many rows as a register tile has.  Then one panel of b after the other, as many columns, is widened or
 * decoded into 16 or 32 KiB of stack, and all row panels are swept with it.  With tiles of 6 x 16:
 *
 *        K                16 columns            registers: 6 x 16 of y
 *    +-------+           +--+
 *  6 |panel 0|         K |  |                   first-level cache: the panel of b, the current panel of a
 *    |panel 1|     x     |  |   (stack)         second level: the packed block of a
 *    |  ...  |           +--+
 *    +-------+ (workspace)
 *
 * So b is never copied as a whole, whatever its format: that is what makes the block-format rows native.  Every element
 * of y is the same chain of fused additions whatever the tile, so all tiles of a kind of sums give the same bits.
 */
#ifndef CPU_MATMUL_H
#define CPU_MATMUL_H

#include "cpu_kernel.h"

#define MATMUL_DEPTH     256u   /* of a block along K; a multiple of 32, the length of a quantized block */
#define MATMUL_ROWS      576u   /* of a block of a: 576 x 256 f32 are 576 KiB, half of a second-level cache */
#define MATMUL_ROW_BYTES 128u   /* of a tile's row, at most */
#define MATMUL_TILE_ROWS 12u    /* at most */

/* One matrix of a batch: element (line, k) lies at base + line * line_bytes + k * k_bytes.  The lines of a are its
   rows, those of b its columns; for a block format k_bytes is unused and k counts inside the line. */
typedef struct cpu_matrix {
  const void *base;
  int64_t     line_bytes;
  int64_t     k_bytes;
} cpu_matrix;

/* An operation brought into one form, whatever was transposed. */
typedef struct cpu_matmul_problem {
  const tm_operation *operation;
  uint64_t m, n, k, batch_count;
  uint32_t batch_rank;
  int64_t  a_line_bytes, a_k_bytes, b_line_bytes, b_k_bytes, y_row_bytes, y_column_bytes;
} cpu_matmul_problem;

/* Packs lines [0, lines) of `matrix`, k from 0 to depth, side by side: to[k * step + line] in units of the sums' size.
   All `step` values of each k are written, zeros beyond `lines`; step is a multiple of 8, of 8 and 4, or 6. */
typedef void (*cpu_pack_fn)(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, void *to, uint64_t step);

/* A format that a blocked product can read. */
typedef struct cpu_matmul_format {
  cpu_pack_fn pack;
  uint32_t    block_elements;           /* along K */
  uint32_t    block_bytes;
  double      pack_ns;                  /* a value, as a column of b */
} cpu_matmul_format;

extern const cpu_matmul_format cpu_matmul_f32, cpu_matmul_bf16, cpu_matmul_f16, cpu_matmul_q8_0, cpu_matmul_q4_0,
    cpu_matmul_f64, cpu_matmul_i8;

/* y[i][j] (+)= sum over k of a[k * tile rows + i] * b[k * tile columns + j]; the rows of y lie y_row_bytes apart. */
typedef struct cpu_tile_call {
  const void *a, *b;
  uint64_t    depth;
  void       *y;
  int64_t     y_row_bytes;
  uint32_t    rows, columns;            /* of y: all of the tile's, unless it takes parts */
  uint32_t    accumulate;
} cpu_tile_call;

/* A register tile: what an instruction set makes of a kind of sums. */
typedef struct cpu_matmul_tile {
  void      (*run)(const cpu_tile_call *call);
  uint32_t    rows, columns;
  uint32_t    value_bytes;              /* of a sum, and of a packed value */
  uint32_t    takes_parts;              /* computes also fewer rows, half the columns, and touches nothing else of y */
  double      product_ns;               /* a multiplication with its addition */
} cpu_matmul_tile;

extern const cpu_matmul_tile cpu_matmul_tile_f32_avx2, cpu_matmul_tile_f64_avx2, cpu_matmul_tile_i8_avx2,
    cpu_matmul_tile_f32_avx512, cpu_matmul_tile_f64_avx512;

/* A finished part of a row: elements [column, column + n) of y's row `row`. */
typedef struct cpu_matmul_row {
  const cpu_call *call;
  uint64_t        row, column, n;
} cpu_matmul_row;

/* A blocked product. */
typedef struct cpu_matmul_kernel {
  const cpu_matmul_format *a, *b;
  const cpu_matmul_tile   *tile;
  uint32_t k_unit;                      /* elements along K in one packed value */
  uint32_t y_bytes;                     /* of an element of y; if not a sum's, sums lie in the workspace first */
  /* Turns n sums into elements of y, which may lie in the same place.  NULL: they are elements of y. */
  void (*finish)(const cpu_matmul_row *row, const void *sums, void *y);
} cpu_matmul_kernel;

/* Reads shapes and strides.  Transposes are those of the attributes' first two fields. */
cpu_matmul_problem cpu_matmul_describe(const tm_operation *operation);

/* Byte offsets of one batch's matrices in a (0), b (1) and y (2). */
void cpu_matmul_batch_offsets(const cpu_matmul_problem *problem, uint64_t batch, int64_t out_offsets[3]);

/* The row functions of a kernel; y has dense rows. */
void     cpu_matmul_run(const cpu_matmul_kernel *kernel, const cpu_call *call);
uint32_t cpu_matmul_refuses(const cpu_matmul_kernel *kernel, const tm_operation *operation, uint32_t *out_operand);
uint64_t cpu_matmul_workspace(const cpu_matmul_kernel *kernel, const tm_operation *operation, uint32_t lanes);
uint64_t cpu_matmul_cost_ns(const cpu_matmul_kernel *kernel, const tm_operation *operation, uint32_t lanes);

#define CPU_MATMUL_ROW_FUNCTIONS(NAME)                                                                                \
  static uint32_t refuses_##NAME(const tm_operation *operation, uint32_t *out_operand) {                              \
    return cpu_matmul_refuses(&kernel_##NAME, operation, out_operand);                                                \
  }                                                                                                                   \
  static uint64_t cost_##NAME(const tm_operation *operation, uint32_t lanes) {                                        \
    return cpu_matmul_cost_ns(&kernel_##NAME, operation, lanes);                                                      \
  }                                                                                                                   \
  static uint64_t workspace_##NAME(const tm_operation *operation, uint32_t lanes) {                                   \
    return cpu_matmul_workspace(&kernel_##NAME, operation, lanes);                                                    \
  }                                                                                                                   \
  static void run_##NAME(const cpu_call *call) { cpu_matmul_run(&kernel_##NAME, call); }

#endif
