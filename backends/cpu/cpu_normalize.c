/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax, layer_norm and rms_norm along a dense last axis of f32, bf16 and f16.  All arithmetic is in f64 and rounded
 * to f32 (then to the format), so results are those of the reference but for the last bit.  A row stays in the cache
 * between the passes over it.
 */
#include "cpu_memory_cost.h"
#include "cpu_transcendental_math.h"

/* Elements that one thread takes at least. */
#define GRAIN_ELEMENTS 8192u
/* Elements below which waking other threads costs more than it brings. */
#define SERIAL_ELEMENTS 32768u

#define ROW_NS 15.0

/* What an operation does not have is NULL or 0. */
typedef struct norm_weights {
  const void *scale, *shift;
  double      epsilon;
} norm_weights;

/* Computes a row of n elements. */
typedef void (*row_fn)(const void *x, const norm_weights *weights, void *y, uint64_t n);

typedef struct row_job {
  row_fn       compute;
  const char  *x;
  char        *y;
  norm_weights weights;
  uint64_t     n, x_row_bytes, y_row_bytes;
} row_job;

/* Eight f32 as f64. */
typedef struct pair {
  __m256d low, high;
} pair;

CPU_INLINE_AVX2 pair widen_pair(__m256 v) { return (pair){ low_half(v), high_half(v) }; }
CPU_INLINE_AVX2 __m256 narrow_pair(pair v) { return _mm256_set_m128(_mm256_cvtpd_ps(v.high), _mm256_cvtpd_ps(v.low)); }
CPU_INLINE_AVX2 pair add_pairs(pair a, pair b) {
  return (pair){ _mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high) };
}
CPU_INLINE_AVX2 pair add_squares(pair v, pair sum) {
  return (pair){ _mm256_fmadd_pd(v.low, v.low, sum.low), _mm256_fmadd_pd(v.high, v.high, sum.high) };
}
CPU_INLINE_AVX2 pair multiply_pairs(pair a, pair b) {
  return (pair){ _mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high) };
}
CPU_INLINE_AVX2 pair minus(pair v, __m256d c) { return (pair){ _mm256_sub_pd(v.low, c), _mm256_sub_pd(v.high, c) }; }
CPU_INLINE_AVX2 pair times(pair v, __m256d c) { return (pair){ _mm256_mul_pd(v.low, c), _mm256_mul_pd(v.high, c) }; }
CPU_INLINE_AVX2 pair exp_pair(pair v) { return (pair){ exp_pd(v.low), exp_pd(v.high) }; }
CPU_INLINE_AVX2 pair zero_pair(void) { return (pair){ _mm256_setzero_pd(), _mm256_setzero_pd() }; }

CPU_INLINE_AVX2 double total_of(pair v) {
  const __m256d four = _mm256_add_pd(v.low, v.high);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

CPU_INLINE_AVX2 double largest_lane(__m256 v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return (double)_mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* What lies behind the end of the row does not count towards a sum of squares. */
CPU_INLINE_AVX2 pair only_first(pair v, uint64_t n) {
  return (pair){ _mm256_and_pd(v.low, _mm256_castsi256_pd(first_lanes_64(n))),
                 _mm256_and_pd(v.high, _mm256_castsi256_pd(first_lanes_64(n > 4 ? n - 4 : 0))) };
}

/* Eight elements of a row; behind its end stands `pad`. */
#define DEFINE_ROW_ACCESS(T)                                                                                          \
  CPU_INLINE_AVX2 __m256 get_##T(const void *row, uint64_t i, uint64_t n, float pad) {                                \
    if (i + 8 <= n) return load_##T(row, i);                                                                          \
    const __m256 there = _mm256_castsi256_ps(first_lanes_32(n - i));                                                  \
    return _mm256_blendv_ps(_mm256_set1_ps(pad), load_part_##T(row, i, n - i), there);                                \
  }                                                                                                                   \
  CPU_INLINE_AVX2 void put_##T(void *row, uint64_t i, uint64_t n, __m256 v) {                                         \
    if (i + 8 <= n)                                                                                                   \
      store_##T(row, i, v);                                                                                           \
    else                                                                                                              \
      store_part_##T(row, i, v, n - i);                                                                               \
  }
DEFINE_ROW_ACCESS(f32)
DEFINE_ROW_ACCESS(bf16)
DEFINE_ROW_ACCESS(f16)

/* The largest element, NaN passed over (max gives its second operand then): NaN comes back through every exponential.
   Pads of -Inf add e^-708 to the sum, which is nothing. */
#define DEFINE_SOFTMAX(T, KEEP, KEPT)                                                                                 \
  CPU_AVX2 static void softmax_##T(const void *x, const norm_weights *weights, void *y, uint64_t n) {                 \
    __m256 largest = _mm256_set1_ps(-HUGE_VALF);                                                                      \
    pair sum = zero_pair();                                                                                           \
    (void)weights;                                                                                                    \
    for (uint64_t i = 0; i < n; i += 8) largest = _mm256_max_ps(get_##T(x, i, n, -HUGE_VALF), largest);               \
    const __m256d top = _mm256_set1_pd(largest_lane(largest));                                                        \
    for (uint64_t i = 0; i < n; i += 8) {                                                                             \
      const pair e = exp_pair(minus(widen_pair(get_##T(x, i, n, -HUGE_VALF)), top));                                  \
      sum = add_pairs(sum, e);                                                                                        \
      KEEP(y, i, n, e)                                                                                                \
    }                                                                                                                 \
    const __m256d inverse = _mm256_set1_pd(1.0 / total_of(sum));                                                      \
    for (uint64_t i = 0; i < n; i += 8) put_##T(y, i, n, narrow_pair(times(KEPT(T), inverse)));                       \
  }

/* f32 keeps the exponentials where the results will be; shorter formats would lose their digits and compute them
   again. */
#define KEEP_IN_Y(y, i, n, e)    put_f32(y, i, n, narrow_pair(e));
#define KEEP_NOTHING(y, i, n, e)
#define KEPT_IN_Y(T)             widen_pair(get_f32(y, i, n, 0.0f))
#define COMPUTED_AGAIN(T)        exp_pair(minus(widen_pair(get_##T(x, i, n, 0.0f)), top))
DEFINE_SOFTMAX(f32, KEEP_IN_Y, KEPT_IN_Y)
DEFINE_SOFTMAX(bf16, KEEP_NOTHING, COMPUTED_AGAIN)
DEFINE_SOFTMAX(f16, KEEP_NOTHING, COMPUTED_AGAIN)

#define DEFINE_NORMS(T)                                                                                               \
  CPU_AVX2 static void rms_norm_##T(const void *x, const norm_weights *weights, void *y, uint64_t n) {                \
    pair squares = zero_pair();                                                                                       \
    for (uint64_t i = 0; i < n; i += 8) squares = add_squares(widen_pair(get_##T(x, i, n, 0.0f)), squares);           \
    const __m256d inverse = inverse_deviation(total_of(squares) / (double)n + weights->epsilon);                      \
    for (uint64_t i = 0; i < n; i += 8) {                                                                             \
      const pair normal = times(widen_pair(get_##T(x, i, n, 0.0f)), inverse);                                         \
      put_##T(y, i, n, narrow_pair(multiply_pairs(normal, widen_pair(get_##T(weights->scale, i, n, 0.0f)))));         \
    }                                                                                                                 \
  }                                                                                                                   \
  CPU_AVX2 static void layer_norm_##T(const void *x, const norm_weights *weights, void *y, uint64_t n) {              \
    pair sum = zero_pair(), squares = zero_pair();                                                                    \
    for (uint64_t i = 0; i < n; i += 8) sum = add_pairs(sum, widen_pair(get_##T(x, i, n, 0.0f)));                     \
    const __m256d mean = _mm256_set1_pd(total_of(sum) / (double)n);                                                   \
    for (uint64_t i = 0; i < n; i += 8) {                                                                             \
      const pair distance = minus(widen_pair(get_##T(x, i, n, 0.0f)), mean);                                          \
      squares = add_squares(i + 8 <= n ? distance : only_first(distance, n - i), squares);                            \
    }                                                                                                                 \
    const __m256d inverse = inverse_deviation(total_of(squares) / (double)n + weights->epsilon);                      \
    for (uint64_t i = 0; i < n; i += 8) {                                                                             \
      const pair normal = times(minus(widen_pair(get_##T(x, i, n, 0.0f)), mean), inverse);                            \
      const pair scaled = multiply_pairs(normal, widen_pair(get_##T(weights->scale, i, n, 0.0f)));                    \
      put_##T(y, i, n, narrow_pair(add_pairs(scaled, widen_pair(get_##T(weights->shift, i, n, 0.0f)))));              \
    }                                                                                                                 \
  }

CPU_INLINE_AVX2 __m256d inverse_deviation(double mean_square) {
  return _mm256_div_pd(_mm256_set1_pd(1.0), _mm256_sqrt_pd(_mm256_set1_pd(mean_square)));
}
DEFINE_NORMS(f32)
DEFINE_NORMS(bf16)
DEFINE_NORMS(f16)

static uint64_t row_length(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0];
  return x->dims[x->rank - 1];
}

static uint32_t refuses(const tm_operation *operation, uint32_t *out_operand) {
  const tm_operand *x = &operation->operands[0];
  if (operation->attributes == NULL || x->rank == 0) return TM_REASON_ATTRIBUTE;
  const tm_axis_attributes *softmax = operation->attributes;
  if (operation->op == TM_OP_SOFTMAX && softmax->axis + 1 != x->rank) return TM_REASON_ATTRIBUTE;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++) {
    *out_operand = i;
    if ((operation->operands[i].flags & TM_OPERAND_CONTIGUOUS) == 0) return TM_REASON_LAYOUT;
  }
  return 0;
}

/* Moving hides behind computing only in part: each pass starts with loads. */
static uint64_t cost_ns(double element_ns, const tm_operation *operation, uint32_t lanes) {
  const double elements = (double)operation->operands[0].element_count;
  const double rows = elements / (double)(row_length(operation) > 0 ? row_length(operation) : 1);
  const double bytes = (double)operation->operands[0].byte_count * 2.0;
  const double parts = elements <= SERIAL_ELEMENTS || rows < 2.0 ? 1.0 : (double)lanes < rows ? (double)lanes : rows;
  const double move = cpu_move_ns(bytes, parts);
  const double compute = elements * element_ns / parts;
  return cpu_whole_ns(compute + 0.3 * move + rows * ROW_NS / parts + (parts > 1.0 ? CPU_WAKE_NS : 0));
}

static void compute_rows(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const row_job *job = argument;
  (void)lane;
  for (uint64_t row = begin; row < end; row++)
    job->compute(job->x + row * job->x_row_bytes, &job->weights, job->y + row * job->y_row_bytes, job->n);
}

static void run(row_fn compute, const cpu_call *call) {
  const tm_operation *operation = call->operation;
  const tm_operand *x = &operation->operands[0];
  const uint32_t inputs = operation->input_count;
  if (x->element_count == 0) return;
  row_job job = { .compute = compute, .x = call->pointers[0], .y = call->pointers[inputs], .n = row_length(operation) };
  const uint64_t rows = x->element_count / job.n;
  job.x_row_bytes = job.y_row_bytes = x->byte_count / rows;
  job.weights.scale = inputs > 1 ? call->pointers[1] : NULL;
  job.weights.shift = inputs > 2 ? call->pointers[2] : NULL;
  const tm_norm_attributes *norm = operation->attributes;
  if (operation->op != TM_OP_SOFTMAX) job.weights.epsilon = norm->epsilon;
  if (x->element_count <= SERIAL_ELEMENTS)
    compute_rows(&job, 0, rows, 0);
  else
    call->host->parallel_for(call->host->context, rows, GRAIN_ELEMENTS / job.n + 1, compute_rows, &job);
}

/*
 * softmax: an exponential kept in f32 is off by half an ulp, which can be one of the quotient; the division rounds
 * again.  rms_norm: f64 all the way.  layer_norm: as well, but scale and shift may cancel, which only a bound on the
 * terms covers.
 */
#define KERNELS(X, T, FORMAT, SOFTMAX_BOUND, SOFTMAX_NS, RMS_NS, LAYER_NS)                                            \
  X(softmax, T, SOFTMAX, SOFTMAX_NS, axis, N1, SOFTMAX_BOUND, FORMAT, FORMAT)                                         \
  X(rms_norm, T, RMS_NORM, RMS_NS, norm, N1, 1.0, FORMAT, FORMAT, FORMAT)                                             \
  X(layer_norm, T, LAYER_NORM, LAYER_NS, norm, N2, 4.0, FORMAT, FORMAT, FORMAT, FORMAT)
#define ALL_KERNELS(X)                                                                                                \
  KERNELS(X, f32, TM_FORMAT_F32, 2.0, 1.05, 0.36, 0.57)                                                               \
  KERNELS(X, bf16, TM_FORMAT_BF16, 1.0, 2.0, 0.6, 0.88)                                                               \
  KERNELS(X, f16, TM_FORMAT_F16, 1.0, 2.0, 0.5, 0.75)

#define ROW_FUNCTIONS(NAME, T, OP, ELEMENT_NS, ATTRIBUTES, CLASS, BOUND, ...)                                         \
  static uint64_t cost_##NAME##_##T(const tm_operation *operation, uint32_t lanes) {                                  \
    return cost_ns(ELEMENT_NS, operation, lanes);                                                                     \
  }                                                                                                                   \
  static void run_##NAME##_##T(const cpu_call *call) { run(NAME##_##T, call); }
ALL_KERNELS(ROW_FUNCTIONS)

#define ROW(NAME, T, OP, ELEMENT_NS, ATTRIBUTES, CLASS, BOUND, ...)                                                   \
  { .op = TM_OP_##OP, .formats = { __VA_ARGS__ }, .attribute_bytes = sizeof(tm_##ATTRIBUTES##_attributes),            \
    .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_##CLASS, .numerics_bound = BOUND,          \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .growth = TM_GROWTH_LINEAR,               \
    .accumulator = TM_FORMAT_F64, .name = "cpu_" #NAME "_" #T "__avx2", .refuses = refuses,                           \
    .cost_ns = cost_##NAME##_##T, .run = run_##NAME##_##T },
static const cpu_row rows[] = { ALL_KERNELS(ROW) };

const kernel_row_table cpu_rows_normalize = { rows, sizeof(rows) / sizeof(rows[0]) };
