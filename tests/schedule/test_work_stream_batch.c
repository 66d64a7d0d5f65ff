/* SPDX-License-Identifier: Apache-2.0 */
/* Small pieces of a stream run many at once where each by itself is a wait or a copy; and what happens when that fails. */
#define _POSIX_C_SOURCE 200809L
#include "schedule/stream_case.h"

#include "execute/batch.h"

static const tm_identity far_memory = { { 5 } };

/* One device, of this kind. */
typedef struct kind {
  const char *name;
  uint32_t    is_asynchronous, is_far, granule;
  uint64_t    workspace_bytes;
} kind;

static const kind kinds[] = {
  { "gives tickets, in the host's memory", 1, 0, 0, 0 },
  { "gives tickets, in memory of its own", 1, 1, 0, 0 },
  { "computes at once, in memory of its own", 0, 1, 0, 0 },
  { "with granules of 256 bytes", 1, 1, 256, 0 },
  { "with a workspace", 1, 1, 16, 5000 },
  { "with a workspace, in the host's memory", 1, 0, 0, 5000 },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static void prepare_kind(stream_case *one, const kind *k) {
  prepare(one, 0);
  one->small_bytes = PIECE_BYTES;
  one->count = MOST_PIECES;
  one->copies = 3;
  fake_control *control = &one->fakes.controls[0];
  control->cost_ns = 1000;
  control->real_ns = 0;
  control->is_asynchronous = k->is_asynchronous;
  control->granule = k->granule;
  control->workspace_bytes = k->workspace_bytes;
  if (k->is_far) control->memory = far_memory;
}

static void many_share_a_wait(void **state) {
  static stream_case one;
  (void)state;
  for (size_t i = 0; i < KINDS; i++) {
    prepare_kind(&one, &kinds[i]);
    open_stream(&one, "a", "reference");
    if (run(&one, false) != TM_OK) fail_msg("%s: %s", kinds[i].name, one.error.text);
    assert_whole(&one);
    const uint64_t waits = atomic_load(&one.fakes.controls[0].waits);
    printf("%s: %llu waits\n", kinds[i].name, (unsigned long long)waits);
    assert_true(kinds[i].is_asynchronous ? waits != 0 && waits < MOST_PIECES : waits == 0);
    assert_true(atomic_load(&one.fakes.controls[0].launches) == MOST_PIECES);
    assert_int_equal(one.notes + one.batch_notes, 0);
    fake_case_close(&one.fakes);
  }
}

/* The first pieces go to a device in the host's memory, with a workspace; the rest to one with memory of its own, and without. */
static void a_lane_turns_from_one_kind_to_another(void **state) {
  static stream_case one;
  (void)state;
  prepare_kind(&one, &kinds[5]);
  one.count = 400;
  one.copies = 100;
  one.fakes.controls[0].only_op = TM_OP_COPY;
  one.fakes.controls[0].resource = silicon;             /* of both, so that neither helps the other */
  one.fakes.controls[1] = (fake_control){ .cost_ns = 1000, .is_asynchronous = 1, .only_op = TM_OP_NEG, .memory = far_memory,
                                          .resource = silicon };
  open_stream(&one, "ab", "reference");
  if (run(&one, false) != TM_OK) fail_msg("%s", one.error.text);
  assert_whole(&one);
  for (uint32_t i = 0; i < 2; i++) {
    const fake_control *control = &one.fakes.controls[i];
    assert_true(atomic_load(&control->waits) < atomic_load(&control->launches));
  }
  assert_int_equal(one.notes + one.batch_notes, 0);
  fake_case_close(&one.fakes);
}

static void large_ones_run_by_themselves(void **state) {
  static stream_case one;
  (void)state;
  prepare_kind(&one, &kinds[0]);
  one.small_bytes = PIECE_BYTES - 1;
  open_stream(&one, "a", "reference");
  assert_int_equal(run(&one, false), TM_OK);
  assert_whole(&one);
  assert_true(atomic_load(&one.fakes.controls[0].waits) >= MOST_PIECES);
  fake_case_close(&one.fakes);
}

/* The launch itself is refused, or its ticket ends badly; at any place in a batch, and in none. */
static void a_batch_that_fails_is_made_good(void **state) {
  static const uint64_t moments[] = { 6, 41, 199 };
  static stream_case one;
  (void)state;
  for (size_t m = 0; m < sizeof moments / sizeof moments[0]; m++)
    for (uint32_t k = 0; k < 2; k++)
      for (uint32_t late = 0; late < 2; late++) {
        prepare_kind(&one, &kinds[k]);
        one.count = 400;
        if (late) one.fakes.controls[0].fail_at = moments[m];
        else one.at = (uint32_t)moments[m];
        one.breaks = &one.fakes.controls[0];
        one.fakes.controls[0].queue_count = 1;          /* so that tickets fail in the order of launches */
        one.fakes.controls[1].cost_ns = UINT64_C(900000000);         /* no help, but somebody to fall back on */
        open_stream(&one, "ab", "reference");
        if (run(&one, false) != TM_OK) fail_msg("%d at %d: %s", (int)late, (int)moments[m], one.error.text);
        assert_whole(&one);
        assert_true(one.batch_notes + one.notes + atomic_load(&one.retries) != 0);  /* never silent */
        fake_case_close(&one.fakes);
      }
}

static void strict_streams_end_with_it(void **state) {
  static stream_case one;
  (void)state;
  prepare_kind(&one, &kinds[1]);
  one.fakes.controls[0].fail_at = 100;
  one.fakes.controls[0].queue_count = 1;
  open_stream(&one, "a", "reference");
  assert_int_equal(run(&one, true), TM_ERROR_INTERNAL);
  fake_case_close(&one.fakes);
}

/* Lack of memory is nobody's fault: a run by itself needs less, also where nobody else may make it good. */
static void strict_streams_outlive_lack_of_memory(void **state) {
  static stream_case one;
  (void)state;
  prepare_kind(&one, &kinds[1]);
  one.fakes.controls[0].together_status = TM_ERROR_NO_MEMORY;
  one.fakes.controls[0].queue_count = 1;        /* so that nobody helps: waits are counted together */
  one.count = 400;
  open_stream(&one, "a", "reference");
  if (run(&one, true) != TM_OK) fail_msg("%s", one.error.text);
  assert_whole(&one);
  assert_true(atomic_load(&one.fakes.controls[0].launches) > one.count);        /* some were refused */
  fake_case_close(&one.fakes);
}

/* What hangs has memory of the library's own, in which nobody else has a stake. */
static void a_hang_in_a_batch_costs_no_result(void **state) {
  static stream_case cases[2];
  (void)state;
  for (uint32_t k = 0; k < 2; k++) {
    stream_case *one = &cases[k];
    prepare_kind(one, &kinds[k]);
    one->count = 400;
    one->fakes.patience_ns = UINT64_C(3000000000);
    one->fakes.alloc = keep_alloc;
    one->fakes.free = keep_free;
    one->fakes.controls[0].hang_at = 100;
    one->fakes.controls[1].cost_ns = UINT64_C(900000000);         /* no help, but somebody to fall back on */
    open_stream(one, "ab", "reference");
    if (run(one, false) != TM_OK) fail_msg("%s: %s", kinds[k].name, one->error.text);
    assert_whole(one);
    assert_true(one->batch_notes != 0);
    fake_case_close(&one->fakes);
  }
}

static void cancelled_streams_end(void **state) {
  static stream_case one;
  (void)state;
  prepare_kind(&one, &kinds[1]);
  one.at = 20;
  one.cancel = 1;
  open_stream(&one, "a", "reference");
  assert_int_equal(run(&one, false), TM_ERROR_CANCELLED);
  assert_true(one.finished < 20 + TM_BATCH_MOST);
  fake_case_close(&one.fakes);
}

/* A helper takes many at a time, too; and the work may end the stream in the middle of them. */
static void helpers_take_many(void **state) {
  static const uint32_t stops[] = { 0, 1, 150 };
  static stream_case one;
  (void)state;
  for (size_t s = 0; s < sizeof stops / sizeof stops[0]; s++) {
    prepare(&one, LONG_NS + LONG_NS / 10);
    one.small_bytes = PIECE_BYTES;
    one.stop_done = stops[s];
    one.waits_for_helper = true;
    one.fakes.controls[1].is_asynchronous = 1;
    one.fakes.controls[1].memory = far_memory;
    open_stream(&one, "ab", "reference");
    assert_int_equal(run(&one, false), stops[s] == 0 ? TM_OK : TM_ERROR_LIMIT);
    if (stops[s] == 0) assert_whole(&one);
    for (uint32_t i = 0; i < one.count; i++) assert_true(one.done[i] <= 1);
    fake_case_close(&one.fakes);
  }
}

/* It gives its pieces back and goes, as it does when they come one by one. */
static void a_helper_without_room_costs_no_result(void **state) {
  static stream_case one;
  (void)state;
  for (uint32_t is_strict = 0; is_strict < 2; is_strict++) {
    prepare(&one, LONG_NS + LONG_NS / 10);
    one.small_bytes = PIECE_BYTES;
    one.waits_for_helper = one.helper_lacks_room = true;
    one.fakes.controls[1].is_asynchronous = 1;
    one.fakes.controls[1].queue_count = 1;              /* for one helper */
    one.fakes.controls[1].memory = far_memory;
    open_stream(&one, "ab", "reference");
    if (run(&one, is_strict != 0) != TM_OK) fail_msg("%s", one.error.text);
    assert_whole(&one);
    assert_int_equal(one.batch_notes, 0);
    if (one.helper_loads > HELPER_LOADS) assert_int_equal(one.notes, 1);
    fake_case_close(&one.fakes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(many_share_a_wait), cmocka_unit_test(a_lane_turns_from_one_kind_to_another),
    cmocka_unit_test(strict_streams_outlive_lack_of_memory), cmocka_unit_test(a_helper_without_room_costs_no_result),
    cmocka_unit_test(large_ones_run_by_themselves),
    cmocka_unit_test(a_batch_that_fails_is_made_good), cmocka_unit_test(strict_streams_end_with_it),
    cmocka_unit_test(a_hang_in_a_batch_costs_no_result), cmocka_unit_test(cancelled_streams_end),
    cmocka_unit_test(helpers_take_many),
  };
  return cmocka_run_group_tests_name("work_stream_batch", tests, NULL, NULL);
}
