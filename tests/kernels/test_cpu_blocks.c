/* SPDX-License-Identifier: Apache-2.0 */
/* Block formats that are read and not written: each kernel that reads them gives the bits of the reference, for blocks of ordinary
   scales and for any bits at all (NaN, infinities and subnormals among the scales), whole blocks of 512 elements and short ones. */
#include "kernel_probe.h"

#include "tensormorph/canonical_sum.h"

#define MOST_ELEMENTS (TM_SUM_SUPERBLOCK + 2u * TM_SUM_BLOCK + 256u)

static kernel_host host;
/* Halves of ordinary size, as which every 16 bits of a block may be read. */
static void make_blocks(unsigned char *data, uint64_t bytes, bool any_bits, uint64_t *random) {
  for (uint64_t i = 0; i < bytes; i++) {
    const unsigned char byte = (unsigned char)random_u64(random);
    data[i] = any_bits ? byte : (unsigned char)(byte & 0xbf & (i % 2 == 1 ? ~0x40u : 0xffu));
  }
}

static void decode(uint32_t format, const unsigned char *data, uint64_t elements, float *out) {
  double *values = malloc((size_t)elements * sizeof *values);
  assert_non_null(values);
  tm_codec_find(format)->decode(data, elements, values);
  for (uint64_t i = 0; i < elements; i++) out[i] = (float)values[i];
  free(values);
}

static bool is_nan_at(const probe *p, uint64_t byte) {
  float x;
  memcpy(&x, (const unsigned char *)p->expected + byte / sizeof x * sizeof x, sizeof x);
  return p->operands[p->operation.input_count].format == TM_FORMAT_F32 && isnan(x);
}

static void expect_bits(probe *p, uint32_t format, uint64_t elements) {
  char name[128];
  p->operation.operands = p->operands;
  const tm_answer answer = kernel_host_query(&host, &p->operation);
  if (answer.level == TM_LEVEL_REFUSED)
    fail_msg("%s of %s: %.*s", tm_op_find(p->operation.op)->name, tm_format_find(format)->name, (int)answer.text.length, answer.text.data);
  snprintf(name, sizeof name, "%.*s", (int)answer.text.length, answer.text.data);
  probe_run(p, &host, name);
  probe_reference(p);
  const unsigned char *found = probe_result(p), *expected = p->expected;
  for (uint64_t i = 0; i < probe_result_bytes(p); i++)
    if (found[i] != expected[i] && !is_nan_at(p, i))
      fail_msg("%s of %llu elements of %s: byte %llu is 0x%02x, expected 0x%02x", name, (unsigned long long)elements,
               tm_format_find(format)->name, (unsigned long long)i, found[i], expected[i]);
  probe_free(p);
}

/* op 0 of the data; with `other`, of both. */
static void check(uint32_t op, uint32_t format, const void *data, uint32_t other_format, const void *other, uint64_t elements) {
  const double weights[] = { 0.75, 0.25 };
  const uint64_t two = 2;
  probe p = probe_of(op, NULL, 0);
  tm_magnitudes_attributes attributes = { 0 };
  if (op == TM_OP_MAGNITUDES) p = probe_of(op, &attributes, sizeof attributes);
  probe_input(&p, format, 1, &elements, data);
  if (op == TM_OP_WEIGHTED_SUM) probe_input(&p, TM_FORMAT_F64, 1, &two, weights);
  if (other != NULL) probe_input(&p, other_format, 1, &elements, other);
  probe_finish(&p, op == TM_OP_WEIGHTED_SUM || op == TM_OP_DEQUANTIZE ? TM_FORMAT_F32 : TM_FORMAT_U64);
  expect_bits(&p, format, elements);
}

static void check_format(const tm_format_info *info, uint64_t elements, bool any_bits, uint64_t *random) {
  const uint64_t bytes = tm_format_bytes_of(info, elements);
  unsigned char *a = malloc((size_t)bytes), *b = malloc((size_t)bytes);
  float *values = malloc((size_t)elements * sizeof *values);
  assert_true(a != NULL && b != NULL && values != NULL);
  make_blocks(a, bytes, any_bits, random);
  memcpy(b, a, (size_t)bytes);
  decode(info->format, a, elements, values);
  check(TM_OP_STATS, info->format, a, 0, NULL, elements);
  check(TM_OP_DEQUANTIZE, info->format, a, 0, NULL, elements);
  check(TM_OP_COMPARE_TENSORS, info->format, a, info->format, b, elements);
  check(TM_OP_COMPARE_TENSORS, info->format, a, TM_FORMAT_F32, values, elements);
  for (uint32_t i = 0; i < 5; i++) b[random_below(random, bytes)] ^= 1;
  values[elements - 1] = 1;
  check(TM_OP_COMPARE_TENSORS, info->format, a, info->format, b, elements);
  check(TM_OP_COMPARE_TENSORS, info->format, b, TM_FORMAT_F32, values, elements);
  check(TM_OP_WEIGHTED_SUM, info->format, a, info->format, b, elements);
  check(TM_OP_MAGNITUDES, info->format, a, info->format, b, elements);
  free(values);
  free(b);
  free(a);
}

/* Those that no kernel of the backend reads are the reference's alone. */
static bool has_kernels(uint32_t format) {
  static const uint32_t without[] = { TM_FORMAT_Q8_1, TM_FORMAT_Q8_K, TM_FORMAT_TQ1_0, TM_FORMAT_TQ2_0, TM_FORMAT_Q1_0, TM_FORMAT_Q2_0 };
  for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
    if (without[i] == format) return false;
  return true;
}

static void blocks_are_those_of_the_reference(void **state) {
  static const uint64_t counts[] = { 256, 768, TM_SUM_BLOCK, MOST_ELEMENTS };
  const tm_format_info *info;
  uint64_t random = 99;
  uint32_t formats = 0;
  (void)state;
  if (!probe_open(&host, 0, 3)) skip();
  for (uint32_t f = 0; (info = tm_format_at(f)) != NULL; f++) {
    if (!info->has_values || info->has_arithmetic || !has_kernels(info->format)) continue;
    formats++;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
      for (uint32_t round = 0; round < 6; round++) check_format(info, counts[i], round % 2 == 1, &random);
    if (info->block_elements == 32) check_format(info, TM_SUM_BLOCK + 96, false, &random);
  }
  assert_int_equal(formats, 12);
  kernel_host_close(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(blocks_are_those_of_the_reference) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
