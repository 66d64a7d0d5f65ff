/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise kernels of the CPU backend, bit for bit: every bf16 and f16 value against values that lie next to it, where a
 * second rounding could show; enough elements for all threads; and broadcasts along every set of axes.
 */
#include "conformance/kernel_compare.h"
#include "kernel_probe.h"

#define SEED UINT64_C(20240612)

static void expect_equal(const probe *p, const char *row) {
  const uint32_t bytes = tm_format_find(p->operands[p->operation.input_count].format)->block_bytes;
  const tm_answer exact = { .numerics = TM_NUMERICS_N0 };
  for (uint64_t at = 0; at < probe_result_bytes(p); at += bytes) {
    const unsigned char *actual = (const unsigned char *)probe_result(p) + at, *expected = (const unsigned char *)p->expected + at;
    if (block_is_close(&p->operation, &exact, actual, expected, NULL)) continue;
    uint64_t bits[2] = { 0, 0 };
    memcpy(&bits[0], actual, bytes);
    memcpy(&bits[1], expected, bytes);
    fail_msg("%s: element %llu is %llx, the reference has %llx", row, (unsigned long long)(at / bytes), (unsigned long long)bits[0],
             (unsigned long long)bits[1]);
  }
}

typedef struct binary {
  uint32_t    op;
  const char *name;
} binary;

static const binary binaries[] = { { TM_OP_ADD, "add" }, { TM_OP_SUB, "sub" }, { TM_OP_MUL, "mul" }, { TM_OP_DIV, "div" } };

/* All 65536 values against one random partner each, chosen so that results are often subnormal or next to a tie. */
static void compare_halves(uint32_t format, const char *format_name, uint64_t *random) {
  const uint64_t count = 65536;
  uint16_t *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b);
  kernel_host host;
  assert_non_null(a);
  assert_non_null(b);
  if (!probe_open(&host, 2, 0)) skip();
  for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; ++i) {
    for (uint64_t k = 0; k < count; ++k) {
      const uint16_t bits = (uint16_t)random_u64(random);
      a[k] = (uint16_t)k;
      /* Exponents that add up to about the smallest, or are nearly equal, or anything. */
      const uint16_t other = (uint16_t)((format == TM_FORMAT_BF16 ? 0x3f80 : 0x3c00) - (k & 0x7f80));
      b[k] = k % 3 == 0 ? bits : k % 3 == 1 ? (uint16_t)((other & 0x7fff) ^ (bits & 0x80ff)) : (uint16_t)(k ^ (bits & 0x8fff));
    }
    probe p = probe_of(binaries[i].op, NULL, 0);
    char row[64];
    snprintf(row, sizeof row, "cpu_%s_%s__avx2", binaries[i].name, format_name);
    probe_input(&p, format, 1, &count, a);
    probe_input(&p, format, 1, &count, b);
    probe_finish(&p, TM_FORMAT_NONE);
    probe_run(&p, &host, row);
    probe_reference(&p);
    expect_equal(&p, row);
    probe_free(&p);
  }
  kernel_host_close(&host);
  free(a);
  free(b);
}

static void test_halves_round_once(void **state) {
  (void)state;
  uint64_t random = SEED;
  for (int round = 0; round < 4; ++round) {
    compare_halves(TM_FORMAT_BF16, "bf16", &random);
    compare_halves(TM_FORMAT_F16, "f16", &random);
  }
}

static void test_lerp_of_halves_rounds_once(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_BF16, TM_FORMAT_F16 };
  static const char *const rows[] = { "cpu_lerp_bf16__avx2", "cpu_lerp_f16__avx2" };
  const uint64_t count = 200003;
  uint64_t random = SEED;
  uint16_t *inputs[3];
  kernel_host host;
  if (!probe_open(&host, 3, 0)) skip();
  for (int i = 0; i < 3; ++i) assert_non_null(inputs[i] = malloc(count * sizeof **inputs));
  for (int f = 0; f < 2; ++f) {
    const uint16_t one = f == 0 ? 0x3f80 : 0x3c00;
    for (uint64_t k = 0; k < count; ++k) {
      for (int i = 0; i < 3; ++i) inputs[i][k] = (uint16_t)random_u64(&random);
      if (k % 4 == 1) inputs[1][k] = (uint16_t)(inputs[0][k] ^ (k & 0x801f));
      if (k % 5 == 2) inputs[2][k] = k % 2 ? one : 0;
      else if (k % 5 > 2) inputs[2][k] = (uint16_t)(one - (inputs[2][k] & 0x3ff));
    }
    probe p = probe_of(TM_OP_LERP, NULL, 0);
    for (int i = 0; i < 3; ++i) probe_input(&p, formats[f], 1, &count, inputs[i]);
    probe_finish(&p, TM_FORMAT_NONE);
    probe_run(&p, &host, rows[f]);
    probe_reference(&p);
    expect_equal(&p, rows[f]);
    probe_free(&p);
  }
  for (int i = 0; i < 3; ++i) free(inputs[i]);
  kernel_host_close(&host);
}

/* Broadcasts of a 3-d sum along every set of axes of either operand, large enough that threads share rows. */
static void test_broadcasts(void **state) {
  (void)state;
  const uint64_t dims[3] = { 5, 37, 1203 };
  uint64_t random = SEED;
  kernel_host hosts[3];
  if (!probe_open(&hosts[0], 1, 0)) skip();
  assert_true(probe_open(&hosts[1], 7, 0));
  assert_true(probe_open(&hosts[2], 0, 2));
  float *values[2];
  for (int i = 0; i < 2; ++i) {
    assert_non_null(values[i] = malloc(dims[0] * dims[1] * dims[2] * sizeof **values));
    for (uint64_t k = 0; k < dims[0] * dims[1] * dims[2]; ++k) values[i][k] = (float)plain_value(&random);
  }
  for (uint32_t repeated = 0; repeated < 64; ++repeated) {
    probe p = probe_of(TM_OP_SUB, NULL, 0);
    for (uint32_t i = 0; i < 2; ++i) {
      uint64_t own[3];
      for (uint32_t axis = 0; axis < 3; ++axis) own[axis] = repeated >> (3 * i + axis) & 1 ? 1 : dims[axis];
      probe_input(&p, TM_FORMAT_F32, 3, own, values[i]);
    }
    probe_finish(&p, TM_FORMAT_NONE);
    probe_reference(&p);
    for (int h = 0; h < 3; ++h) {
      probe_run(&p, &hosts[h], "cpu_sub_f32__avx2");
      expect_equal(&p, "cpu_sub_f32__avx2");
    }
    probe_free(&p);
  }
  for (int i = 0; i < 2; ++i) free(values[i]);
  for (int h = 0; h < 3; ++h) kernel_host_close(&hosts[h]);
}

/* The output in the very place of an input, where the answer allows it. */
static void test_in_place(void **state) {
  (void)state;
  const uint64_t count = 300007;
  uint64_t random = SEED;
  kernel_host host;
  if (!probe_open(&host, 0, 2)) skip();
  float *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b);
  assert_non_null(a);
  assert_non_null(b);
  for (uint32_t input = 0; input < 2; ++input) {
    for (uint64_t k = 0; k < count; ++k) {
      a[k] = (float)plain_value(&random);
      b[k] = (float)plain_value(&random);
    }
    probe p = probe_of(TM_OP_MUL, NULL, 0);
    probe_input(&p, TM_FORMAT_F32, 1, &count, a);
    probe_input(&p, TM_FORMAT_F32, 1, &count, b);
    probe_finish(&p, TM_FORMAT_NONE);
    probe_reference(&p);
    const tm_answer answer = kernel_host_query(&host, &p.operation);
    assert_true((answer.alias_mask >> input & 1) != 0);
    kernel_run run;
    void *const pointers[] = { a, b, input == 0 ? a : b };
    assert_int_equal(kernel_run_prepare(&run, &host, &p.operation), TM_OK);
    assert_int_equal(kernel_run_launch(&run, pointers), TM_OK);
    kernel_run_release(&run);
    memcpy(probe_result(&p), pointers[2], probe_result_bytes(&p));
    expect_equal(&p, "mul in place");
    probe_free(&p);
  }
  free(a);
  free(b);
  kernel_host_close(&host);
}

/* Rows of three are left to the reference, unless they lie one behind the other in all operands. */
static void test_short_rows(void **state) {
  (void)state;
  const uint64_t dims[2] = { 1000, 3 }, one_row[2] = { 1, 3 };
  kernel_host host;
  if (!probe_open(&host, 1, 0)) skip();
  for (int broadcast = 0; broadcast < 2; ++broadcast) {
    probe p = probe_of(TM_OP_ADD, NULL, 0);
    probe_input(&p, TM_FORMAT_F32, 2, dims, NULL);
    probe_input(&p, TM_FORMAT_F32, 2, broadcast ? one_row : dims, NULL);
    probe_finish(&p, TM_FORMAT_NONE);
    const tm_answer answer = kernel_host_query(&host, &p.operation);
    assert_int_equal(answer.level, broadcast ? TM_LEVEL_REFUSED : TM_LEVEL_NATIVE);
    if (broadcast) assert_true((answer.reasons & TM_REASON_SHAPE) != 0);
    probe_free(&p);
  }
  kernel_host_close(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_halves_round_once),
    cmocka_unit_test(test_lerp_of_halves_rounds_once),
    cmocka_unit_test(test_broadcasts),
    cmocka_unit_test(test_in_place),
    cmocka_unit_test(test_short_rows),
  };
  print_message("seed %llu\n", (unsigned long long)SEED);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
