/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in files: they come back as they were, or say what is different; and plans are the same whenever they are made. */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "unit/execute/lazy_case.h"

static lazy_case machine;
static char path[64];

static int begin(void **state) {
  (void)state;
  snprintf(path, sizeof path, "/tmp/tensormorph-plan-%ld", (long)getpid());
  return 0;
}

static int end(void **state) {
  (void)state;
  (void)unlink(path);
  return 0;
}

static void open_machine(uint32_t is_swapped, uint64_t cost_seed) {
  memset(&machine, 0, sizeof machine);
  machine.is_swapped = is_swapped;
  for (uint32_t i = 0; i < LAZY_COUNT; i++) {
    machine.controls[i].cost_spread_ns = 10000000;
    machine.controls[i].cost_seed = cost_seed;
    machine.controls[i].aliases = i != 1;
  }
  machine.controls[2].is_host = 1;
  lazy_case_open(&machine);
}

static void close_machine(plan_case *one) {
  plan_case_destroy(one);
  lazy_case_close(&machine);
}

static void digest_of(uint32_t is_swapped, uint64_t seed, uint8_t digest[TM_PLAN_DIGEST_BYTES]) {
  plan_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  open_machine(is_swapped, seed);
  plan_case_build(&one, machine.context, seed, 25);
  one.plan = lazy_plan(one.graph, &options);
  tm_plan_digest(one.plan, digest);
  close_machine(&one);
}

static void a_plan_is_the_same_whenever_it_is_made(void **state) {
  (void)state;
  uint8_t first[TM_PLAN_DIGEST_BYTES], again[TM_PLAN_DIGEST_BYTES], other[TM_PLAN_DIGEST_BYTES];
  const uint32_t times = getenv("TM_NIGHTLY") != NULL ? 100 : 12;
  digest_of(0, 31, first);
  for (uint32_t i = 0; i < times; i++) {
    digest_of(i % 2, 31, again);
    assert_memory_equal(first, again, sizeof first);
  }
  digest_of(0, 32, other);
  assert_memory_not_equal(first, other, sizeof first);
}

static void a_hundred_plans_of_one_graph_are_one(void **state) {
  (void)state;
  plan_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  uint8_t first[TM_PLAN_DIGEST_BYTES], again[TM_PLAN_DIGEST_BYTES];
  open_machine(0, 5);
  plan_case_build(&one, machine.context, 5, 25);
  one.plan = lazy_plan(one.graph, &options);
  tm_plan_digest(one.plan, first);
  for (uint32_t i = 0; i < 100; i++) {
    tm_plan *plan = lazy_plan(one.graph, &options);
    tm_plan_digest(plan, again);
    assert_memory_equal(first, again, sizeof first);
    tm_plan_destroy(plan);
  }
  close_machine(&one);
}

static void save(plan_case *one, uint64_t seed) {
  const tm_plan_options options = LAZY_OPTIONS;
  plan_case_build(one, machine.context, seed, 25);
  one->plan = lazy_plan(one->graph, &options);
  assert_int_equal(tm_plan_save(one->plan, path, NULL), TM_OK);
}

/* A plan that was saved is taken although others would be chosen now. */
static void a_saved_plan_comes_back(void **state) {
  (void)state;
  plan_case one;
  plan_oracle oracle;
  uint8_t saved[TM_PLAN_DIGEST_BYTES], loaded[TM_PLAN_DIGEST_BYTES];
  open_machine(0, 41);
  save(&one, 9);
  tm_plan_digest(one.plan, saved);
  close_machine(&one);

  const tm_plan_options options = LAZY_OPTIONS;
  tm_error error = TM_ERROR_INIT;
  tm_plan *pinned = NULL;
  uint32_t step = 0;
  open_machine(1, 42);
  plan_case_build(&one, machine.context, 9, 25);
  if (tm_plan_load(one.graph, path, &options, &pinned, &error) != TM_OK) fail_msg("%s", error.text);
  tm_plan_digest(pinned, loaded);
  assert_memory_equal(saved, loaded, sizeof saved);
  one.plan = lazy_plan(one.graph, &options);
  assert_int_equal(tm_plan_compare(pinned, one.plan, &step, NULL), TM_OK);
  assert_int_equal(tm_plan_compare(pinned, pinned, &step, NULL), TM_END);
  tm_plan_destroy(one.plan);
  one.plan = pinned;
  plan_oracle_init(&oracle, &one);
  for (uint64_t run = 0; run < 8; run++) (void)plan_case_run(&one, &oracle, 0, 500 + run);
  plan_oracle_deinit(&oracle, &one);
  close_machine(&one);
}

static void expect_same_story(const tm_plan *saved, const tm_plan *loaded, uint64_t seed, uint32_t wish) {
  tm_plan_description one = { .struct_size = sizeof one }, other = { .struct_size = sizeof other };
  tm_plan_describe(saved, &one);
  tm_plan_describe(loaded, &other);
  if (one.predicted_ns == other.predicted_ns && one.additive_ns == other.additive_ns && one.overlaps == other.overlaps) return;
  fail_msg("seed %llu, wish %u: %llu ns, %llu ns one after the other, loaded %llu and %llu", (unsigned long long)seed, wish,
           (unsigned long long)one.predicted_ns, (unsigned long long)one.additive_ns, (unsigned long long)other.predicted_ns,
           (unsigned long long)other.additive_ns);
}

/* Whatever it was chosen for. */
static void a_loaded_plan_is_told_like_the_saved_one(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    plan_case one;
    open_machine(0, seed);
    plan_case_build(&one, machine.context, seed, 12);
    for (uint32_t wish = 0; wish < 4; wish++) {
      tm_plan_options options = LAZY_OPTIONS;
      tm_plan *loaded = NULL;
      tm_error error = TM_ERROR_INIT;
      options.one_resource = wish == 1;
      options.latency_permille = wish == 2 ? 500 : 0;
      options.throughput_permille = wish == 2 ? 500 : 0;
      options.memory_permille = wish >= 2 ? 1000 : 0;
      one.plan = lazy_plan(one.graph, &options);
      assert_int_equal(tm_plan_save(one.plan, path, NULL), TM_OK);
      if (tm_plan_load(one.graph, path, &options, &loaded, &error) != TM_OK) fail_msg("%s", error.text);
      expect_same_story(one.plan, loaded, seed, wish);
      tm_plan_destroy(loaded);
      tm_plan_destroy(one.plan);
      one.plan = NULL;
    }
    close_machine(&one);
  }
}

/* A plan on one device is one plan wherever that device is, whatever else there is, and wants of memory. */
static void devices_that_are_not_used_have_no_say(void **state) {
  (void)state;
  static const uint32_t alignments[] = { 0, 4096, 0, 4096 };
  for (uint32_t on = 0; on < LAZY_COUNT; on++) {
    tm_plan_options options = LAZY_OPTIONS;
    uint8_t first[TM_PLAN_DIGEST_BYTES], again[TM_PLAN_DIGEST_BYTES];
    options.devices = &lazy_names[on];
    options.device_count = 1;
    for (uint32_t i = 0; i < 4; i++) {
      plan_case one;
      tm_error error = TM_ERROR_INIT;
      memset(&machine, 0, sizeof machine);
      machine.is_alone = i / 2;
      for (uint32_t k = 0; k < LAZY_COUNT; k++)
        machine.controls[k] = (lazy_control){ .is_host = k != 1, .alignment = k == on ? 0 : alignments[i], .aliases = 1 };
      lazy_case_open(&machine);
      plan_case_build(&one, machine.context, 9, 25);
      if (i == 0) one.plan = lazy_plan(one.graph, &options);
      else if (tm_plan_load(one.graph, path, &options, &one.plan, &error) != TM_OK) fail_msg("%s, %u: %s", lazy_names[on], i, error.text);
      if (i == 0) assert_int_equal(tm_plan_save(one.plan, path, NULL), TM_OK);
      tm_plan_digest(one.plan, i == 0 ? first : again);
      if (i != 0) assert_memory_equal(first, again, sizeof first);
      close_machine(&one);
    }
  }
}

static void expect_refusal(const char *words, tm_status expected) {
  plan_case one;
  const tm_plan_options options = LAZY_OPTIONS;
  tm_error error = TM_ERROR_INIT;
  plan_case_build(&one, machine.context, 9, 25);
  const tm_status status = tm_plan_load(one.graph, path, &options, &one.plan, &error);
  if (status != expected || strstr(error.text, words) == NULL)
    fail_msg("%d '%s', expected %d '%s'", (int)status, error.text, (int)expected, words);
  close_machine(&one);
}

static void what_is_different_is_named(void **state) {
  (void)state;
  plan_case one;
  open_machine(0, 41);
  save(&one, 9);
  close_machine(&one);

  open_machine(0, 41);
  machine.controls[0].refused_op = machine.controls[1].refused_op = machine.controls[2].refused_op = TM_OP_MUL;
  expect_refusal("mul", TM_ERROR_NO_DEVICE);
  open_machine(0, 41);
  machine.controls[0].aliases = machine.controls[2].aliases = 0;
  expect_refusal("in place", TM_ERROR_NO_DEVICE);

  tm_error error = TM_ERROR_INIT;
  tm_plan *plan = NULL;
  tm_plan_options without = LAZY_OPTIONS;
  open_machine(0, 41);
  plan_case_build(&one, machine.context, 9, 25);
  without.excluded_devices = lazy_names;
  without.excluded_device_count = LAZY_COUNT;
  without.device_count = 0;
  assert_int_equal(tm_plan_load(one.graph, path, &without, &plan, &error), TM_ERROR_NO_DEVICE);
  assert_non_null(strstr(error.text, ": not allowed for this plan"));
  close_machine(&one);

  const tm_context_options bare = { .struct_size = sizeof bare };
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(&bare, &context, NULL), TM_OK);
  plan_case_build(&one, context, 9, 25);
  assert_int_equal(tm_plan_load(one.graph, path, NULL, &plan, &error), TM_ERROR_NO_DEVICE);
  assert_non_null(strstr(error.text, "lazy_"));
  plan_case_destroy(&one);
  plan_case_build(&one, context, 10, 25);
  assert_int_equal(tm_plan_load(one.graph, path, NULL, &plan, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "another graph"));
  plan_case_destroy(&one);
  plan_case_build(&one, context, 10, 24);
  assert_int_equal(tm_plan_load(one.graph, path, NULL, &plan, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "24"));
  assert_int_equal(tm_plan_load(one.graph, "/nowhere/at/all", NULL, &plan, &error), TM_ERROR_NOT_FOUND);
  assert_int_equal(tm_plan_load(one.graph, NULL, NULL, &plan, &error), TM_ERROR_ARGUMENT);
  plan_case_destroy(&one);
  tm_context_destroy(context);
}

/* A graph that was saved and loaded is the same one to a plan, whatever strides its axes of one element had. */
static void a_plan_is_of_the_graph_that_was_loaded(void **state) {
  (void)state;
  static char graph_path[80];
  tm_context *context = NULL;
  tm_graph *graph = NULL, *loaded = NULL;
  tm_plan *plan = NULL, *again = NULL;
  tm_error error = TM_ERROR_INIT;
  uint32_t x, view;
  const tm_context_options bare = { .struct_size = sizeof bare };
  const tm_operand row = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 1, PLAN_SIDE }, .strides_bytes = { 256, 4 } };
  uint8_t first[TM_PLAN_DIGEST_BYTES], second[TM_PLAN_DIGEST_BYTES];
  snprintf(graph_path, sizeof graph_path, "%s.graph", path);
  assert_int_equal(tm_context_create(&bare, &context, NULL), TM_OK);
  assert_int_equal(tm_graph_create(context, &graph, NULL), TM_OK);
  assert_int_equal(tm_graph_input(graph, "x", &plan_matrix, &x, NULL), TM_OK);
  assert_int_equal(tm_graph_view(graph, x, &row, 32, &view, NULL), TM_OK);
  assert_int_equal(tm_graph_output(graph, "y", plan_add_node(graph, TM_OP_NEG, view, view), NULL), TM_OK);
  assert_int_equal(tm_plan_create(graph, NULL, &plan, NULL), TM_OK);
  assert_int_equal(tm_plan_save(plan, path, NULL), TM_OK);
  assert_int_equal(tm_graph_save(graph, graph_path, 0, NULL), TM_OK);
  assert_int_equal(tm_graph_load(context, graph_path, &loaded, NULL), TM_OK);
  if (tm_plan_load(loaded, path, NULL, &again, &error) != TM_OK) fail_msg("%s", error.text);
  tm_plan_digest(plan, first);
  tm_plan_digest(again, second);
  assert_memory_equal(first, second, sizeof first);
  (void)unlink(graph_path);
  tm_plan_destroy(again);
  tm_plan_destroy(plan);
  tm_graph_destroy(loaded);
  tm_graph_destroy(graph);
  tm_context_destroy(context);
}

/* Every beginning of it, and every byte of it changed, is told to be damage; never that it is of another graph or device. */
static void damage_is_told(void **state) {
  (void)state;
  plan_case one;
  static char bytes[65536];
  open_machine(0, 41);
  save(&one, 9);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t length = fread(bytes, 1, sizeof bytes, file);
  (void)fclose(file);
  assert_true(length > 100 && length < sizeof bytes);
  for (size_t at = 0; at < length; at++) {
    for (uint32_t cut = 0; cut < 2; cut++) {
      const char kept = bytes[at];
      tm_plan *plan = NULL;
      tm_error error = TM_ERROR_INIT;
      bytes[at] = (char)(kept ^ 0x15);
      file = fopen(path, "wb");
      assert_non_null(file);
      assert_int_equal(fwrite(bytes, 1, cut ? at : length, file), cut ? at : length);
      assert_int_equal(fclose(file), 0);
      bytes[at] = kept;
      const tm_status status = tm_plan_load(one.graph, path, NULL, &plan, &error);
      assert_int_equal(status, TM_ERROR_CORRUPT);
      assert_true(error.text[0] != '\0');
    }
  }
  close_machine(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_plan_is_the_same_whenever_it_is_made),
    cmocka_unit_test(a_hundred_plans_of_one_graph_are_one),
    cmocka_unit_test(a_saved_plan_comes_back),
    cmocka_unit_test(a_loaded_plan_is_told_like_the_saved_one),
    cmocka_unit_test(devices_that_are_not_used_have_no_say),
    cmocka_unit_test(what_is_different_is_named),
    cmocka_unit_test(a_plan_is_of_the_graph_that_was_loaded),
    cmocka_unit_test(damage_is_told),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
