/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul with one row or one column: a matrix of lines times a vector.  Every weight is used once, so it is read where
 * it lies, and the speed is that of memory.  Lines that are dense along k are summed four at a time; of a matrix that
 * is dense across its lines, four k at a time are added to sums in the first-level cache.
 */
#include "cpu_matmul.h"
#include "cpu_matmul_decode.h"
#include "cpu_memory_cost.h"

#define DOT_LINES    32u        /* lines of one item of work */
#define ACROSS_LINES 1024u      /* at most, likewise: sums of 4 KiB */

/* Bytes of a matrix below which waking other threads costs more than it brings. */
#define SERIAL_BYTES 524288.0

#define ITEM_NS 10.0

/* Sums `lines` lines, up to DOT_LINES or ACROSS_LINES. */
typedef void (*vector_fn)(const cpu_matrix *matrix, uint64_t lines, const float *vector, uint64_t depth, char *y,
                          int64_t y_bytes);

/* How a format is read along k and, if it can be, across the lines. */
typedef struct vector_format {
  vector_fn dot, across;
  uint32_t  k_bytes;            /* from one k (block) to the next when dense */
  uint32_t  block_elements;
  double    value_ns;           /* with everything in the cache */
} vector_format;

typedef struct vector_job {
  const vector_format *format;
  cpu_matmul_problem   problem;
  uint32_t             matrix;  /* the operand that is the matrix; the other one is the vector */
  uint64_t             lines, item_lines, items;
  int64_t              line_bytes, k_bytes, vector_bytes, y_bytes;
  vector_fn            compute;
  const cpu_call      *call;
} vector_job;

static uint64_t divide_up(uint64_t value, uint64_t by) { return value / by + (value % by != 0); }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

CPU_INLINE_AVX2 float add_lanes(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#define FOR_4(X, ...) X(0, __VA_ARGS__) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__)
#define DECLARE(i, T)     __m256 even_##i = _mm256_setzero_ps(), odd_##i = _mm256_setzero_ps();
#define EVEN(i, WEIGHTS)  even_##i = _mm256_fmadd_ps(WEIGHTS(lines[i], 0), x0, even_##i);
#define ODD(i, WEIGHTS)   odd_##i = _mm256_fmadd_ps(WEIGHTS(lines[i], 1), x1, odd_##i);
#define REST(i, T)        odd_##i = _mm256_fmadd_ps(load_part_##T(lines[i], k, n), x1, odd_##i);
#define FINISH(i, T)      out_sums[i] = add_lanes(_mm256_add_ps(even_##i, odd_##i));
#define PAIR(WEIGHTS)                                                                                                 \
  {                                                                                                                   \
    const __m256 x0 = _mm256_loadu_ps(vector + k), x1 = _mm256_loadu_ps(vector + k + 8);                              \
    FOR_4(EVEN, WEIGHTS) FOR_4(ODD, WEIGHTS)                                                                          \
    k += 16;                                                                                                          \
  }

#define DEFINE_DOT_4(T)                                                                                               \
  CPU_AVX2 static void dot_4_##T(const char *const *lines, const float *vector, uint64_t depth, float *out_sums) {    \
    uint64_t k = 0;                                                                                                   \
    FOR_4(DECLARE, T)                                                                                                 \
    while (k + 16 <= depth) PAIR(WEIGHTS_##T)                                                                         \
    for (; k < depth; k += 8) {                                                                                       \
      const uint64_t n = least(depth - k, 8);                                                                         \
      const __m256 x1 = load_part_f32(vector, k, n);                                                                  \
      FOR_4(REST, T)                                                                                                  \
    }                                                                                                                 \
    FOR_4(FINISH, T)                                                                                                  \
  }
#define WEIGHTS_f32(line, part)  load_f32(line, k + 8 * (part))
#define WEIGHTS_bf16(line, part) load_bf16(line, k + 8 * (part))
#define WEIGHTS_f16(line, part)  load_f16(line, k + 8 * (part))
DEFINE_DOT_4(f32)
DEFINE_DOT_4(bf16)
DEFINE_DOT_4(f16)

#define DEFINE_DOT_4_BLOCKS(T, BYTES)                                                                                 \
  CPU_AVX2 static void dot_4_##T(const char *const *lines, const float *vector, uint64_t depth, float *out_sums) {    \
    uint64_t k = 0;                                                                                                   \
    FOR_4(DECLARE, T)                                                                                                 \
    while (k < depth) {                                                                                               \
      const uint64_t block = k / 32 * (BYTES);                                                                        \
      PAIR(LOWER_##T)                                                                                                 \
      PAIR(UPPER_##T)                                                                                                 \
    }                                                                                                                 \
    FOR_4(FINISH, T)                                                                                                  \
  }
#define LOWER_q8_0(line, part) decode_q8_0((line) + block, part)
#define UPPER_q8_0(line, part) decode_q8_0((line) + block, 2 + (part))
#define LOWER_q4_0(line, part) decode_q4_0((line) + block, part)
#define UPPER_q4_0(line, part) decode_q4_0((line) + block, 2 + (part))
DEFINE_DOT_4_BLOCKS(q8_0, 34)
DEFINE_DOT_4_BLOCKS(q4_0, 18)

/* Of fewer than four lines the last one is read again, and its sums are dropped. */
#define DEFINE_DOT(T)                                                                                                 \
  static void dot_##T(const cpu_matrix *matrix, uint64_t lines, const float *vector, uint64_t depth, char *y,         \
                      int64_t y_bytes) {                                                                              \
    for (uint64_t first = 0; first < lines; first += 4) {                                                             \
      const uint64_t count = least(lines - first, 4);                                                                 \
      const char *four[4];                                                                                            \
      float sums[4];                                                                                                  \
      for (uint64_t i = 0; i < 4; i++)                                                                                \
        four[i] = (const char *)matrix->base + (int64_t)(first + least(i, count - 1)) * matrix->line_bytes;           \
      dot_4_##T(four, vector, depth, sums);                                                                           \
      for (uint64_t i = 0; i < count; i++) memcpy(y + (int64_t)(first + i) * y_bytes, &sums[i], sizeof(float));       \
    }                                                                                                                 \
  }
DEFINE_DOT(f32)
DEFINE_DOT(bf16)
DEFINE_DOT(f16)
DEFINE_DOT(q8_0)
DEFINE_DOT(q4_0)

/* sums[line] += the products of four k; rows[j] holds the lines of the j-th. */
#define DEFINE_ACROSS(T)                                                                                              \
  CPU_AVX2 static void add_rows_##T(const char *const *rows, const float *x, uint64_t lines, float *sums) {           \
    const __m256 x0 = _mm256_set1_ps(x[0]), x1 = _mm256_set1_ps(x[1]);                                                \
    const __m256 x2 = _mm256_set1_ps(x[2]), x3 = _mm256_set1_ps(x[3]);                                                \
    uint64_t i = 0;                                                                                                   \
    for (; i + 8 <= lines; i += 8) {                                                                                  \
      __m256 sum = _mm256_fmadd_ps(load_##T(rows[0], i), x0, _mm256_loadu_ps(sums + i));                              \
      sum = _mm256_fmadd_ps(load_##T(rows[1], i), x1, sum);                                                           \
      sum = _mm256_fmadd_ps(load_##T(rows[2], i), x2, sum);                                                           \
      _mm256_storeu_ps(sums + i, _mm256_fmadd_ps(load_##T(rows[3], i), x3, sum));                                     \
    }                                                                                                                 \
    if (i < lines) {                                                                                                  \
      const uint64_t n = lines - i;                                                                                   \
      __m256 sum = _mm256_fmadd_ps(load_part_##T(rows[0], i, n), x0, _mm256_loadu_ps(sums + i));                      \
      sum = _mm256_fmadd_ps(load_part_##T(rows[1], i, n), x1, sum);                                                   \
      sum = _mm256_fmadd_ps(load_part_##T(rows[2], i, n), x2, sum);                                                   \
      _mm256_storeu_ps(sums + i, _mm256_fmadd_ps(load_part_##T(rows[3], i, n), x3, sum));                             \
    }                                                                                                                 \
  }                                                                                                                   \
  CPU_AVX2 static void add_row_##T(const char *row, float x, uint64_t lines, float *sums) {                           \
    for (uint64_t i = 0; i < lines; i += 8) {                                                                         \
      const __m256 weights = i + 8 <= lines ? load_##T(row, i) : load_part_##T(row, i, lines - i);                    \
      _mm256_storeu_ps(sums + i, _mm256_fmadd_ps(weights, _mm256_set1_ps(x), _mm256_loadu_ps(sums + i)));             \
    }                                                                                                                 \
  }                                                                                                                   \
  static void across_##T(const cpu_matrix *matrix, uint64_t lines, const float *vector, uint64_t depth, char *y,      \
                         int64_t y_bytes) {                                                                           \
    _Alignas(32) float sums[ACROSS_LINES] = { 0 };                                                                    \
    const char *row = matrix->base;                                                                                   \
    uint64_t k = 0;                                                                                                   \
    for (; k + 4 <= depth; k += 4, row += 4 * matrix->k_bytes) {                                                      \
      const int64_t step = matrix->k_bytes;                                                                           \
      const char *const rows[4] = { row, row + step, row + 2 * step, row + 3 * step };                                \
      float x[4];                                                                                                     \
      memcpy(x, vector + k, sizeof(x));                                                                               \
      add_rows_##T(rows, x, lines, sums);                                                                             \
    }                                                                                                                 \
    for (; k < depth; k++, row += matrix->k_bytes) {                                                                  \
      float x;                                                                                                        \
      memcpy(&x, vector + k, sizeof(x));                                                                              \
      add_row_##T(row, x, lines, sums);                                                                               \
    }                                                                                                                 \
    for (uint64_t i = 0; i < lines; i++) memcpy(y + (int64_t)i * y_bytes, &sums[i], sizeof(float));                   \
  }
DEFINE_ACROSS(f32)
DEFINE_ACROSS(bf16)
DEFINE_ACROSS(f16)

static uint32_t describe(const vector_format *format, const tm_operation *operation, vector_job *job,
                         uint32_t *out_operand) {
  const tm_matmul_attributes *attributes = operation->attributes;
  if (attributes == NULL) return TM_REASON_ATTRIBUTE;
  for (*out_operand = 0; *out_operand < 3; ++*out_operand)
    if (operation->operands[*out_operand].rank < 2) return TM_REASON_RANK;
  const cpu_matmul_problem p = cpu_matmul_describe(operation);
  const int is_row = p.m == 1, is_column = p.n == 1;
  *out_operand = 1;
  if (format->block_elements > 1 && attributes->transpose_b == 0) return TM_REASON_ATTRIBUTE;
  *out_operand = TM_NO_OPERAND;
  if (!is_row && !(is_column && operation->operands[0].format == operation->operands[1].format)) return TM_REASON_SHAPE;
  *job = (vector_job){ .format = format, .problem = p, .matrix = is_row ? 1 : 0, .lines = is_row ? p.n : p.m };
  job->line_bytes = is_row ? p.b_line_bytes : p.a_line_bytes;
  job->k_bytes = is_row ? p.b_k_bytes : p.a_k_bytes;
  job->vector_bytes = is_row ? p.a_k_bytes : p.b_k_bytes;
  job->y_bytes = is_row ? p.y_column_bytes : p.y_row_bytes;
  *out_operand = 1 - job->matrix;
  if (job->vector_bytes != sizeof(float) && p.k > 1) return TM_REASON_LAYOUT;
  *out_operand = job->matrix;
  if (job->k_bytes == format->k_bytes) job->compute = format->dot;
  else if (job->line_bytes == format->k_bytes) job->compute = format->across;
  return job->compute != NULL ? 0 : TM_REASON_LAYOUT;
}

static uint32_t refuses(const vector_format *format, const tm_operation *operation, uint32_t *out_operand) {
  vector_job job;
  return describe(format, operation, &job, out_operand);
}

static int is_serial(const vector_job *job) {
  const double values = (double)job->lines * (double)job->problem.k * (double)job->problem.batch_count;
  return values * job->format->k_bytes / job->format->block_elements < SERIAL_BYTES;
}

static uint64_t cost_ns(const vector_format *format, const tm_operation *operation, uint32_t lanes) {
  vector_job job;
  uint32_t operand;
  if (describe(format, operation, &job, &operand) != 0) return 0;
  const double parts = is_serial(&job) || lanes == 1 ? 1.0 : (double)lanes;
  const double lines = (double)job.lines * (double)job.problem.batch_count;
  const double bytes = lines * (double)job.problem.k * format->k_bytes / format->block_elements;
  const double move = cpu_move_ns(bytes, parts);
  const double compute = lines * (double)job.problem.k * format->value_ns / parts;
  const double items = lines / 4.0 * ITEM_NS / parts;
  return (uint64_t)((compute > move ? compute : move) + items + (parts > 1.0 ? CPU_WAKE_NS : 0));
}

static void compute_items(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const vector_job *job = argument;
  (void)lane;
  for (uint64_t item = begin; item < end; item++) {
    int64_t offsets[3];
    cpu_matmul_batch_offsets(&job->problem, item / job->items, offsets);
    const uint64_t line = item % job->items * job->item_lines;
    const cpu_matrix matrix = { (const char *)job->call->pointers[job->matrix] + offsets[job->matrix] +
                                    (int64_t)line * job->line_bytes, job->line_bytes, job->k_bytes };
    const char *vector = (const char *)job->call->pointers[1 - job->matrix] + offsets[1 - job->matrix];
    char *y = (char *)job->call->pointers[2] + offsets[2] + (int64_t)line * job->y_bytes;
    job->compute(&matrix, least(job->lines - line, job->item_lines), (const float *)(const void *)vector,
                 job->problem.k, y, job->y_bytes);
  }
}

/* Across lines an item is as wide as leaves every thread a few, since wide rows are what memory likes. */
static uint64_t item_lines(const vector_job *job, uint32_t lanes) {
  if (job->compute == job->format->dot) return DOT_LINES;
  const uint64_t width = divide_up(divide_up(job->lines, 4 * (uint64_t)lanes), 64) * 64;
  return width < ACROSS_LINES ? width : ACROSS_LINES;
}

static void run(const vector_format *format, const cpu_call *call) {
  vector_job job;
  uint32_t operand;
  if (describe(format, call->operation, &job, &operand) != 0 || job.lines == 0) return;
  job.call = call;
  job.item_lines = is_serial(&job) ? (job.compute == format->dot ? DOT_LINES : ACROSS_LINES)
                                   : item_lines(&job, call->host->lane_count);
  job.items = divide_up(job.lines, job.item_lines);
  const uint64_t count = job.items * job.problem.batch_count;
  if (is_serial(&job))
    compute_items(&job, 0, count, 0);
  else
    call->host->parallel_for(call->host->context, count, 1, compute_items, &job);
}

/* Roundings on the way of a product: one with each addition that it meets, so at most n of eps / 2; FLUSHES as for
   blocks. */
#define BOUND 0.51

#define KERNELS(X)                                                                                                    \
  X(f32, F32, dot_f32, across_f32, 4, 1, 0.028)                                                                       \
  X(bf16, BF16, dot_bf16, across_bf16, 2, 1, 0.035)                                                                   \
  X(f16, F16, dot_f16, across_f16, 2, 1, 0.035)                                                                       \
  X(q8_0, Q8_0, dot_q8_0, NULL, 34, 32, 0.065)                                                                        \
  X(q4_0, Q4_0, dot_q4_0, NULL, 18, 32, 0.12)

#define ROW_FUNCTIONS(T, FORMAT, DOT, ACROSS, K_BYTES, ELEMENTS, VALUE_NS)                                            \
  static const vector_format format_##T = { DOT, ACROSS, K_BYTES, ELEMENTS, VALUE_NS };                               \
  static uint32_t refuses_##T(const tm_operation *operation, uint32_t *out_operand) {                                 \
    return refuses(&format_##T, operation, out_operand);                                                              \
  }                                                                                                                   \
  static uint64_t cost_##T(const tm_operation *operation, uint32_t lanes) {                                           \
    return cost_ns(&format_##T, operation, lanes);                                                                    \
  }                                                                                                                   \
  static void run_##T(const cpu_call *call) { run(&format_##T, call); }
KERNELS(ROW_FUNCTIONS)

#define ROW(T, FORMAT, DOT, ACROSS, K_BYTES, ELEMENTS, VALUE_NS)                                                      \
  { .op = TM_OP_MATMUL, .formats = { TM_FORMAT_F32, TM_FORMAT_##FORMAT, TM_FORMAT_F32 },                              \
    .attribute_bytes = sizeof(tm_matmul_attributes), .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE,                   \
    .numerics = TM_NUMERICS_N2, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_FLUSHES,                       \
    .numerics_bound = BOUND, .growth = TM_GROWTH_LINEAR, .accumulator = TM_FORMAT_F32,                                \
    .name = "cpu_matmul_vector_" #T "__avx2",                                                                         \
    .refuses = refuses_##T, .cost_ns = cost_##T, .run = run_##T },
static const cpu_row rows[] = { KERNELS(ROW) };

const kernel_row_table cpu_rows_matmul_vector = { rows, sizeof(rows) / sizeof(rows[0]) };
