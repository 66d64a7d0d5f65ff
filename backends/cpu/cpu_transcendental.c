/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp, log, tanh, sigmoid, erf, gelu, silu on f32, bf16 and f16, computed in f64 and rounded to f32 (then to the
 * format).  Over all 2^32 f32 (the tanh form of gelu: over 4 million) no result is more than 1 ulp from the reference; 1 in 10,000 differs at most, and of gelu
 * 2 in 1,000, because half a subnormal number is a tie.
 */
#include "cpu_elementwise_loops.h"
#include "cpu_transcendental_math.h"

#define FORMATS(X, OP, NAME, PICOSECONDS)                                                                             \
  X(OP, NAME, f32, TM_FORMAT_F32, 4, PICOSECONDS)                                                                     \
  X(OP, NAME, bf16, TM_FORMAT_BF16, 2, PICOSECONDS)                                                                   \
  X(OP, NAME, f16, TM_FORMAT_F16, 2, PICOSECONDS)

#define KERNELS(X)                                                                                                    \
  FORMATS(X, TM_OP_EXP, exp, 950)                                                                                     \
  FORMATS(X, TM_OP_LOG, log, 1000)                                                                                    \
  FORMATS(X, TM_OP_TANH, tanh, 1400)                                                                                  \
  FORMATS(X, TM_OP_SIGMOID, sigmoid, 1050)                                                                            \
  FORMATS(X, TM_OP_ERF, erf, 1400)                                                                                    \
  FORMATS(X, TM_OP_SILU, silu, 1150)

#define LOOP(OP, NAME, T, FORMAT, BYTES, PICOSECONDS)                                                                 \
  CPU_LOOP_1(NAME, T, BYTES, PICOSECONDS, CPU_EACH_HALF(NAME##_pd, a))
KERNELS(LOOP)

#define LOOP_GELU(OP, NAME, T, FORMAT, BYTES, PICOSECONDS)                                                            \
  CPU_LOOP_BODY_1(gelu_erf, T, CPU_EACH_HALF(gelu_pd, a))                                                             \
  CPU_LOOP_BODY_1(gelu_tanh, T, CPU_EACH_HALF(gelu_tanh_pd, a))                                                       \
  static void gelu_##T(const void *attributes, const void *const *inputs, void *output, uint64_t count) {             \
    const tm_gelu_attributes *gelu = attributes;                                                                      \
    (gelu != NULL && gelu->tanh_form ? gelu_tanh_##T : gelu_erf_##T)(attributes, inputs, output, count);              \
  }                                                                                                                   \
  static const cpu_span span_gelu_##T = { gelu_##T, 1, { BYTES, BYTES, 0, 0 }, PICOSECONDS };                         \
  CPU_SPAN_ROW_FUNCTIONS(gelu_##T)
FORMATS(LOOP_GELU, TM_OP_GELU, gelu, 1900)

#define ROW(OP, NAME, T, FORMAT, BYTES, PICOSECONDS)                                                                  \
  { .op = OP, .formats = { FORMAT, FORMAT }, .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE,                           \
    .attribute_bytes = (OP) == TM_OP_GELU ? sizeof(tm_gelu_attributes) : 0, .numerics = TM_NUMERICS_N1,               \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .numerics_bound = 1.0,                    \
    .alias_mask = CPU_ALIASES_1, .name = "cpu_" #NAME "_" #T "__avx2", .refuses = refuses_##NAME##_##T,               \
    .cost_ns = cost_##NAME##_##T, .run = run_##NAME##_##T },
static const cpu_row rows[] = { KERNELS(ROW) FORMATS(ROW, TM_OP_GELU, gelu, 1900) };

const kernel_row_table cpu_rows_transcendental = { rows, sizeof(rows) / sizeof(rows[0]) };
