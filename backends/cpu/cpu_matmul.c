/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of matmul on blocks: float, block-format and integer. */
#include "cpu_matmul.h"
#include "cpu_vector_avx2.h"

#define DEFINE_NARROW(T, BYTES)                                                                                       \
  CPU_AVX2 static void narrow_row_##T(const cpu_matmul_row *row, const void *sums, void *y) {                         \
    const uint64_t n = row->n;                                                                                        \
    uint64_t i = 0;                                                                                                   \
    for (; i + 8 <= n; i += 8) store_##T(y, i, load_f32(sums, i));                                                    \
    if (i < n) store_part_##T(y, i, load_part_f32(sums, i, n - i), n - i);                                            \
  }
DEFINE_NARROW(bf16, 2)
DEFINE_NARROW(f16, 2)

#define F32_NS 0.0205           /* a multiplication with its addition */
#define F64_NS 0.041
#define I8_NS  0.028            /* a packed value, which is two of them */

/*
 * Roundings that a product meets in a sum of n: one with each addition (they are fused), and one more for each block
 * along K after the first, of at least 136 terms: in all at most 1.01 * n, of half an eps each.  The bound is relative,
 * while sums of subnormal numbers are rounded to a fixed unit: FLUSHES says so.
 */
#define BOUND 0.51
#define FLAGS (TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_FLUSHES)

/* name, formats of a, b, y; packing of a, b; tile; bytes of a sum and of y, k unit; cost; finish; level. */
#define FLOAT_KERNELS(X)                                                                                              \
  X(f32_f32, F32, F32, F32, f32, f32, 4, NULL, TM_LEVEL_NATIVE)                                                       \
  X(f32_bf16, F32, BF16, F32, f32, bf16, 4, NULL, TM_LEVEL_NATIVE)                                                    \
  X(f32_f16, F32, F16, F32, f32, f16, 4, NULL, TM_LEVEL_NATIVE)                                                       \
  X(f32_q8_0, F32, Q8_0, F32, f32, q8_0, 4, NULL, TM_LEVEL_NATIVE)                                                    \
  X(f32_q4_0, F32, Q4_0, F32, f32, q4_0, 4, NULL, TM_LEVEL_NATIVE)                                                    \
  X(bf16_bf16_f32, BF16, BF16, F32, bf16, bf16, 4, NULL, TM_LEVEL_EMULATED)                                           \
  X(f16_f16_f32, F16, F16, F32, f16, f16, 4, NULL, TM_LEVEL_EMULATED)                                                 \
  X(bf16_bf16, BF16, BF16, BF16, bf16, bf16, 2, narrow_row_bf16, TM_LEVEL_EMULATED)                                   \
  X(f16_f16, F16, F16, F16, f16, f16, 2, narrow_row_f16, TM_LEVEL_EMULATED)

#define FLOAT_KERNEL(NAME, A, B, Y, PACK_A, PACK_B, Y_BYTES, FINISH, LEVEL)                                           \
  static const cpu_matmul_kernel kernel_##NAME = { &cpu_matmul_##PACK_A, &cpu_matmul_##PACK_B, cpu_matmul_tile_f32,   \
                                                   4, 1, Y_BYTES, F32_NS, FINISH };                                   \
  CPU_MATMUL_ROW_FUNCTIONS(NAME)
FLOAT_KERNELS(FLOAT_KERNEL)

static const cpu_matmul_kernel kernel_f64 = {
  .a = &cpu_matmul_f64, .b = &cpu_matmul_f64, .tile = cpu_matmul_tile_f64, .sum_bytes = 8, .k_unit = 1, .y_bytes = 8,
  .product_ns = F64_NS,
};
CPU_MATMUL_ROW_FUNCTIONS(f64)

static const cpu_matmul_kernel kernel_i8 = {
  .a = &cpu_matmul_i8, .b = &cpu_matmul_i8, .tile = cpu_matmul_tile_i8, .sum_bytes = 4, .k_unit = 2, .y_bytes = 4,
  .product_ns = I8_NS,
};
CPU_MATMUL_ROW_FUNCTIONS(i8)

#define ROW_HEAD(NAME, A, B, Y)                                                                                       \
  .op = TM_OP_MATMUL, .formats = { TM_FORMAT_##A, TM_FORMAT_##B, TM_FORMAT_##Y },                                     \
  .attribute_bytes = sizeof(tm_matmul_attributes), .isa = CPU_ISA_AVX2, .name = "cpu_matmul_" #NAME "__avx2",         \
  .refuses = refuses_##NAME, .cost_ns = cost_##NAME, .workspace_bytes = workspace_##NAME, .run = run_##NAME

/* a in a narrow format is widened into the workspace, which can be as large as a whole: that is emulation. */
#define FLOAT_ROW(NAME, A, B, Y, PACK_A, PACK_B, Y_BYTES, FINISH, LEVEL)                                              \
  { ROW_HEAD(NAME, A, B, Y), .level = LEVEL, .numerics = TM_NUMERICS_N2, .numerics_flags = FLAGS,                     \
    .numerics_bound = BOUND, .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F32 },

static const cpu_row rows[] = {
  FLOAT_KERNELS(FLOAT_ROW)
  { ROW_HEAD(f64, F64, F64, F64), .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N2, .numerics_bound = 1.01,
    .numerics_flags = FLAGS, .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F64 },
  { ROW_HEAD(i8, I8, I8, I32), .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN },
};

const kernel_row_table cpu_rows_matmul = { rows, sizeof(rows) / sizeof(rows[0]) };
