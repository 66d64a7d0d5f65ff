/* SPDX-License-Identifier: Apache-2.0 */
/* The exact accumulator against an independent exact summation, and the canonical order against its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <float.h>

#include "tensormorph/canonical_sum.h"

#define SEED UINT64_C(0x5eed0001)

static uint64_t next_random(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static double from_bits(uint64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static uint64_t to_bits(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

static void assert_same(double actual, double expected) {
  if (to_bits(actual) != to_bits(expected)) print_error("got %a, expected %a\n", actual, expected);
  assert_true(to_bits(actual) == to_bits(expected));
}

/* A finite number with an exponent in [low, high]. */
static double random_number(uint64_t *state, int low, int high) {
  const uint64_t r = next_random(state);
  const int exponent = low + (int)(next_random(state) % (uint64_t)(high - low + 1));
  const double magnitude = ldexp(1.0 + (double)(r >> 12) * 0x1p-52, exponent);
  return r & 1 ? -magnitude : magnitude;
}

/* Exact summation by non-overlapping partials, rounded once: an algorithm that shares nothing with the accumulator. */
static double exact_sum(const double *numbers, int count) {
  double partials[128];
  int used = 0;
  for (int n = 0; n < count; ++n) {
    double x = numbers[n];
    int kept = 0;
    for (int i = 0; i < used; ++i) {
      double y = partials[i];
      if (fabs(x) < fabs(y)) { const double swap = x; x = y; y = swap; }
      volatile double high = x + y;
      volatile double low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials[kept++] = x;
    used = kept;
  }
  volatile double high = 0, low = 0;
  int i = used;
  while (i > 0) {
    const double x = high, y = partials[--i];
    high = x + y;
    low = y - (high - x);
    if (low != 0) break;
  }
  if (i > 0 && ((low < 0 && partials[i - 1] < 0) || (low > 0 && partials[i - 1] > 0))) {
    volatile double twice = low * 2, moved = high + twice;
    if (moved - high == twice) high = moved;
  }
  return high == 0 ? 0.0 : high;
}

static double accumulate(const double *numbers, int count) {
  uint64_t words[TM_SUM_WORDS];
  tm_sum_init(words);
  for (int i = 0; i < count; ++i) tm_sum_add(words, numbers[i]);
  return tm_sum_read(words);
}

static void test_single_numbers_come_back(void **state) {
  (void)state;
  uint64_t seed = SEED;
  const double corners[] = { 0.0, 1.0, -1.0, DBL_MAX, -DBL_MAX, DBL_MIN, -DBL_MIN, 0x1p-1074, -0x1p-1074, 0x1.fffffffffffffp-1023 };
  for (size_t i = 0; i < sizeof corners / sizeof corners[0]; ++i) assert_same(accumulate(&corners[i], 1), corners[i]);
  for (int i = 0; i < 20000; ++i) {
    const double number = from_bits(next_random(&seed));
    if (isfinite(number)) assert_same(accumulate(&number, 1), number);
  }
  const double minus_zero = -0.0;
  assert_same(accumulate(&minus_zero, 1), 0.0);
}

static void test_random_sums_are_exact(void **state) {
  (void)state;
  uint64_t seed = SEED;
  print_message("seed %llx\n", (unsigned long long)SEED);
  static const int ranges[][2] = { { -1, 1 }, { -60, 60 }, { -1022, -960 }, { -1022, 900 }, { 900, 1000 } };
  for (int round = 0; round < 3000; ++round) {
    double numbers[40];
    const int *range = ranges[round % 5];
    const int count = 1 + (int)(next_random(&seed) % 40);
    for (int i = 0; i < count; ++i) numbers[i] = random_number(&seed, range[0], range[1]);
    for (int i = count / 2; i < count && round % 2; ++i) numbers[i] = -numbers[i - count / 2];
    assert_same(accumulate(numbers, count), exact_sum(numbers, count));
  }
}

static void test_rounding_ties_and_stickiness(void **state) {
  (void)state;
  const double half = 0x1p-53;
  assert_same(accumulate((double[]){ 1.0, half }, 2), 1.0);
  assert_same(accumulate((double[]){ 1.0 + DBL_EPSILON, half }, 2), 1.0 + 2 * DBL_EPSILON);
  assert_same(accumulate((double[]){ 1.0, half, 0x1p-1074 }, 3), 1.0 + DBL_EPSILON);
  assert_same(accumulate((double[]){ 1.0, half, -0x1p-1074 }, 3), 1.0);
  assert_same(accumulate((double[]){ -1.0, -half, -0x1p-1000 }, 3), -1.0 - DBL_EPSILON);
  /* The largest finite number, half an ulp above it, and just below that. */
  assert_same(accumulate((double[]){ DBL_MAX, 0x1p970 }, 2), INFINITY);
  assert_same(accumulate((double[]){ DBL_MAX, 0x1p970, -0x1p-1074 }, 3), DBL_MAX);
  assert_same(accumulate((double[]){ -DBL_MAX, -DBL_MAX, DBL_MAX }, 3), -DBL_MAX);
  assert_same(accumulate((double[]){ 0x1p-1022, -0x1p-1074 }, 2), 0x1.ffffffffffffep-1023);
}

static void test_many_large_numbers_do_not_overflow(void **state) {
  (void)state;
  uint64_t words[TM_SUM_WORDS];
  tm_sum_init(words);
  for (int i = 0; i < 100000; ++i) tm_sum_add(words, DBL_MAX);
  assert_same(tm_sum_read(words), INFINITY);
  for (int i = 0; i < 99999; ++i) tm_sum_add(words, -DBL_MAX);
  assert_same(tm_sum_read(words), DBL_MAX);
  tm_sum_add(words, -DBL_MAX);
  for (int i = 0; i < TM_SUM_WORDS; ++i) assert_true(words[i] == 0);
}

static void test_words_do_not_depend_on_order(void **state) {
  (void)state;
  uint64_t seed = SEED, forward[TM_SUM_WORDS], backward[TM_SUM_WORDS], parts[2][TM_SUM_WORDS];
  double numbers[500];
  for (int i = 0; i < 500; ++i) numbers[i] = random_number(&seed, -1000, 1000);
  tm_sum_init(forward);
  tm_sum_init(backward);
  tm_sum_init(parts[0]);
  tm_sum_init(parts[1]);
  for (int i = 0; i < 500; ++i) {
    tm_sum_add(forward, numbers[i]);
    tm_sum_add(backward, numbers[499 - i]);
    tm_sum_add(parts[i % 3 == 0], numbers[i]);
  }
  tm_sum_combine(parts[0], parts[1]);
  assert_memory_equal(forward, backward, sizeof forward);
  assert_memory_equal(forward, parts[0], sizeof forward);
  for (int i = 1; i < TM_SUM_LAST_DIGIT; ++i) assert_true(forward[i] <= TM_SUM_DIGIT_MASK);
}

static void test_combine_takes_digits_that_are_not_carried(void **state) {
  (void)state;
  uint64_t words[TM_SUM_WORDS], loose[TM_SUM_WORDS];
  tm_sum_init(words);
  tm_sum_init(loose);
  /* 2^0 is bit 0 of digit 34: five of them minus seven of them, left in one word each. */
  loose[1 + 34] = (uint64_t)-2;
  loose[1 + 33] = UINT64_C(3) << 32;
  tm_sum_combine(words, loose);
  assert_same(tm_sum_read(words), 1.0);
}

static void test_infinities_and_nan_leave_marks(void **state) {
  (void)state;
  assert_same(accumulate((double[]){ 1.0, INFINITY, -5.0 }, 3), INFINITY);
  assert_same(accumulate((double[]){ 1.0, -INFINITY }, 2), -INFINITY);
  assert_true(isnan(accumulate((double[]){ INFINITY, -INFINITY }, 2)));
  assert_true(isnan(accumulate((double[]){ NAN, INFINITY }, 2)));
}

/* The order as the header defines it, written down once more without the stream. */
static double by_definition(const double *terms, uint64_t count) {
  uint64_t words[TM_SUM_WORDS];
  tm_sum_init(words);
  for (uint64_t begin = 0; begin < count || begin == 0; begin += 32768) {
    double lane[16] = { 0 };
    for (uint64_t i = begin; i < count && i < begin + 32768; ++i) lane[(i - begin) % 16] += terms[i];
    double v[4];
    for (int j = 0; j < 4; ++j) v[j] = (lane[j] + lane[j + 4]) + (lane[j + 8] + lane[j + 12]);
    tm_sum_add(words, (v[0] + v[2]) + (v[1] + v[3]));
  }
  return tm_sum_read(words);
}

static void test_stream_follows_the_order(void **state) {
  (void)state;
  static const uint64_t counts[] = { 0, 1, 15, 16, 17, 511, 32767, 32768, 32769, 70000 };
  static double terms[70000];
  uint64_t seed = SEED;
  for (size_t i = 0; i < 70000; ++i) terms[i] = random_number(&seed, -40, 40);
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
    tm_sum_stream stream;
    tm_sum_stream_init(&stream);
    for (uint64_t i = 0; i < counts[c]; ++i) tm_sum_stream_add(&stream, terms[i]);
    assert_same(tm_sum_stream_result(&stream), by_definition(terms, counts[c]));
  }
}

static void test_split_at_superblocks_gives_equal_words(void **state) {
  (void)state;
  uint64_t seed = SEED;
  tm_sum_stream whole, parts[2];
  tm_sum_stream_init(&whole);
  tm_sum_stream_init(&parts[0]);
  tm_sum_stream_init(&parts[1]);
  for (int i = 0; i < 3 * 32768 + 77; ++i) {
    const double a = random_number(&seed, -600, 400), b = random_number(&seed, -400, 600);
    tm_sum_stream_add_product(&whole, a, b);
    tm_sum_stream_add_product(&parts[i >= 2 * 32768], a, b);
  }
  tm_sum_stream_finish(&whole);
  tm_sum_stream_finish(&parts[0]);
  tm_sum_stream_finish(&parts[1]);
  tm_sum_combine(parts[0].words, parts[1].words);
  assert_memory_equal(whole.words, parts[0].words, sizeof whole.words);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_single_numbers_come_back),
    cmocka_unit_test(test_random_sums_are_exact),
    cmocka_unit_test(test_rounding_ties_and_stickiness),
    cmocka_unit_test(test_many_large_numbers_do_not_overflow),
    cmocka_unit_test(test_words_do_not_depend_on_order),
    cmocka_unit_test(test_combine_takes_digits_that_are_not_carried),
    cmocka_unit_test(test_infinities_and_nan_leave_marks),
    cmocka_unit_test(test_stream_follows_the_order),
    cmocka_unit_test(test_split_at_superblocks_gives_equal_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
