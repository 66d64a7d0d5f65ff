/* SPDX-License-Identifier: Apache-2.0 */
/* What a device declares is its price, however high; what is no time at all is a broken promise. */
#include "api/context.h"
#include "fakes/fake_case.h"
#include "schedule/health.h"

static tm_candidate candidate_of(const fake_case *one, const char *device) {
  const tm_operand operand = { .format = TM_FORMAT_F32, .rank = 1, .dims = { FAKE_ELEMENTS } };
  tm_operand output = { 0 };
  tm_explanation *explanation = NULL;
  tm_error error = { .struct_size = sizeof error };
  tm_candidate candidate = { .struct_size = sizeof candidate };
  if (tm_explain(one->context, TM_OP_NEG, NULL, 0, &operand, 1, &output, 1, NULL, &explanation, &error) != TM_OK)
    fail_msg("%s", error.text);
  uint32_t i = 0;
  while (tm_explanation_candidate(explanation, i, &candidate) == TM_OK && strcmp(candidate.device_name, device) != 0) i++;
  assert_string_equal(candidate.device_name, device);
  static char reason[256];
  snprintf(reason, sizeof reason, "%s", candidate.reason);
  candidate.reason = reason;
  tm_explanation_destroy(explanation);
  return candidate;
}

static void a_high_price_is_one(void **state) {
  (void)state;
  static const uint64_t prices[] = { UINT64_C(100000000000), UINT64_C(1000000000000), UINT64_C(1000000000000000) };
  for (size_t i = 0; i < sizeof prices / sizeof prices[0]; i++) {
    fake_case one = { .controls = { { .cost_ns = prices[i] } } };
    fake_case_open(&one, "a", NULL);
    const tm_candidate candidate = candidate_of(&one, "fake_a:0");
    assert_int_equal(candidate.verdict, TM_VERDICT_SLOWER);
    assert_true(candidate.declared_ns == prices[i] && candidate.total_ns >= prices[i]);
    fake_case_close(&one);
  }
}

static void what_is_no_time_is_a_broken_promise(void **state) {
  (void)state;
  static const uint64_t prices[] = { UINT64_C(1000000000000001), UINT64_C(1) << 63, UINT64_C(0) - 5 };
  for (size_t i = 0; i < sizeof prices / sizeof prices[0]; i++) {
    fake_case one = { .controls = { { .cost_ns = prices[i] } } };
    fake_case_open(&one, "a", NULL);
    tm_candidate candidate = candidate_of(&one, "fake_a:0");
    assert_int_equal(candidate.verdict, TM_VERDICT_REFUSED);
    assert_non_null(strstr(candidate.reason, "a time that is none"));
    const tm_health_record *record = tm_health_at(&one.context->health, 0);
    assert_non_null(record);
    assert_non_null(strstr(record->reason, "a time that is none"));
    candidate = candidate_of(&one, "fake_a:0");
    assert_int_equal(candidate.verdict, TM_VERDICT_QUARANTINED);
    assert_non_null(strstr(candidate.reason, "a time that is none"));
    fake_case_close(&one);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_high_price_is_one),
    cmocka_unit_test(what_is_no_time_is_a_broken_promise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
