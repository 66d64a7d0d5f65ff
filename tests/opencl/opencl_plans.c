/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs over this device, the processor and the reference, each node where chance puts it, in any order. */
#include "unit/execute/plan_chance.h"

#define SKIPPED 77

static int is_skipped;

/* More with TM_NIGHTLY=1. */
static uint64_t graph_count(void) { return getenv("TM_NIGHTLY") != NULL ? 60 : 5; }

static void random_mixes_are_what_their_nodes_are(void **state) {
  (void)state;
  const char *const plugins[] = { getenv("TM_PLUGIN") };
  const tm_setting setting = { "opencl", "specialize", "0" };   /* one program for all shapes: it is not about programs here */
  tm_context_options options = options_with(plugins, 1);
  options.settings = &setting;
  options.setting_count = 1;
  const tm_plan_options loose = { .struct_size = sizeof loose, .worst_numerics = TM_NUMERICS_DEFAULT, .wait_for_prepare = 1 };
  uint32_t node_counts[64] = { 0 };
  assert_non_null(plugins[0]);
  tm_context *context = open_context(&options);
  const uint32_t device = device_of(context, "opencl:0");
  if (device == TM_ANY_DEVICE) {
    print_message("skipped: %s\n", backend_of(context, "opencl").reason);
    tm_context_destroy(context);
    is_skipped = 1;
    skip();
  }
  for (uint64_t seed = 1; seed <= graph_count(); seed++) plan_chance_try(context, &loose, seed, 16, 1e-3, node_counts);
  assert_true(node_counts[device] > 10);
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(random_mixes_are_what_their_nodes_are) };
  const int failures = cmocka_run_group_tests(tests, NULL, NULL);
  return failures == 0 && is_skipped ? SKIPPED : failures;
}
