/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_ROPE.  Sines and cosines are made once a token for all of its heads, by the same f64 arithmetic as the reference's,
 * so results in f32 are the reference's own; in shorter formats they are rounded to f32 on the way.
 */
#include <math.h>

#include "cpu_memory_cost.h"
#include "cpu_vector_avx2.h"

#define RUN_PAIRS 64u
#define GRAIN_ELEMENTS 4096u
#define TURN_NS 12.0            /* a sine and a cosine */
#define HEAD_NS 8.0

/* What pairs of one run are multiplied with.  Adjacent pairs: [c0 c0 c1 c1 ..] and [-s0 s0 -s1 s1 ..]; halves: [c0 c1 ..]
   and [s0 s1 ..].  Reading a whole vector at the end stays inside. */
typedef struct turns {
  double cosines[2 * RUN_PAIRS + 8];
  double sines[2 * RUN_PAIRS + 8];
} turns;

typedef struct rope_job rope_job;
/* Turns `pairs` pairs of one head. */
typedef void (*turn_fn)(const char *x, char *y, uint64_t pairs, uint64_t half, const turns *t);

struct rope_job {
  const tm_operand *x_operand, *y_operand, *positions_operand;
  const char       *x, *positions;
  char             *y;
  turn_fn           turn;
  double            theta, scale;
  uint64_t          rotary, dim, heads, element_bytes;
  int               is_halves;
};

/* Two adjacent pairs at once: (a, b) (c, c) + (b, a) (-s, s). */
CPU_INLINE_AVX2 __m256d turn_adjacent(__m256d x, const turns *t, uint64_t i) {
  const __m256d swapped = _mm256_permute_pd(x, 0x5);
  return _mm256_add_pd(_mm256_mul_pd(x, _mm256_loadu_pd(t->cosines + i)), _mm256_mul_pd(swapped, _mm256_loadu_pd(t->sines + i)));
}

CPU_INLINE_AVX2 __m256 turn_eight(__m256 x, const turns *t, uint64_t i) {
  const __m256d low = turn_adjacent(low_half(x), t, i), high = turn_adjacent(high_half(x), t, i + 4);
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

/* a c - b s, and a s + b c. */
CPU_INLINE_AVX2 __m128 turn_first(__m256d a, __m256d b, const turns *t, uint64_t i) {
  return _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_mul_pd(a, _mm256_loadu_pd(t->cosines + i)), _mm256_mul_pd(b, _mm256_loadu_pd(t->sines + i))));
}
CPU_INLINE_AVX2 __m128 turn_second(__m256d a, __m256d b, const turns *t, uint64_t i) {
  return _mm256_cvtpd_ps(_mm256_add_pd(_mm256_mul_pd(a, _mm256_loadu_pd(t->sines + i)), _mm256_mul_pd(b, _mm256_loadu_pd(t->cosines + i))));
}

CPU_INLINE_AVX2 void turn_apart(__m256 *a, __m256 *b, const turns *t, uint64_t i) {
  const __m256d a_low = low_half(*a), a_high = high_half(*a), b_low = low_half(*b), b_high = high_half(*b);
  *a = _mm256_set_m128(turn_first(a_high, b_high, t, i + 4), turn_first(a_low, b_low, t, i));
  *b = _mm256_set_m128(turn_second(a_high, b_high, t, i + 4), turn_second(a_low, b_low, t, i));
}

#define DEFINE_TURNS(T)                                                                                               \
  CPU_AVX2 static void turn_pairs_##T(const char *x, char *y, uint64_t pairs, uint64_t half, const turns *t) {        \
    uint64_t i = 0;                                                                                                   \
    (void)half;                                                                                                       \
    for (; i + 8 <= 2 * pairs; i += 8) store_##T(y, i, turn_eight(load_##T(x, i), t, i));                             \
    if (i < 2 * pairs) store_part_##T(y, i, turn_eight(load_part_##T(x, i, 2 * pairs - i), t, i), 2 * pairs - i);     \
  }                                                                                                                   \
  CPU_AVX2 static void turn_halves_##T(const char *x, char *y, uint64_t pairs, uint64_t half, const turns *t) {       \
    for (uint64_t i = 0; i < pairs; i += 8) {                                                                         \
      const uint64_t n = pairs - i < 8 ? pairs - i : 8;                                                               \
      __m256 a = load_part_##T(x, i, n), b = load_part_##T(x, half + i, n);                                           \
      turn_apart(&a, &b, t, i);                                                                                       \
      store_part_##T(y, i, a, n);                                                                                     \
      store_part_##T(y, half + i, b, n);                                                                              \
    }                                                                                                                 \
  }
DEFINE_TURNS(f32)
DEFINE_TURNS(bf16)
DEFINE_TURNS(f16)

static double position_at(const rope_job *job, uint64_t token) {
  int32_t position;
  memcpy(&position, job->positions + (int64_t)token * job->positions_operand->strides_bytes[0], sizeof position);
  return position;              /* the low half of an i64 is what counts of it */
}

static void make_turns(const rope_job *job, double position, const double *frequencies, uint64_t pairs, turns *t) {
  for (uint64_t i = 0; i < pairs; ++i) {
    const double angle = position * job->scale * frequencies[i];
    const double cosine = cos(angle), sine = sin(angle);
    if (job->is_halves) {
      t->cosines[i] = cosine;
      t->sines[i] = sine;
      continue;
    }
    t->cosines[2 * i] = t->cosines[2 * i + 1] = cosine;
    t->sines[2 * i] = -sine;
    t->sines[2 * i + 1] = sine;
  }
}

/* Of token `row`, numbered through all axes before it, to its first head. */
static int64_t row_offset(const tm_operand *operand, uint64_t row) {
  int64_t offset = 0;
  for (uint32_t axis = operand->rank - 2; axis-- > 0; row /= operand->dims[axis])
    offset += (int64_t)(row % operand->dims[axis]) * operand->strides_bytes[axis];
  return offset;
}

static void turn_heads(const rope_job *job, uint64_t row, uint64_t first, uint64_t pairs, const turns *t) {
  const uint32_t head_axis = job->x_operand->rank - 2;
  const int64_t skipped = (int64_t)((job->is_halves ? first : 2 * first) * job->element_bytes);
  const char *x = job->x + row_offset(job->x_operand, row) + skipped;
  char *y = job->y + row_offset(job->y_operand, row) + skipped;
  for (uint64_t head = 0; head < job->heads; ++head) {
    job->turn(x, y, pairs, job->rotary / 2, t);
    x += job->x_operand->strides_bytes[head_axis];
    y += job->y_operand->strides_bytes[head_axis];
  }
}

static void pass_rest(const rope_job *job, uint64_t row) {
  const uint32_t head_axis = job->x_operand->rank - 2;
  const uint64_t skipped = job->rotary * job->element_bytes, bytes = (job->dim - job->rotary) * job->element_bytes;
  const char *x = job->x + row_offset(job->x_operand, row) + skipped;
  char *y = job->y + row_offset(job->y_operand, row) + skipped;
  if (bytes == 0 || x == y) return;
  for (uint64_t head = 0; head < job->heads; ++head)
    memcpy(y + (int64_t)head * job->y_operand->strides_bytes[head_axis], x + (int64_t)head * job->x_operand->strides_bytes[head_axis], bytes);
}

static void compute_rows(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const rope_job *job = argument;
  const uint64_t tokens = job->x_operand->dims[job->x_operand->rank - 3];
  double frequencies[RUN_PAIRS];
  turns t;
  (void)lane;
  memset(&t, 0, sizeof t);
  for (uint64_t first = 0; first < job->rotary / 2; first += RUN_PAIRS) {
    const uint64_t left = job->rotary / 2 - first, pairs = left < RUN_PAIRS ? left : RUN_PAIRS;
    for (uint64_t i = 0; i < pairs; ++i) frequencies[i] = pow(job->theta, -2.0 * (double)(first + i) / (double)job->rotary);
    for (uint64_t row = begin; row < end; ++row) {
      make_turns(job, position_at(job, row % tokens), frequencies, pairs, &t);
      turn_heads(job, row, first, pairs, &t);
    }
  }
  for (uint64_t row = begin; row < end; ++row) pass_rest(job, row);
}

static const struct { uint32_t format, element_bytes; turn_fn pairs, halves; } functions[] = {
  { TM_FORMAT_F32, 4, turn_pairs_f32, turn_halves_f32 },
  { TM_FORMAT_BF16, 2, turn_pairs_bf16, turn_halves_bf16 },
  { TM_FORMAT_F16, 2, turn_pairs_f16, turn_halves_f16 },
};

static void choose_turn(rope_job *job) {
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    if (functions[i].format != job->x_operand->format) continue;
    job->turn = job->is_halves ? functions[i].halves : functions[i].pairs;
    job->element_bytes = functions[i].element_bytes;
  }
}

static void run_rope(const cpu_call *call) {
  const tm_rope_attributes *attributes = call->operation->attributes;
  const tm_operand *x = &call->operation->operands[0];
  if (x->element_count == 0) return;
  rope_job job = {
    .x_operand = x,
    .y_operand = &call->operation->operands[2],
    .positions_operand = &call->operation->operands[1],
    .x = call->pointers[0],
    .positions = call->pointers[1],
    .y = call->pointers[2],
    .theta = attributes->theta != 0 ? attributes->theta : 10000.0,
    .scale = attributes->scale != 0 ? attributes->scale : 1.0,
    .dim = x->dims[x->rank - 1],
    .heads = x->dims[x->rank - 2],
    .is_halves = attributes->layout == TM_ROPE_HALVES,
  };
  job.rotary = attributes->rotary_dims != 0 ? attributes->rotary_dims : job.dim;
  choose_turn(&job);
  const uint64_t row_elements = job.heads * job.dim;
  call->host->parallel_for(call->host->context, x->element_count / row_elements, GRAIN_ELEMENTS / row_elements + 1, compute_rows, &job);
}

/* A head's elements lie densely; everything else may have any strides. */
static uint32_t refuses(const tm_operation *operation, uint32_t *out_operand) {
  const tm_rope_attributes *attributes = operation->attributes;
  if (attributes->layout > TM_ROPE_HALVES) return TM_REASON_ATTRIBUTE;
  for (uint32_t i = 0; i < 3; i += 2) {
    const tm_operand *operand = &operation->operands[i];
    const int64_t dense = operand->format == TM_FORMAT_F32 ? 4 : 2;
    *out_operand = i;
    if (operand->dims[operand->rank - 1] > 1 && operand->strides_bytes[operand->rank - 1] != dense) return TM_REASON_LAYOUT;
  }
  *out_operand = TM_NO_OPERAND;
  return 0;
}

static uint64_t cost_ns(const tm_operation *operation, uint32_t lanes) {
  const tm_operand *x = &operation->operands[0];
  const double elements = (double)x->element_count, heads = (double)x->dims[x->rank - 2];
  const double turned = heads > 0 ? elements / 2.0 / heads : 0;
  const double parts = elements <= GRAIN_ELEMENTS ? 1.0 : (double)lanes;
  const double rows = elements / (double)(x->dims[x->rank - 1] > 0 ? x->dims[x->rank - 1] : 1);
  const double compute = (turned * TURN_NS + rows * HEAD_NS + elements * 0.15) / parts;
  return cpu_whole_ns(100.0 + compute + 0.3 * cpu_move_ns(2.0 * (double)x->byte_count, parts) + (parts > 1.0 ? CPU_WAKE_NS : 0));
}

#define INDICES (KERNEL_FORMAT_BIT(TM_FORMAT_I32) | KERNEL_FORMAT_BIT(TM_FORMAT_I64))
#define ROW(T, FORMAT, CLASS, BOUND)                                                                                  \
  { .op = TM_OP_ROPE, .formats = { TM_FORMAT_##FORMAT, INDICES, TM_FORMAT_##FORMAT },                                 \
    .attribute_bytes = sizeof(tm_rope_attributes), .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE,                     \
    .numerics = TM_NUMERICS_##CLASS, .numerics_bound = BOUND,                                                         \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .alias_mask = 0x1,                        \
    .name = "cpu_rope_" #T "__avx2", .refuses = refuses, .cost_ns = cost_ns, .run = run_rope }
static const cpu_row rows[] = { ROW(f32, F32, N0, 0), ROW(bf16, BF16, N1, 1.0), ROW(f16, F16, N1, 1.0) };

const kernel_row_table cpu_rows_rope = { rows, sizeof rows / sizeof rows[0] };
