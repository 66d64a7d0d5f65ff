/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "ops/philox.h"
#include "unit/ops/op_case.h"

#define WHOLE (UINT64_C(1) << 32)

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static op_case begin(uint32_t op, const tm_ties_attributes *ties) {
  return op_begin(op, ties, ties == NULL ? 0 : sizeof *ties);
}

/* ---- weighted_sum ---- */

static void sums_formats_of_all_kinds(void **state) {
  (void)state;
  double blocks[32], expected[32], halves[32];
  for (int i = 0; i < 32; i++) {
    blocks[i] = i - 16;
    halves[i] = 0.5 * i;
    expected[i] = 0.25 * halves[i] + 2 * blocks[i] - 1;
  }
  double ones[32];
  for (int i = 0; i < 32; i++) ones[i] = 1;
  blocks[0] = -127;             /* so that the scale is 1 */
  expected[0] = 0.25 * halves[0] + 2 * blocks[0] - 1;
  op_case c = begin(TM_OP_WEIGHTED_SUM, NULL);
  op_input(&c, TM_FORMAT_F16, 1, DIMS(32), halves);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(3), VALUES(0.25, 2, -1));
  op_input(&c, TM_FORMAT_Q8_0, 1, DIMS(32), blocks);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(32), ones);
  op_run(&c, TM_FORMAT_NONE);
  assert_int_equal(op_y(&c)->format, TM_FORMAT_F32);
  op_expect(&c, 32, expected);
}

static void sums_round_once_in_order(void **state) {
  (void)state;
  op_case c = begin(TM_OP_WEIGHTED_SUM, NULL);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(2), VALUES(1e16, 1));
  op_input(&c, TM_FORMAT_F64, 1, DIMS(3), VALUES(1, 1, -1));
  op_input(&c, TM_FORMAT_F64, 1, DIMS(2), VALUES(1, 0x1p-8));
  op_input(&c, TM_FORMAT_F64, 1, DIMS(2), VALUES(1e16, -0x1p-40));
  op_run(&c, TM_FORMAT_F64);
  op_expect(&c, 2, VALUES(0, 1 + 0x1p-8 + 0x1p-40));
  c = begin(TM_OP_WEIGHTED_SUM, NULL);          /* bf16 of f32 of this would be 1.0 */
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(1.00390625));
  op_input(&c, TM_FORMAT_F64, 1, DIMS(2), VALUES(1, 1));
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(0x1p-40));
  op_run(&c, TM_FORMAT_BF16);
  op_expect(&c, 1, VALUES(1.0078125));
}

static void sums_follow_ieee(void **state) {
  (void)state;
  op_case c = begin(TM_OP_WEIGHTED_SUM, NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(4), VALUES(INFINITY, INFINITY, NAN, -0.0));
  op_input(&c, TM_FORMAT_F64, 1, DIMS(2), VALUES(0.5, 0));
  op_input(&c, TM_FORMAT_F32, 1, DIMS(4), VALUES(INFINITY, 1, 1, -1));
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 4, VALUES(NAN, INFINITY, NAN, -0.0));
}

/* Random weights that are multiples of 2^-28 and add up to 1, none below 0. */
static void make_weights(uint64_t *state, uint32_t count, double *out_weights) {
  uint32_t left = 1u << 28;
  for (uint32_t i = 0; i < count; i++) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint32_t part = i + 1 == count ? left : (uint32_t)(*state >> 33) % (left + 1);
    out_weights[i] = part * 0x1p-28;
    left -= part;
  }
}

/* One number that many times, whatever it is, comes back bit for bit. */
static void equal_inputs_come_back(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F16, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2 };
  enum { COUNT = 4096 };
  uint64_t random = 7;
  for (uint32_t round = 0; round < 40; round++) {
    const uint32_t format = formats[round % 5], models = 1 + round % 14, bytes = tm_format_find(format)->block_bytes;
    unsigned char *x = op_alloc(COUNT * bytes);
    double values[COUNT], weights[14];
    for (uint32_t i = 0; i < COUNT * bytes; i++) {
      random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      x[i] = (unsigned char)(random >> 56);
    }
    tm_codec_find(format)->decode(x, COUNT, values);
    for (uint32_t i = 0; i < COUNT; i++)
      if (!isfinite(values[i])) memset(x + i * bytes, 0, bytes);
    make_weights(&random, models, weights);
    op_case c = begin(TM_OP_WEIGHTED_SUM, NULL);
    op_input_bytes(&c, format, 1, DIMS(COUNT), x);
    op_input(&c, TM_FORMAT_F64, 1, DIMS(models), weights);
    for (uint32_t i = 1; i < models; i++) op_input_bytes(&c, format, 1, DIMS(COUNT), x);
    op_run(&c, format);
    op_expect_bytes(&c, x, COUNT * bytes);
    free(x);
  }
}

/* ---- dare_sum ---- */

static void generator_is_the_published_one(void **state) {
  (void)state;
  static const struct { uint64_t counter, key; uint32_t words[4]; } known[] = {
    { 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
  };
  uint32_t words[4];
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    tm_philox(known[i].counter, known[i].key, words);
    assert_memory_equal(words, known[i].words, sizeof words);
  }
}

static op_case dare(uint64_t first, uint64_t threshold, uint64_t key, uint64_t count, const double *base, const double *x) {
  const uint64_t settings[] = { first, bits_of(0.5), bits_of(2), threshold, key };
  op_case c = begin(TM_OP_DARE_SUM, NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(count), base);
  op_input_bytes(&c, TM_FORMAT_U64, 1, DIMS(5), settings);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(count), x);
  op_run(&c, TM_FORMAT_NONE);
  return c;
}

static void dare_keeps_everything_or_nothing(void **state) {
  (void)state;
  op_case c = dare(3, WHOLE, 9, 5, VALUES(1, INFINITY, -0.0, INFINITY, 4), VALUES(3, INFINITY, -0.0, -INFINITY, NAN));
  op_expect(&c, 5, VALUES(3, INFINITY, -0.0, NAN, NAN));
  c = dare(3, 0, 9, 5, VALUES(1, INFINITY, -0.0, 7, 4), VALUES(3, INFINITY, 0.0, -INFINITY, NAN));
  op_expect(&c, 5, VALUES(1, INFINITY, -0.0, 7, 4));
}

/* A tile of the tensor has the tensor's elements, at any place, and about as many are kept as wished. */
static void dare_of_a_tile_is_that_of_the_whole(void **state) {
  (void)state;
  enum { COUNT = 3000 };
  static double base[COUNT], x[COUNT], whole[COUNT];
  uint32_t kept = 0;
  for (int i = 0; i < COUNT; i++) x[i] = 1;
  const uint64_t far = (UINT64_C(1) << 35) - 1000, threshold = WHOLE / 4;
  op_case c = dare(far, threshold, 42, COUNT, base, x);
  tm_codec_find(TM_FORMAT_F32)->decode(c.pointers[3], COUNT, whole);
  op_end(&c);
  for (int i = 0; i < COUNT; i++) {
    uint32_t words[4];
    tm_philox((far + (uint64_t)i) / 4, 42, words);
    assert_int_equal(whole[i] == 1, words[(far + (uint64_t)i) % 4] < threshold);
    kept += whole[i] == 1;
  }
  assert_in_range(kept, COUNT / 4 - 150, COUNT / 4 + 150);
  for (uint64_t at = 0; at < COUNT; at += 997) {
    const uint64_t n = COUNT - at < 997 ? COUNT - at : 997;
    c = dare(far + at, threshold, 42, n, base + at, x + at);
    op_expect(&c, n, whole + at);
  }
}

/* ---- ties_sum ---- */

/* Three inputs of weights 1, 2 and 1 and threshold 0.5, one element each. */
static void expect_ties(double base, const double *x, double scale, uint32_t sum, double expected) {
  const tm_ties_attributes attributes = { sum, 0 };
  op_case c = begin(TM_OP_TIES_SUM, &attributes);
  op_input(&c, TM_FORMAT_F32, 0, NULL, &base);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(7), VALUES(scale, 1, 0.5, 2, 0.5, 1, 0.5));
  for (int i = 0; i < 3; i++) op_input(&c, TM_FORMAT_F32, 0, NULL, &x[i]);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 1, &expected);
}

static void ties_elects_a_sign(void **state) {
  (void)state;
  expect_ties(10, VALUES(11, 12, 7), 1, 0, (double)(float)(10 + 5.0 / 3));      /* 1 + 4 - 3 > 0 */
  expect_ties(10, VALUES(11, 12, 7), 0.5, 1, 12.5);
  expect_ties(10, VALUES(11, 12, 1), 1, 0, 1);
  expect_ties(10, VALUES(11, 11, 7), 1, 0, 10);                 /* no majority */
  expect_ties(10, VALUES(10.4, 10.25, 9.75), 1, 0, 10);         /* trimmed */
  expect_ties(10, VALUES(10.5, 10.25, 9.75), 1, 0, 10.5);
  expect_ties(-0.0, VALUES(-0.0, 0.0, -0.0), 1, 0, -0.0);
  expect_ties(INFINITY, VALUES(INFINITY, INFINITY, INFINITY), 1, 0, INFINITY);
  expect_ties(1, VALUES(2, NAN, 3), 1, 0, NAN);
  expect_ties(0, VALUES(INFINITY, 1, -INFINITY), 1, 0, NAN);
}

static void negative_weights_turn_differences(void **state) {
  (void)state;
  const tm_ties_attributes attributes = { 0, 0 };
  op_case c = begin(TM_OP_TIES_SUM, &attributes);
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(1));
  op_input(&c, TM_FORMAT_F64, 1, DIMS(5), VALUES(1, -3, 0, 1, 0));
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(2));
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(-4));
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 1, VALUES(1 - 8.0 / 4));
}

/* ---- magnitudes ---- */

static uint64_t *magnitudes(const tm_magnitudes_attributes *attributes, uint64_t count, const double *x, const double *base) {
  op_case c = op_begin(TM_OP_MAGNITUDES, attributes, sizeof *attributes);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(count), x);
  op_input(&c, TM_FORMAT_BF16, 1, DIMS(count), base);
  op_run(&c, TM_FORMAT_NONE);
  uint64_t *words = c.pointers[2];
  c.pointers[2] = NULL;
  op_end(&c);
  return words;
}

static void magnitudes_are_counted(void **state) {
  (void)state;
  static const double x[] = { 1, -1, 2.5, 0x1.000002p0, INFINITY, INFINITY, NAN, 0 }, base[] = { 0, 0, 1.5, 0, INFINITY, 0, 0, 0 };
  tm_magnitudes_attributes attributes = { 0, 0 };
  uint64_t *words = magnitudes(&attributes, 8, x, base);
  assert_int_equal(words[0x3f800000 >> 15], 4);
  assert_int_equal(words[0x7f800000 >> 15], 2 - 1);
  assert_int_equal(words[0x7fc00000 >> 15], 1);
  assert_int_equal(words[0], 2);
  free(words);
  attributes = (tm_magnitudes_attributes){ 1, 0x3f800000 >> 15 };
  words = magnitudes(&attributes, 8, x, base);
  assert_int_equal(words[0], 3);
  assert_int_equal(words[1], 1);
  uint64_t all = 0;
  for (uint32_t i = 0; i < TM_MAGNITUDE_BINS; i++) all += words[i];
  assert_int_equal(all, 4);
  free(words);
}

/* ---- refusals ---- */

static void refuses(void **state) {
  (void)state;
  op_case c = begin(TM_OP_WEIGHTED_SUM, NULL);
  op_input(&c, TM_FORMAT_I32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(1), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("weighted_sum: x", "i32", "float or block"));
  c = begin(TM_OP_WEIGHTED_SUM, NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(1), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("weights", "f32", "f64"));
  c = begin(TM_OP_WEIGHTED_SUM, NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(1), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("weights", "[1]", "[2]"));
  c = begin(TM_OP_DARE_SUM, NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_U64, 1, DIMS(5), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(3), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("operand 2", "[3]", "[2]"));
  c = begin(TM_OP_DARE_SUM, NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_U64, 1, DIMS(5), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_Q8_0, WORDS("y", "q8_0", "float"));
  const tm_ties_attributes ties = { 2, 0 };
  c = begin(TM_OP_TIES_SUM, &ties);
  op_input(&c, TM_FORMAT_F32, 0, NULL, NULL);
  op_input(&c, TM_FORMAT_F64, 1, DIMS(3), NULL);
  op_input(&c, TM_FORMAT_F32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("sum", "2"));
  const tm_magnitudes_attributes outside = { 1, TM_MAGNITUDE_BINS };
  c = op_begin(TM_OP_MAGNITUDES, &outside, sizeof outside);
  op_input(&c, TM_FORMAT_F32, 0, NULL, NULL);
  op_input(&c, TM_FORMAT_F32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("upper", "65536"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_formats_of_all_kinds),
    cmocka_unit_test(sums_round_once_in_order),
    cmocka_unit_test(sums_follow_ieee),
    cmocka_unit_test(equal_inputs_come_back),
    cmocka_unit_test(generator_is_the_published_one),
    cmocka_unit_test(dare_keeps_everything_or_nothing),
    cmocka_unit_test(dare_of_a_tile_is_that_of_the_whole),
    cmocka_unit_test(ties_elects_a_sign),
    cmocka_unit_test(negative_weights_turn_differences),
    cmocka_unit_test(magnitudes_are_counted),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
