/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are not to be used: why, in their own words, and that nobody asks them anything. */
#include "fakes/fake_case.h"

static tm_status query_neg(tm_context *context, uint32_t device, tm_support *out_support) {
  *out_support = (tm_support){ .struct_size = sizeof *out_support };
  return tm_support_query(context, device, TM_OP_NEG, TM_FORMAT_F32, out_support);
}

static uint32_t find_device(tm_context *context, const char *name, tm_device_description *out_device) {
  uint32_t index = 0;
  *out_device = (tm_device_description){ .struct_size = sizeof *out_device };
  while (tm_device_describe(context, index, out_device) == TM_OK && strcmp(out_device->name, name) != 0) index++;
  assert_string_equal(out_device->name, name);
  return index;
}

static void refused_unasked(fake_case *one, const char *name, uint32_t state) {
  tm_device_description description;
  const uint32_t device = find_device(one->context, name, &description);
  assert_int_equal(description.state, state);
  assert_true(strlen(description.reason) > 0);
  const uint64_t before = atomic_load(&one->controls[0].queries);
  tm_support support;
  assert_int_equal(query_neg(one->context, device, &support), TM_OK);
  assert_int_equal(support.level, TM_LEVEL_REFUSED);
  assert_int_equal(support.reasons, 0);
  assert_int_equal(atomic_load(&one->controls[0].queries), before);
  assert_int_equal(tm_support_query(one->context, device, TM_OP_NEG, TM_FORMAT_GGUF + 12, &support), TM_UNSUPPORTED);
}

static void a_ready_device_is_asked(void **state) {
  (void)state;
  static fake_case one;
  memset(&one, 0, sizeof one);
  fake_case_open(&one, "a", NULL);
  tm_device_description description;
  tm_support support;
  const uint32_t device = find_device(one.context, "fake_a:0", &description);
  assert_string_equal(description.reason, "");
  assert_int_equal(query_neg(one.context, device, &support), TM_OK);
  assert_int_equal(support.level, TM_LEVEL_NATIVE);
  assert_int_equal(atomic_load(&one.controls[0].queries), 1);
  fake_case_close(&one);
}

static void an_excluded_device_is_not_asked(void **state) {
  (void)state;
  static fake_case one;
  memset(&one, 0, sizeof one);
  fake_case_open(&one, "a", "fake_a:0");
  refused_unasked(&one, "fake_a:0", TM_DEVICE_EXCLUDED);
  fake_case_close(&one);
}

static void a_lost_device_is_not_asked(void **state) {
  (void)state;
  static fake_case one;
  memset(&one, 0, sizeof one);
  one.controls[0].cost_ns = 1;
  atomic_store(&one.controls[0].launch_status, TM_ERROR_DEVICE_LOST);
  fake_case_open(&one, "a", NULL);
  assert_int_equal(fake_case_run(&one, NULL).retries, 1);
  refused_unasked(&one, "fake_a:0", TM_DEVICE_LOST);
  fake_case_close(&one);
}

static void assert_reason(tm_context *context, const char *name, uint32_t state, const char *reason) {
  tm_device_description description;
  (void)find_device(context, name, &description);
  assert_int_equal(description.state, state);
  assert_string_equal(description.reason, reason);
}

/* A plugin with several devices, of which one is asked for and another is excluded. */
static void the_reason_is_the_true_one(void **state) {
  (void)state;
  static const char *const plugin[] = { TM_BINARY_DIR "/tests/zoo/eager.so" };
  static const char *const asked[] = { "zoo_eager:1", "zoo_eager:2" }, *const excluded[] = { "zoo_eager:2" };
  const tm_context_options options = {
    .struct_size = sizeof options,
    .thread_count = 1,
    .plugin_paths = plugin,
    .plugin_path_count = 1,
    .devices = asked,
    .device_count = 2,
    .excluded_devices = excluded,
    .excluded_device_count = 1,
  };
  tm_context *context = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_context_create(&options, &context, &error) != TM_OK) fail_msg("%s", error.text);
  assert_reason(context, "zoo_eager:0", TM_DEVICE_EXCLUDED, "not among the devices asked for");
  assert_reason(context, "zoo_eager:1", TM_DEVICE_READY, "");
  assert_reason(context, "zoo_eager:2", TM_DEVICE_EXCLUDED, "excluded by request");
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_ready_device_is_asked),
    cmocka_unit_test(an_excluded_device_is_not_asked),
    cmocka_unit_test(a_lost_device_is_not_asked),
    cmocka_unit_test(the_reason_is_the_true_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
