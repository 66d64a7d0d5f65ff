/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_ATTENTION.  One head of one token at a time: the scores of all its keys in f32, four keys at once; their
 * exponentials in f64, made into weights that add up to one; then the weighted values, four keys at once.  q is scaled first
 * and weights are normal, so that no sum is larger than what it is made for.
 */
#include <math.h>

#include "cpu_memory_cost.h"
#include "cpu_transcendental_math.h"

#define LARGEST_SIZE (UINT64_C(1) << 24)        /* of the capacity, and of a head's elements: scores lie in the workspace */
#define SERIAL_PRODUCTS 65536.0
#define PRODUCT_NS 0.052
#define KEY_PRODUCTS 64u        /* what a key costs besides, in products */
#define PAD 8u

/* scores[0..3] of four keys, of which the elements lie at `key` and `step` bytes apart. */
typedef void (*score_fn)(const float *q, const char *key, int64_t step, uint64_t n, float *out_scores);
/* y += the sum of weights[0..3] times four values. */
typedef void (*weigh_fn)(const float *weights, const char *value, int64_t step, uint64_t n, float *y);

typedef struct format_functions {
  uint32_t format;
  score_fn score;
  weigh_fn weigh;
  void   (*add)(float weight, const char *value, uint64_t n, float *y);
  void   (*load)(const char *x, uint64_t n, float *out_values);
  void   (*store)(char *y, uint64_t n, const float *values);
} format_functions;

typedef struct attention_job {
  const tm_operand *operands;   /* q, k, v, length, [mask,] y */
  void *const      *pointers;
  const format_functions *q, *k, *v, *y, *mask;        /* mask: NULL without one, or where it is bool */
  char             *workspace;
  uint64_t          lane_bytes, tokens, heads, group, dim, width, capacity, length;
  uint32_t          y_index;
  int               is_causal, has_mask;
  float             scale;
} attention_job;

/* What one thread works with. */
typedef struct scratch {
  float *q, *scores, *y;
} scratch;

CPU_INLINE_AVX2 __m128 total_of_four(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

/* A short end is read as far as it goes; q has zeros behind its own. */
#define GET(T, row, i, n) ((i) + 8 <= (n) ? load_##T(row, i) : load_part_##T(row, i, (n) - (i)))
#define DEFINE_FORMAT(T)                                                                                              \
  CPU_AVX2 static void score_##T(const float *q, const char *key, int64_t step, uint64_t n, float *out_scores) {      \
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;                                                              \
    for (uint64_t i = 0; i < n; i += 8) {                                                                             \
      const __m256 x = _mm256_loadu_ps(q + i);                                                                        \
      a = _mm256_fmadd_ps(x, GET(T, key, i, n), a);                                                                   \
      b = _mm256_fmadd_ps(x, GET(T, key + step, i, n), b);                                                            \
      c = _mm256_fmadd_ps(x, GET(T, key + 2 * step, i, n), c);                                                        \
      d = _mm256_fmadd_ps(x, GET(T, key + 3 * step, i, n), d);                                                        \
    }                                                                                                                 \
    _mm_storeu_ps(out_scores, total_of_four(a, b, c, d));                                                             \
  }                                                                                                                   \
  CPU_AVX2 static void weigh_##T(const float *weights, const char *value, int64_t step, uint64_t n, float *y) {       \
    const __m256 a = _mm256_set1_ps(weights[0]), b = _mm256_set1_ps(weights[1]);                                      \
    const __m256 c = _mm256_set1_ps(weights[2]), d = _mm256_set1_ps(weights[3]);                                      \
    for (uint64_t i = 0; i < n; i += 8) {                                                                             \
      __m256 sum = _mm256_loadu_ps(y + i);                                                                            \
      sum = _mm256_fmadd_ps(a, GET(T, value, i, n), sum);                                                             \
      sum = _mm256_fmadd_ps(b, GET(T, value + step, i, n), sum);                                                      \
      sum = _mm256_fmadd_ps(c, GET(T, value + 2 * step, i, n), sum);                                                  \
      sum = _mm256_fmadd_ps(d, GET(T, value + 3 * step, i, n), sum);                                                  \
      _mm256_storeu_ps(y + i, sum);                                                                                   \
    }                                                                                                                 \
  }                                                                                                                   \
  CPU_AVX2 static void add_##T(float weight, const char *value, uint64_t n, float *y) {                               \
    const __m256 a = _mm256_set1_ps(weight);                                                                          \
    for (uint64_t i = 0; i < n; i += 8)                                                                               \
      _mm256_storeu_ps(y + i, _mm256_fmadd_ps(a, GET(T, value, i, n), _mm256_loadu_ps(y + i)));                       \
  }                                                                                                                   \
  CPU_AVX2 static void load_all_##T(const char *x, uint64_t n, float *out_values) {                                   \
    for (uint64_t i = 0; i < n; i += 8) _mm256_storeu_ps(out_values + i, GET(T, x, i, n));                            \
  }                                                                                                                   \
  CPU_AVX2 static void store_all_##T(char *y, uint64_t n, const float *values) {                                      \
    uint64_t i = 0;                                                                                                   \
    for (; i + 8 <= n; i += 8) store_##T(y, i, _mm256_loadu_ps(values + i));                                          \
    if (i < n) store_part_##T(y, i, _mm256_loadu_ps(values + i), n - i);                                              \
  }
DEFINE_FORMAT(f32)
DEFINE_FORMAT(bf16)
DEFINE_FORMAT(f16)

static const format_functions formats[] = {
  { TM_FORMAT_F32, score_f32, weigh_f32, add_f32, load_all_f32, store_all_f32 },
  { TM_FORMAT_BF16, score_bf16, weigh_bf16, add_bf16, load_all_bf16, store_all_bf16 },
  { TM_FORMAT_F16, score_f16, weigh_f16, add_f16, load_all_f16, store_all_f16 },
};

static const format_functions *functions_of(const tm_operand *operand) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; ++i)
    if (formats[i].format == operand->format) return &formats[i];
  return NULL;
}

/* Strides of axes counted from the last: 1 heads, 2 tokens or keys, 3 batches. */
static int64_t step(const tm_operand *x, uint32_t from_last) {
  return x->rank > from_last ? x->strides_bytes[x->rank - 1 - from_last] : 0;
}

/* ---- scores ---- */

static void score_keys(const attention_job *job, const char *k, uint64_t count, const scratch *s) {
  const int64_t key_step = step(&job->operands[1], 2);
  uint64_t key = 0;
  float last[4];
  for (; key + 4 <= count; key += 4) job->k->score(s->q, k + (int64_t)key * key_step, key_step, job->dim, s->scores + key);
  for (; key < count; ++key) {
    job->k->score(s->q, k + (int64_t)key * key_step, 0, job->dim, last);
    s->scores[key] = last[0];
  }
}

static int64_t mask_offset(const tm_operand *mask, uint32_t from_last, uint64_t index) {
  return mask->rank > from_last && mask->dims[mask->rank - 1 - from_last] != 1 ? (int64_t)index * step(mask, from_last) : 0;
}

/* The mask's value for a key: 0 or -Inf where it is bool. */
static float mask_at(const attention_job *job, const char *mask, uint64_t key) {
  float values[PAD];            /* a whole vector is written */
  const char *address = mask + mask_offset(&job->operands[4], 0, key);
  if (job->mask == NULL) return *address != 0 ? 0.0f : -HUGE_VALF;
  job->mask->load(address, 1, values);
  return values[0];
}

/* Adds the mask and counts the keys that take part; the others get -Inf. */
static uint64_t mask_scores(const attention_job *job, const char *mask, uint64_t count, float *scores) {
  uint64_t kept = 0;
  for (uint64_t key = 0; key < count; ++key) {
    const float value = mask_at(job, mask, key);
    scores[key] = value == -HUGE_VALF ? -HUGE_VALF : scores[key] + value;
    kept += value != -HUGE_VALF;
  }
  return kept;
}

static float largest_score(const float *scores, uint64_t count) {
  float largest = -HUGE_VALF;
  for (uint64_t key = 0; key < count; ++key) largest = scores[key] > largest ? scores[key] : largest;
  return largest;
}

/* Scores become weights.  NaN was passed over in the largest and comes back here. */
CPU_AVX2 static void make_weights(float *scores, uint64_t count, float largest) {
  const __m256d top = _mm256_set1_pd((double)largest);
  double total = 0;
  for (uint64_t key = 0; key < count; key += 4) {
    double e[4];
    _mm256_storeu_pd(e, exp_pd(_mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(scores + key)), top)));
    for (uint64_t i = 0; i < 4 && key + i < count; ++i) total += e[i];
    for (uint64_t i = 0; i < 4; ++i) scores[key + i] = (float)e[i];
  }
  for (uint64_t key = 0; key < count; ++key) scores[key] = (float)((double)scores[key] / total);
}

/* ---- values ---- */

static int all_count(const float *weights) { return weights[0] != 0 && weights[1] != 0 && weights[2] != 0 && weights[3] != 0; }

/* A key that takes no part may have any value, NaN as well, so it is left out. */
static void weigh_values(const attention_job *job, const char *v, uint64_t count, const scratch *s) {
  const int64_t value_step = step(&job->operands[2], 2);
  for (uint64_t key = 0; key < count;) {
    const char *value = v + (int64_t)key * value_step;
    if (key + 4 <= count && all_count(s->scores + key)) {
      job->v->weigh(s->scores + key, value, value_step, job->width, s->y);
      key += 4;
      continue;
    }
    const float one = s->scores[key++];
    if (one != 0) job->v->add(one, value, job->width, s->y);
  }
}

static void fill(float *values, uint64_t count, float value) {
  for (uint64_t i = 0; i < count; ++i) values[i] = value;
}

static uint64_t key_count(const attention_job *job, uint64_t token) {
  const uint64_t after = job->is_causal ? job->tokens - 1 - token : 0;
  return after < job->length ? job->length - after : 0;
}

static void attend(const attention_job *job, uint64_t unit, const scratch *s) {
  const uint64_t head = unit % job->heads, token = unit / job->heads % job->tokens, batch = unit / job->heads / job->tokens;
  const tm_operand *q = &job->operands[0], *k = &job->operands[1], *v = &job->operands[2], *y = &job->operands[job->y_index];
  const char *q_row = (const char *)job->pointers[0] + (int64_t)batch * step(q, 3) + (int64_t)token * step(q, 2) + (int64_t)head * step(q, 1);
  const int64_t shared = (int64_t)(head / job->group);
  const uint64_t count = key_count(job, token);
  uint64_t kept = count;
  job->q->load(q_row, job->dim, s->q);
  for (uint64_t i = 0; i < job->dim; ++i) s->q[i] *= job->scale;
  score_keys(job, (const char *)job->pointers[1] + (int64_t)batch * step(k, 3) + shared * step(k, 1), count, s);
  if (job->has_mask) {
    const tm_operand *mask = &job->operands[4];
    const int64_t offset = mask_offset(mask, 3, batch) + mask_offset(mask, 2, head) + mask_offset(mask, 1, token);
    kept = mask_scores(job, (const char *)job->pointers[4] + offset, count, s->scores);
  }
  const float largest = largest_score(s->scores, count);
  fill(s->y, job->width, kept > 0 && largest == -HUGE_VALF ? NAN : 0.0f);
  if (largest != -HUGE_VALF) {
    make_weights(s->scores, count, largest);
    weigh_values(job, (const char *)job->pointers[2] + (int64_t)batch * step(v, 3) + shared * step(v, 1), count, s);
  }
  job->y->store((char *)job->pointers[job->y_index] + (int64_t)batch * step(y, 3) + (int64_t)token * step(y, 2) + (int64_t)head * step(y, 1),
                job->width, s->y);
}

/* ---- threads ---- */

static uint64_t padded(uint64_t count) { return (count + 2 * PAD - 1) / PAD * PAD; }

static void attend_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const attention_job *job = argument;
  scratch s = { .q = (float *)(void *)(job->workspace + lane * job->lane_bytes) };
  s.scores = s.q + padded(job->dim);
  s.y = s.scores + padded(job->capacity);
  fill(s.q, padded(job->dim), 0);
  fill(s.scores, padded(job->capacity), 0);
  for (uint64_t unit = begin; unit < end; ++unit) attend(job, unit, &s);
}

static uint64_t bytes_a_lane(const tm_operation *operation) {
  const tm_operand *k = &operation->operands[1], *v = &operation->operands[2];
  const uint64_t floats = padded(k->dims[k->rank - 1]) + padded(v->dims[v->rank - 1]) + padded(k->dims[k->rank - 3]);
  return (floats * sizeof(float) + 63) / 64 * 64;
}

static uint64_t workspace_bytes(const tm_operation *operation, uint32_t lanes) { return bytes_a_lane(operation) * lanes; }

static uint64_t read_length(const tm_operand *operand, const void *address) {
  int64_t wide = 0;
  int32_t narrow;
  if (operand->format == TM_FORMAT_I64) memcpy(&wide, address, sizeof wide);
  else {
    memcpy(&narrow, address, sizeof narrow);
    wide = narrow;
  }
  return wide < 0 ? 0 : (uint64_t)wide;
}

static double product_count(const tm_operation *operation) {
  const tm_operand *q = &operation->operands[0], *k = &operation->operands[1], *v = &operation->operands[2];
  const double units = q->dims[q->rank - 1] == 0 ? 0 : (double)q->element_count / (double)q->dims[q->rank - 1];
  return units * (double)k->dims[k->rank - 3] * (double)(k->dims[k->rank - 1] + v->dims[v->rank - 1] + KEY_PRODUCTS);
}

static void run_attention(const cpu_call *call) {
  const tm_operation *operation = call->operation;
  const tm_attention_attributes *attributes = operation->attributes;
  const tm_operand *q = &operation->operands[0], *k = &operation->operands[1], *v = &operation->operands[2];
  const tm_operand *y = &operation->operands[operation->input_count];
  if (y->element_count == 0) return;
  attention_job job = {
    .operands = operation->operands, .pointers = call->pointers, .workspace = call->workspace, .y_index = operation->input_count,
    .q = functions_of(q), .k = functions_of(k), .v = functions_of(v), .y = functions_of(y),
    .lane_bytes = bytes_a_lane(operation), .tokens = q->dims[q->rank - 3], .heads = q->dims[q->rank - 2],
    .group = q->dims[q->rank - 2] / k->dims[k->rank - 2], .dim = q->dims[q->rank - 1], .width = v->dims[v->rank - 1],
    .capacity = k->dims[k->rank - 3], .is_causal = attributes->causal != 0, .has_mask = operation->input_count > 4,
  };
  const uint64_t length = read_length(&operation->operands[3], call->pointers[3]);
  job.length = length < job.capacity ? length : job.capacity;
  job.mask = job.has_mask ? functions_of(&operation->operands[4]) : NULL;
  job.scale = (float)(attributes->scale != 0 ? attributes->scale : 1.0 / sqrt((double)job.dim));
  const uint64_t units = y->element_count / job.width;
  const double each = (double)(job.length + 1) * (double)(job.dim + job.width + KEY_PRODUCTS);
  const uint64_t grain = each < SERIAL_PRODUCTS ? (uint64_t)(SERIAL_PRODUCTS / each) + 1 : 1;
  call->host->parallel_for(call->host->context, units, grain, attend_range, &job);
}

/* ---- the row ---- */

static int64_t element_bytes(const tm_operand *operand) {
  return operand->format == TM_FORMAT_F32 ? 4 : operand->format == TM_FORMAT_BOOL ? 1 : 2;
}

/* Elements of a head lie densely; everything else may have any strides. */
static uint32_t refuses(const tm_operation *operation, uint32_t *out_operand) {
  const tm_operand *operands = operation->operands;
  const uint32_t dense[] = { 0, 1, 2, operation->input_count };
  for (uint32_t i = 0; i < 4; ++i) {
    const tm_operand *operand = &operands[dense[i]];
    *out_operand = dense[i];
    if (operand->dims[operand->rank - 1] > LARGEST_SIZE || operand->dims[operand->rank - 3] > LARGEST_SIZE) return TM_REASON_SIZE;
    if (operand->dims[operand->rank - 1] > 1 && operand->strides_bytes[operand->rank - 1] != element_bytes(operand)) return TM_REASON_LAYOUT;
  }
  *out_operand = TM_NO_OPERAND;
  return operands[0].dims[operands[0].rank - 1] == 0 ? TM_REASON_SHAPE : 0;
}

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  const double products = product_count(operation), parts = products <= SERIAL_PRODUCTS ? 1.0 : (double)lanes;
  const double bytes = (double)operation->operands[1].byte_count + (double)operation->operands[2].byte_count;
  const double ns = 150.0 + products * PRODUCT_NS / parts + 0.3 * cpu_move_ns(bytes, parts) + (parts > 1.0 ? CPU_WAKE_NS : 0);
  return cpu_whole_ns(ns);
}

#define BIT(name) KERNEL_FORMAT_BIT(TM_FORMAT_##name)
#define NARROW (BIT(F32) | BIT(F16) | BIT(BF16))
#define INDICES (BIT(I32) | BIT(I64))

/* Without a mask y stands in its place, and cannot be bool. */
static const cpu_row rows[] = {
  { .op = TM_OP_ATTENTION, .formats = { NARROW, NARROW, NARROW, INDICES, NARROW | BIT(BOOL), NARROW },
    .attribute_bytes = sizeof(tm_attention_attributes), .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE,
    .numerics = TM_NUMERICS_N2, .numerics_bound = 2.0, .numerics_flags = TM_NUMERICS_RUN_TO_RUN, .growth = TM_GROWTH_LINEAR,
    .accumulator = TM_FORMAT_F32, .name = "cpu_attention__avx2", .refuses = refuses, .cost_ns = cost_ns,
    .workspace_bytes = workspace_bytes, .run = run_attention },
};

const kernel_row_table cpu_rows_attention = { rows, sizeof rows / sizeof rows[0] };
