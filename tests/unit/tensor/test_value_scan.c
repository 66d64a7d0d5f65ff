/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is found by looking at bits is what the values behind them are: every bit pattern of the small formats, random ones of
 * the large, and of block formats the values that their reference implementation decodes (TM_TEST_DATA/quant/vectors).
 */
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
#include "tensor/value_scan.h"

#define MOST 65536u

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void count_value(tm_value_scan *scan, double value, uint64_t unit) {
  if (isnan(value)) scan->nan_count++;
  if (isnan(value) && unit < scan->first_nan) scan->first_nan = unit;
  if (isinf(value) && value > 0) scan->pos_inf_count++;
  if (isinf(value) && value < 0) scan->neg_inf_count++;
  if (isinf(value) && unit < scan->first_inf) scan->first_inf = unit;
  if (value != 0 || isnan(value)) scan->has_nonzero = true;
}

static void same(const char *name, const tm_value_scan *found, const tm_value_scan *expected) {
  if (found->nan_count == expected->nan_count && found->pos_inf_count == expected->pos_inf_count &&
      found->neg_inf_count == expected->neg_inf_count && found->first_nan == expected->first_nan &&
      found->first_inf == expected->first_inf && found->has_nonzero == expected->has_nonzero)
    return;
  fail_msg("%s: %llu NaN at %llu, %llu + %llu Inf at %llu, nonzero %d; expected %llu at %llu, %llu + %llu at %llu, %d", name,
           (unsigned long long)found->nan_count, (unsigned long long)found->first_nan, (unsigned long long)found->pos_inf_count,
           (unsigned long long)found->neg_inf_count, (unsigned long long)found->first_inf, found->has_nonzero,
           (unsigned long long)expected->nan_count, (unsigned long long)expected->first_nan,
           (unsigned long long)expected->pos_inf_count, (unsigned long long)expected->neg_inf_count,
           (unsigned long long)expected->first_inf, expected->has_nonzero);
}

/* The whole at once, and in two parts at odd addresses. */
static void check_elements(const tm_format_info *info, const unsigned char *data, uint64_t count) {
  double *values = malloc(count * sizeof *values);
  unsigned char *moved = malloc(count * info->block_bytes + 1);
  tm_value_scan expected, whole, part;
  assert_non_null(values);
  assert_non_null(moved);
  tm_codec_find(info->format)->decode(data, count, values);
  tm_value_scan_init(&expected);
  for (uint64_t i = 0; i < count; i++) count_value(&expected, values[i], i);
  tm_value_scan_init(&whole);
  tm_value_scan_add(&whole, info, data, 0, count);
  same(info->name, &whole, &expected);
  memcpy(moved + 1, data, count * info->block_bytes);
  const uint64_t split = count / 3;
  tm_value_scan_init(&whole);
  tm_value_scan_init(&part);
  tm_value_scan_add(&part, info, moved + 1 + split * info->block_bytes, split, count - split);
  tm_value_scan_add(&whole, info, moved + 1, 0, split);
  tm_value_scan_merge(&whole, &part);
  same(info->name, &whole, &expected);
  free(values);
  free(moved);
}

static void every_pattern_of_small_formats(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2 };
  unsigned char *data = malloc(2 * MOST);
  assert_non_null(data);
  for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
    const tm_format_info *info = tm_format_find(formats[f]);
    const uint64_t count = info->block_bytes == 1 ? 256 : MOST;
    for (uint64_t i = 0; i < count; i++) {
      data[i * info->block_bytes] = (unsigned char)i;
      if (info->block_bytes == 2) data[2 * i + 1] = (unsigned char)(i >> 8);
    }
    check_elements(info, data, count);
    /* One pattern among zeros: each has to be seen in each place of a word. */
    for (uint64_t i = 0; i < count; i += 7) {
      unsigned char few[64] = { 0 };
      memcpy(few + i % 11 * info->block_bytes, data + i * info->block_bytes, info->block_bytes);
      check_elements(info, few, 11 + i % 17);
    }
  }
  free(data);
}

static void random_patterns_of_large_formats(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_F64 };
  unsigned char *data = malloc(MOST);
  uint64_t random = 88172645463325252u;
  assert_non_null(data);
  for (int round = 0; round < 200; round++) {
    const tm_format_info *info = tm_format_find(formats[round % 2]);
    const uint64_t count = 1 + next_random(&random) % 200;
    for (uint64_t i = 0; i < count; i++) {
      uint64_t bits = next_random(&random);
      if (bits % 5 == 0) bits |= info->block_bytes == 4 ? 0x7f800000u : UINT64_C(0x7ff0000000000000);
      if (bits % 3 == 0) bits &= info->block_bytes == 4 ? 0xff800000u : UINT64_C(0xfff0000000000000);
      memcpy(data + i * info->block_bytes, &bits, info->block_bytes);
    }
    check_elements(info, data, count);
  }
  free(data);
}

static void what_has_no_codec(void **state) {
  (void)state;
  const tm_format_info *scale = tm_format_find(TM_FORMAT_F8_E8M0), *complex = tm_format_find(TM_FORMAT_C64);
  const unsigned char scales[5] = { 0, 0xfe, 0xff, 1, 0xff };
  tm_value_scan scan;
  tm_value_scan_init(&scan);
  tm_value_scan_add(&scan, scale, scales, 10, 5);
  assert_int_equal(scan.nan_count, 2);
  assert_int_equal(scan.first_nan, 12);
  assert_int_equal(scan.pos_inf_count, 0);
  const float pairs[6] = { 1, 2, INFINITY, NAN, 3, -INFINITY };
  tm_value_scan_init(&scan);
  tm_value_scan_add(&scan, complex, pairs, 0, 3);
  assert_int_equal(scan.nan_count, 1);
  assert_int_equal(scan.first_nan, 1);
  assert_int_equal(scan.neg_inf_count, 1);
  assert_int_equal(scan.first_inf, 2);
}

static void integers_are_finite_and_may_be_zero(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_I8,   TM_FORMAT_U4,      TM_FORMAT_I64,
                                     TM_FORMAT_BOOL, TM_FORMAT_F6_E2M3, TM_FORMAT_F4_E2M1 };
  for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
    const tm_format_info *info = tm_format_find(formats[f]);
    unsigned char data[300] = { 0 };
    tm_value_scan scan;
    assert_true(tm_value_scan_knows(info));
    tm_value_scan_init(&scan);
    tm_value_scan_add(&scan, info, data, 0, 299 / info->block_bytes);
    assert_false(scan.has_nonzero);
    memset(data, 0xff, sizeof data);
    tm_value_scan_add(&scan, info, data, 0, 299 / info->block_bytes);
    assert_true(scan.has_nonzero);
    assert_int_equal(scan.nan_count + scan.pos_inf_count + scan.neg_inf_count, 0);
  }
}

/* ---- blocks ---- */

static void every_format_is_known(void **state) {
  (void)state;
  for (uint32_t i = 0; tm_format_at(i) != NULL; i++)
    if (!tm_value_scan_knows(tm_format_at(i))) fail_msg("%s", tm_format_at(i)->name);
}

#define VECTOR_ELEMENTS 8192u

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

static bool is_finite_block(const float *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!isfinite(values[i])) return false;
  return true;
}

/* The reference implementation names the K types with a capital letter. */
static void vector_name(const char *name, char *out, size_t capacity) {
  snprintf(out, capacity, "%s", name);
  const size_t length = strlen(out);
  if (length > 2 && strcmp(out + length - 2, "_k") == 0) out[length - 1] = 'K';
}

static uint64_t check_vector(const tm_format_info *info) {
  char name[32];
  vector_name(info->name, name, sizeof name);
  const uint64_t blocks = VECTOR_ELEMENTS / info->block_elements;
  unsigned char *data = load(name, ".random.bytes", blocks * info->block_bytes);
  float *values = load(name, ".random.f32", VECTOR_ELEMENTS * sizeof *values);
  uint64_t bad = 0;
  if (data == NULL || values == NULL) {
    free(data);
    free(values);
    return UINT64_MAX;
  }
  for (uint64_t b = 0; b < blocks; b++) {
    tm_value_scan scan;
    tm_value_scan_init(&scan);
    tm_value_scan_add(&scan, info, data + b * info->block_bytes, b, 1);
    const bool is_bad = scan.nan_count + scan.pos_inf_count + scan.neg_inf_count != 0;
    if (is_bad == is_finite_block(values + b * info->block_elements, info->block_elements))
      fail_msg("%s: block %llu is %sfinite", name, (unsigned long long)b, is_bad ? "" : "not ");
    bad += is_bad;
  }
  free(data);
  free(values);
  return bad;
}

/* The two with scales of one byte are left out: what their largest scale stands for, the reference implementation and the
   definition of the format say differently. */
static void scales_are_where_the_reference_implementation_has_them(void **state) {
  (void)state;
  uint64_t bad = 0;
  uint32_t formats = 0;
  for (uint32_t i = 0; tm_format_at(i) != NULL; i++) {
    const tm_format_info *info = tm_format_at(i);
    if (info->kind != TM_KIND_BLOCK || info->format == TM_FORMAT_MXFP4 || info->format == TM_FORMAT_NVFP4) continue;
    const uint64_t found = check_vector(info);
    if (found == UINT64_MAX) continue;
    formats++;
    bad += found;
  }
  if (formats == 0) {
    print_message("no vectors in %s\n", TM_TEST_DATA);
    skip();
  }
  assert_true(formats >= 20);
  assert_true(bad > 40);
}

/* Each scale field of each format: made NaN, infinite and zero by hand in blocks of ones. */
static void each_scale_counts(void **state) {
  (void)state;
  static const struct { uint32_t format; uint32_t offset;
  } fields[] = {
      { TM_FORMAT_Q4_0, 0 },  { TM_FORMAT_Q4_1, 0 },   { TM_FORMAT_Q4_1, 2 },   { TM_FORMAT_Q5_1, 2 },   { TM_FORMAT_Q8_1, 0 },
      { TM_FORMAT_Q2_K, 80 }, { TM_FORMAT_Q2_K, 82 },  { TM_FORMAT_Q3_K, 108 }, { TM_FORMAT_Q4_K, 0 },   { TM_FORMAT_Q4_K, 2 },
      { TM_FORMAT_Q5_K, 2 },  { TM_FORMAT_Q6_K, 208 }, { TM_FORMAT_TQ1_0, 52 }, { TM_FORMAT_TQ2_0, 64 }, { TM_FORMAT_Q8_K, 2 },
  };
  for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
    const tm_format_info *info = tm_format_find(fields[f].format);
    static const unsigned char nan[2] = { 0xc1, 0x7f }, infinite[2] = { 0, 0xfc };
    unsigned char data[5 * 300];
    tm_value_scan scan;
    memset(data, 1, sizeof data);
    memcpy(data + 3 * info->block_bytes + fields[f].offset, nan, 2);
    if (info->format != TM_FORMAT_Q8_K) memcpy(data + info->block_bytes + fields[f].offset, infinite, 2);
    tm_value_scan_init(&scan);
    tm_value_scan_add(&scan, info, data, 0, 5);
    assert_int_equal(scan.nan_count, 1);
    assert_int_equal(scan.first_nan, 3);
    assert_int_equal(scan.neg_inf_count, info->format != TM_FORMAT_Q8_K);
    memset(data, 0, sizeof data);
    tm_value_scan_init(&scan);
    tm_value_scan_add(&scan, info, data, 0, 5);
    assert_false(scan.has_nonzero);
    assert_int_equal(scan.nan_count, 0);
  }
}

static void scales_of_one_byte(void **state) {
  (void)state;
  unsigned char data[6 * 36];
  tm_value_scan scan;
  memset(data, 0x30, sizeof data);
  data[4 * 17] = 0xff;
  tm_value_scan_init(&scan);
  tm_value_scan_add(&scan, tm_format_find(TM_FORMAT_MXFP4), data, 0, 6);
  assert_int_equal(scan.nan_count, 1);
  assert_int_equal(scan.first_nan, 4);
  memset(data, 0x30, sizeof data);
  data[2 * 36 + 3] = 0x7f;
  data[5 * 36 + 1] = 0xff;
  data[36 + 4] = 0x7f;          /* no scale */
  tm_value_scan_init(&scan);
  tm_value_scan_add(&scan, tm_format_find(TM_FORMAT_NVFP4), data, 0, 6);
  assert_int_equal(scan.nan_count, 2);
  assert_int_equal(scan.first_nan, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_pattern_of_small_formats),
    cmocka_unit_test(random_patterns_of_large_formats),
    cmocka_unit_test(what_has_no_codec),
    cmocka_unit_test(integers_are_finite_and_may_be_zero),
    cmocka_unit_test(every_format_is_known),
    cmocka_unit_test(scales_are_where_the_reference_implementation_has_them),
    cmocka_unit_test(each_scale_counts),
    cmocka_unit_test(scales_of_one_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
