/* SPDX-License-Identifier: Apache-2.0 */
/* A device that hangs in the middle of a merge: the file is, byte for byte, what it is without, or it is not there.  What the device
   has is never freed.  Calls are among those that are watched (decision 007): a device that proved itself and hangs then holds
   the job, and with it whoever waits. */
#define _GNU_SOURCE
#include "unit/jobs/merge_fault_case.h"

/* Trials run on copies, so what hangs in one harms nobody.  Returns whether it hung. */
static bool all_or_nothing(uint64_t call) {
  uint64_t size = 0, found_size = 0;
  unsigned char *wanted = undisturbed(TM_MERGE_LINEAR, &size);
  faulty_case one = { .plan = { .function = FAULT_LAUNCH, .first = call, .last = call, .kind = FAULT_HANG } };
  merge_case m;
  tm_error error = TM_ERROR_INIT;
  faulty_case_open(&one);
  const tm_status status = merge(one.context, TM_MERGE_LINEAR, &m, &error);
  const bool has_hung = atomic_load(&one.plan.faults) != 0;
  end_merge(&m);
  tm_context_destroy(one.context);
  unsigned char *found = take_result(&found_size);
  if (status == TM_OK) {
    assert_int_equal(found_size, size);
    assert_memory_equal(found, wanted, size);
  } else {
    assert_int_equal(status, TM_ERROR_INTERNAL);
    assert_null(found);
  }
  free(found);
  free(wanted);
  return has_hung;
}

static void a_hang_leaves_all_or_nothing(void **state) {
  (void)state;
  assert_true(all_or_nothing(1));
  if (!all_or_nothing(4)) print_message("call 4 went to another device\n");    /* a slow machine may find that it is faster */
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(a_hang_leaves_all_or_nothing) };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
