/* SPDX-License-Identifier: Apache-2.0 */
/* What random claims do not meet of the merging kernels: as many inputs as there may be, each of a format of its own; results at
   the edges of the narrow formats; outputs that pass by the caches; outputs in the place of an input. */
#include "kernel_probe.h"

#define MOST_OTHERS 13u
#define COUNT (3u * 512 + 96)   /* whole blocks of 32 elements, and a short block at the end */

static kernel_host host;

static bool is_open;

static int open_host(void **state) {
  (void)state;
  is_open = probe_open(&host, 0, 3);
  return 0;
}

static int close_host(void **state) {
  (void)state;
  if (is_open) kernel_host_close(&host);
  return 0;
}

/* Values of ordinary size near each other in any format; one of the base in four. */
static void *make_values(uint32_t format, uint64_t count, uint64_t seed) {
  const tm_format_info *info = tm_format_find(format);
  unsigned char *bytes = malloc((size_t)(count / info->block_elements * info->block_bytes + 1));
  double values[32];
  assert_non_null(bytes);
  for (uint64_t at = 0; at < count; at += info->block_elements) {
    for (uint32_t i = 0; i < info->block_elements; ++i) {
      uint64_t state = at + i;
      const double base = plain_value(&state);
      values[i] = random_below(&seed, 4) == 0 ? base : base + plain_value(&seed) / 4;
    }
    tm_codec_find(format)->encode(values, info->block_elements, bytes + at / info->block_elements * info->block_bytes);
  }
  return bytes;
}

static uint64_t bits_of(double value) { return case_bits_of(value); }

/* Of `others` inputs beside the first. */
static uint64_t make_settings(uint32_t op, uint32_t others, uint64_t *words) {
  uint64_t count = 0, seed = 7;
  if (op != TM_OP_WEIGHTED_SUM) words[count++] = op == TM_OP_DARE_SUM ? (UINT64_C(1) << 34) - 700 : bits_of(0.75);
  for (uint32_t i = op == TM_OP_WEIGHTED_SUM ? 0 : 1; i <= others; ++i) {
    words[count++] = bits_of(plain_value(&seed));
    if (op == TM_OP_DARE_SUM) {
      words[count++] = bits_of(1.5);
      words[count++] = i % 4 == 3 ? UINT64_C(1) << 32 : (uint64_t)i << 28;
      words[count++] = random_u64(&seed);
    }
    if (op == TM_OP_TIES_SUM) words[count++] = bits_of(0.1 * i);
  }
  return count;
}

static void expect_equal(const probe *p) {
  const tm_operand *y = &p->operands[p->operation.input_count];
  const uint32_t bytes = tm_format_find(y->format)->block_bytes;
  for (uint64_t i = 0; i < y->element_count; ++i) {
    const unsigned char *found = (unsigned char *)probe_result(p) + i * bytes, *expected = (unsigned char *)p->expected + i * bytes;
    double a, b;
    if (memcmp(found, expected, bytes) == 0) continue;
    tm_codec_find(y->format)->decode(found, 1, &a);
    tm_codec_find(y->format)->decode(expected, 1, &b);
    if (!isnan(a) || !isnan(b)) fail_msg("%s: element %u is %a, expected %a", tm_op_find(p->operation.op)->name, (unsigned)i, a, b);
  }
}

static void merge_and_compare(uint32_t op, const char *row, uint32_t others, uint32_t first_format, uint32_t y_format) {
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_Q8_0, TM_FORMAT_BF16, TM_FORMAT_F64, TM_FORMAT_F8_E4M3FN,
                                      TM_FORMAT_F16, TM_FORMAT_Q4_0, TM_FORMAT_F8_E5M2 };
  const tm_ties_attributes ties = { others % 2, 0 };
  uint64_t words[1 + 4 * MOST_OTHERS];
  void *values[1 + MOST_OTHERS] = { make_values(first_format, COUNT, 1) };
  probe p = probe_of(op, op == TM_OP_TIES_SUM ? &ties : NULL, op == TM_OP_TIES_SUM ? sizeof ties : 0);
  probe_input(&p, first_format, 1, (const uint64_t[]){ COUNT }, values[0]);
  const uint64_t count = make_settings(op, others, words);
  probe_input(&p, op == TM_OP_DARE_SUM ? TM_FORMAT_U64 : TM_FORMAT_F64, 1, &count, words);
  for (uint32_t i = 1; i <= others; ++i) {
    const uint32_t format = formats[(i + y_format) % 8];
    values[i] = make_values(format, COUNT, i + 1);
    probe_input(&p, format, 1, (const uint64_t[]){ COUNT }, values[i]);
  }
  probe_finish(&p, y_format);
  probe_run(&p, &host, row);
  probe_reference(&p);
  expect_equal(&p);
  probe_free(&p);
  for (uint32_t i = 0; i <= others; ++i) free(values[i]);
}

static void merges_as_many_as_there_may_be(void **state) {
  static const uint32_t results[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F16, TM_FORMAT_F64 };
  (void)state;
  if (!is_open) skip();
  for (uint32_t i = 0; i < 4; ++i) {
    for (uint32_t others = i; others <= MOST_OTHERS; others += 4 + i) {
      merge_and_compare(TM_OP_WEIGHTED_SUM, "cpu_weighted_sum__avx2", others, results[i], results[i]);
      if (others == 0) continue;
      merge_and_compare(TM_OP_DARE_SUM, "cpu_dare_sum__avx2", others, TM_FORMAT_Q8_0, results[i]);
      merge_and_compare(TM_OP_TIES_SUM, "cpu_ties_sum__avx2", others, TM_FORMAT_BF16, results[i]);
    }
    merge_and_compare(TM_OP_WEIGHTED_SUM, "cpu_weighted_sum__avx2", MOST_OTHERS, TM_FORMAT_F64, results[i]);
    merge_and_compare(TM_OP_DARE_SUM, "cpu_dare_sum__avx2", MOST_OTHERS, TM_FORMAT_F32, results[i]);
    merge_and_compare(TM_OP_TIES_SUM, "cpu_ties_sum__avx2", MOST_OTHERS, TM_FORMAT_F16, results[i]);
  }
}

/* Of any two formats, which are decoded first where they are not the result's. */
static void two_of_any_formats(void **state) {
  static const uint32_t firsts[] = { TM_FORMAT_F32, TM_FORMAT_Q8_0,      TM_FORMAT_BF16,
                                     TM_FORMAT_F64, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F16 };
  static const uint32_t results[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F16, TM_FORMAT_F64 };
  (void)state;
  if (!is_open) skip();
  for (uint32_t i = 0; i < 6; ++i) {
    for (uint32_t k = 0; k < 4; ++k) merge_and_compare(TM_OP_WEIGHTED_SUM, "cpu_weighted_sum__avx2", 1, firsts[i], results[k]);
  }
}

/* ---- edges of narrow formats ---- */

/* Every number of 16 bits, and what lies in the middle between it and the next, a little less and a little more; the next one
   behind the last finite one is where it would be without an end. */
static double *make_edges(uint32_t format) {
  double *edges = malloc(65536 * 4 * sizeof *edges);
  assert_non_null(edges);
  for (uint32_t code = 0; code < 65536; ++code) {
    const uint16_t neighbours[] = { (uint16_t)code, (uint16_t)(code + 1), (uint16_t)(code - 1) };
    double values[3];
    tm_codec_find(format)->decode(neighbours, 3, values);
    const double step = isfinite(values[1]) ? values[1] - values[0] : values[0] - values[2], middle = values[0] + step / 2;
    edges[4 * code] = values[0];
    edges[4 * code + 1] = middle;
    edges[4 * code + 2] = nextafter(middle, values[0]);
    edges[4 * code + 3] = nextafter(middle, values[0] + step);
  }
  return edges;
}

static void narrow_results_are_rounded_once(void **state) {
  static const uint32_t formats[] = { TM_FORMAT_BF16, TM_FORMAT_F16 };
  const double one = 1;
  (void)state;
  if (!is_open) skip();
  for (uint32_t i = 0; i < 2; ++i) {
    double *edges = make_edges(formats[i]);
    probe p = probe_of(TM_OP_WEIGHTED_SUM, NULL, 0);
    probe_input(&p, TM_FORMAT_F64, 1, (const uint64_t[]){ 65536 * 4 }, edges);
    probe_input(&p, TM_FORMAT_F64, 1, (const uint64_t[]){ 1 }, &one);
    probe_finish(&p, formats[i]);
    probe_run(&p, &host, "cpu_weighted_sum__avx2");
    probe_reference(&p);
    expect_equal(&p);
    probe_free(&p);
    free(edges);
  }
}

/* ---- places ---- */

static uint16_t *make_halves(uint64_t count, uint64_t seed) {
  uint16_t *halves = malloc((size_t)count * sizeof *halves);
  assert_non_null(halves);
  for (uint64_t i = 0; i < count; ++i) halves[i] = (uint16_t)((random_u64(&seed) & 0x8fff) | 0x3000);
  return halves;
}

/* Beyond 16 MiB, and not of whole blocks. */
static void large_outputs_pass_by_the_caches(void **state) {
  const uint64_t count = (UINT64_C(8) << 20) + 777, two = 2;
  const double weights[] = { 0.25, 0.75 };
  (void)state;
  if (!is_open) skip();
  uint16_t *a = make_halves(count, 1), *b = make_halves(count, 2);
  probe p = probe_of(TM_OP_WEIGHTED_SUM, NULL, 0);
  probe_input(&p, TM_FORMAT_BF16, 1, &count, a);
  probe_input(&p, TM_FORMAT_F64, 1, &two, weights);
  probe_input(&p, TM_FORMAT_BF16, 1, &count, b);
  probe_finish(&p, TM_FORMAT_BF16);
  probe_run(&p, &host, "cpu_weighted_sum__avx2");
  probe_reference(&p);
  expect_equal(&p);
  probe_free(&p);
  free(a);
  free(b);
}

static void outputs_take_the_place_of_any_input(void **state) {
  const uint64_t count = 20000 + 13, two = 2;
  const double weights[] = { 0.25, -3 };
  (void)state;
  if (!is_open) skip();
  for (uint32_t place = 0; place < 3; place += 2) {
    uint16_t *inputs[] = { make_halves(count, 1), NULL, make_halves(count, 2) };
    probe p = probe_of(TM_OP_WEIGHTED_SUM, NULL, 0);
    probe_input(&p, TM_FORMAT_F16, 1, &count, inputs[0]);
    probe_input(&p, TM_FORMAT_F64, 1, &two, weights);
    probe_input(&p, TM_FORMAT_F16, 1, &count, inputs[2]);
    probe_finish(&p, TM_FORMAT_F16);
    probe_reference(&p);
    const tm_answer answer = kernel_host_query(&host, &p.operation);
    assert_true((answer.alias_mask >> place & 1) != 0 && (answer.alias_mask >> 1 & 1) == 0);
    kernel_run run;
    void *pointers[] = { inputs[0], (void *)(uintptr_t)weights, inputs[2], inputs[place] };
    assert_int_equal(kernel_run_prepare(&run, &host, &p.operation), TM_OK);
    assert_int_equal(kernel_run_launch(&run, pointers), TM_OK);
    kernel_run_release(&run);
    assert_memory_equal(inputs[place], p.expected, (size_t)count * 2);
    probe_free(&p);
    free(inputs[0]);
    free(inputs[2]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(merges_as_many_as_there_may_be), cmocka_unit_test(two_of_any_formats),
    cmocka_unit_test(narrow_results_are_rounded_once),
    cmocka_unit_test(large_outputs_pass_by_the_caches),
    cmocka_unit_test(outputs_take_the_place_of_any_input),
  };
  return cmocka_run_group_tests(tests, open_host, close_host);
}
