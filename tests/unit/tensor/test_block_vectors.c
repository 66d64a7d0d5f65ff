/* SPDX-License-Identifier: Apache-2.0 */
/* The codecs against values from the reference implementation of the block formats (TM_TEST_DATA/quant/vectors). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/codec.h"
#include "tensor/format.h"

#define ELEMENTS 8192

static void *load(const char *name, const char *suffix, size_t bytes) {
  char path[1024];
  snprintf(path, sizeof path, "%s/quant/vectors/%s%s", TM_TEST_DATA, name, suffix);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  void *data = malloc(bytes);
  if (data != NULL && fread(data, 1, bytes, file) != bytes) fail_msg("%s is shorter than %zu bytes", path, bytes);
  fclose(file);
  return data;
}

static void decodes(const char *name, uint32_t format, size_t bytes, const char *kind) {
  char suffix[32];
  snprintf(suffix, sizeof suffix, ".%s.bytes", kind);
  void *source = load(name, suffix, bytes);
  snprintf(suffix, sizeof suffix, ".%s.f32", kind);
  float *expected = load(name, suffix, ELEMENTS * sizeof(float));
  assert_non_null(source);
  assert_non_null(expected);
  double *found = malloc(ELEMENTS * sizeof *found);
  assert_non_null(found);
  tm_codec_find(format)->decode(source, ELEMENTS, found);
  for (size_t i = 0; i < ELEMENTS; i++) {
    const float value = (float)found[i];
    if (isnan(value) && isnan(expected[i])) continue;
    if (memcmp(&value, &expected[i], sizeof value) != 0)
      fail_msg("%s.%s element %zu: %a, expected %a", name, kind, i, (double)value, (double)expected[i]);
    assert_true((double)value == found[i]);
  }
  free(found);
  free(expected);
  free(source);
}

static void encodes(const char *name, uint32_t format, size_t bytes) {
  float *input = load("input", ".f32", ELEMENTS * sizeof(float));
  unsigned char *expected = load(name, ".encoded.bytes", bytes);
  assert_non_null(input);
  assert_non_null(expected);
  double *values = malloc(ELEMENTS * sizeof *values);
  unsigned char *found = malloc(bytes);
  assert_non_null(values);
  assert_non_null(found);
  for (size_t i = 0; i < ELEMENTS; i++) values[i] = (double)input[i];
  tm_codec_find(format)->encode(values, ELEMENTS, found);
  for (size_t i = 0; i < bytes; i++)
    if (found[i] != expected[i]) fail_msg("%s byte %zu: 0x%02x, expected 0x%02x", name, i, found[i], expected[i]);
  free(found);
  free(values);
  free(expected);
  free(input);
}

static void matches_the_reference_implementation(void **state) {
  (void)state;
  static const struct { const char *name; uint32_t format; } cases[] = {
    { "q8_0", TM_FORMAT_Q8_0 },     { "q4_0", TM_FORMAT_Q4_0 },     { "f16", TM_FORMAT_F16 },     { "bf16", TM_FORMAT_BF16 },
    { "q4_1", TM_FORMAT_Q4_1 },     { "q5_0", TM_FORMAT_Q5_0 },     { "q5_1", TM_FORMAT_Q5_1 },   { "q2_K", TM_FORMAT_Q2_K },
    { "q3_K", TM_FORMAT_Q3_K },     { "q4_K", TM_FORMAT_Q4_K },     { "q5_K", TM_FORMAT_Q5_K },   { "q6_K", TM_FORMAT_Q6_K },
    { "iq4_nl", TM_FORMAT_IQ4_NL }, { "iq4_xs", TM_FORMAT_IQ4_XS }, { "mxfp4", TM_FORMAT_MXFP4 }, { "nvfp4", TM_FORMAT_NVFP4 },
    { "tq1_0", TM_FORMAT_TQ1_0 },   { "tq2_0", TM_FORMAT_TQ2_0 },   { "q1_0", TM_FORMAT_Q1_0 },   { "q2_0", TM_FORMAT_Q2_0 } };
  void *probe = load("input", ".f32", 4);
  if (probe == NULL) {
    print_message("skipped: no oracle vectors in " TM_TEST_DATA "/quant/vectors\n");
    skip();
  }
  free(probe);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t bytes;
    assert_true(tm_format_bytes(tm_format_find(cases[i].format), ELEMENTS, &bytes));
    decodes(cases[i].name, cases[i].format, bytes, "random");
    decodes(cases[i].name, cases[i].format, bytes, "encoded");
    if (tm_format_find(cases[i].format)->has_arithmetic) encodes(cases[i].name, cases[i].format, bytes);
  }
}

/* Formats of results in between: the reference implementation has no decoder for them to compare with. */
static void formats_of_activations(void **state) {
  (void)state;
  unsigned char q8_1[36] = { 0x00, 0x38, 0xff, 0xff, 1, 0x80, 0x7f }, q8_k[292] = { 0, 0, 0, 0x3f, 2, 0xff };
  double found[256];
  q8_k[259] = 0x80;
  tm_codec_find(TM_FORMAT_Q8_1)->decode(q8_1, 32, found);
  assert_true(found[0] == 0.5 && found[1] == -64 && found[2] == 63.5 && found[3] == 0 && found[31] == 0);
  tm_codec_find(TM_FORMAT_Q8_K)->decode(q8_k, 256, found);
  assert_true(found[0] == 1 && found[1] == -0.5 && found[2] == 0 && found[255] == -64);
}

static void encode_block_of(uint32_t format, double value, int at, unsigned char *out) {
  double values[32] = { 0 };
  for (int i = 0; i < 32; i++) values[i] = i * 0.25 - 3;
  values[at] = value;
  tm_codec_find(format)->encode(values, 32, out);
}

/* One value that is not finite makes the whole block NaN, wherever it stands: damage must not hide. */
static void a_damaged_block_shows(void **state) {
  (void)state;
  const uint32_t formats[] = { TM_FORMAT_Q8_0, TM_FORMAT_Q4_0 };
  const double damage[] = { NAN, -NAN, INFINITY, -INFINITY, 1e300 };
  for (size_t f = 0; f < 2; f++)
    for (size_t d = 0; d < 5; d++)
      for (int at = 0; at < 32; at += 31) {
        unsigned char block[34];
        double back[32];
        encode_block_of(formats[f], damage[d], at, block);
        tm_codec_find(formats[f])->decode(block, 32, back);
        for (int i = 0; i < 32; i++) assert_true(isnan(back[i]));
      }
}

static void zeros_and_tiny_values(void **state) {
  (void)state;
  double values[32] = { 0 };
  unsigned char block[34];
  tm_codec_find(TM_FORMAT_Q4_0)->encode(values, 32, block);
  assert_int_equal(block[0], 0x00);
  assert_int_equal(block[1], 0x80);
  assert_int_equal(block[2], 0x88);
  values[0] = -0.0;
  tm_codec_find(TM_FORMAT_Q4_0)->encode(values, 32, block);
  assert_int_equal(block[1], 0x80);
  for (int i = 0; i < 32; i++) values[i] = (i % 2 == 0 ? 1.0 : -1.0) * 1e-39;
  tm_codec_find(TM_FORMAT_Q8_0)->encode(values, 32, block);
  double back[32];
  tm_codec_find(TM_FORMAT_Q8_0)->decode(block, 32, back);
  for (int i = 0; i < 32; i++) assert_true(back[i] == 0.0);
}

/* Halves go away from zero, as the family's reference encoder rounds. */
static void halves_round_away_from_zero(void **state) {
  (void)state;
  double values[32] = { 127, 0.5, -0.5, 2.5, -2.5, 126.5 };
  unsigned char block[34];
  tm_codec_find(TM_FORMAT_Q8_0)->encode(values, 32, block);
  const int8_t expected[] = { 127, 1, -1, 3, -3, 127 };
  assert_memory_equal(block + 2, expected, sizeof expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(matches_the_reference_implementation),
    cmocka_unit_test(formats_of_activations),
    cmocka_unit_test(a_damaged_block_shows),
    cmocka_unit_test(zeros_and_tiny_values),
    cmocka_unit_test(halves_round_away_from_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
