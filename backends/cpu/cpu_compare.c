/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_COMPARE_TENSORS: blocks of 512 pairs, decoded to f32 in L1 where they are something narrower, then three passes:
 * equal bits and whether all is finite; difference and product; norms and the largest relative difference.  Threads and
 * exact sums as in cpu_stats.c.
 */
#include <math.h>
#include <string.h>

#include "cpu_decode.h"
#include "tensormorph/canonical_sum.h"

#define INFINITE 0x7f800000
#define BLOCK TM_SUM_BLOCK

typedef struct lane_result {
  uint64_t equal, nonfinite;
  double   max_abs, max_rel;
  double   squared[TM_SUM_LANES], dot[TM_SUM_LANES], norm_a[TM_SUM_LANES], norm_b[TM_SUM_LANES];
  uint64_t words[4][TM_SUM_WORDS];      /* of these four, superblock by superblock */
} lane_result;

/* How a format becomes f32: `decode` takes a whole block of pairs. */
typedef struct source_format {
  uint32_t format;
  uint32_t bytes;               /* of so many elements: */
  uint32_t elements;
  void   (*decode)(const unsigned char *data, float *to);
} source_format;

static CPU_AVX2 void decode_bf16(const unsigned char *data, float *to) {
  for (int i = 0; i < BLOCK; i += 8) _mm256_storeu_ps(to + i, cpu_widen_bf16(cpu_load128(data + 2 * i)));
}

/* The processor quiets NaN, which must not make two different ones equal: those are put together by hand. */
static CPU_AVX2 void decode_f16(const unsigned char *data, float *to) {
  for (int i = 0; i < BLOCK; i += 8) {
    const __m128i v = cpu_load128(data + 2 * i);
    const __m256i wide = _mm256_cvtepu16_epi32(v), magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7fff));
    const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7c00));
    const __m256i sign = _mm256_slli_epi32(_mm256_xor_si256(wide, magnitude), 16);
    const __m256i nan = _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi32(magnitude, 13), _mm256_set1_epi32(INFINITE)), sign);
    _mm256_storeu_ps(to + i, _mm256_blendv_ps(_mm256_cvtph_ps(v), _mm256_castsi256_ps(nan), _mm256_castsi256_ps(is_nan)));
  }
}

static CPU_AVX2 void decode_q8_0(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < BLOCK; i += CPU_QUANT_ELEMENTS, data += CPU_Q8_0_BYTES) cpu_decode_q8_0(data, to + i, CPU_STORE_PLAIN);
}

static CPU_AVX2 void decode_q4_0(const unsigned char *data, float *to) {
  for (uint32_t i = 0; i < BLOCK; i += CPU_QUANT_ELEMENTS, data += CPU_Q4_0_BYTES) cpu_decode_q4_0(data, to + i, CPU_STORE_PLAIN);
}

static const source_format source_formats[] = {
  { TM_FORMAT_F32, 4, 1, NULL },
  { TM_FORMAT_BF16, 2, 1, decode_bf16 },
  { TM_FORMAT_F16, 2, 1, decode_f16 },
  { TM_FORMAT_Q8_0, CPU_Q8_0_BYTES, CPU_QUANT_ELEMENTS, decode_q8_0 },
  { TM_FORMAT_Q4_0, CPU_Q4_0_BYTES, CPU_QUANT_ELEMENTS, decode_q4_0 },
};

static const source_format *find_source(uint32_t format) {
  for (size_t i = 0; i < sizeof source_formats / sizeof source_formats[0]; ++i) {
    if (source_formats[i].format == format) return &source_formats[i];
  }
  return NULL;
}

/* ---- one block ---- */

/* Counts equal bits; returns whether all values of both are finite. */
static __attribute__((noinline)) CPU_AVX2 int count_equal(const float *a, const float *b, lane_result *r) {
  const __m256i mask = _mm256_set1_epi32(INT32_MAX);
  __m256i equal = _mm256_setzero_si256(), largest = equal;
  for (int i = 0; i < BLOCK; i += 8) {
    if (i % 16 == 0) {
      CPU_PREFETCH(a + i);
      CPU_PREFETCH(b + i);
    }
    const __m256i x = cpu_load(a + i), y = cpu_load(b + i);
    equal = _mm256_sub_epi32(equal, _mm256_cmpeq_epi32(x, y));
    largest = _mm256_max_epi32(largest, _mm256_max_epi32(_mm256_and_si256(x, mask), _mm256_and_si256(y, mask)));
  }
  r->equal += cpu_sum_epi32(equal);
  return !cpu_any(_mm256_cmpgt_epi32(largest, _mm256_set1_epi32(INFINITE - 1)));
}

/* Copies of both in which pairs that are not finite are zeros: they add nothing to any figure. */
static __attribute__((noinline)) CPU_AVX2 void mask_pairs(const float *a, const float *b, float *out_a, float *out_b, lane_result *r) {
  const __m256i mask = _mm256_set1_epi32(INT32_MAX), infinite = _mm256_set1_epi32(INFINITE);
  __m256i finite_count = _mm256_setzero_si256();
  for (int i = 0; i < BLOCK; i += 8) {
    const __m256i x = cpu_load(a + i), y = cpu_load(b + i);
    const __m256i larger = _mm256_max_epi32(_mm256_and_si256(x, mask), _mm256_and_si256(y, mask));
    const __m256i finite = _mm256_cmpgt_epi32(infinite, larger);
    finite_count = _mm256_sub_epi32(finite_count, finite);
    cpu_store(out_a + i, _mm256_and_si256(x, finite));
    cpu_store(out_b + i, _mm256_and_si256(y, finite));
  }
  r->nonfinite += BLOCK - cpu_sum_epi32(finite_count);
}

CPU_INLINE __m256d load_wide(const float *x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }
CPU_INLINE __m256d absolute(__m256d x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }

/* One quarter of the lanes of two sums. */
CPU_INLINE void add_products(__m256d *squared, __m256d *dot, __m256d *farthest, const float *a, const float *b) {
  const __m256d x = load_wide(a), y = load_wide(b), difference = _mm256_sub_pd(x, y);
  *squared = _mm256_fmadd_pd(difference, difference, *squared);
  *dot = _mm256_fmadd_pd(x, y, *dot);
  *farthest = _mm256_max_pd(*farthest, absolute(difference));
}

static CPU_AVX2 double largest_of(__m256d x) {
  double parts[4];
  _mm256_storeu_pd(parts, x);
  const double low = parts[0] > parts[1] ? parts[0] : parts[1], high = parts[2] > parts[3] ? parts[2] : parts[3];
  return low > high ? low : high;
}

static __attribute__((noinline)) CPU_AVX2 void sum_differences(const float *a, const float *b, lane_result *r) {
  __m256d s0 = cpu_load_pd(r->squared), s1 = cpu_load_pd(r->squared + 4), s2 = cpu_load_pd(r->squared + 8), s3 = cpu_load_pd(r->squared + 12);
  __m256d d0 = cpu_load_pd(r->dot), d1 = cpu_load_pd(r->dot + 4), d2 = cpu_load_pd(r->dot + 8), d3 = cpu_load_pd(r->dot + 12);
  __m256d farthest = _mm256_setzero_pd();
  for (int i = 0; i < BLOCK; i += 16) {
    add_products(&s0, &d0, &farthest, a + i, b + i);
    add_products(&s1, &d1, &farthest, a + i + 4, b + i + 4);
    add_products(&s2, &d2, &farthest, a + i + 8, b + i + 8);
    add_products(&s3, &d3, &farthest, a + i + 12, b + i + 12);
  }
  _mm256_storeu_pd(r->squared, s0);
  _mm256_storeu_pd(r->squared + 4, s1);
  _mm256_storeu_pd(r->squared + 8, s2);
  _mm256_storeu_pd(r->squared + 12, s3);
  _mm256_storeu_pd(r->dot, d0);
  _mm256_storeu_pd(r->dot + 4, d1);
  _mm256_storeu_pd(r->dot + 8, d2);
  _mm256_storeu_pd(r->dot + 12, d3);
  const double largest = largest_of(farthest);
  if (largest > r->max_abs) r->max_abs = largest;
}

/* Whether a quotient |a - b| / max(|a|, |b|) is above `best`: the sign of |a - b| - best * max, which one fused operation
   gets right, so that no division is needed until one is. */
CPU_INLINE __m256d exceeds(__m256d x, __m256d y, __m256d best) {
  const __m256d distance = absolute(_mm256_sub_pd(x, y)), larger = _mm256_max_pd(absolute(x), absolute(y));
  return _mm256_cmp_pd(_mm256_fnmadd_pd(larger, best, distance), _mm256_setzero_pd(), _CMP_GT_OQ);
}

CPU_INLINE __m256d add_norms(__m256d *norm_a, __m256d *norm_b, const float *a, const float *b, __m256d best) {
  const __m256d x = load_wide(a), y = load_wide(b);
  *norm_a = _mm256_fmadd_pd(x, x, *norm_a);
  *norm_b = _mm256_fmadd_pd(y, y, *norm_b);
  return exceeds(x, y, best);
}

/* Returns whether some quotient exceeds the largest one so far. */
static __attribute__((noinline)) CPU_AVX2 int sum_norms(const float *a, const float *b, lane_result *r) {
  __m256d a0 = cpu_load_pd(r->norm_a), a1 = cpu_load_pd(r->norm_a + 4), a2 = cpu_load_pd(r->norm_a + 8), a3 = cpu_load_pd(r->norm_a + 12);
  __m256d b0 = cpu_load_pd(r->norm_b), b1 = cpu_load_pd(r->norm_b + 4), b2 = cpu_load_pd(r->norm_b + 8), b3 = cpu_load_pd(r->norm_b + 12);
  const __m256d best = _mm256_set1_pd(r->max_rel);
  __m256d more = _mm256_setzero_pd();
  for (int i = 0; i < BLOCK; i += 16) {
    more = _mm256_or_pd(more, add_norms(&a0, &b0, a + i, b + i, best));
    more = _mm256_or_pd(more, add_norms(&a1, &b1, a + i + 4, b + i + 4, best));
    more = _mm256_or_pd(more, add_norms(&a2, &b2, a + i + 8, b + i + 8, best));
    more = _mm256_or_pd(more, add_norms(&a3, &b3, a + i + 12, b + i + 12, best));
  }
  _mm256_storeu_pd(r->norm_a, a0);
  _mm256_storeu_pd(r->norm_a + 4, a1);
  _mm256_storeu_pd(r->norm_a + 8, a2);
  _mm256_storeu_pd(r->norm_a + 12, a3);
  _mm256_storeu_pd(r->norm_b, b0);
  _mm256_storeu_pd(r->norm_b + 4, b1);
  _mm256_storeu_pd(r->norm_b + 8, b2);
  _mm256_storeu_pd(r->norm_b + 12, b3);
  return _mm256_movemask_pd(more) != 0;
}

/* 0/0 is NaN, and as the first operand of a maximum it is passed over. */
static __attribute__((noinline)) CPU_AVX2 void find_largest_quotient(const float *a, const float *b, lane_result *r) {
  __m256d best = _mm256_set1_pd(r->max_rel);
  for (int i = 0; i < BLOCK; i += 4) {
    const __m256d x = load_wide(a + i), y = load_wide(b + i);
    const __m256d distance = absolute(_mm256_sub_pd(x, y)), larger = _mm256_max_pd(absolute(x), absolute(y));
    best = _mm256_max_pd(_mm256_div_pd(distance, larger), best);
  }
  r->max_rel = largest_of(best);
}

static void add_block(const float *a, const float *b, lane_result *r) {
  float masked_a[BLOCK], masked_b[BLOCK];
  if (!count_equal(a, b, r)) {
    mask_pairs(a, b, masked_a, masked_b, r);
    a = masked_a;
    b = masked_b;
  }
  sum_differences(a, b, r);
  if (sum_norms(a, b, r)) find_largest_quotient(a, b, r);
}

/* ---- superblocks and threads ---- */

typedef struct compare_job {
  const source_format *formats[2];
  const unsigned char *data[2];
  uint64_t             count;
  lane_result         *lanes;
} compare_job;

static uint64_t bytes_of(const source_format *f, uint64_t elements) { return elements / f->elements * f->bytes; }

/* A short last block is filled up with zeros, which only the count of equal bits notices. */
static const float *load_block(const source_format *f, const unsigned char *data, uint64_t count, float *to) {
  unsigned char padded[BLOCK * sizeof(float)];
  if (count < BLOCK) {
    memset(padded, 0, sizeof padded);
    memcpy(padded, data, bytes_of(f, count));
    data = padded;
  } else if (f->decode == NULL && (uintptr_t)data % sizeof(float) == 0) {
    return (const float *)(const void *)data;
  }
  if (f->decode != NULL) f->decode(data, to);
  else memcpy(to, data, BLOCK * sizeof(float));
  for (uint64_t i = count; i < BLOCK; ++i) to[i] = 0;
  return to;
}

static void add_superblock(const compare_job *job, uint64_t begin, uint64_t count, lane_result *r) {
  float a[BLOCK], b[BLOCK];
  for (uint64_t at = 0; at < count; at += BLOCK) {
    const uint64_t now = count - at < BLOCK ? count - at : BLOCK;
    const float *x = load_block(job->formats[0], job->data[0] + bytes_of(job->formats[0], begin + at), now, a);
    const float *y = load_block(job->formats[1], job->data[1] + bytes_of(job->formats[1], begin + at), now, b);
    add_block(x, y, r);
    r->equal -= BLOCK - now;
  }
}

static void run_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const compare_job *job = argument;
  lane_result *r = &job->lanes[lane];
  double *sums[] = { r->squared, r->dot, r->norm_a, r->norm_b };
  for (uint64_t s = begin; s < end; ++s) {
    const uint64_t first = s * TM_SUM_SUPERBLOCK, left = job->count - first;
    for (int i = 0; i < 4; ++i) memset(sums[i], 0, sizeof r->squared);
    add_superblock(job, first, left < TM_SUM_SUPERBLOCK ? left : TM_SUM_SUPERBLOCK, r);
    for (int i = 0; i < 4; ++i) tm_sum_add(r->words[i], tm_sum_of_lanes(sums[i]));
  }
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void join(lane_result *all, const lane_result *part) {
  all->equal += part->equal;
  all->nonfinite += part->nonfinite;
  if (part->max_abs > all->max_abs) all->max_abs = part->max_abs;
  if (part->max_rel > all->max_rel) all->max_rel = part->max_rel;
  for (int i = 0; i < 4; ++i) tm_sum_combine(all->words[i], part->words[i]);
}

static void store(const lane_result *all, uint64_t count, void *out) {
  uint64_t words[TM_COMPARISON_WORDS] = {
    [TM_COMPARISON_COUNT] = count,
    [TM_COMPARISON_EQUAL_BITS] = all->equal,
    [TM_COMPARISON_NONFINITE] = all->nonfinite,
    [TM_COMPARISON_MAX_ABS] = bits_of(all->max_abs),
    [TM_COMPARISON_MAX_REL] = bits_of(all->max_rel),
  };
  static const size_t places[] = { TM_COMPARISON_SUM_SQUARED, TM_COMPARISON_DOT, TM_COMPARISON_NORM_A, TM_COMPARISON_NORM_B };
  for (int i = 0; i < 4; ++i) memcpy(words + places[i], all->words[i], sizeof all->words[i]);
  memcpy(out, words, sizeof words);
}

static void run(const cpu_call *call) {
  const tm_operand *operands = call->operation->operands;
  const uint64_t count = operands[0].element_count;
  const uint64_t superblocks = count / TM_SUM_SUPERBLOCK + (count % TM_SUM_SUPERBLOCK != 0);
  compare_job job = {
    .formats = { find_source(operands[0].format), find_source(operands[1].format) },
    .data = { call->pointers[0], call->pointers[1] },
    .count = count,
    .lanes = call->workspace,
  };
  const uint32_t lanes = call->host->lane_count;
  memset(job.lanes, 0, lanes * sizeof *job.lanes);
  if (superblocks <= 1) run_range(&job, 0, superblocks, 0);
  else call->host->parallel_for(call->host->context, superblocks, 1, run_range, &job);
  for (uint32_t i = 1; i < lanes; ++i) join(&job.lanes[0], &job.lanes[i]);
  store(&job.lanes[0], count, call->pointers[2]);
}

/* ---- the row ---- */

#define PAIRS_PER_US 1600.0     /* of one core where memory does not limit it */

static uint32_t refuses(const tm_operation *operation, uint32_t *out_operand) {
  for (uint32_t i = 0; i < 2; ++i) {
    *out_operand = i;
    if (find_source(operation->operands[i].format) == NULL) return TM_REASON_FORMAT;
  }
  return kernel_refuses_strided(operation, out_operand);
}

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  const uint64_t count = operation->operands[0].element_count;
  return 950 + cpu_cost_ns((double)count, PAIRS_PER_US, kernel_operand_bytes(operation), count <= TM_SUM_SUPERBLOCK ? 1 : lanes);
}

static uint64_t workspace_bytes(const tm_operation *operation, uint32_t lanes) {
  (void)operation;
  return (uint64_t)lanes * sizeof(lane_result);
}

static const cpu_row rows[] = {
  {
    .op = TM_OP_COMPARE_TENSORS,
    .formats = { TM_FORMAT_NONE, TM_FORMAT_NONE, TM_FORMAT_U64 },
    .isa = CPU_ISA_AVX2,
    .level = TM_LEVEL_NATIVE,
    .numerics = TM_NUMERICS_N0,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,
    .name = "cpu_compare_tensors__avx2",
    .refuses = refuses,
    .cost_ns = cost_ns,
    .workspace_bytes = workspace_bytes,
    .run = run,
  },
};

const kernel_row_table cpu_rows_compare_tensors = { rows, sizeof rows / sizeof rows[0] };
