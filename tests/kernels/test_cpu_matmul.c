/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul kernels of the CPU backend at the edges of their blocking: every rest of a tile, K over several blocks, more rows
 * than a block has, batches handed out whole, all transposes, gaps between elements, and the same bits for any number of
 * threads and either instruction set.  Sums are judged by the class that was promised, with the terms summed here in f64.
 */
#include "conformance/kernel_compare.h"
#include "kernel_probe.h"

#define SEED  UINT64_C(20240613)
#define HOSTS 3

/* Instruction sets, whose kernels are tested in turn; a processor may lack the second. */
static const char *const sets[] = { "avx2", "avx512" };
#define SETS (sizeof sets / sizeof sets[0])
static uint64_t runs[SETS];             /* of each set's kernels, by all tests */

typedef struct fleet {
  kernel_host hosts[SETS][HOSTS];       /* one lane, several, threads */
  bool        is_there[SETS];
} fleet;

typedef struct row_case {
  const char *stem;                     /* of the row's name */
  uint32_t    a, b, y;
  bool        has_avx512;
} row_case;

static const row_case blocked[] = {
  { "cpu_matmul_f32_f32", TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32, true },
  { "cpu_matmul_f32_bf16", TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F32, true },
  { "cpu_matmul_f32_f16", TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_F32, true },
  { "cpu_matmul_f32_q8_0", TM_FORMAT_F32, TM_FORMAT_Q8_0, TM_FORMAT_F32, true },
  { "cpu_matmul_f32_q4_0", TM_FORMAT_F32, TM_FORMAT_Q4_0, TM_FORMAT_F32, true },
  { "cpu_matmul_bf16_bf16_f32", TM_FORMAT_BF16, TM_FORMAT_BF16, TM_FORMAT_F32, true },
  { "cpu_matmul_f16_f16_f32", TM_FORMAT_F16, TM_FORMAT_F16, TM_FORMAT_F32, true },
  { "cpu_matmul_bf16_bf16", TM_FORMAT_BF16, TM_FORMAT_BF16, TM_FORMAT_BF16, true },
  { "cpu_matmul_f16_f16", TM_FORMAT_F16, TM_FORMAT_F16, TM_FORMAT_F16, true },
  { "cpu_matmul_f64", TM_FORMAT_F64, TM_FORMAT_F64, TM_FORMAT_F64, true },
  { "cpu_matmul_i8", TM_FORMAT_I8, TM_FORMAT_I8, TM_FORMAT_I32, false },
};
#define BLOCKED_COUNT (sizeof blocked / sizeof blocked[0])

static const row_case vectors[] = {
  { "cpu_matmul_vector_f32", TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32, false },
  { "cpu_matmul_vector_bf16", TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F32, false },
  { "cpu_matmul_vector_f16", TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_F32, false },
  { "cpu_matmul_vector_q8_0", TM_FORMAT_F32, TM_FORMAT_Q8_0, TM_FORMAT_F32, false },
  { "cpu_matmul_vector_q4_0", TM_FORMAT_F32, TM_FORMAT_Q4_0, TM_FORMAT_F32, false },
};
#define VECTOR_COUNT (sizeof vectors / sizeof vectors[0])

/* `gap` elements lie between rows of a matrix, of y too, and all elements of a and b are `step` apart; 0 and 1 are dense.
   Elements of a and b lie at odd addresses then. */
typedef struct shape {
  uint64_t batch, m, n, k;
  uint32_t transpose_a, transpose_b;
  uint32_t gap, step;
} shape;

/* Dense values of a matrix: the encoded bytes and what they decode to. */
typedef struct matrix {
  void   *bytes;
  double *values;
} matrix;

static matrix random_matrix(uint32_t format, uint64_t count, uint64_t *random) {
  const tm_format_info *info = tm_format_find(format);
  const uint64_t blocks = count / info->block_elements;
  matrix x = { malloc(blocks * info->block_bytes + 1), malloc((count + 1) * sizeof(double)) };
  assert_non_null(x.bytes);
  assert_non_null(x.values);
  for (uint64_t i = 0; i < blocks; ++i)
    random_block(format, TEMPER_PLAIN, 1.0, random, (unsigned char *)x.bytes + i * info->block_bytes);
  if (info->kind == TM_KIND_SIGNED)
    for (uint64_t i = 0; i < count; ++i) x.values[i] = (double)((const int8_t *)x.bytes)[i];
  else
    tm_codec_find(format)->decode(x.bytes, count, x.values);
  return x;
}

static void free_matrix(matrix x) {
  free(x.bytes);
  free(x.values);
}

/* The exact-as-f64 sum of products and of their magnitudes for one element of y. */
static void sum_terms(const shape *s, const matrix *a, const matrix *b, uint64_t batch, uint64_t i, uint64_t j, double *out_sum,
                      double *out_terms) {
  *out_sum = *out_terms = 0;
  for (uint64_t k = 0; k < s->k; ++k) {
    const uint64_t at_a = s->transpose_a ? k * s->m + i : i * s->k + k, at_b = s->transpose_b ? j * s->k + k : k * s->n + j;
    const double product = a->values[batch * s->m * s->k + at_a] * b->values[batch * s->n * s->k + at_b];
    *out_sum += product;
    *out_terms += fabs(product);
  }
}

static double result_at(const probe *p, uint64_t index) {
  const tm_operand *y = &p->operands[p->operation.input_count];
  const unsigned char *at = probe_result(p);
  double value;
  for (uint32_t axis = y->rank; axis-- > 0; index /= y->dims[axis]) at += (int64_t)(index % y->dims[axis]) * y->strides_bytes[axis];
  if (y->format == TM_FORMAT_I32) {
    int32_t number;
    memcpy(&number, at, sizeof number);
    return number;
  }
  tm_codec_find(y->format)->decode(at, 1, &value);
  return value;
}

/* All of y if it is small, else a sample. */
static void check_result(const probe *p, const tm_answer *answer, const char *row, const shape *s, const matrix *a, const matrix *b) {
  const uint64_t count = s->batch * s->m * s->n;
  const uint64_t step = count * s->k < 2000000 ? 1 : count * s->k / 2000000 * 2 + 1;
  for (uint64_t at = 0; at < count; at += step) {
    double sum, terms;
    sum_terms(s, a, b, at / (s->m * s->n), at / s->n % s->m, at % s->n, &sum, &terms);
    const double allowed = answer->numerics == TM_NUMERICS_N0 ? 0 : allowed_distance(&p->operation, answer, sum, terms);
    const double distance = fabs(result_at(p, at) - sum);
    if (distance <= allowed) continue;
    fail_msg("%s, batch %llu, %llux%llux%llu, transposes %u %u: element %llu is %g, expected %g within %g", row,
             (unsigned long long)s->batch, (unsigned long long)s->m, (unsigned long long)s->n, (unsigned long long)s->k,
             s->transpose_a, s->transpose_b, (unsigned long long)at, result_at(p, at), sum, allowed);
  }
}

/* Bytes from one row of a matrix to the next. */
static int64_t row_stride(const tm_operand *x, const shape *s) {
  const tm_format_info *info = tm_format_find(x->format);
  return (int64_t)((x->dims[2] / info->block_elements * s->step + s->gap) * info->block_bytes);
}

static void lay_out(tm_operand *x, const shape *s) {
  x->strides_bytes[2] *= s->step;
  x->strides_bytes[1] = row_stride(x, s);
  x->strides_bytes[0] = (int64_t)x->dims[1] * x->strides_bytes[1];
  assert_int_equal(tm_operand_derive(x, NULL), TM_OK);
}

/* Appends a dense matrix as the shape lays it out; the memory is the caller's to free. */
static unsigned char *add_input(probe *p, uint32_t format, const uint64_t *dims, const matrix *x, const shape *s) {
  const tm_format_info *info = tm_format_find(format);
  const uint64_t blocks = dims[2] / info->block_elements, rows = dims[0] * dims[1];
  const uint32_t is_odd = s->gap > 0 || s->step > 1;
  probe_input(p, format, 3, dims, x->bytes);
  tm_operand *operand = &p->operands[p->operation.input_count - 1];
  if (is_odd) lay_out(operand, s);
  unsigned char *memory = malloc(rows * (uint64_t)row_stride(operand, s) + 2);
  assert_non_null(memory);
  for (uint64_t i = 0; i < rows * blocks; ++i) {
    memcpy(memory + is_odd + i / blocks * (uint64_t)row_stride(operand, s) + i % blocks * s->step * info->block_bytes,
           (const unsigned char *)x->bytes + i * info->block_bytes, info->block_bytes);
  }
  p->pointers[p->operation.input_count - 1] = memory + is_odd;
  return memory;
}

/* Elements of y are dense, and between its rows nothing is written. */
static void spread_result(probe *p, const shape *s) {
  tm_operand *y = &p->operands[2];
  const shape rows_only = { .gap = s->gap, .step = 1 };
  if (s->gap == 0) return;
  lay_out(y, &rows_only);
  tm_op_normalize(&p->operation, p->operands);
  probe_free(p);
  assert_non_null(p->pointers[2] = malloc(y->byte_count + 1));
  assert_non_null(p->expected = malloc(y->byte_count + 1));
}

static void check_gaps(const probe *p, const char *row, const shape *s) {
  const tm_operand *y = &p->operands[2];
  const uint64_t bytes = s->n * tm_format_find(y->format)->block_bytes, stride = (uint64_t)y->strides_bytes[1];
  const unsigned char *result = probe_result(p);
  for (uint64_t i = 0; s->gap > 0 && i < y->byte_count; ++i)
    if (i % stride >= bytes && result[i] != CASE_GUARD) fail_msg("%s: byte %llu between rows of y", row, (unsigned long long)i);
}

/* The first `hosts` of each set. */
static void run_shape(fleet *f, uint32_t hosts, const row_case *row, probe *p, const shape *s, const matrix *a, const matrix *b) {
  uint32_t done = 0;
  for (size_t set = 0; set < SETS; ++set) {
    char name[64];
    snprintf(name, sizeof name, "%s__%s", row->stem, row->has_avx512 ? sets[set] : sets[0]);
    for (uint32_t h = 0; f->is_there[set] && h < hosts; ++h, ++done, ++runs[set]) {
      const tm_answer answer = probe_run(p, &f->hosts[set][h], name);
      if (done == 0) {
        check_result(p, &answer, name, s, a, b);
        check_gaps(p, name, s);
        memcpy(p->expected, probe_result(p), probe_result_bytes(p));
      } else if (memcmp(p->expected, probe_result(p), probe_result_bytes(p)) != 0) {
        fail_msg("%s: %llux%llux%llu, other bits with %u lanes", name, (unsigned long long)s->m, (unsigned long long)s->n,
                 (unsigned long long)s->k, f->hosts[set][h].services.lane_count);
      }
    }
  }
}

static void test_shape(fleet *f, uint32_t hosts, const row_case *row, const shape *given, uint64_t *random) {
  shape s = *given;
  if (s.step == 0) s.step = 1;
  const tm_matmul_attributes attributes = { s.transpose_a, s.transpose_b };
  const uint64_t dims_a[] = { s.batch, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k };
  const uint64_t dims_b[] = { s.batch, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n };
  const matrix a = random_matrix(row->a, s.batch * s.m * s.k, random), b = random_matrix(row->b, s.batch * s.n * s.k, random);
  probe p = probe_of(TM_OP_MATMUL, &attributes, sizeof attributes);
  unsigned char *memory_a = add_input(&p, row->a, dims_a, &a, &s), *memory_b = add_input(&p, row->b, dims_b, &b, &s);
  probe_finish(&p, row->y);
  spread_result(&p, &s);
  run_shape(f, hosts, row, &p, &s, &a, &b);
  probe_free(&p);
  free(memory_a);
  free(memory_b);
  free_matrix(a);
  free_matrix(b);
}

static bool open_hosts(fleet *f) {
  for (size_t set = 0; set < SETS; ++set) {
    f->is_there[set] = probe_open_isa(&f->hosts[set][0], sets[set], 1, 0);
    if (!f->is_there[set]) continue;
    assert_true(probe_open_isa(&f->hosts[set][1], sets[set], 7, 0));
    assert_true(probe_open_isa(&f->hosts[set][2], sets[set], 0, 2));
  }
  return f->is_there[0];
}

static void close_hosts(fleet *f) {
  for (size_t set = 0; set < SETS; ++set)
    for (int h = 0; f->is_there[set] && h < HOSTS; ++h) kernel_host_close(&f->hosts[set][h]);
}

static uint64_t whole(const row_case *row, uint64_t k) { return whole_blocks(row->b, k); }
static bool has_blocks(const row_case *row) { return tm_format_find(row->b)->block_elements > 1; }

static shape shape_of(const row_case *row, uint64_t m, uint64_t n, uint64_t k, uint64_t variant) {
  return (shape){ .batch = 1, .m = m, .n = n, .k = whole(row, k), .transpose_a = variant & 1,
                  .transpose_b = has_blocks(row) ? 1 : variant >> 1 & 1, .gap = variant >> 2 & 1 };
}

/* Beyond twice the largest tile, 12 x 32; one row or column is another kernel's. */
#define MOST_ROWS    26u
#define MOST_COLUMNS 66u

/* Every tile and rest of one, together with every other, beyond twice the largest. */
static void test_all_rests_of_f32(void **state) {
  (void)state;
  static fleet f;
  uint64_t random = SEED + 4;
  if (!open_hosts(&f)) skip();
  for (uint64_t m = 2; m <= MOST_ROWS; ++m) {
    for (uint64_t n = 2; n <= MOST_COLUMNS; ++n) {
      const shape s = shape_of(&blocked[0], m, n, 1 + (m * 3 + n) % 9, m + n);
      test_shape(&f, 1, &blocked[0], &s, &random);
    }
  }
  close_hosts(&f);
}

/* In other formats every number of rows, and of columns. */
static void test_rests_of_tiles(void **state) {
  (void)state;
  static const uint64_t depths[] = { 1, 2, 5, 33, 257, 530 };
  static fleet f;
  uint64_t random = SEED;
  if (!open_hosts(&f)) skip();
  for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
    for (uint64_t i = 2; i <= MOST_COLUMNS; ++i) {
      const shape s = shape_of(&blocked[r], 2 + i * 7 % (MOST_ROWS - 1), i, depths[i % 6], i / 6);
      test_shape(&f, i % 6 < 4 ? HOSTS : 1, &blocked[r], &s, &random);
    }
  }
  close_hosts(&f);
}

/* Every K up to two blocks of what is read at once, and around the blocks along it. */
static void test_all_depths(void **state) {
  (void)state;
  static fleet f;
  uint64_t random = SEED + 5;
  if (!open_hosts(&f)) skip();
  for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
    for (uint64_t i = 1; i < 66 + 12; ++i) {
      const uint64_t k = i < 66 ? i : (i - 66) / 6 * 256 + 253 + i % 6;
      const shape s = shape_of(&blocked[r], 13, 35, k, i / 3);
      if (s.k == k) test_shape(&f, 1, &blocked[r], &s, &random);
    }
  }
  close_hosts(&f);
}

/* Elements that are dense along neither axis, in batches. */
static void test_spread_elements(void **state) {
  (void)state;
  static fleet f;
  uint64_t random = SEED + 6;
  if (!open_hosts(&f)) skip();
  for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
    for (uint64_t i = 0; i < 12 && !has_blocks(&blocked[r]); ++i) {
      shape s = shape_of(&blocked[r], 2 + i * 5 % 25, 3 + i * 7 % 64, 1 + i * 31 % 300, i);
      s.batch = 1 + i % 3;
      s.step = 2 + i % 2;
      test_shape(&f, HOSTS, &blocked[r], &s, &random);
    }
  }
  close_hosts(&f);
}

/* More rows than a block, columns for all threads, few columns with many rows, and batches both shared and handed out. */
static void test_large_shapes(void **state) {
  (void)state;
  static const shape shapes[] = {
    { 1, 700, 70, 300, 0, 0, 0, 1 }, { 1, 61, 400, 96, 1, 1, 0, 1 }, { 1, 590, 9, 64, 0, 1, 3, 1 },
    { 9, 33, 47, 129, 0, 0, 0, 1 }, { 2, 96, 96, 256, 1, 0, 1, 1 }, { 1, 1201, 37, 40, 0, 1, 0, 1 },
  };
  static fleet f;
  uint64_t random = SEED + 1;
  if (!open_hosts(&f)) skip();
  for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
      shape s = shapes[i];
      s.k = whole(&blocked[r], s.k);
      if (has_blocks(&blocked[r])) s.transpose_b = 1;
      test_shape(&f, HOSTS, &blocked[r], &s, &random);
    }
  }
  close_hosts(&f);
}

/* One row, and one column where both operands have the vector's format; small, and large enough for threads. */
static void test_vectors(void **state) {
  (void)state;
  static const uint64_t lines[] = { 2, 3, 4, 37, 1100 }, depths[] = { 1, 7, 64, 250 };
  static fleet f;
  uint64_t random = SEED + 2;
  if (!open_hosts(&f)) skip();
  for (size_t r = 0; r < VECTOR_COUNT; ++r) {
    for (uint64_t i = 0; i < 40; ++i) {
      const bool is_column = r == 0 && i % 2 != 0;
      shape s = { .batch = 1 + i % 2, .m = is_column ? lines[i % 5] : 1, .n = is_column ? 1 : lines[i % 5],
                  .k = whole(&vectors[r], depths[i / 5 % 4]), .transpose_a = r == 0 ? i / 10 % 2 : 0,
                  .transpose_b = has_blocks(&vectors[r]) ? 1 : i / 20 % 2 };
      test_shape(&f, HOSTS, &vectors[r], &s, &random);
    }
  }
  close_hosts(&f);
}

/* Of nothing, a sum is 0; and there may be nothing to compute. */
static void test_empty_shapes(void **state) {
  (void)state;
  static const uint64_t shapes[][4] = {
    { 1, 7, 19, 0 }, { 1, 0, 19, 5 }, { 1, 7, 0, 5 }, { 0, 7, 19, 5 }, { 3, 0, 0, 0 }, { 2, 25, 65, 0 },
  };
  static fleet f;
  uint64_t random = SEED + 7;
  if (!open_hosts(&f)) skip();
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
    for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
      shape s = shape_of(&blocked[r], shapes[i][1], shapes[i][2], shapes[i][3], 0);
      s.batch = shapes[i][0];
      test_shape(&f, HOSTS, &blocked[r], &s, &random);
    }
  }
  close_hosts(&f);
}

/* The lowest bytes make the largest products, of which a pair just fits; a long sum of them wraps like the reference's. */
static void test_extreme_bytes(void **state) {
  (void)state;
  static const uint64_t depths[] = { 2, 1001, 140001 };
  const tm_matmul_attributes attributes = { 0, 1 };
  int8_t *values = malloc(4 * 140001);
  kernel_host host;
  assert_non_null(values);
  if (!probe_open(&host, 2, 0)) skip();
  memset(values, 0x80, 4 * 140001);
  for (int i = 0; i < 3; ++i) {
    const uint64_t dims[] = { 4, depths[i] };
    probe p = probe_of(TM_OP_MATMUL, &attributes, sizeof attributes);
    probe_input(&p, TM_FORMAT_I8, 2, dims, values);
    probe_input(&p, TM_FORMAT_I8, 2, dims, values);
    probe_finish(&p, TM_FORMAT_NONE);
    probe_run(&p, &host, "cpu_matmul_i8__avx2");
    const int32_t expected = (int32_t)(uint32_t)(depths[i] * 16384);
    for (uint64_t k = 0; k < probe_result_count(&p); ++k) assert_int_equal(((const int32_t *)probe_result(&p))[k], expected);
    probe_free(&p);
  }
  free(values);
  kernel_host_close(&host);
}

/* Scales of a tensor, of rows and of columns; the sums are exact, so results are within an ulp of the exact value. */
static void test_scaled(void **state) {
  (void)state;
  const shape s = { .batch = 1, .m = 50, .n = 70, .k = 301, .transpose_b = 1, .step = 1 };
  const tm_matmul_scaled_attributes attributes = { 0, 1, 0, 0 };
  const uint64_t dims_a[] = { s.m, s.k }, dims_b[] = { s.n, s.k };
  uint64_t random = SEED + 3;
  const matrix a = random_matrix(TM_FORMAT_I8, s.m * s.k, &random), b = random_matrix(TM_FORMAT_I8, s.n * s.k, &random);
  const matrix scales_a = random_matrix(TM_FORMAT_F32, s.m, &random), scales_b = random_matrix(TM_FORMAT_F32, s.n, &random);
  kernel_host host;
  if (!probe_open(&host, 0, 2)) skip();
  for (uint32_t kind = 0; kind < 4; ++kind) {
    const uint64_t dims_a_scale[] = { s.m, 1 }, dims_b_scale[] = { s.n, 1 };
    const bool by_row = kind % 2 != 0, by_column = kind / 2 != 0;
    probe p = probe_of(TM_OP_MATMUL_SCALED, &attributes, sizeof attributes);
    probe_input(&p, TM_FORMAT_I8, 2, dims_a, a.bytes);
    probe_input(&p, TM_FORMAT_I8, 2, dims_b, b.bytes);
    probe_input(&p, TM_FORMAT_F32, by_row ? 2 : 0, dims_a_scale, scales_a.bytes);
    probe_input(&p, TM_FORMAT_F32, by_column ? 2 : 0, dims_b_scale, scales_b.bytes);
    probe_finish(&p, TM_FORMAT_F32);
    probe_run(&p, &host, "cpu_matmul_scaled_i8__avx2");
    for (uint64_t at = 0; at < s.m * s.n; ++at) {
      double sum, terms;
      sum_terms(&s, &a, &b, 0, at / s.n, at % s.n, &sum, &terms);
      const double expected = sum * (scales_a.values[by_row ? at / s.n : 0] * scales_b.values[by_column ? at % s.n : 0]);
      if (fabs(result_at(&p, at) - expected) > 0x1p-24 * 1.001 * fabs(expected))
        fail_msg("kind %u, element %llu: %g, expected %g", kind, (unsigned long long)at, result_at(&p, at), expected);
    }
    probe_free(&p);
  }
  free_matrix(a);
  free_matrix(b);
  free_matrix(scales_a);
  free_matrix(scales_b);
  kernel_host_close(&host);
}

/* What is promised to read blocks directly may not have room for an expanded copy. */
static void test_native_rows_have_no_room_to_expand(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 1 };
  const uint64_t dims_a[] = { 8, 4096 }, dims_b[] = { 512, 4096 };
  static fleet f;
  if (!open_hosts(&f)) skip();
  for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
    probe p = probe_of(TM_OP_MATMUL, &attributes, sizeof attributes);
    probe_input(&p, blocked[r].a, 2, dims_a, NULL);
    probe_input(&p, blocked[r].b, 2, dims_b, NULL);
    probe_finish(&p, blocked[r].y);
    for (size_t set = 0; set < SETS; ++set) {
      if (!f.is_there[set]) continue;
      const tm_answer answer = kernel_host_query(&f.hosts[set][2], &p.operation);
      if (answer.level == TM_LEVEL_NATIVE) assert_true(answer.workspace_bytes < dims_b[0] * dims_b[1] * 4 / 64);
    }
    probe_free(&p);
  }
  close_hosts(&f);
}

/* By itself the backend takes the widest set that there is. */
static void test_widest_set_is_taken(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 0 };
  const uint64_t dims[] = { 40, 40 };
  static fleet f;
  kernel_host host;
  if (!open_hosts(&f)) skip();
  assert_true(probe_open_isa(&host, "auto", 1, 0));
  probe p = probe_of(TM_OP_MATMUL, &attributes, sizeof attributes);
  for (int i = 0; i < 2; ++i) probe_input(&p, TM_FORMAT_F32, 2, dims, NULL);
  probe_finish(&p, TM_FORMAT_F32);
  const tm_answer answer = kernel_host_query(&host, &p.operation);
  assert_string_equal(answer.text.data, f.is_there[1] ? "cpu_matmul_f32_f32__avx512" : "cpu_matmul_f32_f32__avx2");
  probe_free(&p);
  kernel_host_close(&host);
  close_hosts(&f);
}

/* After all others. */
static void test_every_set_was_tested(void **state) {
  (void)state;
  static fleet f;
  if (!open_hosts(&f)) skip();
  for (size_t set = 0; set < SETS; ++set) assert_int_equal(runs[set] > 0, f.is_there[set]);
  close_hosts(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_all_rests_of_f32), cmocka_unit_test(test_rests_of_tiles), cmocka_unit_test(test_all_depths),
    cmocka_unit_test(test_spread_elements),  cmocka_unit_test(test_large_shapes),   cmocka_unit_test(test_vectors),
    cmocka_unit_test(test_empty_shapes),     cmocka_unit_test(test_extreme_bytes),  cmocka_unit_test(test_scaled),
    cmocka_unit_test(test_native_rows_have_no_room_to_expand),
    cmocka_unit_test(test_widest_set_is_taken), cmocka_unit_test(test_every_set_was_tested),
  };
  print_message("seed %llu\n", (unsigned long long)SEED);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
