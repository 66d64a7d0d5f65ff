/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul kernels of the CPU backend at the edges of their blocking: every rest of a tile, K over several blocks, more rows
 * than a block has, batches handed out whole, all transposes, and the same bits for any number of threads.  Sums are judged
 * by the class that was promised, with the terms summed here in f64.
 */
#include "conformance/kernel_compare.h"
#include "kernel_probe.h"

#define SEED  UINT64_C(20240613)
#define HOSTS 3

typedef struct row_case {
  const char *row;
  uint32_t    a, b, y;
} row_case;

static const row_case blocked[] = {
  { "cpu_matmul_f32_f32__avx2", TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 },
  { "cpu_matmul_f32_bf16__avx2", TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F32 },
  { "cpu_matmul_f32_f16__avx2", TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_F32 },
  { "cpu_matmul_f32_q8_0__avx2", TM_FORMAT_F32, TM_FORMAT_Q8_0, TM_FORMAT_F32 },
  { "cpu_matmul_f32_q4_0__avx2", TM_FORMAT_F32, TM_FORMAT_Q4_0, TM_FORMAT_F32 },
  { "cpu_matmul_bf16_bf16__avx2", TM_FORMAT_BF16, TM_FORMAT_BF16, TM_FORMAT_BF16 },
  { "cpu_matmul_f16_f16_f32__avx2", TM_FORMAT_F16, TM_FORMAT_F16, TM_FORMAT_F32 },
  { "cpu_matmul_f64__avx2", TM_FORMAT_F64, TM_FORMAT_F64, TM_FORMAT_F64 },
  { "cpu_matmul_i8__avx2", TM_FORMAT_I8, TM_FORMAT_I8, TM_FORMAT_I32 },
};
#define BLOCKED_COUNT (sizeof blocked / sizeof blocked[0])

static const row_case vectors[] = {
  { "cpu_matmul_vector_f32__avx2", TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 },
  { "cpu_matmul_vector_bf16__avx2", TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F32 },
  { "cpu_matmul_vector_f16__avx2", TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_F32 },
  { "cpu_matmul_vector_q8_0__avx2", TM_FORMAT_F32, TM_FORMAT_Q8_0, TM_FORMAT_F32 },
  { "cpu_matmul_vector_q4_0__avx2", TM_FORMAT_F32, TM_FORMAT_Q4_0, TM_FORMAT_F32 },
};
#define VECTOR_COUNT (sizeof vectors / sizeof vectors[0])

typedef struct shape {
  uint64_t batch, m, n, k;
  uint32_t transpose_a, transpose_b;
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
  const uint32_t format = p->operands[p->operation.input_count].format;
  double y;
  if (format == TM_FORMAT_I32) return (double)((const int32_t *)probe_result(p))[index];
  tm_codec_find(format)->decode((const unsigned char *)probe_result(p) + index * tm_format_find(format)->block_bytes, 1, &y);
  return y;
}

/* All of y if it is small, else a sample. */
static void check_result(const probe *p, const tm_answer *answer, const row_case *row, const shape *s, const matrix *a, const matrix *b) {
  const uint64_t count = s->batch * s->m * s->n;
  const uint64_t step = count * s->k < 2000000 ? 1 : count * s->k / 2000000 * 2 + 1;
  for (uint64_t at = 0; at < count; at += step) {
    double sum, terms;
    sum_terms(s, a, b, at / (s->m * s->n), at / s->n % s->m, at % s->n, &sum, &terms);
    const double allowed = answer->numerics == TM_NUMERICS_N0 ? 0 : allowed_distance(&p->operation, answer, sum, terms);
    const double distance = fabs(result_at(p, at) - sum);
    if (distance <= allowed) continue;
    fail_msg("%s, batch %llu, %llux%llux%llu, transposes %u %u: element %llu is %g, expected %g within %g", row->row,
             (unsigned long long)s->batch, (unsigned long long)s->m, (unsigned long long)s->n, (unsigned long long)s->k,
             s->transpose_a, s->transpose_b, (unsigned long long)at, result_at(p, at), sum, allowed);
  }
}

static void test_shape(kernel_host *hosts, const row_case *row, const shape *s, uint64_t *random) {
  const tm_matmul_attributes attributes = { s->transpose_a, s->transpose_b };
  const uint64_t dims_a[] = { s->batch, s->transpose_a ? s->k : s->m, s->transpose_a ? s->m : s->k };
  const uint64_t dims_b[] = { s->batch, s->transpose_b ? s->n : s->k, s->transpose_b ? s->k : s->n };
  const matrix a = random_matrix(row->a, s->batch * s->m * s->k, random), b = random_matrix(row->b, s->batch * s->n * s->k, random);
  probe p = probe_of(TM_OP_MATMUL, &attributes, sizeof attributes);
  probe_input(&p, row->a, 3, dims_a, a.bytes);
  probe_input(&p, row->b, 3, dims_b, b.bytes);
  probe_finish(&p, row->y);
  for (int h = 0; h < HOSTS; ++h) {
    const tm_answer answer = probe_run(&p, &hosts[h], row->row);
    if (h == 0) {
      check_result(&p, &answer, row, s, &a, &b);
      memcpy(p.expected, probe_result(&p), probe_result_bytes(&p));
    } else if (memcmp(p.expected, probe_result(&p), probe_result_bytes(&p)) != 0) {
      fail_msg("%s: other bits with %u lanes", row->row, hosts[h].services.lane_count);
    }
  }
  probe_free(&p);
  free_matrix(a);
  free_matrix(b);
}

static bool open_hosts(kernel_host *hosts) {
  if (!probe_open(&hosts[0], 1, 0)) return false;
  assert_true(probe_open(&hosts[1], 7, 0));
  assert_true(probe_open(&hosts[2], 0, 2));
  return true;
}

static void close_hosts(kernel_host *hosts) {
  for (int h = 0; h < HOSTS; ++h) kernel_host_close(&hosts[h]);
}

static uint64_t whole(const row_case *row, uint64_t k) { return whole_blocks(row->b, k); }
static bool has_blocks(const row_case *row) { return tm_format_find(row->b)->block_elements > 1; }

/* Every rest of a tile of 6 x 16 (or 8), with K short, odd, and over more than one block. */
static void test_rests_of_tiles(void **state) {
  (void)state;
  static const uint64_t depths[] = { 1, 2, 5, 33, 257, 530 };
  kernel_host hosts[HOSTS];
  uint64_t random = SEED;
  if (!open_hosts(hosts)) skip();
  for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
    for (uint64_t i = 0; i < 24; ++i) {
      const shape s = { .batch = 1, .m = 2 + i % 12, .n = 2 + (i * 5) % 31, .k = whole(&blocked[r], depths[i % 6]),
                        .transpose_a = i / 2 % 2, .transpose_b = has_blocks(&blocked[r]) ? 1 : i / 4 % 2 };
      test_shape(hosts, &blocked[r], &s, &random);
    }
  }
  close_hosts(hosts);
}

/* More rows than a block, columns for all threads, few columns with many rows, and batches both shared and handed out. */
static void test_large_shapes(void **state) {
  (void)state;
  static const shape shapes[] = {
    { 1, 700, 70, 300, 0, 0 }, { 1, 61, 400, 96, 1, 1 }, { 1, 590, 9, 64, 0, 1 }, { 9, 33, 47, 129, 0, 0 }, { 2, 96, 96, 256, 1, 0 },
  };
  kernel_host hosts[HOSTS];
  uint64_t random = SEED + 1;
  if (!open_hosts(hosts)) skip();
  for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
      shape s = shapes[i];
      s.k = whole(&blocked[r], s.k);
      if (has_blocks(&blocked[r])) s.transpose_b = 1;
      test_shape(hosts, &blocked[r], &s, &random);
    }
  }
  close_hosts(hosts);
}

/* One row, and one column where both operands have the vector's format; small, and large enough for threads. */
static void test_vectors(void **state) {
  (void)state;
  static const uint64_t lines[] = { 2, 3, 4, 37, 1100 }, depths[] = { 1, 7, 64, 250 };
  kernel_host hosts[HOSTS];
  uint64_t random = SEED + 2;
  if (!open_hosts(hosts)) skip();
  for (size_t r = 0; r < VECTOR_COUNT; ++r) {
    for (uint64_t i = 0; i < 40; ++i) {
      const bool is_column = r == 0 && i % 2 != 0;
      shape s = { .batch = 1 + i % 2, .m = is_column ? lines[i % 5] : 1, .n = is_column ? 1 : lines[i % 5],
                  .k = whole(&vectors[r], depths[i / 5 % 4]), .transpose_a = r == 0 ? i / 10 % 2 : 0,
                  .transpose_b = has_blocks(&vectors[r]) ? 1 : i / 20 % 2 };
      test_shape(hosts, &vectors[r], &s, &random);
    }
  }
  close_hosts(hosts);
}

/* Of nothing, a sum is 0; and there may be nothing to compute. */
static void test_empty_shapes(void **state) {
  (void)state;
  static const char *const rows[] = { "cpu_matmul_f32_f32__avx2", "cpu_matmul_bf16_bf16__avx2", "cpu_matmul_i8__avx2" };
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_I8 };
  static const uint64_t shapes[][4] = { { 1, 7, 19, 0 }, { 1, 0, 19, 5 }, { 1, 7, 0, 5 }, { 0, 7, 19, 5 }, { 3, 0, 0, 0 } };
  const tm_matmul_attributes attributes = { 0, 0 };
  kernel_host host;
  if (!probe_open(&host, 2, 0)) skip();
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
    for (int r = 0; r < 3; ++r) {
      const uint64_t dims_a[] = { shapes[i][0], shapes[i][1], shapes[i][3] }, dims_b[] = { shapes[i][0], shapes[i][3], shapes[i][2] };
      probe p = probe_of(TM_OP_MATMUL, &attributes, sizeof attributes);
      probe_input(&p, formats[r], 3, dims_a, "");
      probe_input(&p, formats[r], 3, dims_b, "");
      probe_finish(&p, TM_FORMAT_NONE);
      probe_run(&p, &host, rows[r]);
      for (uint64_t k = 0; k < probe_result_count(&p); ++k) assert_true(result_at(&p, k) == 0);
      probe_free(&p);
    }
  }
  kernel_host_close(&host);
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
  const shape s = { 1, 50, 70, 301, 0, 1 };
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
  kernel_host host;
  if (!probe_open(&host, 2, 0)) skip();
  for (size_t r = 0; r < BLOCKED_COUNT; ++r) {
    probe p = probe_of(TM_OP_MATMUL, &attributes, sizeof attributes);
    probe_input(&p, blocked[r].a, 2, dims_a, NULL);
    probe_input(&p, blocked[r].b, 2, dims_b, NULL);
    probe_finish(&p, blocked[r].y);
    const tm_answer answer = kernel_host_query(&host, &p.operation);
    if (answer.level == TM_LEVEL_NATIVE) assert_true(answer.workspace_bytes < dims_b[0] * dims_b[1] * 4 / 64);
    probe_free(&p);
  }
  kernel_host_close(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rests_of_tiles), cmocka_unit_test(test_large_shapes), cmocka_unit_test(test_vectors),
    cmocka_unit_test(test_empty_shapes),   cmocka_unit_test(test_extreme_bytes), cmocka_unit_test(test_scaled),
    cmocka_unit_test(test_native_rows_have_no_room_to_expand),
  };
  print_message("seed %llu\n", (unsigned long long)SEED);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
