/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

static tm_axis_attributes axis_is;

static op_case update(uint32_t axis, const uint64_t *state_dims, const double *state, const uint64_t *rows_dims,
                      const double *rows) {
  axis_is = (tm_axis_attributes){ axis, 0 };
  op_case c = op_begin(TM_OP_UPDATE, &axis_is, sizeof axis_is);
  op_input(&c, TM_FORMAT_F32, 2, state_dims, state);
  op_input(&c, TM_FORMAT_F32, 2, rows_dims, rows);
  return c;
}

static op_case run_at(int64_t start, uint32_t axis, const uint64_t *state_dims, const double *state, const uint64_t *rows_dims,
                      const double *rows) {
  op_case c = update(axis, state_dims, state, rows_dims, rows);
  op_input_bytes(&c, TM_FORMAT_I64, 0, NULL, &start);
  op_run(&c, TM_FORMAT_NONE);
  return c;
}

#define STATE VALUES(1, 2, 3, 4, 5, 6, 7, 8)
#define ROWS VALUES(-1, -2, -3, -4)

static void a_slice_is_replaced(void **state) {
  (void)state;
  op_case c = run_at(1, 0, DIMS(4, 2), STATE, DIMS(2, 2), ROWS);
  op_expect(&c, 8, VALUES(1, 2, -1, -2, -3, -4, 7, 8));
  c = run_at(2, 1, DIMS(2, 4), STATE, DIMS(2, 2), ROWS);
  op_expect(&c, 8, VALUES(1, 2, -1, -2, 5, 6, -3, -4));
}

static void what_is_outside_is_left_out(void **state) {
  (void)state;
  op_case c = run_at(3, 0, DIMS(4, 2), STATE, DIMS(2, 2), ROWS);
  op_expect(&c, 8, VALUES(1, 2, 3, 4, 5, 6, -1, -2));
  c = run_at(-1, 0, DIMS(4, 2), STATE, DIMS(2, 2), ROWS);
  op_expect(&c, 8, VALUES(-3, -4, 3, 4, 5, 6, 7, 8));
  static const int64_t far[] = { 4, -2, INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_C(1) << 32 };
  for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
    c = run_at(far[i], 0, DIMS(4, 2), STATE, DIMS(2, 2), ROWS);
    op_expect(&c, 8, STATE);
  }
  c = run_at(0, 0, DIMS(4, 2), STATE, DIMS(0, 2), NULL);
  op_expect(&c, 8, STATE);
  c = run_at(0, 0, DIMS(1, 2), VALUES(1, 2), DIMS(2, 2), ROWS);
  op_expect(&c, 2, VALUES(-1, -2));
}

static void rows_go_to_their_indices(void **state) {
  (void)state;
  const int32_t places[] = { 3, 0 }, same[] = { 2, 2 }, outside[] = { -1, 4 };
  op_case c = update(0, DIMS(4, 2), STATE, DIMS(2, 2), ROWS);
  op_input_bytes(&c, TM_FORMAT_I32, 1, DIMS(2), places);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 8, VALUES(-3, -4, 3, 4, 5, 6, -1, -2));
  c = update(0, DIMS(4, 2), STATE, DIMS(2, 2), ROWS);
  op_input_bytes(&c, TM_FORMAT_I32, 1, DIMS(2), same);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 8, VALUES(1, 2, 3, 4, -3, -4, 7, 8));
  c = update(1, DIMS(2, 4), STATE, DIMS(2, 2), ROWS);
  op_input_bytes(&c, TM_FORMAT_I32, 1, DIMS(2), outside);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 8, STATE);
}

#define MANY (UINT64_C(1) << 19)

/* Each row costs what it moves, however many there are: looked for one by one, these would take hours.  The last of a place wins. */
static void many_rows_find_their_places(void **state) {
  (void)state;
  const tm_axis_attributes axis = { 0, 0 };
  int32_t *places = malloc(MANY * sizeof *places);
  float *rows = malloc(MANY * sizeof *rows), *expected = calloc(MANY, sizeof *expected);
  assert_true(places != NULL && rows != NULL && expected != NULL);
  for (uint64_t i = 0; i < MANY; i++) {
    places[i] = (int32_t)(i * 48271 % MANY) - 5;
    if (i % 3 == 0) places[i] /= 2;
    rows[i] = (float)(i + 1);
    if (places[i] >= 0) expected[places[i]] = rows[i];
  }
  op_case c = op_begin(TM_OP_UPDATE, &axis, sizeof axis);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(MANY), NULL);
  memset(c.pointers[0], 0, MANY * sizeof *expected);
  op_input_bytes(&c, TM_FORMAT_F32, 1, DIMS(MANY), rows);
  op_input_bytes(&c, TM_FORMAT_I32, 1, DIMS(MANY), places);
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, (const unsigned char *)expected, MANY * sizeof *expected);
  free(expected);
  free(rows);
  free(places);
}

/* In the state's own memory, in parts, and once more. */
static void works_in_place_and_again(void **state) {
  (void)state;
  const tm_op_row *row = tm_op_find(TM_OP_UPDATE);
  op_case c = run_at(1, 0, DIMS(4, 2), STATE, DIMS(2, 2), ROWS);
  c.operation.operands = c.operands;
  void *const over[] = { c.pointers[0], c.pointers[1], c.pointers[2], c.pointers[0] };
  assert_int_equal(row->may_alias, 1);
  for (int again = 0; again < 2; again++) {
    for (uint64_t unit = 0; unit < 8; unit += 2) row->reference(&c.operation, over, unit, unit + 2);
    assert_memory_equal(c.pointers[0], c.pointers[3], 8 * sizeof(float));
  }
  op_end(&c);
}

/* In place the state is neither read nor written where it stays. */
static void counts_what_moves(void **state) {
  (void)state;
  const tm_op_row *row = tm_op_find(TM_OP_UPDATE);
  tm_work work;
  op_case c = run_at(1, 0, DIMS(4, 2), STATE, DIMS(2, 2), ROWS);
  c.operation.operands = c.operands;
  row->work(&c.operation, &work);
  assert_int_equal(work.read_bytes, 32 + 16 + 8);
  assert_int_equal(work.written_bytes, 32);
  c.operands[3].flags |= TM_OPERAND_IN_PLACE;
  row->work(&c.operation, &work);
  assert_int_equal(work.read_bytes, 16 + 8);
  assert_int_equal(work.written_bytes, 16);
  assert_int_equal(tm_op_check(&c.operation, &c.error), TM_OK);
  tm_op_normalize(&c.operation, c.operands);
  assert_true((c.operands[3].flags & TM_OPERAND_IN_PLACE) != 0);
  op_end(&c);
}

static void blocks_move_whole(void **state) {
  (void)state;
  const tm_axis_attributes axis = { 0, 0 };
  unsigned char rows[34], expected[3 * 34];
  const int32_t start = 1;
  for (int i = 0; i < 34; i++) rows[i] = (unsigned char)(200 - i);
  op_case c = op_begin(TM_OP_UPDATE, &axis, sizeof axis);
  op_input(&c, TM_FORMAT_Q8_0, 2, DIMS(3, 32), NULL);
  memset(c.pointers[0], 17, sizeof expected);
  op_input_bytes(&c, TM_FORMAT_Q8_0, 2, DIMS(1, 32), rows);
  op_input_bytes(&c, TM_FORMAT_I32, 0, NULL, &start);
  op_run(&c, TM_FORMAT_NONE);
  memset(expected, 17, sizeof expected);
  memcpy(expected + 34, rows, sizeof rows);
  op_expect_bytes(&c, expected, sizeof expected);
}

static void refuses(void **state) {
  (void)state;
  op_case c = update(0, DIMS(4, 2), NULL, DIMS(2, 3), NULL);
  op_input(&c, TM_FORMAT_I32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("update: rows", "[2,3]", "[2,2]"));
  c = update(0, DIMS(4, 2), NULL, DIMS(2, 2), NULL);
  op_input(&c, TM_FORMAT_I32, 1, DIMS(3), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("update: start", "[3]", "[2]"));
  c = update(0, DIMS(4, 2), NULL, DIMS(2, 2), NULL);
  op_input(&c, TM_FORMAT_U32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("start has format u32"));
  c = update(2, DIMS(4, 2), NULL, DIMS(2, 2), NULL);
  op_input(&c, TM_FORMAT_I32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("axis 2", "less than 2"));
  c = update(0, DIMS(4, 2), NULL, DIMS(2, 2), NULL);
  op_input(&c, TM_FORMAT_I32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_F16, WORDS("y has format f16", "f32"));
  c = op_begin(TM_OP_UPDATE, &axis_is, sizeof axis_is);
  axis_is.axis = 1;
  op_input(&c, TM_FORMAT_Q8_0, 2, DIMS(3, 32), NULL);
  op_input(&c, TM_FORMAT_Q8_0, 2, DIMS(3, 32), NULL);
  op_input(&c, TM_FORMAT_I32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("q8_0", "last axis"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_slice_is_replaced),     cmocka_unit_test(what_is_outside_is_left_out), cmocka_unit_test(rows_go_to_their_indices),
    cmocka_unit_test(many_rows_find_their_places),
    cmocka_unit_test(works_in_place_and_again), cmocka_unit_test(counts_what_moves), cmocka_unit_test(blocks_move_whole),           cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
