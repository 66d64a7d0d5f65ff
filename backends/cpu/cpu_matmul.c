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

/*
 * Roundings that a product meets in a sum of n: one with each addition (they are fused), and one more for each block
 * along K after the first, of at least 136 terms: in all at most 1.01 * n, of half an eps each.  The bound is relative,
 * while sums of subnormal numbers are rounded to a fixed unit: FLUSHES says so.
 */
#define BOUND 0.51
#define FLAGS (TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_FLUSHES)

/* instruction set; name, formats of a, b, y; packing of a, b; bytes of y; finish; level. */
#define FLOAT_KERNELS(X, ISA)                                                                                         \
  X(ISA, f32_f32, F32, F32, F32, f32, f32, 4, NULL, TM_LEVEL_NATIVE)                                                  \
  X(ISA, f32_bf16, F32, BF16, F32, f32, bf16, 4, NULL, TM_LEVEL_NATIVE)                                               \
  X(ISA, f32_f16, F32, F16, F32, f32, f16, 4, NULL, TM_LEVEL_NATIVE)                                                  \
  X(ISA, f32_q8_0, F32, Q8_0, F32, f32, q8_0, 4, NULL, TM_LEVEL_NATIVE)                                               \
  X(ISA, f32_q4_0, F32, Q4_0, F32, f32, q4_0, 4, NULL, TM_LEVEL_NATIVE)                                               \
  X(ISA, bf16_bf16_f32, BF16, BF16, F32, bf16, bf16, 4, NULL, TM_LEVEL_EMULATED)                                      \
  X(ISA, f16_f16_f32, F16, F16, F32, f16, f16, 4, NULL, TM_LEVEL_EMULATED)                                            \
  X(ISA, bf16_bf16, BF16, BF16, BF16, bf16, bf16, 2, narrow_row_bf16, TM_LEVEL_EMULATED)                              \
  X(ISA, f16_f16, F16, F16, F16, f16, f16, 2, narrow_row_f16, TM_LEVEL_EMULATED)

#define FLOAT_KERNEL(ISA, NAME, A, B, Y, PACK_A, PACK_B, Y_BYTES, FINISH, LEVEL)                                      \
  static const cpu_matmul_kernel kernel_##NAME##_##ISA = { &cpu_matmul_##PACK_A, &cpu_matmul_##PACK_B,                \
                                                           &cpu_matmul_tile_f32_##ISA, 1, Y_BYTES, FINISH };          \
  CPU_MATMUL_ROW_FUNCTIONS(NAME##_##ISA)
FLOAT_KERNELS(FLOAT_KERNEL, avx512)
FLOAT_KERNELS(FLOAT_KERNEL, avx2)

#define F64_KERNEL(ISA)                                                                                               \
  static const cpu_matmul_kernel kernel_f64_##ISA = { .a = &cpu_matmul_f64, .b = &cpu_matmul_f64,                     \
                                                      .tile = &cpu_matmul_tile_f64_##ISA, .k_unit = 1, .y_bytes = 8 }; \
  CPU_MATMUL_ROW_FUNCTIONS(f64_##ISA)
F64_KERNEL(avx512)
F64_KERNEL(avx2)

static const cpu_matmul_kernel kernel_i8_avx2 = {
  .a = &cpu_matmul_i8, .b = &cpu_matmul_i8, .tile = &cpu_matmul_tile_i8_avx2, .k_unit = 2, .y_bytes = 4,
};
CPU_MATMUL_ROW_FUNCTIONS(i8_avx2)

#define ISA_avx2   CPU_ISA_AVX2
#define ISA_avx512 (CPU_ISA_AVX2 | CPU_ISA_AVX512)
#define ROW_HEAD(ISA, NAME, A, B, Y)                                                                                  \
  .op = TM_OP_MATMUL, .formats = { TM_FORMAT_##A, TM_FORMAT_##B, TM_FORMAT_##Y },                                     \
  .attribute_bytes = sizeof(tm_matmul_attributes), .isa = ISA_##ISA, .name = "cpu_matmul_" #NAME "__" #ISA,           \
  .refuses = refuses_##NAME##_##ISA, .cost_ns = cost_##NAME##_##ISA, .workspace_bytes = workspace_##NAME##_##ISA,     \
  .run = run_##NAME##_##ISA

/* a in a narrow format is widened into the workspace, which can be as large as a whole: that is emulation. */
#define FLOAT_ROW(ISA, NAME, A, B, Y, PACK_A, PACK_B, Y_BYTES, FINISH, LEVEL)                                         \
  { ROW_HEAD(ISA, NAME, A, B, Y), .level = LEVEL, .numerics = TM_NUMERICS_N2, .numerics_flags = FLAGS,                \
    .numerics_bound = BOUND, .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F32 },
#define F64_ROW(ISA)                                                                                                  \
  { ROW_HEAD(ISA, f64, F64, F64, F64), .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N2, .numerics_bound = 1.01,  \
    .numerics_flags = FLAGS, .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F64 },

/* The first that the processor has is taken. */
static const cpu_row rows[] = {
  FLOAT_KERNELS(FLOAT_ROW, avx512)
  F64_ROW(avx512)
  FLOAT_KERNELS(FLOAT_ROW, avx2)
  F64_ROW(avx2)
  { ROW_HEAD(avx2, i8, I8, I8, I32), .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN },
};

const kernel_row_table cpu_rows_matmul = { rows, sizeof(rows) / sizeof(rows[0]) };
