/* SPDX-License-Identifier: Apache-2.0 */
/* stats and compare_tensors: corners by hand, every format, views, exact splits, and refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "base/error.h"
#include "ops/op_one_pass.h"
#include "tensor/codec.h"
#include "tensor/format.h"
#include "tensor/shape.h"
#include "tensormorph/canonical_sum.h"

#define SEED UINT64_C(0x5eed0002)

static const uint32_t all_formats[] = {
  TM_FORMAT_F64, TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2, TM_FORMAT_I4,
  TM_FORMAT_U4, TM_FORMAT_I8, TM_FORMAT_U8, TM_FORMAT_I16, TM_FORMAT_U16, TM_FORMAT_I32, TM_FORMAT_U32, TM_FORMAT_I64,
  TM_FORMAT_U64, TM_FORMAT_BOOL, TM_FORMAT_Q8_0, TM_FORMAT_Q4_0,
};
#define FORMAT_COUNT (sizeof all_formats / sizeof all_formats[0])

static uint64_t next_random(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static const tm_op_row *row_of(uint32_t op) {
  for (uint32_t i = 0; i < tm_op_rows_one_pass_count; ++i) {
    if (tm_op_rows_one_pass[i].op == op) return &tm_op_rows_one_pass[i];
  }
  return NULL;
}

static tm_operand dense(uint32_t format, uint32_t rank, const uint64_t *dims) {
  tm_operand operand;
  assert_int_equal(tm_operand_contiguous(format, rank, dims, &operand, NULL), TM_OK);
  return operand;
}

/* Runs the reference over `inputs` operands. */
static void run(uint32_t op, uint32_t inputs, const tm_operand *operands, void *const *pointers, uint64_t *words) {
  const tm_op_row *row = row_of(op);
  tm_operand all[3];
  void *addresses[3];
  memcpy(all, operands, inputs * sizeof *all);
  memcpy(addresses, pointers, inputs * sizeof *addresses);
  tm_operation operation = { .struct_size = sizeof operation, .op = op, .version = row->version, .input_count = inputs, .output_count = 1,
                             .operands = all };
  all[inputs].format = TM_FORMAT_NONE;
  assert_int_equal(row->infer(&operation, &all[inputs], NULL), TM_OK);
  assert_int_equal(row->check(&operation, NULL), TM_OK);
  addresses[inputs] = words;
  row->reference(&operation, addresses, 0, row->units(&operation));
}

static void stats(const tm_operand *operand, const void *data, uint64_t *words) {
  run(TM_OP_STATS, 1, operand, (void *[]){ (void *)(uintptr_t)data }, words);
}

static double figure(const uint64_t *words, int index) { return tm_sum_from_bits(words[index]); }

static void test_stats_corners_of_f32(void **state) {
  (void)state;
  const float data[] = { 1.5f, -0.0f, NAN, INFINITY, -INFINITY, 0x1p-149f, -3.0f, 0.0f, -INFINITY, -0x1p-130f };
  uint64_t words[TM_STATS_WORDS];
  const tm_operand x = dense(TM_FORMAT_F32, 2, (uint64_t[]){ 2, 5 });
  stats(&x, data, words);
  static const uint64_t counts[] = { 10, 1, 1, 2, 2, 2 };
  for (int i = 0; i < 6; ++i) assert_int_equal(words[i], counts[i]);
  assert_true(figure(words, TM_STATS_MIN) == -3.0 && figure(words, TM_STATS_MAX) == 1.5 && figure(words, TM_STATS_ABS_MAX) == 3.0);
  assert_true(tm_sum_read(words + TM_STATS_SUM) == -1.5 + (0x1p-149 - 0x1p-130));
  assert_true(tm_sum_read(words + TM_STATS_SUM_SQUARES) == 11.25);
}

static void test_stats_of_nothing_and_of_zeros(void **state) {
  (void)state;
  uint64_t words[TM_STATS_WORDS];
  const tm_operand empty = dense(TM_FORMAT_F32, 2, (uint64_t[]){ 0, 5 });
  stats(&empty, NULL, words);
  assert_int_equal(words[TM_STATS_COUNT], 0);
  assert_true(figure(words, TM_STATS_MIN) == INFINITY && figure(words, TM_STATS_MAX) == -INFINITY);
  for (int i = TM_STATS_ABS_MAX; i < TM_STATS_WORDS; ++i) assert_true(words[i] == 0);
  const float zeros[] = { -0.0f, -0.0f };
  const tm_operand two = dense(TM_FORMAT_F32, 1, (uint64_t[]){ 2 });
  stats(&two, zeros, words);
  assert_int_equal(words[TM_STATS_ZERO], 2);
  assert_true(words[TM_STATS_MIN] == 0 && words[TM_STATS_MAX] == 0 && words[TM_STATS_ABS_MAX] == 0);
  const tm_operand scalar = dense(TM_FORMAT_F32, 0, NULL);
  const float one = 2.0f;
  stats(&scalar, &one, words);
  assert_true(words[TM_STATS_COUNT] == 1 && tm_sum_read(words + TM_STATS_SUM_SQUARES) == 4.0);
}

static void test_subnormals_are_those_of_the_format(void **state) {
  (void)state;
  static const struct { uint32_t format; uint16_t bytes[3]; } cases[] = {   /* smallest, largest subnormal, smallest normal */
    { TM_FORMAT_F16, { 0x0001, 0x83ff, 0x0400 } }, { TM_FORMAT_BF16, { 0x0001, 0x807f, 0x0080 } },
  };
  for (size_t c = 0; c < 2; ++c) {
    uint64_t words[TM_STATS_WORDS];
    const tm_operand x = dense(cases[c].format, 1, (uint64_t[]){ 3 });
    stats(&x, cases[c].bytes, words);
    assert_int_equal(words[TM_STATS_SUBNORMAL], 2);
  }
  const uint8_t e4m3[] = { 0x01, 0x87, 0x08, 0x7f, 0xff, 0x00 }, e5m2[] = { 0x01, 0x83, 0x04, 0x7c, 0xfc, 0x7d };
  const tm_operand x = dense(TM_FORMAT_F8_E4M3FN, 1, (uint64_t[]){ 6 }), y = dense(TM_FORMAT_F8_E5M2, 1, (uint64_t[]){ 6 });
  uint64_t words[TM_STATS_WORDS];
  stats(&x, e4m3, words);
  assert_true(words[TM_STATS_SUBNORMAL] == 2 && words[TM_STATS_NAN] == 2 && words[TM_STATS_ZERO] == 1 && words[TM_STATS_POS_INF] == 0);
  stats(&y, e5m2, words);
  assert_true(words[TM_STATS_SUBNORMAL] == 2 && words[TM_STATS_NAN] == 1 && words[TM_STATS_POS_INF] == 1 && words[TM_STATS_NEG_INF] == 1);
}

/* Step 2 of the order once more, straight from its text, for formats that go through lanes. */
static void test_f32_sums_follow_the_lanes(void **state) {
  (void)state;
  enum { COUNT = 2 * TM_SUM_SUPERBLOCK + 1001 };
  static float data[COUNT];
  uint64_t seed = SEED, words[TM_STATS_WORDS];
  tm_sum_stream sum, squares;
  tm_sum_stream_init(&sum);
  tm_sum_stream_init(&squares);
  for (int i = 0; i < COUNT; ++i) {
    data[i] = (float)((double)(int64_t)next_random(&seed) * 0x1p-60);
    if (i % 977 == 0) data[i] = i % 2 ? NAN : INFINITY;
    if (isfinite(data[i])) {
      tm_sum_stream_add(&sum, (double)data[i]);
      tm_sum_stream_add_product(&squares, (double)data[i], (double)data[i]);
    } else {
      tm_sum_stream_skip(&sum, 1);
      tm_sum_stream_skip(&squares, 1);
    }
  }
  tm_sum_stream_finish(&sum);
  tm_sum_stream_finish(&squares);
  const tm_operand x = dense(TM_FORMAT_F32, 1, (uint64_t[]){ COUNT });
  stats(&x, data, words);
  assert_memory_equal(words + TM_STATS_SUM, sum.words, sizeof sum.words);
  assert_memory_equal(words + TM_STATS_SUM_SQUARES, squares.words, sizeof squares.words);
}

static float from_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float number;
  memcpy(&number, &wide, sizeof number);
  return number;
}

/* One block whose largest magnitude is 2^exponent: in chains within the limits, in lanes outside them. */
static void check_bf16_block(int exponent, int by_chains) {
  uint16_t data[512];
  uint64_t seed = SEED, words[TM_STATS_WORDS], expected[TM_SUM_WORDS];
  for (int i = 0; i < 512; ++i) data[i] = (uint16_t)((next_random(&seed) & 0x807f) | (uint64_t)(126 + exponent) << 7);
  data[7] = (uint16_t)((127 + exponent) << 7);
  data[9] = 0x7fc0;
  double lanes[16] = { 0 };
  float chains[32] = { 0 };
  for (int i = 0; i < 512; ++i) {
    const float x = i == 9 ? 0 : from_bf16(data[i]);
    lanes[i % 16] = fma((double)x, (double)x, lanes[i % 16]);
    chains[i % 32] = fmaf(x, x, chains[i % 32]);
  }
  for (int l = 0; l < 16 && by_chains; ++l) { const float pair = chains[l] + chains[l + 16]; lanes[l] = (double)pair; }
  tm_sum_init(expected);
  tm_sum_add(expected, tm_sum_of_lanes(lanes));
  const tm_operand x = dense(TM_FORMAT_BF16, 1, (uint64_t[]){ 512 });
  stats(&x, data, words);
  assert_memory_equal(words + TM_STATS_SUM_SQUARES, expected, sizeof expected);
}

static void test_bf16_blocks_choose_by_content(void **state) {
  (void)state;
  check_bf16_block(0, 1);
  check_bf16_block(-50, 1);
  check_bf16_block(-51, 0);
  check_bf16_block(59, 1);
  check_bf16_block(60, 0);
}

static void fill(uint32_t format, uint64_t bytes, unsigned char *data, uint64_t *seed) {
  for (uint64_t i = 0; i < bytes; ++i) data[i] = (unsigned char)next_random(seed);
  /* Plausible scales, with a NaN one now and then. */
  const uint64_t step = format == TM_FORMAT_Q8_0 ? 34 : format == TM_FORMAT_Q4_0 ? 18 : 0;
  for (uint64_t i = 0; step != 0 && i + 1 < bytes; i += step) data[i + 1] = i % 55 == 0 ? 0x7e : (unsigned char)(data[i + 1] & 0xbf);
}

/* Against sums without any order, from decoded values: the order changes the last bits only. */
static void test_every_format_against_plain_sums(void **state) {
  (void)state;
  enum { COUNT = TM_SUM_SUPERBLOCK + 1024 };
  static unsigned char data[COUNT * 8];
  static double values[COUNT];
  uint64_t seed = SEED, words[TM_STATS_WORDS];
  for (size_t f = 0; f < FORMAT_COUNT; ++f) {
    if (all_formats[f] == TM_FORMAT_F64) continue;     /* random exponents: no plain sum holds them */
    const tm_operand x = dense(all_formats[f], 1, (uint64_t[]){ COUNT });
    fill(all_formats[f], x.byte_count, data, &seed);
    stats(&x, data, words);
    tm_codec_find(all_formats[f])->decode(data, COUNT, values);
    double sum = 0, magnitude = 0, squares = 0, min = INFINITY, max = -INFINITY;
    uint64_t excluded = 0, zero = 0;
    for (int i = 0; i < COUNT; ++i) {
      if (!isfinite(values[i])) { excluded++; continue; }
      sum += values[i];
      magnitude += fabs(values[i]);
      squares += values[i] * values[i];
      zero += values[i] == 0;
      min = fmin(min, values[i]);
      max = fmax(max, values[i]);
    }
    assert_int_equal(words[TM_STATS_NAN] + words[TM_STATS_POS_INF] + words[TM_STATS_NEG_INF], excluded);
    assert_int_equal(words[TM_STATS_ZERO], zero);
    assert_true(figure(words, TM_STATS_MIN) == min && figure(words, TM_STATS_MAX) == max);
    assert_true(figure(words, TM_STATS_ABS_MAX) == fmax(-min, max));
    assert_true(fabs(tm_sum_read(words + TM_STATS_SUM) - sum) <= 1e-7 * magnitude);
    assert_true(fabs(tm_sum_read(words + TM_STATS_SUM_SQUARES) - squares) <= 1e-6 * squares);
  }
}

static void test_parts_combine_to_the_whole(void **state) {
  (void)state;
  enum { PART = 2 * TM_SUM_SUPERBLOCK, COUNT = PART + 4096 };
  static unsigned char data[2][COUNT * 8];
  uint64_t seed = SEED;
  for (size_t f = 0; f < FORMAT_COUNT; ++f) {
    uint64_t whole[TM_COMPARISON_WORDS], parts[2][TM_COMPARISON_WORDS];
    const tm_operand x[2] = { dense(all_formats[f], 1, (uint64_t[]){ COUNT }), dense(all_formats[f], 1, (uint64_t[]){ COUNT }) };
    const tm_operand first[2] = { dense(all_formats[f], 1, (uint64_t[]){ PART }), dense(all_formats[f], 1, (uint64_t[]){ PART }) };
    const tm_operand rest[2] = { dense(all_formats[f], 1, (uint64_t[]){ COUNT - PART }), dense(all_formats[f], 1, (uint64_t[]){ COUNT - PART }) };
    fill(all_formats[f], x[0].byte_count, data[0], &seed);
    fill(all_formats[f], x[0].byte_count, data[1], &seed);
    void *const whole_at[] = { data[0], data[1] };
    void *const rest_at[] = { data[0] + first[0].byte_count, data[1] + first[0].byte_count };
    for (uint32_t inputs = 1; inputs <= 2; ++inputs) {
      const uint32_t op = inputs == 1 ? TM_OP_STATS : TM_OP_COMPARE_TENSORS;
      run(op, inputs, x, whole_at, whole);
      run(op, inputs, first, whole_at, parts[0]);
      run(op, inputs, rest, rest_at, parts[1]);
      row_of(op)->combine_words(parts[0], parts[1]);
      assert_memory_equal(whole, parts[0], (inputs == 1 ? TM_STATS_WORDS : TM_COMPARISON_WORDS) * sizeof whole[0]);
    }
  }
}

/* A view: transposed, every second element, walked backwards, or broadcast; and the same elements laid out densely. */
static void make_view(int kind, uint32_t bytes, tm_operand *view, uint64_t *out_first) {
  const uint64_t rows = 37, columns = 41;
  const int64_t row = (int64_t)(columns * bytes), step = (int64_t)bytes;
  const int64_t strides[4][2] = { { step, row }, { row, 2 * step }, { -row, -step }, { 0, step } };
  const uint64_t dims[4][2] = { { columns, rows }, { rows, columns / 2 }, { rows, columns }, { rows, columns } };
  for (int axis = 0; axis < 2; ++axis) {
    view->dims[axis] = dims[kind][axis];
    view->strides_bytes[axis] = strides[kind][axis];
  }
  *out_first = kind == 2 ? (rows * columns - 1) * bytes : 0;
  view->alignment = 1;
  assert_int_equal(tm_operand_derive(view, NULL), TM_OK);
}

static void test_views_equal_their_copies(void **state) {
  (void)state;
  static unsigned char data[37 * 41 * 8], copy[37 * 41 * 8];
  uint64_t seed = SEED;
  for (size_t f = 0; f < FORMAT_COUNT; ++f) {
    const tm_format_info *info = tm_format_find(all_formats[f]);
    if (info->block_elements != 1) continue;
    fill(all_formats[f], sizeof data, data, &seed);
    for (int kind = 0; kind < 4; ++kind) {
      tm_operand view = dense(all_formats[f], 2, (uint64_t[]){ 37, 41 });
      uint64_t first;
      make_view(kind, info->block_bytes, &view, &first);
      uint64_t at = 0, words[2][TM_STATS_WORDS];
      for (uint64_t r = 0; r < view.dims[0]; ++r) {
        for (uint64_t c = 0; c < view.dims[1]; ++c, at += info->block_bytes) {
          memcpy(copy + at, data + first + (int64_t)r * view.strides_bytes[0] + (int64_t)c * view.strides_bytes[1], info->block_bytes);
        }
      }
      const tm_operand plain = dense(all_formats[f], 2, view.dims);
      stats(&view, data + first, words[0]);
      stats(&plain, copy, words[1]);
      assert_memory_equal(words[0], words[1], sizeof words[0]);
    }
  }
}

static void test_block_rows_with_gaps_equal_their_copies(void **state) {
  (void)state;
  static unsigned char data[7 * 4 * 34], copy[7 * 3 * 34];
  uint64_t seed = SEED, words[2][TM_STATS_WORDS];
  fill(TM_FORMAT_Q8_0, sizeof data, data, &seed);
  tm_operand view = dense(TM_FORMAT_Q8_0, 2, (uint64_t[]){ 7, 96 });
  view.strides_bytes[0] = 4 * 34;
  assert_int_equal(tm_operand_derive(&view, NULL), TM_OK);
  for (size_t r = 0; r < 7; ++r) memcpy(copy + r * 3 * 34, data + r * 4 * 34, 3 * 34);
  const tm_operand plain = dense(TM_FORMAT_Q8_0, 2, (uint64_t[]){ 7, 96 });
  stats(&view, data, words[0]);
  stats(&plain, copy, words[1]);
  assert_memory_equal(words[0], words[1], sizeof words[0]);
}

static void test_comparison_corners(void **state) {
  (void)state;
  const float a[] = { 1.0f, NAN, -0.0f, INFINITY, 4.0f, 0.0f }, b[] = { 1.0f, NAN, 0.0f, 3.0f, 5.0f, 0.0f };
  const tm_operand x[2] = { dense(TM_FORMAT_F32, 1, (uint64_t[]){ 6 }), dense(TM_FORMAT_F32, 1, (uint64_t[]){ 6 }) };
  uint64_t words[TM_COMPARISON_WORDS];
  run(TM_OP_COMPARE_TENSORS, 2, x, (void *[]){ (void *)(uintptr_t)a, (void *)(uintptr_t)b }, words);
  assert_true(words[TM_COMPARISON_COUNT] == 6 && words[TM_COMPARISON_EQUAL_BITS] == 3 && words[TM_COMPARISON_NONFINITE] == 2);
  assert_true(figure(words, TM_COMPARISON_MAX_ABS) == 1.0 && figure(words, TM_COMPARISON_MAX_REL) == 1.0 / 5.0);
  assert_true(tm_sum_read(words + TM_COMPARISON_SUM_SQUARED) == 1.0 && tm_sum_read(words + TM_COMPARISON_DOT) == 21.0);
  assert_true(tm_sum_read(words + TM_COMPARISON_NORM_A) == 17.0 && tm_sum_read(words + TM_COMPARISON_NORM_B) == 26.0);
}

static void test_comparison_of_large_integers_and_of_two_formats(void **state) {
  (void)state;
  const int64_t a[] = { INT64_MAX, 7 }, b[] = { INT64_MAX - 1, 7 };
  const tm_operand longs[2] = { dense(TM_FORMAT_I64, 1, (uint64_t[]){ 2 }), dense(TM_FORMAT_I64, 1, (uint64_t[]){ 2 }) };
  uint64_t words[TM_COMPARISON_WORDS];
  run(TM_OP_COMPARE_TENSORS, 2, longs, (void *[]){ (void *)(uintptr_t)a, (void *)(uintptr_t)b }, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 1);
  const uint16_t halves[] = { 0x3f80, 0x4049 };       /* bf16: 1, about pi */
  const float floats[] = { 1.0f, 3.14159274f };
  const tm_operand mixed[2] = { dense(TM_FORMAT_BF16, 1, (uint64_t[]){ 2 }), dense(TM_FORMAT_F32, 1, (uint64_t[]){ 2 }) };
  run(TM_OP_COMPARE_TENSORS, 2, mixed, (void *[]){ (void *)(uintptr_t)halves, (void *)(uintptr_t)floats }, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 1);
  assert_true(figure(words, TM_COMPARISON_MAX_ABS) == fabs((double)from_bf16(0x4049) - (double)3.14159274f));
}

static void compare(uint32_t a_format, const void *a, uint32_t b_format, const void *b, uint64_t count, uint64_t *words) {
  const tm_operand x[2] = { dense(a_format, 1, &count), dense(b_format, 1, &count) };
  run(TM_OP_COMPARE_TENSORS, 2, x, (void *[]){ (void *)(uintptr_t)a, (void *)(uintptr_t)b }, words);
}

static void test_comparison_of_bits_of_bool(void **state) {
  (void)state;
  const uint8_t a[] = { 1, 0, 1, 2 }, b[] = { 0xff, 0, 1, 2 };
  const float ones[] = { 1, 0, 1, 1 };
  uint64_t words[TM_COMPARISON_WORDS];
  compare(TM_FORMAT_BOOL, a, TM_FORMAT_BOOL, b, 4, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 3);
  assert_true(figure(words, TM_COMPARISON_MAX_ABS) == 0);
  compare(TM_FORMAT_BOOL, b, TM_FORMAT_F32, ones, 4, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 4);
}

/* No f64 holds these integers: differences are theirs, and none is lost. */
static void test_comparison_of_wide_integers(void **state) {
  (void)state;
  const int64_t a[] = { (INT64_C(1) << 60) + 1, INT64_MAX, INT64_MIN + 1, (INT64_C(1) << 53) + 1 };
  const int64_t b[] = { (INT64_C(1) << 60) + 2, INT64_MAX, INT64_MIN + 4, (INT64_C(1) << 53) + 1 };
  const uint64_t natural[] = { (UINT64_C(1) << 60) + 101, UINT64_C(1) << 63, UINT64_MAX, (UINT64_C(1) << 53) + 1 };
  const double doubles[] = { 0x1p60, 0x1p63, -0x1p63, 0x1p53 };
  uint64_t words[TM_COMPARISON_WORDS];
  compare(TM_FORMAT_I64, a, TM_FORMAT_I64, b, 4, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 2);
  assert_true(figure(words, TM_COMPARISON_MAX_ABS) == 3 && tm_sum_read(words + TM_COMPARISON_SUM_SQUARED) == 10);
  compare(TM_FORMAT_I64, a, TM_FORMAT_U64, natural, 2, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 0);
  assert_true(figure(words, TM_COMPARISON_MAX_ABS) == 100 && tm_sum_read(words + TM_COMPARISON_SUM_SQUARED) == 10001);
  compare(TM_FORMAT_I64, a, TM_FORMAT_U64, natural, 4, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 1);
  compare(TM_FORMAT_I64, a, TM_FORMAT_F64, doubles, 4, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 0);
  assert_true(figure(words, TM_COMPARISON_MAX_ABS) == 1 && tm_sum_read(words + TM_COMPARISON_SUM_SQUARED) == 4);
}

static void test_comparison_of_values_of_two_formats(void **state) {
  (void)state;
  const uint16_t halves[] = { 0x8000, 0x3c00, 0x7e01, 0x7c00 };
  const int8_t bytes[] = { 0, 1, 0, 0 };
  const float floats[] = { 0, 1, -NAN, -INFINITY };
  uint64_t words[TM_COMPARISON_WORDS];
  compare(TM_FORMAT_F16, halves, TM_FORMAT_I8, bytes, 4, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 2);
  compare(TM_FORMAT_F16, halves, TM_FORMAT_F32, floats, 4, words);
  assert_int_equal(words[TM_COMPARISON_EQUAL_BITS], 3);
}

/* Sums of a^2, b^2, a b and (a - b)^2 without any rounding. */
static void add_exact_sums(const double *a, const double *b, int count, uint64_t sums[4][TM_SUM_WORDS]) {
  for (int i = 0; i < count; ++i) {
    const double d = a[i] - b[i], pairs[4][2] = { { d, d }, { a[i], b[i] }, { a[i], a[i] }, { b[i], b[i] } };
    for (int k = 0; k < 4; ++k) {
      const double product = pairs[k][0] * pairs[k][1];
      tm_sum_add(sums[k], product);
      tm_sum_add(sums[k], fma(pairs[k][0], pairs[k][1], -product));
    }
  }
}

/* Values of which either side, or all differences, are small or large; of b that is nearly a, unrelated, or smaller by far. */
static void fill_near(uint32_t format, int exponent, int kind, double *a, double *b, int count, uint64_t *seed) {
  const tm_codec *codec = tm_codec_find(format);
  unsigned char bits[2];
  for (int i = 0; i < count; ++i) {
    const double x = ldexp((double)(next_random(seed) % 2000) - 1000, exponent - 10);
    const double y = ldexp((double)(next_random(seed) % 2000), exponent - 10), near = x * (1 + ldexp((double)(next_random(seed) % 5) - 2, -7));
    const double other = kind == 0 ? near : kind == 1 ? y : kind == 2 ? x * 0x1p-40 : i == 7 ? y : x;
    codec->encode(&x, 1, bits);
    codec->decode(bits, 1, &a[i]);
    codec->encode(&other, 1, bits);
    codec->decode(bits, 1, &b[i]);
  }
}

static double error_of(const uint64_t *sum, const uint64_t *exact, double scale) {
  const double error = fabs(tm_sum_read(sum) - tm_sum_read(exact));
  return error == 0 ? 0 : error / scale;
}

/* Chains of f32 have a relative error of 20 roundings at most, and what is lost to underflow is less than one. */
static void test_comparison_by_chains_is_accurate(void **state) {
  (void)state;
  enum { COUNT = 3 * 512 };
  static const uint32_t formats[] = { TM_FORMAT_BF16, TM_FORMAT_F16 };
  static const int exponents[] = { -130, -100, -60, -49, -20, 0, 14, 50, 62, 120 };
  static double a[COUNT], b[COUNT];
  static unsigned char data[2][COUNT * 2];
  uint64_t seed = SEED, words[TM_COMPARISON_WORDS];
  for (int k = 0; k < 2 * 10 * 4; ++k) {
    uint64_t exact[4][TM_SUM_WORDS] = { { 0 } };
    const tm_codec *codec = tm_codec_find(formats[k % 2]);
    fill_near(formats[k % 2], exponents[k / 2 % 10], k / 20, a, b, COUNT, &seed);
    codec->encode(a, COUNT, data[0]);
    codec->encode(b, COUNT, data[1]);
    compare(formats[k % 2], data[0], formats[k % 2], data[1], COUNT, words);
    if (words[TM_COMPARISON_NONFINITE] != 0) continue;
    add_exact_sums(a, b, COUNT, exact);
    const double norm_a = tm_sum_read(exact[2]), norm_b = tm_sum_read(exact[3]);
    assert_true(error_of(words + TM_COMPARISON_SUM_SQUARED, exact[0], tm_sum_read(exact[0])) <= 20 * 0x1p-24);
    assert_true(error_of(words + TM_COMPARISON_DOT, exact[1], sqrt(norm_a) * sqrt(norm_b)) <= 20 * 0x1p-24);
    assert_true(error_of(words + TM_COMPARISON_NORM_A, exact[2], norm_a) <= 20 * 0x1p-24);
    assert_true(error_of(words + TM_COMPARISON_NORM_B, exact[3], norm_b) <= 20 * 0x1p-24);
  }
}

/* Against integers: values are whole numbers of 2^-24, and their products are added by halves of them. */
static void test_comparison_of_blocks_is_exact(void **state) {
  (void)state;
  enum { BLOCKS = 1024 + 5 };
  static unsigned char data[2][BLOCKS * 34];
  static double values[2][BLOCKS * 32];
  uint64_t seed = SEED, words[TM_COMPARISON_WORDS], expected[4][TM_SUM_WORDS] = { { 0 } };
  static const size_t places[] = { TM_COMPARISON_SUM_SQUARED, TM_COMPARISON_DOT, TM_COMPARISON_NORM_A, TM_COMPARISON_NORM_B };
  for (int side = 0; side < 2; ++side) {
    fill(TM_FORMAT_Q8_0, sizeof data[side], data[side], &seed);
    tm_codec_find(TM_FORMAT_Q8_0)->decode(data[side], BLOCKS * 32, values[side]);
  }
  for (int i = 0; i < BLOCKS * 32; ++i) {
    if (!isfinite(values[0][i]) || !isfinite(values[1][i])) continue;
    const int64_t a = (int64_t)ldexp(values[0][i], 24), b = (int64_t)ldexp(values[1][i], 24);
    const int64_t pairs[4][2] = { { a - b, a - b }, { a, b }, { a, a }, { b, b } };
    for (int k = 0; k < 4; ++k) {
      const int64_t unit = INT64_C(1) << 24, x = pairs[k][0] / unit, y = pairs[k][1] / unit;
      const int64_t v = pairs[k][0] % unit, w = pairs[k][1] % unit;
      tm_sum_add(expected[k], (double)(x * y));
      tm_sum_add(expected[k], ldexp((double)(x * w + v * y), -24));
      tm_sum_add(expected[k], ldexp((double)(v * w), -48));
    }
  }
  compare(TM_FORMAT_Q8_0, data[0], TM_FORMAT_Q8_0, data[1], BLOCKS * 32, words);
  for (int k = 0; k < 4; ++k) assert_memory_equal(words + places[k], expected[k], sizeof expected[k]);
}

static void test_wrong_operands_are_refused(void **state) {
  (void)state;
  tm_error error = TM_ERROR_INIT;
  tm_operand operands[3] = { dense(TM_FORMAT_F32, 1, (uint64_t[]){ 6 }), dense(TM_FORMAT_F32, 1, (uint64_t[]){ 5 }), { 0 } };
  tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_COMPARE_TENSORS, .version = TM_COMPARISON_VERSION, .input_count = 2,
                             .output_count = 1, .operands = operands };
  assert_int_equal(row_of(TM_OP_COMPARE_TENSORS)->infer(&operation, &operands[2], &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "[5]"));
  operation.op = TM_OP_STATS;
  operation.input_count = 1;
  operands[0].format = TM_FORMAT_IQ2_XXS;
  assert_int_equal(row_of(TM_OP_STATS)->infer(&operation, &operands[1], &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "iq2_xxs"));
  operands[0] = dense(TM_FORMAT_F32, 1, (uint64_t[]){ 6 });
  operands[1] = dense(TM_FORMAT_U64, 1, (uint64_t[]){ 12 });
  assert_int_equal(row_of(TM_OP_STATS)->check(&operation, &error), TM_ERROR_ARGUMENT);
}

static void test_work_and_split(void **state) {
  (void)state;
  tm_operand operands[2] = { dense(TM_FORMAT_Q8_0, 3, (uint64_t[]){ 1, 3, 64 }), dense(TM_FORMAT_U64, 1, (uint64_t[]){ TM_STATS_WORDS }) };
  const tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_STATS, .version = 1, .input_count = 1, .output_count = 1,
                                   .operands = operands };
  tm_work work;
  row_of(TM_OP_STATS)->work(&operation, &work);
  assert_true(work.read_bytes == 6 * 34 && work.written_bytes == TM_STATS_WORDS * 8 && work.flops == 7 * 192);
  assert_int_equal(row_of(TM_OP_STATS)->splittable(&operation), 2);
}

int main(void) {
  print_message("seed %llx\n", (unsigned long long)SEED);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_stats_corners_of_f32),
    cmocka_unit_test(test_stats_of_nothing_and_of_zeros),
    cmocka_unit_test(test_subnormals_are_those_of_the_format),
    cmocka_unit_test(test_f32_sums_follow_the_lanes),
    cmocka_unit_test(test_bf16_blocks_choose_by_content),
    cmocka_unit_test(test_every_format_against_plain_sums),
    cmocka_unit_test(test_parts_combine_to_the_whole),
    cmocka_unit_test(test_views_equal_their_copies),
    cmocka_unit_test(test_block_rows_with_gaps_equal_their_copies),
    cmocka_unit_test(test_comparison_corners),
    cmocka_unit_test(test_comparison_of_large_integers_and_of_two_formats),
    cmocka_unit_test(test_comparison_of_bits_of_bool),
    cmocka_unit_test(test_comparison_of_wide_integers),
    cmocka_unit_test(test_comparison_of_values_of_two_formats),
    cmocka_unit_test(test_comparison_by_chains_is_accurate),
    cmocka_unit_test(test_comparison_of_blocks_is_exact),
    cmocka_unit_test(test_wrong_operands_are_refused),
    cmocka_unit_test(test_work_and_split),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
