/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hundred plans have one digest: in whatever order plugins are loaded, however many threads there are, and whichever compiler
 * built all of it.  For the last, two builds compare with the digest below.
 */
#include "base/sha256.h"
#include "unit/execute/lazy_case.h"

#define PLANS 100u
#define ORDERS 6u

/* It is another one when a method changes, or the version: then take the one that is printed, after a look that builds of two
   compilers print the same. */
static const char expected[] = "b8cca921cd8b26d6d88a61f0fe1c9478ce9baa0e0c6a47decdd16593c91f6315";

static void open_machine(lazy_case *machine, uint32_t order) {
  memset(machine, 0, sizeof *machine);
  machine->order = order;
  machine->thread_count = 1 + order % 3;
  for (uint32_t i = 0; i < LAZY_COUNT; i++) {
    machine->controls[i].cost_spread_ns = 100000;
    machine->controls[i].cost_seed = 11;
    machine->controls[i].aliases = i != 1;
    machine->controls[i].is_prompt = i == 0;
  }
  machine->controls[2].is_host = 1;
  lazy_case_open(machine);
}

static void add_plan(tm_context *context, uint64_t seed, uint32_t *node_counts, tm_sha256 *all) {
  const tm_plan_options options = LAZY_OPTIONS;
  plan_case one;
  uint8_t digest[TM_PLAN_DIGEST_BYTES];
  plan_case_build(&one, context, seed, 5 + (uint32_t)seed % 30);
  one.plan = lazy_plan(one.graph, &options);
  tm_plan_digest(one.plan, digest);
  tm_sha256_add(all, digest, sizeof digest);
  tm_plan_step_description step = { .struct_size = sizeof step };
  for (uint32_t i = 0; tm_plan_step_describe(one.plan, i, &step) == TM_OK; i++) {
    for (uint32_t k = 0; k < LAZY_COUNT; k++) node_counts[k] += strncmp(step.device_name, lazy_names[k], strlen(lazy_names[k])) == 0;
  }
  plan_case_destroy(&one);
}

/* In hexadecimal digits. */
static void digest_all(uint32_t order, char *text) {
  static lazy_case machine;
  uint8_t digest[TM_SHA256_BYTES];
  uint32_t node_counts[LAZY_COUNT] = { 0 };
  tm_sha256 all;
  tm_sha256_init(&all);
  open_machine(&machine, order);
  for (uint64_t seed = 1; seed <= PLANS; seed++) add_plan(machine.context, seed, node_counts, &all);
  lazy_case_close(&machine);
  tm_sha256_finish(&all, digest);
  for (uint32_t i = 0; i < sizeof digest; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  for (uint32_t k = 0; k < LAZY_COUNT; k++) assert_true(node_counts[k] > PLANS);
}

static void a_hundred_plans_have_one_digest(void **state) {
  (void)state;
  char first[2 * TM_SHA256_BYTES + 1], again[sizeof first];
  digest_all(0, first);
  print_message("digest %s\n", first);
  for (uint32_t order = 1; order < ORDERS; order++) {
    digest_all(order, again);
    assert_string_equal(again, first);
  }
  assert_string_equal(first, expected);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(a_hundred_plans_have_one_digest) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
