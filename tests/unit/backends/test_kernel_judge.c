/* SPDX-License-Identifier: Apache-2.0 */
/* The judge over made-up rows of a made-up device, whose abilities each test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/common/kernel_judge.h"
#include "base/error.h"
#include "tensor/shape.h"

#define F32_BIT KERNEL_FORMAT_BIT(TM_FORMAT_F32)

typedef struct fake_row {
  KERNEL_CLAIM;
  uint32_t needs;               /* bits of fake_device.has */
  uint32_t takes_strides;
} fake_row;

typedef struct fake_device {
  uint32_t    has;
  const char *broken;           /* the row that its compiler refused */
  uint64_t    largest_bytes;
  uint32_t    splits;
  uint32_t    is_imprecise;
} fake_device;

static const fake_device plain_device = { .has = 1, .largest_bytes = 1u << 20, .splits = 1 };

#define ROW(id, text) .op = TM_OP_##id, .name = text, .level = TM_LEVEL_NATIVE
static const fake_row first_rows[] = {
  { ROW(ADD, "add_special"), .formats = { TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 }, .needs = 2 },
  { ROW(ADD, "add"), .formats = { TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 }, .castable = 1, .alias_mask = 3,
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN },
  { ROW(NEG, "neg"), .formats = { F32_BIT | KERNEL_FORMAT_BIT(TM_FORMAT_I8) | KERNEL_Q8_0_BIT, KERNEL_SAME } },
  { ROW(SUB, "sub_special"), .formats = { TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 }, .needs = 2, .castable = 1 },
  { ROW(COPY, "copy"), .takes_strides = 1 },
};
static const fake_row second_rows[] = {
  { ROW(GELU, "gelu"), .formats = { TM_FORMAT_F32, TM_FORMAT_F32 }, .attribute_bytes = sizeof(tm_gelu_attributes),
    .numerics = TM_NUMERICS_N2, .numerics_bound = 3 },
  { ROW(FILL, "fill"), .formats = { KERNEL_OTHER_BIT, KERNEL_SAME } },
};
static const kernel_row_table first = { first_rows, sizeof first_rows / sizeof first_rows[0] };
static const kernel_row_table second = { second_rows, sizeof second_rows / sizeof second_rows[0] };
static const kernel_row_table *const tables[] = { &first, &second, NULL };

static uint32_t lacks(const void *context, const void *row, const tm_operation *operation) {
  (void)operation;
  return (((const fake_row *)row)->needs & ~((const fake_device *)context)->has) != 0 ? TM_REASON_OPERATION : 0;
}

static kernel_closeness closeness(const void *context, const void *row) {
  const fake_row *own = row;
  if (((const fake_device *)context)->is_imprecise) return (kernel_closeness){ TM_NUMERICS_N3, 0, 0.5 };
  return (kernel_closeness){ own->numerics, own->numerics_flags, own->numerics_bound };
}

static int is_broken(const void *context, const void *row) {
  return ((const fake_device *)context)->broken == ((const fake_row *)row)->name;
}

static uint32_t refuses(const void *context, const void *row, const tm_operation *operation, uint32_t *out_operand) {
  (void)context;
  return ((const fake_row *)row)->takes_strides ? 0 : kernel_refuses_strided(operation, out_operand);
}

static int exceeds(const void *context, const void *row, const tm_operation *operation, uint32_t *out_operand) {
  (void)row;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; ++i) {
    *out_operand = i;
    if (operation->operands[i].byte_count > ((const fake_device *)context)->largest_bytes) return 1;
  }
  return 0;
}

static int split(const void *context, const void *row, const tm_operation *operation, uint32_t operand, tm_change *out_change) {
  (void)row;
  (void)operation;
  *out_change = (tm_change){ .kind = TM_CHANGE_SPLIT_ABOVE, .operand = operand, .value = 9 };
  return ((const fake_device *)context)->splits != 0;
}

static void price(const void *context, const void *row, const tm_operation *operation, tm_answer *answer) {
  (void)context;
  (void)row;
  (void)operation;
  answer->cost_ns = 77;
}

static const kernel_judge judge = {
  .tables = tables, .row_bytes = sizeof(fake_row), .lacks_text = "lacking", .exceeds_text = "exceeding", .lacks = lacks,
  .closeness = closeness, .is_broken = is_broken, .refuses = refuses, .exceeds = exceeds, .split = split, .price = price,
};

/* ---- questions ---- */

typedef struct question {
  tm_operand   operands[TM_MAX_OPERANDS];
  tm_operation operation;
  fake_device  device;
} question;

/* Dense operands of 4 by 64 elements. */
static void ask_about(question *q, uint32_t op, uint32_t input_count, uint32_t format) {
  tm_error error = TM_ERROR_INIT;
  memset(q, 0, sizeof *q);
  q->device = plain_device;
  for (uint32_t i = 0; i <= input_count; ++i)
    assert_int_equal(tm_operand_contiguous(format, 2, (const uint64_t[]){ 4, 64 }, &q->operands[i], &error), TM_OK);
  q->operation = (tm_operation){
    .struct_size = sizeof q->operation, .op = op, .version = 1, .worst_numerics = TM_NUMERICS_N4, .input_count = input_count,
    .output_count = 1, .operands = q->operands,
  };
}

static void loosen(tm_operand *operand) {
  operand->strides_bytes[0] *= 2;
  operand->byte_count = operand->byte_count / 4 * 7;
  operand->flags &= ~TM_OPERAND_CONTIGUOUS;
}

/* The answer, which always says the same as the search for the row. */
static tm_answer answer_to(const question *q) {
  tm_answer answer = { .struct_size = sizeof answer, .operand = TM_NO_OPERAND };
  kernel_judge_answer(&judge, &q->device, 5, &q->operation, &answer);
  const fake_row *row = kernel_judge_find(&judge, &q->device, &q->operation);
  assert_int_equal(row != NULL, answer.level != TM_LEVEL_REFUSED);
  assert_int_equal(answer.level == TM_LEVEL_REFUSED, answer.reasons != 0);
  assert_int_equal(answer.epoch, 5);
  assert_true(answer.text.length > 0);
  if (row != NULL) assert_string_equal(answer.text.data, row->name);
  return answer;
}

static void assert_refused(const question *q, uint32_t reasons, uint32_t operand, const char *text) {
  const tm_answer answer = answer_to(q);
  assert_int_equal(answer.reasons, reasons);
  assert_int_equal(answer.operand, operand);
  assert_non_null(strstr(answer.text.data, text));
  assert_int_equal(answer.change_count, 0);
}

/* ---- the tests ---- */

static void the_first_row_that_fits_answers(void **state) {
  question q;
  (void)state;
  ask_about(&q, TM_OP_ADD, 2, TM_FORMAT_F32);
  tm_answer answer = answer_to(&q);
  assert_string_equal(answer.text.data, "add");
  assert_int_equal(answer.cost_ns, 77);
  assert_int_equal(answer.moved_bytes, 3 * 4 * 64 * 4);
  assert_int_equal(answer.alias_mask, 3);
  assert_int_equal(answer.numerics_flags, TM_NUMERICS_RUN_TO_RUN);
  assert_int_equal(answer.operand, TM_NO_OPERAND);
  q.device.has = 3;
  assert_string_equal(answer_to(&q).text.data, "add_special");
}

static void an_answer_keeps_to_the_callers_size(void **state) {
  question q;
  tm_answer answer;
  (void)state;
  ask_about(&q, TM_OP_ADD, 2, TM_FORMAT_F32);
  memset(&answer, 0xaa, sizeof answer);
  answer.struct_size = offsetof(tm_answer, cost_ns);
  kernel_judge_answer(&judge, &q.device, 5, &q.operation, &answer);
  assert_int_equal(answer.struct_size, offsetof(tm_answer, cost_ns));
  assert_int_equal(answer.level, TM_LEVEL_NATIVE);
  assert_int_equal(answer.cost_ns, UINT64_C(0xaaaaaaaaaaaaaaaa));
}

static void what_is_newer_is_refused(void **state) {
  struct { tm_operation operation; uint64_t more; } longer;
  question q;
  (void)state;
  ask_about(&q, TM_OP_ADD, 2, TM_FORMAT_F32);
  memset(&longer, 0, sizeof longer);
  longer.operation = q.operation;
  longer.operation.struct_size = sizeof longer;
  assert_non_null(kernel_judge_find(&judge, &q.device, &longer.operation));
  longer.more = 1;
  assert_null(kernel_judge_find(&judge, &q.device, &longer.operation));
  q.operation.version = 2;
  assert_refused(&q, TM_REASON_OPERATION, TM_NO_OPERAND, "operation");
  q.operation.version = 1;
  q.operation.flags = 0x20000u;
  assert_refused(&q, TM_REASON_DEMAND, TM_NO_OPERAND, "operation");
  q.operation.flags = TM_OPERATION_FACTS;
  assert_int_equal(answer_to(&q).level, TM_LEVEL_NATIVE);
  q.operation.input_count = TM_MAX_OPERANDS;
  assert_refused(&q, TM_REASON_SIZE, TM_NO_OPERAND, "operation");
  q.operation.input_count = UINT32_MAX;
  assert_refused(&q, TM_REASON_SIZE, TM_NO_OPERAND, "operation");
  q.operation.struct_size = 8;
  assert_refused(&q, TM_REASON_OPERATION, TM_NO_OPERAND, "operation");
}

static void the_row_that_came_furthest_explains(void **state) {
  question q;
  (void)state;
  ask_about(&q, TM_OP_ERF, 1, TM_FORMAT_F32);
  assert_refused(&q, TM_REASON_OPERATION, TM_NO_OPERAND, "no kernel for this operation");
  ask_about(&q, TM_OP_NEG, 1, TM_FORMAT_F64);
  assert_refused(&q, TM_REASON_FORMAT, 0, "formats");
  ask_about(&q, TM_OP_NEG, 1, TM_FORMAT_F32);
  q.operands[1].format = TM_FORMAT_I8;
  assert_refused(&q, TM_REASON_FORMAT, 1, "formats");
  ask_about(&q, TM_OP_SUB, 2, TM_FORMAT_F32);
  assert_refused(&q, TM_REASON_OPERATION, TM_NO_OPERAND, "lacking");
  q.operands[2].format = TM_FORMAT_F16;
  assert_refused(&q, TM_REASON_FORMAT, 2, "formats");
  ask_about(&q, TM_OP_ADD, 2, TM_FORMAT_F32);
  q.device.broken = "add";
  assert_refused(&q, TM_REASON_RESOURCES, TM_NO_OPERAND, "compiler");
  q.operation.worst_numerics = TM_NUMERICS_N0;
  q.device.is_imprecise = 1;
  assert_refused(&q, TM_REASON_NUMERICS, TM_NO_OPERAND, "less exact");
}

static void sets_of_formats(void **state) {
  static const struct { uint32_t op, format, is_taken; } cases[] = {
    { TM_OP_NEG, TM_FORMAT_I8, 1 },    { TM_OP_NEG, TM_FORMAT_Q8_0, 1 }, { TM_OP_NEG, TM_FORMAT_Q4_0, 0 },
    { TM_OP_NEG, TM_FORMAT_F16, 0 },   { TM_OP_FILL, TM_FORMAT_C64, 1 }, { TM_OP_FILL, TM_FORMAT_Q5_0, 1 },
    { TM_OP_FILL, TM_FORMAT_Q4_0, 0 }, { TM_OP_FILL, TM_FORMAT_F32, 0 },
  };
  question q;
  (void)state;
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    ask_about(&q, cases[i].op, 1, cases[i].format);
    assert_int_equal(answer_to(&q).level != TM_LEVEL_REFUSED, cases[i].is_taken);
  }
  ask_about(&q, TM_OP_NEG, 1, TM_FORMAT_F32);
  for (uint32_t i = 0; i < 2; ++i) q.operands[i].format = TM_FORMAT_PRIVATE + TM_FORMAT_F32;
  assert_refused(&q, TM_REASON_FORMAT, 0, "formats");
  q.operation.op = TM_OP_COPY;
  assert_int_equal(answer_to(&q).level, TM_LEVEL_NATIVE);
}

static void attributes_are_known_whole(void **state) {
  const uint32_t words[4] = { 1, 0, 0, 0 };
  uint32_t odd[4] = { 1, 0, 0, 1 };
  question q;
  (void)state;
  ask_about(&q, TM_OP_GELU, 1, TM_FORMAT_F32);
  assert_refused(&q, TM_REASON_ATTRIBUTE, TM_NO_OPERAND, "attribute");
  q.operation.attributes = words;
  q.operation.attribute_bytes = 4;
  assert_refused(&q, TM_REASON_ATTRIBUTE, TM_NO_OPERAND, "attribute");
  q.operation.attribute_bytes = sizeof words;
  assert_string_equal(answer_to(&q).text.data, "gelu");
  q.operation.attributes = odd;
  assert_refused(&q, TM_REASON_ATTRIBUTE, TM_NO_OPERAND, "attribute");
}

static void exactness_is_that_on_the_device(void **state) {
  question q;
  (void)state;
  ask_about(&q, TM_OP_ADD, 2, TM_FORMAT_F32);
  q.operation.flags = TM_OPERATION_RUN_TO_RUN;
  assert_int_equal(answer_to(&q).numerics, TM_NUMERICS_N0);
  q.device.is_imprecise = 1;
  assert_refused(&q, TM_REASON_DEMAND, TM_NO_OPERAND, "other bits at each run");
  q.operation.flags = 0;
  const tm_answer answer = answer_to(&q);
  assert_int_equal(answer.numerics, TM_NUMERICS_N3);
  assert_true(answer.numerics_bound == 0.5);
}

static void assert_change(const tm_answer *answer, uint32_t index, uint32_t kind, uint32_t operand, uint32_t format) {
  assert_true(index < answer->change_count);
  const tm_change wanted = { .kind = kind, .operand = operand, .format = format };
  assert_memory_equal(&answer->changes[index], &wanted, sizeof wanted);
}

static void only_changes_that_help_are_proposed(void **state) {
  question q;
  (void)state;
  ask_about(&q, TM_OP_ADD, 2, TM_FORMAT_F32);
  loosen(&q.operands[0]);
  q.operands[1].format = TM_FORMAT_F16;
  q.operands[2].format = TM_FORMAT_Q8_0;
  tm_answer answer = answer_to(&q);
  assert_int_equal(answer.reasons, TM_REASON_FORMAT);
  assert_int_equal(answer.operand, 1);
  assert_int_equal(answer.change_count, 3);
  assert_change(&answer, 0, TM_CHANGE_CONTIGUOUS, 0, 0);
  assert_change(&answer, 1, TM_CHANGE_CAST, 1, TM_FORMAT_F32);
  assert_change(&answer, 2, TM_CHANGE_DEQUANTIZE, 2, TM_FORMAT_F32);
  q.device.largest_bytes = 100;         /* too small whatever is cast */
  assert_int_equal(answer_to(&q).change_count, 0);
  ask_about(&q, TM_OP_NEG, 1, TM_FORMAT_Q8_0);
  loosen(&q.operands[1]);
  answer = answer_to(&q);
  assert_int_equal(answer.reasons, TM_REASON_LAYOUT);
  assert_int_equal(answer.change_count, 1);
  assert_change(&answer, 0, TM_CHANGE_CONTIGUOUS, 1, 0);
}

static void a_copy_is_tried_before_a_split(void **state) {
  question q;
  (void)state;
  ask_about(&q, TM_OP_COPY, 1, TM_FORMAT_F32);
  loosen(&q.operands[0]);
  q.device.largest_bytes = 4 * 64 * 4;
  tm_answer answer = answer_to(&q);
  assert_int_equal(answer.reasons, TM_REASON_SIZE);
  assert_int_equal(answer.change_count, 1);
  assert_change(&answer, 0, TM_CHANGE_CONTIGUOUS, 0, 0);
  q.device.largest_bytes -= 1;
  answer = answer_to(&q);
  assert_string_equal(answer.text.data, "exceeding");
  assert_int_equal(answer.change_count, 1);
  assert_int_equal(answer.changes[0].kind, TM_CHANGE_SPLIT_ABOVE);
  assert_int_equal(answer.changes[0].value, 9);
  q.device.splits = 0;
  assert_refused(&q, TM_REASON_SIZE, 0, "exceeding");
}

/* More changes than an answer holds are none. */
static void too_many_changes_are_none(void **state) {
  question q;
  (void)state;
  ask_about(&q, TM_OP_COPY, TM_MAX_CHANGES, TM_FORMAT_F32);
  q.device.largest_bytes = 4 * 64 * 4;
  for (uint32_t i = 0; i <= TM_MAX_CHANGES; ++i) loosen(&q.operands[i]);
  q.device.splits = 0;
  assert_refused(&q, TM_REASON_SIZE, 0, "exceeding");
  ask_about(&q, TM_OP_COPY, TM_MAX_CHANGES, TM_FORMAT_F32);
  q.device.largest_bytes = 4 * 64 * 4;
  for (uint32_t i = 1; i <= TM_MAX_CHANGES; ++i) loosen(&q.operands[i]);
  assert_int_equal(answer_to(&q).change_count, TM_MAX_CHANGES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_row_that_fits_answers),     cmocka_unit_test(an_answer_keeps_to_the_callers_size),
    cmocka_unit_test(what_is_newer_is_refused),            cmocka_unit_test(the_row_that_came_furthest_explains),
    cmocka_unit_test(sets_of_formats),                     cmocka_unit_test(attributes_are_known_whole),
    cmocka_unit_test(exactness_is_that_on_the_device),     cmocka_unit_test(only_changes_that_help_are_proposed),
    cmocka_unit_test(a_copy_is_tried_before_a_split),      cmocka_unit_test(too_many_changes_are_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
