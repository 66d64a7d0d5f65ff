/* SPDX-License-Identifier: Apache-2.0 */
/* TM_OP_TIES_SUM: products of all inputs for a block; then signs are elected and what agrees is added up. */
#include "cpu_merge.h"

#define OTHERS (CPU_MERGE_INPUTS - 1u)

typedef struct products {
  double of[OTHERS][CPU_MERGE_BLOCK];
} products;

/* w * d, d being 0 where x equals the base or the magnitude, an f32, is below the threshold. */
static CPU_AVX2 void make_products(const double *base, double weight, double threshold, double *inout_x) {
  const __m256d w = _mm256_set1_pd(weight), t = _mm256_set1_pd(threshold);
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4) {
    const __m256d x = cpu_load_pd(inout_x + i), b = cpu_load_pd(base + i), d = _mm256_sub_pd(x, b);
    const __m256d magnitude = cpu_abs_pd(_mm256_cvtps_pd(_mm256_cvtpd_ps(d)));
    const __m256d differs = _mm256_cmp_pd(x, b, _CMP_NEQ_UQ);
    const __m256d is_zero = _mm256_cmp_pd(_mm256_and_pd(magnitude, differs), t, _CMP_LT_OQ);
    _mm256_storeu_pd(inout_x + i, _mm256_mul_pd(w, _mm256_andnot_pd(is_zero, _mm256_and_pd(d, differs))));
  }
}

/* m of types.h for four elements whose elected sign is known. */
CPU_INLINE __m256d mean_of(const cpu_merge *m, const products *p, uint32_t at, __m256d elected) {
  const tm_ties_attributes *attributes = m->attributes;
  const __m256d zero = _mm256_setzero_pd(), sign_bit = _mm256_set1_pd(-0.0), sign = _mm256_and_pd(elected, sign_bit);
  __m256d sum = zero, weights = zero;
  for (uint32_t i = 0; i + 1 < m->input_count; ++i) {
    const __m256d x = cpu_load_pd(p->of[i] + at), agrees = _mm256_cmp_pd(_mm256_xor_pd(x, sign), zero, _CMP_GT_OQ);
    sum = _mm256_add_pd(sum, _mm256_and_pd(agrees, x));
    weights = _mm256_add_pd(weights, _mm256_and_pd(agrees, cpu_abs_pd(_mm256_set1_pd(m->settings.numbers[1 + 2 * i]))));
  }
  return attributes->sum ? sum : _mm256_div_pd(sum, weights);
}

static CPU_AVX2 void elect(const cpu_merge *m, const products *p, const double *base, double *out_y) {
  const __m256d scale = _mm256_set1_pd(m->settings.numbers[0]), zero = _mm256_setzero_pd();
  for (uint32_t at = 0; at < CPU_MERGE_BLOCK; at += 4) {
    const __m256d b = cpu_load_pd(base + at);
    __m256d elected = cpu_load_pd(p->of[0] + at);
    for (uint32_t i = 1; i + 1 < m->input_count; ++i) elected = _mm256_add_pd(elected, cpu_load_pd(p->of[i] + at));
    const __m256d y = _mm256_add_pd(b, _mm256_mul_pd(scale, mean_of(m, p, at, elected)));
    const __m256d decided = _mm256_blendv_pd(y, b, _mm256_cmp_pd(elected, zero, _CMP_EQ_OQ));
    _mm256_storeu_pd(out_y + at, _mm256_blendv_pd(decided, elected, _mm256_cmp_pd(elected, elected, _CMP_UNORD_Q)));
  }
}

static void block(const cpu_merge *m, uint64_t first, uint64_t count) {
  double base[CPU_MERGE_BLOCK], y[CPU_MERGE_BLOCK];
  products p;
  cpu_merge_load_wide(m, 0, first, count, base);
  for (uint32_t i = 0; i + 1 < m->input_count; ++i) {
    cpu_merge_load_wide(m, i + 1, first, count, p.of[i]);
    make_products(base, m->settings.numbers[1 + 2 * i], m->settings.numbers[2 + 2 * i], p.of[i]);
  }
  elect(m, &p, base, y);
  cpu_merge_store(m, first, count, y);
}

static void run(const cpu_call *call) { cpu_merge_run(call, block); }

#define ELEMENTS_PER_US 900.0   /* of one core, of an input */

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  return cpu_merge_cost_ns(operation, ELEMENTS_PER_US, lanes);
}

static const cpu_row rows[] = {
  {
    .op = TM_OP_TIES_SUM,
    .attribute_bytes = sizeof(tm_ties_attributes),
    .isa = CPU_ISA_AVX2,
    .level = TM_LEVEL_NATIVE,
    .numerics = TM_NUMERICS_N0,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,
    .alias_mask = CPU_MERGE_ALIASES,
    .name = "cpu_ties_sum__avx2",
    .refuses = cpu_merge_refuses,
    .cost_ns = cost_ns,
    .run = run,
  },
};

const kernel_row_table cpu_rows_ties_sum = { rows, sizeof rows / sizeof rows[0] };
