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

/* ---- declared runs ---- */

static tm_explanation *explain_for(picky_case *one, const picky_call *call, uint32_t repeats) {
  const tm_operand input = *tm_tensor_operand(call->inputs[0]), output = { .format = TM_FORMAT_NONE };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .repeats = repeats };
  tm_explanation *explanation = NULL;
  if (tm_explain(one->context, call->op, NULL, 0, &input, 1, &output, 1, &options, &explanation, &one->error) != TM_OK)
    fail_msg("%s", one->error.text);
  return explanation;
}

/* Every candidate's price and regret are sums of what is told; returns the picky one's. */
static tm_candidate check_sums(picky_case *one, const picky_call *call, uint32_t repeats) {
  tm_explanation *explanation = explain_for(one, call, repeats);
  tm_candidate chosen = { .struct_size = sizeof chosen }, candidate = { .struct_size = sizeof candidate };
  assert_int_equal(tm_explanation_candidate(explanation, 0, &chosen), TM_OK);
  assert_int_equal(chosen.verdict, TM_VERDICT_CHOSEN);
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++) {
    const bool can = candidate.verdict == TM_VERDICT_CHOSEN || candidate.verdict == TM_VERDICT_SLOWER;
    const uint64_t part_ns = repeats == 0 ? candidate.setup_ns - candidate.earned_ns : candidate.setup_ns / repeats;
    assert_int_equal(candidate.setup_share_ns, can ? part_ns : 0);
    assert_int_equal(candidate.price_ns, can ? candidate.total_ns + candidate.setup_share_ns : 0);
    assert_int_equal(candidate.regret_ns, can ? candidate.price_ns - chosen.price_ns : TM_NEVER_NS);
    assert_true(can || candidate.reason[0] != '\0');
    assert_true(can || candidate.repeats_from == 0);
  }
  const tm_candidate picky = picky_candidate(explanation, 0);
  tm_explanation_destroy(explanation);
  return picky;
}

/* So many runs make it worth the set-up, and one less does not. */
static void so_many_runs_pay(void **state) {
  (void)state;
  picky_case one = { .control = { .only_op = TM_OP_SQRT, .setup_ns = 2000000000, .open_ns = 3000 } };
  picky_case_open(&one);
  const picky_call call = make_call(&one);
  const tm_candidate now = check_sums(&one, &call, 0);
  assert_int_equal(now.verdict, TM_VERDICT_SLOWER);
  assert_in_range(now.repeats_from, 2, UINT32_MAX - 1);
  assert_int_equal(now.repeats_to, UINT32_MAX);
  assert_int_equal(check_sums(&one, &call, now.repeats_from).verdict, TM_VERDICT_CHOSEN);
  assert_int_equal(check_sums(&one, &call, now.repeats_from - 1).verdict, TM_VERDICT_SLOWER);
  assert_int_equal(check_sums(&one, &call, now.repeats_from - 1).repeats_from, now.repeats_from);
  assert_int_equal(check_sums(&one, &call, UINT32_MAX).repeats_from, now.repeats_from);
  tm_tensor_destroy(call.inputs[0]);
  picky_case_close(&one);
}

/* One that takes longer without it, too, is never worth it. */
static void no_number_of_runs_pays(void **state) {
  (void)state;
  picky_case one = { .control = { .only_op = TM_OP_SQRT, .setup_ns = 1000, .cost_ns = 100000000000 } };
  picky_case_open(&one);
  const picky_call call = make_call(&one);
  assert_int_equal(check_sums(&one, &call, 0).repeats_from, 0);
  assert_int_equal(check_sums(&one, &call, UINT32_MAX).repeats_to, 0);
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
    cmocka_unit_test(so_many_runs_pay),
    cmocka_unit_test(no_number_of_runs_pays),
    cmocka_unit_test(credit_goes_to_what_is_not_yet_earned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
