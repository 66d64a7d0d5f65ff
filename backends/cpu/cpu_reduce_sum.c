/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_SUM and TM_OP_MEAN of f32, bf16 and f16 in the canonical order (canonical_sum.h).  Along rows the 16 lanes are four
 * vectors; down columns each column has 16 lanes of its own in L1, and rows are added to them as they come by.
 */
#include <math.h>

#include "cpu_reduce.h"
#include "tensormorph/canonical_sum.h"

#define COLUMNS 64u             /* that are summed together: their lanes are 8 KiB */
#define PART_ELEMENTS 16384u    /* at least so many for a thread */

typedef struct sum_job {
  cpu_reduce_shape     shape;
  cpu_reduce_source    source;
  uint32_t             target;          /* TM_FORMAT_* of y */
  int                  is_mean;
  const unsigned char *x;
  unsigned char       *y;
  uint64_t             first_row;       /* of a shared row: which one */
  uint64_t           (*lane_words)[TM_SUM_WORDS];
} sum_job;

/* ---- along a row ---- */

CPU_INLINE void add_tail(cpu_reduce_source s, const unsigned char *data, uint64_t count, double *lanes) {
  for (uint64_t i = 0; i < count; ++i) lanes[i] += (double)cpu_reduce_one(s, data + i * cpu_reduce_bytes(s));
}

/* The sum of at most one superblock. */
CPU_INLINE double sum_superblock(cpu_reduce_source s, const unsigned char *data, uint64_t count) {
  const uint64_t step = cpu_reduce_bytes(s);
  __m256d a = _mm256_setzero_pd(), b = a, c = a, d = a;
  for (; count >= TM_SUM_LANES; count -= TM_SUM_LANES, data += TM_SUM_LANES * step) {
    CPU_PREFETCH(data);
    const __m256 low = cpu_reduce_load(s, data), high = cpu_reduce_load(s, data + 8 * step);
    a = _mm256_add_pd(a, _mm256_cvtps_pd(_mm256_castps256_ps128(low)));
    b = _mm256_add_pd(b, _mm256_cvtps_pd(_mm256_extractf128_ps(low, 1)));
    c = _mm256_add_pd(c, _mm256_cvtps_pd(_mm256_castps256_ps128(high)));
    d = _mm256_add_pd(d, _mm256_cvtps_pd(_mm256_extractf128_ps(high, 1)));
  }
  double lanes[TM_SUM_LANES];
  _mm256_storeu_pd(lanes, a);
  _mm256_storeu_pd(lanes + 4, b);
  _mm256_storeu_pd(lanes + 8, c);
  _mm256_storeu_pd(lanes + 12, d);
  add_tail(s, data, count, lanes);
  return tm_sum_of_lanes(lanes);
}

static __attribute__((noinline)) CPU_AVX2 double sum_f32(const unsigned char *data, uint64_t count) {
  return sum_superblock(CPU_REDUCE_F32, data, count);
}
static __attribute__((noinline)) CPU_AVX2 double sum_bf16(const unsigned char *data, uint64_t count) {
  return sum_superblock(CPU_REDUCE_BF16, data, count);
}
static __attribute__((noinline)) CPU_AVX2 double sum_f16(const unsigned char *data, uint64_t count) {
  return sum_superblock(CPU_REDUCE_F16, data, count);
}

static double sum_part(cpu_reduce_source s, const unsigned char *data, uint64_t count) {
  if (s == CPU_REDUCE_F32) return sum_f32(data, count);
  return s == CPU_REDUCE_BF16 ? sum_bf16(data, count) : sum_f16(data, count);
}

/* What a single superblock's sum reads as: the exact accumulator has but one NaN. */
static double single_sum(double sum) { return isnan(sum) ? (double)NAN : sum; }

static double sum_row(const sum_job *job, const unsigned char *data) {
  const uint64_t count = job->shape.reduced;
  if (count <= TM_SUM_SUPERBLOCK) return single_sum(sum_part(job->source, data, count));
  uint64_t words[TM_SUM_WORDS];
  tm_sum_init(words);
  for (uint64_t at = 0; at < count; at += TM_SUM_SUPERBLOCK) {
    const uint64_t left = count - at;
    tm_sum_add(words, sum_part(job->source, data + at * cpu_reduce_bytes(job->source), left < TM_SUM_SUPERBLOCK ? left : TM_SUM_SUPERBLOCK));
  }
  return tm_sum_read(words);
}

/* ---- results ---- */

/* A narrow result must be rounded once, so the f32 on the way there is rounded to odd: then it forgets nothing that
   decides the second rounding. */
static float round_to_odd(double value) {
  float result = (float)value;
  uint32_t bits;
  if (!isfinite(value) || (double)result == value) return result;
  memcpy(&bits, &result, sizeof bits);
  if (fabs((double)result) > fabs(value)) bits--;
  bits |= 1u;
  memcpy(&result, &bits, sizeof result);
  return result;
}

static CPU_AVX2 uint16_t narrow(uint32_t format, double value) {
  const __m256 odd = _mm256_set1_ps(round_to_odd(value));
  const __m256i both = format == TM_FORMAT_BF16 ? cpu_narrow_bf16(odd, odd) : cpu_narrow_f16(odd, odd);
  return (uint16_t)_mm256_extract_epi16(both, 0);
}

static void store(const sum_job *job, uint64_t index, double sum) {
  const double value = job->is_mean ? sum / (double)job->shape.reduced : sum;
  if (job->target == TM_FORMAT_F32) {
    const float wide = (float)value;
    memcpy(job->y + index * sizeof wide, &wide, sizeof wide);
  } else {
    const uint16_t bits = narrow(job->target, value);
    memcpy(job->y + index * sizeof bits, &bits, sizeof bits);
  }
}

/* ---- down columns ---- */

CPU_INLINE void add_columns(cpu_reduce_source s, const unsigned char *data, uint64_t columns, double *lane) {
  uint64_t i = 0;
  for (; i + 8 <= columns; i += 8) {
    const __m256 x = cpu_reduce_load(s, data + i * cpu_reduce_bytes(s));
    _mm256_storeu_pd(lane + i, _mm256_add_pd(cpu_load_pd(lane + i), _mm256_cvtps_pd(_mm256_castps256_ps128(x))));
    _mm256_storeu_pd(lane + i + 4, _mm256_add_pd(cpu_load_pd(lane + i + 4), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))));
  }
  add_tail(s, data + i * cpu_reduce_bytes(s), columns - i, lane + i);
}

CPU_INLINE void sum_columns(cpu_reduce_source s, const sum_job *job, const unsigned char *data, uint64_t columns, double (*lanes)[COLUMNS]) {
  const uint64_t row_bytes = job->shape.inner * cpu_reduce_bytes(s);
  memset(lanes, 0, TM_SUM_LANES * sizeof *lanes);
  for (uint64_t r = 0; r < job->shape.reduced; ++r) add_columns(s, data + r * row_bytes, columns, lanes[r % TM_SUM_LANES]);
}
static CPU_AVX2 void columns_f32(const sum_job *job, const unsigned char *data, uint64_t columns, double (*lanes)[COLUMNS]) {
  sum_columns(CPU_REDUCE_F32, job, data, columns, lanes);
}
static CPU_AVX2 void columns_bf16(const sum_job *job, const unsigned char *data, uint64_t columns, double (*lanes)[COLUMNS]) {
  sum_columns(CPU_REDUCE_BF16, job, data, columns, lanes);
}
static CPU_AVX2 void columns_f16(const sum_job *job, const unsigned char *data, uint64_t columns, double (*lanes)[COLUMNS]) {
  sum_columns(CPU_REDUCE_F16, job, data, columns, lanes);
}

static void store_columns(const sum_job *job, uint64_t first, uint64_t columns, double (*lanes)[COLUMNS]) {
  for (uint64_t c = 0; c < columns; ++c) {
    double one[TM_SUM_LANES];
    for (int l = 0; l < TM_SUM_LANES; ++l) one[l] = lanes[l][c];
    store(job, first + c, single_sum(tm_sum_of_lanes(one)));
  }
}

/* Items are groups of columns, all of one outer index before those of the next. */
static void column_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const sum_job *job = argument;
  double lanes[TM_SUM_LANES][COLUMNS];
  const uint64_t inner = job->shape.inner, groups = (inner + COLUMNS - 1) / COLUMNS;
  (void)lane;
  for (uint64_t item = begin; item < end; ++item) {
    const uint64_t outer = item / groups, column = item % groups * COLUMNS;
    const uint64_t columns = inner - column < COLUMNS ? inner - column : COLUMNS;
    const unsigned char *data = job->x + (outer * job->shape.reduced * inner + column) * cpu_reduce_bytes(job->source);
    if (job->source == CPU_REDUCE_F32) columns_f32(job, data, columns, lanes);
    else if (job->source == CPU_REDUCE_BF16) columns_bf16(job, data, columns, lanes);
    else columns_f16(job, data, columns, lanes);
    store_columns(job, outer * inner + column, columns, lanes);
  }
}

/* ---- threads ---- */

static void row_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const sum_job *job = argument;
  const uint64_t row_bytes = job->shape.reduced * cpu_reduce_bytes(job->source);
  (void)lane;
  for (uint64_t row = begin; row < end; ++row) store(job, row, sum_row(job, job->x + row * row_bytes));
}

/* Superblocks of one row. */
static void shared_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const sum_job *job = argument;
  const uint64_t count = job->shape.reduced;
  for (uint64_t s = begin; s < end; ++s) {
    const uint64_t at = s * TM_SUM_SUPERBLOCK, left = count - at;
    const unsigned char *data = job->x + (job->first_row * count + at) * cpu_reduce_bytes(job->source);
    tm_sum_add(job->lane_words[lane], sum_part(job->source, data, left < TM_SUM_SUPERBLOCK ? left : TM_SUM_SUPERBLOCK));
  }
}

static void run_shared_rows(const cpu_call *call, sum_job *job) {
  const uint64_t superblocks = (job->shape.reduced + TM_SUM_SUPERBLOCK - 1) / TM_SUM_SUPERBLOCK;
  const uint32_t lanes = call->host->lane_count;
  for (uint64_t row = 0; row < job->shape.outer; ++row) {
    job->first_row = row;
    for (uint32_t l = 0; l < lanes; ++l) tm_sum_init(job->lane_words[l]);
    call->host->parallel_for(call->host->context, superblocks, 2, shared_range, job);
    for (uint32_t l = 1; l < lanes; ++l) tm_sum_combine(job->lane_words[0], job->lane_words[l]);
    store(job, row, tm_sum_read(job->lane_words[0]));
  }
}

static void run_sum(const cpu_call *call, cpu_reduce_source source) {
  sum_job job = {
    .source = source,
    .target = call->operation->operands[1].format,
    .is_mean = call->operation->op == TM_OP_MEAN,
    .x = call->pointers[0],
    .y = call->pointers[1],
    .lane_words = call->workspace,
  };
  cpu_reduce_shape_of(call->operation, &job.shape);
  const uint64_t per_item = job.shape.reduced * (job.shape.inner == 1 ? 1 : COLUMNS);
  const uint64_t grain = PART_ELEMENTS / per_item + 1;
  if (cpu_reduce_shares_rows(&job.shape, call->host->lane_count)) {
    run_shared_rows(call, &job);
  } else if (job.shape.inner == 1) {
    call->host->parallel_for(call->host->context, job.shape.outer, grain, row_range, &job);
  } else {
    const uint64_t groups = (job.shape.inner + COLUMNS - 1) / COLUMNS;
    call->host->parallel_for(call->host->context, job.shape.outer * groups, grain, column_range, &job);
  }
}

static void run_f32(const cpu_call *call) { run_sum(call, CPU_REDUCE_F32); }
static void run_bf16(const cpu_call *call) { run_sum(call, CPU_REDUCE_BF16); }
static void run_f16(const cpu_call *call) { run_sum(call, CPU_REDUCE_F16); }

/* ---- rows ---- */

#define ELEMENTS_PER_US 9000.0

/* Columns with more than a superblock of terms would each need an exact accumulator. */
static uint32_t refuses(const tm_operation *operation, uint32_t *out_operand) {
  cpu_reduce_shape shape;
  const uint32_t reasons = cpu_reduce_refuses(operation, out_operand);
  if (reasons != 0) return reasons;
  cpu_reduce_shape_of(operation, &shape);
  return shape.inner > 1 && shape.reduced > TM_SUM_SUPERBLOCK ? TM_REASON_SIZE : 0;
}

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) { return cpu_reduce_cost_ns(operation, ELEMENTS_PER_US, lanes); }

static uint64_t workspace_bytes(const tm_operation *operation, uint32_t lanes) {
  cpu_reduce_shape shape;
  if (!cpu_reduce_shape_of(operation, &shape) || !cpu_reduce_shares_rows(&shape, lanes)) return 0;
  return (uint64_t)lanes * TM_SUM_WORDS * sizeof(uint64_t);
}

#define ROW(which, lower_op, from_id, from, to_id, to)                                                                  \
  { .op = TM_OP_##which, .formats = { TM_FORMAT_##from_id, TM_FORMAT_##to_id },                                         \
    .attribute_bytes = sizeof(tm_reduce_attributes), .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE,                      \
    .numerics = TM_NUMERICS_N0, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,                  \
    .name = "cpu_" #lower_op "_" #from "_" #to "__avx2", .refuses = refuses, .cost_ns = cost_ns,                         \
    .workspace_bytes = workspace_bytes, .run = run_##from }

static const cpu_row rows[] = {
  ROW(SUM, sum, F32, f32, F32, f32),     ROW(SUM, sum, BF16, bf16, F32, f32),   ROW(SUM, sum, BF16, bf16, BF16, bf16),
  ROW(SUM, sum, F16, f16, F32, f32),     ROW(SUM, sum, F16, f16, F16, f16),     ROW(MEAN, mean, F32, f32, F32, f32),
  ROW(MEAN, mean, BF16, bf16, F32, f32), ROW(MEAN, mean, BF16, bf16, BF16, bf16), ROW(MEAN, mean, F16, f16, F32, f32),
  ROW(MEAN, mean, F16, f16, F16, f16),
};

const kernel_row_table cpu_rows_reduce_sum = { rows, sizeof rows / sizeof rows[0] };
