/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_WEIGHTED_SUM: products and sums in f64, each rounded, in order; never fused, since a product of arbitrary weights is
 * not exact.  Two inputs, as most merges have them, pass through registers only, decoded first where they are not of the
 * result's format; more of them, and f64, go by way of a block of f64.
 */
#include "cpu_merge.h"
#include "cpu_round_odd.h"

CPU_INLINE __m256d product(__m256d x, __m256d weight) { return _mm256_mul_pd(weight, x); }
CPU_INLINE __m256d sum(__m256d a, __m256d weight_a, __m256d b, __m256d weight_b) {
  return _mm256_add_pd(product(a, weight_a), product(b, weight_b));
}

/* ---- two inputs ---- */

#define PAIR(name, FROM, ROUND, STORE)                                                                                 \
  static CPU_AVX2 void name(const cpu_merge *m, const unsigned char *a, const unsigned char *b, unsigned char *y) {    \
    const __m256d wa = _mm256_set1_pd(m->settings.numbers[0]), wb = _mm256_set1_pd(m->settings.numbers[1]);            \
    for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 8) {                                                                \
      const __m256 va = load_##FROM(a, i), vb = load_##FROM(b, i);                                                     \
      const __m256d low = sum(low_half(va), wa, low_half(vb), wb), high = sum(high_half(va), wa, high_half(vb), wb);   \
      STORE(y, i, ROUND(low, high), m->store);                                                                         \
    }                                                                                                                  \
  }

CPU_INLINE void put_32(unsigned char *y, uint32_t i, __m256 v, cpu_store_kind kind) {
  cpu_put((float *)(void *)(y + 4 * i), v, kind);
}
CPU_INLINE void put_16(unsigned char *y, uint32_t i, __m128i v, cpu_store_kind kind) {
  if (kind == CPU_STORE_PLAIN) _mm_storeu_si128((__m128i_u *)(void *)(y + 2 * i), v);
  else _mm_stream_si128((__m128i *)(void *)(y + 2 * i), v);
}

PAIR(f32_to_f32, f32, round_to_f32, put_32)
PAIR(f32_to_bf16, f32, round_to_bf16, put_16)
PAIR(f32_to_f16, f32, round_to_f16, put_16)
PAIR(bf16_to_bf16, bf16, round_to_bf16, put_16)
PAIR(f16_to_f16, f16, round_to_f16, put_16)

typedef void (*pair_fn)(const cpu_merge *m, const unsigned char *a, const unsigned char *b, unsigned char *y);

typedef struct pair_row {
  uint32_t format;      /* of y */
  uint32_t bytes;
  pair_fn  from_own;    /* of two inputs of that format */
  pair_fn  from_f32;    /* of any two, decoded */
} pair_row;

static const pair_row pair_rows[] = {
  { TM_FORMAT_F32, 4, f32_to_f32, f32_to_f32 },
  { TM_FORMAT_BF16, 2, bf16_to_bf16, f32_to_bf16 },
  { TM_FORMAT_F16, 2, f16_to_f16, f32_to_f16 },
};

/* Of whole blocks; f64 has more digits than they know of. */
static const pair_row *find_pair(const cpu_merge *m) {
  if (m->input_count != 2 || cpu_merge_is_wide(m, 0) || cpu_merge_is_wide(m, 1)) return NULL;
  for (size_t i = 0; i < sizeof pair_rows / sizeof pair_rows[0]; ++i) {
    if (pair_rows[i].format == m->y_format) return &pair_rows[i];
  }
  return NULL;
}

static void add_pair(const cpu_merge *m, const pair_row *pair, uint64_t first) {
  float rooms[2][CPU_MERGE_BLOCK];
  unsigned char *y = m->y + first * pair->bytes;
  if (m->sources[0]->format == pair->format && m->sources[1]->format == pair->format) {
    pair->from_own(m, cpu_merge_at(m, 0, first), cpu_merge_at(m, 1, first), y);
    return;
  }
  const float *a = cpu_merge_load(m, 0, first, CPU_MERGE_BLOCK, rooms[0]);
  const float *b = cpu_merge_load(m, 1, first, CPU_MERGE_BLOCK, rooms[1]);
  pair->from_f32(m, (const unsigned char *)(const void *)a, (const unsigned char *)(const void *)b, y);
}

/* ---- any inputs ---- */

static CPU_AVX2 void begin_sum(const float *x, double weight, double *total) {
  const __m256d w = _mm256_set1_pd(weight);
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4) _mm256_storeu_pd(total + i, product(_mm256_cvtps_pd(_mm_loadu_ps(x + i)), w));
}

static CPU_AVX2 void add_to_sum(const float *x, double weight, double *total) {
  const __m256d w = _mm256_set1_pd(weight);
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4)
    _mm256_storeu_pd(total + i, _mm256_add_pd(cpu_load_pd(total + i), product(_mm256_cvtps_pd(_mm_loadu_ps(x + i)), w)));
}

static CPU_AVX2 void begin_wide_sum(const double *x, double weight, double *total) {
  const __m256d w = _mm256_set1_pd(weight);
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4) _mm256_storeu_pd(total + i, product(cpu_load_pd(x + i), w));
}

static CPU_AVX2 void add_to_wide_sum(const double *x, double weight, double *total) {
  const __m256d w = _mm256_set1_pd(weight);
  for (uint32_t i = 0; i < CPU_MERGE_BLOCK; i += 4)
    _mm256_storeu_pd(total + i, _mm256_add_pd(cpu_load_pd(total + i), product(cpu_load_pd(x + i), w)));
}

static void add_wide_input(const cpu_merge *m, uint32_t input, uint64_t first, uint64_t count, double *total) {
  double x[CPU_MERGE_BLOCK];
  cpu_merge_load_wide(m, input, first, count, x);
  (input == 0 ? begin_wide_sum : add_to_wide_sum)(x, m->settings.numbers[input], total);
}

static void add_input(const cpu_merge *m, uint32_t input, uint64_t first, uint64_t count, double *total) {
  float room[CPU_MERGE_BLOCK];
  const float *x = cpu_merge_load(m, input, first, count, room);
  (input == 0 ? begin_sum : add_to_sum)(x, m->settings.numbers[input], total);
}

static void block(const cpu_merge *m, uint64_t first, uint64_t count) {
  double total[CPU_MERGE_BLOCK];
  const pair_row *pair = find_pair(m);
  if (pair != NULL && count == CPU_MERGE_BLOCK) {
    add_pair(m, pair, first);
    return;
  }
  for (uint32_t i = 0; i < m->input_count; ++i) (cpu_merge_is_wide(m, i) ? add_wide_input : add_input)(m, i, first, count, total);
  cpu_merge_store(m, first, count, total);
}

static void run(const cpu_call *call) { cpu_merge_run(call, block); }

/* Elements of an input in a microsecond, of one core where memory does not limit it. */
#define WIDE_RESULT   5000.0
#define NARROW_RESULT 2800.0

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  const int is_wide = kernel_element_bytes(operation->operands[operation->input_count].format) >= 4;
  return cpu_merge_cost_ns(operation, is_wide ? WIDE_RESULT : NARROW_RESULT, lanes);
}

static const cpu_row rows[] = {
  {
    .op = TM_OP_WEIGHTED_SUM,
    .isa = CPU_ISA_AVX2,
    .level = TM_LEVEL_NATIVE,
    .numerics = TM_NUMERICS_N0,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,
    .alias_mask = CPU_MERGE_ALIASES,
    .name = "cpu_weighted_sum__avx2",
    .refuses = cpu_merge_refuses,
    .cost_ns = cost_ns,
    .run = run,
  },
};

const kernel_row_table cpu_rows_weighted_sum = { rows, sizeof rows / sizeof rows[0] };
