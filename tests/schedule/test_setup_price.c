/* SPDX-License-Identifier: Apache-2.0 */
/* What is paid once is paid when it was earned: neither for a request that saves little, nor never. */
#include "fakes/picky_case.h"
#include "schedule/setup_ledger.h"

static const uint64_t dims[] = { 200, 300 };

static picky_call make_call(picky_case *one) {
  return (picky_call){ .op = TM_OP_SQRT, .input_count = 1, .inputs = { picky_tensor(one, TM_FORMAT_F32, 2, dims, 1) } };
}

static tm_candidate explained(picky_case *one, const picky_call *call) {
  tm_explanation *explanation = picky_explain(one, call);
  const tm_candidate candidate = picky_candidate(explanation, 0);
  tm_explanation_destroy(explanation);
  return candidate;
}

/* Runs until the picky one takes it; the number of runs before. */
static int runs_until_taken(picky_case *one, const picky_call *call, tm_tensor *y, int most) {
  for (int run = 0; run < most; run++) {
    assert_int_equal(picky_try(one, call, 0, y), TM_OK);
    if (one->report.device == one->device) return run;
  }
  return most;
}

static void a_set_up_is_paid_when_it_is_earned(void **state) {
  (void)state;
  picky_case one = { .control = { .only_op = TM_OP_SQRT, .setup_ns = 20000000, .setup_key = 7 } };
  picky_case_open(&one);
  const picky_call call = make_call(&one);
  tm_tensor *y = picky_output(&one, &call);
  tm_candidate before = explained(&one, &call);
  assert_int_equal(before.setup_ns, 20000000);
  assert_int_equal(before.earned_ns, 0);
  assert_int_equal(before.price_ns, before.total_ns + before.setup_ns);
  assert_int_equal(before.verdict, TM_VERDICT_SLOWER);
  assert_int_equal(picky_try(&one, &call, 0, y), TM_OK);
  assert_int_equal(one.report.device, one.reference);
  const tm_candidate after = explained(&one, &call);
  assert_true(after.earned_ns > 0 && after.earned_ns < after.setup_ns);
  const int runs = runs_until_taken(&one, &call, y, 100000);
  assert_in_range(runs, 2, 99999);
  assert_int_equal(explained(&one, &call).setup_ns, 0);
  tm_tensor_destroy(y);
  tm_tensor_destroy(call.inputs[0]);
  picky_case_close(&one);
}

static void one_request_that_saves_more_pays_at_once(void **state) {
  (void)state;
  picky_case one = { .control = { .only_op = TM_OP_SQRT, .setup_ns = 1000, .open_ns = 1000 } };
  picky_case_open(&one);
  const picky_call call = make_call(&one);
  tm_tensor *y = picky_output(&one, &call);
  assert_int_equal(explained(&one, &call).verdict, TM_VERDICT_CHOSEN);
  assert_int_equal(explained(&one, &call).setup_ns, 2000);
  assert_int_equal(runs_until_taken(&one, &call, y, 5), 0);
  assert_int_equal(explained(&one, &call).setup_ns, 0);
  tm_tensor_destroy(y);
  tm_tensor_destroy(call.inputs[0]);
  picky_case_close(&one);
}

/* Equal keys share one set-up; without a key each operation has its own. */
static void equal_keys_share(void **state) {
  (void)state;
  for (uint64_t key = 0; key < 2; key++) {
    picky_case one = { .control = { .setup_ns = 1000, .setup_key = key } };
    picky_case_open(&one);
    const picky_call call = make_call(&one);
    picky_call other = { .op = TM_OP_EXP, .input_count = 1, .worst_numerics = TM_NUMERICS_N1, .inputs = { call.inputs[0] } };
    tm_tensor *y = picky_output(&one, &call);
    assert_int_equal(picky_try(&one, &call, one.device + 1, y), TM_OK);
    assert_int_equal(explained(&one, &call).setup_ns, 0);
    assert_int_equal(explained(&one, &other).setup_ns, key == 0 ? 1000 : 0);
    tm_tensor_destroy(y);
    tm_tensor_destroy(call.inputs[0]);
    picky_case_close(&one);
  }
}

/* A try of what may be cheaper is no reason to pay two seconds. */
static void exploration_pays_no_set_up_beyond_its_budget(void **state) {
  (void)state;
  picky_case one = { .control = { .only_op = TM_OP_SQRT, .setup_ns = 2000000000, .cost_ns = 100000000 } };
  picky_case_open(&one);
  const picky_call call = make_call(&one);
  tm_tensor *y = picky_output(&one, &call);
  assert_int_equal(runs_until_taken(&one, &call, y, 300), 300);
  assert_int_equal(atomic_load(&one.control.prepares), 0);
  tm_tensor_destroy(y);
  tm_tensor_destroy(call.inputs[0]);
  picky_case_close(&one);
}

/* ---- the ledger ---- */

static void credit_goes_to_what_is_not_yet_earned(void **state) {
  (void)state;
  tm_memory memory;
  tm_setup_ledger ledger;
  tm_memory_init(&memory, 0);
  assert_int_equal(tm_setup_ledger_init(&ledger, &memory), TM_OK);
  const tm_setup_item items[] = { { 11, 100 }, { 13, 50 } };
  tm_setup_ledger_credit(&ledger, items, 2, 70);
  tm_setup_ledger_credit(&ledger, items, 2, 60);
  tm_setup_due due = tm_setup_ledger_due(&ledger, items, 2);
  assert_int_equal(due.cost_ns, 150);
  assert_int_equal(due.earned_ns, 130);
  assert_int_equal(tm_setup_ledger_due(&ledger, &items[1], 1).earned_ns, 30);
  tm_setup_ledger_credit(&ledger, items, 2, UINT64_MAX);
  assert_int_equal(tm_setup_ledger_due(&ledger, items, 2).earned_ns, 150);
  tm_setup_ledger_pay(&ledger, &items[0], 1);
  due = tm_setup_ledger_due(&ledger, items, 2);
  assert_int_equal(due.cost_ns, 50);
  for (uint64_t i = 0; i < 100000; i++) tm_setup_ledger_pay(&ledger, &(tm_setup_item){ tm_setup_key_of(i, 1, 2), 5 }, 1);
  assert_int_equal(tm_setup_ledger_due(&ledger, &(tm_setup_item){ tm_setup_key_of(99999, 1, 2), 5 }, 1).cost_ns, 0);
  tm_setup_ledger_deinit(&ledger);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_set_up_is_paid_when_it_is_earned),
    cmocka_unit_test(one_request_that_saves_more_pays_at_once),
    cmocka_unit_test(equal_keys_share),
    cmocka_unit_test(exploration_pays_no_set_up_beyond_its_budget),
    cmocka_unit_test(credit_goes_to_what_is_not_yet_earned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
