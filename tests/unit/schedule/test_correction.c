/* SPDX-License-Identifier: Apache-2.0 */
/* Learning what a declared cost is worth: liars either way, outliers, drift, and what one bucket tells of the others. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/log2_fixed.h"
#include "schedule/bill.h"
#include "schedule/correction.h"

#define DECLARED_NS UINT64_C(1000000)
#define PRICES_DIGEST UINT64_C(0x949250f5e6663645)

typedef struct fixture {
  tm_memory     memory;
  tm_correction correction;
} fixture;

static void open_fixture(fixture *f) {
  tm_memory_init(&f->memory, 0);
  assert_int_equal(tm_correction_init(&f->correction, &f->memory), TM_OK);
}

static void close_fixture(fixture *f) {
  tm_correction_deinit(&f->correction);
  assert_int_equal(atomic_load(&f->memory.used_bytes), 0);
}

static void learn(fixture *f, const tm_correction_key *key, double ratio, int times) {
  for (int i = 0; i < times; i++) tm_correction_learn(&f->correction, key, NULL, DECLARED_NS, (uint64_t)((double)DECLARED_NS * ratio));
}

static double number_of(int64_t log2) { return exp2((double)log2 / (double)TM_LOG2_ONE); }
static double factor(fixture *f, const tm_correction_key *key) { return number_of(tm_correction_look(&f->correction, key).factor); }

static void assert_near(double found, double expected, double tolerance) {
  if (!(found > expected / tolerance && found < expected * tolerance)) fail_msg("%g, expected %g within x%g", found, expected, tolerance);
}

static const tm_correction_key key_a = { 0, TM_CLASS_ELEMENTWISE, 17, 0 };
static const tm_correction_key key_b = { 0, TM_CLASS_ELEMENTWISE, 18, 0 };
static const tm_correction_key key_c = { 0, TM_CLASS_MATMUL, 19, 0 };
static const tm_correction_key key_other = { 1, TM_CLASS_ELEMENTWISE, 17, 0 };

static void nothing_seen_changes_nothing(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  const tm_correction_estimate estimate = tm_correction_look(&f.correction, &key_a);
  assert_true(estimate.factor == 0);
  assert_true(number_of(estimate.least_factor) < 1.0 / 100);
  assert_int_equal(estimate.samples, 0);
  close_fixture(&f);
}

static void a_liar_is_corrected_either_way(void **state) {
  (void)state;
  static const double ratios[] = { 0.01, 0.1, 10, 100 };
  for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
    fixture f;
    open_fixture(&f);
    learn(&f, &key_a, ratios[i], 12);
    assert_near(factor(&f, &key_a), ratios[i], 1.1);
    assert_near(factor(&f, &key_other), 1, 1.0001);
    close_fixture(&f);
  }
}

static void levels_share_what_was_learned(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  learn(&f, &key_a, 10, 12);
  assert_near(factor(&f, &key_b), 10, 1.3);     /* another size */
  assert_near(factor(&f, &key_c), sqrt(10), 1.2);       /* another class, of which one alone tells half */
  learn(&f, &key_c, 2, 12);
  assert_near(factor(&f, &key_c), 2, 1.1);
  assert_near(factor(&f, &key_a), 10, 1.1);
  const tm_correction_estimate estimate = tm_correction_look(&f.correction, &key_b);
  assert_int_equal(estimate.bucket_samples, 0);
  assert_int_equal(estimate.samples, 12);
  close_fixture(&f);
}

/* Declared eight times too dear in one class: what another declares five times cheaper elsewhere is cheaper still. */
static void one_class_tells_little_of_another(void **state) {
  (void)state;
  static const tm_correction_key there[] = { { 0, TM_CLASS_MOVE, 1, 0 }, { 0, TM_CLASS_MOVE, 2, 0 }, { 0, TM_CLASS_MOVE, 3, 0 } };
  for (uint32_t buckets = 1; buckets <= 3; buckets++) {
    for (int sign = -1; sign <= 1; sign += 2) {
      fixture f;
      open_fixture(&f);
      for (uint32_t i = 0; i < buckets; i++) learn(&f, &there[i], exp2(3.0 * sign), 60);
      assert_near(factor(&f, &there[0]), exp2(3.0 * sign), 1.05);
      assert_near(factor(&f, &key_c), exp2(1.5 * sign), 1.1);
      close_fixture(&f);
    }
  }
}

/* What several classes agree in is the device's own; where they contradict each other, the next may be anything between. */
static void classes_that_agree_tell_of_the_next(void **state) {
  (void)state;
  static const double weights[] = { 0, 1.0 / 2, 4.0 / 5, 9.0 / 10, 16.0 / 17, 25.0 / 26 };
  fixture f, torn;
  open_fixture(&f);
  open_fixture(&torn);
  int64_t spread = INT64_MAX;
  for (uint64_t i = 0; i < 6; i++) {
    const tm_correction_estimate estimate = tm_correction_look(&f.correction, &key_c);
    assert_near(number_of(estimate.factor), pow(8, weights[i]), 1.1);
    assert_true(estimate.spread < spread);
    spread = estimate.spread;
    const tm_correction_key next = { 0, (tm_op_class)i, 100 + i, 0 };
    learn(&f, &next, 8, 20);
    learn(&torn, &next, i % 2 == 0 ? 8 : 1.0 / 8, 20);
  }
  assert_near(factor(&torn, &key_c), 1, 1.1);
  assert_true(tm_correction_look(&torn.correction, &key_c).spread > 2 * spread);
  close_fixture(&f);
  close_fixture(&torn);
}

static void one_outlier_moves_little(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
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
  open_fixture(&f);
  learn(&f, &key_a, 1000, 1);
  assert_true(factor(&f, &key_a) < 5);
  learn(&f, &key_a, 1, 7);
  assert_near(factor(&f, &key_a), 1, 1.3);
  close_fixture(&f);
}

static void a_device_that_changed_is_learned_anew(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  learn(&f, &key_a, 1, 60);
  learn(&f, &key_a, 3, 8);
  assert_near(factor(&f, &key_a), 3, 1.15);
  close_fixture(&f);
}

/* What runs alternates; the device is the same all along. */
static void other_work_is_no_other_device(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  for (int round = 0; round < 6; round++) {
    learn(&f, &key_a, 1, 20);
    learn(&f, &key_c, 8, 20);
  }
  tm_correction_entry entry;
  for (uint32_t i = 0; tm_correction_at(&f.correction, i, &entry); i++) {
    assert_false(entry.node.is_reset);
    assert_true(entry.node.live.weight >= 60 * TM_WEIGHT_ONE);
  }
  const tm_correction_key fresh = { 0, TM_CLASS_REDUCE, 77, 0 };
  const double between = factor(&f, &fresh);
  assert_true(between > 1.3 && between < 6);
  close_fixture(&f);
}

static void knowledge_narrows_hope(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  double last = number_of(tm_correction_look(&f.correction, &key_a).least_factor);
  for (int i = 0; i < 4; i++) {
    learn(&f, &key_a, 1, 1);
    const double least = number_of(tm_correction_look(&f.correction, &key_a).least_factor);
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
  open_fixture(&f);
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
  open_fixture(&f);
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

static const tm_identity host = TM_HOST_MEMORY, near = { { 1 } }, far = { { 2 } };

static void copies_are_corrected_for_a_pair_of_memories(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  const uint64_t bytes = 1 << 24;
  const uint32_t link = tm_correction_link_of(&f.correction, &host, &near), other = tm_correction_link_of(&f.correction, &host, &far);
  assert_int_equal(tm_correction_link_of(&f.correction, &host, &near), link);
  assert_true(tm_correction_link_of(&f.correction, &near, &host) != link && link != other);
  const uint64_t prior = tm_correction_copy_ns(&f.correction, link, bytes);
  for (int i = 0; i < 12; i++) tm_correction_learn_copy(&f.correction, link, bytes, prior * 5);
  assert_near((double)tm_correction_copy_ns(&f.correction, link, bytes), (double)prior * 5, 1.1);
  assert_near((double)tm_correction_copy_ns(&f.correction, link, bytes * 16), (double)prior * 5 * 16, 1.2);
  assert_int_equal(tm_correction_copy_ns(&f.correction, other, bytes), prior);
  assert_int_equal(tm_correction_copy_ns(&f.correction, link, 0), 0);
  close_fixture(&f);
}

/* Small copies tell of the latency and large ones of the rate, and neither of the other. */
static void latency_and_rate_are_told_apart(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  const uint32_t link = tm_correction_link_of(&f.correction, &host, &near);
  for (int i = 0; i < 40; i++)
    for (uint64_t bytes = 64; bytes <= UINT64_C(1) << 28; bytes *= 64)
      tm_correction_learn_copy(&f.correction, link, bytes, 80000 + bytes / 24);        /* a slow start, four times the prior rate */
  for (uint64_t bytes = 1; bytes <= UINT64_C(1) << 30; bytes *= 8)
    assert_near((double)tm_correction_copy_ns(&f.correction, link, bytes), (double)(80000 + bytes / 24), 1.3);
  close_fixture(&f);
}

/* ---- who cannot be believed at all ---- */

/* A device that is right about small things by ten too few and about large ones by ten too many. */
static void the_work_itself_gives_hope(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  tm_correction_key small = key_a, large = key_b;
  small.work_factor = 3 * TM_LOG2_ONE;          /* the work would come to eight times what it declared; so it takes */
  large.work_factor = -3 * TM_LOG2_ONE;
  learn(&f, &small, 8, 4);
  const tm_correction_estimate estimate = tm_correction_look(&f.correction, &large);
  assert_near(number_of(estimate.factor), 8, 1.2);
  assert_true(number_of(estimate.least_factor) < 1.0 / 8);
  assert_true(number_of(estimate.try_factor) < 2);
  close_fixture(&f);
}

/* The first run of a size is drawn towards what foresaw it: here another size of the same operation. */
static void one_size_tells_of_another(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  const tm_correction_key small = { 0, TM_CLASS_ELEMENTWISE, 0x700 | 10, 3 * TM_LOG2_ONE };
  const tm_correction_key large = { 0, TM_CLASS_ELEMENTWISE, 0x700 | 12, -3 * TM_LOG2_ONE };
  const tm_correction_key elsewhere = { 0, TM_CLASS_ELEMENTWISE, 0x900 | 12, -3 * TM_LOG2_ONE };
  learn(&f, &small, 8, 10);
  const tm_correction_estimate before = tm_correction_look(&f.correction, &large);
  assert_true(before.try_factor < tm_correction_look(&f.correction, &elsewhere).try_factor);
  assert_true(number_of(before.least_factor) < 1.0 / 8 && number_of(before.factor) > 4);
  learn(&f, &large, 1.0 / 8, 1);
  assert_near(factor(&f, &large), 1.0 / 8, 1.1);
  learn(&f, &elsewhere, 8, 1);                  /* here the declarations are off as usual */
  assert_near(factor(&f, &elsewhere), 8, 1.1);
  close_fixture(&f);
}

/* By one hundredth a run: five in a row are never far off, and what was measured long ago would count for ever. */
static void what_changes_slowly_is_followed(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  learn(&f, &key_a, 1, 100);
  double ratio = 1;
  for (int i = 0; i < 120; i++, ratio *= 1.01) learn(&f, &key_a, ratio, 1);
  assert_near(factor(&f, &key_a), ratio, 1.15);
  close_fixture(&f);
}

static void declarations_beyond_all_measure_are_passed_over(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  for (uint64_t i = 0; i < 40; i++) {
    const int64_t lie = (int64_t)(i * 7 % 13) - 6;
    const tm_correction_key key = { 0, TM_CLASS_REDUCE, 1000 + i, lie * TM_LOG2_ONE };
    learn(&f, &key, exp2((double)lie + 1), 1);  /* twice the work's own count, whatever was declared */
  }
  const tm_correction_key next = { 0, TM_CLASS_REDUCE, 5, -6 * TM_LOG2_ONE };
  assert_near(number_of(tm_correction_look(&f.correction, &next).factor), 2.0 / 64, 1.6);
  assert_true(tm_correction_honesty_of(&f.correction, 0).spread > TM_LOG2_ONE * 3 / 2);
  close_fixture(&f);
}

/* ---- what is paid once ---- */

static void set_ups_are_learned_declared_or_not(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  assert_int_equal(tm_correction_setup_ns(&f.correction, 0, 7, 1000000), 1000000);
  assert_int_equal(tm_correction_setup_ns(&f.correction, 0, 7, 0), 0);
  tm_correction_learn_setup(&f.correction, 0, 7, 0, 900000000, 1000000);
  assert_int_equal(tm_correction_setup_ns(&f.correction, 0, 7, 0), 0);      /* once is an accident */
  tm_correction_learn_setup(&f.correction, 0, 7, 0, 900000000, 1000000);
  assert_near((double)tm_correction_setup_ns(&f.correction, 0, 7, 0), 9e8, 1.01);
  assert_int_equal(tm_correction_setup_ns(&f.correction, 0, 8, 1000000), 1000000);
  for (uint64_t key = 10; key < 16; key++) tm_correction_learn_setup(&f.correction, 0, key, 1000000, 20000000, 0);
  assert_near((double)tm_correction_setup_ns(&f.correction, 0, 8, 1000000), 2e7, 1.3);     /* it declares too little throughout */
  assert_int_equal(tm_correction_setup_ns(&f.correction, 1, 8, 1000000), 1000000);
  close_fixture(&f);
}

/* ---- the snapshot ---- */

static void a_frozen_snapshot_tells_nothing(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  atomic_store(&f.correction.is_frozen, true);
  const uint64_t generation = atomic_load(&f.correction.generation);
  learn(&f, &key_a, 10, 20);
  assert_true(factor(&f, &key_a) == 1);
  assert_int_equal(atomic_load(&f.correction.generation), generation);
  tm_correction_promote(&f.correction);
  assert_near(factor(&f, &key_a), 10, 1.1);
  close_fixture(&f);
}

/* Prices change only when the generation moves. */
static void prices_are_a_function_of_the_snapshot(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  uint64_t generation = 0, seed = 1;
  int64_t told = 0;
  for (int i = 0; i < 3000; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    learn(&f, &key_a, 1.0 + (double)(seed >> 40) / (double)(1 << 24), 1);
    const int64_t now = tm_correction_look(&f.correction, &key_b).factor;
    const uint64_t moved = atomic_load(&f.correction.generation);
    if (moved == generation) assert_true(now == told);
    told = now;
    generation = moved;
  }
  close_fixture(&f);
}

static void what_two_learned_apart_adds_up(void **state) {
  (void)state;
  fixture one, two, both;
  open_fixture(&one);
  open_fixture(&two);
  open_fixture(&both);
  learn(&one, &key_a, 8, 10);
  learn(&two, &key_a, 8, 10);
  learn(&two, &key_c, 2, 5);
  tm_correction_entry entry;
  for (uint32_t i = 0; tm_correction_at(&one.correction, i, &entry); i++)
    if (tm_correction_take_fresh(&one.correction, i, &entry)) tm_correction_merge(&both.correction, &entry, entry.node.is_reset, 0);
  for (uint32_t i = 0; tm_correction_at(&two.correction, i, &entry); i++)
    if (tm_correction_take_fresh(&two.correction, i, &entry)) tm_correction_merge(&both.correction, &entry, entry.node.is_reset, 0);
  assert_true(factor(&both, &key_a) == 1);
  tm_correction_promote(&both.correction);
  assert_near(factor(&both, &key_a), 8, 1.1);
  assert_near(factor(&both, &key_c), 2, 1.2);
  assert_int_equal(tm_correction_look(&both.correction, &key_a).bucket_samples, 20);
  for (uint32_t i = 0; tm_correction_at(&one.correction, i, &entry); i++) assert_false(tm_correction_take_fresh(&one.correction, i, &entry));
  close_fixture(&one);
  close_fixture(&two);
  close_fixture(&both);
}

/* What is known of a driver that was replaced since is a hint, and no more. */
static void doubt_makes_knowledge_count_less(void **state) {
  (void)state;
  static const uint32_t doubts[] = { 0, 341, 4096 };
  double last = 0;
  for (size_t i = 0; i < 3; i++) {
    fixture known, f;
    open_fixture(&known);
    open_fixture(&f);
    learn(&known, &key_a, 8, 60);
    tm_correction_entry entry;
    for (uint32_t e = 0; tm_correction_at(&known.correction, e, &entry); e++) {
      (void)tm_correction_take_fresh(&known.correction, e, &entry);
      tm_correction_merge(&f.correction, &entry, entry.node.is_reset, doubts[i]);
    }
    tm_correction_promote(&f.correction);
    assert_near(factor(&f, &key_a), 8, 1.6);
    const double spread = number_of(tm_correction_look(&f.correction, &key_a).spread);
    assert_true(spread > last);
    last = spread;
    close_fixture(&known);
    close_fixture(&f);
  }
}

static void a_device_is_forgotten_alone(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  learn(&f, &key_a, 8, 10);
  learn(&f, &key_other, 4, 10);
  assert_int_equal(tm_correction_forget(&f.correction, 0), 4);
  assert_true(factor(&f, &key_a) == 1);
  assert_near(factor(&f, &key_other), 4, 1.1);
  learn(&f, &key_a, 2, 10);
  assert_near(factor(&f, &key_a), 2, 1.1);
  assert_int_equal(tm_correction_forget(&f.correction, UINT32_MAX), 8);
  assert_true(factor(&f, &key_other) == 1);
  close_fixture(&f);
}

/* The same numbers from every compiler: a fixed snapshot, and what it makes of many declared costs. */
static void prices_of_a_fixed_snapshot_are_these(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  uint64_t seed = 42, digest = 0;
  for (uint64_t i = 0; i < 4000; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    const tm_correction_key key = { (uint32_t)(i % 3), (tm_op_class)(i % 8), i % 97, (int64_t)(seed >> 30) };
    tm_correction_learn(&f.correction, &key, NULL, 1 + (seed >> 44), 1 + (seed >> (30 + i % 20)));
    tm_correction_learn_copy(&f.correction, tm_correction_link_of(&f.correction, &host, &near), 1 + (seed >> 40), 1 + (seed >> 41));
    tm_correction_learn_setup(&f.correction, key.device, i % 11, seed >> 40, 1 + (seed >> 38), 1000);
  }
  tm_correction_promote(&f.correction);
  for (uint64_t i = 0; i < 1000; i++) {
    const tm_correction_key key = { (uint32_t)(i % 4), (tm_op_class)(i % 8), i % 101, (int64_t)i << 28 };
    const tm_correction_estimate estimate = tm_correction_look(&f.correction, &key);
    const uint64_t numbers[] = { tm_cost_scale(i * i * 1009, estimate.factor), tm_cost_scale(i * 999983, estimate.least_factor),
                                 tm_correction_copy_ns(&f.correction, 0, i * i * i), tm_correction_setup_ns(&f.correction, key.device, i % 13, i) };
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) digest = (digest ^ numbers[n]) * UINT64_C(0x100000001b3);
  }
  if (digest != PRICES_DIGEST) fail_msg("0x%llx", (unsigned long long)digest);
  close_fixture(&f);
}

static void many_buckets_are_kept_apart(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  for (uint64_t i = 0; i < 2000; i++) {
    const tm_correction_key key = { 0, TM_CLASS_REDUCE, i, 0 };
    learn(&f, &key, i % 2 == 0 ? 1 : 4, 4);
  }
  for (uint64_t i = 0; i < 2000; i++) {
    const tm_correction_key key = { 0, TM_CLASS_REDUCE, i, 0 };
    assert_int_equal(tm_correction_look(&f.correction, &key).bucket_samples, 4);
    assert_near(factor(&f, &key), i % 2 == 0 ? 1 : 4, 1.5);
  }
  close_fixture(&f);
}

static void absurd_measurements_stay_finite(void **state) {
  (void)state;
  fixture f;
  open_fixture(&f);
  for (int i = 0; i < 100; i++) tm_correction_learn(&f.correction, &key_a, NULL, 0, UINT64_MAX);
  for (int i = 0; i < 100; i++) tm_correction_learn(&f.correction, &key_b, NULL, UINT64_MAX, 1);
  assert_true(factor(&f, &key_a) > 1e6 && factor(&f, &key_b) < 1e-6);
  assert_int_equal(tm_cost_scale(UINT64_MAX, tm_correction_look(&f.correction, &key_a).factor), UINT64_C(1000000000000000));
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_seen_changes_nothing),
    cmocka_unit_test(a_liar_is_corrected_either_way),
    cmocka_unit_test(levels_share_what_was_learned),
    cmocka_unit_test(one_class_tells_little_of_another),
    cmocka_unit_test(classes_that_agree_tell_of_the_next),
    cmocka_unit_test(one_outlier_moves_little),
    cmocka_unit_test(the_first_measurement_is_not_believed_whole),
    cmocka_unit_test(a_device_that_changed_is_learned_anew),
    cmocka_unit_test(other_work_is_no_other_device),
    cmocka_unit_test(knowledge_narrows_hope),
    cmocka_unit_test(news_are_told_and_noise_is_not),
    cmocka_unit_test(what_was_told_stays_true),
    cmocka_unit_test(copies_are_corrected_for_a_pair_of_memories),
    cmocka_unit_test(latency_and_rate_are_told_apart),
    cmocka_unit_test(the_work_itself_gives_hope),
    cmocka_unit_test(declarations_beyond_all_measure_are_passed_over),
    cmocka_unit_test(set_ups_are_learned_declared_or_not),
    cmocka_unit_test(a_frozen_snapshot_tells_nothing),
    cmocka_unit_test(prices_are_a_function_of_the_snapshot),
    cmocka_unit_test(what_two_learned_apart_adds_up),
    cmocka_unit_test(doubt_makes_knowledge_count_less),
    cmocka_unit_test(a_device_is_forgotten_alone),
    cmocka_unit_test(one_size_tells_of_another),
    cmocka_unit_test(what_changes_slowly_is_followed),
    cmocka_unit_test(prices_of_a_fixed_snapshot_are_these),
    cmocka_unit_test(many_buckets_are_kept_apart),
    cmocka_unit_test(absurd_measurements_stay_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
