/* SPDX-License-Identifier: Apache-2.0 */
/* Which device the caller's thread keeps to while others help, and who helps where several are as good. */
#define _POSIX_C_SOURCE 200809L
#include "schedule/stream_case.h"

#define COPIES 40u

static const tm_identity shared_silicon = { { 3 } };

/* What is declared for a copy and for a negation. */
typedef struct prices {
  uint64_t copy_ns;
  uint64_t neg_ns;
} prices;

static uint64_t declared_ns(const fake_control *control, uint32_t op, uint64_t elements) {
  const prices *declared = control->user;
  (void)elements;
  return op == TM_OP_COPY ? declared->copy_ns : declared->neg_ns;
}

static void open_frozen(stream_case *one, const char *letters) {
  for (uint32_t i = 0; letters[i] != '\0'; i++) one->fakes.controls[i].real_ns = LONG_NS;
  open_stream(one, letters, "reference");
}

static void run_whole(stream_case *one) {
  one->waits_for_helper = true;
  if (run(one, false) != TM_OK) fail_msg("%s", one->error.text);
  assert_whole(one);
  assert_true(atomic_load(&one->helper->launches) != 0);
}

/* The caller's negations as long as it had a helper, by device: a lane that is gone takes nothing any more. */
static void count_negations(const stream_case *one, const char *name, uint32_t *out_there, uint32_t *out_elsewhere) {
  const uint32_t device = fake_device_index(&one->fakes, name);
  uint32_t last = 0;
  for (uint32_t i = 0; i < one->count; i++)
    if (!one->by_caller[i]) last = i;
  *out_there = *out_elsewhere = 0;
  for (uint32_t i = COPIES; i < last; i++) {
    if (one->by_caller[i] && one->device[i] == device) ++*out_there;
    if (one->by_caller[i] && one->device[i] != device) ++*out_elsewhere;
  }
}

/* Copies are best where the caller then stays, negations where the helper is. */
static void negations_of(uint64_t neg_at_home_ns, const char *name, uint32_t *out_there, uint32_t *out_elsewhere) {
  static stream_case one;
  const prices home = { LONG_NS, neg_at_home_ns }, helper = { LONG_NS + LONG_NS / 10, LONG_NS };
  prepare(&one, LONG_NS);
  one.copies = COPIES;
  for (uint32_t i = 0; i < 2; i++) one.fakes.controls[i].declared_ns = declared_ns;
  one.fakes.controls[0].user = &home;
  one.fakes.controls[1].user = &helper;
  open_frozen(&one, "ab");
  run_whole(&one);
  count_negations(&one, name, out_there, out_elsewhere);
  fake_case_close(&one.fakes);
}

/* On a machine that is busy beyond measure a device may be late to answer, and count as unable for a while. */
static void assert_mostly(uint32_t there, uint32_t elsewhere) {
  if (there <= 2 * elsewhere) fail_msg("%u there, %u elsewhere", there, elsewhere);
}

static void the_caller_stays_where_it_is(void **state) {
  uint32_t there, elsewhere;
  (void)state;
  negations_of(LONG_NS + LONG_NS / 2, "fake_a:0", &there, &elsewhere);
  assert_mostly(there, elsewhere);
}

static void but_not_for_work_that_home_is_far_worse_at(void **state) {
  uint32_t there, elsewhere;
  (void)state;
  negations_of(LONG_NS * 3, "fake_b:0", &there, &elsewhere);
  assert_mostly(there, elsewhere);
}

static fake_control *control_of(stream_case *one, const char *letters, char letter) {
  return &one->fakes.controls[strchr(letters, letter) - letters];
}

/* Of two that are equal in all but what they are, that one gets the piece, wherever it stands in the list. */
static void ties_at_home_go_by_what_a_device_is(void **state) {
  static const char *const orders[] = { "ab", "ba" };
  static stream_case one;
  (void)state;
  for (uint32_t low = 0; low < 2; low++)
    for (uint32_t o = 0; o < 2; o++) {
      prepare(&one, LONG_NS);
      control_of(&one, orders[o], 'a')->uuid.bytes[0] = low == 0 ? 1 : 2;
      control_of(&one, orders[o], 'b')->uuid.bytes[0] = low == 0 ? 2 : 1;
      one.helper = control_of(&one, orders[o], low == 0 ? 'b' : 'a');
      open_frozen(&one, orders[o]);
      run_whole(&one);
      const uint32_t home = fake_device_index(&one.fakes, low == 0 ? "fake_a:0" : "fake_b:0");
      assert_int_equal(one.device[0], home);
      for (uint32_t i = 0; i < one.count; i++) assert_int_equal(one.by_caller[i], one.device[i] == home);
      fake_case_close(&one.fakes);
    }
}

/* Two that share their silicon get one lane between them. */
static void ties_of_helpers_go_by_what_a_device_is(void **state) {
  static const char *const orders[] = { "abc", "acb", "bac", "bca", "cab", "cba" };
  static stream_case one;
  (void)state;
  for (uint32_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
    prepare(&one, LONG_NS);
    fake_control *a = control_of(&one, orders[o], 'a'), *b = control_of(&one, orders[o], 'b'), *c = control_of(&one, orders[o], 'c');
    a->cost_ns = LONG_NS;
    b->cost_ns = c->cost_ns = LONG_NS + LONG_NS / 10;
    a->uuid.bytes[0] = 1;
    b->uuid.bytes[0] = 9;
    c->uuid.bytes[0] = 5;
    b->resource = c->resource = shared_silicon;
    one.helper = c;
    open_frozen(&one, orders[o]);
    run_whole(&one);
    assert_int_equal(atomic_load(&b->launches), 0);
    assert_int_equal(one.device[0], fake_device_index(&one.fakes, "fake_a:0"));
    fake_case_close(&one.fakes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_caller_stays_where_it_is), cmocka_unit_test(but_not_for_work_that_home_is_far_worse_at),
    cmocka_unit_test(ties_at_home_go_by_what_a_device_is), cmocka_unit_test(ties_of_helpers_go_by_what_a_device_is),
  };
  return cmocka_run_group_tests_name("work_stream_home", tests, NULL, NULL);
}
