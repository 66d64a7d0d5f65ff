/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise rows that declare it give the same bits when the output is written where an input lies. */
#include "unit/ops/op_case.h"

enum { COUNT = 777 };

static uint32_t input_format(const tm_op_row *row, uint32_t input) {
  return row->op == TM_OP_WHERE && input == 0 ? TM_FORMAT_BOOL : TM_FORMAT_F32;
}

static void begin(op_case *c, const tm_op_row *row, const void *attributes) {
  *c = op_begin(row->op, attributes, row->attribute_bytes);
  c->operation.operands = c->operands;
  if (row->attribute_bytes == 0) c->operation.attributes = NULL;
  for (uint32_t i = 0; i < row->input_max; i++) {
    op_input(c, input_format(row, i), 1, DIMS(COUNT), NULL);
    unsigned char *bytes = c->pointers[i];
    for (uint64_t k = 0; k < c->operands[i].byte_count; k++) bytes[k] = (unsigned char)((k * 7919 + i * 104729 + (k >> 3)) >> 2);
  }
  tm_operand *y = &c->operands[row->input_max];
  *y = (tm_operand){ 0 };
  if (tm_op_infer_outputs(&c->operation, y, &c->error) != TM_OK) fail_msg("%s", c->error.text);
  c->pointers[row->input_max] = op_alloc(y->byte_count);
}

static void run_into(const op_case *c, const tm_op_row *row, void *y) {
  void *pointers[TM_MAX_OPERANDS];
  memcpy(pointers, c->pointers, sizeof pointers);
  pointers[row->input_max] = y;
  row->reference(&c->operation, pointers, 0, row->units(&c->operation));
}

static uint32_t check_row(const tm_op_row *row) {
  static const uint64_t attributes[8] = { 0 };
  uint32_t checked = 0;
  for (uint32_t i = 0; i < row->input_max; i++) {
    op_case c;
    begin(&c, row, attributes);
    const uint64_t bytes = c.operands[row->input_max].byte_count;
    const bool can = (row->may_alias >> i & 1) != 0 && c.operands[i].format == c.operands[row->input_max].format;
    if (can) {
      run_into(&c, row, c.pointers[row->input_max]);
      run_into(&c, row, c.pointers[i]);
      const bool is_same = memcmp(c.pointers[i], c.pointers[row->input_max], bytes) == 0;
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
  assert_int_equal(checked, 11 + 4 * 2 + 3 + 2 + 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(outputs_may_lie_where_declared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
