/* SPDX-License-Identifier: Apache-2.0 */
/* A device that fails or spoils in the middle of a merge: the file is, byte for byte, what it is without. */
#define _GNU_SOURCE
#include "unit/jobs/merge_fault_case.h"

static bool tells_of_it(tm_job *job) {
  const char *note;
  for (uint32_t i = 0; tm_job_note(job, i, &note) == TM_OK; i++)
    if (strstr(note, "faulty:0") != NULL) return true;
  return false;
}

/* Returns whether there was a failure. */
static bool expect_result(const fault_plan *plan, uint32_t method, const unsigned char *wanted, uint64_t size) {
  faulty_case one = { .plan = *plan };
  merge_case m;
  tm_error error = TM_ERROR_INIT;
  uint64_t found_size = 0;
  faulty_case_open(&one);
  if (merge(one.context, method, &m, &error) != TM_OK) fail_msg("method %u: %s", method, error.text);
  const bool has_happened = atomic_load(&one.plan.faults) != 0;
  if (has_happened && !tells_of_it(m.job)) fail_msg("method %u, call %d: nobody tells of it", method, (int)plan->first);
  end_merge(&m);
  tm_context_destroy(one.context);
  unsigned char *found = take_result(&found_size);
  assert_non_null(found);
  assert_int_equal(found_size, size);
  assert_memory_equal(found, wanted, size);
  free(found);
  return has_happened;
}

static void failures_change_no_byte(void **state) {
  static const uint32_t methods[] = { TM_MERGE_LINEAR, TM_MERGE_SLERP, TM_MERGE_TIES, TM_MERGE_DARE };
  static const fault_kind kinds[] = { FAULT_STATUS, FAULT_STATUS_AFTER };
  const uint64_t calls = getenv("TM_NIGHTLY") != NULL ? 12 : 2;
  uint32_t failures = 0;
  (void)state;
  for (uint32_t i = 0; i < 4; i++) {
    uint64_t size = 0;
    unsigned char *wanted = undisturbed(methods[i], &size);
    for (uint64_t n = 1; n <= calls; n++) {
      for (uint32_t k = 0; k < 2; k++) {
        const fault_plan plan = { .function = FAULT_LAUNCH, .first = n, .last = n, .kind = kinds[k], .status = TM_ERROR_INTERNAL };
        failures += expect_result(&plan, methods[i], wanted, size);
      }
      const fault_plan lost = { .function = FAULT_LAUNCH, .first = n, .last = n, .kind = FAULT_STATUS,
                                .status = TM_ERROR_DEVICE_LOST };
      failures += expect_result(&lost, methods[i], wanted, size);
    }
    free(wanted);
  }
  print_message("%u failures made good\n", failures);
  assert_true(failures > 6);
}

/* Nobody makes it good: then it is said which tensor it was, by whatever lane, and wherever in its course. */
static void an_error_names_the_tensor(void **state) {
  static const uint32_t methods[] = { TM_MERGE_LINEAR, TM_MERGE_SLERP, TM_MERGE_TIES };
  (void)state;
  for (uint32_t i = 0; i < 3; i++) {
    for (uint64_t n = 1; n <= 2; n++) {
      faulty_case one = { .plan = { .function = FAULT_LAUNCH, .first = n, .last = UINT64_MAX, .kind = FAULT_STATUS,
                                    .status = TM_ERROR_DEVICE_LOST }, .flags = TM_CONTEXT_STRICT };
      merge_case m;
      tm_error error = TM_ERROR_INIT;
      faulty_case_open(&one);
      const tm_status status = merge(one.context, methods[i], &m, &error);
      const bool has_happened = atomic_load(&one.plan.faults) != 0;
      assert_true(has_happened || n > 1);       /* a slow machine may find that somebody else is faster */
      assert_int_equal(status, has_happened ? TM_ERROR_DEVICE_LOST : TM_OK);
      const bool is_named = strncmp(error.text, "tensor 'w", 9) == 0 && strstr(error.text + 9, "tensor '") == NULL;
      if (has_happened && !is_named) fail_msg("%s", error.text);
      end_merge(&m);
      tm_context_destroy(one.context);
      uint64_t size = 0;
      unsigned char *found = take_result(&size);
      assert_true((found == NULL) == has_happened);
      free(found);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(failures_change_no_byte),
    cmocka_unit_test(an_error_names_the_tensor),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
