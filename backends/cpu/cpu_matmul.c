/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of matmul. */
#include "cpu_matmul.h"

#define BLOCKED_ROW_FUNCTIONS(NAME, A, B)                                                                             \
  static uint32_t refuses_##NAME(const tm_operation *operation, uint32_t *out_operand) {                              \
    return cpu_matmul_blocked_refuses(&cpu_matmul_##B, operation, out_operand);                                       \
  }                                                                                                                   \
  static uint64_t cost_##NAME(const tm_operation *operation, uint32_t lanes) {                                        \
    return cpu_matmul_blocked_cost_ns(&cpu_matmul_##B, operation, lanes);                                             \
  }                                                                                                                   \
  static void run_##NAME(const cpu_call *call) { cpu_matmul_blocked(&cpu_matmul_##A, &cpu_matmul_##B, call); }

BLOCKED_ROW_FUNCTIONS(f32_f32, f32, f32)
BLOCKED_ROW_FUNCTIONS(f32_bf16, f32, bf16)
BLOCKED_ROW_FUNCTIONS(f32_f16, f32, f16)
BLOCKED_ROW_FUNCTIONS(bf16_bf16, bf16, bf16)
BLOCKED_ROW_FUNCTIONS(f16_f16, f16, f16)
BLOCKED_ROW_FUNCTIONS(f32_q8_0, f32, q8_0)
BLOCKED_ROW_FUNCTIONS(f32_q4_0, f32, q4_0)

/*
 * A sum of n products: each is rounded with its addition (fused), and each block of K adds one rounding more, so at most
 * n + n / MATMUL_DEPTH + 1 roundings of eps / 2 meet a term.
 */
#define BOUND 0.6

/* a in a narrow format is widened into the workspace, which can be as large as a whole: that is emulation. */
#define BLOCKED_ROW(NAME, A, B, LEVEL)                                                                                \
  { .op = TM_OP_MATMUL, .formats = { TM_FORMAT_##A, TM_FORMAT_##B, TM_FORMAT_F32 },                                   \
    .attribute_bytes = sizeof(tm_matmul_attributes), .isa = CPU_ISA_AVX2, .level = LEVEL,                             \
    .numerics = TM_NUMERICS_N2, .numerics_flags = TM_NUMERICS_RUN_TO_RUN, .numerics_bound = BOUND,                    \
    .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F32, .name = "cpu_matmul_" #NAME "__avx2",                   \
    .refuses = refuses_##NAME, .cost_ns = cost_##NAME, .workspace_bytes = cpu_matmul_blocked_workspace,               \
    .run = run_##NAME }

static const cpu_row rows[] = {
  BLOCKED_ROW(f32_f32, F32, F32, TM_LEVEL_NATIVE),
  BLOCKED_ROW(f32_bf16, F32, BF16, TM_LEVEL_NATIVE),
  BLOCKED_ROW(f32_f16, F32, F16, TM_LEVEL_NATIVE),
  BLOCKED_ROW(bf16_bf16, BF16, BF16, TM_LEVEL_EMULATED),
  BLOCKED_ROW(f16_f16, F16, F16, TM_LEVEL_EMULATED),
  BLOCKED_ROW(f32_q8_0, F32, Q8_0, TM_LEVEL_NATIVE),
  BLOCKED_ROW(f32_q4_0, F32, Q4_0, TM_LEVEL_NATIVE),
};

const cpu_row_table cpu_rows_matmul = { rows, sizeof(rows) / sizeof(rows[0]) };
