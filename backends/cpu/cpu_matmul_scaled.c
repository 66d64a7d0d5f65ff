/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_scaled of i8 by i8 into f32, with one scale for a tensor or one for each row of a and column of b.  Scales
 * then stand outside the sum, which is an exact integer, so y = (a_scale * b_scale) * sum is nearly correctly rounded.
 */
#include "cpu_matmul.h"
#include "cpu_vector_avx2.h"

#define A_SCALE 2u
#define B_SCALE 3u

/* Products of i8 summed in 32 bits stay exact up to here. */
#define MAX_DEPTH 131071u

/* Axis of an operand's lines: rows of a, columns of b. */
static uint32_t line_axis(const tm_operation *operation, uint32_t input) {
  const tm_matmul_scaled_attributes *attributes = operation->attributes;
  const int lines_come_first = input == 0 ? attributes->transpose_a == 0 : attributes->transpose_b != 0;
  return operation->operands[input].rank - (lines_come_first ? 2 : 1);
}

/* One entry in all, or one a line; the same for every k and every batch. */
static int is_one_a_line(const tm_operation *operation, uint32_t input) {
  const tm_operand *x = &operation->operands[input], *scale = &operation->operands[input + A_SCALE];
  for (uint32_t i = 0; i < scale->rank; i++) {
    const int fits_lines = i == line_axis(operation, input) && scale->dims[i] == x->dims[i];
    if (scale->dims[i] != 1 && !fits_lines) return 0;
  }
  return 1;
}

/* Bytes from one line's scale to the next; 0 if all lines share one. */
static int64_t scale_step(const tm_operation *operation, uint32_t input) {
  const tm_operand *scale = &operation->operands[input + A_SCALE];
  const uint32_t axis = line_axis(operation, input);
  return scale->rank == 0 || scale->dims[axis] == 1 ? 0 : scale->strides_bytes[axis];
}

/* Scales of columns [j, j + n), n <= 4. */
CPU_INLINE_AVX2 __m256d load_scales(const char *scales, uint64_t j, uint64_t n, int64_t step) {
  if (step == sizeof(float) && n == 4) return _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)scales + j));
  float few[4] = { 0 };
  for (uint64_t i = 0; i < n; i++) memcpy(&few[i], scales + (int64_t)(j + i) * step, sizeof(float));
  return _mm256_cvtps_pd(_mm_loadu_ps(few));
}

/* Exact sums times a's and b's scale, in f64. */
CPU_INLINE_AVX2 __m128 scaled(__m128i sums, __m256d a, __m256d b) {
  return _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_mul_pd(a, b), _mm256_cvtepi32_pd(sums)));
}

CPU_AVX2 static void scale_row(const cpu_matmul_row *row, const void *sums, void *y) {
  const tm_operation *operation = row->call->operation;
  const int64_t step = scale_step(operation, 1);
  const char *scales = (const char *)row->call->pointers[B_SCALE] + (int64_t)row->column * step;
  const uint64_t n = row->n;
  float a_scale, b_scale;
  const char *a_scales = row->call->pointers[A_SCALE];
  memcpy(&a_scale, a_scales + (int64_t)row->row * scale_step(operation, 0), sizeof(a_scale));
  memcpy(&b_scale, scales, sizeof(b_scale));
  const __m256d a = _mm256_set1_pd((double)a_scale), shared = _mm256_set1_pd((double)b_scale);
  uint64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const __m128i four = _mm_loadu_si128((const __m128i *)(const void *)((const int32_t *)sums + j));
    _mm_storeu_ps((float *)y + j, scaled(four, a, step == 0 ? shared : load_scales(scales, j, 4, step)));
  }
  if (j < n) {
    const __m128i some = _mm256_castsi256_si128(first_lanes_32(n - j));
    const __m128i few = _mm_maskload_epi32((const int32_t *)sums + j, some);
    _mm_maskstore_ps((float *)y + j, some, scaled(few, a, load_scales(scales, j, n - j, step)));
  }
}

static const cpu_matmul_kernel kernel_scaled = {
  .a = &cpu_matmul_i8, .b = &cpu_matmul_i8, .tile = &cpu_matmul_tile_i8_avx2, .k_unit = 2, .y_bytes = 4,
  .finish = scale_row,
};

static uint32_t refuses(const tm_operation *operation, uint32_t *out_operand) {
  const uint32_t reasons = cpu_matmul_refuses(&kernel_scaled, operation, out_operand);
  if (reasons != 0) return reasons;
  *out_operand = 0;
  if (cpu_matmul_describe(operation).k > MAX_DEPTH) return TM_REASON_SIZE;
  for (uint32_t input = 0; input < 2; input++) {
    *out_operand = input + A_SCALE;
    if (!is_one_a_line(operation, input)) return TM_REASON_SHAPE;
  }
  return 0;
}
static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  return cpu_matmul_cost_ns(&kernel_scaled, operation, lanes);
}
static uint64_t workspace_bytes(const tm_operation *operation, uint32_t lanes) {
  return cpu_matmul_workspace(&kernel_scaled, operation, lanes);
}
static void run(const cpu_call *call) { cpu_matmul_run(&kernel_scaled, call); }

/* The product of the scales is exact in f64, so one rounding there meets the sum; the reference's own are counted too.
   Below f32's normal numbers half a unit in the last place is more than a share of the result: hence FLUSHES. */
static const cpu_row rows[] = {
  { .op = TM_OP_MATMUL_SCALED, .formats = { TM_FORMAT_I8, TM_FORMAT_I8, TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 },
    .attribute_bytes = sizeof(tm_matmul_scaled_attributes), .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE,
    .numerics = TM_NUMERICS_N2, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_FLUSHES, .numerics_bound = 2.0,
    .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F64, .name = "cpu_matmul_scaled_i8__avx2",
    .refuses = refuses, .cost_ns = cost_ns, .workspace_bytes = workspace_bytes, .run = run },
};

const kernel_row_table cpu_rows_matmul_scaled = { rows, sizeof(rows) / sizeof(rows[0]) };
