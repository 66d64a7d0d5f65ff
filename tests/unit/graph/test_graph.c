/* SPDX-License-Identifier: Apache-2.0 */
/* Building: what is accepted, and what is refused with which words. */
#include <time.h>

#include "unit/graph/graph_case.h"

static void values_and_nodes_are_numbered_in_order(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const uint32_t x = add_input(&c, "x", f32(2, DIMS(4, 8)));
  const uint32_t w = add_constant(&c, "w", f32(2, DIMS(8, 2)));
  const uint32_t h = add_state(&c, "h", f32(1, DIMS(2)));
  const uint32_t xw = add_binary(&c, TM_OP_ADD, x, x);
  const uint32_t flat = add_view(&c, xw, f32(1, DIMS(32)), 0);
  assert_int_equal(x, 0);
  assert_int_equal(w, 1);
  assert_int_equal(h, 2);
  assert_int_equal(xw, 3);
  assert_int_equal(flat, 4);
  assert_int_equal(c.graph.values[xw].node, 0);
  assert_int_equal(c.graph.values[flat].base, xw);
  assert_int_equal(c.graph.values[w].operand.flags & TM_OPERAND_CONSTANT, TM_OPERAND_CONSTANT);
  assert_int_equal(c.graph.values[x].operand.flags & TM_OPERAND_CONSTANT, 0);
  tm_operand operands[TM_MAX_OPERANDS];
  const tm_operation operation = tm_graph_operation(&c.graph, 0, operands);
  assert_int_equal(tm_op_check(&operation, &c.error), TM_OK);
  case_end(&c);
}

/* Shorter attributes are completed; what the operation makes of them is what its row says. */
static void attributes_are_kept_and_completed(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const uint32_t inputs[] = { add_input(&c, "a", f32(2, DIMS(8, 4))), add_input(&c, "b", f32(2, DIMS(8, 2))) };
  tm_matmul_attributes attributes = { .transpose_a = 1 };
  uint32_t y;
  assert_int_equal(try_node(&c, "product", TM_OP_MATMUL, &attributes, 4, inputs, 2, &y), TM_OK);
  attributes.transpose_a = 0;
  const tm_matmul_attributes *kept = c.graph.nodes[0].attributes;
  assert_int_equal(kept->transpose_a, 1);
  assert_int_equal(kept->transpose_b, 0);
  assert_int_equal(c.graph.values[y].operand.dims[0], 4);
  assert_int_equal(c.graph.values[y].operand.dims[1], 2);
  case_end(&c);
}

/* Formats other than the usual, and shapes that no input says. */
static void wanted_outputs_are_made(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const uint32_t x = add_input(&c, "x", f32(2, DIMS(4, 8))), scalar = add_input(&c, "scalar", f32(0, NULL));
  const tm_reduce_attributes rows = { .axes = 2 };
  const tm_operand as_f64 = { .format = TM_FORMAT_F64 }, shape = { .rank = 2, .dims = { 3, 5 } }, deep = { .rank = 99 };
  uint32_t y = 0;
  tm_node_request request = { .op = TM_OP_SUM, .attributes = &rows, .attribute_bytes = sizeof rows, .inputs = &x, .input_count = 1,
                              .outputs = &as_f64, .output_count = 1 };
  assert_int_equal(tm_graph_add_node(&c.graph, &request, &y, &c.error), TM_OK);
  assert_int_equal(c.graph.values[y].operand.format, TM_FORMAT_F64);
  assert_int_equal(c.graph.values[y].operand.rank, 1);
  request = (tm_node_request){ .op = TM_OP_FILL, .inputs = &scalar, .input_count = 1, .outputs = &shape, .output_count = 1 };
  assert_int_equal(tm_graph_add_node(&c.graph, &request, &y, &c.error), TM_OK);
  assert_int_equal(c.graph.values[y].operand.byte_count, 60);
  request.outputs = &deep;
  says(&c, tm_graph_add_node(&c.graph, &request, &y, &c.error), TM_ERROR_ARGUMENT, "node 2: fill: y: rank 99");
  case_end(&c);
}

static void wrong_nodes_are_refused(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const uint32_t x = add_input(&c, "x", f32(2, DIMS(4, 8)));
  const uint32_t z = add_input(&c, "z", f32(2, DIMS(3, 5)));
  const uint32_t i = add_input(&c, "i", dense(TM_FORMAT_I32, 2, DIMS(4, 8)));
  uint32_t y = 77;
  says(&c, try_node(&c, "first", TM_OP_ADD, NULL, 0, VALUES(x, z), 2, &y), TM_ERROR_ARGUMENT,
       "node 0 'first': add: shapes [4,8] [3,5]");
  says(&c, try_node(&c, NULL, TM_OP_ADD, NULL, 0, VALUES(x, i), 2, &y), TM_ERROR_ARGUMENT,
       "node 0: add: b has format i32, expected f32");
  says(&c, try_node(&c, NULL, TM_OP_ADD, NULL, 0, VALUES(x, 9), 2, &y), TM_ERROR_ARGUMENT,
       "node 0: input 1 is value 9, which is not made yet");
  says(&c, try_node(&c, NULL, TM_OP_ADD, NULL, 0, VALUES(x, TM_GRAPH_NONE), 2, &y), TM_ERROR_ARGUMENT, "input 1 is no value");
  says(&c, try_node(&c, NULL, 9999, NULL, 0, VALUES(x, x), 2, &y), TM_ERROR_ARGUMENT, "operation number 9999 is not known");
  says(&c, try_node(&c, NULL, TM_OP_CONVERT, NULL, 0, VALUES(x), 1, &y), TM_ERROR_ARGUMENT, "none that a graph takes");
  says(&c, try_node(&c, NULL, TM_OP_ADD, NULL, 0, VALUES(x), 1, &y), TM_ERROR_ARGUMENT, "add has 1 inputs, expected 2 to 2");
  says(&c, try_node(&c, NULL, TM_OP_ADD, NULL, 0, NULL, 2, &y), TM_ERROR_ARGUMENT, "add has 0 inputs");
  says(&c, try_node(&c, NULL, TM_OP_NEG, "1234", 4, VALUES(x), 1, &y), TM_ERROR_ARGUMENT, "4 bytes of attributes, expected 0");
  says(&c, try_node(&c, "bad\nname", TM_OP_NEG, NULL, 0, VALUES(x), 1, &y), TM_ERROR_ARGUMENT, "'bad\\nname'");
  const tm_node_request old = { .op = TM_OP_NEG, .version = 2, .inputs = &x, .input_count = 1, .output_count = 1 };
  says(&c, tm_graph_add_node(&c.graph, &old, &y, &c.error), TM_ERROR_ARGUMENT, "neg version 2, expected 1");
  const tm_node_request two = { .op = TM_OP_NEG, .inputs = &x, .input_count = 1, .output_count = 2 };
  says(&c, tm_graph_add_node(&c.graph, &two, &y, &c.error), TM_ERROR_ARGUMENT, "2 outputs, expected 1");
  assert_int_equal(y, 77);
  assert_int_equal(c.graph.node_count, 0);
  assert_int_equal(c.graph.value_count, 3);
  assert_int_equal(try_node(&c, "first", TM_OP_NEG, NULL, 0, VALUES(x), 1, &y), TM_OK);
  says(&c, try_node(&c, "first", TM_OP_NEG, NULL, 0, VALUES(x), 1, &y), TM_ERROR_ARGUMENT, "node 'first': node 0 has this name");
  case_end(&c);
}

static void names_are_unique_and_clean(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand one = f32(1, DIMS(1));
  uint32_t value;
  add_input(&c, "x", one);
  says(&c, tm_graph_add_state(&c.graph, "x", &one, &value, &c.error), TM_ERROR_ARGUMENT,
       "state 'x': the name is that of value 0, input 'x'");
  says(&c, tm_graph_add_input(&c.graph, NULL, &one, &value, &c.error), TM_ERROR_ARGUMENT, "input without a name");
  says(&c, tm_graph_add_input(&c.graph, "", &one, &value, &c.error), TM_ERROR_ARGUMENT, "input without a name");
  says(&c, tm_graph_add_input(&c.graph, "\xff", &one, &value, &c.error), TM_ERROR_ARGUMENT, "'\\xff': the name is no UTF-8");
  char longest[TM_GRAPH_LONGEST_NAME + 2];
  memset(longest, 'n', sizeof longest);
  longest[TM_GRAPH_LONGEST_NAME + 1] = '\0';
  says(&c, tm_graph_add_input(&c.graph, longest, &one, &value, &c.error), TM_ERROR_ARGUMENT, "256 bytes, expected at most 255");
  longest[TM_GRAPH_LONGEST_NAME] = '\0';
  assert_int_equal(tm_graph_add_input(&c.graph, longest, &one, &value, &c.error), TM_OK);
  says(&c, tm_graph_add_input(&c.graph, longest, &one, &value, &c.error), TM_ERROR_ARGUMENT, "names are unique");
  add_output(&c, "x", 0);
  says(&c, tm_graph_add_output(&c.graph, "x", 1, &c.error), TM_ERROR_ARGUMENT, "output 'x': output 0 has this name");
  says(&c, tm_graph_add_output(&c.graph, "y", 99, &c.error), TM_ERROR_ARGUMENT, "output 'y' is value 99, which is not made yet");
  case_end(&c);
}

static void views_stay_inside(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const uint32_t x = add_input(&c, "x", f32(2, DIMS(4, 8)));
  const uint32_t lower = add_view(&c, x, f32(2, DIMS(2, 8)), 64);
  const uint32_t row = add_view(&c, lower, f32(1, DIMS(8)), 32);
  assert_int_equal(c.graph.values[row].base, x);
  assert_int_equal(c.graph.values[row].offset_bytes, 96);
  tm_operand transposed = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 8, 4 }, .strides_bytes = { 4, 32 }, .alignment = 1 };
  assert_int_equal(tm_operand_derive(&transposed, NULL), TM_OK);
  add_view(&c, x, transposed, 0);
  tm_operand reversed = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 32 }, .strides_bytes = { -4 }, .alignment = 1 };
  assert_int_equal(tm_operand_derive(&reversed, NULL), TM_OK);
  const uint32_t back = add_view(&c, x, reversed, 124);
  const tm_operand all = f32(1, DIMS(32)), nine = f32(1, DIMS(9)), none = f32(1, DIMS(0));
  uint32_t value;
  says(&c, tm_graph_add_view(&c.graph, x, &reversed, 120, &value, &c.error), TM_ERROR_ARGUMENT, "a view stays inside");
  says(&c, tm_graph_add_view(&c.graph, x, &all, 4, &value, &c.error), TM_ERROR_ARGUMENT, "touches 128 bytes");
  says(&c, tm_graph_add_view(&c.graph, row, &nine, 0, &value, &c.error), TM_ERROR_ARGUMENT, "view 2 at offset 0 (96 of");
  says(&c, tm_graph_add_view(&c.graph, row, &all, UINT64_MAX, &value, &c.error), TM_ERROR_ARGUMENT, "64 bits");
  says(&c, tm_graph_add_view(&c.graph, x, &all, UINT64_MAX, &value, &c.error), TM_ERROR_ARGUMENT, "a view stays inside");
  says(&c, tm_graph_add_view(&c.graph, 99, &all, 0, &value, &c.error), TM_ERROR_ARGUMENT, "value 99");
  assert_int_equal(tm_graph_add_view(&c.graph, x, &none, 128, &value, &c.error), TM_OK);
  says(&c, tm_graph_add_view(&c.graph, x, &none, 129, &value, &c.error), TM_ERROR_ARGUMENT, "touches 0 bytes");
  says(&c, tm_graph_add_view(&c.graph, x, &none, UINT64_MAX, &value, &c.error), TM_ERROR_ARGUMENT, "a view stays inside");
  says(&c, tm_graph_add_view(&c.graph, row, &none, 33, &value, &c.error), TM_ERROR_ARGUMENT, "a view stays inside");
  const uint32_t nothing = add_input(&c, "nothing", none);
  add_view(&c, nothing, none, 0);
  says(&c, tm_graph_add_view(&c.graph, nothing, &none, 1, &value, &c.error), TM_ERROR_ARGUMENT, "a view stays inside");
  assert_int_equal(c.graph.values[back].base, x);
  const uint32_t w = add_constant(&c, "w", all);
  assert_int_equal(c.graph.values[add_view(&c, w, nine, 0)].operand.flags & TM_OPERAND_CONSTANT, TM_OPERAND_CONSTANT);
  case_end(&c);
}

static void states_are_dense_and_carried_once(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  tm_operand strided = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .strides_bytes = { 8 }, .alignment = 1 };
  assert_int_equal(tm_operand_derive(&strided, NULL), TM_OK);
  uint32_t value;
  says(&c, tm_graph_add_state(&c.graph, "s", &strided, &value, &c.error), TM_ERROR_ARGUMENT, "state 's': its layout has strides");
  const uint32_t s = add_state(&c, "s", f32(1, DIMS(4)));
  const uint32_t x = add_input(&c, "x", f32(1, DIMS(4)));
  const uint32_t five = add_input(&c, "five", f32(1, DIMS(5)));
  const uint32_t half = add_input(&c, "half", dense(TM_FORMAT_F16, 1, DIMS(4)));
  says(&c, tm_graph_add_carry(&c.graph, x, s, &c.error), TM_ERROR_ARGUMENT, "input 'x' is no state");
  says(&c, tm_graph_add_carry(&c.graph, s, 99, &c.error), TM_ERROR_ARGUMENT, "state 's' is value 99");
  says(&c, tm_graph_add_carry(&c.graph, s, five, &c.error), TM_ERROR_ARGUMENT,
       "state 's': what it becomes is f32 [5], expected f32 [4]");
  says(&c, tm_graph_add_carry(&c.graph, s, half, &c.error), TM_ERROR_ARGUMENT, "is f16 [4], expected f32 [4]");
  add_carry(&c, s, x);
  says(&c, tm_graph_add_carry(&c.graph, s, x, &c.error), TM_ERROR_ARGUMENT, "state 's' is carried already, as value 1");
  case_end(&c);
}

static void constants_are_bound_once(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4)), five = f32(1, DIMS(5));
  static const float bytes[4] = { 1, 2, 3, 4 };
  const uint32_t w = add_constant(&c, "w", four);
  const uint32_t x = add_input(&c, "x", four);
  assert_int_equal(tm_graph_unbound(&c.graph), w);
  says(&c, tm_graph_bind_constant(&c.graph, x, &four, bytes, 1, &c, &c.error), TM_ERROR_ARGUMENT, "input 'x' is no constant");
  says(&c, tm_graph_bind_constant(&c.graph, w, &five, bytes, 1, &c, &c.error), TM_ERROR_ARGUMENT,
       "the tensor is f32 [5], expected f32 [4]");
  tm_operand other = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .strides_bytes = { 8 }, .alignment = 1 };
  assert_int_equal(tm_operand_derive(&other, NULL), TM_OK);
  says(&c, tm_graph_bind_constant(&c.graph, w, &other, bytes, 1, &c, &c.error), TM_ERROR_ARGUMENT, "strides are not those");
  tm_graph_seal(&c.graph);
  assert_int_equal(tm_graph_bind_constant(&c.graph, w, &four, bytes, 1, &c, &c.error), TM_OK);
  assert_int_equal(tm_graph_unbound(&c.graph), TM_GRAPH_NONE);
  says(&c, tm_graph_bind_constant(&c.graph, w, &four, bytes, 1, &c, &c.error), TM_ERROR_ARGUMENT, "has its bytes already");
  case_end(&c);
}

static void sealed_graphs_take_nothing(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4));
  const uint32_t s = add_state(&c, "s", four);
  uint32_t value = 0;
  tm_graph_seal(&c.graph);
  says(&c, tm_graph_add_input(&c.graph, "x", &four, &value, &c.error), TM_ERROR_ARGUMENT, "sealed");
  says(&c, tm_graph_add_constant(&c.graph, "x", &four, &value, &c.error), TM_ERROR_ARGUMENT, "sealed");
  says(&c, tm_graph_add_state(&c.graph, "x", &four, &value, &c.error), TM_ERROR_ARGUMENT, "sealed");
  says(&c, tm_graph_add_view(&c.graph, s, &four, 0, &value, &c.error), TM_ERROR_ARGUMENT, "sealed");
  says(&c, tm_graph_add_carry(&c.graph, s, s, &c.error), TM_ERROR_ARGUMENT, "sealed");
  says(&c, tm_graph_add_output(&c.graph, "y", s, &c.error), TM_ERROR_ARGUMENT, "sealed");
  says(&c, try_node(&c, NULL, TM_OP_NEG, NULL, 0, &s, 1, &value), TM_ERROR_ARGUMENT, "sealed");
  assert_int_equal(c.graph.value_count, 1);
  case_end(&c);
}

/* Each allocation fails once; what was there stays whole and the same call then works. */
static void no_memory_leaves_the_graph_whole(void **state) {
  (void)state;
  graph_case c;
  case_begin(&c);
  const tm_operand four = f32(1, DIMS(4));
  uint32_t refused = 0;
  for (uint32_t i = 0; i < 100; i++) {
    char name[16];
    snprintf(name, sizeof name, "x%u", i);
    uint32_t value = 0, result = 0;
    c.memory.limit_bytes = atomic_load(&c.memory.used_bytes) + 1;
    const uint32_t before = c.graph.value_count;
    if (tm_graph_add_input(&c.graph, name, &four, &value, &c.error) == TM_ERROR_NO_MEMORY) {
      assert_int_equal(c.graph.value_count, before);
      c.memory.limit_bytes = 0;
      refused++;
      assert_int_equal(tm_graph_add_input(&c.graph, name, &four, &value, &c.error), TM_OK);
      c.memory.limit_bytes = atomic_load(&c.memory.used_bytes) + 1;
    }
    if (try_node(&c, name, TM_OP_NEG, NULL, 0, &value, 1, &result) == TM_ERROR_NO_MEMORY) {
      assert_int_equal(c.graph.node_count, i);
      c.memory.limit_bytes = 0;
      refused++;
      assert_int_equal(try_node(&c, name, TM_OP_NEG, NULL, 0, &value, 1, &result), TM_OK);
    }
    c.memory.limit_bytes = 0;
    assert_int_equal(c.graph.values[result].node, i);
  }
  assert_true(refused > 4);
  assert_int_equal(c.graph.node_count, 100);
  case_end(&c);
}

/* In seconds of the processor's time: a busy machine does not count. */
static double build_chain(uint32_t count) {
  graph_case c;
  const clock_t begin = clock();
  case_begin(&c);
  uint32_t value = add_input(&c, "x", f32(1, DIMS(16)));
  for (uint32_t i = 0; i < count; i++) {
    char name[24];
    snprintf(name, sizeof name, "layer.%u", i);
    assert_int_equal(try_node(&c, name, TM_OP_NEG, NULL, 0, &value, 1, &value), TM_OK);
  }
  add_output(&c, "y", value);
  assert_int_equal(c.graph.node_count, count);
  const double taken = (double)(clock() - begin) / CLOCKS_PER_SEC;
  case_end(&c);
  return taken;
}

static void large_graphs_take_linear_time(void **state) {
  (void)state;
  const double small = build_chain(10000), large = build_chain(100000);
  print_message("10,000 nodes: %.1f ms; 100,000 nodes: %.1f ms\n", small * 1e3, large * 1e3);
  assert_true(large < 20);      /* anything quadratic takes minutes */
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_and_nodes_are_numbered_in_order),
    cmocka_unit_test(attributes_are_kept_and_completed),
    cmocka_unit_test(wanted_outputs_are_made),
    cmocka_unit_test(wrong_nodes_are_refused),
    cmocka_unit_test(names_are_unique_and_clean),
    cmocka_unit_test(views_stay_inside),
    cmocka_unit_test(states_are_dense_and_carried_once),
    cmocka_unit_test(constants_are_bound_once),
    cmocka_unit_test(sealed_graphs_take_nothing),
    cmocka_unit_test(no_memory_leaves_the_graph_whole),
    cmocka_unit_test(large_graphs_take_linear_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
