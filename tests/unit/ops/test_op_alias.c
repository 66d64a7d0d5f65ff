/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise rows that declare it give the same bits when the output is written where an input lies. */
#include "unit/ops/op_case.h"

enum { COUNT = 777 };

static uint32_t input_format(const tm_op_row *row, uint32_t input) {
  return row->op == TM_OP_WHERE && input == 0 ? TM_FORMAT_BOOL : TM_FORMAT_F32;
}

/* Of an operation that takes any number of inputs a few are enough. */
static uint32_t input_count(const tm_op_row *row) { return row->input_max > 6 ? 6 : row->input_max; }

/* The second input of a merge: numbers of ordinary size, and thresholds that drop some. */
static bool add_settings(op_case *c, const tm_op_row *row, uint32_t input) {
  if (row->op < TM_OP_WEIGHTED_SUM || row->op > TM_OP_TIES_SUM || input != 1) return false;
  const uint32_t others = input_count(row) - 2;
  uint64_t words[1 + 4 * 4] = { 5 };
  double numbers[1 + 4 * 4];
  for (uint32_t i = 0; i < 17; i++) numbers[i] = 0.25 + i;
  for (uint32_t i = 0; i < others; i++) {
    uint64_t *own = &words[1 + TM_DARE_WORDS * i];
    memcpy(&own[TM_DARE_WEIGHT], &numbers[i], sizeof numbers[i]);
    memcpy(&own[TM_DARE_FACTOR], &numbers[i + 1], sizeof numbers[i]);
    own[TM_DARE_THRESHOLD] = (uint64_t)(i + 1) << 30;
    own[TM_DARE_KEY] = i;
  }
  if (row->op == TM_OP_DARE_SUM) op_input_bytes(c, TM_FORMAT_U64, 1, DIMS(1 + TM_DARE_WORDS * others), words);
  else op_input(c, TM_FORMAT_F64, 1, DIMS(row->op == TM_OP_WEIGHTED_SUM ? 1 + others : 1 + 2 * others), numbers);
  return true;
}

static void begin(op_case *c, const tm_op_row *row, const void *attributes) {
  *c = op_begin(row->op, attributes, row->attribute_bytes);
  c->operation.operands = c->operands;
  if (row->attribute_bytes == 0) c->operation.attributes = NULL;
  for (uint32_t i = 0; i < input_count(row); i++) {
    if (add_settings(c, row, i)) continue;
    op_input(c, input_format(row, i), 1, DIMS(COUNT), NULL);
    unsigned char *bytes = c->pointers[i];
    for (uint64_t k = 0; k < c->operands[i].byte_count; k++) bytes[k] = (unsigned char)((k * 7919 + i * 104729 + (k >> 3)) >> 2);
  }
  tm_operand *y = &c->operands[input_count(row)];
  *y = (tm_operand){ 0 };
  if (tm_op_infer_outputs(&c->operation, y, &c->error) != TM_OK) fail_msg("%s", c->error.text);
  c->pointers[input_count(row)] = op_alloc(y->byte_count);
}

static void run_into(const op_case *c, const tm_op_row *row, void *y) {
  void *pointers[TM_MAX_OPERANDS];
  memcpy(pointers, c->pointers, sizeof pointers);
  pointers[input_count(row)] = y;
  row->reference(&c->operation, pointers, 0, row->units(&c->operation));
}

static uint32_t check_row(const tm_op_row *row) {
  static const uint64_t attributes[8] = { 0 };
  uint32_t checked = 0;
  for (uint32_t i = 0; i < input_count(row); i++) {
    op_case c;
    begin(&c, row, attributes);
    const uint64_t bytes = c.operands[input_count(row)].byte_count;
    const bool can = (row->may_alias >> i & 1) != 0 && c.operands[i].format == c.operands[input_count(row)].format;
    if (can) {
      run_into(&c, row, c.pointers[input_count(row)]);
      run_into(&c, row, c.pointers[i]);
      const bool is_same = memcmp(c.pointers[i], c.pointers[input_count(row)], bytes) == 0;
      if (!is_same) fail_msg("%s: other bits in the place of input %u", row->name, i);
      checked++;
    }
    op_end(&c);
  }
  return checked;
}

static void outputs_may_lie_where_declared(void **state) {
  (void)state;
  uint32_t checked = 0;
  const tm_op_row *row;
  for (uint32_t i = 0; (row = tm_op_at(i)) != NULL; i++) {
    if (row->may_alias == 0 || row->merged_operands == 0) continue;     /* others have tests of their own */
    assert_int_equal(row->output_count, 1);
    assert_int_equal(row->may_alias >> row->input_max, 0);
    checked += check_row(row);
  }
  assert_int_equal(checked, 11 + 4 * 2 + 3 + 2 + 3 + 3 * 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(outputs_may_lie_where_declared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
