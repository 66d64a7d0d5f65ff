/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that compute something else than they promised: from the first launch on or from a later one, everywhere or in a few
 * elements.  They are found out, the result is right all the same, it is said, and they are not asked again.  Those that keep
 * their promise are left alone, and what the looking costs is counted.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "fakes/idle_devices.h"
#include "schedule/stream_case.h"

#include "base/checked.h"
#include "execute/sampled_check.h"
#include "plugin/device.h"
#include "plugin/reference.h"

static void open_with(fake_case *one, const fake_control *control) {
  memset(one, 0, sizeof *one);
  one->controls[0] = *control;
  fake_case_open(one, "a", NULL);
  atomic_store(&one->context->correction.is_frozen, true);
}

static const tm_device_slot *device_at(const fake_case *one, const char *name) {
  return one->context->inventory->devices[fake_device_index(one, name)];
}

static uint32_t count_violations(fake_case *one, tm_violation_description *out_first) {
  tm_violation_description found = { .struct_size = sizeof found };
  uint32_t count = 0;
  while (tm_violation_describe(one->context, count, &found) == TM_OK)
    if (count++ == 0) *out_first = found;
  return count;
}

static uint32_t device_of_run(fake_case *one) { return fake_case_run(one, NULL).device; }

/* ---- found ---- */

/* Results are right, and the run says what happened. */
static void wrong_from_the_first_launch(void **state) {
  const fake_control wrong = { .wrong_from = 1 };
  fake_case one;
  tm_violation_description found;
  (void)state;
  open_with(&one, &wrong);
  const tm_run_report report = fake_case_run(&one, NULL);
  assert_string_equal(fake_device_name(&one, report.device), "reference:0");
  assert_int_equal(report.retries, 1);
  assert_int_equal(report.fell_back, 1);
  assert_int_equal(count_violations(&one, &found), 1);
  assert_int_equal(found.count, 1);
  assert_string_equal(found.op_name, "neg");
  assert_string_equal(found.formats, "f32,f32");
  assert_non_null(strstr(found.reason, "a wrong result for neg: element 0 is 1000, the reference's is -0"));
  const uint64_t launches = atomic_load(&one.controls[0].launches);
  for (int i = 0; i < 10; i++) assert_string_equal(fake_device_name(&one, device_of_run(&one)), "reference:0");
  assert_int_equal(atomic_load(&one.controls[0].launches), launches);
  fake_case_close(&one);
}

/* Inputs are as they were, and nobody else is asked. */
static void strict_runs_fail(void **state) {
  const fake_control wrong = { .wrong_from = 1 };
  fake_case one;
  tm_error error = TM_ERROR_INIT;
  (void)state;
  open_with(&one, &wrong);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT,
                                   .on_failure = TM_ON_FAILURE_STRICT };
  assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &one.x, 1, &one.y, 1, &options, &error), TM_ERROR_INTERNAL);
  assert_non_null(strstr(error.text, "a wrong result for neg"));
  assert_non_null(strstr(error.text, "strict"));
  const float *x = tm_tensor_data(one.x);
  for (uint32_t i = 0; i < FAKE_ELEMENTS; i++) assert_true(x[i] == (float)i);
  fake_case_close(&one);
}

/* Runs until somebody else computes; the number of runs that were wrong. */
static uint32_t wrong_runs(fake_case *one, uint32_t most) {
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < most; i++) {
    tm_run_report report = { .struct_size = sizeof report };
    const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
    assert_int_equal(tm_run(one->context, TM_OP_NEG, NULL, 0, &one->x, 1, &one->y, 1, &options, NULL), TM_OK);
    const float *y = tm_tensor_data(one->y);
    bool is_right = true;
    for (uint32_t e = 0; e < FAKE_ELEMENTS; e++) is_right &= y[e] == -(float)e;
    if (strcmp(fake_device_name(one, report.device), "reference:0") == 0) {
      assert_true(is_right);
      return wrong;
    }
    wrong += !is_right;
  }
  fail_msg("it was never found out");
  return wrong;
}

/* A hundredth of a launch is worth less than one part: it is found after a few, and said how many may be wrong. */
static void wrong_later(void **state) {
  const fake_control wrong = { .real_ns = 5000, .wrong_from = 300 };
  fake_case one;
  tm_violation_description found;
  (void)state;
  open_with(&one, &wrong);
  const uint32_t count = wrong_runs(&one, 2000);
  assert_int_equal(count_violations(&one, &found), 1);
  unsigned long long said = 0;
  const char *text = strstr(found.reason, "may be wrong too: ");
  if (text != NULL) assert_int_equal(sscanf(text, "may be wrong too: %llu", &said), 1);
  assert_true(said >= count);
  fake_case_close(&one);
}

/* The last elements are always looked at, and a single one comes to its turn. */
static void wrong_in_places(void **state) {
  static const struct { uint64_t begin, end; uint32_t is_last, most_wrong; } places[] = {
    { 0, 1, 0, 0 }, { 0, 1, 1, 0 }, { 0, 3, 1, 0 }, { 500, 501, 0, 3000 }, { 777, 780, 0, 3000 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const fake_control wrong = { .real_ns = 50000, .wrong_from = 1, .wrong_begin = places[i].begin, .wrong_end = places[i].end,
                                 .wrong_is_last = places[i].is_last };
    fake_case one;
    open_with(&one, &wrong);
    assert_true(wrong_runs(&one, places[i].most_wrong + 1) <= places[i].most_wrong);
    fake_case_close(&one);
  }
}

/* What is wrong about one kind of work is held against that alone. */
static void wrong_at_one_operation(void **state) {
  const fake_control wrong = { .wrong_from = 1, .wrong_op = TM_OP_ADD };
  fake_case one;
  tm_violation_description found;
  (void)state;
  open_with(&one, &wrong);
  tm_tensor *const inputs[] = { one.x, one.x };
  assert_int_equal(tm_run(one.context, TM_OP_ADD, NULL, 0, inputs, 2, &one.y, 1, NULL, NULL), TM_OK);
  const float *y = tm_tensor_data(one.y);
  for (uint32_t e = 0; e < FAKE_ELEMENTS; e++) assert_true(y[e] == 2 * (float)e);
  assert_int_equal(count_violations(&one, &found), 1);
  assert_string_equal(found.op_name, "add");
  for (int i = 0; i < 50; i++) assert_string_equal(fake_device_name(&one, device_of_run(&one)), "fake_a:0");
  fake_case_close(&one);
}

/* ---- left alone ---- */

/* Within its class nobody is accused, however near the border: add within N2 of f32, neg and copy within so many ulp. */
static void what_keeps_its_promise_stays(void **state) {
  static const float specials[] = { 0.0f, -0.0f, 1, -1, 0x1p-149f, 0x1p-130f, 0x1.fffffep127f, INFINITY, -INFINITY, NAN, 1e-3f, 3e7f };
  static const fake_control promises[] = {
    { .numerics = TM_NUMERICS_N0 },
    { .numerics = TM_NUMERICS_N2, .numerics_bound = 1, .wrong_from = 1, .wrong_by = 0x1p-22f },
    { .numerics = TM_NUMERICS_N4, .wrong_from = 1 },
  };
  (void)state;
  for (size_t p = 0; p < sizeof promises / sizeof promises[0]; p++) {
    fake_case one;
    tm_violation_description found;
    open_with(&one, &promises[p]);
    float *x = tm_tensor_data(one.x);
    for (uint32_t i = 0; i < FAKE_ELEMENTS && promises[p].wrong_from == 0; i++) x[i] = specials[i % 12];
    for (uint32_t i = 0; i < FAKE_ELEMENTS && promises[p].wrong_from != 0; i++) x[i] = i % 2 ? 0.5f : -0.5f;
    const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N4,
                                     .device_plus_one = fake_device_index(&one, "fake_a:0") + 1 };
    tm_tensor *const inputs[] = { one.x, one.x };
    for (int i = 0; i < 50; i++) {
      assert_int_equal(tm_run(one.context, TM_OP_ADD, NULL, 0, inputs, 2, &one.y, 1, &options, NULL), TM_OK);
      if (p == 0) assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &one.x, 1, &one.y, 1, &options, NULL), TM_OK);
    }
    assert_int_equal(count_violations(&one, &found), 0);
    const bool is_looked_at = atomic_load(&device_at(&one, "fake_a:0")->checked_count) != 0;
    assert_int_equal(is_looked_at, p != 2);
    fake_case_close(&one);
  }
}

/* The reference is what others are compared with, and the built-in that runs on the host's cores is compiled with it. */
static void own_code_costs_nothing(void **state) {
  const fake_control never = { .only_op = TM_OP_ADD };
  fake_case one;
  (void)state;
  open_with(&one, &never);
  for (int i = 0; i < 100; i++) assert_string_equal(fake_device_name(&one, device_of_run(&one)), "reference:0");
  for (uint32_t i = 0; i < one.context->inventory->device_count; i++) {
    const tm_device_slot *device = one.context->inventory->devices[i];
    assert_int_equal(device->is_checked, strcmp(device->backend->name, "fake_a") == 0);
    assert_int_equal(atomic_load(&device->checked_count), 0);
  }
  fake_case_close(&one);
}

/* ---- what it costs ---- */

/* Never more than the grant and one hundredth of the time, in the reference's price. */
static void it_costs_one_hundredth(void **state) {
  const fake_control busy = { .real_ns = 300000 };
  fake_case one;
  (void)state;
  open_with(&one, &busy);
  uint64_t earlier = 0;
  for (uint32_t i = 0; i < 300; i++) {
    (void)device_of_run(&one);
    const tm_device_slot *device = device_at(&one, "fake_a:0");
    const tm_trial *trial = device->trials;
    assert_non_null(trial);
    assert_null(trial->next);
    const uint64_t spent = atomic_load(&trial->checked_ns);
    assert_true(spent <= TM_CHECK_GRANT_NS + atomic_load(&trial->worked_ns) / TM_CHECK_ONE_IN);
    if (i == TM_TRIAL_RUNS) earlier = spent;
  }
  const tm_trial *trial = device_at(&one, "fake_a:0")->trials;
  assert_true(earlier != 0);                                    /* the first runs were looked at */
  assert_true(atomic_load(&trial->checked_ns) > earlier);       /* and later ones, as time went by */
  assert_true(atomic_load(&trial->worked_ns) >= 300 * UINT64_C(300000));
  fake_case_close(&one);
}

/* ---- streams ---- */

/* The caller's own device is wrong, or its helper, from one moment or another: each piece is right, or comes after those of which was
   said that they may be wrong. */
static void streams_end_right(void **state) {
  static stream_case one;
  (void)state;
  for (uint32_t who = 0; who < 2; who++) {
    prepare(&one, LONG_NS + LONG_NS / 10);
    atomic_store(&one.fakes.controls[who].wrong_from, 1);
    one.waits_for_helper = who == 1;            /* else it is the only one that is left */
    open_stream(&one, "ab", "reference");
    if (run(&one, false) != TM_OK) fail_msg("%u is wrong: %s", who, one.error.text);
    assert_whole(&one);
    assert_true(one.notes + one.retries != 0);
    fake_case_close(&one.fakes);
  }
}

/* Small pieces, many at once: one wrong result and the batch is given up, and each piece is run by itself elsewhere. */
static void batches_end_right(void **state) {
  static const tm_identity own_memory = { { 5 } };
  static stream_case one;
  (void)state;
  for (uint32_t is_far = 0; is_far < 2; is_far++) {
    prepare(&one, 0);
    one.small_bytes = PIECE_BYTES;
    one.count = MOST_PIECES;
    fake_control *control = &one.fakes.controls[0];
    control->cost_ns = 1000;
    control->real_ns = 20000;
    control->is_asynchronous = 1;
    control->wrong_from = 4 + TM_TRIAL_RUNS;                    /* once it is proven; everywhere, or a look may miss it */
    if (is_far) control->memory = own_memory;
    one.is_lenient = true;
    one.fakes.controls[1].cost_ns = LONG_NS;
    one.fakes.controls[1].resource = control->resource = silicon;       /* so that neither helps the other */
    open_stream(&one, "ab", "reference");
    if (run(&one, false) != TM_OK) fail_msg("%s", one.error.text);
    assert_whole(&one);
    tm_violation_description found;
    assert_int_equal(count_violations(&one.fakes, &found), 1);
    unsigned long long said = 0;
    const char *text = strstr(found.reason, "may be wrong too: ");
    if (text != NULL) assert_int_equal(sscanf(text, "may be wrong too: %llu", &said), 1);
    if (said < one.wrong) fail_msg("%llu pieces may be wrong, %llu are: %s", said, (unsigned long long)one.wrong, found.reason);
    assert_true(one.batch_notes != 0);
    fake_case_close(&one.fakes);
  }
}

/* ---- plans ---- */

typedef struct chain {
  fake_case  fakes;
  tm_graph  *graph;
  tm_plan   *plan;
} chain;

/* y = -(-(x + x)), so that the second of its steps may write where it reads. */
static void open_chain(chain *c, const fake_control *control) {
  memset(c, 0, sizeof *c);
  c->fakes.controls[0] = *control;
  fake_case_open(&c->fakes, "a", NULL);
  atomic_store(&c->fakes.context->correction.is_frozen, true);
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 1, .dims = { FAKE_ELEMENTS } };
  uint32_t x = 0, sum = 0, once = 0, twice = 0;
  assert_int_equal(tm_graph_create(c->fakes.context, &c->graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(c->graph, "x", &layout, &x, NULL), TM_OK);
  const uint32_t both[] = { x, x };
  assert_int_equal(tm_graph_node(c->graph, NULL, TM_OP_ADD, NULL, 0, both, 2, NULL, 1, &sum, NULL), TM_OK);
  assert_int_equal(tm_graph_node(c->graph, NULL, TM_OP_NEG, NULL, 0, &sum, 1, NULL, 1, &once, NULL), TM_OK);
  assert_int_equal(tm_graph_node(c->graph, NULL, TM_OP_NEG, NULL, 0, &once, 1, NULL, 1, &twice, NULL), TM_OK);
  assert_int_equal(tm_graph_output(c->graph, "y", twice, NULL), TM_OK);
  tm_error error = TM_ERROR_INIT;
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .wait_for_prepare = 1 };
  if (tm_plan_create(c->graph, &options, &c->plan, &error) != TM_OK) fail_msg("%s", error.text);
}

static void close_chain(chain *c) {
  tm_plan_destroy(c->plan);
  tm_graph_destroy(c->graph);
  fake_case_close(&c->fakes);
}

/* Whether the result is right. */
static bool run_chain(chain *c, tm_plan_report *out_report) {
  tm_error error = TM_ERROR_INIT;
  *out_report = (tm_plan_report){ .struct_size = sizeof *out_report };
  if (tm_plan_run(c->plan, &c->fakes.x, 1, &c->fakes.y, 1, out_report, &error) != TM_OK) fail_msg("%s", error.text);
  const float *x = tm_tensor_data(c->fakes.x), *y = tm_tensor_data(c->fakes.y);
  bool is_right = true;
  for (uint32_t e = 0; e < FAKE_ELEMENTS; e++) {
    assert_true(x[e] == (float)e);
    is_right &= y[e] == 2 * (float)e;
  }
  return is_right;
}

static const fake_control plan_devices[] = {
  { .real_ns = 20000 },
  { .real_ns = 20000, .is_asynchronous = 1 },
  { .real_ns = 20000, .is_asynchronous = 1, .memory = { { 5 } } },
};
#define PLAN_DEVICES (sizeof plan_devices / sizeof plan_devices[0])

/* From the first launch on no result is wrong; from a later one on it is found in a replay that is measured, that one is right, and it
   is said how many before it may not be. */
static void plans_end_right(void **state) {
  static const uint32_t ops[] = { TM_OP_ADD, TM_OP_NEG };
  (void)state;
  for (size_t d = 0; d < PLAN_DEVICES; d++)
    for (uint32_t i = 0; i < 4; i++) {
      fake_control control = plan_devices[d];
      const bool is_late = i >= 2;
      control.wrong_from = is_late ? 1000 : 1;
      control.wrong_op = ops[i % 2];
      chain c;
      tm_plan_report report = { .note = "" };
      tm_violation_description found = { .count = 0 };
      uint32_t wrong = 0, runs = 0;
      open_chain(&c, &control);
      for (; count_violations(&c.fakes, &found) == 0 && runs < 2000; runs++) wrong += !run_chain(&c, &report);
      assert_int_equal(count_violations(&c.fakes, &found), 1);
      if (!is_late) assert_int_equal(runs, 1);
      if (!is_late) assert_int_equal(wrong, 0);
      assert_true(run_chain(&c, &report));
      assert_int_equal(found.op, ops[i % 2]);
      unsigned long long said = 0;
      const char *text = strstr(found.reason, "may be wrong too: ");
      if (text != NULL) assert_int_equal(sscanf(text, "may be wrong too: %llu", &said), 1);
      assert_true(said >= wrong);
      for (int more = 0; more < 100; more++) assert_true(run_chain(&c, &report));
      close_chain(&c);
    }
}

/* What is never wrong is looked at now and then, within what that may cost, and replayed undisturbed. */
static void plans_cost_one_hundredth(void **state) {
  (void)state;
  for (size_t d = 0; d < PLAN_DEVICES; d++) {
    chain c;
    tm_plan_report report;
    tm_violation_description found;
    open_chain(&c, &plan_devices[d]);
    for (uint32_t i = 0; i < 800; i++) assert_true(run_chain(&c, &report));
    assert_int_equal(report.replayed, 1);
    assert_int_equal(count_violations(&c.fakes, &found), 0);
    uint32_t kinds = 0;
    for (const tm_trial *trial = device_at(&c.fakes, "fake_a:0")->trials; trial != NULL; trial = trial->next, kinds++) {
      assert_true(atomic_load(&trial->check_count) > TM_TRIAL_RUNS);
      assert_true(atomic_load(&trial->checked_ns) <= TM_CHECK_GRANT_NS + atomic_load(&trial->worked_ns) / TM_CHECK_ONE_IN);
    }
    assert_int_equal(kinds, 2);
    close_chain(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(wrong_from_the_first_launch),
    cmocka_unit_test(strict_runs_fail),
    cmocka_unit_test(wrong_later),
    cmocka_unit_test(wrong_in_places),
    cmocka_unit_test(wrong_at_one_operation),
    cmocka_unit_test(what_keeps_its_promise_stays),
    cmocka_unit_test(own_code_costs_nothing),
    cmocka_unit_test(it_costs_one_hundredth),
    cmocka_unit_test(streams_end_right),
    cmocka_unit_test(batches_end_right),
    cmocka_unit_test(plans_end_right),
    cmocka_unit_test(plans_cost_one_hundredth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
