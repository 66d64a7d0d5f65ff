/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs over this device, the processor and the reference, each node where chance puts it. */
#include "unit/execute/plan_chance.h"

static void random_mixes_are_what_their_nodes_are(void **state) {
  (void)state;
  const char *library = getenv("TENSORMORPH_WEBGPU_LIBRARY");
  const tm_setting setting = { "webgpu", "library", library };
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = 2, .settings = &setting,
                                       .setting_count = library != NULL ? 1 : 0 };
  const tm_plan_options loose = { .struct_size = sizeof loose, .worst_numerics = TM_NUMERICS_DEFAULT, .wait_for_prepare = 1 };
  uint32_t node_counts[64] = { 0 };
  tm_context *context = open_context(&options);
  const uint32_t device = device_of(context, "webgpu:0");
  if (device == TM_ANY_DEVICE) {
    print_message("%s\n", backend_of(context, "webgpu").reason);
    tm_context_destroy(context);
    skip();
  }
  for (uint64_t seed = 1; seed <= 12; seed++) plan_chance_try(context, &loose, seed, 16, 1e-3, node_counts);
  assert_true(node_counts[device] > 10);
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(random_mixes_are_what_their_nodes_are) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
