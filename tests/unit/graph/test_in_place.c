/* SPDX-License-Identifier: Apache-2.0 */
/* What is certain to be written over what is read, and what only might be. */
#include "graph/in_place.h"

#include "unit/graph/graph_case.h"

static void expect(graph_case *c, const char *expected) {
  tm_arena arena;
  uint8_t *certain = NULL;
  char found[16] = "";
  tm_arena_init(&arena, &c->memory);
  assert_int_equal(tm_graph_in_place_find(&c->graph, &arena, &certain, &c->error), TM_OK);
  for (uint32_t i = 0; i < c->graph.node_count; i++) found[i] = certain[i] != 0 ? 'x' : '.';
  assert_string_equal(found, expected);
  tm_arena_deinit(&arena);
}

static void results_with_one_reader(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4));
  const uint32_t x = add_input(&c, "x", four), w = add_constant(&c, "w", four);
  const uint32_t a = add_unary(&c, TM_OP_EXP, x);               /* an input is the application's */
  const uint32_t b = add_unary(&c, TM_OP_NEG, a);
  const uint32_t d = add_binary(&c, TM_OP_ADD, b, w);           /* w looks like it, so a device might expect either */
  const uint32_t e = add_unary(&c, TM_OP_NEG, d);               /* read again below */
  const uint32_t f = add_unary(&c, TM_OP_EXP, d);
  const uint32_t g = add_unary(&c, TM_OP_NEG, f);
  const uint32_t h = add_unary(&c, TM_OP_NEG, add_view(&c, e, f32(1, DIMS(2)), 0));
  const uint32_t i = add_unary(&c, TM_OP_EXP, g);               /* wanted after the run */
  add_output(&c, "g", g);
  add_output(&c, "h", h);
  add_output(&c, "i", i);
  expect(&c, ".x...x" "..");
  case_end(&c);
}

/* Once dims are merged and filled in the two look alike. */
static void two_that_come_to_look_alike(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const uint32_t x = add_input(&c, "x", f32(1, DIMS(4))), y = add_input(&c, "y", f32(2, DIMS(1, 4)));
  const uint32_t z = add_input(&c, "z", f32(1, DIMS(1)));
  const uint32_t a = add_unary(&c, TM_OP_NEG, y);
  const uint32_t b = add_binary(&c, TM_OP_ADD, x, a);
  add_output(&c, "d", add_binary(&c, TM_OP_ADD, b, z));         /* z does not */
  expect(&c, "..x");
  case_end(&c);
}

static void states_that_become_what_is_written(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand rows = f32(2, DIMS(4, 2)), row = f32(2, DIMS(1, 2));
  const tm_axis_attributes axis = { 0, 0 };
  const uint32_t at = add_input(&c, "at", dense(TM_FORMAT_I32, 0, NULL)), one = add_input(&c, "row", row);
  uint32_t states[4], next[4];
  for (uint32_t i = 0; i < 4; i++) states[i] = add_state(&c, (const char *[]){ "a", "b", "c", "d" }[i], rows);
  for (uint32_t i = 0; i < 3; i++) {
    const tm_node_request request = { .op = TM_OP_UPDATE, .attributes = &axis, .attribute_bytes = sizeof axis, .input_count = 3,
                                      .inputs = VALUES(states[i], one, at), .output_count = 1 };
    assert_int_equal(tm_graph_add_node(&c.graph, &request, &next[i], &c.error), TM_OK);
  }
  next[3] = add_unary(&c, TM_OP_NEG, states[3]);                /* halfway it could not be done again */
  add_output(&c, "old", add_unary(&c, TM_OP_NEG, states[2]));   /* a second reader */
  const uint32_t carried[] = { 0, 2, 3 };                       /* b stays what it was */
  for (uint32_t i = 0; i < 3; i++)
    assert_int_equal(tm_graph_add_carry(&c.graph, states[carried[i]], next[carried[i]], &c.error), TM_OK);
  expect(&c, "x....");
  case_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(results_with_one_reader),
    cmocka_unit_test(two_that_come_to_look_alike),
    cmocka_unit_test(states_that_become_what_is_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
