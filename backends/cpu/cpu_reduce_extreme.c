/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_MIN, TM_OP_MAX and TM_OP_ARGMAX of f32, bf16 and f16.  Floats become integers in the order of their values, -0 below
 * +0; for a minimum all bits are flipped, so that everything is a maximum of integers.  A NaN wins: if a row has one, the
 * first is looked for afterwards.
 */
#include <math.h>

#include "cpu_reduce.h"

#define PART_ELEMENTS 16384u    /* at least so many for a thread */
#define NONE UINT64_MAX

/* The best of a part of a row. */
typedef struct part_best {
  int32_t  key;
  uint64_t index;               /* of the first element with that key (argmax only), or of the first NaN */
  uint64_t nan_index;           /* NONE: there is none */
} part_best;

typedef struct extreme_job {
  cpu_reduce_shape     shape;
  cpu_reduce_source    source;
  uint32_t             op;
  int32_t              flip;            /* -1 for a minimum, else 0 */
  const unsigned char *x;
  unsigned char       *y;
  uint64_t             row;             /* that is shared */
  part_best           *lane_bests;
} extreme_job;

static const part_best no_best = { INT32_MIN, NONE, NONE };

/* ---- keys ---- */

/* Integers in the order of the numbers.  argmax takes both zeros for equal, which adding +0 does. */
CPU_INLINE __m256i keys_of(__m256 x, int is_argmax, __m256i flip) {
  const __m256i bits = _mm256_castps_si256(is_argmax ? _mm256_add_ps(x, _mm256_setzero_ps()) : x);
  const __m256i reversed = _mm256_and_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(INT32_MAX));
  return _mm256_xor_si256(_mm256_xor_si256(bits, reversed), flip);
}

CPU_INLINE int32_t key_of(float x, int is_argmax, int32_t flip) {
  const float value = is_argmax ? x + 0.0f : x;
  int32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits ^ (bits < 0 ? INT32_MAX : 0)) ^ flip;
}

/* The bits of the f32 behind a key. */
static uint32_t bits_of_key(int32_t key, int32_t flip) {
  const int32_t plain = key ^ flip;
  return (uint32_t)(plain ^ (plain < 0 ? INT32_MAX : 0));
}

static CPU_AVX2 int32_t largest_key(__m256i keys) {
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(keys), _mm256_extracti128_si256(keys, 1));
  half = _mm_max_epi32(half, _mm_unpackhi_epi64(half, half));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 1));
  return _mm_cvtsi128_si32(half);
}

/* ---- along a row ---- */

CPU_INLINE uint64_t first_nan(cpu_reduce_source s, const unsigned char *data, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (isnan(cpu_reduce_one(s, data + i * cpu_reduce_bytes(s)))) return i;
  }
  return NONE;
}

/* The first element with this key, which there is. */
CPU_INLINE uint64_t first_with_key(cpu_reduce_source s, const unsigned char *data, uint64_t count, int32_t key) {
  const __m256i wanted = _mm256_set1_epi32(key), flip = _mm256_setzero_si256();
  uint64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i keys = keys_of(cpu_reduce_load(s, data + i * cpu_reduce_bytes(s)), 1, flip);
    const int equal = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(keys, wanted)));
    if (equal != 0) return i + (uint64_t)__builtin_ctz((unsigned)equal);
  }
  while (key_of(cpu_reduce_one(s, data + i * cpu_reduce_bytes(s)), 1, 0) != key) i++;
  return i;
}

CPU_INLINE part_best best_of(cpu_reduce_source s, int is_argmax, int32_t flip_all, const unsigned char *data, uint64_t count) {
  const uint64_t step = cpu_reduce_bytes(s);
  const __m256i flip = _mm256_set1_epi32(flip_all);
  __m256i best = _mm256_set1_epi32(INT32_MIN), other = best;
  __m256 nan = _mm256_setzero_ps();
  part_best result = no_best;
  uint64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    CPU_PREFETCH(data + i * step);
    const __m256 x = cpu_reduce_load(s, data + i * step), y = cpu_reduce_load(s, data + (i + 8) * step);
    best = _mm256_max_epi32(best, keys_of(x, is_argmax, flip));
    other = _mm256_max_epi32(other, keys_of(y, is_argmax, flip));
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(x, y, _CMP_UNORD_Q));
  }
  int any_nan = _mm256_movemask_ps(nan) != 0;
  result.key = largest_key(_mm256_max_epi32(best, other));
  for (; i < count; ++i) {
    const float x = cpu_reduce_one(s, data + i * step);
    const int32_t key = key_of(x, is_argmax, flip_all);
    if (key > result.key) result.key = key;
    any_nan |= isnan(x);
  }
  if (any_nan) result.nan_index = first_nan(s, data, count);
  else if (is_argmax) result.index = first_with_key(s, data, count, result.key);
  return result;
}

#define BEST_OF(name, source)                                                                                             \
  static __attribute__((noinline)) CPU_AVX2 part_best max_##name(int32_t flip, const unsigned char *data, uint64_t count) { \
    return best_of(source, 0, flip, data, count);                                                                         \
  }                                                                                                                       \
  static __attribute__((noinline)) CPU_AVX2 part_best argmax_##name(int32_t flip, const unsigned char *data, uint64_t count) { \
    return best_of(source, 1, flip, data, count);                                                                         \
  }
BEST_OF(f32, CPU_REDUCE_F32)
BEST_OF(bf16, CPU_REDUCE_BF16)
BEST_OF(f16, CPU_REDUCE_F16)

static part_best best_of_part(const extreme_job *job, const unsigned char *data, uint64_t count) {
  part_best (*const functions[2][3])(int32_t, const unsigned char *, uint64_t) = {
    { max_f32, max_bf16, max_f16 }, { argmax_f32, argmax_bf16, argmax_f16 },
  };
  return functions[job->op == TM_OP_ARGMAX][job->source](job->flip, data, count);
}

/* ---- results ---- */

static CPU_AVX2 void store_value(const extreme_job *job, uint64_t output, uint32_t f32_bits) {
  float value;
  uint16_t narrow = (uint16_t)(f32_bits >> 16);
  memcpy(&value, &f32_bits, sizeof value);
  if (job->source == CPU_REDUCE_F32) memcpy(job->y + output * 4, &value, 4);
  if (job->source == CPU_REDUCE_F16) narrow = _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
  if (job->source != CPU_REDUCE_F32) memcpy(job->y + output * 2, &narrow, 2);
}

static void store(const extreme_job *job, uint64_t row, const part_best *best) {
  const uint64_t bytes = cpu_reduce_bytes(job->source);
  if (job->op == TM_OP_ARGMAX) {
    const uint64_t index = best->nan_index != NONE ? best->nan_index : best->index;
    memcpy(job->y + row * sizeof index, &index, sizeof index);
  } else if (best->nan_index != NONE) {
    memcpy(job->y + row * bytes, job->x + (row * job->shape.reduced + best->nan_index) * bytes, bytes);
  } else {
    store_value(job, row, bits_of_key(best->key, job->flip));
  }
}

static void row_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const extreme_job *job = argument;
  const uint64_t row_bytes = job->shape.reduced * cpu_reduce_bytes(job->source);
  (void)lane;
  for (uint64_t row = begin; row < end; ++row) {
    const part_best best = best_of_part(job, job->x + row * row_bytes, job->shape.reduced);
    store(job, row, &best);
  }
}

/* ---- a row shared by threads ---- */

/* The smaller index wins among equal keys, and among NaN. */
static void join(part_best *all, const part_best *part) {
  if (part->key > all->key || (part->key == all->key && part->index < all->index)) {
    all->key = part->key;
    all->index = part->index;
  }
  if (part->nan_index < all->nan_index) all->nan_index = part->nan_index;
}

static void shared_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const extreme_job *job = argument;
  const uint64_t count = job->shape.reduced;
  for (uint64_t p = begin; p < end; ++p) {
    const uint64_t at = p * CPU_REDUCE_PART, left = count - at;
    const unsigned char *data = job->x + (job->row * count + at) * cpu_reduce_bytes(job->source);
    part_best best = best_of_part(job, data, left < CPU_REDUCE_PART ? left : CPU_REDUCE_PART);
    if (best.index != NONE) best.index += at;
    if (best.nan_index != NONE) best.nan_index += at;
    join(&job->lane_bests[lane], &best);
  }
}

static void run_shared_rows(const cpu_call *call, extreme_job *job) {
  const uint64_t parts = (job->shape.reduced + CPU_REDUCE_PART - 1) / CPU_REDUCE_PART;
  const uint32_t lanes = call->host->lane_count;
  for (uint64_t row = 0; row < job->shape.outer; ++row) {
    job->row = row;
    for (uint32_t l = 0; l < lanes; ++l) job->lane_bests[l] = no_best;
    call->host->parallel_for(call->host->context, parts, 1, shared_range, job);
    for (uint32_t l = 1; l < lanes; ++l) join(&job->lane_bests[0], &job->lane_bests[l]);
    store(job, row, &job->lane_bests[0]);
  }
}

/* ---- down columns: eight at a time ---- */

/* Copies what is NaN from the first row that has one. */
static void copy_nan(const extreme_job *job, uint64_t outer, uint64_t column) {
  const uint64_t bytes = cpu_reduce_bytes(job->source), inner = job->shape.inner;
  for (uint64_t r = 0; r < job->shape.reduced; ++r) {
    const unsigned char *at = job->x + ((outer * job->shape.reduced + r) * inner + column) * bytes;
    if (!isnan(cpu_reduce_one(job->source, at))) continue;
    memcpy(job->y + (outer * inner + column) * bytes, at, bytes);
    return;
  }
}

CPU_INLINE void eight_columns(cpu_reduce_source s, const extreme_job *job, uint64_t outer, uint64_t column, uint64_t columns) {
  const uint64_t bytes = cpu_reduce_bytes(s), inner = job->shape.inner;
  const unsigned char *data = job->x + (outer * job->shape.reduced * inner + column) * bytes;
  const __m256i flip = _mm256_set1_epi32(job->flip);
  __m256i best = _mm256_set1_epi32(INT32_MIN);
  __m256 nan = _mm256_setzero_ps();
  for (uint64_t r = 0; r < job->shape.reduced; ++r, data += inner * bytes) {
    unsigned char last[32] = { 0 };
    if (columns < 8) memcpy(last, data, columns * bytes);
    const __m256 x = cpu_reduce_load(s, columns < 8 ? last : data);
    best = _mm256_max_epi32(best, keys_of(x, 0, flip));
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  int32_t keys[8];
  cpu_store(keys, best);
  const int nan_columns = _mm256_movemask_ps(nan);
  for (uint64_t c = 0; c < columns; ++c) {
    if (nan_columns >> c & 1) copy_nan(job, outer, column + c);
    else store_value(job, outer * inner + column + c, bits_of_key(keys[c], job->flip));
  }
}

static CPU_AVX2 void column_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const extreme_job *job = argument;
  const uint64_t inner = job->shape.inner, groups = (inner + 7) / 8;
  (void)lane;
  for (uint64_t item = begin; item < end; ++item) {
    const uint64_t outer = item / groups, column = item % groups * 8, columns = inner - column < 8 ? inner - column : 8;
    if (job->source == CPU_REDUCE_F32) eight_columns(CPU_REDUCE_F32, job, outer, column, columns);
    else if (job->source == CPU_REDUCE_BF16) eight_columns(CPU_REDUCE_BF16, job, outer, column, columns);
    else eight_columns(CPU_REDUCE_F16, job, outer, column, columns);
  }
}

/* ---- rows ---- */

static void run_extreme(const cpu_call *call, cpu_reduce_source source) {
  extreme_job job = {
    .source = source,
    .op = call->operation->op,
    .flip = call->operation->op == TM_OP_MIN ? -1 : 0,
    .x = call->pointers[0],
    .y = call->pointers[1],
    .lane_bests = call->workspace,
  };
  cpu_reduce_shape_of(call->operation, &job.shape);
  const uint64_t grain = PART_ELEMENTS / (job.shape.reduced * (job.shape.inner == 1 ? 1 : 8)) + 1;
  if (cpu_reduce_shares_rows(&job.shape, call->host->lane_count)) {
    run_shared_rows(call, &job);
  } else if (job.shape.inner == 1) {
    call->host->parallel_for(call->host->context, job.shape.outer, grain, row_range, &job);
  } else {
    call->host->parallel_for(call->host->context, job.shape.outer * ((job.shape.inner + 7) / 8), grain, column_range, &job);
  }
}

static void run_f32(const cpu_call *call) { run_extreme(call, CPU_REDUCE_F32); }
static void run_bf16(const cpu_call *call) { run_extreme(call, CPU_REDUCE_BF16); }
static void run_f16(const cpu_call *call) { run_extreme(call, CPU_REDUCE_F16); }

#define ELEMENTS_PER_US 12000.0

static uint32_t refuses_columns(const tm_operation *operation, uint32_t *out_operand) {
  cpu_reduce_shape shape;
  const uint32_t reasons = cpu_reduce_refuses(operation, out_operand);
  if (reasons != 0) return reasons;
  cpu_reduce_shape_of(operation, &shape);
  return shape.inner > 1 ? TM_REASON_SHAPE : 0;
}

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) { return cpu_reduce_cost_ns(operation, ELEMENTS_PER_US, lanes); }

static uint64_t workspace_bytes(const tm_operation *operation, uint32_t lanes) {
  cpu_reduce_shape shape;
  if (!cpu_reduce_shape_of(operation, &shape) || !cpu_reduce_shares_rows(&shape, lanes)) return 0;
  return (uint64_t)lanes * sizeof(part_best);
}

#define ROW(which, lower_op, id, lower, to_id, predicate)                                                       \
  { .op = TM_OP_##which, .formats = { TM_FORMAT_##id, TM_FORMAT_##to_id },                                      \
    .attribute_bytes = sizeof(tm_reduce_attributes), .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE,              \
    .numerics = TM_NUMERICS_N0, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE,          \
    .name = "cpu_" #lower_op "_" #lower "__avx2", .refuses = predicate, .cost_ns = cost_ns,                      \
    .workspace_bytes = workspace_bytes, .run = run_##lower }

static const cpu_row rows[] = {
  ROW(MIN, min, F32, f32, F32, cpu_reduce_refuses),      ROW(MIN, min, BF16, bf16, BF16, cpu_reduce_refuses),
  ROW(MIN, min, F16, f16, F16, cpu_reduce_refuses),      ROW(MAX, max, F32, f32, F32, cpu_reduce_refuses),
  ROW(MAX, max, BF16, bf16, BF16, cpu_reduce_refuses),   ROW(MAX, max, F16, f16, F16, cpu_reduce_refuses),
  ROW(ARGMAX, argmax, F32, f32, I64, refuses_columns),   ROW(ARGMAX, argmax, BF16, bf16, I64, refuses_columns),
  ROW(ARGMAX, argmax, F16, f16, I64, refuses_columns),
};

const kernel_row_table cpu_rows_reduce_extreme = { rows, sizeof rows / sizeof rows[0] };
