/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

static double position_of(int64_t position) { return (double)(int32_t)(uint32_t)(uint64_t)position; }

/* The formula of types.h, element by element. */
static void turn(const double *x, uint64_t dim, double position, const tm_rope_attributes *attributes, double *out_y) {
  const uint64_t count = attributes->rotary_dims != 0 ? attributes->rotary_dims : dim;
  const double theta = attributes->theta != 0 ? attributes->theta : 10000;
  const double scale = attributes->scale != 0 ? attributes->scale : 1;
  const bool halves = attributes->layout == TM_ROPE_HALVES;
  for (uint64_t i = 0; i < dim; i++) out_y[i] = x[i];
  for (uint64_t i = 0; i < count / 2; i++) {
    const double t = position * scale * pow(theta, -2.0 * (double)i / (double)count);
    const uint64_t a = halves ? i : 2 * i, b = halves ? i + count / 2 : 2 * i + 1;
    out_y[a] = x[a] * cos(t) - x[b] * sin(t);
    out_y[b] = x[a] * sin(t) + x[b] * cos(t);
  }
}

static void expect_turned(const tm_rope_attributes *attributes, uint32_t index_format) {
  enum { BATCH = 2, TOKENS = 3, HEADS = 2, DIM = 6, COUNT = BATCH * TOKENS * HEADS * DIM };
  static const int64_t positions[TOKENS] = { 0, 7, -2147483648 };
  double x[COUNT], expected[COUNT];
  int32_t narrow[TOKENS];
  for (int i = 0; i < COUNT; i++) x[i] = sin(i) * 3;
  for (int i = 0; i < TOKENS; i++) narrow[i] = (int32_t)positions[i];
  for (int row = 0; row < COUNT / DIM; row++)
    turn(x + row * DIM, DIM, position_of(positions[row / HEADS % TOKENS]), attributes, expected + row * DIM);
  op_case c = op_begin(TM_OP_ROPE, attributes, sizeof *attributes);
  op_input(&c, TM_FORMAT_F64, 4, DIMS(BATCH, TOKENS, HEADS, DIM), x);
  op_input_bytes(&c, index_format, 1, DIMS(TOKENS), index_format == TM_FORMAT_I32 ? (const void *)narrow : positions);
  op_run(&c, TM_FORMAT_NONE);
  op_expect_dims(&c, 4, DIMS(BATCH, TOKENS, HEADS, DIM));
  op_expect(&c, COUNT, expected);
}

static void turns_pairs_and_halves(void **state) {
  (void)state;
  static const tm_rope_attributes all[] = {
    { 0 }, { .layout = TM_ROPE_HALVES }, { .theta = 500000, .scale = 0.25, .rotary_dims = 4, .layout = TM_ROPE_HALVES },
    { .theta = 2, .rotary_dims = 2 },    { .theta = 0.5, .scale = -1 },
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    expect_turned(&all[i], TM_FORMAT_I32);
    expect_turned(&all[i], TM_FORMAT_I64);
  }
}

/* A position is 32 bits wide: whatever stands above them in an i64 does not count. */
static void wide_positions_count_by_their_low_bits(void **state) {
  (void)state;
  static const int64_t positions[] = { 5, INT64_C(0x7fffffff00000005), INT64_MIN + 5 };
  const tm_rope_attributes attributes = { 0 };
  op_case c = op_begin(TM_OP_ROPE, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F32, 3, DIMS(3, 1, 2), VALUES(1, 2, 1, 2, 1, 2));
  op_input_bytes(&c, TM_FORMAT_I64, 1, DIMS(3), positions);
  op_run(&c, TM_FORMAT_F64);
  const double a = cos(5) - 2 * sin(5), b = sin(5) + 2 * cos(5);
  op_expect(&c, 6, VALUES(a, b, a, b, a, b));
}

/* What does not turn keeps its bits, a NaN's payload, too. */
static void the_rest_keeps_its_bits(void **state) {
  (void)state;
  const tm_rope_attributes attributes = { .rotary_dims = 2 };
  const uint32_t x[] = { 0, 0, 0xffc12345, 0x80000000 };
  const int32_t position = 0;
  op_case c = op_begin(TM_OP_ROPE, &attributes, sizeof attributes);
  op_input_bytes(&c, TM_FORMAT_F32, 3, DIMS(1, 1, 4), x);
  op_input_bytes(&c, TM_FORMAT_I32, 1, DIMS(1), &position);
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, x, sizeof x);
}

/* More pairs than one run holds; and over itself. */
static void long_heads_turn_in_place(void **state) {
  (void)state;
  enum { DIM = 2600 };
  static double x[DIM], expected[DIM];
  const tm_rope_attributes attributes = { .rotary_dims = 2500, .layout = TM_ROPE_HALVES };
  const int32_t position = 1234;
  for (int i = 0; i < DIM; i++) x[i] = cos(i);
  turn(x, DIM, position, &attributes, expected);
  op_case c = op_begin(TM_OP_ROPE, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F64, 3, DIMS(1, 1, DIM), x);
  op_input_bytes(&c, TM_FORMAT_I32, 1, DIMS(1), &position);
  op_run(&c, TM_FORMAT_NONE);
  const tm_op_row *row = tm_op_find(TM_OP_ROPE);
  void *const over[] = { c.pointers[0], c.pointers[1], c.pointers[0] };
  assert_int_equal(row->may_alias, 1);
  row->reference(&c.operation, over, 0, 1);
  assert_memory_equal(c.pointers[0], c.pointers[2], sizeof expected);
  op_expect(&c, DIM, expected);
}

static op_case rope(const tm_rope_attributes *attributes, uint32_t rank, const uint64_t *dims, uint64_t positions, uint32_t format) {
  op_case c = op_begin(TM_OP_ROPE, attributes, sizeof *attributes);
  op_input(&c, TM_FORMAT_F32, rank, dims, NULL);
  op_input(&c, format, 1, &positions, NULL);
  return c;
}

static void refuses(void **state) {
  (void)state;
  static const tm_rope_attributes usual, odd = { .rotary_dims = 3 }, wide = { .rotary_dims = 6 }, layout = { .layout = 2 },
                                  theta = { .theta = -1 }, scale = { .scale = (double)INFINITY };
  op_case c = rope(&usual, 3, DIMS(5, 1, 4), 4, TM_FORMAT_I32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("rope: positions", "[4]", "[5]"));
  c = rope(&usual, 3, DIMS(5, 1, 4), 5, TM_FORMAT_F32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("positions has format f32", "i32 or i64"));
  c = rope(&usual, 2, DIMS(5, 4), 5, TM_FORMAT_I32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("rank 2", "at least 3"));
  c = rope(&usual, 3, DIMS(5, 1, 3), 5, TM_FORMAT_I32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("3 elements", "even"));
  c = rope(&odd, 3, DIMS(5, 1, 4), 5, TM_FORMAT_I32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("3 elements", "even"));
  c = rope(&wide, 3, DIMS(5, 1, 4), 5, TM_FORMAT_I32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("6 elements", "at most 4"));
  c = rope(&layout, 3, DIMS(5, 1, 4), 5, TM_FORMAT_I32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("layout is 2"));
  c = rope(&theta, 3, DIMS(5, 1, 4), 5, TM_FORMAT_I32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("theta is -1"));
  c = rope(&scale, 3, DIMS(5, 1, 4), 5, TM_FORMAT_I32);
  op_refused(&c, TM_FORMAT_NONE, WORDS("scale is inf"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(turns_pairs_and_halves),
    cmocka_unit_test(wide_positions_count_by_their_low_bits),
    cmocka_unit_test(the_rest_keeps_its_bits),
    cmocka_unit_test(long_heads_turn_in_place),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
