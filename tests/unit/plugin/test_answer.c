/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a backend answers, what the host works with obeys the contract. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/answer.h"

static const tm_operand two_operands[2];

static tm_operation question(uint32_t worst, uint32_t flags) {
  return (tm_operation){ .struct_size = sizeof(tm_operation), .op = TM_OP_NEG, .version = 1, .flags = flags, .worst_numerics = worst,
                         .input_count = 1, .output_count = 1, .operands = two_operands };
}

static tm_answer yes(void) {
  return (tm_answer){ .struct_size = sizeof(tm_answer), .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N2, .numerics_bound = 2,
                      .growth = TM_GROWTH_LOG2, .accumulator = TM_FORMAT_F32, .operand = TM_NO_OPERAND, .cost_ns = 1000,
                      .launch_ns = 100, .numerics_flags = TM_NUMERICS_RUN_TO_RUN };
}

static void a_sound_answer_stays(void **state) {
  (void)state;
  const tm_operation operation = question(TM_NUMERICS_N2, TM_OPERATION_RUN_TO_RUN);
  tm_answer answer = yes();
  const tm_answer before = answer;
  tm_answer_make_sound(&operation, &answer);
  assert_memory_equal(&answer, &before, sizeof answer);
}

static void spoil_level(tm_answer *answer) { answer->level = 77; }
static void spoil_class(tm_answer *answer) { answer->numerics = 99; }
static void spoil_bound(tm_answer *answer) { answer->numerics_bound = NAN; }
static void spoil_sign(tm_answer *answer) { answer->numerics_bound = -1; }
static void spoil_zero(tm_answer *answer) { answer->numerics_bound = 0; }
static void spoil_size(tm_answer *answer) { answer->numerics_bound = 0x1p20; }
static void spoil_ulps(tm_answer *answer) {
  answer->numerics = TM_NUMERICS_N1;           /* of an output that is no number */
  answer->numerics_bound = 5;
}
static void spoil_growth(tm_answer *answer) { answer->growth = 3; }
static void spoil_accumulator(tm_answer *answer) { answer->accumulator = TM_FORMAT_NONE; }
static void spoil_accumulator_kind(tm_answer *answer) { answer->accumulator = TM_FORMAT_I32; }
static void spoil_workspace(tm_answer *answer) { answer->workspace_bytes = UINT64_MAX; }
static void spoil_repeatability(tm_answer *answer) { answer->numerics_flags = 0; }

static void what_is_not_promised_is_refused(void **state) {
  (void)state;
  static void (*const spoilers[])(tm_answer *) = { spoil_level, spoil_class, spoil_bound, spoil_sign, spoil_zero, spoil_size, spoil_ulps, spoil_growth,
                                                   spoil_accumulator, spoil_accumulator_kind, spoil_workspace, spoil_repeatability };
  const tm_operation operation = question(TM_NUMERICS_N2, TM_OPERATION_RUN_TO_RUN);
  for (size_t i = 0; i < sizeof spoilers / sizeof spoilers[0]; i++) {
    tm_answer answer = yes();
    spoilers[i](&answer);
    tm_answer_make_sound(&operation, &answer);
    assert_int_equal(answer.level, TM_LEVEL_REFUSED);
    assert_int_not_equal(answer.reasons, 0);
    assert_true(answer.numerics <= TM_NUMERICS_N4 && answer.numerics_bound >= 0);
  }
}

/* What a result of zeros would keep, or nearly. */
static void a_bound_has_a_ceiling(void **state) {
  (void)state;
  static const struct { uint32_t numerics, format, accumulator; double ceiling; } cases[] = {
    { TM_NUMERICS_N1, TM_FORMAT_F64, TM_FORMAT_NONE, 0x1p48 }, { TM_NUMERICS_N1, TM_FORMAT_F32, TM_FORMAT_NONE, 0x1p19 },
    { TM_NUMERICS_N1, TM_FORMAT_F16, TM_FORMAT_NONE, 64 },     { TM_NUMERICS_N1, TM_FORMAT_BF16, TM_FORMAT_NONE, 8 },
    { TM_NUMERICS_N1, TM_FORMAT_F8_E5M2, TM_FORMAT_NONE, 4 },  { TM_NUMERICS_N1, TM_FORMAT_U8, TM_FORMAT_NONE, 16 },
    { TM_NUMERICS_N2, TM_FORMAT_F16, TM_FORMAT_F32, 0x1p19 },  { TM_NUMERICS_N2, TM_FORMAT_F32, TM_FORMAT_F16, 64 },
    { TM_NUMERICS_N3, TM_FORMAT_F32, TM_FORMAT_NONE, 0.25 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_operand operands[2] = { { .format = cases[i].format }, { .format = cases[i].format } };
    tm_operation operation = question(TM_NUMERICS_N4, 0);
    operation.operands = operands;
    for (int is_over = 0; is_over < 2; is_over++) {
      tm_answer answer = yes();
      answer.numerics = cases[i].numerics;
      answer.accumulator = cases[i].accumulator;
      answer.numerics_bound = cases[i].ceiling * (is_over ? 1.01 : 1);
      tm_answer_make_sound(&operation, &answer);
      assert_int_equal(answer.numerics, is_over ? TM_NUMERICS_N4 : cases[i].numerics);
      assert_int_equal(answer.level, TM_LEVEL_NATIVE);
    }
  }
}

static void a_weak_promise_is_enough_for_who_asks_for_none(void **state) {
  (void)state;
  const tm_operation operation = question(TM_NUMERICS_N4, 0);
  tm_answer answer = yes();
  answer.accumulator = TM_FORMAT_NONE;
  tm_answer_make_sound(&operation, &answer);
  assert_int_equal(answer.level, TM_LEVEL_NATIVE);
  assert_int_equal(answer.numerics, TM_NUMERICS_N4);
}

static void garbage_becomes_a_refusal(void **state) {
  (void)state;
  const tm_operation operation = question(TM_NUMERICS_N4, 0);
  tm_answer answer;
  memset(&answer, 0xff, sizeof answer);
  tm_answer_make_sound(&operation, &answer);
  assert_int_equal(answer.struct_size, sizeof answer);
  assert_int_equal(answer.level, TM_LEVEL_REFUSED);
  assert_int_equal(answer.change_count, 0);
  assert_int_equal(answer.operand, TM_NO_OPERAND);
  assert_true(answer.cost_ns <= TM_LARGEST_COST_NS && answer.launch_ns <= answer.cost_ns && answer.setup_ns <= TM_LARGEST_COST_NS);
  memset(&answer, 0, sizeof answer);
  tm_answer_make_sound(&operation, &answer);
  assert_int_equal(answer.level, TM_LEVEL_REFUSED);
  assert_int_not_equal(answer.reasons, 0);
}

static void texts_that_are_none_are_dropped(void **state) {
  (void)state;
  static const char text[] = "because";
  static const tm_string texts[] = { { NULL, 12 }, { text, UINT64_MAX }, { NULL, UINT64_MAX } };
  const tm_operation operation = question(TM_NUMERICS_N4, 0);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    tm_answer answer = yes();
    answer.text = texts[i];
    tm_answer_make_sound(&operation, &answer);
    assert_int_equal(answer.text.length, 0);
  }
}

static void one_bad_change_drops_them_all(void **state) {
  (void)state;
  static const tm_change bad[] = { { .kind = 0 }, { .kind = TM_CHANGE_QUANTIZE + 1 }, { .kind = TM_CHANGE_CAST, .operand = 2 },
                                   { .kind = TM_CHANGE_PAD, .axis = TM_MAX_RANK } };
  const tm_operation operation = question(TM_NUMERICS_N4, 0);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    tm_answer answer = yes();
    answer.change_count = 2;
    answer.changes[0] = (tm_change){ .kind = TM_CHANGE_CONTIGUOUS, .operand = 1 };
    tm_answer_make_sound(&operation, &answer);
    assert_int_equal(answer.change_count, 0);   /* the second is zero, which is no kind */
    answer.change_count = 2;
    answer.changes[1] = bad[i];
    tm_answer_make_sound(&operation, &answer);
    assert_int_equal(answer.change_count, 0);
    answer.change_count = 1;
    tm_answer_make_sound(&operation, &answer);
    assert_int_equal(answer.change_count, 1);
  }
}

/* Negative as who counts with signs has it, what a NaN becomes as a number and as bits, and one more than there is. */
static void a_time_that_is_none_is_no_yes(void **state) {
  (void)state;
  static const uint64_t bad[] = { UINT64_MAX, UINT64_C(1) << 63, UINT64_C(0x7ff8000000000000), TM_LARGEST_COST_NS + 1 };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    tm_operation operation = question(TM_NUMERICS_N4, 0);
    tm_answer answer = yes(), setup = yes();
    answer.cost_ns = setup.setup_ns = bad[i];
    tm_answer_make_sound(&operation, &answer);
    tm_answer_make_sound(&operation, &setup);
    assert_true(tm_answer_has_no_price(&answer) && tm_answer_has_no_price(&setup));
    assert_int_equal(answer.level, TM_LEVEL_REFUSED);
    assert_int_not_equal(answer.reasons, 0);
  }
}

static void the_highest_price_stays(void **state) {
  (void)state;
  const tm_operation operation = question(TM_NUMERICS_N4, 0);
  tm_answer answer = yes();
  answer.cost_ns = answer.setup_ns = TM_LARGEST_COST_NS;
  tm_answer_make_sound(&operation, &answer);
  assert_int_equal(answer.level, TM_LEVEL_NATIVE);
  assert_true(answer.cost_ns == TM_LARGEST_COST_NS && answer.setup_ns == TM_LARGEST_COST_NS);
}

/* An honest formula leaves all bounds there. */
static void work_without_end_has_the_highest_price(void **state) {
  (void)state;
  tm_operation operation = question(TM_NUMERICS_N4, 0);
  tm_operand operands[3];
  memcpy(operands, operation.operands, (operation.input_count + operation.output_count) * sizeof *operands);
  operands[0].byte_count = TM_ENDLESS_BYTES + 1;
  operation.operands = operands;
  tm_answer answer = yes();
  answer.cost_ns = UINT64_C(1) << 60;
  tm_answer_make_sound(&operation, &answer);
  assert_int_equal(answer.level, TM_LEVEL_NATIVE);
  assert_int_equal(answer.cost_ns, TM_LARGEST_COST_NS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_sound_answer_stays),
    cmocka_unit_test(what_is_not_promised_is_refused),
    cmocka_unit_test(a_bound_has_a_ceiling),
    cmocka_unit_test(a_weak_promise_is_enough_for_who_asks_for_none),
    cmocka_unit_test(garbage_becomes_a_refusal),
    cmocka_unit_test(texts_that_are_none_are_dropped),
    cmocka_unit_test(one_bad_change_drops_them_all),
    cmocka_unit_test(a_time_that_is_none_is_no_yes),
    cmocka_unit_test(the_highest_price_stays),
    cmocka_unit_test(work_without_end_has_the_highest_price),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
