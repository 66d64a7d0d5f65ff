/* SPDX-License-Identifier: Apache-2.0 */
/* Learning what a declared cost is worth: liars either way, outliers, drift, and what one bucket tells of the others. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "schedule/correction.h"

#define DECLARED_NS UINT64_C(1000000)

typedef struct fixture {
  tm_memory     memory;
  tm_correction correction;
} fixture;

static void open_fixture(fixture *f, uint32_t devices) {
  tm_memory_init(&f->memory, 0);
  assert_int_equal(tm_correction_init(&f->correction, &f->memory, devices), TM_OK);
}

static void close_fixture(fixture *f) {
  tm_correction_deinit(&f->correction);
  assert_int_equal(atomic_load(&f->memory.used_bytes), 0);
}

static void learn(fixture *f, const tm_correction_key *key, double ratio, int times) {
  for (int i = 0; i < times; i++) tm_correction_learn(&f->correction, key, DECLARED_NS, (uint64_t)((double)DECLARED_NS * ratio));
}

static double factor(fixture *f, const tm_correction_key *key) { return tm_correction_look(&f->correction, key).factor; }

static void assert_near(double found, double expected, double tolerance) {
  if (!(found > expected / tolerance && found < expected * tolerance)) fail_msg("%g, expected %g within x%g", found, expected, tolerance);
}

static const tm_correction_key key_a = { 0, TM_CLASS_ELEMENTWISE, 17 };
static const tm_correction_key key_b = { 0, TM_CLASS_ELEMENTWISE, 18 };
static const tm_correction_key key_c = { 0, TM_CLASS_MATMUL, 19 };
static const tm_correction_key key_other = { 1, TM_CLASS_ELEMENTWISE, 17 };

static void nothing_seen_changes_nothing(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 2);
  const tm_correction_estimate estimate = tm_correction_look(&f.correction, &key_a);
  assert_true(estimate.factor == 1);
  assert_true(estimate.least_factor < 1.0 / 100);
  assert_int_equal(estimate.samples, 0);
  close_fixture(&f);
}

static void a_liar_is_corrected_either_way(void **state) {
  (void)state;
  static const double ratios[] = { 0.01, 0.1, 10, 100 };
  for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
    fixture f;
    open_fixture(&f, 2);
    learn(&f, &key_a, ratios[i], 12);
    assert_near(factor(&f, &key_a), ratios[i], 1.1);
    assert_near(factor(&f, &key_other), 1, 1.0001);
    close_fixture(&f);
  }
}

static void levels_share_what_was_learned(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  learn(&f, &key_a, 10, 12);
  assert_near(factor(&f, &key_b), 10, 1.3);     /* another size */
  assert_near(factor(&f, &key_c), 10, 1.3);     /* another class */
  learn(&f, &key_c, 2, 12);
  assert_near(factor(&f, &key_c), 2, 1.1);
  assert_near(factor(&f, &key_a), 10, 1.1);
  const tm_correction_estimate estimate = tm_correction_look(&f.correction, &key_b);
  assert_int_equal(estimate.bucket_samples, 0);
  assert_int_equal(estimate.samples, 12);
  close_fixture(&f);
}

static void one_outlier_moves_little(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  learn(&f, &key_a, 1, 5);
  learn(&f, &key_a, 1000, 1);
  assert_near(factor(&f, &key_a), 1, 1.25);
  learn(&f, &key_a, 1, 5);
  assert_near(factor(&f, &key_a), 1, 1.15);
  close_fixture(&f);
}

static void the_first_measurement_is_not_believed_whole(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  learn(&f, &key_a, 1000, 1);
  assert_true(factor(&f, &key_a) < 5);
  learn(&f, &key_a, 1, 7);
  assert_near(factor(&f, &key_a), 1, 1.3);
  close_fixture(&f);
}

static void a_device_that_changed_is_learned_anew(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  learn(&f, &key_a, 1, 60);
  learn(&f, &key_a, 3, 8);
  assert_near(factor(&f, &key_a), 3, 1.15);
  close_fixture(&f);
}

static void knowledge_narrows_hope(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  double last = tm_correction_look(&f.correction, &key_a).least_factor;
  for (int i = 0; i < 4; i++) {
    learn(&f, &key_a, 1, 1);
    const double least = tm_correction_look(&f.correction, &key_a).least_factor;
    assert_true(least > last && least <= 1);
    last = least;
  }
  assert_true(last > 0.5);
  close_fixture(&f);
}

/* Placements look again when told; a settled estimate tells nobody. */
static void news_are_told_and_noise_is_not(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  const uint64_t at_first = atomic_load(&f.correction.generation);
  learn(&f, &key_a, 4, 10);
  const uint64_t learned = atomic_load(&f.correction.generation);
  assert_true(learned > at_first);
  for (int i = 0; i < 50; i++) learn(&f, &key_a, i % 2 == 0 ? 3.9 : 4.1, 1);
  assert_int_equal(atomic_load(&f.correction.generation), learned);
  close_fixture(&f);
}

/* What placements were told of is never far from what is estimated now. */
static void what_was_told_stays_true(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  learn(&f, &key_a, 0.1, 20);
  double told = factor(&f, &key_b);
  for (int i = 0; i < 20; i++) {
    const uint64_t before = atomic_load(&f.correction.generation);
    learn(&f, &key_b, 1, 1);
    if (atomic_load(&f.correction.generation) != before) told = factor(&f, &key_b);
    assert_near(factor(&f, &key_b), told, 1.35);
  }
  close_fixture(&f);
}

static void copies_are_corrected(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 2);
  const uint64_t bytes = 1 << 20;
  const uint64_t prior = tm_correction_copy_ns(&f.correction, 0, bytes);
  for (int i = 0; i < 12; i++) tm_correction_learn_copy(&f.correction, 0, bytes, prior * 5);
  assert_near((double)tm_correction_copy_ns(&f.correction, 0, bytes), (double)prior * 5, 1.1);
  assert_near((double)tm_correction_copy_ns(&f.correction, 0, bytes * 16), (double)tm_correction_copy_ns(&f.correction, 1, bytes * 16) * 5, 1.1);
  assert_int_equal(tm_correction_copy_ns(&f.correction, 1, bytes), prior);
  close_fixture(&f);
}

static void many_buckets_are_kept_apart(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  for (uint64_t i = 0; i < 2000; i++) {
    const tm_correction_key key = { 0, TM_CLASS_REDUCE, i };
    learn(&f, &key, i % 2 == 0 ? 1 : 4, 4);
  }
  for (uint64_t i = 0; i < 2000; i++) {
    const tm_correction_key key = { 0, TM_CLASS_REDUCE, i };
    assert_int_equal(tm_correction_look(&f.correction, &key).bucket_samples, 4);
    assert_near(factor(&f, &key), i % 2 == 0 ? 1 : 4, 1.5);
  }
  close_fixture(&f);
}

static void absurd_measurements_stay_finite(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f, 1);
  for (int i = 0; i < 100; i++) tm_correction_learn(&f.correction, &key_a, 0, UINT64_MAX);
  for (int i = 0; i < 100; i++) tm_correction_learn(&f.correction, &key_b, UINT64_MAX, 0);
  assert_true(isfinite(factor(&f, &key_a)) && factor(&f, &key_a) > 0);
  assert_true(isfinite(factor(&f, &key_b)) && factor(&f, &key_b) > 0);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_seen_changes_nothing),
    cmocka_unit_test(a_liar_is_corrected_either_way),
    cmocka_unit_test(levels_share_what_was_learned),
    cmocka_unit_test(one_outlier_moves_little),
    cmocka_unit_test(the_first_measurement_is_not_believed_whole),
    cmocka_unit_test(a_device_that_changed_is_learned_anew),
    cmocka_unit_test(knowledge_narrows_hope),
    cmocka_unit_test(news_are_told_and_noise_is_not),
    cmocka_unit_test(what_was_told_stays_true),
    cmocka_unit_test(copies_are_corrected),
    cmocka_unit_test(many_buckets_are_kept_apart),
    cmocka_unit_test(absurd_measurements_stay_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
