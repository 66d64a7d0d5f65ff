/* SPDX-License-Identifier: Apache-2.0 */
/* A built-in whose init takes long is listed from what is kept of it, like a file; one that is quick is started each time.
   The list of built-ins is this test's own; so is the probe's that it is run with. */
#define _GNU_SOURCE
#include "formats/scratch.h"
#include "fakes/fake_builtins.h"
#include "plugin_case.h"

static char folder_of_state[512];
static scratch folder;

static int begin(void **state) {
  (void)state;
  atomic_store(&slow_inits, 0);
  atomic_store(&quick_inits, 0);
  atomic_store(&held_up_inits, 0);
  assert_int_equal(setenv("TENSORMORPH_PROBE", TM_BINARY_DIR "/tests/fakes/probe_of_fake_builtins", 1), 0);
  assert_true(scratch_init(&folder));
  snprintf(folder_of_state, sizeof folder_of_state, "%s/state", folder.folder);
  return 0;
}

static int end(void **state) {
  (void)state;
  scratch inner;
  snprintf(inner.folder, sizeof inner.folder, "%.240s/backends", folder_of_state);
  scratch_deinit(&inner);
  snprintf(inner.folder, sizeof inner.folder, "%.250s", folder_of_state);
  scratch_deinit(&inner);
  scratch_deinit(&folder);
  return 0;
}

static tm_context *open_with(const char *value) {
  static tm_setting setting;
  setting = (tm_setting){ "slow_built_in", "mood", value };
  const tm_context_options context_options = { .struct_size = sizeof context_options, .state_folder = folder_of_state,
                                               .settings = &setting, .setting_count = value != NULL };
  return open_context(&context_options);
}

static void a_slow_one_sleeps_from_the_second_time_on(void **state) {
  (void)state;
  tm_context *first = open_with(NULL);
  assert_int_equal(atomic_load(&slow_inits), 1);
  tm_context *second = open_with(NULL);
  assert_int_equal(atomic_load(&slow_inits), 1);
  assert_int_equal(atomic_load(&quick_inits), 2);
  assert_string_equal(describe_device(first, "slow_built_in:0").description, describe_device(second, "slow_built_in:0").description);
  assert_string_equal(describe_device(first, "slow_built_in:0").uuid, describe_device(second, "slow_built_in:0").uuid);
  tm_support support = { .struct_size = sizeof support };
  assert_int_equal(tm_support_query(second, device_of(second, "slow_built_in:0"), TM_OP_NEG, TM_FORMAT_F32, &support), TM_OK);
  assert_int_equal(atomic_load(&slow_inits), 2);
  expect_state(second, "slow_built_in", TM_BACKEND_READY, "");
  tm_context_destroy(second);
  tm_context_destroy(first);
}

/* However long its init took: what is at hand does the first operations of a program, too. */
static void one_that_is_at_hand_never_sleeps(void **state) {
  (void)state;
  tm_context_destroy(open_with(NULL));
  tm_context *second = open_with(NULL);
  assert_int_equal(atomic_load(&held_up_inits), 2);
  assert_int_equal(atomic_load(&slow_inits), 1);
  expect_state(second, "held_up_built_in", TM_BACKEND_READY, "");
  tm_context_destroy(second);
}

static void each_setting_is_its_own(void **state) {
  (void)state;
  tm_context_destroy(open_with("bad"));
  tm_context_destroy(open_with("worse"));
  assert_int_equal(atomic_load(&slow_inits), 2);
  tm_context *context = open_with("bad");
  assert_int_equal(atomic_load(&slow_inits), 2);
  tm_option_description option = { .struct_size = sizeof option };
  assert_int_equal(tm_backend_option_describe(context, 1, 0, &option), TM_OK);
  assert_string_equal(option.value, "bad");
  assert_string_equal(option.default_value, "good");
  tm_context_destroy(context);
}

/* What a pointer leads to no record can have seen. */
static void one_with_pointers_never_sleeps(void **state) {
  (void)state;
  const tm_named_pointer pointer = { "slow_built_in", "device", &folder };
  tm_context_destroy(open_with(NULL));
  const tm_context_options context_options = { .struct_size = sizeof context_options, .state_folder = folder_of_state,
                                               .pointers = &pointer, .pointer_count = 1 };
  tm_context_destroy(open_context(&context_options));
  assert_int_equal(atomic_load(&slow_inits), 2);
}

/* The trial's process told which variables matter: only those do. */
static void a_variable_that_it_asks_for_counts(void **state) {
  (void)state;
  tm_context_destroy(open_with(NULL));
  assert_int_equal(setenv("NOBODY_LOOKS_AT_THIS", "1", 1), 0);
  tm_context_destroy(open_with(NULL));
  assert_int_equal(atomic_load(&slow_inits), 1);
  assert_int_equal(setenv("FAKE_DRIVER_FAILS", "1", 1), 0);
  tm_context *context = open_with(NULL);
  expect_state(context, "slow_built_in", TM_BACKEND_REFUSED, "could not start");
  tm_context_destroy(context);
  assert_int_equal(unsetenv("FAKE_DRIVER_FAILS"), 0);
  assert_int_equal(unsetenv("NOBODY_LOOKS_AT_THIS"), 0);
  tm_context_destroy(open_with(NULL));
  assert_int_equal(atomic_load(&slow_inits), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_slow_one_sleeps_from_the_second_time_on, begin, end),
    cmocka_unit_test_setup_teardown(one_that_is_at_hand_never_sleeps, begin, end),
    cmocka_unit_test_setup_teardown(each_setting_is_its_own, begin, end),
    cmocka_unit_test_setup_teardown(a_variable_that_it_asks_for_counts, begin, end),
    cmocka_unit_test_setup_teardown(one_with_pointers_never_sleeps, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
