/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_matmul.h - the parts that the matmul kernels share.
 *
 * The blocked product: a block of a (MATMUL_ROWS x MATMUL_DEPTH) is packed once into the workspace, as panels of 6 rows.
 * Each thread then takes panels of 16 columns of b, widens or decodes one into 16 KiB of its own stack, and sweeps all
 * row panels with it:
 *
 *        K                16 columns            registers: 6 x 16 of y
 *    +-------+           +--+
 *  6 |panel 0|         K |  |                   first-level cache: the panel of b, the current panel of a
 *    |panel 1|     x     |  |   (stack)         second level: the packed block of a
 *    |  ...  |           +--+
 *    +-------+ (workspace)
 *
 * So b is never copied as a whole, whatever its format: that is what makes the block-format rows native.
 */
#ifndef CPU_MATMUL_H
#define CPU_MATMUL_H

#include "cpu_kernel.h"

#define MATMUL_TILE_ROWS    6u
#define MATMUL_TILE_COLUMNS 16u
#define MATMUL_DEPTH        256u        /* of a block along K; a multiple of 32, the length of a quantized block */
#define MATMUL_ROWS         576u        /* of a block of a: 576 x 256 f32 are 576 KiB, half of a usual second-level cache */

/* One matrix of a batch: element (line, k) lies at base + line * line_bytes + k * k_bytes.  The lines of a are its rows, those
   of b its columns; for a block format k_bytes is unused and k counts inside the line. */
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

/* Packs lines [0, lines) (at most 8) of `matrix`, k from 0 to depth, as f32: to[k * step + line]; `keep` values (6 or 8)
   are written for each k, zeros beyond `lines`. */
typedef void (*cpu_pack_fn)(const cpu_matrix *matrix, uint64_t lines, uint64_t depth, float *to, uint64_t step, uint32_t keep);

/* A format that a blocked product can read. */
typedef struct cpu_matmul_format {
  cpu_pack_fn pack;
  uint32_t    block_elements;           /* along K */
  uint32_t    block_bytes;
  double      pack_ns;                  /* a value, as a column of b */
} cpu_matmul_format;

extern const cpu_matmul_format cpu_matmul_f32, cpu_matmul_bf16, cpu_matmul_f16, cpu_matmul_q8_0, cpu_matmul_q4_0;

/* Reads shapes and strides.  Transposes are those of the attributes' first two fields. */
cpu_matmul_problem cpu_matmul_describe(const tm_operation *operation);

/* Byte offsets of one batch's matrices in a (0), b (1) and y (2). */
void cpu_matmul_batch_offsets(const cpu_matmul_problem *problem, uint64_t batch, int64_t out_offsets[3]);

/* Sums of the products of a blocked matmul; y (f32) has dense rows. */
void cpu_matmul_blocked(const cpu_matmul_format *a, const cpu_matmul_format *b, const cpu_call *call);
uint32_t cpu_matmul_blocked_refuses(const cpu_matmul_format *b, const tm_operation *operation, uint32_t *out_operand);
uint64_t cpu_matmul_blocked_workspace(const tm_operation *operation, uint32_t lanes);
uint64_t cpu_matmul_blocked_cost_ns(const cpu_matmul_format *b, const tm_operation *operation, uint32_t lanes);

/* y[i][j] (+)= sum over k of a[k * 6 + i] * b[k * 16 + j], for all 6 x 16; the rows of y lie y_row_bytes apart. */
void cpu_matmul_tile(const float *a, const float *b, uint64_t depth, float *y, int64_t y_row_bytes, uint32_t accumulate);

#endif
